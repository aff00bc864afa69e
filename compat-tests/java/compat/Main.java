package compat;

import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;

/** Runs all checks against the broker at HOST:PORT; written for clients from 2.8 to 4.4. */
public final class Main {
    public static void main(String[] args) throws Exception {
        Properties about = new Properties();
        about.load(Admin.class.getResourceAsStream("/kafka/kafka-version.properties"));
        System.err.println("kafka-clients " + about.getProperty("version"));
        Kit.bootstrap = args[0];
        Topics.checks();
        Records.checks();
        Groups.checks();
        Transactions.checks();
        Restarts.checks();
        System.exit(Kit.failed == 0 ? 0 : 1);
    }
}
