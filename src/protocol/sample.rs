//! For tests: random bodies of any message of the schema table, with the places of their lengths.

use bytes::BufMut;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::schema::{Field, Kind, Message, Schema};
use crate::common::varint;

/// What stands at a place of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    ArrayLength,
    /// The length of a string, bytes or records.
    Length,
    TagCount,
}

/// A body that is right to the last byte.
#[derive(Default)]
pub(super) struct Sample {
    pub bytes: Vec<u8>,
    /// Where each length begins.
    pub spots: Vec<(Spot, usize)>,
}

/// A random body. No value is its field's default, so that each tagged field has to be written.
/// - `elements_max`: of each array; at least one element stands in each.
pub(super) fn sample(message: &Message, version: i16, seed: u64, elements_max: usize) -> Sample {
    let mut sampler = Sampler {
        version,
        flexible: message.flexible.contains(version),
        elements_max,
        random: StdRng::seed_from_u64(seed),
        sample: Sample { bytes: Vec::new(), spots: Vec::new() },
    };
    sampler.structure(message.schema);
    sampler.sample
}

struct Sampler {
    version: i16,
    flexible: bool,
    elements_max: usize,
    random: StdRng,
    sample: Sample,
}

impl Sampler {
    fn structure(&mut self, schema: &Schema) {
        let version = self.version;
        for field in schema.fields.iter().filter(|field| field.is_in_order(version)) {
            self.field(field);
        }
        if self.flexible {
            self.tags(schema);
        }
    }

    fn tags(&mut self, schema: &Schema) {
        let version = self.version;
        let mut tagged: Vec<_> = schema
            .fields
            .iter()
            .filter(|field| field.tag.is_some() && field.versions.contains(version))
            .filter(|_| self.random.gen_bool(0.7))
            .collect();
        tagged.sort_by_key(|field| field.tag);
        self.spot(Spot::TagCount);
        varint::write_u64(&mut self.sample.bytes, tagged.len() as u64);
        for field in tagged {
            let outer = std::mem::take(&mut self.sample);
            self.field(field);
            let value = std::mem::replace(&mut self.sample, outer);
            varint::write_u32(&mut self.sample.bytes, field.tag.unwrap());
            varint::write_u64(&mut self.sample.bytes, value.bytes.len() as u64);
            let start = self.sample.bytes.len();
            self.sample.bytes.extend(value.bytes);
            self.sample.spots.extend(value.spots.iter().map(|(spot, at)| (*spot, at + start)));
        }
    }

    fn field(&mut self, field: &Field) {
        let null = field.tag.is_none()
            && field.nullable.contains(self.version)
            && self.random.gen_bool(0.2);
        match field.kind {
            Kind::Struct(schema) => {
                if field.nullable.contains(self.version) {
                    self.sample.bytes.put_i8(if null { -1 } else { 1 });
                }
                if !null {
                    self.structure(schema);
                }
            }
            Kind::Array(element) => {
                let count = self.random.gen_range(1..=self.elements_max);
                self.spot(Spot::ArrayLength);
                self.length((!null).then_some(count));
                for _ in 0..if null { 0 } else { count } {
                    match element {
                        Kind::Struct(schema) => self.structure(schema),
                        kind => self.scalar(kind, false),
                    }
                }
            }
            kind => self.scalar(&kind, null),
        }
    }

    fn scalar(&mut self, kind: &Kind, null: bool) {
        let number = self.random.gen_range(1..100_u8);
        let out = &mut self.sample.bytes;
        match kind {
            Kind::Bool => out.put_u8(1),
            Kind::Int8 => out.put_u8(number),
            Kind::Int16 | Kind::Uint16 => out.put_u16(number.into()),
            Kind::Int32 | Kind::Uint32 => out.put_u32(number.into()),
            Kind::Int64 => out.put_u64(number.into()),
            Kind::Float64 => out.put_f64(number.into()),
            Kind::Uuid => out.put_u128(u128::from(number) << 100 | 7),
            Kind::String | Kind::Bytes | Kind::Records => {
                let length = usize::from(number % 20 + 1);
                self.spot(Spot::Length);
                if !matches!(kind, Kind::String) || self.flexible {
                    self.length((!null).then_some(length));
                } else {
                    self.sample.bytes.put_i16(if null { -1 } else { length as i16 });
                }
                self.sample.bytes.put_bytes(b'a' + number % 26, if null { 0 } else { length });
            }
            Kind::Struct(_) | Kind::Array(_) => unreachable!("no array of arrays in Kafka"),
        }
    }

    fn length(&mut self, length: Option<usize>) {
        if self.flexible {
            varint::write_u64(&mut self.sample.bytes, length.map_or(0, |length| length as u64 + 1));
        } else {
            self.sample.bytes.put_i32(length.map_or(-1, |length| length as i32));
        }
    }

    fn spot(&mut self, spot: Spot) {
        self.sample.spots.push((spot, self.sample.bytes.len()));
    }
}
