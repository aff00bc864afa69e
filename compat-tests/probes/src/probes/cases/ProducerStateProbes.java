package probes.cases;

import probes.Check;
import probes.Probe;
import probes.ask.Offsets;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;

import static org.apache.kafka.common.protocol.Errors.INVALID_PRODUCER_EPOCH;
import static org.apache.kafka.common.protocol.Errors.NONE;
import static org.apache.kafka.common.protocol.Errors.OUT_OF_ORDER_SEQUENCE_NUMBER;

/** What a partition remembers of idempotent producers (KIP-98). */
public final class ProducerStateProbes {
    private ProducerStateProbes() {
    }

    @Probe("C001 a retried idempotent batch inside the five-batch window is answered with its first offset")
    static void retry(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        long id = Produce.producerId(check.wire());
        for (int i = 0; i < 6; i++) {
            long offset = Produce.put(check.wire(), topic, Batch.of("v" + i).producer(id, 0, i));
            check.equal("offset of sequence " + i, i, offset);
        }
        for (int i : new int[]{5, 3, 1}) {
            var again = Produce.ask(check.wire(), topic, Batch.of("v" + i).producer(id, 0, i));
            check.code("sequence " + i + " again", again.errorCode(), NONE);
            check.equal("offset of sequence " + i + " again", i, again.baseOffset());
        }
        check.code("the sixth newest again", send(check, topic, Batch.of("v0").producer(id, 0, 0)),
            OUT_OF_ORDER_SEQUENCE_NUMBER);
        check.code("an overlap with two batches", send(check, topic, Batch.of("v4", "v5").producer(id, 0, 4)),
            OUT_OF_ORDER_SEQUENCE_NUMBER);
        check.code("a gap", send(check, topic, Batch.of("v").producer(id, 0, 7)), OUT_OF_ORDER_SEQUENCE_NUMBER);
        check.equal("log end", 6, Offsets.end(check.wire(), topic, 0));
    }

    @Probe("C003 a producer without state may begin with any sequence, a new epoch with 0 only")
    static void firstBatch(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        long id = Produce.producerId(check.wire());
        check.code("sequence 7 first", send(check, topic, Batch.of("v").producer(id, 0, 7)), NONE);
        check.code("epoch 1 from 3", send(check, topic, Batch.of("v").producer(id, 1, 3)),
            OUT_OF_ORDER_SEQUENCE_NUMBER);
        check.code("epoch 1 from 0", send(check, topic, Batch.of("v").producer(id, 1, 0)), NONE);
        check.code("epoch 0 again", send(check, topic, Batch.of("v").producer(id, 0, 8)), INVALID_PRODUCER_EPOCH);
        Topics.delete(check.wire(), topic);
        Topic anew = Topics.recreate(check.wire(), topic.name(), 1);
        check.code("epoch 1 from 42 in the topic created anew", send(check, anew, Batch.of("v").producer(id, 1, 42)),
            NONE);
    }

    private static short send(Check check, Topic topic, Batch batch) throws Exception {
        return Produce.ask(check.wire(), topic, batch).errorCode();
    }
}
