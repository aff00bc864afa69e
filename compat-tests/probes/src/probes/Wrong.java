package probes;

/** The broker did what no broker may do, so that the probe cannot go on: a finding, not an accident. */
public final class Wrong extends RuntimeException {
    public Wrong(String what) {
        super(what);
    }
}
