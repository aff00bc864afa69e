package probes.cases;

import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.FetchResponseData.PartitionData;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.Waiting;
import probes.ask.Fetch;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

/** How much a Fetch brings, what an empty one tells, and how long it waits. */
public final class FetchProbes {
    private static final int LARGE = 500_000;
    /** Far more than an answer needs that does not wait. */
    private static final int AT_ONCE_MS = 3_000;
    private static final int LONG_MS = 8_000;

    private FetchProbes() {
    }

    @Probe(value = "C011 the first batch comes whole though it is larger than every limit", spoil = Spoil.PAYLOAD)
    static void oversized(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 2);
        for (int partition : new int[]{0, 1}) {
            Produce.put(check.wire(), topic, partition, Batch.sized(LARGE));
        }
        for (int version : new int[]{4, 12}) {
            for (int limit : new int[]{1_000, 1}) {
                for (int first : new int[]{0, 1}) {
                    String what = "v" + version + ", limit " + limit + ", partition " + first + " first: ";
                    var found = Fetch.byPartition(Fetch.nothing().and(topic, first, 0).and(topic, 1 - first, 0)
                        .version(version).atMost(limit).ask(check.wire()));
                    var batches = Fetch.batches(found.get(first));
                    boolean whole = batches.size() == 1 && batches.get(0).sizeInBytes() > LARGE
                        && batches.get(0).isValid();
                    check.that(what + "a whole batch", whole, batches);
                    check.equal(what + "batches of the other", 0, Fetch.batches(found.get(1 - first)).size());
                }
            }
        }
    }

    @Probe(value = "C013 an answer without records still tells high watermark and log start, an error tells -1",
        spoil = Spoil.OFFSETS)
    static void empty(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1);
        for (int i = 0; i < 8; i++) {
            Produce.put(wire, topic, Batch.of("v"));
        }
        Topics.trim(wire, topic, 5);
        String order = " (code/high watermark/last stable offset/log start)";
        for (int version : new int[]{5, 11, 12}) {
            PartitionData atEnd = Fetch.from(topic, 8).version(version).one(wire);
            check.equal("v" + version + " at the end" + order, "0/8/8/5", told(atEnd));
            check.equal("v" + version + " bytes", 0, atEnd.records() == null ? 0 : atEnd.records().sizeInBytes());
            check.equal("v" + version + " beyond" + order, "1/-1/-1/-1",
                told(Fetch.from(topic, 99).version(version).one(wire)));
            PartitionData unknown = Fetch.from(Topics.ghost(), 0).version(version).one(wire);
            check.equal("v" + version + " unknown topic" + order, "3/-1/-1/-1", told(unknown));
        }
    }

    private static String told(PartitionData found) {
        return found.errorCode() + "/" + found.highWatermark() + "/" + found.lastStableOffset()
            + "/" + found.logStartOffset();
    }

    @Probe(value = "C014 a Fetch waits for min.bytes up to max.wait, within a session too", spoil = Spoil.PAYLOAD)
    static void waits(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 2);
        Wire wire = check.another();
        int session = Fetch.nothing().and(topic, 0, 0).and(topic, 1, 0).session(0, 0).ask(wire).sessionId();
        long idle = Waiting.milliseconds(() -> Fetch.nothing().session(session, 1).patient(1_000).ask(wire));
        check.between("ms, an idle session and no partition named", 900, 1_000 + AT_ONCE_MS, idle);
        Fetch.nothing().session(session, 2).patient(LONG_MS).send(wire);
        check.equal("before there is data", Wire.End.OPEN, wire.end(300));
        long sent = Waiting.now();
        Produce.put(check.wire(), topic, Batch.of("x"));
        FetchResponseData woken = wire.receive();
        check.between("ms from produce to answer", 0, AT_ONCE_MS, Waiting.now() - sent);
        check.equal("batches", 1, Fetch.batches(Fetch.first(woken)).size());
        for (int i = 0; i < 2; i++) {
            Produce.put(check.wire(), topic, Batch.sized(500_000));
        }
        long full = took(wire, Fetch.from(topic, 1).atLeast(10 << 20).atMostPerPartition(1_000).patient(1_000));
        check.between("ms, min.bytes out of reach", 0, 1_000 + AT_ONCE_MS, full);
        check.note("min.bytes out of reach: " + full + " ms of 1000");
    }

    @Probe("C014 a Fetch that cannot wait for anything, or that finds an error, is answered at once")
    static void atOnce(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 2);
        Topic ghost = Topics.ghost();
        check.code("an unknown topic", Fetch.from(ghost, 0).one(wire).errorCode(),
            org.apache.kafka.common.protocol.Errors.UNKNOWN_TOPIC_OR_PARTITION);
        check.between("ms, an unknown topic alone", 0, AT_ONCE_MS, took(wire, Fetch.from(ghost, 0).patient(LONG_MS)));
        Fetch beyond = Fetch.from(topic, 0).and(topic, 1, 99).patient(LONG_MS);
        check.between("ms, an offset out of range beside an idle partition", 0, AT_ONCE_MS, took(wire, beyond));
        check.between("ms, no partition and no session", 0, AT_ONCE_MS, took(wire, Fetch.nothing().patient(LONG_MS)));
        check.between("ms, max.wait 0", 0, AT_ONCE_MS, took(wire, Fetch.from(topic, 0)));
        check.between("ms, min.bytes 0", 0, AT_ONCE_MS, took(wire, Fetch.from(topic, 0).atLeast(0).patient(LONG_MS)));
        long mixed = took(wire, Fetch.from(topic, 0).and(ghost, 0, 0).patient(1_000));
        check.between("ms, an unknown topic beside an idle partition", 0, 1_000 + AT_ONCE_MS, mixed);
        check.note("an unknown topic beside an idle partition: " + mixed + " ms of 1000");
    }

    @Probe(value = "C014 a Fetch does not wait for what its own limits hold back, nor on an older segment",
        spoil = Spoil.PAYLOAD)
    static void heldBack(Check check) throws Exception {
        Wire wire = check.wire();
        int many = 1 << 20;
        Topic topic = Topics.create(wire, 2, "internal.segment.bytes", "1200");
        for (int i = 0; i < 3; i++) {
            Produce.put(wire, topic, Batch.sized(1_000));
        }
        Produce.put(wire, topic, 1, Batch.sized(1_000));
        Fetch old = Fetch.from(topic, 0).atLeast(many).patient(LONG_MS);
        check.between("ms, an older segment", 0, AT_ONCE_MS, took(wire, old));
        check.equal("batches of it", 1, Fetch.batches(old.patient(0).one(wire)).size());
        check.between("ms, the newest segment", 900, 1_000 + AT_ONCE_MS,
            took(wire, Fetch.from(topic, 2).atLeast(many).patient(1_000)));
        Fetch both = Fetch.from(topic, 2).and(topic, 1, 0).atLeast(1_500).patient(LONG_MS);
        check.between("ms, both together have enough", 0, AT_ONCE_MS, took(wire, both.inAll(1_500)));
        check.between("ms, one has too little", 900, 1_000 + AT_ONCE_MS,
            took(wire, Fetch.from(topic, 2).atLeast(1_500).inAll(1_500).patient(1_000)));
    }

    private static long took(Wire wire, Fetch fetch) throws Exception {
        return Waiting.milliseconds(() -> fetch.ask(wire));
    }
}
