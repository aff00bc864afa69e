//! DescribeGroups and ListGroups.

use super::live::{Live, Member};
use super::machine::{GroupAnswer, LiveGroups, Turn, not_found};
use super::state::GroupMetadata;
use super::types::{
    DescribedMember, Description, GROUP_TYPE, GroupId, GroupState, ListGroups, ListedGroup,
};

/// [`ListGroups`] made ready to compare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// In lower case; empty: all.
    states: Vec<String>,
    /// Other types are asked for, but not this coordinator's.
    takes_none: bool,
}

impl From<&ListGroups> for ListFilter {
    fn from(ask: &ListGroups) -> Self {
        let states = ask.states.iter().map(|state| state.trim().to_lowercase()).collect();
        let is_ours = |name: &String| name.to_lowercase() == GROUP_TYPE;
        let takes_none = !ask.types.is_empty() && !ask.types.iter().any(is_ours);
        Self { states, takes_none }
    }
}

impl ListFilter {
    fn takes(&self, state: GroupState) -> bool {
        let name = state.name().to_lowercase();
        !self.takes_none && (self.states.is_empty() || self.states.contains(&name))
    }
}

impl Turn<'_> {
    pub fn decide_describe(&mut self, groups: &LiveGroups, id: &GroupId) {
        let outcome = match (groups.get(id), self.state.group(id)) {
            (Some(group), _) => Ok(describe_live(group)),
            (None, Some(metadata)) => Ok(describe_empty(metadata)),
            (None, None) => Err(not_found(id)),
        };
        self.answer(GroupAnswer::Describe(outcome));
    }

    /// In order of their ids.
    pub fn decide_list(&mut self, groups: &LiveGroups, filter: &ListFilter) {
        let all = self.state.groups_from(GroupId::default()).map(|(id, metadata)| {
            let (protocol_type, state) = match groups.get(id) {
                Some(group) => (&group.protocol_type, group.state),
                None => (&metadata.protocol_type, GroupState::Empty),
            };
            let protocol_type = protocol_type.clone().unwrap_or_default();
            ListedGroup { group_id: id.clone(), protocol_type, state }
        });
        let listed = all.filter(|group| filter.takes(group.state)).collect();
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
