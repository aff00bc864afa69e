//! IncrementalAlterConfigs and AlterConfigs: each resource is changed whole or not at all.

use std::collections::BTreeMap;

use super::bootstrap::{ELR_FEATURE, MIN_ISR};
use super::create_topics::CONFIG_VALUE_BYTES_MAX;
use super::error::{ConfigFault, Refusal, RequestFault, TooLarge};
use super::machine::{Cx, Plan};
use super::names;
use super::request::{AlterConfigs, ConfigEdit, ConfigEdits, ConfigResult, ReplaceConfigs};
use super::world::Proposed;
use crate::common::BrokerId;
use crate::metadata::{ConfigKind, ConfigResource, Configs, Image};
use crate::protocol::records::metadata::{ConfigRecord, MetadataRecord};

/// What happens to one key. The wire's numbers are Kafka's `AlterConfigOp.OpType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Set,
    Delete,
    Append,
    Subtract,
}

impl Operation {
    fn of(number: i8) -> Option<Self> {
        Some(match number {
            0 => Self::Set,
            1 => Self::Delete,
            2 => Self::Append,
            3 => Self::Subtract,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Set => "SET",
            Self::Delete => "DELETE",
            Self::Append => "APPEND",
            Self::Subtract => "SUBTRACT",
        }
    }
}

pub(super) fn plan(image: &Image, ask: &AlterConfigs, cx: &Cx<'_>) -> Plan<Vec<ConfigResult>> {
    let judge = |resource: &ConfigEdits| edits(image, resource, ask.at, cx);
    let key = |resource: &ConfigEdits| (resource.kind, resource.name.clone());
    plan_each(&ask.resources, key, judge, ask.validate_only, cx)
}

pub(super) fn plan_replace(
    image: &Image,
    ask: &ReplaceConfigs,
    cx: &Cx<'_>,
) -> Plan<Vec<ConfigResult>> {
    let edits_of = |resource: &super::request::NewConfigs| ConfigEdits {
        kind: resource.kind,
        name: resource.name.clone(),
        edits: resource
            .configs
            .iter()
            .map(|(key, value)| ConfigEdit { key: key.clone(), operation: 0, value: value.clone() })
            .collect(),
    };
    let resources: Vec<_> = ask.resources.iter().map(edits_of).collect();
    let judge = |resource: &ConfigEdits| replacement(image, resource, ask.at, cx);
    let key = |resource: &ConfigEdits| (resource.kind, resource.name.clone());
    plan_each(&resources, key, judge, ask.validate_only, cx)
}

fn plan_each(
    resources: &[ConfigEdits],
    key: impl Fn(&ConfigEdits) -> (i8, String),
    judge: impl Fn(&ConfigEdits) -> Result<Vec<MetadataRecord>, Refusal>,
    validate_only: bool,
    cx: &Cx<'_>,
) -> Plan<Vec<ConfigResult>> {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for resource in resources {
        *counts.entry(key(resource)).or_default() += 1;
    }
    let result = |resource: &ConfigEdits, outcome| ConfigResult {
        kind: resource.kind,
        name: resource.name.clone(),
        outcome,
    };
    let mut plan = Plan::of(Vec::with_capacity(resources.len()));
    for resource in resources {
        let outcome = if counts[&key(resource)] > 1 {
            Err(RequestFault::DuplicateResource.into())
        } else {
            judge(resource).map(|records| plan.records.extend(records))
        };
        plan.answer.push(result(resource, outcome));
    }
    if !plan.fits(cx) {
        let refused = |resource| result(resource, Err(TooLarge::Batch.into()));
        return Plan::of(resources.iter().map(refused).collect());
    }
    if validate_only {
        plan.records.clear();
    }
    plan
}

fn edits(
    image: &Image,
    ask: &ConfigEdits,
    at: BrokerId,
    cx: &Cx<'_>,
) -> Result<Vec<MetadataRecord>, Refusal> {
    let operations = operations(ask)?;
    let resource = resource(ask, &operations, at)?;
    let own = image.configs(&resource).map(|own| (**own).clone()).unwrap_or_default();
    let mut change = Change { own: own.clone(), ..Change::default() };
    for (edit, operation) in ask.edits.iter().zip(operations) {
        change.apply(&resource, edit, operation, cx)?;
    }
    change.into_records(image, &resource, &own, cx)
}

fn replacement(
    image: &Image,
    ask: &ConfigEdits,
    at: BrokerId,
    cx: &Cx<'_>,
) -> Result<Vec<MetadataRecord>, Refusal> {
    let operations = operations(ask)?;
    if ask.kind == ConfigKind::BrokerLogger as i8 {
        return Err(RequestFault::UnknownResource(ask.kind).into());
    }
    let resource = resource(ask, &operations, at)?;
    let own = image.configs(&resource).map(|own| (**own).clone()).unwrap_or_default();
    let mut change = Change::default();
    for edit in &ask.edits {
        change.apply(&resource, edit, Operation::Set, cx)?;
    }
    let gone = own.keys().filter(|key| !change.own.contains_key(*key)).cloned();
    change.deleted = gone.collect();
    change.into_records(image, &resource, &own, cx)
}

/// What makes no sense whatever the resource is: unknown operations, a key twice, null values.
fn operations(ask: &ConfigEdits) -> Result<Vec<Operation>, RequestFault> {
    let mut operations = Vec::with_capacity(ask.edits.len());
    for (at, edit) in ask.edits.iter().enumerate() {
        if ask.edits[..at].iter().any(|before| before.key == edit.key) {
            return Err(RequestFault::DuplicateKey);
        }
        let operation = Operation::of(edit.operation);
        operations.push(operation.ok_or(RequestFault::UnknownOperation(edit.operation))?);
    }
    let is_null = |(edit, operation): &(&ConfigEdit, &Operation)| {
        edit.value.is_none() && **operation != Operation::Delete
    };
    let nulls = ask.edits.iter().zip(&operations).filter(is_null);
    let nulls: Vec<_> = nulls.map(|(edit, _)| edit.key.as_str()).collect();
    match nulls.is_empty() {
        true => Ok(operations),
        false => Err(RequestFault::NullValue(nulls.join(", "))),
    }
}

/// The resource named, where that name can be altered at all.
fn resource(
    ask: &ConfigEdits,
    operations: &[Operation],
    at: BrokerId,
) -> Result<ConfigResource, Refusal> {
    let name = ask.name.as_str();
    let kind = ConfigKind::from_number(ask.kind).ok_or(RequestFault::UnknownResource(ask.kind))?;
    let number = || {
        let number = name.parse::<i32>();
        number.map_err(|_| RequestFault::NodeIdNotANumber(name.to_owned()))
    };
    match kind {
        ConfigKind::Broker if !name.is_empty() => match number()? {
            received if received == at.0 => Ok(ConfigResource::broker(at)),
            received => Err(RequestFault::OtherBroker { expected: at, received }.into()),
        },
        ConfigKind::BrokerLogger => match number()? {
            received if received == at.0 => Err(logger_refusal(ask, operations)),
            received => Err(RequestFault::OtherNode { expected: at, received }.into()),
        },
        ConfigKind::ClientMetrics if name.is_empty() => Err(RequestFault::EmptySubscription.into()),
        ConfigKind::Group if name.is_empty() => Err(RequestFault::DefaultResource("group").into()),
        ConfigKind::Topic | ConfigKind::Broker | ConfigKind::ClientMetrics | ConfigKind::Group => {
            Ok(ConfigResource { kind, name: name.into() })
        }
    }
}

/// Ottla has no loggers of Kafka's names, so that every edit of one is refused.
fn logger_refusal(ask: &ConfigEdits, operations: &[Operation]) -> Refusal {
    match (ask.edits.first(), operations.first()) {
        (_, Some(operation @ (Operation::Append | Operation::Subtract))) => {
            RequestFault::LoggerOperation(operation.name()).into()
        }
        (Some(edit), _) => ConfigFault::NoLogger(edit.key.clone()).into(),
        (None, _) => RequestFault::UnknownResource(ask.kind).into(),
    }
}

/// A resource's settings while the edits are applied.
#[derive(Default)]
struct Change {
    own: Configs,
    set: Vec<String>,
    deleted: Vec<String>,
}

impl Change {
    fn apply(
        &mut self,
        resource: &ConfigResource,
        edit: &ConfigEdit,
        operation: Operation,
        cx: &Cx<'_>,
    ) -> Result<(), Refusal> {
        let key = edit.key.clone();
        let Some(given) = edit.value.as_deref().filter(|_| operation != Operation::Delete) else {
            self.own.remove(&key);
            self.deleted.push(key);
            return Ok(());
        };
        let value = match operation {
            Operation::Set | Operation::Delete => given.to_owned(),
            Operation::Append | Operation::Subtract => {
                let default = cx.world.rules.list_default(resource.kind, &key);
                let default = default.ok_or_else(|| not_a_list(resource, edit, operation))?;
                let now = self.own.get(&key).unwrap_or(&default);
                edited(now, given, operation)
            }
        };
        if value.len() > CONFIG_VALUE_BYTES_MAX {
            return Err(ConfigFault::TooLong.into());
        }
        self.own.insert(key.clone(), value);
        self.set.push(key);
        Ok(())
    }

    /// The last checks, and a record per key whose value differs from `before`.
    fn into_records(
        self,
        image: &Image,
        resource: &ConfigResource,
        before: &Configs,
        cx: &Cx<'_>,
    ) -> Result<Vec<MetadataRecord>, Refusal> {
        if resource.kind == ConfigKind::Topic {
            if resource.name.is_empty() {
                return Err(RequestFault::DefaultResource("topic").into());
            }
            names::check(&resource.name)?;
        }
        let proposed =
            Proposed { settings: &self.own, set: &self.set, deleted: &self.deleted, image };
        cx.world.rules.check(resource, &proposed)?;
        self.check_min_isr(image, resource)?;
        if resource.kind == ConfigKind::Topic && image.topic(&resource.name).is_none() {
            return Err(Refusal::NoTopicToConfigure(resource.name.clone()));
        }
        let keys = self.set.iter().chain(&self.deleted);
        let changed = keys.filter(|key| self.own.get(*key) != before.get(*key));
        let record = |key: &String| {
            MetadataRecord::from(ConfigRecord {
                resource_type: resource.kind as i8,
                resource_name: resource.name.clone(),
                name: key.as_str().into(),
                value: self.own.get(key).map(|value| value.as_str().into()),
            })
        };
        Ok(changed.map(record).collect())
    }

    /// While eligible leader replicas count, all brokers must agree on min.insync.replicas.
    fn check_min_isr(&self, image: &Image, resource: &ConfigResource) -> Result<(), ConfigFault> {
        let names = |keys: &[String]| keys.iter().any(|key| key == MIN_ISR);
        if resource.kind != ConfigKind::Broker || image.feature(ELR_FEATURE) == 0 {
            return Ok(());
        }
        match resource.name.is_empty() {
            false if names(&self.set) || names(&self.deleted) => {
                Err(ConfigFault::MinIsrOfOneBroker)
            }
            true if names(&self.deleted) => Err(ConfigFault::MinIsrRemoved),
            _ => Ok(()),
        }
    }
}

fn not_a_list(resource: &ConfigResource, edit: &ConfigEdit, operation: Operation) -> ConfigFault {
    let (key, name) = (edit.key.clone(), operation.name());
    match (resource.kind, operation) {
        (ConfigKind::Broker, Operation::Append) => {
            ConfigFault::NotABrokerList { operation: "append", key }
        }
        (ConfigKind::Broker, _) => ConfigFault::NotABrokerList { operation: "subtract", key },
        _ => ConfigFault::NotAList { operation: name, key },
    }
}

/// The list `now` with the entries of `given` added where missing, or taken away. Entries are
/// compared as written, spaces included, and trailing empty ones are lost, as in Kafka.
fn edited(now: &str, given: &str, operation: Operation) -> String {
    let mut entries = if now.is_empty() { Vec::new() } else { split(now) };
    for entry in split(given) {
        match operation {
            Operation::Subtract => entries.retain(|it| *it != entry),
            _ if entries.contains(&entry) => {}
            _ => entries.push(entry),
        }
    }
    entries.join(",")
}

/// Java's `String.split(",")`.
fn split(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return vec![""];
    }
    let mut entries: Vec<_> = text.split(',').collect();
    while entries.last().is_some_and(|entry| entry.is_empty()) {
        entries.pop();
    }
    entries
}
