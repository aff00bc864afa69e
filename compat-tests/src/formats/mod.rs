//! Data directories that earlier formats of Ottla wrote (`formats/*.tar.gz`), opened by this one: the same
//! topics, configs, records, offsets, producers and commits; then Kafka's dumper on what was written on top.
//! Lives here: opening and judging; `make` makes such a directory, `seen` says what a client sees of it.

mod make;
mod seen;

use crate::broker::{Broker, Kind, Stop};
use crate::folder::Folder;
use crate::from_kafka::{produce, produce_request, same, sequenced};
use crate::places::Places;
use crate::restart::output;
use crate::restart::state::{Client, producer_id};
use crate::restart::tools;
use crate::self_check;
use crate::verdict::Test;
pub use make::keep;
use seen::Seen;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "formats";
const ENDING: &str = ".tar.gz";
/// What a client saw of the directory `data` beside it.
const SEEN: &str = "seen.json";
const OUT_OF_ORDER: &str = "\"errorCode\":45";

pub fn run(places: &Places) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for fixture in fixtures(places)? {
        tests.extend(opened(places, &fixture)?);
    }
    Ok(tests)
}

/// All that are kept, by name.
fn fixtures(places: &Places) -> Result<Vec<String>, String> {
    let dir = places.home.join(FOLDER);
    let entries = std::fs::read_dir(&dir).map_err(|e| format!("{dir:?}: {e}"))?.flatten();
    let name = |path: PathBuf| Some(path.file_name()?.to_str()?.strip_suffix(ENDING)?.to_string());
    let mut names: Vec<String> = entries.filter_map(|entry| name(entry.path())).collect();
    names.sort();
    if names.is_empty() { Err(format!("{dir:?} has no *{ENDING}")) } else { Ok(names) }
}

/// A copy of a fixture in the room that a broker called `name` will start in.
struct Copy {
    data: PathBuf,
    seen: Seen,
    /// The id of the idempotent producer.
    producer: i64,
}

fn unpacked(places: &Places, fixture: &str, name: &str) -> Result<Copy, String> {
    let room = places.room(&format!("{name}-ottla"))?;
    let archive = places.home.join(FOLDER).join(format!("{fixture}{ENDING}"));
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(&room);
    output(tar)?;
    let text = std::fs::read_to_string(room.join(SEEN)).map_err(|e| format!("{SEEN}: {e}"))?;
    let mut seen: Seen =
        serde_json::from_str(&text).map_err(|e| format!("{fixture}, {SEEN}: {e}"))?;
    let producer = seen.remove(seen::PRODUCER).and_then(|id| id.as_i64());
    let producer = producer.ok_or_else(|| format!("{fixture}, {SEEN}: no producer"))?;
    Ok(Copy { data: room.join("data"), seen, producer })
}

fn opened(places: &Places, fixture: &str) -> Result<Vec<Test>, String> {
    let name = format!("{FOLDER}-{fixture}");
    let Copy { seen: before, producer, .. } = unpacked(places, fixture, &name)?;
    let settings = Folder::built_in(places, FOLDER).settings()?;
    let mut broker = Broker::start(Kind::Ottla, places, &name, &settings)?;
    let mut client = Client::open(places, &broker.bootstrap())?;
    let test = |what: &str, outcome| Test::of(format!("{fixture}: {what}"), outcome);
    let mut tests = vec![
        test("all is as it was", same(&before, &seen::look(&mut client)?)),
        test("its producer goes on", producer_goes_on(&mut client, producer)),
        test("a new producer id is new", id_is_new(&mut client, producer)),
        test("new records go on behind, kill -9 or not", written_on(places, &mut broker)),
    ];
    let code = broker.stop(Stop::Term)?;
    let well = if code == Some(0) { Ok(()) } else { Err(format!("exit code {code:?}")) };
    tests.push(test("it stops well", well));
    for dumped in tools::dump_log(places, &broker) {
        tests.push(Test { name: format!("{fixture}: {}", dumped.name), ..dumped });
    }
    Ok(tests)
}

/// The last batch is known again, the next one is taken, one after a gap is not.
fn producer_goes_on(client: &mut Client, id: i64) -> Result<(), String> {
    for sequence in [make::SEQUENCES - 1, make::SEQUENCES] {
        let offset = produce(client, make::IDEMPOTENT, &make::far(sequenced(id, sequence)))?;
        if offset != sequence {
            return Err(format!("sequence {sequence} is answered with offset {offset}"));
        }
    }
    let gap = make::far(sequenced(id, make::SEQUENCES + 5));
    let asked = produce_request(make::IDEMPOTENT, &gap)?;
    let answer = client.ask("Produce", 9, asked)?.to_string();
    if answer.contains(OUT_OF_ORDER) { Ok(()) } else { Err(format!("after a gap: {answer}")) }
}

fn id_is_new(client: &mut Client, old: i64) -> Result<(), String> {
    let new = producer_id(client)?;
    if new > old { Ok(()) } else { Err(format!("producer id {new} after {old}")) }
}

/// Appends to every topic, makes one, commits; stops hard and looks for it, then softly.
fn written_on(places: &Places, broker: &mut Broker) -> Result<(), String> {
    let mut client = Client::open(places, &broker.bootstrap())?;
    for topic in make::TOPICS {
        let spec = json!({ "records": [{ "key": "on top", "value": "x", "times": 1000 }] });
        produce(&mut client, topic, &spec)?;
    }
    make::commit(&mut client, 1, 1, "on top")?;
    let mut before = seen::look(&mut client)?;
    for how in [Stop::Kill, Stop::Term] {
        broker.restart(how)?;
        let after = seen::look(&mut Client::open(places, &broker.bootstrap())?)?;
        // Compaction goes on meanwhile.
        before.retain(|name, _| !name.starts_with(make::COMPACTED));
        same(&before, &after).map_err(|why| format!("after {how:?}: {why}"))?;
    }
    Ok(())
}

/// For the self-check: a difference in anything that was seen is told, and so is a file that is gone.
pub fn notices(places: &Places) -> Result<(), String> {
    for fixture in fixtures(places)? {
        let name = format!("{FOLDER}-spoiled-{fixture}");
        let Copy { data, seen: before, .. } = unpacked(places, &fixture, &name)?;
        for (what, value) in &before {
            for other in self_check::changed(value) {
                let after = Seen::from([(what.clone(), other)]);
                let only = Seen::from([(what.clone(), value.clone())]);
                if same(&only, &after).is_ok() {
                    return Err(format!("{fixture}: another value of `{what}` passes"));
                }
            }
        }
        spoil(&data)?;
        let settings = Folder::built_in(places, FOLDER).settings()?;
        let broker = Broker::start(Kind::Ottla, places, &name, &settings)?;
        let mut client = Client::open(places, &broker.bootstrap())?;
        if same(&before, &seen::look(&mut client)?).is_ok() {
            return Err(format!("{fixture}: a record that is gone is not missed"));
        }
    }
    Ok(())
}

/// Takes the end off a topic's last segment.
fn spoil(data: &Path) -> Result<(), String> {
    let dir = data.join("of-none-0");
    let entries = std::fs::read_dir(&dir).map_err(|e| format!("{dir:?}: {e}"))?.flatten();
    let mut logs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    logs.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
    logs.sort();
    let last = logs.pop().ok_or_else(|| format!("{dir:?} has no segment"))?;
    let file = std::fs::File::options().write(true).open(&last).map_err(|e| e.to_string())?;
    file.set_len(0).map_err(|e| format!("{last:?}: {e}"))
}
