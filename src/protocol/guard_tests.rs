//! The guard against hostile bodies, generated from the tables for every served key and version,
//! and the heap that it and the decoders behind it take.

use allocation_counter::measure;
use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::api::{self, ApiKey};
use super::guard::{GuardError, charge_max, check};
use super::messages::{decode_any, request_message};
use super::sample::{Sample, Spot, sample};
use super::wire::Fault;

/// What the count of a frame's sharers takes, whatever the body.
const SLACK_BYTES: u64 = 64;

fn every_version() -> impl Iterator<Item = (ApiKey, i16, bool)> {
    api::served().flat_map(|row| {
        (row.min..=row.max).map(|version| (row.key, version, row.is_flexible(version)))
    })
}

fn sampled(key: ApiKey, version: i16, seed: u64, elements_max: usize) -> Sample {
    sample(request_message(key).unwrap(), version, seed, elements_max)
}

/// Runs the guard, proves that it allocated nothing, and that a body it passed is decoded, within
/// its charge.
fn guarded(key: ApiKey, version: i16, body: &[u8]) -> Result<usize, GuardError> {
    let limit = charge_max(body.len());
    let mut answer = Ok(0);
    let guard = measure(|| answer = check(key, version, body, limit));
    assert_eq!(guard.count_total, 0, "the guard allocates: {key} {version} {body:x?}");
    if let Ok(charge) = answer {
        let mut frame = Bytes::copy_from_slice(body);
        let mut decoded = Ok(());
        let decoder = measure(|| decoded = decode_any(key, &mut frame, version));
        assert_eq!(decoded, Ok(()), "{key} {version}: {body:x?}");
        let allowed = charge as u64 + SLACK_BYTES;
        assert!(
            decoder.bytes_max <= allowed,
            "{key} {version}: {} bytes, charged {charge}: {body:x?}",
            decoder.bytes_max
        );
    }
    answer
}

fn varint(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    crate::common::varint::write_u64(&mut out, value);
    out
}

/// `body` up to `at`, then `hostile`, then `padding` zeros.
fn spoilt(body: &[u8], at: usize, hostile: &[u8], padding: usize) -> Vec<u8> {
    [&body[..at], hostile, &vec![0; padding]].concat()
}

#[test]
fn honest_bodies_pass_at_every_size() {
    for (key, version, _) in every_version() {
        for (seed, elements_max) in [(1, 1), (2, 3), (3, 3), (4, 10), (5, 40)] {
            let sample = sampled(key, version, seed, elements_max);
            let answer = guarded(key, version, &sample.bytes);
            assert!(answer.is_ok(), "{key} {version} {answer:?}: {} bytes", sample.bytes.len());
        }
    }
}

#[test]
fn a_metadata_body_of_four_bytes_is_refused_before_anything_is_reserved() {
    let refused = Err(GuardError::Malformed { field: "topics", fault: Fault::Length });
    assert_eq!(guarded(ApiKey::Metadata, 1, &[0x7f, 0xff, 0xff, 0xff]), refused);
    assert_eq!(guarded(ApiKey::Metadata, 9, &[0xff, 0xff, 0xff, 0xff, 0x0f]), refused);
}

#[test]
fn a_length_that_the_bytes_cannot_hold_is_refused_at_every_place() {
    for (key, version, flexible) in every_version() {
        let sample = sampled(key, version, 7, 2);
        for &(spot, at) in sample.spots.iter().filter(|(spot, _)| *spot != Spot::TagCount) {
            for length in [1_000_001, 0x7fff_fffe, 0x0fff_ffff] {
                let hostile = match (flexible, spot) {
                    (true, _) => varint(length + 1),
                    (false, Spot::Length) if is_text(&sample, at) => vec![0x7f, 0xff],
                    (false, _) => (length as u32).to_be_bytes().to_vec(),
                };
                for padding in [0, 1, 3000] {
                    let body = spoilt(&sample.bytes, at, &hostile, padding);
                    let answer = guarded(key, version, &body);
                    assert!(answer.is_err(), "{key} {version} at {at} {spot:?}: {body:x?}");
                }
            }
        }
    }
}

/// Whether the length at `at` has two bytes: that of a string where lengths are not compact. The
/// samples' strings and bytes are shorter than 256 bytes, so that a longer length starts with 0, 0.
fn is_text(sample: &Sample, at: usize) -> bool {
    !matches!(sample.bytes[at..], [0, 0, 0, _, ..] | [0xff, 0xff, 0xff, 0xff, ..])
}

#[test]
fn an_array_of_more_than_a_million_elements_is_refused_though_the_bytes_are_there() {
    for (key, version, flexible) in every_version() {
        let sample = sampled(key, version, 7, 1);
        let Some(&(_, at)) = sample.spots.iter().find(|(spot, _)| *spot == Spot::ArrayLength)
        else {
            continue;
        };
        let length = 1_000_001_u32;
        let hostile =
            if flexible { varint(u64::from(length) + 1) } else { length.to_be_bytes().to_vec() };
        let body = spoilt(&sample.bytes, at, &hostile, 1_100_000);
        let answer = guarded(key, version, &body);
        let too_many =
            matches!(answer, Err(GuardError::Malformed { fault: Fault::TooManyElements, .. }));
        assert!(too_many, "{key} {version} {answer:?}");
    }
}

#[test]
fn varints_longer_than_their_type_are_refused_at_every_place() {
    for (key, version, _) in every_version().filter(|(.., flexible)| *flexible) {
        let sample = sampled(key, version, 7, 2);
        for &(_, at) in &sample.spots {
            for overlong in [&[0xff, 0xff, 0xff, 0xff, 0x1f][..], &[0x80; 5], &[0xff; 11]] {
                let answer = guarded(key, version, &spoilt(&sample.bytes, at, overlong, 100));
                let refused =
                    matches!(answer, Err(GuardError::Malformed { fault: Fault::Varint, .. }));
                assert!(refused, "{key} {version} at {at}: {answer:?}");
            }
        }
    }
}

#[test]
fn tag_floods_are_refused_or_stay_in_the_budget_at_every_place() {
    for (key, version, _) in every_version().filter(|(.., flexible)| *flexible) {
        let sample = sampled(key, version, 7, 2);
        for &(_, at) in sample.spots.iter().filter(|(spot, _)| *spot == Spot::TagCount) {
            let flood = |count: u64| {
                let mut hostile = varint(count);
                for tag in 0..count {
                    hostile.extend(varint(tag + 100));
                    hostile.push(0);
                }
                hostile.extend_from_slice(&sample.bytes[at + 1..]);
                spoilt(&sample.bytes, at, &hostile, 0)
            };
            let answer = guarded(key, version, &flood(10_001));
            let too_many =
                matches!(answer, Err(GuardError::Malformed { fault: Fault::TooManyTags, .. }));
            assert!(too_many, "{key} {version} at {at}: {answer:?}");
            for count in [1, 5, 6, 7, 11, 12, 40, 100, 1000, 10_000] {
                let _ = guarded(key, version, &flood(count));
            }
        }
    }
}

#[test]
fn one_unknown_tag_in_each_of_many_structs_is_refused_by_its_cost() {
    let topic = [0; 16].into_iter().chain([2, b't', 1, 100, 0]);
    let mut body = varint(5001);
    for _ in 0..5000 {
        body.extend(topic.clone());
    }
    body.extend([1, 0, 0]);
    let refused = Err(GuardError::TooCostly { charge_max: charge_max(body.len()) });
    assert_eq!(guarded(ApiKey::Metadata, 12, &body), refused);
}

#[test]
fn a_tagged_field_must_fill_the_size_that_it_names() {
    let with = |size| guarded(ApiKey::Fetch, 12, &fetch_v12_with_cluster_id(size));
    assert!(with(2).is_ok());
    let refused = GuardError::Malformed { field: "cluster_id", fault: Fault::TagSize };
    assert_eq!(with(1), Err(refused));
}

/// A Fetch v12 without topics whose cluster id `c` is said to take `size` bytes.
fn fetch_v12_with_cluster_id(size: u8) -> Vec<u8> {
    let numbers = [0; 4 + 4 + 4 + 4 + 1 + 4 + 4];
    [&numbers[..], &[1, 1, 1], &[1, 0, size, 2, b'c']].concat()
}

#[test]
fn a_body_cut_anywhere_is_refused() {
    for (key, version, _) in every_version() {
        let sample = sampled(key, version, 9, 2);
        for end in 0..sample.bytes.len() {
            let answer = guarded(key, version, &sample.bytes[..end]);
            assert!(answer.is_err(), "{key} {version} cut at {end}: {:x?}", sample.bytes);
        }
    }
}

#[test]
fn bytes_after_the_body_are_ignored_as_kafka_does() {
    for (key, version, _) in every_version() {
        let mut body = sampled(key, version, 9, 2).bytes;
        body.extend([0xff; 9]);
        assert!(guarded(key, version, &body).is_ok(), "{key} {version}");
    }
}

#[test]
fn spoilt_bodies_stay_in_the_budget() {
    let mut random = StdRng::seed_from_u64(1);
    let mut passed = 0;
    for (key, version, _) in every_version() {
        for seed in 0..150 {
            let mut body = sampled(key, version, seed, 4).bytes;
            for _ in 0..random.gen_range(1..4) {
                if let Some(at) = body.len().checked_sub(1).map(|last| random.gen_range(0..=last)) {
                    body[at] = random.r#gen();
                }
            }
            passed += usize::from(guarded(key, version, &body).is_ok());
        }
    }
    assert!(passed > 1000, "{passed} of the spoilt bodies are still whole");
}

#[test]
fn keys_and_versions_that_are_not_served_have_no_body() {
    let refused = |key, version| Err(GuardError::NotServed { key, version });
    assert_eq!(guarded(ApiKey::EndTxn, 0, &[]), refused(ApiKey::EndTxn, 0));
    assert_eq!(guarded(ApiKey::Produce, 2, &[]), refused(ApiKey::Produce, 2));
    assert_eq!(guarded(ApiKey::InitProducerId, 6, &[]), refused(ApiKey::InitProducerId, 6));
}
