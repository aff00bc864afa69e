package harness;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * Ottla: a process a node. Each is its own controller for now, so nodes that are controllers only are not started, and
 * what a broker's settings say of them is left away. Feature levels of `cluster.properties` cannot be told to it yet.
 */
final class OttlaLauncher implements Launcher {
    private static final long PATIENCE_MS = 60_000;

    private final Path binary;
    private final Map<Path, Process> running = new HashMap<>();

    OttlaLauncher(Path binary) {
        this.binary = binary;
        Runtime.getRuntime().addShutdownHook(new Thread(() -> running.values().forEach(Process::destroyForcibly)));
    }

    @Override
    public void start(Path directory) throws IOException {
        for (int id : brokers(directory)) {
            startNode(directory, id);
        }
    }

    @Override
    public void startNode(Path directory, int id) throws IOException {
        Path room = Files.createDirectories(directory.resolve("ottla-" + id));
        Path log = room.resolve("log");
        Path config = room.resolve("server.properties");
        Properties settings = alone(load(node(directory, id)));
        try (var writer = Files.newBufferedWriter(config)) {
            settings.store(writer, null);
        }
        format(directory, id, settings);
        long seen = Files.exists(log) ? Files.size(log) : 0;
        Process process = new ProcessBuilder(binary.toString(), "--config", config.toString(), "--http-port", "-1")
            .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
        running.put(room, process);
        awaitReady(process, log, (int) seen);
    }

    /** Until the line that says so stands in the log. */
    private static void awaitReady(Process process, Path log, int seen) throws IOException {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (System.currentTimeMillis() < end) {
            String text = Files.readString(log);
            String fresh = text.substring(Math.min(seen, text.length()));
            if (fresh.contains("ottla ready {")) {
                return;
            }
            if (!process.isAlive()) {
                throw new IOException("Ottla ended while starting: " + fresh);
            }
            pause();
        }
        throw new IOException("Ottla was not ready; log: " + log);
    }

    @Override
    public void stopNode(Path directory, int id) throws IOException {
        end(directory.resolve("ottla-" + id), false);
    }

    @Override
    public void stop(Path directory) throws IOException {
        for (int id : brokers(directory)) {
            end(directory.resolve("ottla-" + id), true);
        }
    }

    private void end(Path room, boolean atOnce) throws IOException {
        Process process = running.remove(room);
        if (process == null) {
            return;
        }
        if (atOnce) {
            process.destroyForcibly();
        } else {
            process.destroy();
        }
        try {
            if (!process.waitFor(PATIENCE_MS, TimeUnit.MILLISECONDS)) {
                process.destroyForcibly();
                throw new IOException("Ottla did not stop: " + room);
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    /** The id of the cluster, which `kafka-storage format` writes for Kafka. */
    private static void format(Path directory, int id, Properties settings) throws IOException {
        String cluster = load(directory.resolve("cluster.properties")).getProperty("cluster.id");
        String logs = settings.getProperty("log.dirs", settings.getProperty("log.dir"));
        for (String log : logs.split(",")) {
            Path file = Files.createDirectories(Path.of(log)).resolve("meta.properties");
            if (!Files.exists(file)) {
                Files.write(file, List.of("version=1", "cluster.id=" + cluster, "node.id=" + id));
            }
        }
    }

    /** A broker whose controller is another node becomes its own. */
    private static Properties alone(Properties settings) {
        if (settings.getProperty("process.roles").contains("controller")) {
            return settings;
        }
        List<String> controllers = List.of(settings.getProperty("controller.listener.names", "").split(","));
        for (String key : List.of("process.roles", "controller.quorum.voters", "controller.quorum.bootstrap.servers",
            "controller.listener.names")) {
            settings.remove(key);
        }
        String own = Arrays.stream(settings.getProperty("listeners").split(","))
            .filter(one -> !controllers.contains(one.trim().split("://")[0])).collect(Collectors.joining(","));
        settings.setProperty("listeners", own);
        return settings;
    }

    private static List<Integer> brokers(Path directory) throws IOException {
        try (var files = Files.list(directory)) {
            List<Path> nodes = files.filter(file -> file.getFileName().toString().startsWith("node-")).toList();
            List<Integer> ids = new java.util.ArrayList<>();
            for (Path node : nodes) {
                Properties settings = load(node);
                if (settings.getProperty("process.roles").contains("broker")) {
                    ids.add(Integer.parseInt(settings.getProperty("node.id")));
                }
            }
            return ids;
        }
    }

    private static Path node(Path directory, int id) {
        return directory.resolve("node-" + id + ".properties");
    }

    private static Properties load(Path file) throws IOException {
        Properties properties = new Properties();
        try (var reader = Files.newBufferedReader(file)) {
            properties.load(reader);
        }
        return properties;
    }

    private static void pause() {
        try {
            Thread.sleep(5);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
