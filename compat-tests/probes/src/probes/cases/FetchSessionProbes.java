package probes.cases;

import org.apache.kafka.common.message.FetchResponseData;
import probes.Check;
import probes.Probe;
import probes.ask.Fetch;
import probes.ask.Produce;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Batch;
import probes.wire.Wire;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

import static org.apache.kafka.common.protocol.Errors.FETCH_SESSION_ID_NOT_FOUND;
import static org.apache.kafka.common.protocol.Errors.INVALID_FETCH_SESSION_EPOCH;
import static org.apache.kafka.common.protocol.Errors.NONE;

/** Fetch sessions (KIP-227). */
public final class FetchSessionProbes {
    /** More than the 1000 that a broker keeps by default. */
    private static final int MANY = 1_100;

    private FetchSessionProbes() {
    }

    @Probe("C016 fetch sessions are made, followed and closed by id and epoch")
    static void identity(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 2);
        Produce.put(check.wire(), topic, Batch.of("a", "b", "c"));
        Wire wire = check.another();
        check.equal("session id at (0, -1)", 0, Fetch.from(topic, 0).ask(wire).sessionId());
        FetchResponseData opened = Fetch.from(topic, 3).and(topic, 1, 0).session(0, 0).ask(wire);
        int id = opened.sessionId();
        check.that("session id at (0, 0)", id != 0, id);
        check.equal("partitions of the first answer", 2, Fetch.byPartition(opened).size());
        check.code("an unknown id", Fetch.from(topic, 0).session(id ^ 0x55, 1).ask(wire).errorCode(),
            FETCH_SESSION_ID_NOT_FOUND);
        check.code("a wrong epoch", Fetch.nothing().session(id, 5).ask(wire).errorCode(), INVALID_FETCH_SESSION_EPOCH);
        check.equal("idle partitions told", 0, told(Fetch.nothing().session(id, 1), wire).size());
        Topics.trim(check.wire(), topic, 2);
        FetchResponseData moved = Fetch.nothing().session(id, 2).ask(wire);
        check.equal("told after a trim", Set.of(0), Fetch.byPartition(moved).keySet());
        check.equal("its log start", 2, Fetch.first(moved).logStartOffset());
        Produce.put(check.wire(), topic, 1, Batch.of("x"));
        check.equal("told after new records", Set.of(1), told(Fetch.nothing().session(id, 3), wire));
        check.equal("told once it is forgotten", Set.of(), told(Fetch.nothing().session(id, 4).forget(topic, 1), wire));
        FetchResponseData closed = Fetch.from(topic, 3).session(id, -1).ask(wire);
        check.equal("told at (id, -1)", Set.of(0), Fetch.byPartition(closed).keySet());
        check.equal("session id at (id, -1)", 0, closed.sessionId());
        check.code("the closed id", Fetch.nothing().session(id, 5).ask(wire).errorCode(), FETCH_SESSION_ID_NOT_FOUND);
    }

    private static Set<Integer> told(Fetch fetch, Wire wire) throws Exception {
        return Fetch.byPartition(fetch.ask(wire)).keySet();
    }

    @Probe(value = "C016 a fetch session in use outlives more sessions than there is room for", seconds = 60)
    static void crowd(Check check) throws Exception {
        Topic topic = Topics.create(check.wire(), 1);
        Wire wire = check.another();
        int used = Fetch.from(topic, 0).session(0, 0).ask(wire).sessionId();
        List<Integer> others = new ArrayList<>();
        int epoch = 1;
        for (int i = 0; i < MANY; i++) {
            FetchResponseData opened = Fetch.from(topic, 0).session(0, 0).ask(wire);
            if (opened.errorCode() != 0) {
                check.code("session " + i, opened.errorCode(), NONE);
                return;
            }
            others.add(opened.sessionId());
            if (i % 50 == 0) {
                check.code("the used one after " + i, Fetch.nothing().session(used, epoch++).ask(wire).errorCode(),
                    NONE);
            }
        }
        check.note(others.stream().filter(id -> id == 0).count() + " of " + MANY + " got no session");
        short wrong = Fetch.nothing().session(used, epoch + 7).ask(wire).errorCode();
        check.code("a wrong epoch of the used one", wrong, INVALID_FETCH_SESSION_EPOCH);
        others.add(used);
        for (int id : others) {
            Fetch.nothing().session(id, -1).ask(wire); // or the next probe would find no room
        }
    }

    @Probe(value = "C016 a full session cache refuses consumers, and a follower's session takes one's place",
        seconds = 120)
    static void places(Check check) throws Exception {
        int places = 16; // eight parts of the cache, each with its share of whole places
        try (var broker = check.outside.spawn("max.incremental.fetch.session.cache.slots=20")) {
            Wire wire = check.another(broker.address());
            Topic topic = Topics.create(wire, 1);
            List<Integer> ids = new ArrayList<>();
            for (int i = 0; i < places; i++) {
                ids.add(Fetch.from(topic, 0).session(0, 0).ask(wire).sessionId());
            }
            check.that("a session for each of " + places, !ids.contains(0) && Set.copyOf(ids).size() == places, ids);
            check.equal("one more", 0, Fetch.from(topic, 0).session(0, 0).ask(wire).sessionId());
            int follower = Fetch.from(topic, 0).asReplica(7).session(0, 0).ask(wire).sessionId();
            check.that("a follower's", follower != 0, follower);
            int gone = 0;
            for (int id : ids) {
                short code = Fetch.nothing().session(id, 1).ask(wire).errorCode();
                gone += code == FETCH_SESSION_ID_NOT_FOUND.code() ? 1 : 0;
            }
            check.equal("consumers' sessions gone", 1, gone);
        }
    }
}
