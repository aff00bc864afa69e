//! Retention and rolling, with small segments and short intervals: Kafka and another broker get the
//! same loads side by side, and both must come to the same state, on the wire and in their files.
//! Lives here: the order of a run, Kafka's tools. The loads are in `scenes.rs`,
//! the looking in `look.rs`, committed offsets in `offsets.rs`.

mod look;
mod offsets;
mod scenes;

use crate::broker::{Broker, Stop};
use crate::places::Places;
use crate::restart::{output, tools};
use crate::verdict::Test;
use look::Looker;
use std::time::{Duration, Instant};

/// How long a broker may take to come to a state; both work every 400 ms.
const PATIENCE: Duration = Duration::from_secs(25);

pub fn run(places: &Places, kafka: &mut Broker, other: &mut Broker) -> Result<Vec<Test>, String> {
    let play = |broker: &Broker| -> Vec<(String, Result<(), String>)> {
        let scenes = scenes::all();
        let mut looker = match Looker::new(places, broker) {
            Ok(looker) => looker,
            Err(why) => return vec![("a connection".into(), Err(why))],
        };
        let played = scenes.iter().map(|scene| (scene.name.to_string(), scene.play(&mut looker)));
        played.chain(offsets::play(places, broker)).collect()
    };
    let (there, here) = (&*kafka, &*other);
    let (left, right) = std::thread::scope(|scope| {
        let right = scope.spawn(|| play(here));
        (play(there), right.join())
    });
    let right = right.map_err(|_| "the player of the other broker panicked")?;
    let mut tests = Vec::new();
    for ((name, kafka), (_, other)) in left.into_iter().zip(right) {
        let both = kafka.map_err(|why| format!("Kafka: {why}")).and(other);
        tests.push(Test::of(name, both));
    }
    for (broker, whose) in [(there, "Kafka"), (here, "the other")] {
        for (name, outcome) in shell_tools(places, broker) {
            tests.push(Test::of(format!("{name}, {whose}"), outcome));
        }
    }
    other.stop(Stop::Term)?;
    tests.extend(tools::dump_log(places, other));
    Ok(tests)
}

/// For the self-check: a state that differs in anything is told apart.
pub fn notices() -> Result<(), String> {
    let state = look::State { earliest: 2, latest: 9, segments: vec![2, 5], ..Default::default() };
    let changed = [
        look::State { earliest: 3, ..state.clone() },
        look::State { latest: 8, ..state.clone() },
        look::State { segments: vec![2], ..state.clone() },
        look::State { below: 1, ..state.clone() },
        look::State { checkpoint: Some(1), ..state.clone() },
    ];
    match changed.iter().find(|other| **other == state) {
        None => Ok(()),
        Some(same) => Err(format!("{same:?} passes for {state:?}")),
    }
}

/// `kafka-get-offsets`, `kafka-delete-records` and `kafka-configs` on a topic of their own.
fn shell_tools(places: &Places, broker: &Broker) -> Vec<(&'static str, Result<(), String>)> {
    let bootstrap = broker.bootstrap();
    let prepared = Looker::new(places, broker).and_then(|mut looker| {
        looker.create("tools", scenes::NEVER)?;
        (0..5).try_for_each(|_| looker.produce("tools", &["v"], None).map(|_| ()))
    });
    if let Err(why) = prepared {
        return vec![("tools", Err(why))];
    }
    let offsets = |time: &str, wanted: &str| -> Result<(), String> {
        let mut tool = tools::tool(places, "org.apache.kafka.tools.GetOffsetShell")?;
        tool.args(["--bootstrap-server", &bootstrap, "--topic", "tools", "--time", time]);
        says(&output(tool)?, wanted)
    };
    let delete = || -> Result<(), String> {
        let file = places.room("tools")?.join("offsets.json");
        let text = r#"{"partitions":[{"topic":"tools","partition":0,"offset":3}],"version":1}"#;
        std::fs::write(&file, text).map_err(|e| e.to_string())?;
        let mut tool = tools::tool(places, "org.apache.kafka.tools.DeleteRecordsCommand")?;
        tool.args(["--bootstrap-server", &bootstrap, "--offset-json-file"]).arg(&file);
        says(&output(tool)?, "partition: tools-0\tlow_watermark: 3")
    };
    let configs = |order: &[&str], wanted: &str| -> Result<(), String> {
        let mut tool = tools::tool(places, "org.apache.kafka.tools.ConfigCommand")?;
        tool.args(["--bootstrap-server", &bootstrap, "--entity-type", "topics"]);
        tool.args(["--entity-name", "tools"]).args(order);
        says(&output(tool)?, wanted)
    };
    let order = ["--alter", "--add-config", "retention.bytes=4321"];
    vec![
        ("kafka-get-offsets", offsets("latest", "tools:0:5")),
        ("kafka-delete-records", delete()),
        ("kafka-get-offsets after it", offsets("earliest", "tools:0:3")),
        ("kafka-configs sets", configs(&order, "Completed updating config for topic tools.")),
        ("kafka-configs shows", configs(&["--describe"], "retention.bytes=4321")),
    ]
}

fn says(printed: &str, wanted: &str) -> Result<(), String> {
    let found = printed.lines().any(|line| line.contains(wanted));
    if found { Ok(()) } else { Err(format!("no line with `{wanted}` in `{printed}`")) }
}

/// Asks until it is so.
fn until(mut is_so: impl FnMut() -> Result<Result<(), String>, String>) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match is_so()? {
            Ok(()) => return Ok(()),
            Err(why) if Instant::now() > deadline => return Err(why),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn states_that_differ_are_told_apart() {
        super::notices().unwrap();
    }
}
