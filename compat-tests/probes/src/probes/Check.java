package probes;

import org.apache.kafka.common.protocol.Errors;
import probes.wire.Wire;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;

/**
 * What one probe works with: connections, closed at its end, and checks that collect what is wrong, so that one
 * run shows all of it. Counts its checks: a probe that checked nothing has failed.
 */
public final class Check {
    public final Outside outside;
    private final List<String> failures = Collections.synchronizedList(new ArrayList<>());
    private final List<String> notes = Collections.synchronizedList(new ArrayList<>());
    private final List<AutoCloseable> open = Collections.synchronizedList(new ArrayList<>());
    private final Wire main;
    private int checks;

    /** @param outside the broker under test, which must serve */
    public Check(Outside outside) throws Exception {
        this.outside = outside;
        main = another();
    }

    /** The probe's own connection. */
    public Wire wire() {
        return main;
    }

    public Wire another() throws Exception {
        return another(outside.bootstrap());
    }

    public Wire another(String address) throws Exception {
        return closing(Wire.open(address));
    }

    /** Closes it when the probe is over. */
    public <T extends AutoCloseable> T closing(T resource) {
        open.add(resource);
        return resource;
    }

    void closeAll() {
        synchronized (open) {
            for (AutoCloseable resource : open) {
                try {
                    resource.close();
                } catch (Exception e) {
                    note("closing: " + e);
                }
            }
        }
    }

    public void equal(String what, Object want, Object got) {
        that(what + ": want " + want, Objects.equals(plain(want), plain(got)), got);
    }

    /** An error code, of which more than one may be right. */
    public void code(String what, short got, Errors... want) {
        String names = Arrays.stream(want).map(Enum::name).collect(Collectors.joining(" or "));
        boolean right = Arrays.stream(want).anyMatch(error -> error.code() == got);
        that(what + ": want " + names, right, Errors.forCode(got));
    }

    /** Any error code will do. */
    public void refused(String what, short got) {
        that(what + ": want a refusal", got != 0, Errors.forCode(got));
    }

    /** Both bounds included. */
    public void between(String what, long from, long to, long got) {
        that(what + ": want " + from + " to " + to, from <= got && got <= to, got);
    }

    public void that(String what, boolean holds, Object got) {
        checks++;
        if (!holds) {
            fail(what + ", got " + got);
        }
    }

    public void fail(String what) {
        checks++;
        failures.add(what);
    }

    /** Told beside the result: which of several right answers it was. */
    public void note(String what) {
        notes.add(what);
    }

    /** Numbers of all widths alike, also within collections and maps. */
    private static Object plain(Object value) {
        if (value instanceof Short || value instanceof Integer || value instanceof Byte) {
            return ((Number) value).longValue();
        }
        if (value instanceof java.util.Set<?> set) {
            return set.stream().map(Check::plain).collect(Collectors.toSet());
        }
        if (value instanceof Collection<?> list) {
            return list.stream().map(Check::plain).toList();
        }
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().collect(Collectors.toMap(e -> plain(e.getKey()), e -> plain(e.getValue())));
        }
        return value;
    }

    boolean failed() {
        return !failures.isEmpty();
    }

    boolean checked() {
        return checks > 0;
    }

    /** One line for the report. */
    String story() {
        if (failures.isEmpty()) {
            String noted = notes.isEmpty() ? "" : "; " + String.join("; ", notes);
            return checks == 0 ? "the probe checked nothing" : checks + " checks" + noted;
        }
        int shown = Math.min(FAILURES_SHOWN, failures.size());
        String more = failures.size() > shown ? "; and " + (failures.size() - shown) + " more" : "";
        return (String.join("; ", failures.subList(0, shown)) + more).replaceAll("\\s+", " ");
    }

    private static final int FAILURES_SHOWN = 10;
}
