//! How often Ottla waits for the disk between exec and its ready line, counted with strace.

use crate::broker::{Broker, Kind, Stop};
use crate::folder::Folder;
use crate::places::Places;
use crate::verdict::{Test, Verdict};

const FRESH_MAX: usize = 4;
const WARM_MAX: usize = 1;

pub fn run(places: &Places, folder: &Folder, kind: Kind) -> Vec<Test> {
    let names = ["sync calls of a fresh start", "sync calls of a warm start"];
    if kind == Kind::Kafka {
        let skip = |name: &str| Test {
            name: name.into(),
            verdict: Verdict::Skip,
            detail: "not asked of Kafka".into(),
        };
        return names.map(skip).into();
    }
    let counted = count(places, folder);
    let judge = |counted: &Result<(usize, usize), String>, fresh: bool| match counted {
        Err(why) => Err(why.clone()),
        Ok((first, second)) => {
            let (n, max) = if fresh { (*first, FRESH_MAX) } else { (*second, WARM_MAX) };
            if n <= max { Ok(()) } else { Err(format!("{n} calls, at most {max} are allowed")) }
        }
    };
    vec![Test::of(names[0], judge(&counted, true)), Test::of(names[1], judge(&counted, false))]
}

/// Calls before the ready line of a fresh start, and of one after SIGTERM.
fn count(places: &Places, folder: &Folder) -> Result<(usize, usize), String> {
    let trace = places.room("sync-calls")?.join("strace");
    let wrapper = [
        "strace",
        "-f",
        "-qq",
        "-e",
        "trace=fsync,fdatasync,sync_file_range,syncfs,sync,msync",
        "-o",
    ];
    let wrapper: Vec<String> =
        wrapper.iter().map(|word| word.to_string()).chain([trace.display().to_string()]).collect();
    let calls = || {
        let text = std::fs::read_to_string(&trace).unwrap_or_default();
        text.lines().filter(|line| line.contains("sync") && !line.contains("resumed")).count()
    };
    let settings = folder.settings()?;
    let mut broker = Broker::start_wrapped(Kind::Ottla, places, "sync-calls", &settings, wrapper)?;
    let fresh = calls();
    broker.stop(Stop::Term)?;
    // strace writes its file anew with each start.
    broker.start_again()?;
    Ok((fresh, calls()))
}
