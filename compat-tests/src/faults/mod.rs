//! Faults, done for real: kill -9 in a loop, power loss, full disks, failing disks, flipped bits. What was
//! acknowledged is there afterwards, what could not be stored was never acknowledged, and the broker says
//! what happened. The rules are Ottla's own, so Kafka is not asked.

mod bits;
pub mod disk;
mod errors;
mod full;
mod power;
pub mod wire;

use crate::broker::{Broker, Kind, Stop};
use crate::folder::Folder;
use crate::places::Places;
use crate::restart::load::Load;
use crate::suite::Set;
use crate::verdict::{Test, Verdict};

const KILLS: &str = "kill -9 in a loop loses, doubles and moves nothing";

/// What a test has done, printed beside its verdict; with a zero in it the test has not been one.
pub type Counts = Vec<(&'static str, usize)>;

pub fn run(places: &Places, folder: &Folder, kind: Kind) -> Result<Vec<Test>, String> {
    let names = std::iter::once(KILLS).chain(power::NAMES).chain(full::NAMES);
    let names = names.chain(errors::names()).chain(bits::names());
    if kind == Kind::Kafka {
        let skip = |name: &str| Test {
            name: name.into(),
            verdict: Verdict::Skip,
            detail: "not asked of Kafka".into(),
        };
        return Ok(names.map(skip).collect());
    }
    let scene = Scene { places, folder, seed: seed() };
    println!("    seed {}", scene.seed);
    let mut tests = vec![judged(KILLS, scene.kills())];
    tests.extend(power::run(&scene));
    tests.extend(full::run(&scene));
    tests.extend(errors::run(&scene));
    tests.extend(bits::run(&scene));
    Ok(tests)
}

/// `OTTLA_FAULTS_SEED` repeats a run.
fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let fresh = now.map_or(1, |since| since.as_nanos() as u64);
    std::env::var("OTTLA_FAULTS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(fresh)
}

pub struct Scene<'a> {
    pub places: &'a Places,
    pub folder: &'a Folder,
    pub seed: u64,
}

impl Scene<'_> {
    pub fn is_long(&self) -> bool {
        self.places.set == Set::Long
    }

    /// Numbers that look random, the same ones for the same seed.
    pub fn random(&self, salt: u64) -> impl FnMut(u64) -> u64 + use<> {
        let mut state = self.seed ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below.max(1)
        }
    }

    fn kills(&self) -> Result<Counts, String> {
        let mut broker =
            Broker::start(Kind::Ottla, self.places, "faults-kills", &self.folder.settings()?)?;
        let mut client = wire::open(self.places, &broker.bootstrap())?;
        // Small segments, so that kills hit rolls as well.
        wire::must_create(&mut client, "kills", 4, &[("segment.bytes", "1048576")])?;
        let (outages, records) = if self.is_long() { (200, 50_000) } else { (20, 500) };
        let load = Load {
            name: "kills",
            outages,
            records,
            per_second: if self.is_long() { 0 } else { 4000 },
        };
        let mut kills = 0;
        let acked = load.run(self.places, &mut broker, |broker, _| {
            kills += 1;
            broker.restart(Stop::Kill)
        })?;
        if self.is_long() && acked < 10_000_000 {
            return Err(format!("only {acked} records were acknowledged"));
        }
        Ok(vec![("kills", kills), ("records acknowledged", acked)])
    }
}

/// A test that says what it has done. Where it has done nothing of a kind, it fails.
pub fn judged(name: impl Into<String>, outcome: Result<Counts, String>) -> Test {
    let name = name.into();
    let outcome = outcome.and_then(|counts| {
        let said: Vec<String> = counts.iter().map(|(what, n)| format!("{n} {what}")).collect();
        println!("    {name}: {}", said.join(", "));
        match counts.iter().find(|(_, count)| *count == 0) {
            Some((what, _)) => Err(format!("no {what}")),
            None => Ok(()),
        }
    });
    Test::of(name, outcome)
}
