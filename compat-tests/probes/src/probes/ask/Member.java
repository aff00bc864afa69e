package probes.ask;

import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocol;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupRequestData.MemberIdentity;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData.SyncGroupRequestAssignment;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.Errors;
import probes.Check;
import probes.Waiting;
import probes.Wrong;
import probes.ask.Topics.Topic;
import probes.wire.Wire;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** A member of a classic group, spoken step by step over a connection of its own. */
public final class Member {
    /** The newest version that lets a member in without a second step for its id. */
    public static final int JOIN_IN_ONE_STEP = 3;
    private static final int JOIN = 7;
    private static final int SYNC = 3;
    private static final int REBALANCE_MS = 20_000;

    public final Wire wire;
    public final String group;
    private final int sessionMs;
    private String id = "";
    private int generation = -1;
    private String leader;
    private JoinGroupResponseData joined;
    private byte[] assignment;

    /** @param group one whose coordinator serves */
    public Member(Check check, String group, int sessionMs) throws Exception {
        this.group = group;
        this.sessionMs = sessionMs;
        wire = check.another();
    }

    public String id() {
        return id;
    }

    public int generation() {
        return generation;
    }

    public boolean leads() {
        return id.equals(leader);
    }

    /** What the last SyncGroup brought. */
    public byte[] assignment() {
        return assignment;
    }

    /** How many members the leader was told of. */
    public int membersTold() {
        return joined.members().size();
    }

    public void sendJoin(int version) throws IOException {
        JoinGroupRequestData request = new JoinGroupRequestData().setGroupId(group).setMemberId(id)
            .setProtocolType("consumer").setSessionTimeoutMs(sessionMs);
        if (version >= 1) {
            request.setRebalanceTimeoutMs(REBALANCE_MS);
        }
        request.protocols().mustAdd(new JoinGroupRequestProtocol().setName("range").setMetadata(new byte[]{0, 0}));
        wire.send(request, version);
    }

    public void sendJoin() throws IOException {
        sendJoin(id.isEmpty() ? JOIN_IN_ONE_STEP : JOIN);
    }

    public short joined() throws IOException {
        joined = wire.receive();
        if (joined.errorCode() == 0 || joined.errorCode() == Errors.MEMBER_ID_REQUIRED.code()) {
            id = joined.memberId();
        }
        if (joined.errorCode() == 0) {
            generation = joined.generationId();
            leader = joined.leader();
        }
        return joined.errorCode();
    }

    public short join(int version) throws IOException {
        sendJoin(version);
        return joined();
    }

    public short join() throws IOException {
        sendJoin();
        return joined();
    }

    public void sendSync(Map<String, byte[]> assignments) throws IOException {
        SyncGroupRequestData request = new SyncGroupRequestData().setGroupId(group).setMemberId(id)
            .setGenerationId(generation);
        assignments.forEach((member, bytes) -> request.assignments()
            .add(new SyncGroupRequestAssignment().setMemberId(member).setAssignment(bytes)));
        wire.send(request, SYNC);
    }

    public short synced() throws IOException {
        SyncGroupResponseData answer = wire.receive();
        assignment = answer.assignment();
        return answer.errorCode();
    }

    public short sync(Map<String, byte[]> assignments) throws IOException {
        sendSync(assignments);
        return synced();
    }

    public short heartbeat() throws IOException {
        return heartbeat(id, generation);
    }

    public short heartbeat(String member, int inGeneration) throws IOException {
        HeartbeatResponseData answer = wire.call(new HeartbeatRequestData().setGroupId(group).setMemberId(member)
            .setGenerationId(inGeneration), 3);
        return answer.errorCode();
    }

    /** Waits until a heartbeat says that the group rebalances. */
    public boolean seesRebalance(long milliseconds) throws Exception {
        return Waiting.until(milliseconds, () -> heartbeat() == Errors.REBALANCE_IN_PROGRESS.code());
    }

    public short leave() throws IOException {
        LeaveGroupRequestData request = new LeaveGroupRequestData().setGroupId(group);
        request.members().add(new MemberIdentity().setMemberId(id));
        LeaveGroupResponseData answer = wire.call(request, 3);
        return answer.errorCode() != 0 ? answer.errorCode() : answer.members().get(0).errorCode();
    }

    public short commit(Topic topic, long offset) throws IOException {
        return Groups.commit(wire, Groups.commitOf(group, id, generation, topic, offset));
    }

    /** Makes a stable group of them, whose members each have their own id as assignment. */
    public static void form(Member... members) throws Exception {
        for (int i = 0; i < members.length; i++) {
            Member[] present = Arrays.copyOf(members, i);
            admit(members[i], present);
            syncAll(Arrays.copyOf(members, i + 1));
        }
    }

    /** Lets one more into a stable group: all are in a new generation then, not synced yet. */
    public static void admit(Member newcomer, Member... present) throws Exception {
        newcomer.sendJoin();
        for (Member member : present) {
            if (!member.seesRebalance(10_000)) {
                throw new Wrong("no rebalance though a member joins");
            }
        }
        for (Member member : present) {
            member.sendJoin();
        }
        require("JoinGroup", newcomer.joined());
        for (Member member : present) {
            require("JoinGroup", member.joined());
        }
    }

    public static void syncAll(Member... members) throws IOException {
        Map<String, byte[]> own = new HashMap<>();
        for (Member member : members) {
            own.put(member.id, member.id.getBytes());
        }
        for (Member member : members) {
            member.sendSync(member.leads() ? own : Map.of());
        }
        for (Member member : members) {
            require("SyncGroup", member.synced());
        }
    }

    private static void require(String what, short code) {
        if (code != 0) {
            throw new Wrong(what + ": " + Errors.forCode(code));
        }
    }

    public static Member leader(Member... members) {
        return Arrays.stream(members).filter(Member::leads).findFirst()
            .orElseThrow(() -> new Wrong("no member leads the group"));
    }
}
