//! What must hold: who has which partition, and which offsets were promised.

use std::collections::BTreeMap;

use super::super::super::GroupId;
use super::Outcome;
use crate::common::Offset;

/// A group and one of its partitions.
type Place = (GroupId, i32);

#[derive(Debug, Default)]
pub struct Model {
    /// Who reads a partition now, as far as the member that reads it knows.
    owners: BTreeMap<Place, u64>,
    /// Least that must be found: acknowledged, or found before.
    promised: BTreeMap<Place, Offset>,
    last_offset: Offset,
    pub outcome: Outcome,
}

impl Model {
    /// A member begins to read partitions that it was given.
    pub fn take_up(&mut self, member: u64, group_id: &GroupId, partitions: &[i32]) {
        self.outcome.taken_up += u64::from(!partitions.is_empty());
        for partition in partitions {
            let place = (group_id.clone(), *partition);
            let other = self.owners.insert(place.clone(), member).filter(|other| *other != member);
            assert_eq!(other, None, "{place:?} is given to {member} while another reads it");
        }
    }

    /// A member reads nothing any more but `kept`.
    pub fn give_up_all_but(&mut self, member: u64, kept: &[i32]) {
        self.owners.retain(|(_, partition), owner| *owner != member || kept.contains(partition));
    }

    pub fn give_up(&mut self, member: u64) {
        self.give_up_all_but(member, &[]);
    }

    /// An offset above all that were committed before.
    pub fn next_offset(&mut self) -> Offset {
        self.last_offset += 1;
        self.last_offset
    }

    pub fn promised(&self, group_id: &GroupId, partition: i32) -> Option<Offset> {
        self.promised.get(&(group_id.clone(), partition)).copied()
    }

    /// An offset is acknowledged, or was found.
    pub fn promise(&mut self, group_id: &GroupId, partition: i32, offset: Offset) {
        assert!(offset <= self.last_offset, "{offset} was never committed");
        let promised = self.promised.entry((group_id.clone(), partition)).or_default();
        *promised = offset.max(*promised);
    }
}
