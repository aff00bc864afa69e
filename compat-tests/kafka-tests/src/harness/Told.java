package harness;

import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;

/** A line for each test, and at the end a file with the counts and seconds of each class. */
final class Told implements TestExecutionListener {
    private static final int DETAIL_MAX = 400;

    private final PrintStream out;
    private final Path seconds;
    private final Map<String, Counts> classes = new TreeMap<>();
    private volatile long began = System.currentTimeMillis();
    private volatile String current = "";
    private volatile boolean failed;

    /** What became of a class. */
    private static final class Counts {
        private final Map<String, Integer> verdicts = new TreeMap<>();
        private double seconds;
    }

    Told(PrintStream out, Path seconds) {
        this.out = out;
        this.seconds = seconds;
    }

    boolean failed() {
        return failed;
    }

    double currentSeconds() {
        return (System.currentTimeMillis() - began) / 1000.0;
    }

    /** The test that runs will not end. */
    void hangs() {
        line("FAIL", current, "hangs");
        close();
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        if (test.isTest()) {
            began = System.currentTimeMillis();
            current = name(test);
            Cluster.forgetUntouchable();
        }
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        began = System.currentTimeMillis();
        if (reason == null || !reason.startsWith("duplicate")) {
            line("SKIP", name(test), reason);
        }
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        Throwable thrown = result.getThrowable().orElse(null);
        boolean passed = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
        if (!test.isTest() && passed) {
            return;
        }
        if (passed) {
            line("PASS", name(test), null);
        } else if (Cluster.untouchable() != null) {
            line("SKIP", name(test), "needs " + Cluster.untouchable());
        } else if (result.getStatus() == TestExecutionResult.Status.ABORTED) {
            line("SKIP", name(test), thrown == null ? "" : thrown.getMessage());
        } else {
            line("FAIL", name(test), thrown == null ? "" : thrown.getClass().getSimpleName() + ": " + thrown.getMessage());
            trace(test, thrown);
        }
        began = System.currentTimeMillis();
    }

    private static void trace(TestIdentifier test, Throwable thrown) {
        System.err.println("=== " + name(test));
        if (thrown != null) {
            thrown.printStackTrace();
        }
    }

    /** `Class.method#2`: of an invocation its number. */
    private static String name(TestIdentifier test) {
        String className = "";
        String rest = "";
        for (UniqueId.Segment segment : test.getUniqueIdObject().getSegments()) {
            String value = segment.getValue();
            switch (segment.getType()) {
                case "engine" -> { }
                case "class" -> className = Main.shortName(value);
                case "nested-class" -> className += "$" + value;
                default -> rest += value.startsWith("#") ? value : "." + value.replaceAll("\\(.*", "");
            }
        }
        return className + rest;
    }

    private synchronized void line(String verdict, String name, String why) {
        String detail = why == null ? "" : why.replaceAll("\\s+", " ");
        failed |= verdict.equals("FAIL");
        Counts counts = classes.computeIfAbsent(name.replaceAll("\\..*", ""), none -> new Counts());
        counts.verdicts.merge(verdict, 1, Integer::sum);
        counts.seconds += currentSeconds();
        out.println(verdict + " " + name + (detail.isEmpty() ? ""
            : " -- " + detail.substring(0, Math.min(DETAIL_MAX, detail.length()))));
        out.flush();
    }

    synchronized void close() {
        List<String> lines = new ArrayList<>();
        classes.forEach((name, counts) -> lines.add(String.format(Locale.ROOT, "%s: %d passed, %d failed, %d skipped, %.1f s",
            name, counts.verdicts.getOrDefault("PASS", 0), counts.verdicts.getOrDefault("FAIL", 0),
            counts.verdicts.getOrDefault("SKIP", 0), counts.seconds)));
        try {
            Files.write(seconds, lines);
        } catch (java.io.IOException e) {
            System.err.println(seconds + ": " + e);
        }
    }
}
