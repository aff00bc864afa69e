//! Members of groups, each with a connection of its own, in one thread: `members PORT WHAT NUMBER...`
//! - `heartbeats GROUPS MEMBERS SECONDS`: classic groups of so many members, a heartbeat of each every 3 s.
//! - `rebalance MEMBERS TIMES`: one classic group, from its leader's JoinGroup to its last SyncGroup answer.
//! - `commits CONNECTIONS DEPTH SECONDS`: OffsetCommit of 10 partitions, so many in flight on each connection.
//! - `consumers MEMBERS PARTITIONS SECONDS`: one consumer group (KIP-848) until each has its own, then heartbeats.
//! - `empty GROUPS`: groups with one offset that never had a member. `left GROUPS`: one that had one.
//!
//! What is measured stands between a line `begin` and a line `end SECONDS COUNT`. After each of them the
//! program waits for a line, so that who started it can read what the broker has used by then.
//! May not live here: brokers, what a figure means (`benches/versus/groups.py`).

mod classic;
mod client;
mod commits;
mod consumer;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use client::{Outcome, said};
use ottla::env::{Clock, Instant};
use tokio::task::JoinSet;

/// The topic that members subscribe to and commit offsets of; it is there already.
const TOPIC: &str = "measured";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run(&words)),
        Err(error) => Err(said(error)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

async fn run(words: &[String]) -> Outcome<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [port, what, numbers @ ..] = &words[..] else {
        return Err("usage: members PORT WHAT NUMBER...".to_owned());
    };
    let port = port.parse().map_err(said)?;
    let numbers: Vec<usize> =
        numbers.iter().map(|word| word.parse()).collect::<Result<_, _>>().map_err(said)?;
    client::coordinator_is_there(port).await?;
    let seconds = |count: usize| Duration::from_secs(count as u64);
    match (*what, &numbers[..]) {
        ("heartbeats", [groups, members, time]) => {
            classic::heartbeats(port, *groups, *members, seconds(*time)).await
        }
        ("rebalance", [members, times]) => classic::rebalance(port, *members, *times).await,
        ("commits", [connections, depth, time]) => {
            commits::run(port, *connections, *depth, seconds(*time)).await
        }
        ("consumers", [members, partitions, time]) => {
            consumer::run(port, *members, *partitions, seconds(*time)).await
        }
        ("empty", [groups]) => commits::empty_groups(port, *groups).await,
        ("left", [groups]) => classic::left_groups(port, *groups).await,
        _ => Err(format!("unknown, or not as many numbers: {what}")),
    }
}

/// What is measured now.
struct Window {
    clock: Clock,
    began: Instant,
}

impl Window {
    fn begin() -> Outcome<Self> {
        tell("begin")?;
        let clock = Clock::real();
        Ok(Self { began: clock.now(), clock })
    }

    fn end(self, count: u64) -> Outcome<()> {
        let seconds = (self.clock.now() - self.began).as_secs_f64();
        tell(&format!("end {seconds:.6} {count}"))
    }
}

fn tell(line: &str) -> Outcome<()> {
    println!("{line}");
    std::io::stdout().flush().map_err(said)?;
    std::io::stdin().read_line(&mut String::new()).map_err(said)?;
    Ok(())
}

/// Does `work` with each of `items` at once; they come back in any order.
async fn with_each<T, F: Future<Output = Outcome<T>> + Send + 'static>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> F,
) -> Outcome<Vec<T>>
where
    T: Send + 'static,
{
    let mut tasks: JoinSet<Outcome<T>> = items.into_iter().map(work).collect();
    let mut done = Vec::with_capacity(tasks.len());
    while let Some(finished) = tasks.join_next().await {
        done.push(finished.map_err(said)??);
    }
    Ok(done)
}

/// Lets tasks that never end run for `time`; the first of them that fails ends it.
async fn run_for(tasks: &mut JoinSet<Outcome<()>>, time: Duration) -> Outcome<()> {
    let clock = Clock::real();
    match clock.until(clock.deadline_in(time), tasks.join_next()).await {
        None => Ok(()),
        Some(failed) => failed.unwrap_or(Ok(Ok(()))).map_err(said)?,
    }
}
