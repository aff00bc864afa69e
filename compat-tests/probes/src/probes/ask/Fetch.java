package probes.ask;

import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchRequestData.FetchPartition;
import org.apache.kafka.common.message.FetchRequestData.FetchTopic;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.FetchResponseData.PartitionData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import probes.Wrong;
import probes.ask.Topics.Topic;
import probes.wire.Wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A Fetch request in the making: without a session, without waiting and with room for all, unless said otherwise. */
public final class Fetch {
    private static final int ROOM = 50 << 20;

    private record Part(Topic topic, int partition, long offset) { }

    private final List<Part> parts = new ArrayList<>();
    private final FetchRequestData request = new FetchRequestData().setReplicaId(-1).setMaxWaitMs(0).setMinBytes(1)
        .setMaxBytes(ROOM).setSessionId(0).setSessionEpoch(-1);
    private int version = 12;
    private int partitionMaxBytes = ROOM;
    private int leaderEpoch = -1;

    /** Names no partition. */
    public static Fetch nothing() {
        return new Fetch();
    }

    /** Partition 0 of a topic. */
    public static Fetch from(Topic topic, long offset) {
        return nothing().and(topic, 0, offset);
    }

    public Fetch and(Topic topic, int partition, long offset) {
        parts.add(new Part(topic, partition, offset));
        return this;
    }

    public Fetch version(int value) {
        version = value;
        return this;
    }

    /** The longest wait, in milliseconds. */
    public Fetch patient(int milliseconds) {
        request.setMaxWaitMs(milliseconds);
        return this;
    }

    public Fetch atLeast(int bytes) {
        request.setMinBytes(bytes);
        return this;
    }

    /** At most so many bytes in all and in a partition. */
    public Fetch atMost(int bytes) {
        return inAll(bytes).atMostPerPartition(bytes);
    }

    public Fetch inAll(int bytes) {
        request.setMaxBytes(bytes);
        return this;
    }

    public Fetch atMostPerPartition(int bytes) {
        partitionMaxBytes = bytes;
        return this;
    }

    public Fetch session(int id, int epoch) {
        request.setSessionId(id).setSessionEpoch(epoch);
        return this;
    }

    public Fetch forget(Topic topic, int partition) {
        request.forgottenTopicsData().add(new FetchRequestData.ForgottenTopic().setTopic(topic.name())
            .setPartitions(List.of(partition)));
        return this;
    }

    /** As a follower would ask. */
    public Fetch asReplica(int id) {
        request.setReplicaId(id);
        return this;
    }

    public Fetch leaderEpoch(int epoch) {
        leaderEpoch = epoch;
        return this;
    }

    private FetchRequestData request() {
        Map<Topic, FetchTopic> topics = new LinkedHashMap<>();
        for (Part part : parts) {
            Topic topic = part.topic;
            topics.computeIfAbsent(topic, t -> new FetchTopic().setTopic(t.name()).setTopicId(t.id())).partitions()
                .add(new FetchPartition().setPartition(part.partition).setFetchOffset(part.offset)
                    .setPartitionMaxBytes(partitionMaxBytes).setCurrentLeaderEpoch(leaderEpoch).setLogStartOffset(-1));
        }
        request.setTopics(List.copyOf(topics.values()));
        return request;
    }

    public FetchResponseData ask(Wire wire) throws IOException {
        return wire.call(request(), version);
    }

    public void send(Wire wire) throws IOException {
        wire.send(request(), version);
    }

    /** The first partition of the answer. */
    public PartitionData one(Wire wire) throws IOException {
        return first(ask(wire));
    }

    public static PartitionData first(FetchResponseData answer) {
        if (answer.errorCode() != 0 || answer.responses().isEmpty()) {
            throw new Wrong("Fetch: " + Errors.forCode(answer.errorCode()) + ", " + answer.responses().size()
                + " topics");
        }
        return answer.responses().get(0).partitions().get(0);
    }

    /** What an answer has, by partition; of one topic. */
    public static Map<Integer, PartitionData> byPartition(FetchResponseData answer) {
        Map<Integer, PartitionData> found = new TreeMap<>();
        answer.responses().forEach(topic -> topic.partitions().forEach(p -> found.put(p.partitionIndex(), p)));
        return found;
    }

    public static List<RecordBatch> batches(PartitionData partition) {
        List<RecordBatch> batches = new ArrayList<>();
        if (partition.records() instanceof MemoryRecords records) {
            records.batches().forEach(batches::add);
        }
        return batches;
    }

    /** All records of partition 0 from an offset to its end. */
    public static List<Record> all(Wire wire, Topic topic, long from) throws IOException {
        return all(wire, topic, 0, from);
    }

    public static List<Record> all(Wire wire, Topic topic, int partition, long from) throws IOException {
        List<Record> records = new ArrayList<>();
        for (long offset = from; ; ) {
            PartitionData found = nothing().and(topic, partition, offset).one(wire);
            if (found.errorCode() != 0) {
                throw new Wrong("Fetch at " + offset + ": " + Errors.forCode(found.errorCode()));
            }
            List<RecordBatch> batches = batches(found);
            if (batches.isEmpty()) {
                return records;
            }
            for (RecordBatch batch : batches) {
                batch.forEach(record -> {
                    if (record.offset() >= from) {
                        records.add(record);
                    }
                });
                offset = batch.nextOffset();
            }
        }
    }

    /** Null stays null. */
    public static String text(ByteBuffer bytes) {
        return bytes == null ? null : StandardCharsets.UTF_8.decode(bytes.duplicate()).toString();
    }

    public static List<String> values(List<Record> records) {
        return records.stream().map(record -> text(record.value())).toList();
    }
}
