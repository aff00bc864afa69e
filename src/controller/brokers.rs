//! The life of a broker: registered, fenced until it has caught up, serving, on its way out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::election::{Election, is_reserved_directory};
use super::error::{BrokerFault, Refusal, RequestFault};
use super::machine::{Controller, Cx, Plan};
use super::request::{BrokerState, Heartbeat, RegisterBroker, Registered, UnregisterBroker};
use crate::common::BrokerId;
use crate::env::Instant;
use crate::machine::Decision;
use crate::metadata::{Broker, Image};
use crate::protocol::records::metadata::{
    BrokerRegistrationChangeRecord, FenceBrokerRecord, MetadataRecord, UnfenceBrokerRecord,
    UnregisterBrokerRecord,
};

/// Partition changes per decision, with room for what goes with them.
pub(super) const CHANGES_MAX: usize = Decision::<Controller>::RECORDS_MAX - 10;

/// When each broker was last heard of. A new leader counts from its election on.
#[derive(Debug, Default)]
pub struct Soft {
    sessions: BTreeMap<BrokerId, Session>,
    /// Brokers that do not serve, with partitions that still name them: more than one decision
    /// could change.
    unsettled: BTreeSet<BrokerId>,
    /// `broker.session.timeout.ms` as last seen; `None`: sessions do not end.
    timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Session {
    broker_epoch: i64,
    deadline: Instant,
    /// The last metadata offset that the broker has applied, as it told.
    metadata_offset: i64,
    /// Set in controlled shutdown: where the metadata stood when it began.
    shutdown_offset: Option<i64>,
}

impl Soft {
    pub(super) fn new(image: &Image, cx: &Cx<'_>) -> Self {
        let mut soft = Self { timeout: cx.world.session_timeout, ..Self::default() };
        for broker in image.alive_brokers() {
            soft.touch(broker.id, broker.epoch, cx);
        }
        soft
    }

    fn touch(&mut self, id: BrokerId, broker_epoch: i64, cx: &Cx<'_>) -> &mut Session {
        self.timeout = cx.world.session_timeout;
        let fresh =
            Session { broker_epoch, deadline: cx.now, metadata_offset: -1, shutdown_offset: None };
        let session = self.sessions.entry(id).or_insert(fresh);
        if session.broker_epoch != broker_epoch {
            *session = fresh;
        }
        session.deadline = cx.now + self.timeout.unwrap_or_default();
        session
    }

    fn is_valid(&self, broker: &Broker, cx: &Cx<'_>) -> bool {
        let session = self.sessions.get(&broker.id);
        cx.world.session_timeout.is_some()
            && session.is_some_and(|it| it.broker_epoch == broker.epoch && cx.now < it.deadline)
    }

    /// Brokers to be fenced for their silence, or fenced ones with work left.
    pub(super) fn silent(&mut self, image: &Image, now: Instant) -> Vec<BrokerId> {
        if self.timeout.is_some() {
            let is_over =
                |id: &BrokerId| self.sessions.get(id).is_some_and(|it| it.deadline <= now);
            let silent = image.alive_brokers().map(|broker| broker.id).filter(is_over);
            self.unsettled.extend(silent);
            self.sessions.retain(|_, session| now < session.deadline);
        }
        self.unsettled.iter().copied().collect()
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        if !self.unsettled.is_empty() {
            return Some(Instant::default());
        }
        self.timeout.and_then(|_| self.sessions.values().map(|session| session.deadline).min())
    }
}

/// Whether `broker_epoch` is that of the broker's present registration.
pub(super) fn check_epoch(
    image: &Image,
    id: BrokerId,
    broker_epoch: i64,
) -> Result<(), BrokerFault> {
    match image.broker(id).map(|broker| broker.epoch) {
        None => Err(BrokerFault::NotRegistered(id)),
        Some(expected) if expected != broker_epoch => {
            Err(BrokerFault::StaleEpoch { expected, found: broker_epoch })
        }
        Some(_) => Ok(()),
    }
}

pub(super) fn register(
    image: &Image,
    soft: &mut Soft,
    ask: &RegisterBroker,
    cx: &Cx<'_>,
) -> Plan<Result<Registered, Refusal>> {
    if let Err(why) = check_registration(image, soft, ask, cx) {
        return Plan::of(Err(why));
    }
    let former = image.broker(ask.id);
    let same = former.filter(|it| it.incarnation == ask.incarnation);
    let broker = Broker {
        id: ask.id,
        epoch: same.map_or(cx.position.0, |it| it.epoch),
        incarnation: ask.incarnation,
        endpoints: ask.endpoints.clone(),
        features: ask.features.clone(),
        rack: ask.rack.as_deref().map(Into::into),
        is_fenced: !ask.is_caught_up && same.is_none_or(|it| it.is_fenced),
        in_controlled_shutdown: same.is_some_and(|it| it.in_controlled_shutdown),
        log_dirs: ask.log_dirs.clone(),
        cordoned_log_dirs: ask.is_caught_up.then(Vec::new),
    };
    let mut records = vec![MetadataRecord::from(broker.to_record())];
    if let (None, Some(former)) = (same, former) {
        let is_unclean = ask.previous_broker_epoch != former.epoch;
        let election = Election { image, rules: &*cx.world.rules };
        if !ask.is_caught_up {
            let changes = election.leaves(ask.id, is_unclean).take(CHANGES_MAX);
            records.extend(changes.map(MetadataRecord::from));
            soft.unsettled.insert(ask.id);
        } else {
            let changes = election.restarts(ask.id, &ask.log_dirs).take(CHANGES_MAX);
            records.extend(changes.map(MetadataRecord::from));
        }
    }
    soft.touch(ask.id, broker.epoch, cx);
    Plan { records, answer: Ok(Registered { broker_epoch: broker.epoch }) }
}

fn check_registration(
    image: &Image,
    soft: &Soft,
    ask: &RegisterBroker,
    cx: &Cx<'_>,
) -> Result<(), Refusal> {
    if let Some(former) = image.broker(ask.id)
        && former.incarnation != ask.incarnation
        && !former.in_controlled_shutdown
        && soft.is_valid(former, cx)
    {
        return Err(BrokerFault::Duplicate.into());
    }
    if ask.log_dirs.is_empty() {
        return Err(RequestFault::NoDirectories.into());
    }
    for (at, dir) in ask.log_dirs.iter().enumerate() {
        if is_reserved_directory(*dir) {
            return Err(RequestFault::ReservedDirectory.into());
        }
        if ask.log_dirs[..at].contains(dir) {
            return Err(RequestFault::DuplicateDirectory.into());
        }
    }
    for (name, level) in image.features() {
        let range = ask.features.iter().find(|range| range.name == *name);
        let (min, max) = range.map_or((0, 0), |range| (range.min, range.max));
        if !(min..=max).contains(&level) {
            let feature = name.to_string();
            return Err(BrokerFault::Feature { feature, level, min, max }.into());
        }
    }
    Ok(())
}

pub(super) fn heartbeat(
    image: &Image,
    soft: &mut Soft,
    ask: &Heartbeat,
    cx: &Cx<'_>,
) -> Plan<Result<BrokerState, Refusal>> {
    if let Err(why) = check_epoch(image, ask.id, ask.broker_epoch) {
        return Plan::of(Err(why.into()));
    }
    let Some(broker) = image.broker(ask.id) else {
        return Plan::of(Err(BrokerFault::NotRegistered(ask.id).into()));
    };
    let session = soft.touch(ask.id, ask.broker_epoch, cx);
    session.metadata_offset = session.metadata_offset.max(ask.metadata_offset);
    // Its registration stands at its epoch: who has applied that knows what it was part of.
    let is_caught_up = ask.metadata_offset >= broker.epoch;
    let election = Election { image, rules: &*cx.world.rules };
    let mut records = Vec::new();
    let mut state =
        BrokerState { is_caught_up, is_fenced: broker.is_fenced, should_shut_down: false };
    if broker.is_fenced {
        if ask.wants_shutdown {
            state.should_shut_down = true;
        } else if !ask.wants_fence && is_caught_up && !soft.unsettled.contains(&ask.id) {
            let unfence = UnfenceBrokerRecord { id: ask.id.0, epoch: broker.epoch };
            records.push(unfence.into());
            records.extend(election.returns(ask.id).take(CHANGES_MAX).map(MetadataRecord::from));
            state.is_fenced = false;
        }
    } else if ask.wants_fence {
        records = fence(&election, soft, broker);
        state = BrokerState { is_fenced: true, should_shut_down: ask.wants_shutdown, ..state };
    } else if ask.wants_shutdown && !broker.in_controlled_shutdown && election.leads(ask.id) {
        records = begin_shutdown(&election, broker);
        session_of(soft, ask.id).shutdown_offset = Some(cx.position.0 + records.len() as i64);
    } else if ask.wants_shutdown && !election.leads(ask.id) && others_know(image, soft, ask.id) {
        records = fence(&election, soft, broker);
        state = BrokerState { is_fenced: true, should_shut_down: true, ..state };
    }
    Plan { records, answer: Ok(state) }
}

fn session_of(soft: &mut Soft, id: BrokerId) -> &mut Session {
    match soft.sessions.get_mut(&id) {
        Some(session) => session,
        None => crate::common::broken_invariant(
            concat!(file!(), ":", line!()),
            "a heartbeat has a session",
            &format!("broker {id}"),
        ),
    }
}

fn begin_shutdown(election: &Election<'_>, broker: &Broker) -> Vec<MetadataRecord> {
    let begin = BrokerRegistrationChangeRecord {
        broker_id: broker.id.0,
        broker_epoch: broker.epoch,
        in_controlled_shutdown: 1,
        ..BrokerRegistrationChangeRecord::default()
    };
    let changes = election.leaves(broker.id, false).take(CHANGES_MAX).map(MetadataRecord::from);
    std::iter::once(begin.into()).chain(changes).collect()
}

/// Whether every broker that serves has applied the end of this one's leaderships.
fn others_know(image: &Image, soft: &Soft, id: BrokerId) -> bool {
    let Some(offset) = soft.sessions.get(&id).and_then(|session| session.shutdown_offset) else {
        return true; // it never led
    };
    image.alive_brokers().filter(|broker| broker.id != id).all(|broker| {
        soft.sessions.get(&broker.id).is_some_and(|session| session.metadata_offset >= offset)
    })
}

/// Fences a broker that serves, after the last of its partitions was handed over: with more
/// partitions than one batch holds the next decisions go on.
fn fence(election: &Election<'_>, soft: &mut Soft, broker: &Broker) -> Vec<MetadataRecord> {
    let mut changes = election.leaves(broker.id, false).map(MetadataRecord::from);
    let mut records: Vec<_> = changes.by_ref().take(CHANGES_MAX).collect();
    if changes.next().is_some() {
        soft.unsettled.insert(broker.id);
    } else {
        soft.unsettled.remove(&broker.id);
        records.push(FenceBrokerRecord { id: broker.id.0, epoch: broker.epoch }.into());
    }
    records
}

pub(super) fn fence_silent(image: &Image, soft: &mut Soft, id: BrokerId, cx: &Cx<'_>) -> Plan<()> {
    let election = Election { image, rules: &*cx.world.rules };
    let records = match image.broker(id) {
        // It was heard of since.
        Some(broker) if !broker.is_fenced && soft.is_valid(broker, cx) => {
            soft.unsettled.remove(&id);
            Vec::new()
        }
        Some(broker) if !broker.is_fenced => fence(&election, soft, broker),
        Some(_) | None => {
            let mut changes = election.leaves(id, false).map(MetadataRecord::from);
            let records = changes.by_ref().take(CHANGES_MAX).collect();
            if changes.next().is_none() {
                soft.unsettled.remove(&id);
            }
            records
        }
    };
    Plan { records, answer: () }
}

pub(super) fn unregister(
    image: &Image,
    soft: &mut Soft,
    ask: &UnregisterBroker,
    cx: &Cx<'_>,
) -> Plan<Result<(), Refusal>> {
    let Some(broker) = image.broker(ask.id) else {
        return Plan::of(Err(BrokerFault::NotRegistered(ask.id).into()));
    };
    let election = Election { image, rules: &*cx.world.rules };
    let mut records: Vec<_> =
        election.leaves(ask.id, true).take(CHANGES_MAX).map(MetadataRecord::from).collect();
    let gone = UnregisterBrokerRecord { broker_id: ask.id.0, broker_epoch: broker.epoch };
    records.push(gone.into());
    soft.sessions.remove(&ask.id);
    soft.unsettled.insert(ask.id);
    Plan { records, answer: Ok(()) }
}
