package probes.cases;

import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderTopic;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData;
import probes.Check;
import probes.Probe;
import probes.ask.Fetch;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import static org.apache.kafka.common.protocol.Errors.UNKNOWN_LEADER_EPOCH;

/** Where leader epochs end (KIP-320). */
public final class EpochProbes {
    /** What replica_id a consumer and a debugger give. */
    static final int CONSUMER = -1;
    private static final int DEBUGGER = -2;
    static final int NO_FENCING = -1;

    private EpochProbes() {
    }

    @Probe("C098 OffsetForLeaderEpoch ends the current epoch at the log end and knows no later one")
    static void current(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1);
        for (int i = 0; i < 10; i++) {
            Produce.put(wire, topic, Batch.of("v"));
        }
        int epoch = Topics.leaderEpoch(wire, topic);
        for (int version = 2; version <= 4; version++) {
            for (int replica : version < 3 ? new int[]{DEBUGGER} : new int[]{CONSUMER, DEBUGGER}) {
                String what = "v" + version + ", replica " + replica + " (code:epoch:end), ";
                check.equal(what + "current", "0:" + epoch + ":10",
                    end(wire, version, topic, replica, NO_FENCING, epoch));
                check.equal(what + "later", "0:-1:-1", end(wire, version, topic, replica, NO_FENCING, epoch + 3));
                check.equal(what + "rightly fenced", "0:" + epoch + ":10",
                    end(wire, version, topic, replica, epoch, epoch));
                check.equal(what + "ahead of the broker", "75:-1:-1",
                    end(wire, version, topic, replica, epoch + 1, epoch));
                check.equal(what + "unknown topic", "3:-1:-1",
                    end(wire, version, Topics.ghost(), replica, NO_FENCING, 0));
            }
        }
        short ahead = Fetch.from(topic, 0).leaderEpoch(epoch + 1).one(wire).errorCode();
        check.code("a Fetch ahead of the broker", ahead, UNKNOWN_LEADER_EPOCH);
    }

    /** Asks about partition 0 for the end of an epoch; as code:epoch:end. */
    static String end(Wire wire, int version, Topic topic, int replica, int current, int epoch) throws Exception {
        OffsetForLeaderTopic asked = new OffsetForLeaderTopic().setTopic(topic.name());
        asked.partitions().add(new OffsetForLeaderPartition().setPartition(0).setCurrentLeaderEpoch(current)
            .setLeaderEpoch(epoch));
        OffsetForLeaderEpochRequestData request = new OffsetForLeaderEpochRequestData().setReplicaId(replica);
        request.topics().mustAdd(asked);
        OffsetForLeaderEpochResponseData answer = wire.call(request, version);
        var end = answer.topics().iterator().next().partitions().get(0);
        return end.errorCode() + ":" + end.leaderEpoch() + ":" + end.endOffset();
    }
}
