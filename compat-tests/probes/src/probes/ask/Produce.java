package probes.ask;

import org.apache.kafka.common.message.InitProducerIdRequestData;
import org.apache.kafka.common.message.InitProducerIdResponseData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.ProduceRequestData.PartitionProduceData;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceData;
import org.apache.kafka.common.message.ProduceResponseData;
import org.apache.kafka.common.message.ProduceResponseData.PartitionProduceResponse;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import probes.Waiting;
import probes.Wrong;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** Produce with acks=all, and the producer ids for it. */
public final class Produce {
    public static final int VERSION = 9;
    private static final Set<Short> NOT_YET = Set.of(Errors.UNKNOWN_TOPIC_OR_PARTITION.code(),
        Errors.LEADER_NOT_AVAILABLE.code(), Errors.NOT_LEADER_OR_FOLLOWER.code());

    private Produce() {
    }

    /** @param batches by partition; bytes null are records null */
    public static ProduceRequestData request(Topic topic, Map<Integer, byte[]> batches) {
        TopicProduceData asked = new TopicProduceData().setName(topic.name()).setTopicId(topic.id());
        batches.forEach((partition, bytes) -> asked.partitionData().add(new PartitionProduceData().setIndex(partition)
            .setRecords(bytes == null ? null : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)))));
        ProduceRequestData request = new ProduceRequestData().setAcks((short) -1).setTimeoutMs(10_000);
        request.topicData().mustAdd(asked);
        return request;
    }

    /** For partition 0. */
    public static ProduceRequestData request(Topic topic, Batch batch) {
        return request(topic, Map.of(0, batch.bytes()));
    }

    /** Error codes by partition. */
    public static Map<Integer, Short> codes(ProduceResponseData answer) {
        Map<Integer, Short> codes = new TreeMap<>();
        answer.responses().iterator().next().partitionResponses().forEach(p -> codes.put(p.index(), p.errorCode()));
        return codes;
    }

    public static PartitionProduceResponse only(ProduceResponseData answer) {
        return answer.responses().iterator().next().partitionResponses().get(0);
    }

    public static PartitionProduceResponse ask(Wire wire, Topic topic, int partition, Batch batch) throws IOException {
        return only(wire.call(request(topic, Map.of(partition, batch.bytes())), VERSION));
    }

    /** To partition 0. */
    public static PartitionProduceResponse ask(Wire wire, Topic topic, Batch batch) throws IOException {
        return ask(wire, topic, 0, batch);
    }

    /** Appends to partition 0, which has to work; returns the base offset. */
    public static long put(Wire wire, Topic topic, Batch batch) throws Exception {
        return put(wire, topic, 0, batch);
    }

    public static long put(Wire wire, Topic topic, int partition, Batch batch) throws Exception {
        PartitionProduceResponse[] answer = new PartitionProduceResponse[1];
        Waiting.until(10_000, () -> {
            answer[0] = ask(wire, topic, partition, batch);
            return !NOT_YET.contains(answer[0].errorCode());
        });
        if (answer[0].errorCode() != 0) {
            throw new Wrong("Produce: " + Errors.forCode(answer[0].errorCode()) + " " + answer[0].errorMessage());
        }
        return answer[0].baseOffset();
    }

    /** A producer id that nobody has used; its epoch is 0. */
    public static long producerId(Wire wire) throws Exception {
        InitProducerIdResponseData[] answer = new InitProducerIdResponseData[1];
        Waiting.until(10_000, () -> {
            answer[0] = wire.call(new InitProducerIdRequestData().setTransactionalId(null), 4);
            return answer[0].errorCode() != Errors.COORDINATOR_LOAD_IN_PROGRESS.code();
        });
        if (answer[0].errorCode() != 0) {
            throw new Wrong("InitProducerId: " + Errors.forCode(answer[0].errorCode()));
        }
        return answer[0].producerId();
    }
}
