//! The rules for a client's batch, as tables.

use super::*;
use crate::common::{ProducerEpoch, ProducerId};
use crate::protocol::batch::Header;
use proptest::prelude::*;

const NOW_MS: i64 = 1_700_000_000_000;

fn three_records(codec: Codec) -> BatchBuilder {
    let mut builder = BatchBuilder::new(0).codec(codec);
    builder.push(NOW_MS, Some(b"a"), Some(b"1"), &[]);
    builder.push(NOW_MS + 7, None, Some(b"2"), &[]);
    builder.push(NOW_MS - 7, Some(b""), None, &[]);
    builder
}

/// The batch with a header field written over, its CRC made right again.
fn patched(batch: &Bytes, position: usize, with: &[u8]) -> Bytes {
    let mut bytes = batch.to_vec();
    bytes[position..position + with.len()].copy_from_slice(with);
    let crc = crc_of(&bytes).to_be_bytes();
    bytes[17..21].copy_from_slice(&crc);
    bytes.into()
}

fn rules() -> Rules {
    Rules::defaults(NOW_MS)
}

fn all_codecs() -> [Codec; 5] {
    use Compression::{Gzip, Lz4, None, Snappy, Zstd};
    [None, Gzip, Snappy, Lz4, Zstd].map(Codec::of)
}

#[test]
fn a_batch_by_the_rules_keeps_its_bytes_and_gets_its_real_max_timestamp() {
    for codec in all_codecs() {
        let sent = patched(&three_records(codec).build(), 35, &0_i64.to_be_bytes());
        let checked = check(&sent, &rules()).expect("by the rules");
        assert_eq!(checked.bytes, sent, "{codec:?}");
        assert_eq!((checked.max_timestamp, checked.offset_delta_of_max_timestamp), (NOW_MS + 7, 1));
    }
}

#[test]
fn header_rules_of_c103() {
    let good = three_records(Codec::NONE).build();
    let with_id = |sequence| {
        let producer = Producer {
            id: ProducerId(7),
            epoch: ProducerEpoch(0),
            base_sequence: sequence,
            transactional: false,
        };
        let mut builder = BatchBuilder::new(0).producer(producer);
        builder.push(NOW_MS, None, None, &[]);
        builder.build()
    };
    let control = {
        let mut builder = BatchBuilder::new(0).control();
        builder.push(NOW_MS, None, None, &[]);
        builder.build()
    };
    let crc = BatchHeader::parse(&good).expect("good").crc;
    #[rustfmt::skip]
    let table = [
        ("base offset",     patched(&good, 0, &5_i64.to_be_bytes()),   Invalid::BaseOffset(5)),
        ("negative delta",  patched(&good, 23, &(-1_i32).to_be_bytes()), Invalid::OffsetRange(-1)),
        ("no records",      patched(&good, 57, &0_i32.to_be_bytes()),  Invalid::Count(0)),
        ("wrong delta",     patched(&good, 23, &5_i32.to_be_bytes()),  Invalid::OffsetsAndCount { last_offset_delta: 5, count: 3 }),
        ("control",         control,                                   Invalid::Control),
        ("no sequence",     with_id(-1),                               Invalid::Sequence(-1)),
    ];
    for (name, batch, invalid) in table {
        assert_eq!(check(&batch, &rules()), Err(invalid.into()), "{name}");
    }
    let mut flipped = good.to_vec();
    flipped[70] ^= 1;
    let corrupt = BatchError::Corrupt { size_bytes: good.len(), crc };
    assert_eq!(check(&flipped.into(), &rules()), Err(corrupt));
    let small = Rules { max_bytes: 80, ..rules() };
    let too_large = BatchError::TooLarge { size_bytes: good.len(), max_bytes: 80 };
    assert_eq!(check(&good, &small), Err(too_large));
    let unknown_codec = patched(&good, 21, &5_i16.to_be_bytes());
    assert!(matches!(check(&unknown_codec, &rules()), Err(BatchError::UnknownCodec(_))));
}

#[test]
fn record_count_and_bytes_must_agree_in_every_codec() {
    for codec in all_codecs() {
        let good = three_records(codec).build();
        for (count, left_over) in [(2, true), (4, false)] {
            let batch = patched(&good, 57, &i32::to_be_bytes(count));
            let batch = patched(&batch, 23, &(count - 1).to_be_bytes());
            match check(&batch, &rules()) {
                Err(BatchError::Invalid(Invalid::Trailing)) => assert!(left_over, "{codec:?}"),
                Err(BatchError::Invalid(Invalid::Record { index: 3, .. })) => assert!(!left_over),
                other => panic!("{codec:?}, {count} records: {other:?}"),
            }
        }
    }
}

#[test]
fn shape_of_a_partition_in_a_request() {
    use BatchError::{Unreadable as No, ZstdTooEarly};
    let good = three_records(Codec::NONE).build();
    let join = |parts: &[&[u8]]| Bytes::from(parts.concat());
    let zstd = three_records(Codec::of(Compression::Zstd)).build();
    let corrupt = |error: &BatchError| matches!(error, BatchError::Corrupt { .. });
    #[rustfmt::skip]
    let table = [
        ("nothing",            Bytes::new(),                       9, Err(Invalid::NoBatch.into())),
        ("cut short",          good.slice(..good.len() - 1),       9, Err(Invalid::NoBatch.into())),
        ("magic 1",            patched(&good, 16, &[1]),           9, Err(Invalid::Magic(1).into())),
        ("magic 3",            patched(&good, 16, &[3]),           9, Err(No(Unreadable::Magic(3)))),
        ("size 13",            patched(&good, 8, &[0, 0, 0, 13]),  9, Err(No(Unreadable::Size(13)))),
        ("two",                join(&[&good, &good]),              9, Err(Invalid::ManyBatches.into())),
        ("one and a bit",      join(&[&good, &good[..40]]),        9, Ok(good.clone())),
        ("zstd in v6",         zstd.clone(),                       6, Err(ZstdTooEarly { version: 6 })),
        ("zstd in v7",         zstd.clone(),                       7, Ok(zstd)),
    ];
    for (name, bytes, version, expected) in table {
        assert_eq!(shape(&bytes, version), expected, "{name}");
    }
    let headless = shape(&patched(&good, 8, &[0, 0, 0, 40]), 9).expect_err("too small");
    assert!(corrupt(&headless), "{headless:?}");
}

#[test]
fn refused_records_are_named_in_kafkas_words() {
    let compacted = Rules { compacted: true, ..rules() };
    let error = check(&three_records(Codec::NONE).build(), &compacted).expect_err("null key");
    let BatchError::Records(faults) = &error else { panic!("{error:?}") };
    assert_eq!(faults, &[RecordFault { batch_index: 1, kind: RecordFaultKind::NullKey }]);
    assert_eq!(
        error.message(&"t-0").as_deref(),
        Some(
            "One or more records have been rejected due to 1 record errors in total, and only \
             showing the first three errors at most: [RecordError(batchIndex=1, \
             message='Compacted topic cannot accept message without key in topic partition t-0')]"
        )
    );
    let strict = Rules { after_max_ms: 5, before_max_ms: 6, ..rules() };
    for codec in all_codecs() {
        let error = check(&three_records(codec).build(), &strict).expect_err("time");
        let BatchError::Records(faults) = &error else { panic!("{error:?}") };
        let named: Vec<i32> = faults.iter().map(|fault| fault.batch_index).collect();
        assert_eq!(named, [1, 2], "{codec:?}");
        assert_eq!(
            faults[0].message(&"t-0"),
            format!(
                "Timestamp {} of message with offset 1 is out of range. The timestamp should be \
                 within [{}, {}]",
                NOW_MS + 7,
                NOW_MS - 6,
                NOW_MS + 5
            )
        );
    }
}

#[test]
fn a_topic_with_log_append_time_takes_any_timestamp() {
    let append = Rules { timestamp_type: TimestampType::LogAppendTime, after_max_ms: 0, ..rules() };
    assert!(check(&three_records(Codec::NONE).build(), &append).is_ok());
    let stamped = patched(&three_records(Codec::NONE).build(), 21, &8_i16.to_be_bytes());
    let error = check(&stamped, &append).expect_err("producer set the bit");
    assert!(matches!(error, BatchError::Records(faults) if faults.len() == 3));
}

#[test]
fn a_record_in_a_compressed_batch_may_not_be_larger_than_the_topic_allows() {
    for codec in all_codecs() {
        let mut builder = BatchBuilder::new(0).codec(codec);
        builder.push(NOW_MS, Some(b"k"), Some(&[0; 1000]), &[]);
        let small = Rules { max_record_bytes: 900, ..rules() };
        let passes = check(&builder.build(), &small).is_ok();
        assert_eq!(passes, codec == Codec::NONE, "{codec:?}");
    }
}

#[test]
fn another_codec_of_the_topic_rewrites_the_batch() {
    for from in all_codecs() {
        for to in all_codecs() {
            let sent = three_records(from).build();
            let rules = Rules { codec: Some(to), ..rules() };
            let checked = check(&sent, &rules).expect("rewritten");
            assert_eq!(checked.header.compression(), Ok(to.compression));
            assert_eq!(checked.header.crc, crc_of(&checked.bytes));
            assert_eq!(from == to, checked.bytes == sent, "{from:?} to {to:?}");
            let read: Result<Vec<_>, _> = records(&checked.bytes).collect();
            let wrote: Result<Vec<_>, _> = records(&sent).collect();
            assert_eq!(read, wrote);
        }
    }
}

type Parts = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>);

fn any_records() -> impl Strategy<Value = Vec<Parts>> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..20);
    let field = || proptest::option::of(bytes());
    let headers = proptest::collection::vec((bytes(), field()), 0..3);
    proptest::collection::vec((0..NOW_MS, field(), field(), headers), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::with_cases(128)
    })]

    /// Null, empty, repeated: everything of a record comes back as it was sent (C009).
    #[test]
    fn records_survive_every_codec(parts in any_records(), codec in 0_usize..5) {
        let codec = all_codecs()[codec];
        let mut builder = BatchBuilder::new(100).codec(codec);
        let mut expected = Vec::new();
        for (index, (timestamp, key, value, headers)) in parts.iter().enumerate() {
            let headers: Vec<Header> = headers
                .iter()
                .map(|(k, v)| Header { key: k.clone().into(), value: v.clone().map(Into::into) })
                .collect();
            builder.push(*timestamp, key.as_deref(), value.as_deref(), &headers);
            expected.push(crate::protocol::batch::Record {
                offset: 100 + index as i64,
                timestamp: *timestamp,
                key: key.clone().map(Into::into),
                value: value.clone().map(Into::into),
                headers,
            });
        }
        let batch = builder.build();
        let read: Result<Vec<_>, _> = records(&batch).collect();
        prop_assert_eq!(read, Ok(expected));
    }

    /// A batch is never accepted and then unreadable; nothing panics on noise.
    #[test]
    fn what_passes_the_check_can_be_read(
        parts in any_records(), codec in 0_usize..5, at in 61_usize..400, with: u8,
    ) {
        let mut builder = BatchBuilder::new(0).codec(all_codecs()[codec]);
        for (timestamp, key, value, _) in &parts {
            builder.push(*timestamp, key.as_deref(), value.as_deref(), &[]);
        }
        let batch = builder.build();
        let noisy = patched(&batch, at.min(batch.len() - 1), &[with]);
        if let Ok(checked) = check(&noisy, &rules()) {
            let read: Result<Vec<_>, _> = records(&checked.bytes).collect();
            prop_assert_eq!(read.map(|r| r.len()), Ok(parts.len()));
        }
    }
}
/// What the Java client of Kafka 4.4.0 sent for two records, one batch per codec.
const JAVA_CLIENT: [&str; 5] = [
    "0000000000000000000000a70000000002b3a2cd7e000000000001000001a234465748000001a23446577600\
     0000000000000000000000000000000002660000000a66697273745061616161616161616161616161616161\
     616161616161616161616161616161616161616161616161008001005c020c7365636f6e6468626262626262\
     6262626262626262626262626262626262626262626262626262626262626262626262626262626262626262\
     626200",
    "0000000000000000000000640000000002dc801f26000100000001000001a23446dc6b000001a23446dc7e00\
     00000000000005000000000000000000021f8b08000000000000ff4b636060e04acb2c2a2e09482412303430\
     32a831f114a726e7e7a564249101180051d6ed5076000000",
    "00000000000000000000006c000000000235b05e31000200000001000001a23446ea6f000001a23446eabe00\
     000000000000060000000000000000000282534e4150505900000000010000000100000027772c660000000a\
     666972737450619a01003c008201009e01020c7365636f6e646862ca01000000",
    "00000000000000000000006a00000000022c233753000300000001000001a23446f72e000001a23446f76a00\
     000000000000070000000000000000000204224d186040822a000000cf660000000a66697273745061010014\
     ff000080010078020c7365636f6e64686201001c50626262620000000000",
    "0000000000000000000000620000000002d323c22e000400000001000001a2344700a1000001a2344700f400\
     000000000000080000000000000000000228b52ffd00582c0100e8660000000a6669727374506100820100a6\
     01020c7365636f6e64686200020000cea50449010000",
];

fn from_hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn what_the_java_client_compressed_is_read() {
    for (codec, hex) in all_codecs().into_iter().zip(JAVA_CLIENT) {
        let sent = from_hex(hex);
        let lenient = Rules { after_max_ms: i64::MAX, ..rules() };
        let checked = check(&sent, &lenient).expect("a good batch");
        assert_eq!(checked.header.compression(), Ok(codec.compression));
        let read: Vec<_> = records(&sent).map(|record| record.expect("readable")).collect();
        let fields = |at: usize| (read[at].key.as_deref(), read[at].value.as_deref());
        assert_eq!(fields(0), (Some(&b"first"[..]), Some(&[b'a'; 40][..])), "{codec:?}");
        assert_eq!(fields(1), (Some(&b"second"[..]), Some(&[b'b'; 52][..])), "{codec:?}");
    }
}

#[test]
fn an_independent_decoder_reads_what_is_built() {
    use kafka_protocol::records::RecordBatchDecoder;
    let mut builder = BatchBuilder::new(42).leader_epoch(LeaderEpoch(3)).producer(Producer {
        id: ProducerId(7),
        epoch: ProducerEpoch(1),
        base_sequence: 5,
        transactional: true,
    });
    let headers = [
        Header { key: Bytes::from_static(b"h"), value: None },
        Header { key: Bytes::new(), value: Some(Bytes::new()) },
    ];
    builder.push(NOW_MS, Some(b"key"), None, &[]);
    builder.push(NOW_MS - 5, None, Some(b"value"), &headers);
    let set = RecordBatchDecoder::decode(&mut builder.build()).expect("decoded");
    let read = &set.records;
    assert_eq!((read[0].offset, read[1].offset), (42, 43));
    assert_eq!((read[0].timestamp, read[1].timestamp), (NOW_MS, NOW_MS - 5));
    assert_eq!((read[0].producer_id, read[0].producer_epoch, read[1].sequence), (7, 1, 6));
    assert_eq!((read[0].partition_leader_epoch, read[0].transactional), (3, true));
    assert_eq!((read[0].key.as_deref(), read[0].value.as_deref()), (Some(&b"key"[..]), None));
    let headers: Vec<_> = read[1].headers.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    assert_eq!(headers, [("h".to_owned(), None), (String::new(), Some(Bytes::new()))]);
}
