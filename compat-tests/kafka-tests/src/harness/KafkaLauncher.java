package harness;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;

/** Real Kafka: one process of `oracle.Nodes` runs the nodes of all clusters, since a fresh JVM a node takes seconds. */
final class KafkaLauncher implements Launcher {
    private final PrintStream orders;
    private final BufferedReader answers;

    KafkaLauncher() throws IOException {
        String work = System.getenv("WORK");
        Process process = new ProcessBuilder("java", "-Xmx1500m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Dlog=" + work + "/oracle.log", "-Dlog4j2.configurationFile=" + System.getProperty("log4j2.configurationFile"),
            "-cp", System.getProperty("oracle.classes"), "oracle.Nodes")
            .redirectError(Path.of(work, "oracle.stderr").toFile()).start();
        orders = new PrintStream(process.getOutputStream(), true);
        answers = process.inputReader();
    }

    /** Sends an order; what the process prints before its answer is not for us. */
    private synchronized void order(String... words) throws IOException {
        orders.println(String.join(" ", words));
        String line;
        while ((line = answers.readLine()) != null) {
            if (line.equals("done")) {
                return;
            }
            if (line.startsWith("failed ")) {
                throw new IOException(line);
            }
        }
        throw new IOException("Kafka's process has ended");
    }

    @Override
    public void start(Path directory) throws IOException {
        order("start", directory.toString());
    }

    @Override
    public void startNode(Path directory, int id) throws IOException {
        order("start-node", directory.toString(), "" + id);
    }

    @Override
    public void stopNode(Path directory, int id) throws IOException {
        order("stop-node", directory.toString(), "" + id);
    }

    @Override
    public void stop(Path directory) throws IOException {
        order("stop", directory.toString());
    }
}
