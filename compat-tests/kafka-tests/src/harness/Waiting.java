package harness;

import java.util.function.BooleanSupplier;

/** Waits for what a test may rely on. */
public final class Waiting {
    private static final long LIMIT_MS = 60_000;
    private static final long STEP_MS = 20;

    /** Until a broker has surely applied what its controller has in its log. */
    private static final long APPLY_MS = 200;

    private Waiting() { }

    public static void forBroker() throws InterruptedException {
        Thread.sleep(APPLY_MS);
    }

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
