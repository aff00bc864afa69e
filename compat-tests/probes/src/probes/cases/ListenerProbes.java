package probes.cases;

import org.apache.kafka.common.message.DescribeClusterRequestData;
import org.apache.kafka.common.message.DescribeClusterResponseData;
import org.apache.kafka.common.message.FindCoordinatorRequestData;
import org.apache.kafka.common.message.FindCoordinatorResponseData;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.ask.Groups;
import probes.ask.Topics;
import probes.wire.Wire;

import java.io.IOException;
import java.net.ConnectException;
import java.net.ServerSocket;
import java.util.List;

/** Which addresses the broker tells. */
public final class ListenerProbes {
    private static final String MAP = "listener.security.protocol.map=";

    private ListenerProbes() {
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    @Probe(value = "C030 addresses told are those that the listener in use advertises", seconds = 150,
        spoil = Spoil.NUMBERS)
    static void ownListener(Check check) throws Exception {
        int inside = freePort();
        int outside = freePort();
        // Nobody has to reach what is advertised: the probe looks at the answers only.
        check.closing(check.outside.spawn(
            "listeners=INSIDE://127.0.0.1:" + inside + ",OUTSIDE://127.0.0.1:" + outside,
            "advertised.listeners=INSIDE://inside.test:1001,OUTSIDE://outside.test:1002",
            MAP + "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name=INSIDE"));
        tells(check, check.another("127.0.0.1:" + inside), "inside.test:1001");
        tells(check, check.another("127.0.0.1:" + outside), "outside.test:1002");
    }

    private static void tells(Check check, Wire wire, String address) throws Exception {
        var metadata = Topics.cluster(wire).brokers().stream().map(b -> b.host() + ":" + b.port()).toList();
        check.equal("Metadata", List.of(address), metadata);
        DescribeClusterResponseData cluster = wire.call(new DescribeClusterRequestData(), 0);
        var described = cluster.brokers().stream().map(b -> b.host() + ":" + b.port()).toList();
        check.equal("DescribeCluster", List.of(address), described);
        String group = Groups.fresh(wire);
        FindCoordinatorRequestData request = new FindCoordinatorRequestData().setKeyType((byte) 0);
        FindCoordinatorResponseData old = wire.call(request.duplicate().setKey(group), 2);
        check.equal("FindCoordinator v2", address, old.host() + ":" + old.port());
        FindCoordinatorResponseData found = wire.call(request.setCoordinatorKeys(List.of(group)), 4);
        var coordinator = found.coordinators().get(0);
        check.equal("FindCoordinator v4", address, coordinator.host() + ":" + coordinator.port());
    }

    @Probe(value = "C030 a broker that is to advertise 0.0.0.0 says so and does not start", seconds = 150,
        spoil = Spoil.CLOSING)
    static void everywhere(Check check) throws Exception {
        int port = freePort();
        String said = check.outside.refusal("listeners=PLAINTEXT://127.0.0.1:" + port,
            "advertised.listeners=PLAINTEXT://0.0.0.0:" + port);
        check.that("names the setting", said != null && said.contains("advertised.listeners"), said);
        try (Wire wire = Wire.open("127.0.0.1:" + port)) {
            check.fail("its port is open");
        } catch (ConnectException e) {
            check.that("its port is closed", true, null);
        }
    }
}
