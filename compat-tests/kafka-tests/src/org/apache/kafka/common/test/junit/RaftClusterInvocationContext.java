package org.apache.kafka.common.test.junit;

import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;

import harness.Asked;
import harness.Cluster;
import harness.Stubs;
import harness.Waiting;

import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

/** Stands before Kafka's class of this name on the class path: gives each @ClusterTest a cluster in other processes. */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private static final Set<String> SEEN = new HashSet<>();
    private final String name;
    private final ClusterConfig config;
    private final boolean combined;

    public RaftClusterInvocationContext(String name, ClusterConfig config, boolean combined) {
        this.name = name;
        this.config = config;
        // One test in both layouts of controllers says nothing new about a cluster elsewhere: it runs once, combined.
        this.combined = combined || config.clusterTypes().contains(Type.CO_KRAFT);
    }

    @Override
    public String getDisplayName(int index) {
        return name + " [" + index + "]";
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        Instance instance = new Instance(config, combined);
        ExecutionCondition once = context -> {
            String test = context.getRequiredTestClass().getName() + context.getRequiredTestMethod();
            return SEEN.add(test + key()) ? ConditionEvaluationResult.enabled("")
                : ConditionEvaluationResult.disabled("duplicate");
        };
        BeforeEachCallback before = context -> {
            if (config.isAutoStart()) {
                instance.start();
            }
        };
        AfterTestExecutionCallback afterTest = context -> instance.stop();
        AfterEachCallback after = context -> instance.stop();
        return List.of(once, before, afterTest, after, new ClusterInstanceParameterResolver(instance));
    }

    private String key() {
        return config.numBrokers() + "/" + config.numControllers() + "/" + config.numDisksPerBroker() + "/"
            + config.serverProperties() + config.perServerOverrideProperties() + config.features()
            + config.metadataVersion() + config.brokerSecurityProtocol() + config.brokerListenerName() + config.tags()
            + config.standalone() + config.isAutoStart();
    }

    private static final class Instance implements ClusterInstance {
        private final ClusterConfig config;
        private final boolean combined;
        private Cluster cluster;
        private boolean started;
        private boolean stopped;
        private Map<Integer, KafkaBroker> brokers;
        private Map<Integer, ControllerServer> controllers;

        Instance(ClusterConfig config, boolean combined) {
            this.config = config;
            this.combined = combined;
        }

        private Cluster cluster() {
            if (cluster == null) {
                cluster = Cluster.of(wanted());
            }
            return cluster;
        }

        private Cluster.Wanted wanted() {
            Cluster.Wanted wanted = new Cluster.Wanted();
            wanted.combined = combined;
            wanted.standalone = config.standalone();
            wanted.brokers = config.numBrokers();
            wanted.disks = config.numDisksPerBroker();
            wanted.brokerListener = config.brokerListenerName().value();
            wanted.controllerListener = config.controllerListenerName().value();
            wanted.brokerProtocol = config.brokerSecurityProtocol().name;
            wanted.settings.putAll(config.serverProperties());
            wanted.ofNode = config.perServerOverrideProperties();
            MetadataVersion metadata = config.metadataVersion();
            wanted.features.put(MetadataVersion.FEATURE_NAME, metadata.featureLevel());
            for (Feature feature : Feature.PRODUCTION_FEATURES) {
                wanted.features.put(feature.featureName(), feature.defaultLevel(metadata));
            }
            config.features().forEach((feature, level) -> wanted.features.put(feature.featureName(), level));
            return wanted;
        }

        @Override
        public void start() {
            if (!started) {
                started = true;
                cluster().start();
            }
        }

        @Override
        public boolean started() {
            return started;
        }

        @Override
        public void stop() {
            if (!stopped && cluster != null) {
                stopped = true;
                cluster.close();
            }
        }

        @Override
        public boolean stopped() {
            return stopped;
        }

        @Override
        public void shutdownBroker(int id) {
            cluster().stopNode(id);
        }

        @Override
        public void startBroker(int id) {
            cluster().startNode(id);
        }

        @Override
        public void waitForReadyBrokers() {
            cluster().awaitBrokers();
        }

        @Override
        public Type type() {
            return combined ? Type.CO_KRAFT : Type.KRAFT;
        }

        @Override
        public ClusterConfig config() {
            return config;
        }

        @Override
        public String clusterId() {
            return cluster().wanted().clusterId;
        }

        @Override
        public ListenerName clientListener() {
            return config.brokerListenerName();
        }

        @Override
        public ListenerName controllerListenerName() {
            return config.controllerListenerName();
        }

        @Override
        public String bootstrapServers() {
            return cluster().bootstrap();
        }

        @Override
        public String bootstrapControllers() {
            return cluster().controllerBootstrap();
        }

        @Override
        public Set<Integer> controllerIds() {
            return cluster().controllers().map(node -> node.id).collect(Collectors.toCollection(TreeSet::new));
        }

        @Override
        public Set<Integer> brokerIds() {
            return cluster().brokers().map(node -> node.id).collect(Collectors.toCollection(TreeSet::new));
        }

        @Override
        public List<Integer> brokerBoundPorts() {
            return cluster().brokers().map(node -> node.ports.get(config.brokerListenerName().value())).toList();
        }

        @Override
        public List<Integer> controllerBoundPorts() {
            return cluster().controllers().map(node -> cluster().controllerPort(node)).toList();
        }

        @Override
        public Optional<FaultHandlerException> firstFatalException() {
            return Optional.empty();
        }

        @Override
        public Optional<FaultHandlerException> firstNonFatalException() {
            return Optional.empty();
        }

        @Override
        public Set<GroupProtocol> supportedGroupProtocols() {
            Short level = cluster().wanted().features.get("group.version");
            return level != null && level == 0 ? Set.of(GroupProtocol.CLASSIC)
                : Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER);
        }

        @Override
        public Map<Integer, KafkaBroker> brokers() {
            if (brokers == null) {
                brokers = new TreeMap<>();
                cluster().brokers().forEach(node -> brokers.put(node.id, Stubs.broker(cluster, node)));
            }
            return Collections.unmodifiableMap(brokers);
        }

        @Override
        public Map<Integer, ControllerServer> controllers() {
            if (controllers == null) {
                controllers = new TreeMap<>();
                cluster().controllers().forEach(node -> controllers.put(node.id, Stubs.controller(cluster, node)));
            }
            return Collections.unmodifiableMap(controllers);
        }

        /** With as many replicas as there are brokers at most. */
        @Override
        public void createTopic(String topic, int partitions, short replicas, Map<String, String> settings)
            throws InterruptedException {
            short possible = (short) Math.min(replicas, Cluster.BROKERS_MAX);
            ClusterInstance.super.createTopic(topic, partitions, possible, settings);
        }

        /** All on the broker that there is. */
        @Override
        public void createTopicWithAssignment(String topic, Map<Integer, List<Integer>> assignment)
            throws InterruptedException {
            Map<Integer, List<Integer>> lowered = new TreeMap<>();
            assignment.keySet().forEach(partition -> lowered.put(partition, List.of(0)));
            ClusterInstance.super.createTopicWithAssignment(topic, lowered);
        }

        @Override
        public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
            Waiting.until(topic + " is led", () -> cluster.brokers().filter(Cluster.Node::isUp)
                .allMatch(node -> new Asked(cluster, node).led(topic, partitions)));
        }

        @Override
        public void waitTopicDeletion(String topic) throws InterruptedException {
            Waiting.until(topic + " is gone", () -> cluster.brokers().filter(Cluster.Node::isUp)
                .allMatch(node -> new Asked(cluster, node).partitions(topic) == 0));
        }

        @Override
        public void ensureConsistentMetadata() throws InterruptedException {
            Waiting.forBroker();
        }

        @Override
        public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers)
            throws InterruptedException {
            Waiting.forBroker();
        }

        @Override
        public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) {
            throw Cluster.abort("an authorizer");
        }
    }
}
