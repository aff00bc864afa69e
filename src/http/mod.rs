//! The operator's door: `/health` and `/metrics` over HTTP.
//! Lives here: paths, their answers, the server's life. May not live here: Kafka frames, what
//! health means (the caller says it), what is measured.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::env::{Env, Listener, Stream};
use crate::telemetry::Metrics;

/// How the node is, as `/health` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// 200 if so, 503 if not.
    pub is_ready: bool,
    /// A word for people: `starting`, `running`, `draining`.
    pub phase: &'static str,
}

/// Asks the node how it is; called for each request, so it must not wait.
pub type Probe = Arc<dyn Fn() -> Health + Send + Sync>;

#[derive(Clone)]
struct Shared {
    metrics: Arc<Metrics>,
    probe: Probe,
}

/// A running HTTP server.
pub struct Server {
    stop: oneshot::Sender<Infallible>,
    task: JoinHandle<()>,
    env: Env,
}

/// Waiting after an accept that failed for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves on the control runtime until [`Server::close`].
pub fn serve(listener: Listener, env: &Env, metrics: Arc<Metrics>, probe: Probe) -> Server {
    let (stop, stopped) = oneshot::channel::<Infallible>();
    let router = router(Shared { metrics, probe });
    let incoming = Incoming { listener, env: env.clone() };
    let task = env.tasks.spawn_control(async move {
        let until_dropped = async move {
            let _ = stopped.await;
        };
        let served = axum::serve(incoming, router).with_graceful_shutdown(until_dropped).await;
        if let Err(error) = served {
            tracing::error!(%error, "HTTP server ended");
        }
    });
    Server { stop, task, env: env.clone() }
}

impl Server {
    /// Takes no more connections, finishes answers for at most `grace`, then lets go.
    pub async fn close(mut self, grace: Duration) {
        drop(self.stop);
        let deadline = self.env.clock.deadline_in(grace);
        if self.env.clock.until(deadline, &mut self.task).await.is_none() {
            self.task.abort();
        }
    }
}

fn router(shared: Shared) -> Router {
    Router::new().route("/health", get(health)).route("/metrics", get(metrics)).with_state(shared)
}

async fn health(State(shared): State<Shared>) -> Response {
    let Health { is_ready, phase } = (shared.probe)();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = format!("{{\"ready\":{is_ready},\"phase\":\"{phase}\"}}\n");
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn metrics(State(shared): State<Shared>) -> Response {
    match shared.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
            .into_response(),
        Err(error) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("metrics: {error}\n")).into_response()
        }
    }
}

/// The door's listener in the shape that axum takes.
struct Incoming {
    listener: Listener,
    env: Env,
}

impl axum::serve::Listener for Incoming {
    type Io = Stream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Stream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::debug!(%error, "HTTP connection not accepted");
                    self.env.clock.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(health: Health) -> State<Shared> {
        State(Shared { metrics: Arc::default(), probe: Arc::new(move || health) })
    }

    async fn body(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn health_is_a_status_and_a_phase() {
        #[rustfmt::skip]
        let table = [
            (Health { is_ready: true,  phase: "running"  }, 200, "{\"ready\":true,\"phase\":\"running\"}\n"),
            (Health { is_ready: false, phase: "draining" }, 503, "{\"ready\":false,\"phase\":\"draining\"}\n"),
        ];
        for (state, status, text) in table {
            let response = health(shared(state)).await;
            assert_eq!(response.status().as_u16(), status, "{state:?}");
            assert_eq!(body(response).await, text);
        }
    }

    #[tokio::test]
    async fn metrics_are_in_prometheus_text_form() {
        let response = metrics(shared(Health { is_ready: true, phase: "running" })).await;
        let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
        assert!(body(response).await.contains("# TYPE kafka_server_kafkaserver_brokerstate gauge"));
    }
}
