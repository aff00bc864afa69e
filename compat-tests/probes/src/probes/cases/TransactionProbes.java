package probes.cases;

import org.apache.kafka.common.message.AddOffsetsToTxnRequestData;
import org.apache.kafka.common.message.AddOffsetsToTxnResponseData;
import org.apache.kafka.common.message.FindCoordinatorRequestData;
import org.apache.kafka.common.message.InitProducerIdRequestData;
import org.apache.kafka.common.message.InitProducerIdResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic;
import org.apache.kafka.common.message.TxnOffsetCommitResponseData;
import org.apache.kafka.common.protocol.Errors;
import probes.Check;
import probes.Probe;
import probes.Spoil;
import probes.Waiting;
import probes.Wrong;
import probes.ask.Groups;
import probes.ask.Member;
import probes.ask.Topics;
import probes.ask.Topics.Topic;
import probes.wire.Wire;

import java.util.List;

import static org.apache.kafka.common.protocol.Errors.ILLEGAL_GENERATION;
import static org.apache.kafka.common.protocol.Errors.NONE;

/** Offsets that are committed within a transaction. */
public final class TransactionProbes {
    private static final short TXN_OFFSET_COMMIT = 28;

    private TransactionProbes() {
    }

    @Probe(value = "C043 a transactional commit is not held up by a rebalance", seconds = 60, spoil = Spoil.TEXTS)
    static void duringRebalance(Check check) throws Exception {
        if (ApiVersionsProbes.served(check.wire()).find(TXN_OFFSET_COMMIT) == null) {
            throw new Wrong("TxnOffsetCommit is not served");
        }
        Topic topic = Topics.create(check.wire(), 1);
        String group = Groups.fresh(check.wire());
        Member first = new Member(check, group, 30_000);
        Member second = new Member(check, group, 30_000);
        Member.form(first);
        Member.admit(second, first);
        check.equal("state", "CompletingRebalance", Groups.describe(check.wire(), group).groupState());
        Wire wire = check.another();
        String id = Waiting.fresh("x");
        InitProducerIdResponseData producer = begin(wire, id, group);
        TxnOffsetCommitRequestData request = new TxnOffsetCommitRequestData().setTransactionalId(id).setGroupId(group)
            .setProducerId(producer.producerId()).setProducerEpoch(producer.producerEpoch()).setMemberId(first.id());
        var partition = new TxnOffsetCommitRequestPartition().setPartitionIndex(0).setCommittedOffset(5);
        request.topics().add(new TxnOffsetCommitRequestTopic().setName(topic.name()).setPartitions(List.of(partition)));
        int generation = first.generation();
        check.code("of the current generation", commit(wire, request.setGenerationIdOrMemberEpoch(generation)), NONE);
        check.code("of the one before", commit(wire, request.setGenerationIdOrMemberEpoch(generation - 1)),
            ILLEGAL_GENERATION);
    }

    /** A producer with the group's offsets in its transaction. */
    private static InitProducerIdResponseData begin(Wire wire, String id, String group) throws Exception {
        InitProducerIdResponseData[] producer = new InitProducerIdResponseData[1];
        Waiting.until(20_000, () -> {
            wire.call(new FindCoordinatorRequestData().setKeyType((byte) 1).setCoordinatorKeys(List.of(id)), 4);
            var init = new InitProducerIdRequestData().setTransactionalId(id).setTransactionTimeoutMs(60_000);
            producer[0] = wire.call(init, 4);
            return producer[0].errorCode() == 0;
        });
        short[] added = new short[1];
        Waiting.until(10_000, () -> {
            AddOffsetsToTxnResponseData answer = wire.call(new AddOffsetsToTxnRequestData().setTransactionalId(id)
                .setProducerId(producer[0].producerId()).setProducerEpoch(producer[0].producerEpoch())
                .setGroupId(group), 3);
            added[0] = answer.errorCode();
            return added[0] == 0;
        });
        if (producer[0].errorCode() != 0 || added[0] != 0) {
            throw new Wrong("no transaction: " + Errors.forCode(producer[0].errorCode()) + ", "
                + Errors.forCode(added[0]));
        }
        return producer[0];
    }

    private static short commit(Wire wire, TxnOffsetCommitRequestData request) throws Exception {
        TxnOffsetCommitResponseData answer = wire.call(request, 3);
        return answer.topics().get(0).partitions().get(0).errorCode();
    }
}
