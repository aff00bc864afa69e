package probes.cases;

import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.protocol.Errors;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.Waiting;
import probes.ask.Configs;
import probes.ask.Offsets;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import static org.apache.kafka.common.protocol.Errors.INVALID_TOPIC_EXCEPTION;
import static org.apache.kafka.common.protocol.Errors.UNKNOWN_TOPIC_OR_PARTITION;

/** Which topics Metadata tells of, and how soon after they are made. */
public final class MetadataProbes {
    private static final int NEWEST = 13;
    private static final int CREATED = 40;
    private static final int ASKING = 200;

    private MetadataProbes() {
    }

    @Probe("C026 Metadata keeps all topics, no topics and named ones apart in every version")
    static void allNoneNamed(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 2);
        for (int version = 0; version <= NEWEST; version++) {
            String v = "v" + version + " ";
            var everything = new MetadataRequestData().setTopics(version == 0 ? List.of() : null);
            MetadataResponseData all = check.wire().call(everything, version);
            boolean has = all.topics().find(topic.name()) != null;
            check.that(v + "all: has the topic", has, all.topics().size() + " topics");
            if (version > 0) {
                noTopics(check, version);
            }
            // The first versions create what they name.
            boolean create = version < 4;
            if (!create) {
                check.code(v + "unknown name", only(check, version, false, Topics.ghost().name()),
                    UNKNOWN_TOPIC_OR_PARTITION);
            }
            check.code(v + "illegal name", only(check, version, create, "bad name!"), INVALID_TOPIC_EXCEPTION);
            MetadataResponseData twice = Topics.metadata(check.wire(), version, create, topic.name(), topic.name());
            check.equal(v + "same name twice: entries", 1, twice.topics().size());
            check.equal(v + "same name twice: partitions", 2, twice.topics().find(topic.name()).partitions().size());
        }
    }

    private static void noTopics(Check check, int version) throws Exception {
        MetadataResponseData none = check.wire().call(new MetadataRequestData().setTopics(List.of()), version);
        check.equal("v" + version + " no topics", 0, none.topics().size());
        check.that("v" + version + " no topics: brokers", !none.brokers().isEmpty(), "none");
        check.that("v" + version + " no topics: controller", none.controllerId() >= 0, none.controllerId());
        check.that("v" + version + " no topics: cluster id", version < 2 || none.clusterId() != null, "null");
    }

    private static short only(Check check, int version, boolean create, String name) throws Exception {
        return Topics.metadata(check.wire(), version, create, name).topics().iterator().next().errorCode();
    }

    @Probe(value = "C027 a topic just created is served, or is not known for a moment, and nothing else",
        seconds = 60, spoil = Spoil.OFFSETS)
    static void createThenUse(Check check) throws Exception {
        Wire wire = check.wire();
        Set<Errors> window = Set.of(Errors.NONE, UNKNOWN_TOPIC_OR_PARTITION, Errors.NOT_LEADER_OR_FOLLOWER);
        Map<String, Integer> counts = new TreeMap<>();
        for (int i = 0; i < CREATED; i++) {
            String name = Waiting.fresh("t");
            var created = Topics.request(wire, false, Topics.describe(name, 3)).find(name);
            check.code("CreateTopics", created.errorCode(), Errors.NONE);
            var found = Topics.find(wire, name);
            boolean led = found.partitions().stream().filter(p -> p.errorCode() == 0 && p.leaderId() >= 0).count() == 3;
            boolean notYet = found.errorCode() == UNKNOWN_TOPIC_OR_PARTITION.code();
            check.that("Metadata: unknown or whole", notYet || found.errorCode() == 0 && led, found);
            Topic topic = new Topic(name, created.topicId());
            for (int partition = 0; partition < 3; partition++) {
                var stored = Produce.ask(wire, topic, partition, Batch.of("v"));
                check.that("Produce", window.contains(Errors.forCode(stored.errorCode())),
                    Errors.forCode(stored.errorCode()));
                counts.merge("Produce " + Errors.forCode(stored.errorCode()), 1, Integer::sum);
                var end = Offsets.list(wire, 5, topic, partition, Offsets.LATEST);
                check.that("ListOffsets", window.contains(Errors.forCode(end.errorCode())),
                    Errors.forCode(end.errorCode()));
                if (stored.errorCode() == 0 && end.errorCode() == 0) {
                    check.equal("first offset and log end", "0, 1", stored.baseOffset() + ", " + end.offset());
                }
            }
            Topics.delete(wire, topic);
        }
        check.note(counts.toString());
    }

    @Probe(value = "C027 two hundred clients that name one new topic get one topic with the default partitions",
        spoil = Spoil.ENTRIES)
    static void autoCreation(Check check) throws Exception {
        String name = Waiting.fresh("auto");
        ExecutorService clients = Executors.newFixedThreadPool(20);
        List<Future<Short>> answers = new ArrayList<>();
        for (int i = 0; i < ASKING; i++) {
            answers.add(clients.submit(() -> {
                try (Wire wire = Wire.open(check.outside.bootstrap())) {
                    return Topics.metadata(wire, 9, true, name).topics().iterator().next().errorCode();
                }
            }));
        }
        for (Future<Short> answer : answers) {
            check.code("first answer", answer.get(), Errors.NONE, UNKNOWN_TOPIC_OR_PARTITION,
                Errors.LEADER_NOT_AVAILABLE);
        }
        clients.shutdown();
        Wire wire = check.wire();
        check.that("created", Waiting.until(10_000, () -> Topics.find(wire, name).errorCode() == 0), "not");
        check.equal("partitions", Configs.ofBroker(wire, "num.partitions"),
            Topics.find(wire, name).partitions().size());
        long named = Topics.names(wire).stream().filter(name::equals).count();
        check.equal("topics of that name", 1, named);
    }
}
