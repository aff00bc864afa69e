package probes;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * One behaviour: a static method that takes a {@link Check}. A probe about a restart does its first half in the
 * method and returns an {@link After} for the second.
 */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface Probe {
    /** The case and the behaviour, as in "C001 a retried batch …"; the name in every report. */
    String value();

    /** Each half must be over by then; a broker that does not answer is a failure. */
    int seconds() default 30;

    Restart restart() default Restart.NONE;

    /** The lies of which this probe must notice one in a self-check. */
    Spoil[] spoil() default Spoil.REFUSALS;

    /** What happens to the broker between the halves. */
    enum Restart {
        NONE, TERM, KILL
    }

    /** What has to hold once the broker is back. */
    interface After {
        void check() throws Exception;
    }
}
