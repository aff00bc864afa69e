//! The controller as a [`Machine`]: which rule answers which request.

use std::convert::Infallible;

use super::bootstrap::batch_of;
use super::request::{Answer, Request};
use super::world::World;
use super::{
    alter_configs, assign_directories, brokers, create_partitions, create_topics, delete_topics,
    fail_directories, producer_ids, update_features,
};
use crate::env::Instant;
use crate::machine::{Context, Decision, Entry, Machine, Position};
use crate::metadata::Image;
use crate::protocol::records::metadata::MetadataRecord;

pub use super::brokers::Soft;

/// The replicated state: the image, as appended (which may be ahead of what is committed).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Controller {
    image: Image,
}

impl Controller {
    /// Goes on from `image`; the next record replayed is the one at its end offset.
    pub fn new(image: Image) -> Self {
        Self { image }
    }

    pub fn image(&self) -> &Image {
        &self.image
    }
}

pub(super) type Cx<'a> = Context<'a, World>;

/// What a request comes to: one atomic batch and an answer.
#[derive(Debug)]
pub(super) struct Plan<A> {
    pub records: Vec<MetadataRecord>,
    pub answer: A,
}

impl<A> Plan<A> {
    /// An answer without records.
    pub fn of(answer: A) -> Self {
        Self { records: Vec::new(), answer }
    }

    /// Whether the records go into one batch of the journal.
    pub fn fits(&self, cx: &Cx<'_>) -> bool {
        if self.records.len() > Decision::<Controller>::RECORDS_MAX {
            return false;
        }
        let batch = batch_of(&self.records, cx.now_ms);
        batch.size_bytes() <= cx.batch_bytes_max
    }

    fn into_decision(self, cx: &Cx<'_>, wrap: impl FnOnce(A) -> Answer) -> Decision<Controller> {
        Decision::done(self.records, cx.ticket, wrap(self.answer))
    }
}

impl Machine for Controller {
    type World = World;
    type Request = Request;
    type Answer = Answer;
    type Record = MetadataRecord;
    type Effect = Infallible;
    type Soft = Soft;

    fn elected(&self, cx: &Cx<'_>) -> (Soft, Decision<Self>) {
        (Soft::new(&self.image, cx), Decision::default())
    }

    fn decide(&self, soft: &mut Soft, request: Request, cx: &Cx<'_>) -> Decision<Self> {
        let image = &self.image;
        match request {
            Request::CreateTopics(ask) => {
                create_topics::plan(image, &ask, cx).into_decision(cx, Answer::CreateTopics)
            }
            Request::DeleteTopics(ask) => {
                delete_topics::plan(image, &ask, cx).into_decision(cx, Answer::DeleteTopics)
            }
            Request::CreatePartitions(ask) => {
                create_partitions::plan(image, &ask, cx).into_decision(cx, Answer::CreatePartitions)
            }
            Request::AlterConfigs(ask) => {
                alter_configs::plan(image, &ask, cx).into_decision(cx, Answer::AlterConfigs)
            }
            Request::ReplaceConfigs(ask) => {
                alter_configs::plan_replace(image, &ask, cx).into_decision(cx, Answer::AlterConfigs)
            }
            Request::RegisterBroker(ask) => {
                brokers::register(image, soft, &ask, cx).into_decision(cx, Answer::RegisterBroker)
            }
            Request::Heartbeat(ask) => {
                brokers::heartbeat(image, soft, &ask, cx).into_decision(cx, Answer::Heartbeat)
            }
            Request::UnregisterBroker(ask) => brokers::unregister(image, soft, &ask, cx)
                .into_decision(cx, Answer::UnregisterBroker),
            Request::AllocateProducerIds(ask) => {
                producer_ids::allocate(image, &ask).into_decision(cx, Answer::AllocateProducerIds)
            }
            Request::AssignDirectories(ask) => assign_directories::plan(image, &ask, cx)
                .into_decision(cx, Answer::AssignDirectories),
            Request::FailDirectories(ask) => {
                fail_directories::plan(image, &ask, cx).into_decision(cx, Answer::FailDirectories)
            }
            Request::UpdateFeatures(ask) => {
                update_features::plan(image, &ask, cx).into_decision(cx, Answer::UpdateFeatures)
            }
            Request::FenceSilent(id) => {
                brokers::fence_silent(image, soft, id, cx).into_decision(cx, |()| Answer::Fenced)
            }
        }
    }

    fn replay(&mut self, entry: Entry<&MetadataRecord>, at: Position) {
        self.image.apply(entry.plain(), at);
    }

    fn due(&self, soft: &mut Soft, cx: &Cx<'_>) -> Vec<Request> {
        soft.silent(&self.image, cx.now).into_iter().map(Request::FenceSilent).collect()
    }

    fn next_due(&self, soft: &Soft) -> Option<Instant> {
        soft.next_due()
    }
}
