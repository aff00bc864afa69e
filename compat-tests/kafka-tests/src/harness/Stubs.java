package harness;

import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;

import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.SharedServer;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.BrokerLifecycleManager;
import org.mockito.Mockito;

/**
 * Stand-ins for the broker and controller objects that the tests get. Settings, ports, stopping, starting and metadata
 * (asked over the wire) work; anything else ends the test as skipped.
 */
public final class Stubs {
    private Stubs() { }

    private interface Answer {
        /** - `method`: its name; null is an answer too. */
        Object to(String method, Object[] arguments) throws Throwable;
    }

    private static <T> T stub(Class<T> type, Answer answer) {
        return Mockito.mock(type, Mockito.withSettings().stubOnly().defaultAnswer(call -> {
            String method = call.getMethod().getName();
            return switch (method) {
                case "toString" -> "stub of " + type.getSimpleName();
                case "hashCode" -> System.identityHashCode(call.getMock());
                case "equals" -> call.getMock() == call.getArgument(0);
                default -> answer.to(method, call.getArguments());
            };
        }));
    }

    /** Knows one method; all others are out of reach. */
    private static <T> T stub(Class<T> type, String known, Answer answer) {
        return stub(type, (method, arguments) -> {
            if (method.equals(known)) {
                return answer.to(method, arguments);
            }
            throw outOfReach(type, method);
        });
    }

    private static RuntimeException outOfReach(Class<?> type, String method) {
        return Cluster.abort("the broker's process: " + type.getSimpleName() + "." + method);
    }

    private static SocketServer socket(Cluster.Node node, KafkaConfig config) {
        return stub(SocketServer.class, (method, arguments) -> switch (method) {
            case "boundPort" -> node.ports.get(((ListenerName) arguments[0]).value());
            case "config" -> config;
            default -> throw outOfReach(SocketServer.class, method);
        });
    }

    public static BrokerServer broker(Cluster cluster, Cluster.Node node) {
        KafkaConfig config = new KafkaConfig(node.settings, false);
        SocketServer socket = socket(node, config);
        Asked asked = new Asked(cluster, node);
        KRaftMetadataCache metadata = stub(KRaftMetadataCache.class, asked::call);
        SharedServer shared = shared();
        GroupCoordinator groups = stub(GroupCoordinator.class, "groupMetadataTopicConfigs", (m, a) -> {
            Properties settings = new Properties();
            settings.put("cleanup.policy", "compact");
            settings.put("compression.type", "producer");
            settings.put("segment.bytes", "" + config.groupCoordinatorConfig().offsetsTopicSegmentBytes());
            return settings;
        });
        KafkaApis apis = stub(KafkaApis.class, "metadataCache", (m, a) -> metadata);
        BrokerLifecycleManager life = stub(BrokerLifecycleManager.class, "initialUnfenceFuture",
            (m, a) -> CompletableFuture.completedFuture(null));
        return stub(BrokerServer.class, (method, arguments) -> switch (method) {
            case "config" -> config;
            case "clusterId" -> cluster.wanted().clusterId;
            case "socketServer" -> socket;
            case "boundPort" -> node.ports.get(((ListenerName) arguments[0]).value());
            case "shutdown" -> done(() -> cluster.stopNode(node.id));
            case "awaitShutdown" -> null;
            case "isShutdown" -> !node.isUp();
            case "startup" -> done(() -> cluster.up(node.id));
            case "brokerState" -> node.isUp() ? BrokerState.RUNNING : BrokerState.NOT_RUNNING;
            case "metadataCache" -> metadata;
            case "sharedServer" -> shared;
            case "groupCoordinator" -> groups;
            case "dataPlaneRequestProcessor" -> apis;
            case "lifecycleManager" -> life;
            case "authorizerPlugin" -> authorizer(config);
            default -> throw outOfReach(BrokerServer.class, method);
        });
    }

    public static ControllerServer controller(Cluster cluster, Cluster.Node node) {
        KafkaConfig config = new KafkaConfig(node.settings, false);
        SocketServer socket = socket(node, config);
        RaftLog log = stub(RaftLog.class, "endOffset", (m, a) -> new LogOffsetMetadata(0));
        var raft = stub(KafkaRaftManager.class, "raftLog", (m, a) -> log);
        Controller ids = stub(Controller.class, "findAllTopicIds",
            (m, a) -> CompletableFuture.completedFuture(topicIds(cluster)));
        return stub(ControllerServer.class, (method, arguments) -> switch (method) {
            case "config" -> config;
            case "clusterId" -> cluster.wanted().clusterId;
            case "socketServer" -> socket;
            case "shutdown" -> done(() -> cluster.stopNode(node.id));
            case "awaitShutdown" -> null;
            case "startup" -> done(() -> cluster.startNode(node.id));
            case "authorizerPlugin" -> authorizer(config);
            case "raftManager" -> raft;
            case "controller" -> ids;
            default -> throw outOfReach(ControllerServer.class, method);
        });
    }

    private static Object done(Runnable action) {
        action.run();
        return null;
    }

    private static Map<String, Uuid> topicIds(Cluster cluster) throws Exception {
        Map<String, Uuid> ids = new HashMap<>();
        try (Admin admin = Admin.create(cluster.clientSettings())) {
            admin.listTopics(new ListTopicsOptions().listInternal(true)).listings().get()
                .forEach(one -> ids.put(one.name(), one.topicId()));
        }
        return ids;
    }

    private static scala.Option<?> authorizer(KafkaConfig config) {
        String name = config.getString("authorizer.class.name");
        if (name != null && !name.isEmpty()) {
            throw Cluster.abort("an authorizer");
        }
        return scala.Option.empty();
    }

    /** Whether a broker has applied the controller's log: nothing on the wire says so, it is given the time for it. */
    private static SharedServer shared() {
        MetadataLoader loader = stub(MetadataLoader.class, "lastAppliedOffset", (m, a) -> {
            Waiting.forBroker();
            return Long.MAX_VALUE;
        });
        return stub(SharedServer.class, "loader", (m, a) -> loader);
    }
}
