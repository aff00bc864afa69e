package probes.cases;

import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.ask.Fetch;
import probes.ask.Offsets;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import org.apache.kafka.common.message.ProduceResponseData;
import org.apache.kafka.common.protocol.Errors;

import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

import static org.apache.kafka.common.protocol.Errors.CORRUPT_MESSAGE;
import static org.apache.kafka.common.protocol.Errors.INVALID_RECORD;
import static org.apache.kafka.common.protocol.Errors.NONE;

/** Bytes that no client should send. */
public final class BadInputProbes {
    private static final int HALF_FRAMES = 300;

    private BadInputProbes() {
    }

    @Probe(value = "C101 bytes that are not Kafka's and silly frame sizes close the connection alone",
        spoil = Spoil.CLOSING)
    static void notKafka(Check check) throws Exception {
        Map<String, byte[]> attacks = new LinkedHashMap<>();
        attacks.put("HTTP", Batch.bytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        for (int size : new int[]{0, -1, Integer.MIN_VALUE, Integer.MAX_VALUE, 104_857_601}) {
            attacks.put("size " + size, ByteBuffer.allocate(4).putInt(size).array());
        }
        attacks.put("key 9999", Wire.sized(Wire.header(9999, 0, 1, 1)));
        attacks.put("key 4, which brokers once spoke", Wire.sized(Wire.concat(Wire.header(4, 0, 1, 1), new byte[20])));
        attacks.put("Metadata v999", Wire.sized(Wire.concat(Wire.header(3, 999, 1, 1), new byte[4])));
        attacks.put("half a header", Wire.sized(new byte[]{0, 3}));
        for (var attack : attacks.entrySet()) {
            Wire wire = check.another();
            wire.raw(attack.getValue());
            check.that(attack.getKey() + " closes", wire.closes(10_000), "open");
        }
        byte[] halfFrame = {0, 0, 1, 0, 0, 3, 0, 9};
        for (int i = 0; i < HALF_FRAMES; i++) {
            check.another().raw(halfFrame);
        }
        check.that("others are served", !Topics.cluster(check.another()).brokers().isEmpty(), "no brokers");
    }

    /** @param allowed no error named: any refusal will do */
    private record BadBatch(String what, byte[] bytes, List<Errors> allowed) { }

    private static BadBatch bad(String what, Batch batch, Consumer<Batch> spoil, Errors... allowed) {
        spoil.accept(batch);
        return new BadBatch(what, batch.bytes(), Arrays.asList(allowed));
    }

    private static List<BadBatch> badBatches() {
        byte[] two = Wire.concat(Batch.of("a").bytes(), Batch.of("b").bytes());
        byte[] beyond = {40, 0, 0, 0, 1};
        return List.of(
            bad("a wrong CRC", ab(), b -> b.wrongCrc = true, CORRUPT_MESSAGE),
            bad("magic 1", ab(), b -> b.magic = 1, INVALID_RECORD),
            new BadBatch("no batch", new byte[0], List.of(INVALID_RECORD)),
            new BadBatch("two batches", two, List.of(INVALID_RECORD)),
            bad("a count too high", ab(), b -> { b.count = 3; b.lastOffsetDelta = 2; }, INVALID_RECORD),
            bad("a count too low", ab(), b -> { b.count = 1; b.lastOffsetDelta = 0; }, INVALID_RECORD),
            bad("a wrong last offset delta", ab(), b -> b.lastOffsetDelta = 5, INVALID_RECORD),
            bad("a batch without records", new Batch(), b -> { }, INVALID_RECORD),
            bad("equal offset deltas, compressed", ab().compressed("gzip"), b -> b.sameOffsetDeltas = true),
            bad("gzip that is none", ab().compressed("gzip"), b -> b.payload = new byte[]{1, 2, 3, 4, 5}),
            bad("zstd that is none", ab().compressed("zstd"), b -> b.payload = new byte[]{9, 9, 9, 9, 9}),
            bad("codec 5", Batch.of("a"), b -> b.codecId = 5),
            bad("base offset 7", Batch.of("a"), b -> b.baseOffset = 7, INVALID_RECORD),
            bad("batch length 20", Batch.of("a"), b -> b.length = 20),
            bad("a record beyond the batch", Batch.of("a"), b -> b.payload = beyond, INVALID_RECORD));
    }

    private static Batch ab() {
        return Batch.of("a", "b");
    }

    @Probe(value = "C103 a bad record batch is refused whole, and its partition alone", seconds = 60)
    static void badBatch(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 2);
        long good = 0;
        for (BadBatch bad : badBatches()) {
            var codes = send(check.wire(), topic, bad.bytes);
            if (bad.allowed.isEmpty()) {
                check.refused(bad.what, codes.get(0));
            } else {
                check.code(bad.what, codes.get(0), bad.allowed.toArray(new Errors[0]));
            }
            check.code("beside " + bad.what, codes.get(1), NONE);
            good++;
        }
        check.equal("log end beside all that was refused", 0, Offsets.end(check.wire(), topic, 0));
        check.equal("records beside them", good, Fetch.all(check.wire(), topic, 1, 0).size());
    }

    @Probe(value = "C103 a batch of a magic to come and null records store nothing", seconds = 60)
    static void unreadableRequest(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 2);
        Batch magic = ab();
        magic.magic = 3;
        var codes = send(check.wire(), topic, magic.bytes());
        check.code("magic 3", codes.get(0), CORRUPT_MESSAGE, INVALID_RECORD);
        check.code("beside magic 3", codes.get(1), CORRUPT_MESSAGE, NONE);
        try {
            codes = send(check.another().patience(2_500), topic, null);
            check.code("null records", codes.get(0), INVALID_RECORD);
        } catch (SocketTimeoutException | Wire.Gone e) {
            check.note("null records are not answered"); // so Kafka 4.4.0
        }
        Batch deltas = ab();
        deltas.sameOffsetDeltas = true;
        codes = send(check.wire(), topic, deltas.bytes());
        check.code("equal offset deltas, uncompressed", codes.get(0), NONE, INVALID_RECORD);
        long stored = codes.get(0) == 0 ? 2 : 0;
        check.equal("log end", stored, Offsets.end(check.wire(), topic, 0));
        check.note("equal offset deltas, uncompressed: " + Errors.forCode(codes.get(0)));
        check.that("readable to the end", Fetch.all(check.wire(), topic, 0).size() <= stored, "more than was stored");
    }

    private static Map<Integer, Short> send(Wire wire, Topic topic, byte[] bytes) throws Exception {
        Map<Integer, byte[]> both = new HashMap<>();
        both.put(0, bytes);
        both.put(1, Batch.of("good").bytes());
        ProduceResponseData answer = wire.call(Produce.request(topic, both), Produce.VERSION);
        return Produce.codes(answer);
    }
}
