package probes.cases;

import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.message.ProduceResponseData;
import probes.Check;
import probes.Outside;
import probes.Probe;
import probes.Spoil;
import probes.Waiting;
import probes.ask.Fetch;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.util.List;
import java.util.concurrent.CompletableFuture;

import static org.apache.kafka.common.protocol.Errors.NONE;

/** One connection over time: its order, its idleness. */
public final class ConnectionProbes {
    private static final int MIXED = 500;
    private static final int BATCHES = 1_000;
    private static final int IN_FLIGHT = 5;
    private static final int IDLE_MS = 5_000;

    private ConnectionProbes() {
    }

    @Probe(value = "C107 answers leave in the order of the requests, idempotent batches are stored in it",
        seconds = 60, spoil = Spoil.OFFSETS)
    static void order(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        Topic idle = Topics.create(check.wire(), 1);
        Wire wire = check.another();
        for (int i = 0; i < MIXED; i++) {
            if (i % 50 == 10) {
                Fetch.from(idle, 0).patient(200).send(wire);
            } else if (i % 3 == 0) {
                wire.send(Produce.request(topic, Batch.of("v")), Produce.VERSION);
            } else {
                wire.send(new MetadataRequestData().setTopics(List.of()), 9);
            }
        }
        for (int i = 0; i < MIXED; i++) {
            wire.receive(); // in order, or it is Wrong
        }
        Topic numbered = Topics.create(check.wire(), 1);
        long id = Produce.producerId(check.wire());
        int sent = 0;
        for (int received = 0; received < BATCHES; received++) {
            for (; sent < BATCHES && sent - received < IN_FLIGHT; sent++) {
                wire.send(Produce.request(numbered, Batch.of("v").producer(id, 0, sent)), Produce.VERSION);
            }
            ProduceResponseData answer = wire.receive();
            check.code("batch " + received, Produce.only(answer).errorCode(), NONE);
            check.equal("its offset", received, Produce.only(answer).baseOffset());
        }
    }

    @Probe(value = "C107 a waiting Fetch holds up its own connection only", spoil = Spoil.PAYLOAD)
    static void waiting(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 2);
        Wire wire = check.another();
        long start = Waiting.now();
        Fetch.from(topic, 0).patient(4_000).send(wire);
        wire.send(new MetadataRequestData().setTopics(List.of()), 9);
        Produce.put(check.wire(), topic, 1, Batch.of("v"));
        int found = Fetch.batches(Fetch.nothing().and(topic, 1, 0).one(check.another())).size();
        check.equal("batches over another connection", 1, found);
        check.between("ms until then", 0, 3_500, Waiting.now() - start);
        wire.receive();
        wire.receive();
        check.between("ms of what stands behind the Fetch", 3_900, 8_000, Waiting.now() - start);
    }

    @Probe(value = "C105 an idle connection is closed in order at its limit, a busy one is not", seconds = 150,
        spoil = Spoil.CLOSING)
    static void idle(Check check) throws Exception {
        Outside.Spawned spawned = check.closing(check.outside.spawn("connections.max.idle.ms=" + IDLE_MS,
            "auto.create.topics.enable=false"));
        Topic topic = Topics.create(check.another(spawned.address()), 1);
        Wire silent = check.another(spawned.address());
        Wire waiting = check.another(spawned.address());
        Wire busy = check.another(spawned.address());
        long start = Waiting.now();
        Fetch.from(topic, 0).patient(2 * IDLE_MS).send(waiting);
        CompletableFuture<Void> asking = CompletableFuture.runAsync(() -> {
            try {
                while (Waiting.now() < start + 2 * IDLE_MS) {
                    Topics.cluster(busy);
                    Thread.sleep(IDLE_MS / 5);
                }
            } catch (Exception e) {
                check.fail("the busy connection: " + e);
            }
        });
        check.equal("the silent connection", Wire.End.CLOSED, silent.end(3 * IDLE_MS));
        check.between("ms until then", IDLE_MS - 500, 2 * IDLE_MS + 2_000, Waiting.now() - start);
        asking.join();
        check.that("the busy connection serves", !Topics.cluster(busy).brokers().isEmpty(), "no brokers");
        try {
            var answer = Fetch.first(waiting.receive());
            check.code("a Fetch that waits longer than the limit", answer.errorCode(), NONE);
            check.note("a Fetch that waits longer than the limit is answered");
        } catch (Wire.Gone e) {
            check.note("a Fetch that waits longer than the limit is closed"); // so Kafka 4.4.0
        }
    }
}
