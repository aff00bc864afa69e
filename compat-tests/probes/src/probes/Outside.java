package probes;

import probes.ask.Topics;
import probes.wire.Wire;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The broker as a process, through the command in $BROKER_CTL that whoever runs the probes gives:
 * `term` and `kill` restart the broker under test on its port and data; `spawn FILE` starts another one with
 * the settings of that file on top of the usual, prints its HOST:PORT, and fails if it does not come up;
 * `end HOST:PORT` ends such a one.
 */
public final class Outside {
    private final String bootstrap;
    private final String control = System.getenv("BROKER_CTL");

    public Outside(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public String bootstrap() {
        return bootstrap;
    }

    /** Returns once every partition is served again. */
    void restart(Probe.Restart how) throws Exception {
        order(how.name().toLowerCase());
        try (Wire wire = Wire.open(bootstrap)) {
            if (!Waiting.until(60_000, () -> Topics.allOnline(wire))) {
                throw new Wrong("partitions are not served after a restart");
            }
        }
    }

    /** A broker of its own for one probe. */
    public record Spawned(Outside outside, String address) implements AutoCloseable {
        @Override
        public void close() throws Exception {
            outside.order("end " + address);
        }
    }

    /** Starts another broker of the same kind with these settings. */
    public Spawned spawn(String... settings) throws Exception {
        String directory = System.getenv().getOrDefault("WORK", System.getProperty("java.io.tmpdir"));
        Path file = Files.createTempFile(Path.of(directory), "spawned-", ".properties");
        Files.write(file, List.of(settings));
        String[] lines = order("spawn " + file).split("\n");
        return new Spawned(this, lines[lines.length - 1].trim());
    }

    /** Why a broker with these settings does not start; null if it does. */
    public String refusal(String... settings) throws Exception {
        try (Spawned spawned = spawn(settings)) {
            return null;
        } catch (Refused refused) {
            return Spoil.is(Spoil.CLOSING) ? null : refused.getMessage();
        }
    }

    /** The command said no. */
    private static final class Refused extends Exception {
        Refused(String why) {
            super(why);
        }
    }

    private String order(String words) throws Exception {
        if (control == null || control.isBlank()) {
            throw new IllegalStateException("$BROKER_CTL is not set: a command with the orders term, kill, spawn, end");
        }
        Process process = new ProcessBuilder("sh", "-c", control + " " + words).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes()).trim();
        if (process.waitFor() != 0) {
            throw new Refused("`" + words + "`: " + said);
        }
        return said;
    }
}
