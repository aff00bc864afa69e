//! A member that speaks the classic protocol.

use bytes::Bytes;

use super::super::super::consumer::ConsumerFault;
use super::super::super::*;
use super::super::bench::{consumer, leaving, sync_as};
use super::member::{Member, Plan};
use super::{PARTITIONS, REBALANCE_MS, SESSION_MS};
use crate::protocol::records::consumer_protocol::{ConsumerProtocolAssignment, TopicPartition};

/// How a generation ended for a member.
enum After {
    Rejoins,
    /// It is not known any more.
    Forgotten,
    Vanishes,
}

impl Member {
    pub async fn live_classic(&self) {
        let mut member_id = MemberId::from("");
        for _ in 0..3 + self.random.below(8) {
            self.give_up();
            let coordinator = self.lab.coordinator();
            let joining = coordinator.join_group(self.join(&member_id));
            let Some(outcome) = self.answer("a join", joining).await else { continue };
            self.note(&format!("join {outcome:?}"));
            match outcome {
                Ok(joined) => {
                    member_id = joined.member_id.clone();
                    match self.live_generation(&joined).await {
                        After::Rejoins => {}
                        After::Forgotten => member_id = "".into(),
                        After::Vanishes => return,
                    }
                }
                Err(JoinRefused { member_id: given, error }) => match error {
                    GroupError::NotNow(NotNow::MemberIdRequired) => member_id = given,
                    GroupError::NotNow(_) => self.pause_below(300).await,
                    // A join whose answer it did not hear has its instance id.
                    GroupError::Client(
                        ClientFault::FencedInstance | ClientFault::UnknownMember,
                    )
                    | GroupError::Consumer(ConsumerFault::UnknownInstance(_)) => {
                        member_id = "".into();
                    }
                    error => panic!("join of {} in {}: {error:?}", self.id, self.group_id),
                },
            }
        }
        self.give_up();
        if !member_id.is_empty() && self.chance(2) {
            self.leave(&member_id).await;
        }
    }

    fn join(&self, member_id: &MemberId) -> JoinGroup {
        JoinGroup {
            group_id: self.group_id.clone(),
            group_instance_id: self.instance_id.clone(),
            session_timeout_ms: SESSION_MS,
            rebalance_timeout_ms: Some(REBALANCE_MS),
            ..consumer(member_id)
        }
    }

    async fn live_generation(&self, joined: &Joined) -> After {
        match self.random.below(12) {
            0 => {
                self.pause_below(15_000).await;
                return if self.chance(2) { After::Rejoins } else { After::Vanishes };
            }
            1 => self.sync_wrongly(joined).await,
            _ => {}
        }
        let coordinator = self.lab.coordinator();
        let syncing = coordinator.sync_group(self.sync(joined, joined.generation_id));
        let Some(outcome) = self.answer("a sync", syncing).await else { return After::Rejoins };
        self.note(&format!("sync {outcome:?}"));
        let synced = match outcome {
            Ok(synced) => synced,
            Err(GroupError::NotNow(_)) => return After::Rejoins,
            Err(GroupError::Client(ClientFault::IllegalGeneration { .. })) => {
                return After::Rejoins;
            }
            Err(GroupError::Client(ClientFault::UnknownMember)) => return After::Forgotten,
            Err(error) => panic!("sync of {} in {}: {error:?}", self.id, self.group_id),
        };
        let partitions = partitions_of(&synced.assignment);
        self.lab.model().take_up(self.id, &self.group_id, &partitions);
        self.read(joined, &partitions).await
    }

    async fn sync_wrongly(&self, joined: &Joined) {
        let ask = self.sync(joined, joined.generation_id + 1);
        let coordinator = self.lab.coordinator();
        let Some(outcome) = self.answer("a wrong sync", coordinator.sync_group(ask)).await else {
            return;
        };
        assert!(outcome.is_err(), "a sync of a generation to come: {outcome:?}");
    }

    fn sync(&self, joined: &Joined, generation_id: i32) -> SyncGroup {
        let all: Vec<i32> = (0..PARTITIONS as i32).collect();
        let count = joined.members.len();
        let share = |at: usize| all.iter().copied().skip(at).step_by(count).collect::<Vec<_>>();
        let is_asked = !joined.skip_assignment;
        let members = joined.members.iter().enumerate().filter(|_| is_asked);
        SyncGroup {
            group_id: self.group_id.clone(),
            group_instance_id: self.instance_id.clone(),
            assignments: members
                .map(|(at, member)| (member.member_id.clone(), assignment(&share(at))))
                .collect(),
            ..sync_as(&joined.member_id, generation_id)
        }
    }

    /// Reads its partitions, with a heartbeat now and then.
    async fn read(&self, joined: &Joined, partitions: &[i32]) -> After {
        let mut is_in_time = true;
        for _ in 0..self.random.below(25) {
            self.lab.sleep_ms(300 + self.random.below(1_000)).await;
            if self.chance(25) {
                self.give_up();
                is_in_time = false;
                self.pause_below(15_000).await;
            }
            let ask = Heartbeat {
                group_id: self.group_id.clone(),
                generation_id: joined.generation_id,
                member_id: joined.member_id.clone(),
                group_instance_id: self.instance_id.clone(),
            };
            let coordinator = self.lab.coordinator();
            let beat = self.answer("a heartbeat", coordinator.heartbeat(ask)).await;
            self.note(&format!("heartbeat {beat:?}"));
            match beat {
                Some(Ok(())) => {}
                // It may have been told to join again.
                None => is_in_time = false,
                Some(Err(GroupError::NotNow(NotNow::RebalanceInProgress))) => {
                    return After::Rejoins;
                }
                Some(Err(GroupError::NotNow(_))) => {}
                // A group that changes its kind may be ahead of its members.
                Some(Err(GroupError::Client(ClientFault::IllegalGeneration { .. })))
                    if self.plan == Plan::Mixed =>
                {
                    return After::Rejoins;
                }
                Some(Err(error)) => {
                    assert!(!is_in_time, "{} of {} is out: {error}", self.id, self.group_id);
                    return After::Forgotten;
                }
            }
            self.commit_or_look(&joined.member_id, joined.generation_id, partitions).await;
        }
        if self.chance(2) { After::Rejoins } else { After::Vanishes }
    }

    async fn leave(&self, member_id: &MemberId) {
        let member = leaving(member_id, self.instance_id.as_deref());
        let ask = LeaveGroup { group_id: self.group_id.clone(), members: vec![member] };
        let coordinator = self.lab.coordinator();
        let left = self.answer("a leave", coordinator.leave_group(ask)).await;
        self.note(&format!("leave {left:?}"));
    }
}

/// Partitions of topic `t`, as a leader tells them.
fn assignment(partitions: &[i32]) -> Bytes {
    let partitions = TopicPartition { topic: "t".into(), partitions: partitions.to_vec() };
    let assigned_partitions = vec![partitions];
    let assignment = ConsumerProtocolAssignment { assigned_partitions, user_data: None };
    assignment.to_bytes(0).expect("short names")
}

/// The partitions of topic `t`, as a member reads them; a leader may have told none.
fn partitions_of(assignment: &[u8]) -> Vec<i32> {
    if assignment.is_empty() {
        return Vec::new();
    }
    let assignment = ConsumerProtocolAssignment::parse(assignment).expect("an assignment");
    assignment.assigned_partitions.into_iter().flat_map(|topic| topic.partitions).collect()
}
