package probes.cases;

import org.apache.kafka.common.message.CreatePartitionsRequestData;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsAssignment;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsTopic;
import org.apache.kafka.common.message.CreatePartitionsResponseData;
import probes.Check;
import probes.Probe;
import probes.Waiting;
import probes.ask.Fetch;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import static org.apache.kafka.common.protocol.Errors.INVALID_PARTITIONS;
import static org.apache.kafka.common.protocol.Errors.INVALID_REPLICA_ASSIGNMENT;
import static org.apache.kafka.common.protocol.Errors.NONE;
import static org.apache.kafka.common.protocol.Errors.UNKNOWN_TOPIC_OR_PARTITION;

/** Partitions added to a topic. */
public final class PartitionProbes {
    private PartitionProbes() {
    }

    @Probe("C075 CreatePartitions answers for each topic, and what it adds serves beside the old data")
    static void grow(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 3);
        Topic same = Topics.create(wire, 2);
        String ghost = Topics.ghost().name();
        Produce.put(wire, topic, Batch.of("old"));
        check.code("8, only validated", ask(check, true, to(topic.name(), 8)).get(topic.name()), NONE);
        check.equal("partitions after that", 3, Topics.find(wire, topic.name()).partitions().size());
        var codes = ask(check, false, to(topic.name(), 5), to(same.name(), 2), to(ghost, 4));
        check.code("3 to 5", codes.get(topic.name()), NONE);
        check.code("2 to 2", codes.get(same.name()), INVALID_PARTITIONS);
        check.code("an unknown topic", codes.get(ghost), UNKNOWN_TOPIC_OR_PARTITION);
        for (int added : new int[]{3, 4}) {
            boolean stored = Waiting.until(5_000,
                () -> Produce.ask(wire, topic, added, Batch.of("new")).errorCode() == 0);
            check.that("Produce to partition " + added, stored, "refused");
        }
        check.equal("old data", List.of("old"), Fetch.values(Fetch.all(wire, topic, 0)));
        check.code("5 to 2", ask(check, false, to(topic.name(), 2)).get(topic.name()), INVALID_PARTITIONS);
        check.code("5 to 8 with one assignment", ask(check, false, to(topic.name(), 8, 1)).get(topic.name()),
            INVALID_REPLICA_ASSIGNMENT);
        check.code("5 to 6 on an unknown broker", ask(check, false, to(topic.name(), 6, 77)).get(topic.name()),
            INVALID_REPLICA_ASSIGNMENT);
    }

    /** @param brokers one replica for each new partition; none: the broker chooses */
    private static CreatePartitionsTopic to(String name, int count, Integer... brokers) {
        var assignments = Arrays.stream(brokers)
            .map(broker -> new CreatePartitionsAssignment().setBrokerIds(List.of(broker))).toList();
        return new CreatePartitionsTopic().setName(name).setCount(count)
            .setAssignments(assignments.isEmpty() ? null : assignments);
    }

    private static Map<String, Short> ask(Check check, boolean validateOnly, CreatePartitionsTopic... topics)
            throws Exception {
        CreatePartitionsRequestData request = new CreatePartitionsRequestData().setTimeoutMs(10_000)
            .setValidateOnly(validateOnly);
        Arrays.stream(topics).forEach(request.topics()::mustAdd);
        CreatePartitionsResponseData answer = check.wire().call(request, 3);
        check.equal("results", topics.length, answer.results().size());
        Map<String, Short> codes = new HashMap<>();
        answer.results().forEach(result -> codes.put(result.name(), result.errorCode()));
        return codes;
    }
}
