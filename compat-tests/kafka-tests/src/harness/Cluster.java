package harness;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.apache.kafka.clients.admin.Admin;
import org.opentest4j.TestAbortedException;

/**
 * A cluster in other processes, started for one test and removed after it. It has one broker, however many a test asks
 * for: Ottla has no more yet. What Kafka does is recorded under the same condition.
 */
public final class Cluster implements AutoCloseable {
    public static final short BROKERS_MAX = 1;
    private static final long PATIENCE_MS = 60_000;
    /** How many brokers internal topics need. */
    private static final List<String> REPLICATION = List.of("offsets.topic.replication.factor",
        "transaction.state.log.replication.factor", "transaction.state.log.min.isr",
        "share.coordinator.state.topic.replication.factor", "share.coordinator.state.topic.min.isr");
    private static final int FIRST_CONTROLLER = 3000;
    private static Launcher launcher;
    private static int count;
    /** What a test touched that only exists inside a broker's process; such a test is skipped, whatever it says. */
    private static volatile String untouchable;

    /** What a test asked for. */
    public static final class Wanted {
        /** Whether the brokers are the controllers too. */
        public boolean combined;
        public boolean standalone;
        public int brokers = 1;
        public int disks = 1;
        public String brokerListener = "EXTERNAL";
        public String controllerListener = "CONTROLLER";
        public String brokerProtocol = "PLAINTEXT";
        public String clusterId = org.apache.kafka.common.Uuid.randomUuid().toString();
        public Map<String, String> settings = new TreeMap<>();
        public Map<Integer, Map<String, String>> ofNode = Map.of();
        public Map<String, Short> features = new TreeMap<>();
    }

    public static final class Node {
        public final int id;
        public final TreeMap<String, String> settings = new TreeMap<>();
        /** By the names of listeners. */
        public final Map<String, Integer> ports = new LinkedHashMap<>();
        private volatile boolean up;

        Node(int id) {
            this.id = id;
        }

        boolean isBroker() {
            return settings.get("process.roles").contains("broker");
        }

        boolean isController() {
            return settings.get("process.roles").contains("controller");
        }

        public boolean isUp() {
            return up;
        }
    }

    private final SortedMap<Integer, Node> nodes = new TreeMap<>();
    private final Wanted wanted;
    private final Path directory;
    private boolean running;

    static void launchWith(Launcher with) {
        launcher = with;
    }

    /** Ends the running test as skipped. */
    public static TestAbortedException abort(String what) {
        untouchable = what;
        return new TestAbortedException("needs " + what);
    }

    static String untouchable() {
        return untouchable;
    }

    static void forgetUntouchable() {
        untouchable = null;
    }

    /** Without nodes; `node` adds them. */
    public Cluster(Wanted wanted) {
        this.wanted = wanted;
        refuse(wanted.settings);
        wanted.ofNode.values().forEach(Cluster::refuse);
        if (!wanted.brokerProtocol.equals("PLAINTEXT")) {
            throw abort("a listener that is not PLAINTEXT");
        }
        try {
            directory = Files.createDirectories(Path.of(System.getenv("WORK"), "cluster-" + ++count));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** From counts of brokers and controllers; ids are those that Kafka's tests expect: from 0 and from 3000. */
    public static Cluster of(Wanted wanted) {
        if (wanted.standalone) {
            throw abort("a quorum whose voters change");
        }
        Cluster cluster = new Cluster(wanted);
        for (int id = 0; id < Math.min(wanted.brokers, BROKERS_MAX); id++) {
            cluster.add(id, true, wanted.combined);
        }
        if (!wanted.combined || wanted.brokers == 0) {
            cluster.add(FIRST_CONTROLLER, false, true);
        }
        cluster.assignPorts();
        return cluster;
    }

    private void add(int id, boolean broker, boolean controller) {
        Map<String, String> settings = node(id).settings;
        settings.putAll(wanted.settings);
        settings.put("process.roles", broker && controller ? "broker,controller" : broker ? "broker" : "controller");
        settings.put("node.id", "" + id);
        List<String> logs = new ArrayList<>();
        for (int disk = 0; disk < (broker ? wanted.disks : 1); disk++) {
            logs.add(log(id, disk));
        }
        settings.put("log.dirs", String.join(",", logs));
        settings.putIfAbsent("listener.security.protocol.map",
            wanted.brokerListener + ":PLAINTEXT," + wanted.controllerListener + ":PLAINTEXT");
        String clients = wanted.brokerListener + "://localhost:0";
        String controllers = wanted.controllerListener + "://localhost:0";
        if (broker) {
            settings.putIfAbsent("listeners", controller ? clients + "," + controllers : clients);
        } else {
            settings.put("listeners", controllers);
        }
        settings.putIfAbsent("inter.broker.listener.name", wanted.brokerListener);
        settings.putIfAbsent("controller.listener.names", wanted.controllerListener);
        settings.putIfAbsent("log.cleaner.dedupe.buffer.size", "2097152");
        settings.putIfAbsent("unstable.api.versions.enable", "true");
        settings.putIfAbsent("unstable.feature.versions.enable", "true");
        settings.putAll(wanted.ofNode.getOrDefault(id, Map.of()));
        lower(settings);
    }

    public String log(int id, int disk) {
        return directory.resolve("logs-" + id + "-" + disk).toString();
    }

    /** Settings that ask for more brokers than there are. */
    public static void lower(Map<String, String> settings) {
        REPLICATION.forEach(key -> settings.put(key, "" + BROKERS_MAX));
        for (String key : List.of("default.replication.factor", "min.insync.replicas")) {
            settings.computeIfPresent(key, (k, v) -> "" + Math.min(Integer.parseInt(v), BROKERS_MAX));
        }
    }

    /** Replaces each port 0 of a listener by a free one, then says who votes. */
    public void assignPorts() {
        for (Node node : nodes.values()) {
            for (String key : List.of("listeners", "advertised.listeners")) {
                node.settings.computeIfPresent(key, (k, text) -> Stream.of(text.split(","))
                    .map(one -> withPort(node, one.trim())).collect(Collectors.joining(",")));
            }
        }
        String voters = nodes.values().stream().filter(Node::isController)
            .map(node -> node.id + "@localhost:" + controllerPort(node)).collect(Collectors.joining(","));
        nodes.values().forEach(node -> node.settings.putIfAbsent("controller.quorum.voters", voters));
    }

    private static String withPort(Node node, String listener) {
        int colon = listener.lastIndexOf(':');
        String name = listener.substring(0, listener.indexOf("://"));
        int port = Integer.parseInt(listener.substring(colon + 1));
        if (launcher.given() != null) {
            port = Integer.parseInt(launcher.given().split(":")[1]);
        } else if (port == 0) {
            port = node.ports.containsKey(name) ? node.ports.get(name) : Ports.free();
        }
        node.ports.put(name, port);
        return listener.substring(0, colon + 1) + port;
    }

    /** A broker in another process cannot load a class out of Kafka's test jars. */
    public static void refuse(Map<String, String> settings) {
        settings.forEach((key, value) -> {
            if (value == null || !(key.contains("class") || key.contains("reporters"))) {
                return;
            }
            for (String name : value.replaceFirst("^class ", "").split(",")) {
                String path = name.trim().replace('.', '/') + ".class";
                var source = Cluster.class.getClassLoader().getResource(path);
                if (source != null && source.toString().contains("-test.jar")) {
                    throw abort("the broker's process: " + key + "=" + name);
                }
            }
        });
    }

    /** Made when it is not there. */
    public Node node(int id) {
        return nodes.computeIfAbsent(id, Node::new);
    }

    public Stream<Node> brokers() {
        return nodes.values().stream().filter(Node::isBroker);
    }

    public Stream<Node> controllers() {
        return nodes.values().stream().filter(Node::isController);
    }

    public Wanted wanted() {
        return wanted;
    }

    public int controllerPort(Node node) {
        return node.ports.get(node.settings.get("controller.listener.names").split(",")[0]);
    }

    public synchronized void start() {
        if (running) {
            return;
        }
        running = true;
        order(() -> launcher.start(directory));
        nodes.values().forEach(node -> node.up = true);
        awaitBrokers();
    }

    /** A test tells one broker to start: the first time that is the whole cluster. */
    public synchronized void up(int id) {
        start();
        startNode(id);
    }

    public synchronized void startNode(int id) {
        if (!nodes.get(id).up) {
            order(() -> launcher.startNode(directory, id));
            nodes.get(id).up = true;
            awaitBrokers();
        }
    }

    public synchronized void stopNode(int id) {
        if (nodes.get(id).up) {
            order(() -> launcher.stopNode(directory, id));
            nodes.get(id).up = false;
        }
    }

    private interface Order {
        void carryOut() throws IOException;
    }

    private void order(Order order) {
        try {
            write();
            order.carryOut();
        } catch (IOException e) {
            throw new IllegalStateException(e.getMessage(), e);
        }
    }

    private void write() throws IOException {
        Properties all = new Properties();
        all.put("cluster.id", wanted.clusterId);
        wanted.features.forEach((name, level) -> all.put("feature." + name, "" + level));
        store(all, "cluster.properties");
        for (Node node : nodes.values()) {
            Properties settings = new Properties();
            settings.putAll(node.settings);
            store(settings, "node-" + node.id + ".properties");
        }
    }

    private void store(Properties properties, String name) throws IOException {
        try (var writer = Files.newBufferedWriter(directory.resolve(name))) {
            properties.store(writer, null);
        }
    }

    /** Until every running broker is known to the cluster. */
    public void awaitBrokers() {
        long wantedBrokers = brokers().filter(node -> node.up).count();
        long end = System.currentTimeMillis() + PATIENCE_MS;
        Exception last = null;
        try (Admin admin = Admin.create(clientSettings())) {
            while (wantedBrokers > 0 && System.currentTimeMillis() < end) {
                try {
                    if (admin.describeCluster().nodes().get(10, TimeUnit.SECONDS).size() >= wantedBrokers) {
                        return;
                    }
                } catch (java.util.concurrent.ExecutionException | java.util.concurrent.TimeoutException e) {
                    last = e;
                }
                Thread.sleep(20);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        if (wantedBrokers > 0) {
            throw new IllegalStateException("the cluster does not serve", last);
        }
    }

    public Map<String, Object> clientSettings() {
        return new HashMap<>(Map.of("bootstrap.servers", bootstrap()));
    }

    public String bootstrap() {
        return brokers().map(node -> "localhost:" + node.ports.get(wanted.brokerListener))
            .collect(Collectors.joining(","));
    }

    public String controllerBootstrap() {
        return controllers().map(node -> "localhost:" + controllerPort(node)).collect(Collectors.joining(","));
    }

    @Override
    public synchronized void close() {
        if (running) {
            running = false;
            nodes.values().forEach(node -> node.up = false);
            order(() -> launcher.stop(directory));
        }
        if (!Boolean.getBoolean("keep")) {
            remove();
        }
    }

    private void remove() {
        try (var files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        } catch (IOException | java.io.UncheckedIOException e) {
            System.err.println(directory + " stays: " + e);
        }
    }
}
