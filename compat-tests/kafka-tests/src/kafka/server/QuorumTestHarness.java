package kafka.server;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import kafka.integration.KafkaServerTestHarness;
import kafka.utils.Logging;
import kafka.utils.TestInfoUtils;

import harness.Cluster;
import harness.Stubs;

import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.MockFaultHandler;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.params.provider.Arguments;

import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Stands before Kafka's class of this name on the class path, the root of KafkaServerTestHarness and
 * IntegrationTestHarness: the controller and the first broker that a test makes are nodes of a cluster in other
 * processes; all more brokers are the first one again.
 */
public abstract class QuorumTestHarness implements Logging {
    private static final String CONTROLLER_ID = "1000";

    private final MockFaultHandler faults = new MockFaultHandler("external");
    private TestInfo info;
    private QuorumImplementation implementation;
    private KafkaBroker broker;
    private int brokerId;
    private Cluster cluster;
    private ControllerServer controller;
    private com.typesafe.scalalogging.Logger logger;
    private String ident = "";

    private static Stream<Arguments> protocols(GroupProtocol... protocols) {
        return Arrays.stream(protocols).map(one -> Arguments.of(one.name().toLowerCase(Locale.ROOT)));
    }

    public static Stream<Arguments> getTestGroupProtocolParametersAll() {
        return protocols(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER);
    }

    public static Stream<Arguments> getTestGroupProtocolParametersClassicGroupProtocolOnly() {
        return protocols(GroupProtocol.CLASSIC);
    }

    public static Stream<Arguments> getTestGroupProtocolParametersConsumerGroupProtocolOnly() {
        return protocols(GroupProtocol.CONSUMER);
    }

    public static void verifyNoUnexpectedThreads(String context) { }

    public static void setUpClass() { }

    public static void tearDownClass() { }

    @Override
    public com.typesafe.scalalogging.Logger logger() {
        if (logger == null) {
            var underlying = org.slf4j.LoggerFactory.getLogger(getClass().getName());
            logger = com.typesafe.scalalogging.Logger$.MODULE$.apply(underlying);
        }
        return logger;
    }

    @Override
    public String logIdent() {
        return ident;
    }

    @Override
    public void logIdent_$eq(String text) {
        ident = text;
    }

    public SecurityProtocol controllerListenerSecurityProtocol() {
        return SecurityProtocol.PLAINTEXT;
    }

    public Seq<SecurityProtocol> extraControllerSecurityProtocols() {
        return seq(List.of());
    }

    public scala.collection.Seq<Properties> kraftControllerConfigs(TestInfo test) {
        return seq(List.of(new Properties()));
    }

    public MetadataVersion metadataVersion() {
        return MetadataVersion.latestProduction();
    }

    public void addFormatterSettings(Formatter formatter) { }

    public QuorumImplementation implementation() {
        return implementation;
    }

    public void implementation_$eq(QuorumImplementation other) {
        implementation = other;
    }

    public ControllerServer controllerServer() {
        return controller;
    }

    public scala.collection.Seq<ControllerServer> controllerServers() {
        return seq(List.of(controller));
    }

    public QuorumTestHarnessFaultHandlerFactory faultHandlerFactory() {
        throw Cluster.abort("the broker's process: faultHandlerFactory");
    }

    public MockFaultHandler faultHandler() {
        return faults;
    }

    public Option<GroupProtocol> maybeGroupProtocolSpecified() {
        return TestInfoUtils.maybeGroupProtocolSpecified(info);
    }

    public GroupProtocol groupProtocolFromTestParameters() {
        return maybeGroupProtocolSpecified().get();
    }

    private static <T> Seq<T> seq(List<T> list) {
        return CollectionConverters.asScala(list).toSeq();
    }

    @BeforeEach
    public void setUp(TestInfo test) {
        info = test;
        newKRaftQuorum(test, new Properties());
    }

    /** Returns null: what Kafka's gives is in `implementation`. */
    public KRaftQuorumImplementation newKRaftQuorum(TestInfo test, Properties overrides) {
        cluster = new Cluster(wanted(test));
        var configs = kraftControllerConfigs(test);
        if (configs.size() > 1) {
            throw Cluster.abort("several controllers");
        }
        if (controllerListenerSecurityProtocol() != SecurityProtocol.PLAINTEXT) {
            throw Cluster.abort("a listener that is not PLAINTEXT");
        }
        Map<String, String> settings = strings(configs.head());
        settings.putAll(strings(overrides));
        settings.put("process.roles", "controller");
        settings.putIfAbsent("node.id", CONTROLLER_ID);
        settings.putIfAbsent("listener.security.protocol.map", "CONTROLLER:PLAINTEXT");
        settings.putIfAbsent("listeners", "CONTROLLER://localhost:0");
        settings.putIfAbsent("controller.listener.names", "CONTROLLER");
        settings.remove("metadata.log.dir");
        int id = Integer.parseInt(settings.get("node.id"));
        settings.put("log.dirs", cluster.log(id, 0));
        controller = Stubs.controller(cluster, node(id, settings));
        implementation = new External();
        return null;
    }

    private Cluster.Wanted wanted(TestInfo test) {
        Cluster.Wanted wanted = new Cluster.Wanted();
        Map<String, Short> features = wanted.features;
        features.put(MetadataVersion.FEATURE_NAME, metadataVersion().featureLevel());
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            features.put(feature.featureName(), feature.defaultLevel(metadataVersion()));
        }
        if (!TestInfoUtils.isTransactionV2Enabled(test)) {
            features.put("transaction.version", (short) 1);
        }
        addFormatterSettings(new Formatter() {
            @Override
            public Formatter setFeatureLevel(String name, Short level) {
                features.put(name, level);
                return this;
            }

            @Override
            public Formatter setScramArguments(List<String> arguments) {
                throw Cluster.abort("a listener that is not PLAINTEXT");
            }

            @Override
            public Formatter setReleaseVersion(MetadataVersion version) {
                features.put(MetadataVersion.FEATURE_NAME, version.featureLevel());
                return this;
            }

            @Override
            public Formatter setPrintStream(PrintStream stream) {
                return this;
            }
        });
        return wanted;
    }

    private static String text(Object value) {
        if (value instanceof Class<?> type) {
            return type.getName();
        }
        if (value instanceof Password password) {
            return password.value();
        }
        if (value instanceof Collection<?> list) {
            return list.stream().map(QuorumTestHarness::text).collect(Collectors.joining(","));
        }
        return value.toString();
    }

    private static Map<String, String> strings(Map<?, ?> map) {
        Map<String, String> strings = new TreeMap<>();
        map.forEach((key, value) -> {
            if (value != null) {
                strings.put(key.toString(), text(value));
            }
        });
        return strings;
    }

    private Cluster.Node node(int id, Map<String, String> settings) {
        Cluster.refuse(settings);
        Cluster.Node node = cluster.node(id);
        if (!node.isUp()) {
            node.settings.clear();
            node.settings.putAll(settings);
            node.settings.putIfAbsent("unstable.api.versions.enable", "true");
            node.settings.putIfAbsent("unstable.feature.versions.enable", "true");
            node.settings.remove("controller.quorum.voters");
            cluster.assignPorts();
        }
        return node;
    }

    private Cluster.Node brokerNode(KafkaConfig config) {
        Map<String, String> settings = strings(config.originals());
        settings.put("process.roles", "broker");
        settings.putIfAbsent("node.id", "" + config.brokerId());
        Cluster.lower(settings);
        return node(config.brokerId(), settings);
    }

    private final class External implements QuorumImplementation {
        @Override
        public KafkaBroker createBroker(KafkaConfig config, Time time, boolean startup, Option<String> prefix) {
            if (broker == null) {
                readListener();
                brokerId = config.brokerId();
            }
            if (config.brokerId() == brokerId) { // perhaps with other settings than before
                broker = Stubs.broker(cluster, brokerNode(config));
            }
            if (startup) {
                broker.startup();
            }
            return broker;
        }

        private void readListener() {
            if (!(QuorumTestHarness.this instanceof KafkaServerTestHarness test)) {
                return;
            }
            if (test.securityProtocol() != SecurityProtocol.PLAINTEXT) {
                throw Cluster.abort("a listener that is not PLAINTEXT");
            }
            cluster.wanted().brokerListener = test.listenerName().value();
        }

        @Override
        public Time createBroker$default$2() {
            return Time.SYSTEM;
        }

        @Override
        public boolean createBroker$default$3() {
            return true;
        }

        @Override
        public Option<String> createBroker$default$4() {
            return Option.empty();
        }

        @Override
        public void shutdown() {
            cluster.close();
        }
    }

    public KafkaBroker createBroker(KafkaConfig config, Time time, boolean startup, Option<String> prefix) {
        return implementation.createBroker(config, time, startup, prefix);
    }

    public Time createBroker$default$2() {
        return Time.SYSTEM;
    }

    public boolean createBroker$default$3() {
        return true;
    }

    public Option<String> createBroker$default$4() {
        return Option.empty();
    }

    public void shutdownKRaftController() {
        controller.shutdown();
    }

    @AfterEach
    public void tearDown() {
        if (cluster != null) {
            cluster.close();
        }
    }
}
