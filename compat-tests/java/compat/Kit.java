package compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What the checks share: a line per check, clients, topics, waiting. */
final class Kit {
    static final long PATIENCE_MS = 40_000;
    static String bootstrap;
    static int failed;

    private Kit() { }

    interface Body { void run() throws Exception; }

    interface Condition { boolean holds() throws Exception; }

    /** Runs a check and prints its line. */
    static void check(String name, Body body) {
        try {
            body.run();
            System.out.println("PASS " + name);
        } catch (Throwable thrown) {
            failed++;
            Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            cause.printStackTrace();
            System.out.println("FAIL " + name + " -- " + String.valueOf(cause).replace('\n', ' '));
        }
        System.out.flush();
    }

    static void equal(Object want, Object got) {
        if (!Objects.equals(want, got)) throw new AssertionError("want " + want + ", got " + got);
    }

    static void isTrue(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    /** The call must throw the named exception, itself or as a cause. */
    static void fails(String simpleName, Callable<?> call) {
        Object got;
        try {
            got = call.call();
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause())
                if (cause.getClass().getSimpleName().equals(simpleName)) return;
            throw new AssertionError("want " + simpleName + ", got " + error, error);
        }
        throw new AssertionError("want " + simpleName + ", got " + got);
    }

    static void await(String what, Condition condition) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (!condition.holds()) {
            if (System.currentTimeMillis() > deadline) throw new AssertionError("not in time: " + what);
            Thread.sleep(50);
        }
    }

    static String fresh(String base) {
        return base + "-" + Long.toString(System.nanoTime(), 36);
    }

    static Map<String, Object> config(Object... pairs) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        for (int at = 0; at < pairs.length; at += 2) config.put((String) pairs[at], pairs[at + 1]);
        return config;
    }

    static Admin admin() {
        return Admin.create(config());
    }

    static String topic(int partitions, String... configs) throws Exception {
        String name = fresh("topic");
        Map<String, String> config = new HashMap<>();
        for (int at = 0; at < configs.length; at += 2) config.put(configs[at], configs[at + 1]);
        try (Admin admin = admin()) {
            admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(config))).all().get();
            await("topic " + name, () -> admin.listTopics().names().get().contains(name));
        }
        return name;
    }

    static Producer<String, String> producer(Object... pairs) {
        return new KafkaProducer<>(config(pairs), new StringSerializer(), new StringSerializer());
    }

    static Consumer<String, String> consumer(Object... pairs) {
        Map<String, Object> all = config("auto.offset.reset", "earliest", "enable.auto.commit", false);
        all.putAll(config(pairs));
        return new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer());
    }

    /** Sends the values in order, each acknowledged before the call returns. */
    static void send(String topic, String... values) throws Exception {
        try (Producer<String, String> producer = producer()) {
            for (String value : values) producer.send(new ProducerRecord<>(topic, 0, null, value)).get();
        }
    }

    /** All records of a topic, partition by partition, up to their present ends. */
    static List<ConsumerRecord<String, String>> readAll(String topic, Object... pairs) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        try (Consumer<String, String> consumer = consumer(pairs)) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(info -> new TopicPartition(topic, info.partition())).collect(Collectors.toList());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long deadline = System.currentTimeMillis() + PATIENCE_MS;
            while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                isTrue(System.currentTimeMillis() < deadline, "the end was not reached");
                consumer.poll(Duration.ofMillis(200)).forEach(records::add);
            }
        }
        return records;
    }

    static List<String> values(List<ConsumerRecord<String, String>> records) {
        return records.stream().map(ConsumerRecord::value).collect(Collectors.toList());
    }

    /** Polls until so many records came. */
    static List<String> take(Consumer<String, String> consumer, int count) {
        List<String> values = new ArrayList<>();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (values.size() < count) {
            isTrue(System.currentTimeMillis() < deadline, "only " + values + " of " + count);
            consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
        }
        return values;
    }

    /** Stops the broker with SIGTERM (`term`) or kill -9 (`kill`) and starts it again. */
    static void broker(String order) throws Exception {
        List<String> command = new ArrayList<>(Arrays.asList(System.getenv("BROKER_CTL").split(" ")));
        command.add(order);
        equal(0, new ProcessBuilder(command).inheritIO().redirectOutput(ProcessBuilder.Redirect.DISCARD).start().waitFor());
    }
}
