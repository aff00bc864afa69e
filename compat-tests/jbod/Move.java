import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.TopicPartitionReplica;

/** Move.java HOST:PORT TOPIC PARTITION DIRECTORY : has broker 1 move its replica there, and waits until it has. */
public class Move {
    private static final long PATIENCE_MS = 60_000;

    public static void main(String[] words) throws Exception {
        var replica = new TopicPartitionReplica(words[1], Integer.parseInt(words[2]), 1);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", words[0]))) {
            admin.alterReplicaLogDirs(Map.of(replica, words[3])).all().get();
            for (long waited = 0; waited < PATIENCE_MS; waited += 50) {
                var info = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica);
                if (words[3].equals(info.getCurrentReplicaLogDir()) && info.getFutureReplicaLogDir() == null) {
                    System.out.println("moved");
                    return;
                }
                Thread.sleep(50);
            }
        }
        throw new IllegalStateException("not moved in " + PATIENCE_MS + " ms");
    }
}
