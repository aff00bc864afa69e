//! The accept loop of one listener, and the count of its connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::connection::{Connection, Shared};
use super::events::{AcceptFailed, ConnectionAccepted, ConnectionRefused};
use super::limits::ConnectionLimits;
use super::{ListenerInfo, Service};
use crate::env::{Env, Listener};
use crate::telemetry::Event as _;

/// Pause after a failed accept (`EMFILE` passes when a connection ends).
const ACCEPT_RETRY: Duration = Duration::from_millis(20);

/// Tells connections to end, and tells when they have.
#[derive(Clone)]
pub struct Stop {
    phase: watch::Sender<bool>,
    open: watch::Sender<usize>,
}

impl Default for Stop {
    fn default() -> Self {
        Self { phase: watch::Sender::new(false), open: watch::Sender::new(0) }
    }
}

impl Stop {
    /// Nothing new is accepted or started; Produces in flight still get their answers.
    pub fn begin(&self) {
        self.phase.send_replace(true);
    }

    /// Ends when [`Stop::begin`] was called.
    pub async fn begun(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.phase.subscribe().wait_for(|begun| *begun).await;
    }

    /// Ends when no connection is open.
    pub async fn drained(&self) {
        let _ = self.open.subscribe().wait_for(|open| *open == 0).await;
    }

    pub fn connections(&self) -> usize {
        *self.open.borrow()
    }

    fn enter(&self) -> OpenConnection {
        self.open.send_modify(|open| *open += 1);
        OpenConnection(self.open.clone())
    }
}

struct OpenConnection(watch::Sender<usize>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Accepts until `stop` begins. Connections of a controller listener run on the control runtime.
pub async fn serve<S: Service>(
    listener: Listener,
    info: Arc<ListenerInfo>,
    service: Arc<S>,
    shared: Arc<Shared>,
    limits: Arc<ConnectionLimits>,
) {
    let begun = shared.stop.clone();
    let mut begun = std::pin::pin!(begun.begun());
    loop {
        let accepted = async {
            let permit = limits.permit().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            biased;
            () = &mut begun => return,
            accepted = accepted => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                let (listener, limits) = (&info.name, &shared.warn_limits);
                let now = shared.env.clock.now();
                AcceptFailed { listener, error: &error, limits, now }.tell(&shared.metrics);
                shared.env.clock.sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        let Some(place) = limits.enter(peer.ip(), permit) else {
            let (listener, limits) = (&info.name, &shared.warn_limits);
            let now = shared.env.clock.now();
            ConnectionRefused { listener, peer, limits, now }.tell(&shared.metrics);
            continue;
        };
        ConnectionAccepted { listener: &info.name, peer }.tell(&shared.metrics);
        let connection =
            Connection::new(stream, peer, info.clone(), service.clone(), shared.clone());
        let open = shared.stop.enter();
        spawn(&shared.env, info.is_controller, async move {
            connection.run().await;
            drop((place, open));
        });
    }
}

fn spawn(env: &Env, control: bool, work: impl Future<Output = ()> + Send + 'static) {
    if control {
        env.tasks.spawn_control(work);
    } else {
        env.tasks.spawn_data(work);
    }
}
