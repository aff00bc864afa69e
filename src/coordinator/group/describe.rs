//! DescribeGroups and ListGroups.

use super::error::ClientFault;
use super::live::{Live, Member};
use super::machine::{GroupAnswer, LiveGroups, Turn, not_found};
use super::state::{GroupMetadata, Kept};
use super::subscription;
use super::types::{
    CLASSIC_TYPE, CONSUMER_TYPE, DescribedMember, Description, GroupId, GroupState, ListGroups,
    ListedGroup,
};

/// [`ListGroups`] made ready to compare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// In lower case; empty: all.
    states: Vec<String>,
    /// In lower case; empty: all.
    types: Vec<String>,
}

impl From<&ListGroups> for ListFilter {
    fn from(ask: &ListGroups) -> Self {
        let states = ask.states.iter().map(|state| state.trim().to_lowercase()).collect();
        let types = ask.types.iter().map(|name| name.to_lowercase()).collect();
        Self { states, types }
    }
}

impl ListFilter {
    fn takes(&self, group: &ListedGroup) -> bool {
        let has = |names: &[String], name: &str| {
            names.is_empty() || names.iter().any(|of| of.eq_ignore_ascii_case(name))
        };
        has(&self.types, group.group_type) && has(&self.states, group.state)
    }
}

impl Turn<'_> {
    pub fn decide_describe(&mut self, groups: &LiveGroups, id: &GroupId) {
        let outcome = match (groups.get(id), self.state.classic(id)) {
            (Some(group), _) => Ok(describe_live(group)),
            (None, Some(metadata)) => Ok(describe_empty(metadata)),
            (None, None) if self.state.has_group(id) => {
                Err(ClientFault::NotClassic(id.to_string()).into())
            }
            (None, None) => Err(not_found(id)),
        };
        self.answer(GroupAnswer::Describe(outcome));
    }

    /// In order of their ids.
    pub fn decide_list(&mut self, groups: &LiveGroups, filter: &ListFilter) {
        let all = self.state.groups_from(GroupId::default()).map(|(id, kept)| {
            let (protocol_type, state, group_type) = match (groups.get(id), kept) {
                (_, Kept::Consumer(group)) => {
                    (Some(subscription::CONSUMER.into()), group.state(), CONSUMER_TYPE)
                }
                (Some(group), _) => (group.protocol_type.clone(), group.state.name(), CLASSIC_TYPE),
                (None, Kept::Classic(metadata)) => {
                    (metadata.protocol_type.clone(), GroupState::Empty.name(), CLASSIC_TYPE)
                }
            };
            let (group_id, protocol_type) = (id.clone(), protocol_type.unwrap_or_default());
            ListedGroup { group_id, protocol_type, state, group_type }
        });
        let listed = all.filter(|group| filter.takes(group)).collect();
        self.answer(GroupAnswer::List(listed));
    }
}

fn describe_empty(metadata: &GroupMetadata) -> Description {
    Description {
        state: GroupState::Empty,
        protocol_type: metadata.protocol_type.clone().unwrap_or_default(),
        protocol_data: "".into(),
        members: Vec::new(),
    }
}

/// The protocol and the members' metadata are only settled while the group is stable.
fn describe_live(group: &Live) -> Description {
    let protocol = match group.state {
        GroupState::Stable => group.protocol_name.clone(),
        _ => None,
    };
    let describe = |member: &Member| DescribedMember {
        member_id: member.id.clone(),
        group_instance_id: member.group_instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        metadata: protocol.as_deref().map(|name| member.metadata(name)).unwrap_or_default(),
        assignment: member.assignment.clone(),
    };
    Description {
        state: group.state,
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        members: group.members.values().map(describe).collect(),
        protocol_data: protocol.clone().unwrap_or_default(),
    }
}
