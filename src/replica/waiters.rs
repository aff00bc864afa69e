//! Who waits for a partition to move on. A waiter belongs to the partition and is registered
//! under its lock; wake-ups are collected under the lock and sent after it.

use std::sync::Arc;

use slab::Slab;
use tokio::sync::{Notify, watch};

use crate::common::Offset;

/// What a waiter waits for: an end to move beyond an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    HighWatermark {
        above: Offset,
    },
    LastStable {
        above: Offset,
    },
    /// Durable on this node's disk, replicated or not.
    Durable {
        above: Offset,
    },
}

/// Where a partition's ends are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub high_watermark: Offset,
    pub last_stable: Offset,
    pub durable: Offset,
}

impl Wants {
    fn is_met(self, ends: &Ends) -> bool {
        match self {
            Self::HighWatermark { above } => ends.high_watermark > above,
            Self::LastStable { above } => ends.last_stable > above,
            Self::Durable { above } => ends.durable > above,
        }
    }
}

/// Waiters of one partition.
#[derive(Default)]
pub(super) struct Waiters(Slab<(Wants, Arc<Notify>)>);

impl Waiters {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key is for [`Waiters::remove`]; a waiter that was woken stays until then.
    pub fn add(&mut self, wants: Wants, notify: Arc<Notify>) -> usize {
        self.0.insert((wants, notify))
    }

    pub fn remove(&mut self, key: usize) {
        self.0.try_remove(key);
    }

    pub fn wake(&self, ends: &Ends, wakes: &mut Wakes) {
        for (_, (wants, notify)) in &self.0 {
            if wants.is_met(ends) {
                wakes.notify(notify.clone());
            }
        }
    }

    /// Something happened that every waiter must look at: the leadership went, the log failed.
    pub fn wake_all(&self, wakes: &mut Wakes) {
        self.0.iter().for_each(|(_, (_, notify))| wakes.notify(notify.clone()));
    }
}

/// Wake-ups on their way out of a partition's lock.
#[derive(Default)]
pub(super) struct Wakes {
    first: Option<Arc<Notify>>,
    more: Vec<Arc<Notify>>,
    committed: Option<(watch::Sender<Offset>, Offset)>,
}

impl Wakes {
    fn notify(&mut self, notify: Arc<Notify>) {
        match &self.first {
            None => self.first = Some(notify),
            Some(_) => self.more.push(notify),
        }
    }

    /// Tells a journal's followers of its committed offset.
    pub fn committed(&mut self, sender: watch::Sender<Offset>, offset: Offset) {
        self.committed = Some((sender, offset));
    }

    /// Sends them; no lock may be held.
    pub fn send(self) {
        if let Some((sender, offset)) = self.committed {
            // Two threads may come here in the other order than they left the lock.
            sender.send_if_modified(|now| {
                let ahead = offset > *now;
                if ahead {
                    *now = offset;
                }
                ahead
            });
        }
        self.first.into_iter().chain(self.more).for_each(|notify| notify.notify_one());
    }
}
