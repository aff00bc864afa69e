package probes.ask;

import org.apache.kafka.common.message.DescribeGroupsRequestData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData.DescribedGroup;
import org.apache.kafka.common.message.FindCoordinatorRequestData;
import org.apache.kafka.common.message.FindCoordinatorResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopic;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import probes.Waiting;
import probes.Wrong;
import probes.ask.Topics.Topic;
import probes.wire.Wire;

import java.io.IOException;
import java.util.List;
import java.util.Set;

/** Groups seen from outside: their coordinator, committed offsets, descriptions. */
public final class Groups {
    private static final Set<Short> NOT_YET = Set.of(Errors.COORDINATOR_LOAD_IN_PROGRESS.code(),
        Errors.COORDINATOR_NOT_AVAILABLE.code(), Errors.NOT_COORDINATOR.code());

    private Groups() {
    }

    /** A name whose coordinator serves. */
    public static String fresh(Wire wire) throws Exception {
        return served(wire, Waiting.fresh("g"));
    }

    /** Waits until the group's coordinator serves; returns the group. */
    public static String served(Wire wire, String group) throws Exception {
        boolean served = Waiting.until(20_000, () -> {
            FindCoordinatorResponseData found = wire.call(
                new FindCoordinatorRequestData().setKeyType((byte) 0).setCoordinatorKeys(List.of(group)), 4);
            return found.coordinators().get(0).errorCode() == 0 && !NOT_YET.contains(offsets(wire, group).errorCode());
        });
        if (!served) {
            throw new Wrong("the coordinator of " + group + " does not serve");
        }
        return group;
    }

    /** All committed offsets of a group. */
    public static OffsetFetchResponseData offsets(Wire wire, String group) throws IOException {
        return wire.call(new OffsetFetchRequestData().setGroupId(group).setTopics(null), 7);
    }

    /** The committed offset of partition 0; -1 when there is none. */
    public static long offset(Wire wire, String group, Topic topic) throws IOException {
        var asked = new OffsetFetchRequestTopic().setName(topic.name()).setPartitionIndexes(List.of(0));
        var request = new OffsetFetchRequestData().setGroupId(group).setTopics(List.of(asked));
        OffsetFetchResponseData answer = wire.call(request, 7);
        return answer.topics().get(0).partitions().get(0).committedOffset();
    }

    /** For partition 0, of a member in a generation. */
    public static OffsetCommitRequestData commitOf(String group, String member, int generation, Topic topic,
            long offset) {
        return commitOf(group, topic, 0, offset).setMemberId(member).setGenerationIdOrMemberEpoch(generation);
    }

    /** Without a member, as tools commit. */
    public static OffsetCommitRequestData commitOf(String group, Topic topic, int partition, long offset) {
        OffsetCommitRequestTopic asked = new OffsetCommitRequestTopic().setName(topic.name()).setTopicId(topic.id());
        asked.partitions().add(new OffsetCommitRequestPartition().setPartitionIndex(partition)
            .setCommittedOffset(offset).setCommittedMetadata(""));
        OffsetCommitRequestData request = new OffsetCommitRequestData().setGroupId(group);
        request.topics().add(asked);
        return request;
    }

    public static short commit(Wire wire, OffsetCommitRequestData request) throws IOException {
        return commit(wire, request, 7);
    }

    public static short commit(Wire wire, OffsetCommitRequestData request, int version) throws IOException {
        OffsetCommitResponseData answer = wire.call(request, version);
        return answer.topics().get(0).partitions().get(0).errorCode();
    }

    public static DescribedGroup describe(Wire wire, String group) throws IOException {
        DescribeGroupsResponseData answer = wire.call(new DescribeGroupsRequestData().setGroups(List.of(group)), 5);
        return answer.groups().get(0);
    }
}
