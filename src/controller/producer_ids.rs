//! Producer ids: blocks handed out by the controller, single ids taken from a block by a broker.

use std::ops::Range;

use super::brokers::check_epoch;
use super::error::{BrokerFault, Refusal};
use super::handle::Handle;
use super::machine::Plan;
use super::request::{AllocateProducerIds, ProducerIdBlock};
use crate::common::{BrokerId, ProducerId};
use crate::machine::AskError;
use crate::metadata::Image;
use crate::protocol::records::metadata::ProducerIdsRecord;

/// Ids per block, as in Kafka.
const BLOCK_IDS: i32 = 1_000;

pub(super) fn allocate(
    image: &Image,
    ask: &AllocateProducerIds,
) -> Plan<Result<ProducerIdBlock, Refusal>> {
    if let Err(why) = check_epoch(image, ask.broker, ask.broker_epoch) {
        return Plan::of(Err(why.into()));
    }
    let first = image.next_producer_id();
    let Some(next) = first.checked_add(BLOCK_IDS.into()) else {
        return Plan::of(Err(BrokerFault::ProducerIdsExhausted.into()));
    };
    let record = ProducerIdsRecord {
        broker_id: ask.broker.0,
        broker_epoch: ask.broker_epoch,
        next_producer_id: next,
    };
    let block = ProducerIdBlock { first: ProducerId(first), count: BLOCK_IDS };
    Plan { records: vec![record.into()], answer: Ok(block) }
}

/// Why a broker has no producer id to give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProducerIdsError {
    /// The controller cannot be asked now; the client may try again.
    #[error("a block of producer ids: {0}")]
    NotNow(#[from] AskError),
    /// The controller said no: this broker must register (again) first, or no ids are left.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Gives out this broker's producer ids, each once; asks the controller for a block when none is
/// left. What is left of a block at the end of the process is never given out.
pub struct ProducerIds {
    handle: Handle,
    broker: BrokerId,
    block: tokio::sync::Mutex<Range<i64>>,
}

impl ProducerIds {
    pub fn new(handle: Handle, broker: BrokerId) -> Self {
        Self { handle, broker, block: tokio::sync::Mutex::new(0..0) }
    }

    /// # Errors
    /// [`ProducerIdsError`]; nothing was given out.
    pub async fn next(&self) -> Result<ProducerId, ProducerIdsError> {
        let mut block = self.block.lock().await;
        if block.is_empty() {
            let registered = self.handle.image().broker(self.broker).map(|broker| broker.epoch);
            let ask = AllocateProducerIds {
                broker: self.broker,
                broker_epoch: registered
                    .ok_or(Refusal::from(BrokerFault::NotRegistered(self.broker)))?,
            };
            let fresh = self.handle.ask(ask).await??;
            *block = fresh.first.0..fresh.first.0 + i64::from(fresh.count);
        }
        let id = block.start;
        block.start += 1;
        Ok(ProducerId(id))
    }
}
