package harness;

import java.util.function.BooleanSupplier;

/** Waits for what a test may rely on. */
public final class Waiting {
    private static final long LIMIT_MS = 60_000;
    private static final long STEP_MS = 20;

    private Waiting() { }

    public static void until(String what, BooleanSupplier done) throws InterruptedException {
        long end = System.currentTimeMillis() + LIMIT_MS;
        while (!done.getAsBoolean()) {
            if (System.currentTimeMillis() > end) {
                throw new AssertionError("not within " + LIMIT_MS / 1000 + " s: " + what);
            }
            Thread.sleep(STEP_MS);
        }
    }
}
