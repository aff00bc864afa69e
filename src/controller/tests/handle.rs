//! The handle over a real runtime, with a journal in memory.

use arc_swap::ArcSwap;

use super::*;
use crate::machine::testing::{MemoryJournal, on_virtual_time, simulated_env};
use crate::machine::{AskError, CommitSink, Journal, Runtime};
use crate::metadata::Publisher;

struct Node {
    journal: Arc<MemoryJournal>,
    publisher: Arc<Publisher>,
    runtime: Arc<Runtime<Controller>>,
    handle: Handle,
}

async fn node() -> Node {
    let env = simulated_env(1);
    let (journal, publisher) = (MemoryJournal::new(), Arc::new(Publisher::new()));
    let world = World { session_timeout: None, ..world() };
    let world = Arc::new(ArcSwap::from_pointee(world));
    let runtime = Arc::new(runtime(journal.clone(), publisher.clone(), env.clone(), world));
    env.tasks.spawn_control(runtime.run());
    runtime.until_leading().await.unwrap();
    let handle = Handle::new(runtime.clone(), publisher.clone());
    Node { journal, publisher, runtime, handle }
}

impl Node {
    /// What the quorum does with the committed entries.
    fn publish(&self) {
        let end = *self.journal.committed().borrow();
        let entries = self.journal.read(self.publisher.image().end_offset, usize::MAX).unwrap();
        let committed: Vec<_> = entries.into_iter().filter(|it| it.position.0 < end).collect();
        self.publisher.committed(&committed);
    }

    async fn register(&self) {
        let registered =
            tokio::join!(self.handle.ask(registration(1, 1)), async { self.publish() });
        registered.0.unwrap().unwrap();
    }

    fn create(&self, name: &str) -> CreateTopics {
        CreateTopics { topics: vec![NewTopic::named(name)], validate_only: false }
    }
}

#[test]
fn an_answer_waits_until_this_brokers_image_shows_it() {
    on_virtual_time(async {
        let node = node().await;
        node.register().await;
        let mut asked = Box::pin(node.handle.ask(node.create("t")));
        tokio::select! {
            biased;
            _ = &mut asked => panic!("answered before it was applied"),
            () = tokio::task::yield_now() => {}
        }
        assert!(node.handle.image().topic("t").is_none(), "committed, but not applied here");
        node.publish();
        let made = asked.await.unwrap();
        assert!(made[0].outcome.is_ok());
        assert!(node.handle.image().topic("t").is_some());
        // A refusal tells of the same state, and a check writes nothing.
        let again = node.handle.ask(node.create("t")).await.unwrap();
        assert_eq!(told(&again[0].outcome).0, 36);
    });
}

#[test]
fn a_new_leadership_starts_from_the_committed_image() {
    on_virtual_time(async {
        let node = node().await;
        node.register().await;
        node.journal.hold_commits();
        let mut lost = Box::pin(node.handle.ask(node.create("lost")));
        tokio::select! {
            biased;
            _ = &mut lost => panic!("answered before it was committed"),
            () = tokio::task::yield_now() => {}
        }
        node.journal.truncate_to(1);
        node.journal.lead(2);
        assert_eq!(lost.await, Err(AskError::Lost));
        let mut state = node.runtime.state();
        let leads = |state: &crate::machine::RuntimeState| {
            *state == crate::machine::RuntimeState::Leading { epoch: 2 }
        };
        state.wait_for(leads).await.unwrap();
        let check = CreateTopics { validate_only: true, ..node.create("lost") };
        let made = node.handle.ask(check).await.unwrap();
        assert!(made[0].outcome.is_ok(), "{made:?}");
    });
}

#[test]
fn producer_ids_are_given_out_once() {
    on_virtual_time(async {
        let node = node().await;
        let ids = ProducerIds::new(node.handle.clone(), BrokerId(1));
        assert!(matches!(ids.next().await, Err(ProducerIdsError::Refused(_))), "not registered");
        node.register().await;
        let mut given = Vec::new();
        for _ in 0..1_001 {
            let (id, ()) = tokio::join!(ids.next(), async { node.publish() });
            given.push(id.unwrap().0);
        }
        assert_eq!(given, (0..1_001).collect::<Vec<_>>());
        assert_eq!(node.handle.image().next_producer_id(), 2_000);
        let other = ProducerIds::new(node.handle.clone(), BrokerId(1));
        let (id, ()) = tokio::join!(other.next(), async { node.publish() });
        assert_eq!(id.unwrap().0, 2_000, "the rest of a block is lost with its process");
    });
}
