package probes.cases;

import org.apache.kafka.common.message.CreatePartitionsRequestData;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsTopic;
import org.apache.kafka.common.message.CreatePartitionsResponseData;
import org.apache.kafka.common.record.internal.RecordBatch;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.Waiting;
import probes.ask.Configs;
import probes.ask.Fetch;
import probes.ask.Offsets;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import static org.apache.kafka.common.protocol.Errors.NONE;

/** Logs with holes, as compaction leaves them. */
public final class CompactionProbes {
    private static final String[] COMPACTED = {"cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.001",
        "segment.ms", "400", "delete.retention.ms", "0"};
    /** Longer than segment.ms: the next record begins a segment, and the one before can be compacted. */
    private static final int ROLLED_MS = 600;
    private static final int KEYS = 10;
    private static final int BATCHES = 100;
    private static final int PER_BATCH = 5;

    private CompactionProbes() {
    }

    @Probe(value = "C067 a compacted log is read to its end, from every offset, in the batches it was written in",
        seconds = 90, spoil = Spoil.PAYLOAD)
    static void toTheEnd(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1, COMPACTED);
        Set<List<Long>> written = new HashSet<>();
        for (int i = 0; i < BATCHES; i++) {
            Batch batch = new Batch();
            for (int j = 0; j < PER_BATCH; j++) {
                batch.record(Waiting.now(), "k" + (i * PER_BATCH + j) % KEYS, "v" + i + "." + j);
            }
            long base = Produce.put(wire, topic, batch);
            written.add(List.of(base, base + PER_BATCH - 1));
        }
        rollAndCompact(check, wire, topic, 2 * KEYS + 1);
        long end = Offsets.end(wire, topic, 0);
        for (int limit : new int[]{1, 1 << 20}) {
            List<RecordBatch> batches = read(check, wire, topic, end, limit);
            for (RecordBatch batch : batches.subList(0, Math.max(0, batches.size() - 1))) {
                List<Long> span = List.of(batch.baseOffset(), batch.lastOffset());
                check.that("a batch keeps its offsets", written.contains(span), span);
            }
        }
        for (long offset = 0; offset <= end; offset += 7) {
            check.code("from " + offset, Fetch.from(topic, offset).one(wire).errorCode(), NONE);
        }
        Set<Long> seen = new HashSet<>();
        Fetch.all(wire, topic, 0).forEach(r -> check.that("each offset once", seen.add(r.offset()), r.offset()));
    }

    /** Follows the log as a consumer does: the next position is what the last batch says. */
    private static List<RecordBatch> read(Check check, Wire wire, Topic topic, long end, int limit) throws Exception {
        List<RecordBatch> all = new ArrayList<>();
        long position = 0;
        while (position < end) {
            List<RecordBatch> found = Fetch.batches(Fetch.from(topic, position).atMost(limit).one(wire));
            if (found.isEmpty() || found.get(found.size() - 1).nextOffset() <= position) {
                check.fail("nothing at " + position + " below the end " + end);
                break;
            }
            all.addAll(found);
            position = found.get(found.size() - 1).nextOffset();
        }
        check.equal("position at the end", end, position);
        return all;
    }

    private static void rollAndCompact(Check check, Wire wire, Topic topic, int left) throws Exception {
        Thread.sleep(ROLLED_MS);
        Produce.put(wire, topic, new Batch().record(Waiting.now(), "last", "1"));
        boolean done = Waiting.until(30_000, () -> Fetch.all(wire, topic, 0).size() <= left);
        check.that("compacted to " + left + " records", done, Fetch.all(wire, topic, 0).size());
    }

    @Probe(value = "C069 another policy, more partitions and other settings leave data and policy alone", seconds = 90,
        spoil = Spoil.PAYLOAD)
    static void otherSettings(Check check) throws Exception {
        Wire wire = check.wire();
        Topic topic = Topics.create(wire, 1, COMPACTED);
        for (int i = 0; i < 50; i++) {
            Produce.put(wire, topic, new Batch().record(Waiting.now(), "k" + i % 5, "v" + i)
                .record(Waiting.now(), "u" + i, "w"));
        }
        rollAndCompact(check, wire, topic, 57);
        List<String> before = Fetch.values(Fetch.all(wire, topic, 0));
        check.between("records left", 50, 57, before.size());
        check.code("retention.ms", Configs.alter(wire, topic, "retention.ms", "-1"), NONE);
        check.equal("policy after it", "compact", Configs.of(wire, topic, "cleanup.policy").value());
        CreatePartitionsRequestData more = new CreatePartitionsRequestData().setTimeoutMs(10_000);
        more.topics().mustAdd(new CreatePartitionsTopic().setName(topic.name()).setCount(3).setAssignments(null));
        CreatePartitionsResponseData answer = wire.call(more, 3);
        check.code("partitions", answer.results().get(0).errorCode(), NONE);
        check.equal("policy after them", "compact", Configs.of(wire, topic, "cleanup.policy").value());
        for (String policy : new String[]{"delete", "compact,delete", "compact"}) {
            check.code("to " + policy, Configs.alter(wire, topic, "cleanup.policy", policy), NONE);
            Waiting.until(5_000, () -> Configs.of(wire, topic, "cleanup.policy").value().equals(policy));
            check.equal("policy", policy, Configs.of(wire, topic, "cleanup.policy").value());
            Thread.sleep(800);
            check.equal("records under " + policy, before, Fetch.values(Fetch.all(wire, topic, 0)));
        }
    }
}
