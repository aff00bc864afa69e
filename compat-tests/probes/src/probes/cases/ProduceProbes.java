package probes.cases;

import org.apache.kafka.common.record.internal.Record;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.Waiting;
import probes.ask.Configs;
import probes.ask.Fetch;
import probes.ask.Offsets;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import static org.apache.kafka.common.protocol.Errors.INVALID_RECORD;
import static org.apache.kafka.common.protocol.Errors.INVALID_TIMESTAMP;
import static org.apache.kafka.common.protocol.Errors.MESSAGE_TOO_LARGE;
import static org.apache.kafka.common.protocol.Errors.NONE;

/** What Produce takes and refuses, and that records come back as they went in. */
public final class ProduceProbes {
    private static final long DAY_MS = 86_400_000L;
    private static final long TEN_YEARS_MS = 3_650 * DAY_MS;

    private ProduceProbes() {
    }

    @Probe("C005 a batch over the topic's limit is an error of its partition alone")
    static void tooLarge(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 2, "max.message.bytes", "51200");
        var both = Map.of(0, Batch.sized(60_000).bytes(), 1, Batch.sized(1_000).bytes());
        var codes = Produce.codes(wire.call(Produce.request(topic, both), Produce.VERSION));
        check.code("60 kB", codes.get(0), MESSAGE_TOO_LARGE);
        check.code("1 kB beside it", codes.get(1), NONE);
        check.that("the connection still serves", !Topics.cluster(wire).brokers().isEmpty(), "no brokers");
        check.code("60 kB compressed to less",
            Produce.ask(wire, topic, Batch.sized(60_000).compressed("gzip")).errorCode(), NONE);
        check.code("a higher limit", Configs.alter(wire, topic, "max.message.bytes", "100000"), NONE);
        boolean taken = Waiting.until(5_000, () -> Produce.ask(wire, topic, Batch.sized(60_000)).errorCode() == 0);
        check.that("60 kB under the higher limit", taken, "refused");
    }

    @Probe("C008 a timestamp outside of the allowed window refuses the batch and names the record")
    static void timestamps(Check check) throws Exception {
        Wire wire = check.wire();
        Topic minute = Topics.create(wire, 1, "message.timestamp.after.max.ms", "60000",
            "message.timestamp.before.max.ms", "60000");
        long now = Waiting.now();
        for (long distance : new long[]{DAY_MS, -DAY_MS}) {
            Batch batch = new Batch().record(now, "k", "a").record(now + distance, "k", "b").record(now, "k", "c");
            var answer = Produce.ask(wire, minute, batch);
            check.code(distance + " ms away", answer.errorCode(), INVALID_TIMESTAMP);
            check.equal("records named", List.of(1), answer.recordErrors().stream().map(e -> e.batchIndex()).toList());
        }
        check.equal("log end", 0, Offsets.end(wire, minute, 0));
        Topic usual = Topics.create(wire, 1);
        check.equal("default of after", "3600000", Configs.of(wire, usual, "message.timestamp.after.max.ms").value());
        check.equal("default of before", "" + Long.MAX_VALUE,
            Configs.of(wire, usual, "message.timestamp.before.max.ms").value());
        check.code("two hours ahead", stamped(wire, usual, now + DAY_MS / 12), INVALID_TIMESTAMP);
        check.code("ten years back", stamped(wire, usual, now - TEN_YEARS_MS), NONE);
        Topic open = Topics.create(wire, 1, "message.timestamp.after.max.ms", "" + Long.MAX_VALUE);
        check.code("ten years ahead without a limit", stamped(wire, open, now + TEN_YEARS_MS), NONE);
        check.equal("kept as sent", now + TEN_YEARS_MS, Fetch.all(wire, open, 0).get(0).timestamp());
    }

    private static short stamped(Wire wire, Topic topic, long timestamp) throws Exception {
        return Produce.ask(wire, topic, new Batch().record(timestamp, "k", "v")).errorCode();
    }

    @Probe(value = "C009 null and empty keys, values and header values stay apart, headers keep their order",
        spoil = Spoil.PAYLOAD)
    static void nullAndEmpty(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        List<String> sent = sendNullAndEmpty(check.wire(), topic);
        check.equal("records", sent, read(check.wire(), topic));
        Batch nullHeader = new Batch().record(Waiting.now(), "k", "v", new Batch.Header(null, Batch.bytes("v")));
        check.code("a null header key", Produce.ask(check.wire(), topic, nullHeader).errorCode(), INVALID_RECORD);
    }

    /** Each pair of null, empty and a text, under repeated and empty header keys; told as {@link #read} tells. */
    static List<String> sendNullAndEmpty(Wire wire, Topic topic) throws Exception {
        Batch.Header[] headers = {new Batch.Header(Batch.bytes("a"), null),
            new Batch.Header(Batch.bytes("a"), new byte[0]),
            new Batch.Header(new byte[0], Batch.bytes("z")), new Batch.Header(Batch.bytes("a"), Batch.bytes("1"))};
        String[] texts = {null, "", "x"};
        List<String> sent = new ArrayList<>();
        for (String codec : new String[]{"none", "zstd"}) {
            Batch batch = new Batch().compressed(codec);
            for (String key : texts) {
                for (String value : texts) {
                    batch.record(Waiting.now(), key, value, headers);
                    sent.add(key + "|" + value + "|a=null|a=|=z|a=1");
                }
            }
            Produce.put(wire, topic, batch);
        }
        return sent;
    }

    static List<String> read(Wire wire, Topic topic) throws Exception {
        return Fetch.all(wire, topic, 0).stream().map(ProduceProbes::told).toList();
    }

    private static String told(Record record) {
        StringBuilder told = new StringBuilder(Fetch.text(record.key()) + "|" + Fetch.text(record.value()));
        for (var header : record.headers()) {
            String value = header.value() == null ? "null" : new String(header.value());
            told.append("|").append(header.key()).append("=").append(value);
        }
        return told.toString();
    }
}
