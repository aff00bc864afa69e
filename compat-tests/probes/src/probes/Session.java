package probes;

import java.util.List;
import java.util.Set;

/**
 * Runs all probes: first those around one clean restart, then those around one kill, while the broker has little
 * to come back with, then the rest. In a self-check each probe runs under its lie and passes by noticing it.
 */
final class Session {
    private final Outside outside;
    private final boolean selfCheck;
    private int passed;
    private int failed;

    Session(Outside outside, boolean selfCheck) {
        this.outside = outside;
        this.selfCheck = selfCheck;
    }

    boolean all(List<Run> runs) {
        around(Probe.Restart.TERM, runs);
        around(Probe.Restart.KILL, runs);
        for (Run run : runs) {
            if (run.restart() == Probe.Restart.NONE) {
                under(run, () -> run.first(outside));
                tell(run);
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        return failed == 0 && passed > 0;
    }

    private void around(Probe.Restart restart, List<Run> runs) {
        List<Run> concerned = runs.stream().filter(run -> run.restart() == restart).toList();
        if (concerned.isEmpty()) {
            return;
        }
        concerned.forEach(run -> under(run, () -> run.first(outside)));
        try {
            outside.restart(restart);
            concerned.forEach(run -> under(run, run::second));
        } catch (Exception e) {
            concerned.forEach(run -> run.accident("restart: " + e.getMessage()));
        }
        concerned.forEach(this::tell);
    }

    private void under(Run run, Runnable half) {
        Spoil.plant(selfCheck ? run.spoil() : Set.of());
        half.run();
        Spoil.plant(Set.of());
    }

    private void tell(Run run) {
        run.close();
        boolean well = selfCheck ? run.noticed() : run.passed();
        String story = selfCheck && well ? "noticed: " + run.story() : run.story();
        if (selfCheck && !well) {
            story = "did not notice " + run.spoil() + ": " + story;
        }
        if (well) {
            passed++;
        } else {
            failed++;
        }
        System.out.println((well ? "PASS " : "FAIL ") + run.name() + " -- " + story.replaceAll("\\s+", " "));
    }
}
