package oracle;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import kafka.server.BrokerServer;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;

import harness.Format;

import org.apache.kafka.common.utils.Time;

/**
 * Nodes of the Apache Kafka on the class path, all in this one process. A line on the input is an order,
 * `start|stop DIR` or `start-node|stop-node DIR ID`; the answer is `done` or `failed WHY`. Ends with its input.
 */
public final class Nodes {
    private static final Map<String, KafkaRaftServer> RUNNING = new ConcurrentHashMap<>();
    private static final ExecutorService POOL = Executors.newCachedThreadPool();
    private static final long START_SECONDS = 100;
    private static final long STOP_SECONDS = 20;

    private Nodes() { }

    public static void main(String[] arguments) throws Exception {
        forbidExit();
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        String order;
        while ((order = orders.readLine()) != null) {
            try {
                carryOut(order.split(" "));
                answers.println("done");
            } catch (Exception e) {
                e.printStackTrace();
                answers.println("failed " + e);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void carryOut(String[] words) throws Exception {
        Path directory = Path.of(words[1]);
        switch (words[0]) {
            case "start" -> start(directory);
            case "start-node" -> startNode(directory, words[2]);
            case "stop-node" -> {
                KafkaRaftServer server = RUNNING.remove(directory + "/" + words[2]);
                if (server != null) {
                    down(server);
                }
            }
            case "stop" -> stop(directory);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void start(Path directory) throws Exception {
        List<Future<Void>> starting = new ArrayList<>();
        try (var files = Files.newDirectoryStream(directory, "node-*.properties")) {
            for (Path file : files) {
                String id = file.getFileName().toString().replaceAll("\\D", "");
                starting.add(POOL.submit(() -> {
                    startNode(directory, id);
                    return null;
                }));
            }
        }
        for (Future<?> one : starting) {
            one.get(START_SECONDS, TimeUnit.SECONDS);
        }
    }

    /** The whole cluster at once: brokers without handing anything over, then what is left of the nodes. */
    private static void stop(Path directory) throws Exception {
        List<KafkaRaftServer> servers = new ArrayList<>();
        for (String key : RUNNING.keySet()) {
            if (key.startsWith(directory + "/")) {
                servers.add(RUNNING.remove(key));
            }
        }
        together(servers.stream().map(server -> (Callable<Void>) () -> {
            hard(server);
            return null;
        }).toList());
        together(servers.stream().map(server -> (Callable<Void>) () -> {
            down(server);
            return null;
        }).toList());
    }

    private static void together(List<Callable<Void>> tasks) throws Exception {
        for (Future<Void> one : tasks.stream().map(POOL::submit).toList()) {
            try {
                one.get(STOP_SECONDS, TimeUnit.SECONDS);
            } catch (TimeoutException e) {
                System.err.println("a node stops slowly");
            }
        }
    }

    private static void down(KafkaRaftServer server) {
        server.shutdown();
        server.awaitShutdown();
    }

    private static void hard(KafkaRaftServer server) throws ReflectiveOperationException {
        var field = KafkaRaftServer.class.getDeclaredField("broker");
        field.setAccessible(true);
        var broker = (scala.Option<?>) field.get(server);
        if (broker.isDefined()) {
            ((BrokerServer) broker.get()).shutdown(Duration.ZERO);
        }
    }

    private static void startNode(Path directory, String id) throws Exception {
        Properties settings = load(directory.resolve("node-" + id + ".properties"));
        Format.run(load(directory.resolve("cluster.properties")), settings);
        KafkaRaftServer server = new KafkaRaftServer(new KafkaConfig(settings, false), Time.SYSTEM);
        RUNNING.put(directory + "/" + id, server);
        try {
            server.startup();
        } catch (Throwable e) {
            RUNNING.remove(directory + "/" + id);
            server.shutdown();
            throw e;
        }
    }

    private static Properties load(Path file) throws IOException {
        Properties properties = new Properties();
        try (var reader = Files.newBufferedReader(file)) {
            properties.load(reader);
        }
        return properties;
    }

    /** A node that wants to end the process must not: others live in it. */
    private static void forbidExit() throws ReflectiveOperationException {
        Class<?> exit = Class.forName("org.apache.kafka.common.utils.internals.Exit");
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object refuse = Proxy.newProxyInstance(procedure.getClassLoader(), new Class<?>[] {procedure}, (p, m, a) -> {
            throw new IllegalStateException("a node wants to exit");
        });
        exit.getMethod("setHaltProcedure", procedure).invoke(null, refuse);
        exit.getMethod("setExitProcedure", procedure).invoke(null, refuse);
    }
}
