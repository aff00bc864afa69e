package probes;

import java.util.concurrent.Callable;
import java.util.concurrent.ThreadLocalRandom;

/** Time: waits for what must come, measures what took how long; and names that nobody has used. */
public final class Waiting {
    private Waiting() {
    }

    /** Asks again and again until it holds, or until so many milliseconds are over: false. */
    public static boolean until(long milliseconds, Callable<Boolean> holds) throws Exception {
        long deadline = now() + milliseconds;
        while (!holds.call()) {
            if (now() > deadline) {
                return false;
            }
            Thread.sleep(50);
        }
        return true;
    }

    public interface Action {
        void run() throws Exception;
    }

    /** How many milliseconds it takes. */
    public static long milliseconds(Action action) throws Exception {
        long start = System.nanoTime();
        action.run();
        return (System.nanoTime() - start) / 1_000_000;
    }

    /** Wall clock, as in record timestamps. */
    public static long now() {
        return System.currentTimeMillis();
    }

    public static String fresh(String prefix) {
        return prefix + "-" + Long.toString(ThreadLocalRandom.current().nextLong(1L << 40), 36);
    }
}
