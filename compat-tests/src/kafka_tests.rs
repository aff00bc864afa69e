//! Kafka's own integration tests, out of its published test jars: each starts clusters of its own, here of
//! real Kafka or of Ottla. Lives here: which of them. The lists, and how they are run: `kafka-tests/`,
//! `kafka-tests-more/`.

use crate::broker::Kind;
use crate::folder::Folder;
use crate::folder::script::Script;
use crate::places::Places;
use crate::verdict::Test;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(7200);

pub fn run(places: &Places, folder: &Folder, kind: Kind) -> Result<Vec<Test>, String> {
    let label = kind.to_string().to_lowercase();
    let more = match kind {
        Kind::Kafka => Vec::new(),
        Kind::Ottla => vec![places.ottla().display().to_string()],
    };
    let script = Script {
        places,
        folder,
        bootstrap: label.clone(),
        more,
        broker_ctl: "false".into(),
        label: label.clone(),
        limit: LIMIT,
    };
    let tests = script.run(|_| false)?;
    // Counts and seconds of each class.
    let seconds = places.room(&format!("{}-{label}", folder.name))?.join("seconds");
    print!("{}", std::fs::read_to_string(seconds).unwrap_or_default());
    Ok(tests)
}
