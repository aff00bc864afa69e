package probes.cases;

import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResult;
import probes.Check;
import probes.Probe;
import probes.Waiting;
import probes.ask.Configs;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Wire;

import java.net.SocketTimeoutException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import static org.apache.kafka.common.protocol.Errors.INVALID_CONFIG;
import static org.apache.kafka.common.protocol.Errors.INVALID_REQUEST;
import static org.apache.kafka.common.protocol.Errors.INVALID_TOPIC_EXCEPTION;
import static org.apache.kafka.common.protocol.Errors.NONE;
import static org.apache.kafka.common.protocol.Errors.UNKNOWN_TOPIC_OR_PARTITION;

/** Configurations: every key of Kafka's, described, replaced and edited. */
public final class ConfigProbes {
    /** Keys of a topic with a value that is not the default. */
    private static final String[] SETTABLE = {
        "cleanup.policy", "compact", "compression.type", "gzip", "delete.retention.ms", "1234",
        "file.delete.delay.ms", "1234", "flush.messages", "1234", "flush.ms", "1234",
        "follower.replication.throttled.replicas", "0:1", "index.interval.bytes", "1234",
        "leader.replication.throttled.replicas", "0:1", "local.retention.bytes", "1234", "local.retention.ms", "1234",
        "max.compaction.lag.ms", "123456789", "max.message.bytes", "123456",
        "message.timestamp.after.max.ms", "1234567", "message.timestamp.before.max.ms", "1234567",
        "message.timestamp.type", "LogAppendTime", "min.cleanable.dirty.ratio", "0.3",
        "min.compaction.lag.ms", "1234", "min.insync.replicas", "1", "preallocate", "true",
        "remote.log.copy.disable", "false", "remote.log.delete.on.disable", "false",
        "retention.bytes", "12345678", "retention.ms", "12345678", "segment.bytes", "1234567",
        "segment.index.bytes", "1234567", "segment.jitter.ms", "1234", "segment.ms", "12345678",
        "unclean.leader.election.enable", "true"};
    /** The rest of the keys, which need a certain codec or feature to be set. */
    private static final Set<String> OTHERS = Set.of("compression.gzip.level", "compression.lz4.level",
        "compression.zstd.level", "errors.deadletterqueue.group.enable", "max.decompressed.message.bytes",
        "remote.copy.lag.bytes", "remote.copy.lag.ms", "remote.storage.enable");
    private static final String[][] REFUSED = {{"foo.bar", "1"}, {"cleanup.policy", "zip"}, {"retention.ms", "abc"},
        {"preallocate", "yes"}, {"min.insync.replicas", "0"}, {"max.message.bytes", "-1"},
        {"message.format.version", "3.0"}, {"message.downconversion.enable", "true"},
        {"message.timestamp.difference.max.ms", "1"}};
    private static final byte LONG = 5;

    private ConfigProbes() {
    }

    @Probe("C079 every topic config of Kafka is taken and told again, an unknown one or a bad value is refused by name")
    static void everyKey(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1, SETTABLE);
        Map<String, String> told = new HashMap<>();
        DescribeConfigsResult described = Configs.describe(wire, Configs.TOPIC, topic.name());
        described.configs().forEach(c -> told.put(c.name(), c.value() + " from " + c.configSource()));
        Set<String> keys = new TreeSet<>(OTHERS);
        for (int i = 0; i < SETTABLE.length; i += 2) {
            check.equal(SETTABLE[i], SETTABLE[i + 1] + " from " + Configs.FROM_TOPIC, told.get(SETTABLE[i]));
            keys.add(SETTABLE[i]);
        }
        check.equal("all keys", keys, told.keySet());
        for (String[] refused : REFUSED) {
            String name = Waiting.fresh("t");
            var result = Topics.request(wire, false, Topics.describe(name, 1, refused)).find(name);
            check.code(refused[0] + "=" + refused[1], result.errorCode(), INVALID_CONFIG);
            boolean named = result.errorMessage() != null && result.errorMessage().contains(refused[0]);
            check.that(refused[0] + " is named", named, result.errorMessage());
        }
        String name = Waiting.fresh("t");
        var result = Topics.request(wire, false, Topics.describe(name, 1, "retention.ms", null)).find(name);
        check.code("null for a value", result.errorCode(), INVALID_CONFIG, INVALID_REQUEST);
    }

    @Probe("C080 DescribeConfigs tells every key with its source, synonyms, type and documentation")
    static void describe(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1, "retention.ms", "5555", "max.message.bytes", "77777");
        for (int version = 1; version <= 4; version++) {
            for (List<String> keys : Arrays.asList(null, List.<String>of())) {
                DescribeConfigsResult found = Configs.describe(wire, version, Configs.TOPIC, topic.name(), keys);
                String v = "v" + version + ", keys " + keys + ": ";
                check.that(v + "all", found.configs().size() >= 25, found.configs().size());
                var retention = Configs.find(found, "retention.ms");
                check.equal(v + "source", Configs.FROM_TOPIC, retention.configSource());
                check.equal(v + "its first synonym", Configs.FROM_TOPIC, retention.synonyms().get(0).source());
                var synonyms = Configs.find(found, "max.message.bytes").synonyms().stream();
                check.equal(v + "synonyms", List.of("1 max.message.bytes=77777", "5 message.max.bytes=1048588"),
                    synonyms.map(s -> s.source() + " " + s.name() + "=" + s.value()).toList());
                if (version >= 3) {
                    check.equal(v + "type", LONG, retention.configType());
                    boolean documented = retention.documentation() != null && !retention.documentation().isEmpty();
                    check.that(v + "documentation", documented, retention.documentation());
                }
            }
        }
        var one = Configs.describe(wire, 4, Configs.TOPIC, topic.name(), List.of("retention.ms")).configs();
        check.equal("one key", List.of("retention.ms"), one.stream().map(c -> c.name()).toList());
        var none = Configs.describe(wire, 4, Configs.TOPIC, topic.name(), List.of("no.such")).configs();
        check.equal("an unknown key", 0, none.size());
        check.code("an unknown topic", Configs.describe(wire, Configs.TOPIC, Topics.ghost().name()).errorCode(),
            UNKNOWN_TOPIC_OR_PARTITION);
        check.code("an illegal name", Configs.describe(wire, Configs.TOPIC, "bad name").errorCode(),
            INVALID_TOPIC_EXCEPTION);
        check.code("another broker", Configs.describe(wire, Configs.BROKER, "99999").errorCode(), INVALID_REQUEST);
    }

    @Probe("C082 AlterConfigs resets the keys it does not name")
    static void replace(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1, "retention.ms", "1111", "max.message.bytes", "2222", "cleanup.policy",
            "compact");
        check.equal("only validated", List.of(0),
            Configs.replace(wire, true, Configs.whole(topic, "max.message.bytes", "9")));
        check.equal("max.message.bytes after that", "2222", value(wire, topic, "max.message.bytes"));
        check.equal("max.message.bytes alone", List.of(0),
            Configs.replace(wire, false, Configs.whole(topic, "max.message.bytes", "3333")));
        check.equal("max.message.bytes", "3333", value(wire, topic, "max.message.bytes"));
        check.equal("source of retention.ms", Configs.FROM_DEFAULT,
            Configs.of(wire, topic, "retention.ms").configSource());
        check.equal("cleanup.policy", "delete", value(wire, topic, "cleanup.policy"));
        var same = Configs.whole(topic, "retention.ms", "1");
        try {
            var codes = Configs.replace(check.another().patience(2_500), false, same, same.duplicate());
            check.that("the same topic twice", codes.stream().allMatch(c -> c == INVALID_REQUEST.code()), codes);
        } catch (SocketTimeoutException e) {
            check.note("the same topic twice is not answered"); // so Kafka 4.4.0
        }
        check.equal("after that", "3333", value(wire, topic, "max.message.bytes"));
        check.code("an unknown key", Configs.replace(wire, false, Configs.whole(topic, "foo.bar", "1")).get(0),
            INVALID_CONFIG);
    }

    @Probe("C082 IncrementalAlterConfigs edits the keys it names, a topic wholly or not at all")
    static void edit(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1, "max.message.bytes", "3333");
        Topic other = Topics.create(wire, 1);
        check.code("retention.ms alone", Configs.alter(wire, topic, "retention.ms", "4444"), NONE);
        check.equal("max.message.bytes", "3333", value(wire, topic, "max.message.bytes"));
        check.code("a good and a bad key", Configs.alter(wire, topic, "retention.ms", "5555", "segment.bytes", "x"),
            INVALID_CONFIG);
        check.equal("retention.ms after that", "4444", value(wire, topic, "retention.ms"));
        check.code("the same key twice", Configs.alter(wire, topic, "retention.ms", "1", "retention.ms", "2"),
            INVALID_REQUEST);
        var both = Configs.alter(wire, Configs.edit(topic, "retention.ms", "bad"),
            Configs.edit(other, "retention.ms", "6666"));
        Map<String, Short> codes = new HashMap<>();
        both.forEach(result -> codes.put(result.resourceName(), result.errorCode()));
        check.code("a bad topic", codes.get(topic.name()), INVALID_CONFIG);
        check.code("a good one beside it", codes.get(other.name()), NONE);
        var twice = Configs.alter(wire, Configs.edit(other, "retention.ms", "7"),
            Configs.edit(other, "retention.ms", "7"));
        check.that("the same topic twice", twice.stream().allMatch(r -> r.errorCode() == INVALID_REQUEST.code()),
            twice);
        check.equal("retention.ms of the good one", "6666", value(wire, other, "retention.ms"));
    }

    /** Once it is told: a broker may learn of a change a little after it was accepted. */
    private static String value(Wire wire, Topic topic, String key) throws Exception {
        Thread.sleep(200);
        return Configs.of(wire, topic, key).value();
    }
}
