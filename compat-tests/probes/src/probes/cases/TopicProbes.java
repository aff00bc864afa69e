package probes.cases;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableReplicaAssignment;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.DeleteTopicsRequestData;
import org.apache.kafka.common.message.DeleteTopicsRequestData.DeleteTopicState;
import org.apache.kafka.common.message.DeleteTopicsResponseData;
import org.apache.kafka.common.protocol.Errors;
import probes.Check;
import probes.Probe;
import probes.Waiting;
import probes.Wrong;
import probes.ask.Configs;
import probes.ask.Fetch;
import probes.ask.Groups;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import static org.apache.kafka.common.protocol.Errors.INVALID_CONFIG;
import static org.apache.kafka.common.protocol.Errors.INVALID_PARTITIONS;
import static org.apache.kafka.common.protocol.Errors.INVALID_REPLICATION_FACTOR;
import static org.apache.kafka.common.protocol.Errors.INVALID_REPLICA_ASSIGNMENT;
import static org.apache.kafka.common.protocol.Errors.INVALID_REQUEST;
import static org.apache.kafka.common.protocol.Errors.INVALID_TOPIC_EXCEPTION;
import static org.apache.kafka.common.protocol.Errors.NONE;
import static org.apache.kafka.common.protocol.Errors.OFFSET_OUT_OF_RANGE;
import static org.apache.kafka.common.protocol.Errors.TOPIC_ALREADY_EXISTS;
import static org.apache.kafka.common.protocol.Errors.UNKNOWN_TOPIC_ID;
import static org.apache.kafka.common.protocol.Errors.UNKNOWN_TOPIC_OR_PARTITION;

/** Topics made, refused, deleted and made again. */
public final class TopicProbes {
    private TopicProbes() {
    }

    @Probe("C071 CreateTopics that only validates answers as a real one and creates nothing")
    static void validateOnly(Check check) throws Exception {
        Wire wire = check.wire();
        Topic present = Topics.create(wire, 1);
        String prefix = Waiting.fresh("validated");
        CreatableTopic replicas = Topics.describe(prefix + "-replicas", 1).setReplicationFactor((short) 99);
        var results = Topics.request(wire, true, Topics.describe(present.name(), 1), replicas,
            Topics.describe(prefix + "-config", 1, "foo.bar", "1"), Topics.describe("bad name", 1),
            Topics.describe(prefix, 2));
        check.code("a present one", results.find(present.name()).errorCode(), TOPIC_ALREADY_EXISTS);
        check.code("99 replicas", results.find(prefix + "-replicas").errorCode(), INVALID_REPLICATION_FACTOR);
        check.code("an unknown config", results.find(prefix + "-config").errorCode(), INVALID_CONFIG);
        check.code("a bad name", results.find("bad name").errorCode(), INVALID_TOPIC_EXCEPTION);
        check.code("a good one", results.find(prefix).errorCode(), NONE);
        Thread.sleep(300);
        Set<String> names = Topics.names(wire);
        check.that("nothing created", names.stream().noneMatch(name -> name.startsWith(prefix)), names);
    }

    @Probe("C072 CreateTopics judges each topic alone, fills in defaults and says why not")
    static void errorMatrix(Check check) throws Exception {
        Wire wire = check.wire();
        String prefix = Waiting.fresh("m") + "-";
        int broker = Topics.brokerId(wire);
        Map<CreatableTopic, Errors> rows = new LinkedHashMap<>();
        rows.put(counted(prefix + "no-partitions", 0, 1), INVALID_PARTITIONS);
        rows.put(counted(prefix + "minus-two-partitions", -2, 1), INVALID_PARTITIONS);
        rows.put(counted(prefix + "no-replicas", 1, 0), INVALID_REPLICATION_FACTOR);
        rows.put(counted(prefix + "nine-replicas", 1, 9), INVALID_REPLICATION_FACTOR);
        rows.put(assigned(counted(prefix + "both", 1, 1), 0, broker), INVALID_REQUEST);
        rows.put(assigned(counted(prefix + "gap", -1, -1), 1, broker), INVALID_REPLICA_ASSIGNMENT);
        rows.put(assigned(counted(prefix + "same-broker-twice", -1, -1), 0, broker, broker),
            INVALID_REPLICA_ASSIGNMENT);
        rows.put(assigned(counted(prefix + "unknown-broker", -1, -1), 0, 77), INVALID_REPLICA_ASSIGNMENT);
        rows.put(counted(prefix + "defaults", -1, -1), NONE);
        rows.put(counted(prefix + "counted", 2, 1), NONE);
        rows.put(assigned(counted(prefix + "assigned", -1, -1), 0, broker), NONE);
        var results = Topics.request(wire, false, rows.keySet().toArray(new CreatableTopic[0]));
        rows.forEach((topic, want) -> {
            var result = results.find(topic.name());
            check.code(topic.name(), result.errorCode(), want);
            boolean told = result.errorMessage() != null && !result.errorMessage().isEmpty();
            check.that(topic.name() + ": a message", told || want == NONE, result.errorMessage());
        });
        long usual = Configs.ofBroker(wire, "num.partitions");
        check.equal("default partitions", usual, results.find(prefix + "defaults").numPartitions());
        var twice = Topics.request(wire, false, counted(prefix + "twice", 1, 1), counted(prefix + "twice", 1, 1),
            counted(prefix + "beside", 1, 1));
        check.equal("entries for a name sent twice and another", 2, twice.size());
        check.code("sent twice", twice.find(prefix + "twice").errorCode(), INVALID_REQUEST);
        check.code("beside it", twice.find(prefix + "beside").errorCode(), NONE);
        check.that("sent twice: not created", !Topics.names(wire).contains(prefix + "twice"), "created");
    }

    private static CreatableTopic counted(String name, int partitions, int replicas) {
        return new CreatableTopic().setName(name).setNumPartitions(partitions).setReplicationFactor((short) replicas);
    }

    private static CreatableTopic assigned(CreatableTopic topic, int partition, Integer... brokers) {
        var assignment = new CreatableReplicaAssignment().setPartitionIndex(partition).setBrokerIds(List.of(brokers));
        topic.assignments().add(assignment);
        return topic;
    }

    @Probe("C077 DeleteTopics has one result for each topic asked, by name or by id")
    static void deleteResults(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1);
        Topic kept = Topics.create(wire, 1);
        Topic byId = Topics.create(wire, 1);
        String ghost = Topics.ghost().name();
        var named = delete(wire, 5, new DeleteTopicsRequestData().setTopicNames(List.of(topic.name(), ghost)));
        check.equal("results by name", 2, named.responses().size());
        check.code("a present one", named.responses().find(topic.name()).errorCode(), NONE);
        check.code("an unknown one", named.responses().find(ghost).errorCode(), UNKNOWN_TOPIC_OR_PARTITION);
        var twice = delete(wire, 5, new DeleteTopicsRequestData().setTopicNames(List.of(kept.name(), kept.name())));
        check.equal("results for a name sent twice", 1, twice.responses().size());
        check.code("a name sent twice", twice.responses().iterator().next().errorCode(), INVALID_REQUEST);
        check.code("it is still there", Topics.find(wire, kept.name()).errorCode(), NONE);
        Uuid unknown = Uuid.randomUuid();
        var states = List.of(state(null, byId.id()), state(null, unknown), state(kept.name(), kept.id()),
            state(null, Uuid.ZERO_UUID));
        var ids = delete(wire, 6, new DeleteTopicsRequestData().setTopics(states));
        check.equal("results by id", 4, ids.responses().size());
        var present = ids.responses().find(byId.name());
        if (present == null) {
            throw new Wrong("by id: no result has the name");
        }
        check.code("by id", present.errorCode(), NONE);
        check.equal("by id: with its id", byId.id(), present.topicId());
        ids.responses().forEach(result -> {
            if (result.topicId().equals(unknown)) {
                check.code("an unknown id", result.errorCode(), UNKNOWN_TOPIC_ID);
            } else if (!byId.name().equals(result.name())) {
                check.code("name and id, or neither", result.errorCode(), INVALID_REQUEST);
            }
        });
    }

    private static DeleteTopicState state(String name, Uuid id) {
        return new DeleteTopicState().setName(name).setTopicId(id);
    }

    private static DeleteTopicsResponseData delete(Wire wire, int version, DeleteTopicsRequestData request)
            throws Exception {
        return wire.call(request.setTimeoutMs(10_000), version);
    }

    @Probe(value = "C077 a topic created anew has nothing of the deleted one", seconds = 60)
    static void createdAnew(Check check) throws Exception {
        Wire wire = check.wire();
        Topic old = Topics.create(wire, 1, "retention.ms", "777777");
        String group = Groups.fresh(wire);
        long id = Produce.producerId(wire);
        for (int i = 0; i < 10; i++) {
            Produce.put(wire, old, Batch.of("old").producer(id, 0, i));
        }
        Groups.commit(wire, Groups.commitOf(group, old, 0, 5));
        check.code("DeleteTopics", Topics.delete(wire, old), NONE);
        Topic anew = Topics.recreate(wire, old.name(), 3);
        check.equal("its first offset, from a producer the old one knew", 0,
            Produce.put(wire, anew, Batch.of("new").producer(id, 0, 42)));
        check.equal("source of retention.ms", Configs.FROM_DEFAULT,
            Configs.of(wire, anew, "retention.ms").configSource());
        check.equal("partitions", 3, Topics.find(wire, anew.name()).partitions().size());
        check.code("a position of the old one", Fetch.from(anew, 5).one(wire).errorCode(), OFFSET_OUT_OF_RANGE);
        boolean gone = Waiting.until(5_000, () -> Groups.offset(wire, group, anew) == -1);
        check.that("no committed offset", gone, "the old one's");
    }
}
