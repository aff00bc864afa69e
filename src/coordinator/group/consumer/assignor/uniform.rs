//! Even over all members: each keeps what it may, the rest goes to those who have least. Where all
//! subscribe alike the shares are known beforehand; else partitions move from the fullest to the
//! emptiest subscriber of a topic until no such move helps.

use std::collections::{BTreeMap, BTreeSet};

use super::{Assignment, Group};
use crate::common::TopicId;

/// Rounds over all topics; the moves of one topic can make others uneven again.
const ROUNDS_MAX: usize = 16;

pub fn assign(group: &Group) -> Vec<Assignment> {
    let mut shares = Shares::kept(group);
    let is_alike = group.members.windows(2).all(|pair| pair[0].topics == pair[1].topics);
    if is_alike {
        shares.even_out(group);
    } else {
        shares.fill(group);
        shares.balance(group);
    }
    shares.assigned
}

/// The assignment in the making.
struct Shares {
    assigned: Vec<Assignment>,
    sizes: Vec<usize>,
    /// By topic and partition, who has it.
    owners: BTreeMap<TopicId, Vec<Option<usize>>>,
}

impl Shares {
    /// What every member has of what it may have.
    fn kept(group: &Group) -> Self {
        let nobody = |count: &i32| vec![None; usize::try_from(*count).unwrap_or(0)];
        let wanted: BTreeSet<&TopicId> =
            group.members.iter().flat_map(|member| &member.topics).collect();
        let wanted = group.partitions.iter().filter(|(topic, _)| wanted.contains(topic));
        let owners = wanted.map(|(topic, count)| (*topic, nobody(count)));
        let members = group.members.len();
        let mut shares = Self {
            assigned: vec![Assignment::new(); members],
            sizes: vec![0; members],
            owners: owners.collect(),
        };
        for (at, member) in group.members.iter().enumerate() {
            let wanted = |(topic, _): &(&TopicId, &BTreeSet<i32>)| member.topics.contains(topic);
            for (topic, partitions) in member.target.iter().filter(wanted) {
                for partition in partitions {
                    if shares.owner(*topic, *partition) == Some(None) {
                        shares.give(*topic, *partition, at);
                    }
                }
            }
        }
        shares
    }

    /// `None`: there is no such partition.
    fn owner(&self, topic: TopicId, partition: i32) -> Option<Option<usize>> {
        let partition = usize::try_from(partition).ok()?;
        self.owners.get(&topic)?.get(partition).copied()
    }

    fn give(&mut self, topic: TopicId, partition: i32, to: usize) {
        if let Some(owner) = self.owners.get_mut(&topic).and_then(|o| o.get_mut(partition as usize))
        {
            *owner = Some(to);
            self.assigned[to].entry(topic).or_default().insert(partition);
            self.sizes[to] += 1;
        }
    }

    fn take(&mut self, topic: TopicId, partition: i32, from: usize) {
        if let Some(partitions) = self.assigned[from].get_mut(&topic)
            && partitions.remove(&partition)
        {
            self.sizes[from] -= 1;
            if partitions.is_empty() {
                self.assigned[from].remove(&topic);
            }
        }
        if let Some(owner) = self.owners.get_mut(&topic).and_then(|o| o.get_mut(partition as usize))
        {
            *owner = None;
        }
    }

    fn free(&self) -> Vec<(TopicId, i32)> {
        let topics = self.owners.iter();
        let free = topics.flat_map(|(topic, owners)| {
            let free = (0..).zip(owners).filter(|(_, owner)| owner.is_none());
            free.map(|(partition, _)| (*topic, partition))
        });
        free.collect()
    }

    /// All subscribe alike: everyone gets the same number, some one more; who has more already
    /// keeps it.
    fn even_out(&mut self, group: &Group) {
        let members = group.members.len();
        let total: usize = self.owners.values().map(Vec::len).sum();
        let (each, mut extra) = (total / members, total % members);
        let mut quotas = vec![each; members];
        let has_more = |at: &usize| self.sizes[*at] > each;
        let (first, then): (Vec<usize>, Vec<usize>) = (0..members).partition(has_more);
        for at in first.into_iter().chain(then) {
            quotas[at] += usize::from(extra > 0);
            extra = extra.saturating_sub(1);
        }
        for (at, quota) in quotas.iter().enumerate() {
            let surplus = self.sizes[at].saturating_sub(*quota);
            let all = self.assigned[at].iter().rev();
            let all =
                all.flat_map(|(topic, partitions)| partitions.iter().rev().map(|p| (*topic, *p)));
            for (topic, partition) in all.take(surplus).collect::<Vec<_>>() {
                self.take(topic, partition, at);
            }
        }
        let mut free = self.free().into_iter();
        for (at, quota) in quotas.into_iter().enumerate() {
            let missing = quota.saturating_sub(self.sizes[at]);
            for (topic, partition) in free.by_ref().take(missing) {
                self.give(topic, partition, at);
            }
        }
    }

    /// Gives free partitions to the subscribers that have least; topics with few subscribers for
    /// their partitions first.
    fn fill(&mut self, group: &Group) {
        for (topic, subscribers) in by_need(group) {
            let mut by_size: BTreeSet<(usize, usize)> =
                subscribers.iter().map(|at| (self.sizes[*at], *at)).collect();
            let owners = self.owners.get(&topic).cloned().unwrap_or_default();
            for (partition, _) in (0..).zip(owners).filter(|(_, owner)| owner.is_none()) {
                let Some((_, least)) = by_size.pop_first() else { break };
                self.give(topic, partition, least);
                by_size.insert((self.sizes[least], least));
            }
        }
    }

    fn balance(&mut self, group: &Group) {
        let topics = by_need(group);
        for _ in 0..ROUNDS_MAX {
            let mut moved = false;
            for (topic, subscribers) in &topics {
                moved |= self.balance_topic(*topic, subscribers);
            }
            if !moved {
                break;
            }
        }
    }

    fn balance_topic(&mut self, topic: TopicId, subscribers: &[usize]) -> bool {
        let mut by_size: BTreeSet<(usize, usize)> =
            subscribers.iter().map(|at| (self.sizes[*at], *at)).collect();
        let mut moved = false;
        while let (Some((least, to)), Some((most, from))) =
            (by_size.first().copied(), by_size.last().copied())
        {
            if most <= least + 1 {
                break;
            }
            by_size.remove(&(most, from));
            let last = self.assigned[from].get(&topic).and_then(|p| p.last().copied());
            // Who has none of this topic has nothing to give here.
            let Some(partition) = last else { continue };
            by_size.remove(&(least, to));
            self.take(topic, partition, from);
            self.give(topic, partition, to);
            by_size.extend([(self.sizes[from], from), (self.sizes[to], to)]);
            moved = true;
        }
        moved
    }
}

/// Topics with their subscribers: those first where each subscriber has most to take.
fn by_need(group: &Group) -> Vec<(TopicId, Vec<usize>)> {
    let mut subscribers: BTreeMap<TopicId, Vec<usize>> = BTreeMap::new();
    for (at, member) in group.members.iter().enumerate() {
        for topic in &member.topics {
            subscribers.entry(*topic).or_default().push(at);
        }
    }
    let count = |topic: &TopicId| group.partitions.get(topic).copied().unwrap_or(0) as usize;
    let mut topics: Vec<_> = subscribers.into_iter().collect();
    // Partitions per subscriber, compared without division.
    topics.sort_by(|(a, few), (b, many)| {
        let need = (count(b) * few.len()).cmp(&(count(a) * many.len()));
        need.then(few.len().cmp(&many.len()))
    });
    topics
}
