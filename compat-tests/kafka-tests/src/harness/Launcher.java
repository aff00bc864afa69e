package harness;

import java.io.IOException;
import java.nio.file.Path;

/**
 * Starts and stops the nodes of one cluster. A cluster is a directory with `node-ID.properties` for each node, Kafka's
 * server.properties with ports already chosen, and `cluster.properties`: `cluster.id`, `feature.NAME=LEVEL`.
 */
interface Launcher {
    /** Returns once every node was started; whether it serves is asked over the wire. */
    void start(Path directory) throws IOException;

    /** Starts a node on the data that it has. */
    void startNode(Path directory, int id) throws IOException;

    /** Stops a node as its users do; returns when it is down. */
    void stopNode(Path directory, int id) throws IOException;

    /** Ends all nodes by any means and frees their ports. */
    void stop(Path directory) throws IOException;

    /** The address of a broker that is there already, which every cluster then is; null if clusters are started. */
    default String given() {
        return null;
    }

    /** `kafka`, `ottla BINARY`, or the HOST:PORT of a running broker. */
    static Launcher of(String kind, String binary) throws IOException {
        return switch (kind) {
            case "kafka" -> new KafkaLauncher();
            case "ottla" -> new OttlaLauncher(Path.of(binary));
            default -> new Given(kind);
        };
    }

    /** One broker for all clusters: what spoils its answers or is dead must be noticed. */
    record Given(String address) implements Launcher {
        @Override
        public void start(Path directory) { }

        @Override
        public void startNode(Path directory, int id) { }

        @Override
        public void stopNode(Path directory, int id) { }

        @Override
        public void stop(Path directory) { }

        @Override
        public String given() {
            return address;
        }
    }
}
