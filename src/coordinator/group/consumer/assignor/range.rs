//! Each topic's partitions in runs over its subscribers, so that equal topics are cut alike.

use std::collections::BTreeMap;

use super::{Assignment, Group, Member};
use crate::common::TopicId;

pub fn assign(group: &Group) -> Vec<Assignment> {
    let mut order: Vec<usize> = (0..group.members.len()).collect();
    // Static members first, by their lasting names.
    order.sort_by_key(|at| {
        let Member { instance_id, id, .. } = &group.members[*at];
        (instance_id.is_none(), instance_id.clone(), id.clone())
    });
    let mut subscribers: BTreeMap<TopicId, Vec<usize>> = BTreeMap::new();
    for at in order {
        for topic in &group.members[at].topics {
            subscribers.entry(*topic).or_default().push(at);
        }
    }
    let mut assigned = vec![Assignment::new(); group.members.len()];
    for (topic, members) in subscribers {
        let partitions = group.partitions.get(&topic).copied().unwrap_or(0);
        let count = members.len() as i32;
        let (each, extra) = (partitions / count, partitions % count);
        let mut next = 0;
        for (nth, at) in (0..).zip(members) {
            let end = next + each + i32::from(nth < extra);
            if next < end {
                assigned[at].insert(topic, (next..end).collect());
            }
            next = end;
        }
    }
    assigned
}
