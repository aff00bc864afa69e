package harness;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;

/**
 * Ottla: a process a node. Each is its own controller for now, also at the address of a node that is a controller only;
 * such a node is not started.
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
        Properties settings = alone(directory, load(node(directory, id)));
        try (var writer = Files.newBufferedWriter(config)) {
            settings.store(writer, null);
        }
        Format.run(load(directory.resolve("cluster.properties")), settings);
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

    /** A broker whose controller is another node becomes its own, at the controller's address too. */
    private static Properties alone(Path directory, Properties settings) throws IOException {
        if (settings.getProperty("process.roles").contains("controller")) {
            return settings;
        }
        Properties controller = load(nodes(directory, "controller").get(0));
        String address = controller.getProperty("listeners");
        String names = controller.getProperty("controller.listener.names");
        String own = settings.getProperty("listener.security.protocol.map", "");
        String all = names + ":PLAINTEXT";
        if (!own.isEmpty()) {
            all = own.contains(names + ":") ? own : own + "," + all;
        }
        settings.setProperty("process.roles", "broker,controller");
        settings.setProperty("listeners", settings.getProperty("listeners") + "," + address);
        settings.setProperty("controller.listener.names", names);
        settings.setProperty("listener.security.protocol.map", all);
        settings.setProperty("controller.quorum.voters",
            settings.getProperty("node.id") + "@" + address.substring(address.indexOf("//") + 2));
        return settings;
    }

    /** Files of the nodes of one role and no other. */
    private static List<Path> nodes(Path directory, String role) throws IOException {
        List<Path> found = new ArrayList<>();
        try (var files = Files.newDirectoryStream(directory, "node-*.properties")) {
            for (Path file : files) {
                if (load(file).getProperty("process.roles").equals(role)) {
                    found.add(file);
                }
            }
        }
        return found;
    }

    private static List<Integer> brokers(Path directory) throws IOException {
        List<Path> files = new ArrayList<>(nodes(directory, "broker"));
        files.addAll(nodes(directory, "broker,controller"));
        List<Integer> ids = new ArrayList<>();
        for (Path file : files) {
            ids.add(Integer.parseInt(load(file).getProperty("node.id")));
        }
        return ids;
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
