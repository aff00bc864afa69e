package harness;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;

/** Ports on which nobody listens, of the range that all compat tests share: nodes are told theirs before they start. */
final class Ports {
    private static final String RANGE = System.getenv().getOrDefault("OTTLA_COMPAT_PORTS", "20000-29999");
    /** This process is one of so many. */
    private static final int SHARES = Integer.getInteger("shares");
    private static final int SHARE = Integer.getInteger("share");
    private static final int ALL_FIRST = Integer.parseInt(RANGE.split("-")[0]);
    private static final int COUNT = (Integer.parseInt(RANGE.split("-")[1]) - ALL_FIRST + 1) / SHARES;
    private static final int FIRST = ALL_FIRST + SHARE * COUNT;
    /** Runs side by side begin at different places. */
    private static int next = (int) (ProcessHandle.current().pid() * 37 % COUNT);

    private Ports() { }

    static synchronized int free() {
        for (int tries = 0; tries < COUNT; tries++) {
            next = (next + 1) % COUNT;
            try (ServerSocket socket = new ServerSocket()) {
                socket.setReuseAddress(true);
                socket.bind(new InetSocketAddress("localhost", FIRST + next));
                return FIRST + next;
            } catch (IOException e) {
                // taken: the next one
            }
        }
        throw new IllegalStateException("no free port in " + RANGE);
    }
}
