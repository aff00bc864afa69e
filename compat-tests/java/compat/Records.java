package compat;

import static compat.Kit.*;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;

/** Producing and reading. */
final class Records {
    private Records() { }

    static void checks() {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd"))
            check("codec-" + codec, () -> roundTrip(codec));
        check("nulls-and-empties", Records::nulls);
        check("keys-choose-partitions", Records::keys);
        check("idempotent-producer-keeps-order", Records::idempotent);
        for (String acks : List.of("0", "1", "all")) check("acks-" + acks, () -> acks(acks));
        check("produce-errors", Records::errors);
        check("seek-and-times", Records::seeks);
        check("a-waiting-reader-wakes", Records::wakes);
    }

    private static void roundTrip(String codec) throws Exception {
        String topic = topic(3);
        Map<String, String> want = new TreeMap<>();
        try (Producer<String, String> producer = producer("compression.type", codec, "linger.ms", 5)) {
            for (int i = 0; i < 10; i++) {
                RecordMetadata taken = producer.send(record(topic, i, want)).get();
                isTrue(taken.hasOffset() && taken.offset() >= 0, "no offset");
            }
            List<Future<RecordMetadata>> pending = new ArrayList<>();
            for (int i = 10; i < 300; i++) pending.add(producer.send(record(topic, i, want)));
            for (Future<RecordMetadata> future : pending) future.get();
        }
        Map<String, String> got = new TreeMap<>();
        for (ConsumerRecord<String, String> record : readAll(topic)) {
            isTrue(got.put(record.key(), record.value()) == null, "twice: " + record.key());
            equal("h" + record.key(), new String(record.headers().lastHeader("h").value()));
            equal(1_700_000_000_000L + Integer.parseInt(record.key()), record.timestamp());
        }
        equal(want, got);
    }

    private static ProducerRecord<String, String> record(String topic, int i, Map<String, String> want) {
        String value = ("value " + i + " ").repeat(20);
        want.put("" + i, value);
        List<org.apache.kafka.common.header.Header> headers = List.of(new RecordHeader("h", ("h" + i).getBytes()));
        return new ProducerRecord<>(topic, null, 1_700_000_000_000L + i, "" + i, value, headers);
    }

    private static void nulls() throws Exception {
        String topic = topic(1);
        String[][] pairs = {{null, null}, {"", ""}, {"k", null}, {null, "v"}, {"k", ""}};
        try (Producer<String, String> producer = producer()) {
            for (String[] pair : pairs) producer.send(new ProducerRecord<>(topic, pair[0], pair[1])).get();
        }
        List<ConsumerRecord<String, String>> records = readAll(topic);
        equal(pairs.length, records.size());
        for (int i = 0; i < pairs.length; i++) {
            equal(pairs[i][0], records.get(i).key());
            equal(pairs[i][1], records.get(i).value());
        }
    }

    private static void keys() throws Exception {
        String topic = topic(4);
        try (Producer<String, String> producer = producer()) {
            for (int i = 0; i < 200; i++) producer.send(new ProducerRecord<>(topic, "key" + i % 20, "" + i));
        }
        Map<String, List<Integer>> places = readAll(topic).stream().collect(Collectors.groupingBy(ConsumerRecord::key,
            Collectors.mapping(ConsumerRecord::partition, Collectors.toList())));
        equal(20, places.size());
        isTrue(places.values().stream().allMatch(p -> p.stream().distinct().count() == 1), "a key in two partitions");
    }

    private static void idempotent() throws Exception {
        String topic = topic(1);
        try (Producer<String, String> producer = producer("enable.idempotence", true, "acks", "all", "batch.size", 200)) {
            for (int i = 0; i < 1000; i++) producer.send(new ProducerRecord<>(topic, "" + i, "" + i));
        }
        equal(IntStream.range(0, 1000).mapToObj(i -> "" + i).collect(Collectors.toList()), values(readAll(topic)));
    }

    private static void acks(String acks) throws Exception {
        String topic = topic(1);
        try (Producer<String, String> producer = producer("acks", acks, "enable.idempotence", false)) {
            producer.send(new ProducerRecord<>(topic, "a")).get();
            producer.send(new ProducerRecord<>(topic, "b")).get();
        }
        await("both", () -> values(readAll(topic)).equals(List.of("a", "b")));
    }

    private static void errors() throws Exception {
        String small = topic(1, "max.message.bytes", "1000");
        try (Producer<String, String> producer = producer("max.block.ms", 3000)) {
            fails("RecordTooLargeException", () -> producer.send(new ProducerRecord<>(small, "x".repeat(5000))).get());
            fails("InvalidTopicException", () -> producer.send(new ProducerRecord<>("no/such topic", "x")).get());
            producer.send(new ProducerRecord<>(small, "fits")).get();
        }
        String compacted = topic(1, "cleanup.policy", "compact");
        try (Producer<String, String> producer = producer()) {
            fails("InvalidRecordException", () -> producer.send(new ProducerRecord<>(compacted, null, "x")).get());
        }
    }

    private static void seeks() throws Exception {
        String topic = topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        List<TopicPartition> one = List.of(partition);
        try (Producer<String, String> producer = producer()) {
            for (int i = 0; i < 100; i++) producer.send(new ProducerRecord<>(topic, 0, 1000L + i * 10, "k", "" + i));
        }
        try (Consumer<String, String> consumer = consumer("max.poll.records", 1)) {
            consumer.assign(one);
            equal(0L, consumer.beginningOffsets(one).get(partition));
            equal(100L, consumer.endOffsets(one).get(partition));
            consumer.seek(partition, 42);
            equal(List.of("42"), take(consumer, 1));
            equal(43L, consumer.position(partition));
            consumer.seekToEnd(one);
            equal(100L, consumer.position(partition));
            consumer.seekToBeginning(one);
            equal(List.of("0"), take(consumer, 1));
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, 1495L)).get(partition);
            equal(50L, found.offset());
            equal(1500L, found.timestamp());
            isTrue(consumer.offsetsForTimes(Map.of(partition, 9_999_999L)).get(partition) == null, "a time after the end");
            consumer.seek(partition, 1000);
            equal(List.of("0"), take(consumer, 1));
        }
    }

    private static void wakes() throws Exception {
        String topic = topic(8);
        List<TopicPartition> all = IntStream.range(0, 8).mapToObj(i -> new TopicPartition(topic, i)).collect(Collectors.toList());
        try (Consumer<String, String> consumer = consumer("fetch.max.wait.ms", 20_000, "default.api.timeout.ms", 60_000);
             Producer<String, String> producer = producer()) {
            consumer.assign(all);
            // a partition whose start is found late is not in the fetch under way
            all.forEach(consumer::position);
            consumer.poll(Duration.ofMillis(500));
            for (int i = 0; i < 8; i++) {
                long started = System.currentTimeMillis();
                producer.send(new ProducerRecord<>(topic, i, null, "" + i)).get();
                equal(List.of("" + i), take(consumer, 1));
                isTrue(System.currentTimeMillis() - started < 10_000, "the fetch slept on");
            }
        }
    }
}
