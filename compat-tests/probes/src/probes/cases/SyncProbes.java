package probes.cases;

import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.ask.Groups;
import probes.ask.Member;
import probes.wire.Wire;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;

import static org.apache.kafka.common.protocol.Errors.ILLEGAL_GENERATION;
import static org.apache.kafka.common.protocol.Errors.INCONSISTENT_GROUP_PROTOCOL;
import static org.apache.kafka.common.protocol.Errors.NONE;
import static org.apache.kafka.common.protocol.Errors.UNKNOWN_MEMBER_ID;

/** SyncGroup: the leader's words to every member. */
public final class SyncProbes {
    private SyncProbes() {
    }

    @Probe(value = "C040 the leader's assignments reach each member byte for byte, an omitted one gets no bytes",
        seconds = 60, spoil = Spoil.PAYLOAD)
    static void assignments(Check check) throws Exception {
        String group = Groups.fresh(check.wire());
        Member[] members = {new Member(check, group, 30_000), new Member(check, group, 30_000),
            new Member(check, group, 30_000)};
        Member.form(members[0], members[1]);
        Member.admit(members[2], members[0], members[1]);
        Member leader = Member.leader(members);
        List<Member> followers = Arrays.stream(members).filter(m -> m != leader).toList();
        Member given = followers.get(0);
        Member omitted = followers.get(1);
        byte[] large = new byte[70_000];
        new Random(3).nextBytes(large);
        given.sendSync(Map.of(given.id(), new byte[]{1}));
        check.equal("a follower before the leader", Wire.End.OPEN, given.wire.end(700));
        check.code("the leader", leader.sync(Map.of(leader.id(), new byte[]{7}, given.id(), large)), NONE);
        check.code("the follower", given.synced(), NONE);
        check.that("its 70000 bytes", Arrays.equals(large, given.assignment()),
            given.assignment().length + " bytes, or others");
        check.that("the leader's own byte", Arrays.equals(new byte[]{7}, leader.assignment()),
            Arrays.toString(leader.assignment()));
        check.code("the omitted", omitted.sync(Map.of()), NONE);
        boolean noBytes = omitted.assignment() != null && omitted.assignment().length == 0;
        check.that("its bytes", noBytes, Arrays.toString(omitted.assignment()));
        check.code("the follower in the stable group", given.sync(Map.of()), NONE);
        check.that("its bytes again", Arrays.equals(large, given.assignment()),
            given.assignment().length + " bytes, or others");
        refusals(check, leader);
    }

    private static void refusals(Check check, Member member) throws Exception {
        SyncGroupRequestData right = new SyncGroupRequestData().setGroupId(member.group).setMemberId(member.id())
            .setGenerationId(member.generation());
        check.code("a wrong generation", code(check, right.duplicate().setGenerationId(member.generation() + 1), 3),
            ILLEGAL_GENERATION);
        check.code("an unknown member", code(check, right.duplicate().setMemberId("x"), 3), UNKNOWN_MEMBER_ID);
        var otherType = right.duplicate().setProtocolType("connect").setProtocolName("range");
        check.code("v5, another protocol type", code(check, otherType, 5), INCONSISTENT_GROUP_PROTOCOL);
        var otherName = right.duplicate().setProtocolType("consumer").setProtocolName("nope");
        check.code("v5, another protocol", code(check, otherName, 5), INCONSISTENT_GROUP_PROTOCOL);
        check.code("v5, no protocol", code(check, right.duplicate(), 5), INCONSISTENT_GROUP_PROTOCOL);
        SyncGroupResponseData answer = check.wire().call(right.setProtocolType("consumer").setProtocolName("range"), 5);
        check.code("v5", answer.errorCode(), NONE);
        check.equal("v5 protocol", "consumer, range", answer.protocolType() + ", " + answer.protocolName());
    }

    private static short code(Check check, SyncGroupRequestData request, int version) throws Exception {
        SyncGroupResponseData answer = check.wire().call(request, version);
        return answer.errorCode();
    }
}
