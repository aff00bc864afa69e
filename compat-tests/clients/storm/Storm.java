package compat;

import static compat.Kit.await;
import static compat.Kit.check;
import static compat.Kit.equal;

import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.kafka.bolt.KafkaBolt;
import org.apache.storm.kafka.bolt.mapper.FieldNameBasedTupleToKafkaMapper;
import org.apache.storm.kafka.bolt.selector.DefaultTopicSelector;
import org.apache.storm.kafka.spout.FirstPollOffsetStrategy;
import org.apache.storm.kafka.spout.KafkaSpout;
import org.apache.storm.kafka.spout.KafkaSpoutConfig;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** A spout that reads at least once, a bolt that fails one tuple, a bolt that writes; all in this process. */
public final class Storm {
    /** How often a value came, over all topologies of this process. */
    private static final Map<String, Integer> SEEN = new ConcurrentHashMap<>();
    private static final String FAILS_ONCE = "v7";

    public static void main(String[] args) throws Exception {
        Kit.bootstrap = args[0];
        String in = Kit.topic(3);
        String out = Kit.topic(2);
        String group = Kit.fresh("storm");
        try (LocalCluster cluster = new LocalCluster()) {
            send(in, 0, 500);
            try (LocalCluster.LocalTopology running = submit(cluster, "first", in, out, group)) {
                check("spout-reads-all", () -> await("all values", () -> SEEN.keySet().equals(values(0, 500))));
                check("failed-tuple-comes-again", () -> await("the second try", () -> SEEN.get(FAILS_ONCE) == 2));
                check("bolt-writes-all", () -> await("the copies", () -> written(out).equals(values(0, 500))));
                check("spout-commits", () -> await("the commits", () -> committed(group) == 500));
            }
            send(in, 500, 600);
            try (LocalCluster.LocalTopology running = submit(cluster, "second", in, out, group)) {
                check("spout-resumes-at-the-commits", () -> {
                    await("the new values", () -> SEEN.keySet().equals(values(0, 600)));
                    await("the commits", () -> committed(group) == 600);
                    SEEN.forEach((value, times) -> equal(value.equals(FAILS_ONCE) ? 2 : 1, times));
                });
                for (String how : new String[] {"term", "kill"}) {
                    int before = SEEN.size();
                    check("topology-outlives-" + how, () -> {
                        Kit.broker(how);
                        send(in, before, before + 100);
                        await("the new values", () -> SEEN.keySet().equals(values(0, before + 100)));
                        await("the copies", () -> written(out).equals(values(0, before + 100)));
                        await("the commits", () -> committed(group) == before + 100);
                    });
                }
            }
        }
        System.exit(Kit.failed == 0 ? 0 : 1);
    }

    private static LocalCluster.LocalTopology submit(LocalCluster cluster, String name, String in, String out, String group)
        throws Exception {
        KafkaSpoutConfig<String, String> spout = KafkaSpoutConfig.builder(Kit.bootstrap, in)
            .setProp("group.id", group).setProp("max.poll.records", 50)
            .setProcessingGuarantee(KafkaSpoutConfig.ProcessingGuarantee.AT_LEAST_ONCE)
            .setFirstPollOffsetStrategy(FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST).setOffsetCommitPeriodMs(500)
            .setRecordTranslator(record -> new Values(record.key(), record.value()), new Fields("key", "message")).build();
        Properties producer = new Properties();
        producer.putAll(Kit.config("acks", "all",
            "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
            "value.serializer", "org.apache.kafka.common.serialization.StringSerializer"));
        TopologyBuilder topology = new TopologyBuilder();
        topology.setSpout("spout", new KafkaSpout<>(spout), 1);
        topology.setBolt("see", new See(), 1).shuffleGrouping("spout");
        topology.setBolt("write", new KafkaBolt<String, String>().withProducerProperties(producer)
            .withTopicSelector(new DefaultTopicSelector(out))
            .withTupleToKafkaMapper(new FieldNameBasedTupleToKafkaMapper<>("key", "message")), 1).shuffleGrouping("see");
        Config config = new Config();
        config.setNumWorkers(1);
        config.setMessageTimeoutSecs(30);
        return cluster.submitTopology(name, config, topology.createTopology());
    }

    private static void send(String topic, int from, int to) {
        try (Producer<String, String> producer = Kit.producer()) {
            for (int i = from; i < to; i++) producer.send(new ProducerRecord<>(topic, String.valueOf(i), "v" + i));
        }
    }

    private static Set<String> values(int from, int to) {
        return IntStream.range(from, to).mapToObj(i -> "v" + i).collect(Collectors.toSet());
    }

    private static Set<String> written(String topic) {
        return new TreeSet<>(Kit.values(Kit.readAll(topic)));
    }

    private static long committed(String group) throws Exception {
        try (Admin admin = Kit.admin()) {
            return admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().values().stream()
                .mapToLong(offset -> offset.offset()).sum();
        }
    }

    /** Counts each value, and fails one of them the first time. */
    public static final class See extends BaseRichBolt {
        private OutputCollector collector;

        @Override public void prepare(Map<String, Object> config, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
        }

        @Override public void execute(Tuple tuple) {
            String value = tuple.getStringByField("message");
            if (SEEN.merge(value, 1, Integer::sum) == 1 && value.equals(FAILS_ONCE)) {
                collector.fail(tuple);
                return;
            }
            collector.emit(tuple, new Values(tuple.getStringByField("key"), value));
            collector.ack(tuple);
        }

        @Override public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("key", "message"));
        }
    }
}
