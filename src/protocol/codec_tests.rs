//! Ottla's codecs and tables against kafka-protocol, an independent reader of the same bytes.

use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey as CrateKey, RequestKind, ResponseKind};

use super::StrBytes;
use super::api::{self, ApiKey};
use super::messages::*;
use super::sample::sample;
use super::schema::{self, DescribedMessage, Message, Versions};
use super::wire::{DecodeError, EncodeError, Fault, Piece, Pieces, Stored, WireResponse};
use crate::env::{FileSlice, Files, OpenMode};

/// Newest version that the crate has, where it lags: (request, response).
fn crate_max(key: ApiKey) -> (i16, i16) {
    match key {
        ApiKey::OffsetCommit | ApiKey::OffsetFetch => (9, 10),
        ApiKey::ListOffsets => (10, 10),
        ApiKey::ApiVersions => (4, 4),
        ApiKey::DeleteGroups => (2, 2),
        ApiKey::DescribeLogDirs => (4, 4),
        _ => (i16::MAX, i16::MAX),
    }
}

fn table_of(name: &str) -> &'static Message {
    schema::all().into_iter().find(|message| message.schema.name == name).unwrap()
}

#[test]
fn the_crate_reads_and_writes_bodies_of_our_tables_unchanged() {
    for row in api::served() {
        let crate_key = CrateKey::try_from(row.key as i16).unwrap();
        let request = table_of(&format!("{}Request", row.key));
        let response = table_of(&format!("{}Response", row.key));
        for (version, seed) in (row.min..=row.max).flat_map(|v| (0..20).map(move |s| (v, s))) {
            let (request_max, response_max) = crate_max(row.key);
            let mut out = BytesMut::new();
            if version <= request_max {
                let body = Bytes::from(sample(request, version, seed, 3).bytes);
                let mut rest = body.clone();
                let decoded = RequestKind::decode(crate_key, &mut rest, version).unwrap();
                decoded.encode(&mut out, version).unwrap();
                assert_eq!((out.split().freeze(), rest.len()), (body, 0), "{row:?} {version}");
            }
            if version <= response_max {
                let body = Bytes::from(sample(response, version, seed, 3).bytes);
                let mut rest = body.clone();
                let decoded = ResponseKind::decode(crate_key, &mut rest, version).unwrap();
                decoded.encode(&mut out, version).unwrap();
                assert_eq!((out.split().freeze(), rest.len()), (body, 0), "{row:?} {version}");
            }
        }
    }
}

/// The bytes of pieces of which none is a file.
fn joined(pieces: &[Piece]) -> Vec<u8> {
    let bytes = |piece: &Piece| match piece {
        Piece::Bytes(bytes) => bytes.clone(),
        Piece::File(slice) => panic!("{slice:?}"),
    };
    pieces.iter().map(bytes).collect::<Vec<Bytes>>().concat()
}

/// Reads and writes every sample of every version; also as pieces.
macro_rules! unchanged {
    ($($message:ty),* $(,)?) => {$({
        let message = &<$message as DescribedMessage>::MESSAGE;
        let Versions { first, last } = message.versions;
        for (version, seed) in (first..=last).flat_map(|v| (0..20).map(move |s| (v, s))) {
            let body = Bytes::from(sample(message, version, seed, 3).bytes);
            let mut rest = body.clone();
            let value = <$message>::decode(&mut rest, version).unwrap();
            let (mut out, mut pieces) = (BytesMut::new(), Pieces::new());
            value.encode(&mut out, version).unwrap();
            value.encode(&mut pieces, version).unwrap();
            let name = stringify!($message);
            assert_eq!((&out[..], rest.len()), (&body[..], 0), "{name} {version}: {value:?}");
            assert_eq!(joined(&pieces.finish()), body, "{name} {version}");
        }
    })*};
}

#[test]
fn our_codecs_read_and_write_bodies_of_our_tables_unchanged() {
    use super::records::{group::*, metadata::*};
    unchanged! {
        ProduceRequest, ProduceResponse, FetchRequest, FetchResponse, ListOffsetsRequest,
        ListOffsetsResponse, OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest,
        OffsetFetchResponse, ApiVersionsRequest, ApiVersionsResponse, DeleteGroupsRequest,
        DeleteGroupsResponse, OffsetCommitKey, OffsetCommitValue, GroupMetadataKey,
        GroupMetadataValue, LegacyOffsetCommitKey, LegacyOffsetCommitValue, RegisterBrokerRecord,
        UnregisterBrokerRecord, TopicRecord, PartitionRecord, ConfigRecord, PartitionChangeRecord,
        FenceBrokerRecord, UnfenceBrokerRecord, RemoveTopicRecord, FeatureLevelRecord,
        ProducerIdsRecord, BrokerRegistrationChangeRecord, NoOpRecord,
    }
}

#[test]
fn tables_and_api_keys_agree_on_versions_and_flexibility() {
    for row in api::served() {
        let request = request_message(row.key).unwrap();
        let response = table_of(&format!("{}Response", row.key));
        for version in row.min..=row.max {
            for message in [request, response] {
                assert!(message.versions.contains(version), "{row:?} {version}");
                assert_eq!(message.flexible.contains(version), row.is_flexible(version));
            }
        }
    }
}

#[test]
fn every_sample_is_read_by_the_codec_that_serves_it() {
    for row in api::served() {
        for version in row.min..=row.max {
            let sample = sample(request_message(row.key).unwrap(), version, 1, 3);
            let mut body = Bytes::from(sample.bytes);
            assert_eq!(decode_any(row.key, &mut body, version), Ok(()), "{row:?} {version}");
            assert!(body.is_empty());
        }
    }
}

#[test]
fn records_of_a_produce_are_slices_of_the_frame() {
    let records = Bytes::from(vec![7; 5000]);
    let partition = produce::PartitionProduceData { index: 1, records: Some(records) };
    let request = ProduceRequest {
        topic_data: vec![produce::TopicProduceData {
            name: StrBytes::from_static_str("t"),
            partition_data: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    };
    let mut out = BytesMut::new();
    request.encode(&mut out, 12).unwrap();
    let frame = out.freeze();
    let decoded = ProduceRequest::decode(&mut frame.clone(), 12).unwrap();
    let slice = decoded.topic_data[0].partition_data[0].records.clone().unwrap();
    assert!(frame.as_ptr_range().contains(&slice.as_ptr()));
    assert_eq!(decoded, request);
}

#[test]
fn records_of_a_fetch_are_passed_on_not_copied() {
    let records = Bytes::from(vec![7; 5000]);
    let stored = Stored::Read(records.clone());
    let partition = fetch::PartitionData { records: Some(stored), ..Default::default() };
    let topic = fetch::FetchableTopicResponse { partitions: vec![partition], ..Default::default() };
    let response = FetchResponse { responses: vec![topic], ..Default::default() };
    let (mut whole, mut pieces) = (BytesMut::new(), Pieces::new());
    WireResponse::encode(&response, &mut whole, 16).unwrap();
    response.encode_pieces(&mut pieces, 16).unwrap();
    assert_eq!(pieces.size_bytes(), whole.len());
    let pieces = pieces.finish();
    assert_eq!(joined(&pieces), whole);
    let is_shared = |piece: &Piece| match piece {
        Piece::Bytes(bytes) => bytes.as_ptr() == records.as_ptr(),
        Piece::File(_) => false,
    };
    assert!(pieces.iter().any(is_shared));
}

#[test]
fn a_body_that_is_not_the_message_is_refused_by_the_name_of_the_field() {
    #[rustfmt::skip]
    let table: [(&[u8], i16, _, _); 5] = [
        (b"",                            8, "transactional_id", Fault::Cut),
        (b"\xff\xff\0\x01\0\0",          8, "timeout_ms",       Fault::Cut),
        (b"\0\x09t",                     8, "transactional_id", Fault::Length),
        (b"\xff\xff\0\x01\0\0\0\0\xff\xff\xff\xff", 8, "topic_data", Fault::Null),
        (b"\x00\0\x01\0\0\0\0\xff\xff\xff\x7f",     9, "topic_data", Fault::TooManyElements),
    ];
    for (body, version, field, fault) in table {
        let error = ProduceRequest::decode(&mut Bytes::from_static(body), version).unwrap_err();
        assert_eq!(error, DecodeError::Field { field, fault });
    }
    let error = ProduceRequest::decode(&mut Bytes::new(), 2).unwrap_err();
    assert_eq!(error, DecodeError::Version { message: "ProduceRequest", version: 2 });
}

#[test]
fn text_that_is_not_utf8_is_replaced_as_kafka_does() {
    let mut body = Bytes::from_static(b"\0\0\0\x01\0\x03g\xffh");
    let request = DeleteGroupsRequest::decode(&mut body, 1).unwrap();
    assert_eq!(request.groups_names[0].as_str(), "g\u{fffd}h");
}

#[test]
fn what_a_version_cannot_say_is_an_error_and_what_it_has_not_is_left_out() {
    let response = |name: String| ListOffsetsResponse {
        topics: vec![list_offsets::ListOffsetsTopicResponse {
            name: StrBytes::from_string(name),
            ..Default::default()
        }],
        throttle_time_ms: 9,
    };
    let mut out = BytesMut::new();
    response("t".into()).encode(&mut out, 1).unwrap();
    assert_eq!(&out[..], b"\0\0\0\x01\0\x01t\0\0\0\0");
    for version in [1, 6] {
        let error = response("t".repeat(32_768)).encode(&mut out, version).unwrap_err();
        assert_eq!(error, EncodeError::TooLong { field: "name", length: 32_768 });
    }
    let request = OffsetFetchRequest { topics: None, ..Default::default() };
    assert!(request.encode(&mut out, 2).is_ok());
    let error = request.encode(&mut out, 1).unwrap_err();
    assert_eq!(error, EncodeError::Null { field: "topics", version: 1 });
}

#[test]
fn records_left_in_their_file_are_a_piece_of_their_own() {
    let files = Files::Sim(Default::default());
    files.write(Path::new("/stored"), &[7; 100]).unwrap();
    let file = Arc::new(files.open(Path::new("/stored"), OpenMode::Read).unwrap());
    let slice = FileSlice { file, position: 10, size_bytes: 80 };
    let answer = |stored| {
        let partition = fetch::PartitionData { records: Some(stored), ..Default::default() };
        let partitions = vec![partition];
        let topic = fetch::FetchableTopicResponse { partitions, ..Default::default() };
        FetchResponse { responses: vec![topic], ..Default::default() }
    };
    for version in [4, 11, 12, 18] {
        let mut pieces = Pieces::new();
        answer(Stored::InFile(slice.clone())).encode_pieces(&mut pieces, version).unwrap();
        let mut read = BytesMut::new();
        let stored = Stored::Read(Bytes::from(vec![7; 80]));
        WireResponse::encode(&answer(stored), &mut read, version).unwrap();
        assert_eq!(pieces.size_bytes(), read.len());
        let (mut out, mut of_file) = (Vec::new(), 0);
        for piece in pieces.finish() {
            match piece {
                Piece::Bytes(bytes) => out.extend_from_slice(&bytes),
                Piece::File(sent) => {
                    assert_eq!(sent, slice);
                    of_file += 1;
                    out.extend_from_slice(&[7; 80]);
                }
            }
        }
        assert_eq!((&out[..], of_file), (&read[..], 1), "version {version}");
    }
}
