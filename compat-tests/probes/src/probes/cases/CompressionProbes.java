package probes.cases;

import org.apache.kafka.common.record.internal.RecordBatch;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.Waiting;
import probes.Wrong;
import probes.ask.Configs;
import probes.ask.Fetch;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;

import static org.apache.kafka.common.protocol.Errors.MESSAGE_TOO_LARGE;
import static org.apache.kafka.common.protocol.Errors.NONE;
import static org.apache.kafka.common.protocol.Errors.UNSUPPORTED_COMPRESSION_TYPE;

/** What a batch is stored with, whatever it came with. */
public final class CompressionProbes {
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    private static final String[] TYPES = {"producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"};
    private static final String LONG = "abcdefghij".repeat(50);
    private static final int CRC_AT = 17;

    private CompressionProbes() {
    }

    @Probe(value = "C018 a batch is stored with the topic's codec, or byte for byte as it came", spoil = Spoil.PAYLOAD)
    static void matrix(Check check) throws Exception {
        Wire wire = check.wire();
        for (String type : TYPES) {
            Topic topic = Topics.create(wire, 1, "compression.type", type);
            for (String codec : CODECS) {
                String what = type + " x " + codec + ": ";
                byte[] sent = Batch.of(LONG, "b", "c").compressed(codec).bytes();
                long offset = put(check, wire, topic, sent);
                RecordBatch stored = stored(wire, topic, offset);
                String want = type.equals("producer") ? codec : type.equals("uncompressed") ? "none" : type;
                check.equal(what + "codec", want, stored.compressionType().name);
                check.that(what + "CRC is right", stored.isValid(), stored);
                check.equal(what + "records", List.of(LONG, "b", "c"), Fetch.values(Fetch.all(wire, topic, offset)));
                if (type.equals("producer")) {
                    check.equal(what + "CRC", Integer.toUnsignedLong(ByteBuffer.wrap(sent).getInt(CRC_AT)),
                        stored.checksum());
                }
            }
            for (int version : new int[]{4, 9, 10, 12}) {
                check.code("Fetch v" + version + " of " + type, Fetch.from(topic, 0).version(version).one(wire)
                    .errorCode(), NONE);
            }
        }
    }

    private static long put(Check check, Wire wire, Topic topic, byte[] batch) throws Exception {
        var answer = Produce.only(wire.call(Produce.request(topic, Map.of(0, batch)), Produce.VERSION));
        check.code("Produce", answer.errorCode(), NONE);
        return answer.baseOffset();
    }

    @Probe("C018 Produce before v7 may not hold zstd")
    static void early(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        Batch batch = Batch.of("x").compressed("zstd");
        for (int version : new int[]{3, 6, 7}) {
            var answer = Produce.only(check.wire().call(Produce.request(topic, batch), version));
            check.code("v" + version, answer.errorCode(), version < 7 ? UNSUPPORTED_COMPRESSION_TYPE : NONE);
        }
    }

    @Probe(value = "C018 a level of the topic's codec changes what is stored, also on a topic in use",
        spoil = Spoil.PAYLOAD)
    static void levels(Check check) throws Exception {
        String text = words();
        for (String[] level : new String[][]{{"gzip", "1", "9"}, {"lz4", "9", "17"},
            {"zstd", "-50", "19"}}) {
            Wire wire = check.another();
            String key = "compression." + level[0] + ".level";
            Topic topic = Topics.create(wire, 1, "compression.type", level[0], key, level[1]);
            int fast = stored(wire, topic, text);
            check.code("altered", Configs.alter(wire, topic, key, level[2]), NONE);
            boolean smaller = Waiting.until(5_000, () -> stored(wire, topic, text) < fast);
            check.that(level[0] + " at " + level[2] + " is smaller than " + fast, smaller, "as large");
        }
    }

    private static int stored(Wire wire, Topic topic, String text) throws Exception {
        return stored(wire, topic, Produce.put(wire, topic, Batch.of(text))).sizeInBytes();
    }

    private static RecordBatch stored(Wire wire, Topic topic, long offset) throws Exception {
        List<RecordBatch> batches = Fetch.batches(Fetch.from(topic, offset).one(wire));
        if (batches.isEmpty()) {
            throw new Wrong("no batch at " + offset);
        }
        return batches.get(0);
    }

    /** Text that a codec finds more in, the longer it looks. */
    private static String words() {
        StringBuilder text = new StringBuilder();
        long state = 7;
        while (text.length() < 60_000) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            text.append("word-").append(state >>> 55).append(' ');
        }
        return text.toString();
    }

    @Probe("C018 max.message.bytes holds for what came and for what is stored")
    static void sizes(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1, "compression.type", "uncompressed", "max.message.bytes", "20000");
        check.code("small before and after", Produce.ask(wire, topic, Batch.sized(10_000)).errorCode(), NONE);
        check.code("small before, too large after", Produce.ask(wire, topic, Batch.sized(30_000).compressed("gzip"))
            .errorCode(), MESSAGE_TOO_LARGE);
        Topic packed = Topics.create(wire, 1, "compression.type", "gzip", "max.message.bytes", "20000");
        check.code("too large before, small after", Produce.ask(wire, packed, Batch.sized(30_000)).errorCode(),
            MESSAGE_TOO_LARGE);
    }
}
