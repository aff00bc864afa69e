package compat;

import static compat.Kit.*;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** The broker stops and comes back under its clients. */
final class Restarts {
    private Restarts() { }

    static void checks() {
        for (String how : List.of("term", "kill")) {
            check("resume-after-" + how, () -> resume(how));
            check("clients-live-through-" + how, () -> liveThrough(how));
        }
    }

    private static void resume(String how) throws Exception {
        String topic = topic(1), group = fresh("resume");
        send(topic, "a", "b", "c");
        try (Consumer<String, String> consumer = consumer("group.id", group, "max.poll.records", 2)) {
            consumer.subscribe(List.of(topic));
            equal(List.of("a", "b"), take(consumer, 2));
            consumer.commitSync();
        }
        broker(how);
        equal(List.of("a", "b", "c"), values(readAll(topic)));
        try (Consumer<String, String> consumer = consumer("group.id", group)) {
            consumer.subscribe(List.of(topic));
            equal(List.of("c"), take(consumer, 1));
        }
    }

    /** Neither producer nor consumer is made anew; nothing is lost or written twice. */
    private static void liveThrough(String how) throws Exception {
        String topic = topic(1);
        Set<String> seen = new HashSet<>();
        try (Producer<String, String> producer = producer("enable.idempotence", true, "acks", "all");
             Consumer<String, String> consumer = consumer("group.id", fresh("live"), "session.timeout.ms", 10_000)) {
            consumer.subscribe(List.of(topic));
            List<Future<RecordMetadata>> pending = new ArrayList<>();
            for (int i = 0; i < 100; i++) pending.add(producer.send(new ProducerRecord<>(topic, "" + i)));
            seen.addAll(take(consumer, 50));
            broker(how);
            for (int i = 100; i < 200; i++) pending.add(producer.send(new ProducerRecord<>(topic, "" + i)));
            for (Future<RecordMetadata> future : pending) future.get();
            while (seen.size() < 200) seen.addAll(take(consumer, 1));
        }
        equal(IntStream.range(0, 200).mapToObj(i -> "" + i).collect(Collectors.toList()), values(readAll(topic)));
    }
}
