package probes.cases;

import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopic;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopics;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.Waiting;
import probes.ask.Groups;
import probes.ask.Member;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Wire;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import static org.apache.kafka.common.protocol.Errors.ILLEGAL_GENERATION;
import static org.apache.kafka.common.protocol.Errors.NONE;
import static org.apache.kafka.common.protocol.Errors.REBALANCE_IN_PROGRESS;
import static org.apache.kafka.common.protocol.Errors.UNKNOWN_MEMBER_ID;

/** Committed offsets: who may commit when, what is refused, what comes back. */
public final class CommitProbes {
    private CommitProbes() {
    }

    @Probe("C043 commits and heartbeats around a rebalance get the code that tells the member what to do")
    static void aroundRebalance(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1);
        String group = Groups.fresh(wire);
        Member first = new Member(check, group, 30_000);
        Member second = new Member(check, group, 30_000);
        Member.form(first);
        stable(check, topic, first);
        second.sendJoin();
        check.that("PreparingRebalance", first.seesRebalance(5_000), "no rebalance");
        check.code("PreparingRebalance: commit", first.commit(topic, 2), NONE);
        check.code("the first joins again", first.join(), NONE);
        check.code("the second joins", second.joined(), NONE);
        check.equal("state", "CompletingRebalance", Groups.describe(wire, group).groupState());
        check.code("CompletingRebalance: heartbeat", first.heartbeat(), NONE);
        check.code("CompletingRebalance: commit", first.commit(topic, 3), REBALANCE_IN_PROGRESS);
        Member.syncAll(first, second);
        check.code("Stable again: heartbeat", first.heartbeat(), NONE);
        int before = first.generation() - 1;
        check.code("the generation before: commit", commit(first, first.id(), before, topic), ILLEGAL_GENERATION);
        first.leave();
        second.leave();
        check.code("Empty: commit without a member", Groups.commit(wire, Groups.commitOf(group, topic, 0, 4)), NONE);
        check.code("a member that left: heartbeat", first.heartbeat(), UNKNOWN_MEMBER_ID);
    }

    private static void stable(Check check, Topic topic, Member member) throws Exception {
        int generation = member.generation();
        check.code("Stable: heartbeat", member.heartbeat(), NONE);
        check.code("Stable: commit", member.commit(topic, 1), NONE);
        short outsider = Groups.commit(member.wire, Groups.commitOf(member.group, topic, 0, 9));
        check.code("Stable: commit without a member", outsider, UNKNOWN_MEMBER_ID);
        check.code("an old generation: heartbeat", member.heartbeat(member.id(), generation - 1), ILLEGAL_GENERATION);
        check.code("an old generation: commit", commit(member, member.id(), generation - 1, topic), ILLEGAL_GENERATION);
        check.code("a later generation: commit", commit(member, member.id(), generation + 1, topic),
            ILLEGAL_GENERATION);
        check.code("an unknown member: heartbeat", member.heartbeat("x", generation), UNKNOWN_MEMBER_ID);
        check.code("an unknown member: commit", commit(member, "x", generation, topic), UNKNOWN_MEMBER_ID);
    }

    private static short commit(Member by, String member, int generation, Topic topic) throws Exception {
        return Groups.commit(by.wire, Groups.commitOf(by.group, member, generation, topic, 9));
    }

    @Probe(value = "C048 OffsetFetch has an entry for each partition asked, committed or not", spoil = Spoil.OFFSETS)
    static void oneEntryEach(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 2);
        String ghost = Topics.ghost().name();
        String group = Groups.fresh(wire);
        Groups.commit(wire, Groups.commitOf(group, topic, 0, 5));
        for (int version = 1; version <= 7; version++) {
            for (String asked : List.of(group, Waiting.fresh("never"))) {
                var request = new OffsetFetchRequestData().setGroupId(asked).setTopics(List.of(
                    new OffsetFetchRequestTopic().setName(topic.name()).setPartitionIndexes(List.of(0, 1)),
                    new OffsetFetchRequestTopic().setName(ghost).setPartitionIndexes(List.of(7))));
                OffsetFetchResponseData answer = wire.call(request, version);
                Map<String, String> told = new TreeMap<>();
                answer.topics().forEach(t -> t.partitions().forEach(p -> told.put(t.name() + "-" + p.partitionIndex(),
                    p.committedOffset() + "/" + p.committedLeaderEpoch() + "/" + p.metadata() + "/" + p.errorCode())));
                String first = asked.equals(group) ? "5/-1//0" : "-1/-1//0";
                var want = Map.of(topic.name() + "-0", first, topic.name() + "-1", "-1/-1//0", ghost + "-7",
                    "-1/-1//0");
                check.equal("v" + version + " (offset/epoch/metadata/code)", want, told);
                check.code("v" + version, version >= 2 ? answer.errorCode() : 0, NONE);
            }
        }
        OffsetFetchResponseData all = wire.call(new OffsetFetchRequestData().setGroupId(group).setTopics(null), 2);
        check.equal("entries when no topic is named", 1,
            all.topics().stream().mapToInt(t -> t.partitions().size()).sum());
        severalGroups(check, topic, group);
    }

    private static void severalGroups(Check check, Topic topic, String group) throws Exception {
        List<String> names = List.of(Waiting.fresh("never"), group, Waiting.fresh("never"));
        var asked = new OffsetFetchRequestTopics().setName(topic.name()).setPartitionIndexes(List.of(0));
        OffsetFetchRequestData request = new OffsetFetchRequestData();
        for (String name : names) {
            request.groups().add(new OffsetFetchRequestGroup().setGroupId(name).setTopics(List.of(asked)));
        }
        OffsetFetchResponseData answer = check.wire().call(request, 8);
        Map<String, Long> told = new TreeMap<>();
        answer.groups().forEach(g -> told.put(g.groupId(), g.topics().get(0).partitions().get(0).committedOffset()));
        check.equal("v8, three groups", Map.of(names.get(0), -1, group, 5, names.get(2), -1), told);
    }

    @Probe("C051 OffsetCommit refuses the partitions that do not exist and stores the others")
    static void perPartition(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1);
        Topic ghost = Topics.ghost();
        String group = Groups.fresh(wire);
        for (int version = 2; version <= 9; version++) {
            OffsetCommitRequestData request = Groups.commitOf(group, topic, 0, 5);
            var noPartition = Groups.commitOf(group, topic, 9, 5).topics().get(0).partitions().get(0);
            request.topics().get(0).partitions().add(noPartition);
            request.topics().add(Groups.commitOf(group, ghost, 0, 5).topics().get(0));
            OffsetCommitResponseData answer = wire.call(request, version);
            Map<String, Short> told = new TreeMap<>();
            answer.topics().forEach(t -> t.partitions().forEach(p ->
                told.put(t.name() + "-" + p.partitionIndex(), p.errorCode())));
            check.equal("v" + version, Map.of(topic.name() + "-0", 0, topic.name() + "-9", 3, ghost.name() + "-0", 3),
                told);
        }
        check.equal("stored", 5, Groups.offset(wire, group, topic));
        check.equal("state of a group that nobody joined", "Empty", Groups.describe(wire, group).groupState());
        check.code("backwards", Groups.commit(wire, Groups.commitOf(group, topic, 0, 2).setRetentionTimeMs(-1), 2),
            NONE);
        Thread.sleep(2_500); // expired offsets are looked for each second, see broker.properties
        check.equal("with the default retention, later", 2, Groups.offset(wire, group, topic));
        check.code("offset -1", Groups.commit(wire, Groups.commitOf(group, topic, 0, -1)), NONE);
    }
}
