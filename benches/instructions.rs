//! Instructions per request, guard to answer (`cargo bench --bench instructions`; needs valgrind).
//! A node in this process serves the same request many times; two runs of different length under
//! callgrind give the cost of one. The counts hardly depend on the machine, so they guard against
//! getting slower: `instructions.budget` is raised only with the reason in the same commit.

mod support;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use bytes::Bytes;
use ottla::broker::Dispatch;
use ottla::cli::{self, Surroundings};
use ottla::env::{Clock, Env, Files, Net, Random, Tasks};
use ottla::net::{Incoming, ListenerInfo, Progress, Reply, Service};
use ottla::node::Node;
use ottla::protocol::batch::Codec;
use ottla::security::Session;
use support::{TOPIC, admit, batch, fetch_frame, produce_frame};

const BUDGET: &str = include_str!("instructions.budget");
/// A count below the budget by more than this asks to lower it.
const SLACK_PERCENT: u64 = 5;
const FEW: u64 = 1_000;
const MANY: u64 = 3_000;

/// As many records of 100 bytes as a Java producer's batch of 16 KB holds.
const RECORDS: usize = 150;
const RECORD_BYTES: usize = 100;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let outcome = match words.iter().position(|word| word == "--case") {
        Some(at) => run_case(&words[at + 1..]),
        None => measure_all(),
    };
    outcome.unwrap_or_else(|why| {
        eprintln!("error: {why}");
        ExitCode::FAILURE
    })
}

/// Compares each case with its budget.
fn measure_all() -> Result<ExitCode, String> {
    let mut within = true;
    for line in BUDGET.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (case, budget) = line.split_once(' ').ok_or("a line of the budget is `case number`")?;
        let budget: u64 = budget.trim().parse().map_err(|error| format!("{case}: {error}"))?;
        let used = (count(case, MANY)? - count(case, FEW)?) / (MANY - FEW);
        let verdict = if used > budget {
            within = false;
            "OVER THE BUDGET"
        } else if used * 100 < budget * (100 - SLACK_PERCENT) {
            "the budget may be lowered"
        } else {
            "ok"
        };
        println!("{case:12} {used:>8} instructions, budget {budget:>8}: {verdict}");
    }
    Ok(if within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Instructions of this program when it serves `requests` of a case.
fn count(case: &str, requests: u64) -> Result<u64, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(own);
    command.args(["--case", case, &requests.to_string()]);
    let done = command.output().map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected : "));
    let count = collected.and_then(|(_, number)| number.trim().parse().ok());
    count.filter(|_| done.status.success()).ok_or_else(|| format!("{case} under valgrind: {said}"))
}

/// Serves one case as often as asked, in the process that is counted.
fn run_case(words: &[String]) -> Result<ExitCode, String> {
    let [case, requests] = words else { return Err("usage: --case NAME REQUESTS".to_owned()) };
    let requests: u64 = requests.parse().map_err(|error| format!("{requests}: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let node = start(&dir.path().display().to_string()).await?;
        let dispatch = node.dispatch();
        let full = produce_frame(&batch(RECORDS, RECORD_BYTES, Codec::NONE));
        let frame = match case.as_str() {
            "produce-16k" => full,
            "produce-1" => produce_frame(&batch(1, RECORD_BYTES, Codec::NONE)),
            "fetch-16k" => {
                serve(&dispatch, full.clone()).await?;
                fetch_frame(0, full.len() as i32)
            }
            other => return Err(format!("no case is called `{other}`")),
        };
        for _ in 0..requests {
            serve(&dispatch, frame.clone()).await?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn start(dir: &str) -> Result<Node, String> {
    let topic = format!("{TOPIC}:1");
    let words = ["ottla", "--data-dir", dir, "--port", "0", "--http-port", "-1", "--topic", &topic];
    let around =
        Surroundings { variables: Vec::new(), files: Files::Real, ephemeral_dir: String::new() };
    let parsed =
        cli::parse(words.map(Into::into), &around).map_err(|failure| failure.to_string())?;
    let cli::Command::Run(run) = parsed else { return Err("not asked to run".to_owned()) };
    let env = Env {
        clock: Clock::real(),
        random: Random::seeded(1),
        files: Files::Real,
        net: Net::default(),
        tasks: Tasks::current(),
    };
    Node::start(*run, env).await.map_err(|error| error.to_string())
}

/// One request from its frame to its answer's frame, which is the whole answer of a good one.
async fn serve(dispatch: &Dispatch, frame: Bytes) -> Result<(), String> {
    let (header, body) = admit(frame);
    let name: Arc<str> = "PLAINTEXT".into();
    let incoming = Incoming {
        header,
        body,
        version_known: true,
        peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
        listener: Arc::new(ListenerInfo { name: name.clone(), is_controller: false }),
        session: Session::anonymous(name),
    };
    match dispatch.call(incoming).await {
        Progress::Done(Reply::Frame { .. }) => Ok(()),
        _ => Err("the request was not answered at once".to_owned()),
    }
}
