package harness;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;

/** A broker's view of the cluster, asked over the wire: stands for its metadata cache. */
public final class Asked {
    private static final short VERSION = 12;
    private static final int TIMEOUT_MS = 30_000;

    private final Cluster cluster;
    private final Cluster.Node node;

    public Asked(Cluster cluster, Cluster.Node node) {
        this.cluster = cluster;
        this.node = node;
    }

    /** Zero when there is no such topic. */
    public int partitions(String topic) {
        return ask(List.of(topic)).topicMetadata().stream()
            .filter(one -> one.topic().equals(topic) && one.error() == Errors.NONE)
            .mapToInt(one -> one.partitionMetadata().size()).findFirst().orElse(0);
    }

    public boolean led(String topic, int partitions) {
        var found = ask(List.of(topic)).topicMetadata().iterator().next().partitionMetadata();
        return found.size() == partitions && found.stream().allMatch(one -> one.leaderId.isPresent());
    }

    /** One Metadata request; `topics` null is all. The view of a stopped broker is another's. */
    private MetadataResponse ask(List<String> topics) {
        Cluster.Node asked = node.isUp() ? node
            : cluster.brokers().filter(Cluster.Node::isUp).findFirst().orElse(node);
        MetadataRequest request = (topics == null ? MetadataRequest.Builder.allTopics()
            : new MetadataRequest.Builder(topics, false)).build(VERSION);
        RequestHeader header = new RequestHeader(ApiKeys.METADATA, VERSION, "kafka-tests", 1);
        try (Socket socket = new Socket("localhost", asked.ports.get(cluster.wanted().brokerListener))) {
            socket.setSoTimeout(TIMEOUT_MS);
            ByteBuffer bytes = request.serializeWithHeader(header);
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            out.writeInt(bytes.remaining());
            out.write(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
            out.flush();
            DataInputStream in = new DataInputStream(socket.getInputStream());
            ByteBuffer answer = ByteBuffer.wrap(in.readNBytes(in.readInt()));
            ResponseHeader.parse(answer, ApiKeys.METADATA.responseHeaderVersion(VERSION));
            return MetadataResponse.parse(new ByteBufferAccessor(answer), VERSION);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static MetadataResponse.PartitionMetadata find(MetadataResponse answer, String topic, int partition) {
        return answer.topicMetadata().stream().filter(one -> one.topic().equals(topic))
            .flatMap(one -> one.partitionMetadata().stream()).filter(one -> one.partition() == partition)
            .findFirst().orElse(null);
    }

    /** What a method of KRaftMetadataCache returns. */
    Object call(String method, Object[] arguments) {
        return switch (method) {
            case "contains" -> arguments[0] instanceof TopicPartition one
                ? find(ask(List.of(one.topic())), one.topic(), one.partition()) != null
                : partitions((String) arguments[0]) > 0;
            case "numPartitions" -> {
                int count = partitions((String) arguments[0]);
                yield count == 0 ? Optional.empty() : Optional.of(count);
            }
            case "getTopicId" -> ask(List.of((String) arguments[0])).topicMetadata().iterator().next().topicId();
            case "getAllTopics" -> {
                Set<String> names = new HashSet<>();
                ask(null).topicMetadata().forEach(one -> names.add(one.topic()));
                yield names;
            }
            case "getAliveBrokerNodes" -> new ArrayList<>(ask(List.of()).brokers());
            case "hasAliveBroker" -> ask(List.of()).brokers().stream().anyMatch(one -> one.id() == (int) arguments[0]);
            case "getLeaderAndIsr" -> leaderAndIsr((String) arguments[0], (int) arguments[1]);
            case "getPartitionLeaderEndpoint" -> leader((String) arguments[0], (int) arguments[1]);
            default -> throw Cluster.abort("the broker's process: MetadataCache." + method);
        };
    }

    private Optional<LeaderAndIsr> leaderAndIsr(String topic, int partition) {
        var found = find(ask(List.of(topic)), topic, partition);
        return found == null || found.leaderId.isEmpty() ? Optional.empty() : Optional.of(new LeaderAndIsr(
            found.leaderId.get(), found.leaderEpoch.orElse(0), found.inSyncReplicaIds, LeaderRecoveryState.RECOVERED,
            0));
    }

    private Optional<Node> leader(String topic, int partition) {
        MetadataResponse answer = ask(List.of(topic));
        var found = find(answer, topic, partition);
        if (found == null) {
            return Optional.empty();
        }
        return Optional.of(found.leaderId.map(id -> answer.brokersById().getOrDefault(id, Node.noNode()))
            .orElse(Node.noNode()));
    }
}
