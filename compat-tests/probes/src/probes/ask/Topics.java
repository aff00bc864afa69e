package probes.ask;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopicConfig;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.message.CreateTopicsResponseData.CreatableTopicResultCollection;
import org.apache.kafka.common.message.DeleteRecordsRequestData;
import org.apache.kafka.common.message.DeleteRecordsRequestData.DeleteRecordsPartition;
import org.apache.kafka.common.message.DeleteRecordsRequestData.DeleteRecordsTopic;
import org.apache.kafka.common.message.DeleteRecordsResponseData;
import org.apache.kafka.common.message.DeleteTopicsRequestData;
import org.apache.kafka.common.message.DeleteTopicsRequestData.DeleteTopicState;
import org.apache.kafka.common.message.DeleteTopicsResponseData;
import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.message.MetadataRequestData.MetadataRequestTopic;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.protocol.Errors;
import probes.Waiting;
import probes.Wrong;
import probes.wire.Wire;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Topics: create and wait until they serve, look at, trim, delete. */
public final class Topics {
    private static final int TIMEOUT_MS = 15_000;

    private Topics() {
    }

    public record Topic(String name, Uuid id) { }

    /** A topic that does not exist. */
    public static Topic ghost() {
        return new Topic(Waiting.fresh("ghost"), Uuid.ZERO_UUID);
    }

    /** @param config key, value, key, value … */
    public static CreatableTopic describe(String name, int partitions, String... config) {
        CreatableTopic topic = new CreatableTopic().setName(name).setNumPartitions(partitions)
            .setReplicationFactor((short) 1);
        for (int i = 0; i < config.length; i += 2) {
            topic.configs().add(new CreatableTopicConfig().setName(config[i]).setValue(config[i + 1]));
        }
        return topic;
    }

    public static CreatableTopicResultCollection request(Wire wire, boolean validateOnly, CreatableTopic... topics)
            throws IOException {
        CreateTopicsRequestData request = new CreateTopicsRequestData().setTimeoutMs(TIMEOUT_MS)
            .setValidateOnly(validateOnly);
        Arrays.stream(topics).forEach(request.topics()::mustAdd);
        CreateTopicsResponseData answer = wire.call(request, 7);
        return answer.topics();
    }

    /** A topic under a name of its own, each partition of which serves. */
    public static Topic create(Wire wire, int partitions, String... config) throws Exception {
        String name = Waiting.fresh("t");
        var created = request(wire, false, describe(name, partitions, config)).find(name);
        if (created.errorCode() != 0) {
            throw new Wrong("CreateTopics: " + Errors.forCode(created.errorCode()) + " " + created.errorMessage());
        }
        return served(wire, new Topic(name, created.topicId()), partitions);
    }

    /** Creates a deleted topic anew, as soon as the broker has let go of the old one. */
    public static Topic recreate(Wire wire, String name, int partitions) throws Exception {
        Uuid[] id = new Uuid[1];
        boolean done = Waiting.until(10_000, () -> {
            var created = request(wire, false, describe(name, partitions)).find(name);
            id[0] = created.topicId();
            return created.errorCode() == 0;
        });
        if (!done) {
            throw new Wrong("a deleted topic cannot be created again");
        }
        return served(wire, new Topic(name, id[0]), partitions);
    }

    private static Topic served(Wire wire, Topic topic, int partitions) throws Exception {
        boolean served = Waiting.until(20_000, () -> {
            MetadataResponseTopic found = find(wire, topic.name);
            return found.errorCode() == 0 && found.partitions().size() == partitions
                && Offsets.online(wire, Map.of(topic.name, partitions));
        });
        if (!served) {
            throw new Wrong("a created topic is not served");
        }
        return topic;
    }

    public static MetadataResponseData metadata(Wire wire, int version, boolean autoCreate, String... names)
            throws IOException {
        var topics = Arrays.stream(names).map(name -> new MetadataRequestTopic().setName(name));
        return wire.call(new MetadataRequestData().setTopics(topics.toList()).setAllowAutoTopicCreation(autoCreate), version);
    }

    /** Metadata without topics: the brokers and the cluster. */
    public static MetadataResponseData cluster(Wire wire) throws IOException {
        return metadata(wire, 9, false);
    }

    public static int brokerId(Wire wire) throws IOException {
        return cluster(wire).brokers().iterator().next().nodeId();
    }

    public static MetadataResponseTopic find(Wire wire, String name) throws IOException {
        return metadata(wire, 12, false, name).topics().find(name);
    }

    public static int leaderEpoch(Wire wire, Topic topic) throws IOException {
        return find(wire, topic.name).partitions().get(0).leaderEpoch();
    }

    /** Every topic but the internal ones. */
    public static Set<String> names(Wire wire) throws IOException {
        MetadataResponseData all = wire.call(new MetadataRequestData().setTopics(null), 9);
        return all.topics().stream().filter(t -> !t.isInternal()).map(MetadataResponseTopic::name)
            .collect(Collectors.toSet());
    }

    public static boolean allOnline(Wire wire) throws IOException {
        MetadataResponseData all = wire.call(new MetadataRequestData().setTopics(null), 9);
        Map<String, Integer> partitions = new TreeMap<>();
        all.topics().forEach(topic -> partitions.put(topic.name(), topic.partitions().size()));
        return !all.brokers().isEmpty() && Offsets.online(wire, partitions);
    }

    public static short delete(Wire wire, Topic topic) throws IOException {
        DeleteTopicsResponseData answer = wire.call(new DeleteTopicsRequestData().setTimeoutMs(TIMEOUT_MS)
            .setTopics(List.of(new DeleteTopicState().setName(topic.name))), 6);
        return answer.responses().iterator().next().errorCode();
    }

    /** DeleteRecords: nothing below the offset is left in partition 0. */
    public static short trim(Wire wire, Topic topic, long offset) throws IOException {
        return trim(wire, topic, 0, offset);
    }

    public static short trim(Wire wire, Topic topic, int partition, long offset) throws IOException {
        var asked = new DeleteRecordsTopic().setName(topic.name).setPartitions(List.of(
            new DeleteRecordsPartition().setPartitionIndex(partition).setOffset(offset)));
        DeleteRecordsResponseData answer = wire.call(
            new DeleteRecordsRequestData().setTimeoutMs(TIMEOUT_MS).setTopics(List.of(asked)), 2);
        return answer.topics().iterator().next().partitions().iterator().next().errorCode();
    }
}
