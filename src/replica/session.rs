//! Incremental fetch sessions (KIP-227): what a client asks of each partition and was told last,
//! kept between its requests, so that both sides name only what changed. One cache per node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use prometheus::IntCounter;

use super::fetch::{Asked, FetchAnswer, PartFetched};
use super::topics::TopicRef;
use crate::common::{Offset, TopicId, TopicName};
use crate::env::{Instant, Random};

/// A session is safe from being evicted by others' while it is used at least this often, and
/// never safe before it is this old (`min.incremental.fetch.session.eviction.ms`).
const EVICTION_AGE: Duration = Duration::from_secs(120);
/// A client that names no session.
pub const NO_SESSION: i32 = 0;
/// Opens a session, or closes the named one and opens another.
const INITIAL_EPOCH: i32 = 0;
/// Closes the named session, if any, and opens none.
const FINAL_EPOCH: i32 = -1;

/// Why a whole Fetch is refused. The client fetches without the session and gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error("fetch session {id} is not known here")]
    NotFound { id: i32 },
    #[error("fetch session {id} is at epoch {expected}, not {asked}")]
    Epoch { id: i32, asked: i32, expected: i32 },
    #[error("fetch session {id} names topics in the other way")]
    TopicIds { id: i32 },
}

/// What a Fetch says of its session.
pub struct SessionAsk {
    pub id: i32,
    pub epoch: i32,
    /// v13 and later: the session is by topic id.
    pub by_topic_id: bool,
    /// A follower's session may push out consumers'.
    pub privileged: bool,
    /// Added or changed partitions; all of them where no session exists.
    pub parts: Vec<Asked>,
    pub forgotten: Vec<(TopicRef, i32)>,
}

/// The partitions to fetch now, and how to answer.
pub struct Fetching {
    /// All partitions, in the order to serve them.
    pub parts: Vec<Asked>,
    pub ticket: SessionTicket,
}

/// What [`Sessions::close`] needs of [`Sessions::open`].
pub struct SessionTicket(Kind);

enum Kind {
    Sessionless,
    Full { by_topic_id: bool, privileged: bool },
    Incremental { session: Arc<Mutex<Session>>, epoch: i32 },
}

impl SessionTicket {
    /// The answer names changed partitions only.
    pub fn is_incremental(&self) -> bool {
        matches!(self.0, Kind::Incremental { .. })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum TopicKey {
    Name(TopicName),
    Id(TopicId),
}

type Key = (TopicKey, i32);

fn key_of(topic: &TopicRef, partition: i32, by_topic_id: bool) -> Key {
    match by_topic_id {
        true => (TopicKey::Id(topic.id()), partition),
        false => (TopicKey::Name(topic.name()), partition),
    }
}

struct Session {
    id: i32,
    by_topic_id: bool,
    privileged: bool,
    /// Of the next request.
    epoch: i32,
    created: Instant,
    used: Instant,
    /// In the order to serve; who got data goes to the back.
    order: BTreeMap<u64, Cached>,
    places: HashMap<Key, u64, ahash::RandomState>,
    next_place: u64,
}

/// One partition of a session.
struct Cached {
    asked: Asked,
    high_watermark: Offset,
    log_start_offset: Offset,
}

impl Session {
    fn add(&mut self, asked: Asked, told: Option<&PartFetched>) {
        let key = key_of(&asked.topic, asked.partition, self.by_topic_id);
        if let Some(cached) = self.places.get(&key).and_then(|at| self.order.get_mut(at)) {
            cached.asked = asked;
            return;
        }
        let mut cached = Cached { asked, high_watermark: -1, log_start_offset: -1 };
        if let Some(told) = told {
            cached.must_tell(told);
        }
        self.places.insert(key, self.next_place);
        self.order.insert(self.next_place, cached);
        self.next_place += 1;
    }

    fn forget(&mut self, key: &Key) {
        if let Some(place) = self.places.remove(key) {
            self.order.remove(&place);
        }
    }

    fn advance(&mut self) {
        self.epoch = next_epoch(self.epoch);
    }

    fn move_back(&mut self, place: u64) {
        let Some(cached) = self.order.remove(&place) else { return };
        let key = key_of(&cached.asked.topic, cached.asked.partition, self.by_topic_id);
        self.places.insert(key, self.next_place);
        self.order.insert(self.next_place, cached);
        self.next_place += 1;
    }
}

impl Cached {
    /// Whether the client must be told, and takes down that it is.
    fn must_tell(&mut self, now: &PartFetched) -> bool {
        let Ok(read) = &now.outcome else {
            // When the error goes the partition is told again, changed or not.
            self.high_watermark = -1;
            return true;
        };
        let changed = self.high_watermark != read.high_watermark
            || self.log_start_offset != read.log_start_offset;
        self.high_watermark = read.high_watermark;
        self.log_start_offset = read.log_start_offset;
        changed || read.size_bytes() > 0 || read.diverging.is_some()
    }
}

fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

/// All sessions of a node; at most [`Sessions::new`]'s `slots`.
pub struct Sessions {
    slots: usize,
    random: Random,
    hasher: ahash::RandomState,
    evicted: IntCounter,
    by_id: Mutex<HashMap<i32, Arc<Mutex<Session>>, ahash::RandomState>>,
}

impl Sessions {
    /// - `slots`: `max.incremental.fetch.session.cache.slots`.
    /// - `evicted`: counts sessions that lost their place.
    pub fn new(slots: usize, random: Random, evicted: IntCounter) -> Self {
        let seeds = [random.next_u64(), random.next_u64(), random.next_u64(), random.next_u64()];
        let hasher = ahash::RandomState::with_seeds(seeds[0], seeds[1], seeds[2], seeds[3]);
        let by_id = Mutex::new(HashMap::with_hasher(hasher.clone()));
        Self { slots, random, hasher, evicted, by_id }
    }

    /// Sessions now.
    pub fn count(&self) -> usize {
        lock(&self.by_id).len()
    }

    /// Partitions in all sessions.
    pub fn partitions(&self) -> usize {
        lock(&self.by_id).values().map(|session| lock(session).order.len()).sum()
    }

    /// Takes the request into its session and says what to fetch.
    ///
    /// # Errors
    /// [`SessionError`]: for the whole request; the session stays as it was.
    pub fn open(&self, ask: SessionAsk, now: Instant) -> Result<Fetching, SessionError> {
        let SessionAsk { id, epoch, by_topic_id, privileged, parts, forgotten } = ask;
        if epoch == INITIAL_EPOCH || epoch == FINAL_EPOCH {
            lock(&self.by_id).remove(&id);
            let kind = match epoch {
                FINAL_EPOCH => Kind::Sessionless,
                _ => Kind::Full { by_topic_id, privileged },
            };
            let parts = unique(parts, by_topic_id, &self.hasher);
            return Ok(Fetching { parts, ticket: SessionTicket(kind) });
        }
        let mut by_id = lock(&self.by_id);
        let shared = by_id.get(&id).cloned().ok_or(SessionError::NotFound { id })?;
        let mut session = lock(&shared);
        if session.epoch != epoch {
            return Err(SessionError::Epoch { id, asked: epoch, expected: session.epoch });
        }
        if session.by_topic_id != by_topic_id {
            return Err(SessionError::TopicIds { id });
        }
        parts.iter().for_each(|part| session.add(part.clone(), None));
        for (topic, partition) in &forgotten {
            session.forget(&key_of(topic, *partition, by_topic_id));
        }
        if session.order.is_empty() {
            by_id.remove(&id);
            drop(session);
            // Named and forgotten in one request: they are answered, as in Kafka.
            let parts = unique(parts, by_topic_id, &self.hasher);
            return Ok(Fetching { parts, ticket: SessionTicket(Kind::Sessionless) });
        }
        session.used = now;
        session.advance();
        let epoch = session.epoch;
        let parts = session.order.values().map(|cached| cached.asked.clone()).collect();
        drop(session);
        let ticket = SessionTicket(Kind::Incremental { session: shared, epoch });
        Ok(Fetching { parts, ticket })
    }

    /// Cuts `answer` to what the client must be told, and gives the session id to answer with.
    ///
    /// # Errors
    /// [`SessionError::Epoch`]: another request took the session on meanwhile.
    pub fn close(
        &self,
        ticket: SessionTicket,
        answer: &mut FetchAnswer,
        asked: Vec<Asked>,
        now: Instant,
    ) -> Result<i32, SessionError> {
        match ticket.0 {
            Kind::Sessionless => Ok(NO_SESSION),
            Kind::Full { by_topic_id, privileged } => {
                Ok(self.create(by_topic_id, privileged, asked, &answer.parts, now))
            }
            Kind::Incremental { session, epoch } => {
                let mut session = lock(&session);
                if session.epoch != epoch {
                    let (id, expected) = (session.id, session.epoch);
                    return Err(SessionError::Epoch { id, asked: epoch, expected });
                }
                tell_changes(&mut session, &mut answer.parts);
                Ok(session.id)
            }
        }
    }

    fn create(
        &self,
        by_topic_id: bool,
        privileged: bool,
        asked: Vec<Asked>,
        told: &[PartFetched],
        now: Instant,
    ) -> i32 {
        let mut by_id = lock(&self.by_id);
        if by_id.len() >= self.slots {
            if !evict(&mut by_id, privileged, asked.len(), now) {
                return NO_SESSION;
            }
            self.evicted.inc();
        }
        let id = loop {
            let id = self.random.below(i32::MAX as u64) as i32 + 1;
            if !by_id.contains_key(&id) {
                break id;
            }
        };
        let mut session = Session {
            id,
            by_topic_id,
            privileged,
            epoch: next_epoch(INITIAL_EPOCH),
            created: now,
            used: now,
            order: BTreeMap::new(),
            places: HashMap::with_hasher(self.hasher.clone()),
            next_place: 0,
        };
        for (asked, told) in asked.into_iter().zip(told) {
            session.add(asked, Some(told));
        }
        by_id.insert(id, Arc::new(Mutex::new(session)));
        id
    }
}

/// Partitions named twice count once, in the first place and as asked last (as Kafka's map does).
fn unique(parts: Vec<Asked>, by_topic_id: bool, hasher: &ahash::RandomState) -> Vec<Asked> {
    let repeats = |at: usize| parts[..at].iter().any(|earlier| earlier.is_same(&parts[at]));
    if parts.len() <= 8 && !(1..parts.len()).any(repeats) {
        return parts;
    }
    let mut seen = HashMap::with_capacity_and_hasher(parts.len(), hasher.clone());
    let mut kept: Vec<Asked> = Vec::with_capacity(parts.len());
    for part in parts {
        let at =
            *seen.entry(key_of(&part.topic, part.partition, by_topic_id)).or_insert(kept.len());
        match kept.get_mut(at) {
            Some(earlier) => *earlier = part,
            None => kept.push(part),
        }
    }
    kept
}

/// Keeps of `parts` (one per partition of the session, in its order) what the client must be
/// told.
fn tell_changes(session: &mut Session, parts: &mut Vec<PartFetched>) {
    let places: Vec<u64> = session.order.keys().copied().collect();
    let mut at = 0;
    let mut data = Vec::new();
    parts.retain(|part| {
        let place = places.get(at).copied();
        at += 1;
        let Some(cached) = place.and_then(|place| session.order.get_mut(&place)) else {
            return true;
        };
        if part.outcome.as_ref().is_ok_and(|read| read.size_bytes() > 0) {
            data.extend(place);
        }
        cached.must_tell(part)
    });
    data.into_iter().for_each(|place| session.move_back(place));
}

type ById = HashMap<i32, Arc<Mutex<Session>>, ahash::RandomState>;

/// Makes room for a new session by closing an older one: one that nobody used for long, else the
/// least valuable of those that may go, if the new one is worth more.
fn evict(by_id: &mut ById, privileged: bool, size: usize, now: Instant) -> bool {
    let mut stalest: Option<(Instant, i32)> = None;
    let mut cheapest: Option<(bool, usize, i32)> = None;
    for (id, session) in by_id.iter() {
        let session = lock(session);
        stalest = stalest.into_iter().chain([(session.used, *id)]).min();
        // As old as when it was used last, as in Kafka.
        let is_old = session.used - session.created > EVICTION_AGE;
        let may_go = is_old || (privileged && !session.privileged);
        if may_go {
            let worth = (session.privileged, session.order.len(), *id);
            cheapest = cheapest.into_iter().chain([worth]).min();
        }
    }
    let victim = match (stalest, cheapest) {
        (Some((used, id)), _) if now - used > EVICTION_AGE => id,
        (_, Some(worth)) if (privileged, size, 0) >= worth => worth.2,
        _ => return false,
    };
    by_id.remove(&victim);
    true
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A session holds nothing that half a change could break.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
