package probes;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Set;

/** One probe on its way: its two halves, each on a thread of its own under the probe's time limit. */
final class Run {
    private final Method method;
    private final Probe probe;
    private Check check;
    private Probe.After after;
    /** What ended the probe early, other than a broker's wrong answer. */
    private String accident;

    Run(Method method) {
        this.method = method;
        probe = method.getAnnotation(Probe.class);
        method.setAccessible(true);
    }

    String name() {
        return probe.value();
    }

    String caseId() {
        return name().substring(0, name().indexOf(' '));
    }

    Probe.Restart restart() {
        return probe.restart();
    }

    Set<Spoil> spoil() {
        return Set.of(probe.spoil());
    }

    void first(Outside outside) {
        half(() -> {
            check = new Check(outside);
            after = (Probe.After) method.invoke(null, check);
        });
    }

    /** The half after the restart, unless the first has ended early. */
    void second() {
        if (after != null) {
            half(() -> after.check());
        }
    }

    private void half(Waiting.Action action) {
        Throwable[] thrown = {null};
        Thread thread = new Thread(() -> {
            try {
                action.run();
            } catch (InvocationTargetException e) {
                thrown[0] = e.getCause();
            } catch (Throwable e) {
                thrown[0] = e;
            }
        }, caseId());
        thread.setDaemon(true);
        thread.start();
        try {
            thread.join(probe.seconds() * 1000L);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        if (thread.isAlive()) {
            StackTraceElement[] at = thread.getStackTrace();
            thread.interrupt();
            accident = "not over after " + probe.seconds() + " s, " + place(at);
        } else if (thrown[0] instanceof Wrong wrong) {
            check.fail(wrong.getMessage());
        } else if (thrown[0] != null) {
            accident = thrown[0] + ", " + place(thrown[0].getStackTrace());
        }
    }

    /** The line of the probe itself. */
    private String place(StackTraceElement[] trace) {
        for (StackTraceElement element : trace) {
            if (element.getClassName().equals(method.getDeclaringClass().getName())) {
                return element.getFileName() + ":" + element.getLineNumber();
            }
        }
        return "outside of the probe";
    }

    void close() {
        if (check != null) {
            check.closeAll();
        }
    }

    /** Another accident than one of its own, such as a restart that did not work. */
    void accident(String what) {
        accident = what;
    }

    boolean passed() {
        return accident == null && check.checked() && !check.failed();
    }

    /** Whether its checks, not an accident, said that the broker is wrong. */
    boolean noticed() {
        return accident == null && check.failed();
    }

    String story() {
        String checked = check == null ? "" : check.story();
        return accident == null ? checked : accident + "; " + checked;
    }
}
