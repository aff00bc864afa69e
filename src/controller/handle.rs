//! The in-process client of the controller: an answer is given when this broker's image shows
//! what it tells of, so that what was just created can be used.

use std::convert::Infallible;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::machine::Controller;
use super::request::*;
use super::world::World;
use crate::env::Env;
use crate::machine::{AskError, Journal, Runtime};
use crate::metadata::{Image, Publisher};

/// Cloning shares it.
#[derive(Clone)]
pub struct Handle {
    runtime: Arc<Runtime<Controller>>,
    publisher: Arc<Publisher>,
}

/// A request with the type of its answer.
pub trait Ask: Into<Request> {
    type Answer;
    /// `None` for the answer to another request.
    fn answer(answer: Answer) -> Option<Self::Answer>;
}

macro_rules! asks {
    ($($request:ident => $answer:ident($type:ty);)+) => {$(
        impl From<$request> for Request {
            fn from(request: $request) -> Self {
                Self::$request(request)
            }
        }

        impl Ask for $request {
            type Answer = $type;
            fn answer(answer: Answer) -> Option<$type> {
                match answer {
                    Answer::$answer(answer) => Some(answer),
                    _ => None,
                }
            }
        }
    )+};
}

asks! {
    CreateTopics        => CreateTopics(Vec<CreateTopicResult>);
    DeleteTopics        => DeleteTopics(Vec<DeleteTopicResult>);
    CreatePartitions    => CreatePartitions(Vec<TopicResult>);
    AlterConfigs        => AlterConfigs(Vec<ConfigResult>);
    ReplaceConfigs      => AlterConfigs(Vec<ConfigResult>);
    RegisterBroker      => RegisterBroker(Result<Registered, super::Refusal>);
    Heartbeat           => Heartbeat(Result<BrokerState, super::Refusal>);
    UnregisterBroker    => UnregisterBroker(Result<(), super::Refusal>);
    AllocateProducerIds => AllocateProducerIds(Result<ProducerIdBlock, super::Refusal>);
    AssignDirectories   => AssignDirectories(Result<usize, super::Refusal>);
    FailDirectories     => FailDirectories(Result<bool, super::Refusal>);
    UpdateFeatures      => UpdateFeatures(Result<(), super::Refusal>);
}

/// The controller's runtime over the metadata log; each time this node comes to lead, it starts
/// from the committed image. To be run ([`Runtime::run`]) on the control runtime.
pub fn runtime(
    journal: Arc<dyn Journal>,
    publisher: Arc<Publisher>,
    env: Env,
    world: Arc<ArcSwap<World>>,
) -> Runtime<Controller> {
    let origin = move || {
        let image = publisher.image();
        let end_offset = image.end_offset;
        (Controller::new(Image::clone(&image)), end_offset)
    };
    let no_effects = Box::new(|effect: Infallible, _| match effect {});
    Runtime::starting_from(Box::new(origin), journal, env, world, no_effects)
}

impl Handle {
    pub fn new(runtime: Arc<Runtime<Controller>>, publisher: Arc<Publisher>) -> Self {
        Self { runtime, publisher }
    }

    /// Decides at once; resolves when the answer is committed and this broker has applied it.
    /// Dropping the future gives up the answer, not the change.
    ///
    /// # Errors
    /// [`AskError`]: all can be tried again; after [`AskError::Lost`] the change may have
    /// happened.
    pub async fn ask<Q: Ask>(&self, request: Q) -> Result<Q::Answer, AskError> {
        let (answer, end_offset) = self.runtime.ask(request.into()).await?;
        let mut applied = self.publisher.applied();
        let reached = applied.wait_for(|offset| *offset >= end_offset).await;
        reached.map_err(|_| AskError::Lost)?;
        match Q::answer(answer) {
            Some(answer) => Ok(answer),
            None => crate::common::broken_invariant(
                concat!(file!(), ":", line!()),
                "a decision answers its own request",
                std::any::type_name::<Q>(),
            ),
        }
    }

    /// What this broker sees now.
    pub fn image(&self) -> Arc<Image> {
        self.publisher.image()
    }
}
