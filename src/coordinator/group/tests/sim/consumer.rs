//! A member that speaks the consumer protocol (KIP-848).

use super::super::super::consumer::{
    Assignment, ConsumerFault, ConsumerHeartbeat, HeartbeatAnswer, LEAVES, LEAVES_FOR_A_WHILE,
};
use super::super::super::*;
use super::REBALANCE_MS;
use super::member::Member;
use crate::common::TopicId;

/// What a member knows of itself.
struct Known {
    member_id: MemberId,
    epoch: i32,
    owned: Vec<i32>,
    /// The coordinator may not know what this member last said, or the member not its answer.
    says_all: bool,
    /// It may be put out: it was silent, or did not hear an answer.
    is_late: bool,
}

impl Member {
    pub async fn live_consumer(&self) {
        let mut known = Known {
            member_id: self.random.uuid().to_string().into(),
            epoch: 0,
            owned: Vec::new(),
            says_all: true,
            is_late: false,
        };
        let by_regex = self.chance(4);
        for _ in 0..3 + self.random.below(40) {
            let ask = self.heartbeat(&known, by_regex);
            let coordinator = self.lab.coordinator();
            let beat = self.answer("a heartbeat", coordinator.consumer_heartbeat(ask)).await;
            self.note(&format!("heartbeat {beat:?}"));
            match beat {
                Some(Ok(told)) => self.follow(&mut known, told),
                None | Some(Err(GroupError::NotNow(_))) => {
                    (known.says_all, known.is_late) = (true, true);
                }
                Some(Err(error)) => {
                    if !self.begins_anew(&mut known, &error) {
                        return;
                    }
                }
            }
            self.commit_or_look(&known.member_id, known.epoch, &known.owned).await;
            self.lab.sleep_ms(100 + self.random.below(1_200)).await;
            if self.chance(25) {
                self.give_up();
                (known.owned, known.says_all, known.is_late) = (Vec::new(), true, true);
                self.pause_below(15_000).await;
            }
        }
        self.give_up();
        self.leave_or_vanish(&known).await;
    }

    fn heartbeat(&self, known: &Known, by_regex: bool) -> ConsumerHeartbeat {
        let Known { says_all, .. } = *known;
        let owned: Assignment = match known.owned.is_empty() {
            true => Assignment::new(),
            false => [(topic_t(), known.owned.iter().copied().collect())].into(),
        };
        let topics = if by_regex { Vec::new() } else { vec!["t".into()] };
        ConsumerHeartbeat {
            group_id: self.group_id.clone(),
            member_id: known.member_id.clone(),
            member_epoch: known.epoch,
            instance_id: self.instance_id.clone(),
            rack_id: None,
            rebalance_timeout_ms: if says_all { REBALANCE_MS } else { -1 },
            topics: says_all.then_some(topics),
            regex: (says_all && by_regex).then(|| "t.*".into()),
            assignor: None,
            owned: Some(owned),
            client_id: "c".into(),
            client_host: "/127.0.0.1".into(),
            brings_member_id: true,
        }
    }

    fn follow(&self, known: &mut Known, told: HeartbeatAnswer) {
        let (before, epoch) = (known.epoch, told.member_epoch);
        assert!(epoch >= before, "{}: its epoch goes from {before} to {epoch}", self.id);
        known.epoch = epoch;
        (known.says_all, known.is_late) = (false, false);
        let Some(assignment) = told.assignment else { return };
        let target = assignment.get(&topic_t());
        let target: Vec<i32> = target.into_iter().flatten().copied().collect();
        let new: Vec<i32> = target.iter().copied().filter(|p| !known.owned.contains(p)).collect();
        let mut model = self.lab.model();
        model.give_up_all_but(self.id, &target);
        model.take_up(self.id, &self.group_id, &new);
        known.owned = target;
    }

    /// Whether a refused member may.
    fn begins_anew(&self, known: &mut Known, error: &GroupError) -> bool {
        use ConsumerFault::*;
        let GroupError::Consumer(fault) = error else {
            panic!("{} of {}: {error:?}", self.id, self.group_id);
        };
        match fault {
            InstanceUnreleased { .. } => false,
            // The group may be a classic one by now.
            GroupNotFound(_)
            | Fenced { .. }
            | UnknownMember { .. }
            | UnknownState
            | UnknownInstance(_) => {
                assert!(known.is_late, "{} of {} is out: {error}", self.id, self.group_id);
                self.give_up();
                (known.epoch, known.owned, known.says_all) = (0, Vec::new(), true);
                true
            }
            _ => panic!("{} of {}: {error:?}", self.id, self.group_id),
        }
    }

    async fn leave_or_vanish(&self, known: &Known) {
        let member_epoch = match self.random.below(3) {
            0 => return,
            1 if self.instance_id.is_some() => LEAVES_FOR_A_WHILE,
            _ => LEAVES,
        };
        let ask = ConsumerHeartbeat { member_epoch, ..self.heartbeat(known, false) };
        let coordinator = self.lab.coordinator();
        let left = self.answer("a leave", coordinator.consumer_heartbeat(ask)).await;
        self.note(&format!("leave {left:?}"));
    }
}

fn topic_t() -> TopicId {
    TopicId(uuid::Uuid::from_u128(2))
}
