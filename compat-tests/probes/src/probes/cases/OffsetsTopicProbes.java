package probes.cases;

import org.apache.kafka.common.message.DeleteGroupsRequestData;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.record.internal.Record;
import probes.Check;
import probes.Probe;
import probes.Waiting;
import probes.Wrong;
import probes.ask.Configs;
import probes.ask.Fetch;
import probes.ask.Groups;
import probes.ask.Offsets;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.nio.ByteBuffer;
import java.util.List;

import static org.apache.kafka.common.protocol.Errors.INVALID_TOPIC_EXCEPTION;
import static org.apache.kafka.common.protocol.Errors.NONE;

/** The topic that holds committed offsets, as monitoring tools read it. */
public final class OffsetsTopicProbes {
    private static final String NAME = "__consumer_offsets";
    /** Keys up to this version are of offsets, higher ones of groups. */
    private static final short OFFSET_KEY = 1;
    private static final short NEWEST_VALUE = 4;

    private OffsetsTopicProbes() {
    }

    @Probe("C054 __consumer_offsets can be read by anyone and written by nobody")
    static void readable(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1);
        String group = Groups.fresh(wire);
        Groups.commit(wire, Groups.commitOf(group, topic, 0, 4242));
        MetadataResponseTopic found = Topics.find(wire, NAME);
        check.equal("internal", true, found.isInternal());
        Topic offsets = new Topic(NAME, found.topicId());
        check.equal("cleanup.policy", "compact", Configs.of(wire, offsets, "cleanup.policy").value());
        int partitions = found.partitions().size();
        check.equal("partitions", Configs.ofBroker(wire, "offsets.topic.num.partitions"), partitions);
        int hash = group.hashCode();
        int partition = (hash == Integer.MIN_VALUE ? 0 : Math.abs(hash)) % partitions;
        Record[] newest = new Record[1];
        if (!Waiting.until(5_000, () -> (newest[0] = newest(wire, offsets, partition, group, topic)) != null)) {
            throw new Wrong("partition " + partition + " has no record of the commit");
        }
        ByteBuffer value = newest[0].value().duplicate();
        short version = value.getShort();
        check.between("version of the value", 0, NEWEST_VALUE, version);
        check.note("value version " + version);
        check.equal("offset", 4242, value.getLong());
        DeleteGroupsResponseData deleted = wire.call(new DeleteGroupsRequestData().setGroupsNames(List.of(group)), 2);
        check.code("DeleteGroups", deleted.results().iterator().next().errorCode(), NONE);
        boolean gone = Waiting.until(5_000, () -> newest(wire, offsets, partition, group, topic).value() == null);
        check.that("a tombstone", gone, "none");
        check.code("Produce",
            Produce.ask(wire, offsets, partition, new Batch().record(Waiting.now(), "k", "v")).errorCode(),
            INVALID_TOPIC_EXCEPTION);
        check.code("DeleteRecords", Topics.trim(wire, offsets, partition, 0), INVALID_TOPIC_EXCEPTION);
    }

    /** The newest record about a group's partition 0 of a topic; null when there is none. */
    private static Record newest(Wire wire, Topic offsets, int partition, String group, Topic topic) throws Exception {
        long start = Offsets.list(wire, 5, offsets, partition, Offsets.EARLIEST).offset();
        Record newest = null;
        for (Record record : Fetch.all(wire, offsets, partition, start)) {
            ByteBuffer key = record.key().duplicate();
            boolean ofOffset = key.getShort() <= OFFSET_KEY;
            if (ofOffset && text(key).equals(group) && text(key).equals(topic.name()) && key.getInt() == 0) {
                newest = record;
            }
        }
        return newest;
    }

    private static String text(ByteBuffer key) {
        byte[] bytes = new byte[key.getShort()];
        key.get(bytes);
        return new String(bytes);
    }
}
