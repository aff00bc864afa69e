//! Produce (key 0). Hot: records are slices of the frame, never copied, never re-encoded.

use crate::protocol::dsl::messages;

messages! {
    struct ProduceRequest "3-13" flexible "9+" {
        transactional_id: string, "3+", null "3+" = None;
        acks: int16, "0+";
        timeout_ms: int32, "0+";
        topic_data: [TopicProduceData], "0+";
    }

    struct TopicProduceData {
        name: string, "0-12";
        topic_id: uuid, "13+";
        partition_data: [PartitionProduceData], "0+";
    }

    struct PartitionProduceData {
        index: int32, "0+";
        records: records, "0+", null "0+" = None;
    }

    struct ProduceResponse "3-13" flexible "9+" {
        responses: [TopicProduceResponse], "0+";
        throttle_time_ms: int32, "1+";
        node_endpoints: [NodeEndpoint], "10+", tag 0;
    }

    struct TopicProduceResponse {
        name: string, "0-12";
        topic_id: uuid, "13+";
        partition_responses: [PartitionProduceResponse], "0+";
    }

    struct PartitionProduceResponse {
        index: int32, "0+";
        error_code: int16, "0+";
        base_offset: int64, "0+";
        log_append_time_ms: int64, "2+" = -1;
        log_start_offset: int64, "5+" = -1;
        record_errors: [BatchIndexAndErrorMessage], "8+";
        error_message: string, "8+", null "8+" = None;
        current_leader: LeaderIdAndEpoch, "10+", tag 0;
    }

    struct BatchIndexAndErrorMessage {
        batch_index: int32, "8+";
        batch_index_error_message: string, "8+", null "8+" = None;
    }

    struct LeaderIdAndEpoch {
        leader_id: int32, "10+" = -1;
        leader_epoch: int32, "10+" = -1;
    }

    struct NodeEndpoint {
        node_id: int32, "10+";
        host: string, "10+";
        port: int32, "10+";
        rack: string, "10+", null "10+" = None;
    }
}
