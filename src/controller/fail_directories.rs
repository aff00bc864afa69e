//! Log directories of a broker that have failed while it runs (KIP-858).

use uuid::Uuid;

use super::brokers::{CHANGES_MAX, check_epoch};
use super::election::Election;
use super::error::Refusal;
use super::machine::{Cx, Plan};
use super::request::FailDirectories;
use crate::metadata::Image;
use crate::protocol::records::metadata::{BrokerRegistrationChangeRecord, MetadataRecord};

/// The broker is registered without them, and its replicas there lead no more. A broker that is left
/// without any stops by itself.
pub(super) fn plan(
    image: &Image,
    ask: &FailDirectories,
    cx: &Cx<'_>,
) -> Plan<Result<bool, Refusal>> {
    if let Err(why) = check_epoch(image, ask.broker, ask.broker_epoch) {
        return Plan::of(Err(why.into()));
    }
    let registered = image.broker(ask.broker).map_or(&[] as &[Uuid], |broker| &broker.log_dirs);
    let left: Vec<Uuid> =
        registered.iter().filter(|dir| !ask.failed.contains(dir)).copied().collect();
    let mut records = Vec::new();
    if left.is_empty() {
        return Plan { records, answer: Ok(true) };
    }
    if left.len() < registered.len() {
        let change = BrokerRegistrationChangeRecord {
            broker_id: ask.broker.0,
            broker_epoch: ask.broker_epoch,
            log_dirs: left,
            ..BrokerRegistrationChangeRecord::default()
        };
        records.push(MetadataRecord::from(change));
    }
    let election = Election { image, rules: &*cx.world.rules };
    let mut changes = election.loses(ask.broker, &ask.failed).map(MetadataRecord::from);
    records.extend(changes.by_ref().take(CHANGES_MAX));
    Plan { records, answer: Ok(changes.next().is_none()) }
}
