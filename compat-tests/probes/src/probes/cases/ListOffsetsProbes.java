package probes.cases;

import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.Waiting;
import probes.ask.Fetch;
import probes.ask.Offsets;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import static org.apache.kafka.common.protocol.Errors.NONE;
import static org.apache.kafka.common.protocol.Errors.UNSUPPORTED_VERSION;

/** Offsets by timestamp, the largest timestamp, the ends of the log. */
public final class ListOffsetsProbes {
    private ListOffsetsProbes() {
    }

    /** Timestamps count from here, so that none is in the future. */
    private static long base() {
        return Waiting.now() - 1_000_000;
    }

    @Probe(value = "C020 a lookup by timestamp finds the first record at or after it, inside of batches too",
        spoil = Spoil.LISTED_OFFSETS)
    static void byTimestamp(Check check) throws Exception {
        Wire wire = check.wire();
        long base = base();
        for (String codec : new String[]{"none", "gzip", "zstd"}) {
            Topic sorted = Topics.create(wire, 1);
            Produce.put(wire, sorted, batch(codec, base, 2, 4));
            Produce.put(wire, sorted, batch(codec, base, 6, 8));
            for (int target = 1; target <= 8; target++) {
                int offset = (target - 1) / 2;
                for (int version : new int[]{1, 7}) {
                    var found = Offsets.list(wire, version, sorted, 0, base + target);
                    check.equal(codec + " v" + version + ", offset of " + target, offset, found.offset());
                    check.equal(codec + " v" + version + ", timestamp of " + target, 2 * offset + 2,
                        found.timestamp() - base);
                }
            }
            Topic unsorted = Topics.create(wire, 1);
            Produce.put(wire, unsorted, batch(codec, base, 10, 5, 20));
            check.equal(codec + " unsorted, 6", 0, Offsets.list(wire, unsorted, base + 6).offset());
            check.equal(codec + " unsorted, 11", 2, Offsets.list(wire, unsorted, base + 11).offset());
            wrongMaximum(check, codec, base);
        }
    }

    /** The broker finds the largest timestamp itself. */
    private static void wrongMaximum(Check check, String codec, long base) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        Batch batch = batch(codec, base, 10, 20);
        batch.maxTimestamp = 0L;
        Produce.put(check.wire(), topic, batch);
        check.equal(codec + " maximum told as 0, 15", 1, Offsets.list(check.wire(), topic, base + 15).offset());
        long stored = Fetch.batches(Fetch.from(topic, 0).one(check.wire())).get(0).maxTimestamp();
        check.equal(codec + " maximum stored", 20, stored - base);
    }

    private static Batch batch(String codec, long base, int... timestamps) {
        Batch batch = new Batch().compressed(codec);
        for (int timestamp : timestamps) {
            batch.record(base + timestamp, "k", "v");
        }
        return batch;
    }

    @Probe(value = "C022 MAX_TIMESTAMP finds the first record with the largest timestamp", spoil = Spoil.LISTED_OFFSETS)
    static void maxTimestamp(Check check) throws Exception {
        Wire wire = check.wire();
        long base = base();
        for (String codec : new String[]{"none", "gzip"}) {
            Topic single = Topics.create(wire, 1);
            for (int timestamp : new int[]{5, 99, 7}) {
                Produce.put(wire, single, batch(codec, base, timestamp));
            }
            Topic together = Topics.create(wire, 1);
            Produce.put(wire, together, batch(codec, base, 5, 99, 99, 7));
            check.equal(codec + " in three batches", "1 at 99", newest(wire, single, base));
            check.equal(codec + " in one batch", "1 at 99", newest(wire, together, base));
            Topics.trim(wire, single, 2);
            String left = newest(wire, single, base); // Kafka 4.4.0 still tells of the removed record
            check.that(codec + " with the largest trimmed away", left.equals("1 at 99") || left.equals("2 at 7"), left);
            check.note(codec + " with the largest trimmed away: " + left);
        }
        Topic empty = Topics.create(wire, 1);
        var none = Offsets.list(wire, empty, Offsets.MAX_TIMESTAMP);
        check.code("an empty partition", none.errorCode(), NONE);
        check.equal("its offset and timestamp", "-1 at -1", none.offset() + " at " + none.timestamp());
        check.code("v6", Offsets.list(wire, 6, empty, 0, Offsets.MAX_TIMESTAMP).errorCode(), UNSUPPORTED_VERSION);
    }

    private static String newest(Wire wire, Topic topic, long base) throws Exception {
        var found = Offsets.list(wire, topic, Offsets.MAX_TIMESTAMP);
        return found.offset() + " at " + (found.timestamp() - base);
    }

    @Probe(value = "C024 the earliest offset after a trim is readable and tells the epoch of its record",
        spoil = Spoil.LISTED_OFFSETS)
    static void earliest(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        for (int i = 0; i < 10; i++) {
            Produce.put(check.wire(), topic, Batch.of("v" + i));
        }
        Topics.trim(check.wire(), topic, 6);
        earliestIsSix(check, check.wire(), topic, Topics.leaderEpoch(check.wire(), topic));
    }

    static void earliestIsSix(Check check, Wire wire, Topic topic, int epoch) throws Exception {
        var earliest = Offsets.list(wire, topic, Offsets.EARLIEST);
        check.equal("earliest", 6, earliest.offset());
        check.equal("epoch of its record", epoch, earliest.leaderEpoch());
        check.equal("its record", "v6", Fetch.values(Fetch.all(wire, topic, 6)).get(0));
    }
}
