package compat;

import static compat.Kit.*;

import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;

/** Topics, configs and the cluster, by the admin client. */
final class Topics {
    private Topics() { }

    static void checks() {
        try (Admin admin = admin()) {
            check("topic-life", () -> life(admin));
            check("topic-errors", () -> errors(admin));
            check("topic-by-producing", () -> byProducing(admin));
            check("topic-configs", () -> configs(admin));
            check("broker-configs", () -> brokerConfigs(admin));
            check("records-deleted", () -> records(admin));
            check("cluster-described", () -> cluster(admin));
        }
    }

    private static void life(Admin admin) throws Exception {
        String name = fresh("life");
        NewTopic asked = new NewTopic(name, 2, (short) 1).configs(Map.of("retention.ms", "3600000"));
        CreateTopicsResult made = admin.createTopics(List.of(asked));
        made.all().get();
        equal(2, made.numPartitions(name).get());
        equal("3600000", made.config(name).get().get("retention.ms").value());
        await("listed", () -> admin.listTopics().names().get().contains(name));
        TopicDescription described = describe(admin, name);
        equal(2, described.partitions().size());
        equal(1, described.partitions().get(0).leader().id());
        isTrue(!described.topicId().equals(Uuid.ZERO_UUID), "no topic id");
        admin.createPartitions(Map.of(name, NewPartitions.increaseTo(5))).all().get();
        await("5 partitions", () -> describe(admin, name).partitions().size() == 5);
        admin.deleteTopics(List.of(name)).all().get();
        await("gone", () -> !admin.listTopics().names().get().contains(name));
        fails("UnknownTopicOrPartitionException", () -> describe(admin, name));
    }

    private static void errors(Admin admin) throws Exception {
        String name = topic(2);
        fails("TopicExistsException", () -> admin.createTopics(List.of(new NewTopic(name, 2, (short) 1))).all().get());
        NewTopic many = new NewTopic(name + "x", 2, (short) 9);
        fails("InvalidReplicationFactorException", () -> admin.createTopics(List.of(many)).all().get());
        NewTopic none = new NewTopic(name + "x", 0, (short) 1);
        fails("InvalidPartitionsException", () -> admin.createTopics(List.of(none)).all().get());
        NewTopic odd = new NewTopic("a b", 1, (short) 1);
        fails("InvalidTopicException", () -> admin.createTopics(List.of(odd)).all().get());
        NewTopic unknown = new NewTopic(name + "x", 1, (short) 1).configs(Map.of("no.such", "1"));
        fails("InvalidConfigurationException", () -> admin.createTopics(List.of(unknown)).all().get());
        fails("InvalidPartitionsException", () -> admin.createPartitions(Map.of(name, NewPartitions.increaseTo(1))).all().get());
        fails("UnknownTopicOrPartitionException", () -> admin.deleteTopics(List.of(name + "x")).all().get());
        NewTopic dry = new NewTopic(name + "dry", 1, (short) 1);
        admin.createTopics(List.of(dry), new CreateTopicsOptions().validateOnly(true)).all().get();
        isTrue(!admin.listTopics().names().get().contains(name + "dry"), "a topic was made by validating it");
    }

    private static void byProducing(Admin admin) throws Exception {
        String name = fresh("auto");
        send(name, "a");
        equal(4, describe(admin, name).partitions().size());
        equal(List.of("a"), values(readAll(name)));
    }

    private static void configs(Admin admin) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic(1));
        Config config = read(admin, resource);
        equal("delete", config.get("cleanup.policy").value());
        equal(ConfigEntry.ConfigSource.DEFAULT_CONFIG, config.get("retention.ms").source());
        alter(admin, resource, "retention.ms", "1234567", AlterConfigOp.OpType.SET);
        alter(admin, resource, "cleanup.policy", "compact", AlterConfigOp.OpType.APPEND);
        await("altered", () -> read(admin, resource).get("cleanup.policy").value().equals("delete,compact"));
        equal("1234567", read(admin, resource).get("retention.ms").value());
        equal(ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, read(admin, resource).get("retention.ms").source());
        alter(admin, resource, "retention.ms", "", AlterConfigOp.OpType.DELETE);
        await("default again", () -> read(admin, resource).get("retention.ms").isDefault());
        fails("InvalidConfigurationException", () -> {
            alter(admin, resource, "retention.ms", "abc", AlterConfigOp.OpType.SET);
            return null;
        });
    }

    private static void alter(Admin admin, ConfigResource resource, String key, String value, AlterConfigOp.OpType how)
            throws Exception {
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(key, value), how);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
    }

    private static Config read(Admin admin, ConfigResource resource) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource);
    }

    private static void brokerConfigs(Admin admin) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER, "1");
        DescribeConfigsOptions all = new DescribeConfigsOptions().includeDocumentation(true).includeSynonyms(true);
        Config config = admin.describeConfigs(List.of(resource), all).all().get().get(resource);
        for (String key : List.of("log.segment.bytes", "message.max.bytes", "num.partitions", "auto.create.topics.enable"))
            isTrue(config.get(key) != null && config.get(key).documentation() != null, "broker config " + key);
        equal("4", config.get("num.partitions").value());
    }

    private static void records(Admin admin) throws Exception {
        String name = topic(1);
        TopicPartition partition = new TopicPartition(name, 0);
        try (Producer<String, String> producer = producer()) {
            for (int i = 0; i < 50; i++) producer.send(new ProducerRecord<>(name, 0, 1000L + i, "k", "" + i));
        }
        equal(0L, offset(admin, partition, OffsetSpec.earliest()));
        equal(50L, offset(admin, partition, OffsetSpec.latest()));
        equal(10L, offset(admin, partition, OffsetSpec.forTimestamp(1010)));
        equal(-1L, offset(admin, partition, OffsetSpec.forTimestamp(5000)));
        Map<TopicPartition, RecordsToDelete> twenty = Map.of(partition, RecordsToDelete.beforeOffset(20));
        equal(20L, admin.deleteRecords(twenty).lowWatermarks().get(partition).get().lowWatermark());
        equal(20L, offset(admin, partition, OffsetSpec.earliest()));
        equal("20", readAll(name).get(0).value());
        Map<TopicPartition, RecordsToDelete> beyond = Map.of(partition, RecordsToDelete.beforeOffset(99));
        fails("OffsetOutOfRangeException", () -> admin.deleteRecords(beyond).all().get());
    }

    private static long offset(Admin admin, TopicPartition partition, OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get().offset();
    }

    private static void cluster(Admin admin) throws Exception {
        DescribeClusterResult described = admin.describeCluster();
        isTrue(described.clusterId().get() != null, "no cluster id");
        equal(1, described.nodes().get().size());
        equal(1, described.controller().get().id());
        isTrue(admin.describeFeatures().featureMetadata().get().finalizedFeatures().containsKey("metadata.version"),
            "no metadata.version");
    }

    /** all() became allTopicNames() in 3.1 and was removed in 4.0. */
    static TopicDescription describe(Admin admin, String name) throws Exception {
        DescribeTopicsResult result = admin.describeTopics(List.of(name));
        for (String method : List.of("allTopicNames", "all")) {
            try {
                Object future = DescribeTopicsResult.class.getMethod(method).invoke(result);
                return (TopicDescription) ((Map<?, ?>) ((KafkaFuture<?>) future).get()).get(name);
            } catch (NoSuchMethodException otherVersion) {
                continue;
            }
        }
        throw new AssertionError("neither method exists");
    }
}
