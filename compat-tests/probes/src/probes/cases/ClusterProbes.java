package probes.cases;

import org.apache.kafka.common.message.DescribeClusterRequestData;
import org.apache.kafka.common.message.DescribeClusterResponseData;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.ask.Topics;
import probes.wire.Wire;

/** The cluster as one thing with an id. */
public final class ClusterProbes {
    private ClusterProbes() {
    }

    @Probe(value = "C038 the cluster id is the same in Metadata of every version and in DescribeCluster",
        spoil = Spoil.TEXTS)
    static void sameId(Check check) throws Exception {
        String id = clusterId(check, check.wire());
        for (int version = 3; version <= 13; version++) {
            check.equal("Metadata v" + version, id, Topics.metadata(check.wire(), version, true).clusterId());
        }
    }

    @Probe(value = "C038 the cluster id outlives a restart", restart = Probe.Restart.TERM, spoil = Spoil.TEXTS)
    static Probe.After sameIdAfterRestart(Check check) throws Exception {
        String id = clusterId(check, check.wire());
        return () -> check.equal("after the restart", id, clusterId(check, check.another()));
    }

    private static String clusterId(Check check, Wire wire) throws Exception {
        String id = Topics.metadata(wire, 2, true).clusterId();
        check.that("Metadata v2 has one", id != null && !id.isEmpty(), id);
        DescribeClusterResponseData cluster = wire.call(new DescribeClusterRequestData(), 0);
        check.equal("DescribeCluster", id, cluster.clusterId());
        return id;
    }
}
