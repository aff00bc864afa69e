package probes.cases;

import org.apache.kafka.common.message.OffsetFetchResponseData;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.Waiting;
import probes.ask.Fetch;
import probes.ask.Groups;
import probes.ask.Member;
import probes.ask.Offsets;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import static org.apache.kafka.common.protocol.Errors.NONE;
import static probes.cases.EpochProbes.CONSUMER;
import static probes.cases.EpochProbes.NO_FENCING;

/** What is still so after the broker was stopped, or killed. */
public final class RestartProbes {
    private static final int PARTITIONS = 20;
    private static final int COMMITS = 1_000;
    private static final int SESSION_MS = 6_000;

    private RestartProbes() {
    }

    @Probe(value = "C009 null and empty keys, values and header values stay apart after a kill",
        restart = Probe.Restart.KILL, spoil = Spoil.PAYLOAD)
    static Probe.After nullAndEmpty(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        List<String> sent = ProduceProbes.sendNullAndEmpty(check.wire(), topic);
        return () -> check.equal("records", sent, ProduceProbes.read(check.another(), topic));
    }

    @Probe(value = "C024 the earliest offset after a trim stays after a restart", restart = Probe.Restart.TERM,
        spoil = Spoil.LISTED_OFFSETS)
    static Probe.After earliest(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        for (int i = 0; i < 10; i++) {
            Produce.put(check.wire(), topic, Batch.of("v" + i));
        }
        Topics.trim(check.wire(), topic, 6);
        int epoch = Topics.leaderEpoch(check.wire(), topic);
        return () -> ListOffsetsProbes.earliestIsSix(check, check.another(), topic, epoch);
    }

    @Probe(value = "C098 OffsetForLeaderEpoch ends an epoch where the next began, once a restart has raised it",
        restart = Probe.Restart.TERM)
    static Probe.After epochs(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        for (int i = 0; i < 10; i++) {
            Produce.put(check.wire(), topic, Batch.of("v"));
        }
        int before = Topics.leaderEpoch(check.wire(), topic);
        return () -> {
            Wire wire = check.another();
            int now = Topics.leaderEpoch(wire, topic);
            check.that("a higher epoch", now > before, now + " after " + before);
            for (int i = 0; i < 5; i++) {
                Produce.put(wire, topic, Batch.of("w"));
            }
            String order = " (code:epoch:end)";
            check.equal("the epoch before" + order, "0:" + before + ":10",
                EpochProbes.end(wire, 4, topic, CONSUMER, NO_FENCING, before));
            check.equal("the epoch now" + order, "0:" + now + ":15",
                EpochProbes.end(wire, 4, topic, CONSUMER, NO_FENCING, now));
            check.equal("the next epoch" + order, "0:-1:-1",
                EpochProbes.end(wire, 4, topic, CONSUMER, NO_FENCING, now + 1));
            check.equal("fenced" + order, "74:-1:-1", EpochProbes.end(wire, 4, topic, CONSUMER, before, before));
            check.equal("epoch of the earliest", before, Offsets.list(wire, topic, Offsets.EARLIEST).leaderEpoch());
            check.equal("epoch of the latest", now, Offsets.list(wire, topic, Offsets.LATEST).leaderEpoch());
            var stored = Fetch.batches(Fetch.from(topic, 0).one(wire)).stream();
            check.equal("epochs of the batches", List.of(before, now),
                stored.map(batch -> batch.partitionLeaderEpoch()).distinct().toList());
        };
    }

    @Probe(value = "C099 acknowledged commits outlive a kill", restart = Probe.Restart.KILL, seconds = 60,
        spoil = Spoil.OFFSETS)
    static Probe.After commits(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), PARTITIONS);
        String group = Groups.fresh(check.wire());
        for (int i = 0; i < COMMITS; i++) {
            Groups.commit(check.wire(), Groups.commitOf(group, topic, i % PARTITIONS, i));
        }
        return () -> {
            OffsetFetchResponseData answer = Groups.offsets(check.another(), Groups.served(check.another(), group));
            check.code("OffsetFetch once it is loaded", answer.errorCode(), NONE);
            Map<Integer, Long> found = new TreeMap<>();
            var partitions = answer.topics().get(0).partitions();
            partitions.forEach(p -> found.put(p.partitionIndex(), p.committedOffset()));
            Map<Integer, Long> want = new TreeMap<>();
            for (int i = COMMITS - PARTITIONS; i < COMMITS; i++) {
                want.put(i % PARTITIONS, (long) i);
            }
            check.equal("offsets by partition", want, found);
        };
    }

    @Probe(value = "C099 a group killed in a rebalance lets members in within its timeouts",
        restart = Probe.Restart.KILL, seconds = 60, spoil = Spoil.TEXTS)
    static Probe.After rebalance(Check check) throws Exception {
        String group = Groups.fresh(check.wire());
        Member first = new Member(check, group, SESSION_MS);
        Member second = new Member(check, group, SESSION_MS);
        Member.form(first);
        second.sendJoin();
        check.that("a rebalance", first.seesRebalance(5_000), "none");
        return () -> {
            Wire wire = check.another();
            Groups.served(wire, group);
            long start = Waiting.now();
            Member late = new Member(check, group, SESSION_MS);
            check.code("a new member joins", late.join(), NONE);
            check.code("and syncs", late.sync(Map.of(late.id(), new byte[]{1})), NONE);
            check.between("ms until then", 0, 3 * SESSION_MS, Waiting.now() - start);
            check.equal("state", "Stable", Groups.describe(wire, group).groupState());
            check.equal("members", 1, Groups.describe(wire, group).members().size());
        };
    }
}
