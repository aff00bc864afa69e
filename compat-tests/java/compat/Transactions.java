package compat;

import static compat.Kit.*;

import java.util.List;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Transactions. */
final class Transactions {
    private Transactions() { }

    static void checks() {
        check("transaction-commit-and-abort", Transactions::commitAndAbort);
    }

    private static void commitAndAbort() throws Exception {
        String topic = topic(1);
        try (Producer<String, String> producer = producer("transactional.id", fresh("txn"), "max.block.ms", 20_000)) {
            producer.initTransactions();
            for (int round = 0; round < 4; round++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, "" + round));
                producer.flush();
                if (round % 2 == 0) producer.commitTransaction();
                else producer.abortTransaction();
            }
        }
        equal(List.of("0", "2"), values(readAll(topic, "isolation.level", "read_committed")));
        equal(4, readAll(topic).size());
    }
}
