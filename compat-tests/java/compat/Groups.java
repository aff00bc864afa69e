package compat;

import static compat.Kit.*;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;

/** Classic groups: members, assignors, commits, administration. */
final class Groups {
    private Groups() { }

    static void checks() {
        for (Class<?> assignor : List.of(RangeAssignor.class, RoundRobinAssignor.class, StickyAssignor.class,
                CooperativeStickyAssignor.class))
            check("group-" + assignor.getSimpleName(), () -> rebalances(assignor));
        check("static-member-returns", Groups::staticMember);
        check("commits-are-kept", Groups::commits);
        check("auto-commit", Groups::autoCommit);
        check("groups-administered", Groups::administered);
    }

    /** Three members join one by one, read all, and one leaves. */
    private static void rebalances(Class<?> assignor) throws Exception {
        String topic = topic(6), group = fresh("group");
        Set<String> seen = new HashSet<>();
        List<Consumer<String, String>> members = new ArrayList<>();
        try {
            for (int size : List.of(1, 2, 3)) {
                members.add(consumer("group.id", group, "partition.assignment.strategy", assignor.getName(),
                    "heartbeat.interval.ms", 300, "session.timeout.ms", 10_000));
                members.get(size - 1).subscribe(List.of(topic));
                settle(members, 6, seen);
            }
            try (Producer<String, String> producer = producer()) {
                for (int i = 0; i < 60; i++) producer.send(new ProducerRecord<>(topic, i % 6, null, "" + i));
            }
            long deadline = System.currentTimeMillis() + PATIENCE_MS;
            boolean committed = false;
            while (seen.size() < 60 || !committed) {
                isTrue(System.currentTimeMillis() < deadline, "only " + seen.size() + " of 60, committed " + committed);
                committed = true;
                for (Consumer<String, String> member : members) {
                    member.poll(Duration.ofMillis(50)).forEach(record -> seen.add(record.value()));
                    committed &= commits(member);
                }
            }
            members.remove(2).close();
            settle(members, 6, seen);
            try (Admin admin = admin()) {
                ConsumerGroupDescription described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
                equal(2, described.members().size());
                equal("Stable", described.state().toString());
                long sum = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().values().stream()
                    .mapToLong(OffsetAndMetadata::offset).sum();
                equal(60L, sum);
            }
        } finally {
            members.forEach(Consumer::close);
        }
    }

    /** False while the member has not heard that the last rebalance is over, which further polls will tell it. */
    private static boolean commits(Consumer<String, String> member) {
        try {
            member.commitSync();
            return true;
        } catch (RebalanceInProgressException e) {
            return false;
        }
    }

    /** Polls until the members share all partitions equally. */
    private static void settle(List<Consumer<String, String>> members, int partitions, Set<String> seen) {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (true) {
            members.forEach(member -> member.poll(Duration.ofMillis(50)).forEach(record -> seen.add(record.value())));
            Set<TopicPartition> taken = new HashSet<>();
            members.forEach(member -> taken.addAll(member.assignment()));
            if (taken.size() == partitions && members.stream().allMatch(m -> m.assignment().size() == partitions / members.size()))
                return;
            isTrue(System.currentTimeMillis() < deadline, "no balance");
        }
    }

    private static void staticMember() throws Exception {
        String topic = topic(2), group = fresh("static");
        send(topic, "a", "b");
        for (int round = 0; round < 2; round++) {
            try (Consumer<String, String> consumer = consumer("group.id", group, "group.instance.id", "one")) {
                consumer.subscribe(List.of(topic));
                await("assigned", () -> {
                    consumer.poll(Duration.ofMillis(100));
                    return consumer.assignment().size() == 2;
                });
                equal("one", consumer.groupMetadata().groupInstanceId().get());
                equal(1, consumer.groupMetadata().generationId());
            }
        }
    }

    private static void commits() throws Exception {
        String topic = topic(1), group = fresh("commits");
        TopicPartition partition = new TopicPartition(topic, 0);
        send(topic, "a", "b", "c", "d");
        try (Consumer<String, String> consumer = consumer("group.id", group, "max.poll.records", 2)) {
            consumer.subscribe(List.of(topic));
            equal(List.of("a", "b"), take(consumer, 2));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(2, "note")));
        }
        try (Consumer<String, String> consumer = consumer("group.id", group)) {
            OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
            equal(2L, committed.offset());
            equal("note", committed.metadata());
            consumer.subscribe(List.of(topic));
            equal(List.of("c", "d"), take(consumer, 2));
        }
    }

    private static void autoCommit() throws Exception {
        String topic = topic(1), group = fresh("auto");
        send(topic, IntStream.range(0, 10).mapToObj(String::valueOf).toArray(String[]::new));
        try (Consumer<String, String> consumer = consumer("group.id", group, "enable.auto.commit", true)) {
            consumer.subscribe(List.of(topic));
            equal(10, take(consumer, 10).size());
        }
        send(topic, "new");
        try (Consumer<String, String> consumer = consumer("group.id", group)) {
            consumer.subscribe(List.of(topic));
            equal(List.of("new"), take(consumer, 1));
        }
    }

    private static void administered() throws Exception {
        String topic = topic(2), group = fresh("administered");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Admin admin = admin()) {
            admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(7, "note"))).all().get();
            OffsetAndMetadata committed =
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition);
            equal(7L, committed.offset());
            Set<String> listed = admin.listConsumerGroups().all().get().stream().map(g -> g.groupId()).collect(Collectors.toSet());
            isTrue(listed.contains(group), "not listed");
            equal("Empty", admin.describeConsumerGroups(List.of(group)).all().get().get(group).state().toString());
            admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get();
            equal(0, admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().size());
            admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(1))).all().get();
            admin.deleteConsumerGroups(List.of(group)).all().get();
            fails("GroupIdNotFoundException", () -> admin.deleteConsumerGroups(List.of(group)).all().get());
        }
    }
}
