//! The whole life of the process: arguments, two runtimes, a node, a signal, an orderly end.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use ottla::cli::{self, Command, Failure, Run, Surroundings};
use ottla::env::{Clock, Env, Files, Net, Random, Tasks};
use ottla::node::Node;
use ottla::telemetry::init_logging;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// How long connections may take to finish what they have started.
const GRACE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let around = Surroundings::of_process(Files::Real, &Random::Os);
    let done = match cli::parse(std::env::args_os(), &around) {
        Ok(Command::Run(run)) => with_runtimes(*run),
        Ok(Command::Healthcheck { bootstrap }) => healthcheck(&bootstrap),
        Ok(Command::Show(text)) => {
            print!("{text}");
            Ok(())
        }
        Err(failure) => Err(failure),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code)
        }
    }
}

/// Clients are served by the data runtime; quorum, controller and this function run on the
/// control runtime, the main thread.
fn with_runtimes(run: Run) -> Result<(), Failure> {
    init_logging(&run.config.ottla.log_filter)
        .map_err(|error| Failure::wrong_use(error).at("ottla.log.filter"))?;
    std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "panic")));
    let data = Builder::new_multi_thread().thread_name("ottla-data").enable_all().build();
    let data = data.map_err(no_runtime)?;
    let control = Builder::new_current_thread().enable_all().build().map_err(no_runtime)?;
    let tasks = Tasks::new(data.handle().clone(), control.handle().clone());
    let outcome = control.block_on(live(run, tasks));
    data.shutdown_background();
    outcome
}

async fn live(run: Run, tasks: Tasks) -> Result<(), Failure> {
    let backlog = run.config.network.socket_listen_backlog_size.max(1) as u32;
    let net = Net::Real { backlog };
    let (clock, random, files) = (Clock::real(), Random::Os, Files::Real);
    let env = Env { clock, random, files, net, tasks };
    let mut terminate = signal(SignalKind::terminate()).map_err(no_signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signal)?;
    run.notices.tell();
    let node = Node::start(run, env).await.map_err(|error| error.into_failure())?;
    node.tell_running();
    let mut stdout = std::io::stdout();
    // Nobody may be reading: that is no reason not to serve.
    let _ = writeln!(stdout, "{}", node.ready_line()).and_then(|()| stdout.flush());
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    node.shut_down(GRACE).await.map_err(|error| error.into_failure())
}

fn healthcheck(bootstrap: &str) -> Result<(), Failure> {
    let runtime: Runtime =
        Builder::new_current_thread().enable_all().build().map_err(no_runtime)?;
    runtime.block_on(async {
        let (clock, random, files) = (Clock::real(), Random::Os, Files::Real);
        let env = Env { clock, random, files, net: Net::default(), tasks: Tasks::current() };
        let answer = cli::healthcheck(&env, bootstrap).await?;
        println!("{answer}");
        Ok(())
    })
}

fn no_runtime(error: std::io::Error) -> Failure {
    Failure::failed(format!("cannot start the runtime: {error}"))
}

fn no_signal(error: std::io::Error) -> Failure {
    Failure::failed(format!("cannot watch for signals: {error}"))
}
