package harness;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Properties;

import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.server.common.MetadataVersion;

/** What `kafka-storage format` does with the directories of a node, be it Kafka's or Ottla's. */
public final class Format {
    private Format() { }

    /**
     * Once, before a node's first start.
     * - `cluster`: its id and levels of features, as in `cluster.properties`.
     */
    public static void run(Properties cluster, Properties settings) throws IOException {
        String logs = settings.getProperty("log.dirs", settings.getProperty("log.dir"));
        String metadata = settings.getProperty("metadata.log.dir", logs.split(",")[0]);
        if (Path.of(metadata, "meta.properties").toFile().exists()) {
            return;
        }
        Formatter formatter = new Formatter().setClusterId(cluster.getProperty("cluster.id"))
            .setNodeId(Integer.parseInt(settings.getProperty("node.id")))
            .setUnstableFeatureVersionsEnabled(true)
            .setControllerListenerName(settings.getProperty("controller.listener.names"))
            .setMetadataLogDirectory(metadata)
            .setReleaseVersion(MetadataVersion.latestProduction())
            .setPrintStream(new PrintStream(OutputStream.nullOutputStream()));
        for (String log : logs.split(",")) {
            formatter.addDirectory(log);
        }
        formatter.addDirectory(metadata);
        for (String key : cluster.stringPropertyNames()) {
            if (!key.startsWith("feature.") || key.equals("feature.kraft.version")) {
                continue;
            }
            short level = Short.parseShort(cluster.getProperty(key));
            if (key.equals("feature.metadata.version")) {
                formatter.setReleaseVersion(MetadataVersion.fromFeatureLevel(level));
            } else {
                formatter.setFeatureLevel(key.substring("feature.".length()), level);
            }
        }
        try {
            formatter.run();
        } catch (Exception e) {
            throw new IOException("not formatted: " + e, e);
        }
    }
}
