package probes.cases;

import org.apache.kafka.common.message.DescribeGroupsRequestData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData.DescribedGroup;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.ListGroupsResponseData;
import probes.Check;
import probes.Probe;
import probes.Waiting;
import probes.ask.Groups;
import probes.ask.Member;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Wire;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

import static org.apache.kafka.common.protocol.Errors.GROUP_ID_NOT_FOUND;
import static org.apache.kafka.common.protocol.Errors.INVALID_GROUP_ID;
import static org.apache.kafka.common.protocol.Errors.INVALID_SESSION_TIMEOUT;
import static org.apache.kafka.common.protocol.Errors.NONE;
import static org.apache.kafka.common.protocol.Errors.REBALANCE_IN_PROGRESS;

/** Joining a classic group, and looking at groups from outside. */
public final class GroupProbes {
    private static final int SESSION_MS = 6_000;

    private GroupProbes() {
    }

    @Probe(value = "C039 JoinGroup v0 takes the session timeout for the rebalance timeout", seconds = 60)
    static void joinV0(Check check) throws Exception {
        String group = Groups.fresh(check.wire());
        Member first = new Member(check, group, SESSION_MS);
        Member second = new Member(check, group, SESSION_MS);
        check.code("the first joins", first.join(0), NONE);
        check.code("the first syncs", first.sync(Map.of()), NONE);
        second.sendJoin(0);
        Thread.sleep(SESSION_MS / 2);
        check.code("its heartbeat", first.heartbeat(), REBALANCE_IN_PROGRESS);
        check.code("the first joins again, in time", first.join(0), NONE);
        check.code("the second joins", second.joined(), NONE);
        check.equal("generations", "2, 2", first.generation() + ", " + second.generation());
        Member.syncAll(first, second);
        long start = Waiting.now();
        check.that("the first keeps silent: the second rebalances", second.seesRebalance(2 * SESSION_MS),
            "no rebalance");
        check.between("ms until then", SESSION_MS - 1_500, SESSION_MS + 5_000, Waiting.now() - start);
        check.code("the second joins again", second.join(0), NONE);
        check.equal("members", 1, second.membersTold());
    }

    @Probe("C039 JoinGroup refuses session timeouts out of bounds and an empty group id")
    static void joinRefused(Check check) throws Exception {
        String group = Groups.fresh(check.wire());
        check.code("a session of 100 ms", new Member(check, group, 100).join(4), INVALID_SESSION_TIMEOUT);
        check.code("a session of a day", new Member(check, group, 86_400_000).join(4), INVALID_SESSION_TIMEOUT);
        JoinGroupResponseData answer = check.wire().call(new JoinGroupRequestData().setGroupId("")
            .setProtocolType("consumer").setSessionTimeoutMs(SESSION_MS).setRebalanceTimeoutMs(SESSION_MS), 4);
        check.code("an empty group id", answer.errorCode(), INVALID_GROUP_ID);
    }

    @Probe("C045 groups that are unknown, empty or hold offsets only are described and listed as such")
    static void fromOutside(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1);
        String prefix = Waiting.fresh("g");
        String stable = Groups.served(wire, prefix + "-stable");
        String empty = Groups.served(wire, prefix + "-empty");
        String offsets = Groups.served(wire, prefix + "-offsets");
        Member.form(new Member(check, stable, 30_000));
        Member leaves = new Member(check, empty, 30_000);
        Member.form(leaves);
        leaves.commit(topic, 1); // a group with nothing at all is soon forgotten
        leaves.leave();
        Groups.commit(wire, Groups.commitOf(offsets, topic, 0, 1));
        for (int version = 0; version <= 6; version++) {
            describes(check, version, prefix + "-unknown", stable, empty, offsets);
        }
        check.equal("all", List.of(empty, offsets, stable), list(wire, prefix, List.of(), List.of()));
        check.equal("Stable", List.of(stable), list(wire, prefix, List.of("Stable"), List.of()));
        check.equal("sTABLE", List.of(stable), list(wire, prefix, List.of("sTABLE"), List.of()));
        check.equal("Empty", List.of(empty, offsets), list(wire, prefix, List.of("Empty"), List.of()));
        check.equal("no state", List.of(), list(wire, prefix, List.of("nope"), List.of()));
        check.equal("classic", List.of(empty, offsets, stable), list(wire, prefix, List.of(), List.of("classic")));
        check.equal("consumer", List.of(), list(wire, prefix, List.of(), List.of("consumer")));
    }

    private static void describes(Check check, int version, String unknown, String stable, String empty, String offsets)
            throws Exception {
        DescribeGroupsResponseData answer = check.wire().call(
            new DescribeGroupsRequestData().setGroups(List.of(unknown, stable, empty, offsets)), version);
        Map<String, DescribedGroup> groups = new HashMap<>();
        answer.groups().forEach(group -> groups.put(group.groupId(), group));
        String v = "v" + version + " ";
        check.code(v + "unknown", groups.get(unknown).errorCode(), version < 6 ? NONE : GROUP_ID_NOT_FOUND);
        check.equal(v + "unknown", "Dead///0", told(groups.get(unknown)));
        check.equal(v + "stable", "Stable/consumer/range/1", told(groups.get(stable)));
        check.equal(v + "empty", "Empty/consumer//0", told(groups.get(empty)));
        check.equal(v + "offsets only", "Empty///0", told(groups.get(offsets)));
    }

    private static String told(DescribedGroup group) {
        return group.groupState() + "/" + group.protocolType() + "/" + group.protocolData() + "/"
            + group.members().size();
    }

    private static List<String> list(Wire wire, String prefix, List<String> states, List<String> types)
            throws Exception {
        var request = new ListGroupsRequestData().setStatesFilter(states).setTypesFilter(types);
        ListGroupsResponseData answer = wire.call(request, 5);
        return answer.groups().stream().map(g -> g.groupId()).filter(id -> id.startsWith(prefix)).sorted().toList();
    }
}
