package probes.ask;

import org.apache.kafka.common.message.ListOffsetsRequestData;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsTopic;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import probes.ask.Topics.Topic;
import probes.wire.Wire;

import java.io.IOException;
import java.util.Map;

/** ListOffsets. */
public final class Offsets {
    public static final long LATEST = -1;
    public static final long EARLIEST = -2;
    public static final long MAX_TIMESTAMP = -3;

    private Offsets() {
    }

    public static ListOffsetsPartitionResponse list(Wire wire, int version, Topic topic, int partition, long timestamp)
            throws IOException {
        ListOffsetsTopic asked = new ListOffsetsTopic().setName(topic.name());
        asked.partitions().add(new ListOffsetsPartition().setPartitionIndex(partition).setTimestamp(timestamp));
        ListOffsetsRequestData request = new ListOffsetsRequestData().setReplicaId(-1);
        request.topics().add(asked);
        ListOffsetsResponseData answer = wire.call(request, version);
        return answer.topics().get(0).partitions().get(0);
    }

    /** Of partition 0. */
    public static ListOffsetsPartitionResponse list(Wire wire, Topic topic, long timestamp) throws IOException {
        return list(wire, 7, topic, 0, timestamp);
    }

    /** The offset of the next record to be written. */
    public static long end(Wire wire, Topic topic, int partition) throws IOException {
        return list(wire, 5, topic, partition, LATEST).offset();
    }

    /** Whether each partition answers; partitions are counted from 0. */
    static boolean online(Wire wire, Map<String, Integer> partitions) throws IOException {
        ListOffsetsRequestData request = new ListOffsetsRequestData().setReplicaId(-1);
        partitions.forEach((name, count) -> {
            ListOffsetsTopic topic = new ListOffsetsTopic().setName(name);
            for (int i = 0; i < count; i++) {
                topic.partitions().add(new ListOffsetsPartition().setPartitionIndex(i).setTimestamp(LATEST));
            }
            request.topics().add(topic);
        });
        ListOffsetsResponseData answer = wire.call(request, 5);
        return answer.topics().stream().allMatch(t -> t.partitions().stream().allMatch(p -> p.errorCode() == 0));
    }
}
