//! A client that does anything, at random, and tells the model what it asked and was answered.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    FetchRequest, InitProducerIdRequest, ListOffsetsRequest, ProduceRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use super::model::Value;
use super::wire::Wire;
use super::{Lab, groups, topics};
use crate::common::{Offset, ProducerEpoch, ProducerId};
use crate::env::Random;
use crate::protocol::batch::{BatchBuilder, Codec, Compression, Producer, batches, records};

/// A partition, and which topic of that name.
type Place = (&'static str, i32, u64);

/// What survives the node's lives.
pub struct Client {
    pub id: usize,
    pub random: Random,
    producer: Option<(i64, i16)>,
    /// Topics change their meaning; a producer id is used for one meaning of all names only, or
    /// its sequences would not be those that the broker counts.
    producer_of: Vec<u64>,
    /// Next sequence by place.
    sequences: BTreeMap<Place, i32>,
    /// Sent by the idempotent producer and not answered: to be sent again as they are.
    pending: BTreeMap<Place, (Bytes, Vec<Value>)>,
    /// Never goes back, so that a regress shows.
    pub next_commit: Offset,
}

/// One batch on its way.
struct Sent {
    place: Place,
    batch: Bytes,
    values: Vec<Value>,
    /// (is durable, version of that setting) when it was sent.
    durable: (bool, u64),
}

impl Client {
    pub fn new(id: usize, seed: u64) -> Self {
        Self {
            id,
            random: Random::seeded(seed),
            producer: None,
            producer_of: Vec::new(),
            sequences: BTreeMap::new(),
            pending: BTreeMap::new(),
            next_commit: 1,
        }
    }

    pub fn chance(&self, of: u64) -> bool {
        self.random.below(of) == 0
    }

    /// Lives for `steps`, or until the node is gone.
    pub async fn run(&mut self, lab: &Lab, steps: u64) -> Option<()> {
        let mut wire = Wire::open(lab).await?;
        for _ in 0..steps {
            let done = self.step(lab, &mut wire).await;
            if lab.is_down() {
                return None;
            }
            if done.is_none() || self.chance(20) {
                wire = Wire::open(lab).await?;
            }
        }
        Some(())
    }

    async fn step(&mut self, lab: &Lab, wire: &mut Wire) -> Option<()> {
        match self.random.below(19) {
            0..7 => self.produce(lab, wire).await,
            7..11 => self.fetch(lab, wire).await,
            11 => self.list_offsets(lab, wire).await,
            12 => topics::delete_records(self, lab, wire).await,
            13 | 14 => topics::change(self, lab, wire).await,
            15 | 16 => groups::commit(self, lab, wire).await,
            17 => groups::join(self, lab, wire).await,
            _ => {
                self.pause(lab).await;
                Some(())
            }
        }
    }

    async fn pause(&self, lab: &Lab) {
        let most_ms = if self.chance(6) { 20_000 } else { 200 };
        lab.env().clock.sleep(Duration::from_millis(self.random.below(most_ms))).await;
    }

    pub fn place(&self, lab: &Lab) -> Option<Place> {
        let mut model = lab.model();
        let places = model.places();
        let count = places.len() as u64;
        let (name, index) = *places.get(self.random.below(count.max(1)) as usize)?;
        Some((name, index, model.topic(name).incarnation))
    }

    async fn produce(&mut self, lab: &Lab, wire: &mut Wire) -> Option<()> {
        let acks = [-1, -1, -1, 1, 0][self.random.below(5) as usize];
        let idempotent = acks == -1 && self.chance(2);
        if idempotent {
            self.keep_producer(lab, wire).await?;
        }
        let idempotent = idempotent && self.producer.is_some();
        let mut sent: Vec<Sent> = Vec::new();
        for _ in 0..=self.random.below(3) {
            let Some(place) = self.place(lab) else { continue };
            if sent.iter().all(|other| other.place != place) {
                sent.push(self.batch(lab, place, idempotent));
            }
        }
        if sent.is_empty() {
            return Some(());
        }
        let request = produce_request(acks, &sent);
        if acks == 0 {
            return wire.send_only(&request, 9).await;
        }
        let response = wire.ask(&request, 9).await?;
        for topic in &response.responses {
            for part in &topic.partition_responses {
                let is = |sent: &&Sent| sent.place.0 == &**topic.name && sent.place.1 == part.index;
                let sent = sent.iter().find(is).expect("asked for");
                self.answered(lab, sent, part.error_code, part.base_offset, idempotent);
            }
        }
        Some(())
    }

    async fn keep_producer(&mut self, lab: &Lab, wire: &mut Wire) -> Option<()> {
        let meaning: Vec<u64> = lab.model().topics.values().map(|t| t.incarnation).collect();
        if self.producer.is_none() || self.producer_of != meaning {
            self.pending.clear();
            self.sequences.clear();
            self.producer = new_producer(lab, wire).await?;
            self.producer_of = meaning;
        }
        Some(())
    }

    fn batch(&mut self, lab: &Lab, place: Place, idempotent: bool) -> Sent {
        let mut model = lab.model();
        let by_default = model.flushes_by_default;
        let topic = model.topic(place.0);
        let durable = (topic.is_durable(by_default), topic.flushes_version);
        if idempotent && let Some((batch, values)) = self.pending.get(&place) {
            return Sent { place, batch: batch.clone(), values: values.clone(), durable };
        }
        let mut builder = BatchBuilder::new(0).codec(self.codec());
        let count = 1 + self.random.below(4) as i32;
        if let Some((id, epoch)) = self.producer.filter(|_| idempotent) {
            let next = self.sequences.entry(place).or_default();
            let (id, epoch) = (ProducerId(id), ProducerEpoch(epoch));
            let (base_sequence, transactional) = (*next, false);
            builder = builder.producer(Producer { id, epoch, base_sequence, transactional });
            *next += count;
        }
        let now_ms = lab.env().clock.wall_ms();
        let mut values = Vec::new();
        for _ in 0..count {
            let value = model.value();
            let mut bytes = value.to_be_bytes().to_vec();
            bytes.resize(8 + self.random.below(200) as usize, b'.');
            builder.push(now_ms, None, Some(&bytes), &[]);
            values.push(value);
        }
        model.topic(place.0).parts[place.1 as usize].sent.extend(&values);
        let batch = builder.build();
        if idempotent {
            self.pending.insert(place, (batch.clone(), values.clone()));
        }
        Sent { place, batch, values, durable }
    }

    fn codec(&self) -> Codec {
        Codec::of(match self.random.below(12) {
            0 => Compression::Gzip,
            1 => Compression::Snappy,
            2 => Compression::Lz4,
            3 => Compression::Zstd,
            _ => Compression::None,
        })
    }

    fn answered(&mut self, lab: &Lab, sent: &Sent, code: i16, base: Offset, idempotent: bool) {
        let (name, index, incarnation) = sent.place;
        let mut model = lab.model();
        model.acknowledged += u64::from(code == 0);
        let topic = model.topic(name);
        let same = topic.incarnation == incarnation;
        match code {
            0 if same => {
                let durable = sent.durable.0 && sent.durable.1 == topic.flushes_version;
                let part = &mut topic.parts[index as usize];
                for (at, value) in (base..).zip(&sent.values) {
                    part.stands(at, *value);
                }
                if durable {
                    part.durable_end = part.durable_end.max(base + sent.values.len() as Offset);
                }
            }
            // The last five are remembered, with their offsets; ours is always one of them.
            0 | 3 => {}
            // OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID: what came before is lost.
            45 | 59 if idempotent && lab.has_lost() => self.producer = None,
            code => lab.allows(&format!("produce to {name}-{index}"), code),
        }
        if !idempotent {
            return;
        }
        if code == 0 || code == 3 {
            self.pending.remove(&sent.place);
        }
    }

    async fn fetch(&mut self, lab: &Lab, wire: &mut Wire) -> Option<()> {
        let Some(place) = self.place(lab) else { return Some(()) };
        let (name, index, incarnation) = place;
        let end = lab.model().topic(name).parts[index as usize].known_end();
        let from = self.random.below(end as u64 + 1) as Offset;
        let max_wait_ms = self.random.below(100) as i32;
        let bytes_max = 100 + self.random.below(2_000) as i32;
        let request = fetch_request((name, index), from, max_wait_ms, bytes_max);
        let response = wire.ask(&request, 12).await?;
        let part = &response.responses[0].partitions[0];
        let mut model = lab.model();
        let topic = model.topic(name);
        if topic.incarnation != incarnation {
            return Some(());
        }
        match part.error_code {
            0 => {
                let known = &mut topic.parts[index as usize];
                known.look_at_start(part.log_start_offset);
                take_in(part.records.as_ref(), |at, value| known.stands(at, value));
            }
            1 => {
                let known = &topic.parts[index as usize];
                assert!(from < known.start_asked, "{name}-{index}: {from} is out of range");
            }
            code => lab.allows(&format!("fetch of {name}-{index}"), code),
        }
        Some(())
    }

    async fn list_offsets(&mut self, lab: &Lab, wire: &mut Wire) -> Option<()> {
        let Some((name, index, incarnation)) = self.place(lab) else { return Some(()) };
        let least = lab.model().least_end((name, index));
        let Some((start, end)) = bounds(lab, wire, (name, index)).await? else { return Some(()) };
        let mut model = lab.model();
        if model.topic(name).incarnation == incarnation {
            model.bounds((name, index), least, (start, end));
        }
        Some(())
    }
}

/// The inner `None`: there is none for now.
async fn new_producer(lab: &Lab, wire: &mut Wire) -> Option<Option<(i64, i16)>> {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(60_000)
        .with_producer_id((-1).into())
        .with_producer_epoch(-1);
    let response = wire.ask(&request, 4).await?;
    if response.error_code != 0 {
        lab.allows("a producer id", response.error_code);
        return Some(None);
    }
    let (id, epoch) = (response.producer_id.0, response.producer_epoch);
    assert!(lab.model().producer_ids.insert(id), "producer id {id} was given twice");
    Some(Some((id, epoch)))
}

fn produce_request(acks: i16, sent: &[Sent]) -> ProduceRequest {
    let mut request = ProduceRequest::default().with_acks(acks).with_timeout_ms(30_000);
    for Sent { place, batch, .. } in sent {
        let part =
            PartitionProduceData::default().with_index(place.1).with_records(Some(batch.clone()));
        match request.topic_data.iter_mut().find(|topic| &**topic.name == place.0) {
            Some(topic) => topic.partition_data.push(part),
            None => request.topic_data.push(
                TopicProduceData::default()
                    .with_name(topic_name(place.0))
                    .with_partition_data(vec![part]),
            ),
        }
    }
    request
}

pub fn topic_name(name: &'static str) -> TopicName {
    TopicName(StrBytes::from_static_str(name))
}

pub fn fetch_request(
    (name, index): (&'static str, i32),
    from: Offset,
    max_wait_ms: i32,
    bytes_max: i32,
) -> FetchRequest {
    let part = FetchPartition::default()
        .with_partition(index)
        .with_fetch_offset(from)
        .with_partition_max_bytes(bytes_max);
    let topic = FetchTopic::default().with_topic(topic_name(name)).with_partitions(vec![part]);
    FetchRequest::default()
        .with_replica_id((-1).into())
        .with_max_wait_ms(max_wait_ms)
        .with_min_bytes(1)
        .with_max_bytes(1 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

/// Reads the records of whole batches; their offsets are dense from the first on.
pub fn take_in(bytes: Option<&Bytes>, mut stands: impl FnMut(Offset, Value)) -> Option<Offset> {
    let mut next = None;
    for batch in batches(bytes?) {
        let (header, batch) = batch.expect("a whole batch, or the tail is cut in the answer");
        for record in records(&batch) {
            let record = record.expect("a record");
            assert_eq!(*next.get_or_insert(record.offset), record.offset, "a hole");
            let value = record.value.expect("a value");
            stands(record.offset, Value::from_be_bytes(value[..8].try_into().expect("8 bytes")));
            next = Some(record.offset + 1);
        }
        assert_eq!(next, Some(header.next_offset()));
    }
    next
}

/// Earliest and latest offset; the inner `None`: the topic is not there.
pub async fn bounds(
    lab: &Lab,
    wire: &mut Wire,
    (name, index): (&'static str, i32),
) -> Option<Option<(Offset, Offset)>> {
    use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
    let mut found = [0; 2];
    for (timestamp, found) in [-2, -1].into_iter().zip(&mut found) {
        let part =
            ListOffsetsPartition::default().with_partition_index(index).with_timestamp(timestamp);
        let topic =
            ListOffsetsTopic::default().with_name(topic_name(name)).with_partitions(vec![part]);
        let request =
            ListOffsetsRequest::default().with_replica_id((-1).into()).with_topics(vec![topic]);
        let response = wire.ask(&request, 7).await?;
        let part = &response.topics[0].partitions[0];
        if part.error_code != 0 {
            if part.error_code != 3 {
                lab.allows(&format!("offsets of {name}-{index}"), part.error_code);
            }
            return Some(None);
        }
        *found = part.offset;
    }
    Some(Some((found[0], found[1])))
}
