//! From what a member has to what it is to have, one step at a time (KIP-848, "Member
//! reconciliation"): it gives back first, then moves to the target's epoch, and gets the others'
//! partitions as they are given back.

use std::collections::{BTreeMap, BTreeSet};

use super::state::{Assignment, Current, MemberState, Owned};
use super::types::ConsumerFault;
use crate::common::TopicId;

/// What one step depends on beside the member.
pub struct Step<'a> {
    pub target_epoch: i32,
    pub target: &'a Assignment,
    /// Topics that the member is subscribed to now, which the target may be older than.
    pub subscribed: &'a BTreeSet<TopicId>,
    pub subscription_changed: bool,
    /// What the member says it owns; `None`: nothing new.
    pub owned: Option<&'a Assignment>,
    /// Whether somebody has the partition or is yet to give it back.
    pub has_owner: &'a dyn Fn(TopicId, i32) -> bool,
}

impl Step<'_> {
    /// The member after the step; the same one if it cannot move.
    ///
    /// # Errors
    /// [`ConsumerFault::Fenced`]: a member in a state that is not known must start anew.
    pub fn from(&self, member: &Current) -> Result<Current, ConsumerFault> {
        Ok(match member.state {
            MemberState::Stable if member.epoch != self.target_epoch => {
                self.next(member, member.epoch)
            }
            MemberState::Stable if self.subscription_changed => self.unsubscribed(member),
            MemberState::Stable => member.clone(),
            MemberState::Unrevoked if self.still_owns(&member.revoking) => {
                match self.subscription_changed {
                    true => self.unsubscribed(member),
                    false => member.clone(),
                }
            }
            MemberState::Unrevoked | MemberState::Unreleased => self.next(member, member.epoch),
            MemberState::Unknown if self.owned.is_none_or(|owned| !owned.is_empty()) => {
                return Err(ConsumerFault::UnknownState);
            }
            MemberState::Unknown => self.next(member, self.target_epoch),
        })
    }

    /// Whether the member has not said that it gave all of `revoking` back.
    fn still_owns(&self, revoking: &Owned) -> bool {
        let Some(owned) = self.owned else { return true };
        owned.iter().any(|(topic, partitions)| {
            let revoking = revoking.get(topic);
            revoking.is_some_and(|r| partitions.iter().any(|partition| r.contains_key(partition)))
        })
    }

    /// The member has changed its subscription: what it no longer wants it gives back, without
    /// waiting for the next target.
    fn unsubscribed(&self, member: &Current) -> Current {
        let is_kept = |topic: &TopicId| self.subscribed.contains(topic);
        if member.assigned.keys().all(is_kept) {
            return member.clone();
        }
        let (mut assigned, mut revoking) = (Owned::new(), member.revoking.clone());
        for (topic, partitions) in &member.assigned {
            if is_kept(topic) {
                assigned.insert(*topic, partitions.clone());
            } else {
                revoking.entry(*topic).or_default().extend(partitions);
            }
        }
        let (state, revoking) = match self.still_owns(&revoking) {
            true => (MemberState::Unrevoked, revoking),
            false => (member.state, member.revoking.clone()),
        };
        Current { state, assigned, revoking, ..at(member, member.epoch) }
    }

    fn next(&self, member: &Current, epoch: i32) -> Current {
        let nothing = BTreeSet::new();
        let (mut assigned, mut revoking) = (Owned::new(), Owned::new());
        for (topic, has) in &member.assigned {
            let wanted = self.target.get(topic).filter(|_| self.subscribed.contains(topic));
            let wanted = wanted.unwrap_or(&nothing);
            let (kept, given_back): (BTreeMap<i32, i32>, BTreeMap<i32, i32>) =
                has.iter().partition(|(partition, _)| wanted.contains(partition));
            assigned.extend((!kept.is_empty()).then_some((*topic, kept)));
            revoking.extend((!given_back.is_empty()).then_some((*topic, given_back)));
        }
        if !revoking.is_empty() && self.still_owns(&revoking) {
            return Current {
                state: MemberState::Unrevoked,
                assigned,
                revoking,
                ..at(member, epoch)
            };
        }
        let mut waits = false;
        for (topic, wanted) in self.target.iter().filter(|(t, _)| self.subscribed.contains(t)) {
            let has = assigned.get(topic).cloned().unwrap_or_default();
            let own = member.revoking.get(topic);
            let missing = wanted.iter().filter(|partition| !has.contains_key(partition));
            let is_free = |partition: &&i32| {
                // What it was to give back itself, it may keep.
                own.is_some_and(|own| own.contains_key(partition))
                    || !(self.has_owner)(*topic, **partition)
            };
            let (free, taken): (Vec<&i32>, Vec<&i32>) = missing.partition(is_free);
            waits |= !taken.is_empty();
            if !free.is_empty() {
                let gets = free.into_iter().map(|partition| (*partition, self.target_epoch));
                assigned.entry(*topic).or_default().extend(gets);
            }
        }
        let state = if waits { MemberState::Unreleased } else { MemberState::Stable };
        Current { state, assigned, revoking: Owned::new(), ..at(member, self.target_epoch) }
    }
}

/// The member in `epoch`, without partitions.
fn at(member: &Current, epoch: i32) -> Current {
    let (assigned, revoking) = (Owned::new(), Owned::new());
    Current { epoch, previous_epoch: member.epoch, state: member.state, assigned, revoking }
}
