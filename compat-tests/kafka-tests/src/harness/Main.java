package harness;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

import kafka.server.QuorumTestHarness;

import org.junit.jupiter.api.Test;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs the tests of the file `classes`; prints `PASS`, `FAIL` or `SKIP` and the name of each. */
public final class Main {
    /** A test that takes longer fails; one that does not even end then ends the run. */
    private static final int LIMIT_SECONDS = 120;
    private static final String PREFIX = "org.apache.kafka.";

    private final List<String> classes = new ArrayList<>();
    /** `Class.method`, as printed. */
    private final Set<String> leftOut = new HashSet<>();

    private Main() { }

    /**
     * - `arguments`: the file, the kind of broker and its binary, a regular expression of tests, a directory where
     *   those who run beside us and we say which classes we have taken.
     */
    public static void main(String[] arguments) throws Exception {
        Cluster.launchWith(Launcher.of(arguments[1], arguments[2]));
        OneReplica.install();
        Main main = new Main();
        main.read(Path.of(arguments[0]));
        Pattern only = Pattern.compile(arguments[3]);
        Told told = new Told(System.out, Path.of(System.getenv("WORK"), "seconds"));
        // What tests and libraries print is not for those who read our lines.
        System.setOut(System.err);
        watch(told);
        for (String name : main.classes) {
            if (isOurs(Path.of(arguments[4], name))) {
                LauncherFactory.create().execute(main.request(name, only).build(), told);
            }
        }
        told.close();
        System.exit(told.failed() ? 1 : 0);
    }

    private void read(Path file) throws IOException {
        for (String line : Files.readAllLines(file)) {
            String[] words = line.trim().split("\\s+");
            if (words[0].equals("-")) {
                leftOut.add(shortName(classes.get(classes.size() - 1)) + "." + words[1]);
            } else if (!words[0].isEmpty() && !words[0].equals("#")) {
                classes.add(words[0].startsWith("kafka.") || words[0].startsWith("unit.") ? words[0] : PREFIX + words[0]);
            }
        }
    }

    static String shortName(String className) {
        return className.substring(className.lastIndexOf('.') + 1);
    }

    /** Whether nobody was here before. */
    private static boolean isOurs(Path taken) throws IOException {
        try {
            Files.createFile(taken);
            return true;
        } catch (FileAlreadyExistsException e) {
            return false;
        }
    }

    private LauncherDiscoveryRequestBuilder request(String className, Pattern only) {
        String limit = LIMIT_SECONDS + " s";
        var request = LauncherDiscoveryRequestBuilder.request()
            .configurationParameter("junit.jupiter.execution.timeout.test.method.default", limit)
            .configurationParameter("junit.jupiter.execution.timeout.testtemplate.method.default", limit)
            .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "true")
            .configurationParameter("junit.jupiter.execution.parallel.enabled", "false");
        return request.selectors(selectClass(className)).filters((PostDiscoveryFilter) test -> {
            if (!(test.getSource().orElse(null) instanceof MethodSource source)) {
                return FilterResult.included("");
            }
            String name = shortName(source.getClassName()) + "." + source.getMethodName();
            return FilterResult.includedIf(!leftOut.contains(name) && only.matcher(name).find() && asksBroker(source));
        });
    }

    /** Beside those with a cluster some classes have tests of plain methods, which pass on any broker. */
    private static boolean asksBroker(MethodSource source) {
        return QuorumTestHarness.class.isAssignableFrom(source.getJavaClass())
            || !source.getJavaMethod().isAnnotationPresent(Test.class);
    }

    private static void watch(Told told) {
        Thread watcher = new Thread(() -> {
            while (told.currentSeconds() < 3 * LIMIT_SECONDS) {
                try {
                    Thread.sleep(1000);
                } catch (InterruptedException e) {
                    return;
                }
            }
            told.hangs();
            Runtime.getRuntime().halt(1);
        });
        watcher.setDaemon(true);
        watcher.start();
    }
}
