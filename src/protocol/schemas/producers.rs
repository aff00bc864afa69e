//! Schemas of what kafka-protocol decodes: producer ids, producers and leader epochs.

use crate::protocol::dsl::schemas;

schemas! {
    init_producer_id_request:
    struct InitProducerIdRequest "0-5" flexible "2+" {
        transactional_id: string, "0+", null "0+";
        transaction_timeout_ms: int32, "0+";
        producer_id: int64, "3+" = -1;
        producer_epoch: int16, "3+" = -1;
    }
}

schemas! {
    init_producer_id_response:
    struct InitProducerIdResponse "0-6" flexible "2+" {
        throttle_time_ms: int32, "0+";
        error_code: int16, "0+";
        producer_id: int64, "0+" = -1;
        producer_epoch: int16, "0+";
        ongoing_txn_producer_id: int64, "6+" = -1;
        ongoing_txn_producer_epoch: int16, "6+" = -1;
    }
}

schemas! {
    offset_for_leader_epoch_request:
    struct OffsetForLeaderEpochRequest "2-4" flexible "4+" {
        replica_id: int32, "3+" = -2;
        topics: [OffsetForLeaderTopic], "0+";
    }

    struct OffsetForLeaderTopic {
        topic: string, "0+";
        partitions: [OffsetForLeaderPartition], "0+";
    }

    struct OffsetForLeaderPartition {
        partition: int32, "0+";
        current_leader_epoch: int32, "2+" = -1;
        leader_epoch: int32, "0+";
    }
}

schemas! {
    offset_for_leader_epoch_response:
    struct OffsetForLeaderEpochResponse "2-4" flexible "4+" {
        throttle_time_ms: int32, "2+";
        topics: [OffsetForLeaderTopicResult], "0+";
    }

    struct OffsetForLeaderTopicResult {
        topic: string, "0+";
        partitions: [EpochEndOffset], "0+";
    }

    struct EpochEndOffset {
        error_code: int16, "0+";
        partition: int32, "0+";
        leader_epoch: int32, "1+" = -1;
        end_offset: int64, "0+" = -1;
    }
}

schemas! {
    describe_producers_request:
    struct DescribeProducersRequest "0" flexible "0+" {
        topics: [TopicRequest], "0+";
    }

    struct TopicRequest {
        name: string, "0+";
        partition_indexes: [int32], "0+";
    }
}

schemas! {
    describe_producers_response:
    struct DescribeProducersResponse "0" flexible "0+" {
        throttle_time_ms: int32, "0+";
        topics: [TopicResponse], "0+";
    }

    struct TopicResponse {
        name: string, "0+";
        partitions: [PartitionResponse], "0+";
    }

    struct PartitionResponse {
        partition_index: int32, "0+";
        error_code: int16, "0+";
        error_message: string, "0+", null "0+" = null;
        active_producers: [ProducerState], "0+";
    }

    struct ProducerState {
        producer_id: int64, "0+";
        producer_epoch: int32, "0+";
        last_sequence: int32, "0+" = -1;
        last_timestamp: int64, "0+" = -1;
        coordinator_epoch: int32, "0+";
        current_txn_start_offset: int64, "0+" = -1;
    }
}
