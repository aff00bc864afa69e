//! Compares what Ottla did with what Kafka did, test by test, under the rules of `expect.toml`.

use super::expect::Allowed;
use crate::verdict::{Test, Verdict};
use std::collections::BTreeMap;

#[derive(Debug, Default, PartialEq)]
pub struct Judgement {
    /// Tests that passed, or failed and were skipped just as on Kafka.
    pub passed: usize,
    /// What fails the run, a line each.
    pub problems: Vec<String>,
    /// Entries of `expect.toml` in use.
    pub allowed: usize,
}

/// - `kafka`: its verdicts by test; `ottla`: what ran just now.
/// - `serves`: whether Ottla advertises an API key or a feature by that name.
pub fn judge(
    kafka: &BTreeMap<String, Verdict>,
    ottla: &[Test],
    allowed: &[Allowed],
    serves: impl Fn(&str) -> bool,
) -> Judgement {
    let mut judgement = Judgement { allowed: allowed.len(), ..Judgement::default() };
    let here: BTreeMap<&str, &Test> = ottla.iter().map(|t| (t.name.as_str(), t)).collect();
    if here.len() != ottla.len() {
        judgement.problems.push("two tests have the same name".into());
    }
    if kafka.is_empty() || ottla.is_empty() {
        judgement.problems.push("no test ran".into());
    }
    // A script that broke tells nothing, on whichever broker.
    for test in ottla.iter().filter(|test| test.is_broken_script()) {
        judgement.problems.push(format!("{}: {}", test.name, test.detail));
    }
    if kafka.iter().any(|(name, verdict)| Test::names_broken_script(name, *verdict)) {
        judgement.problems.push("the script broke on Kafka".into());
    }
    let mut used = vec![false; allowed.len()];
    for (name, verdict) in kafka {
        let difference = differs(*verdict, here.get(name.as_str()).copied());
        let entry = allowed.iter().position(|entry| entry.covers(name));
        match (difference, entry) {
            (None, None) => judgement.passed += 1,
            (None, Some(at)) if !allowed[at].test.ends_with('*') => {
                used[at] = true;
                let why = format!("{name}: expect.toml allows a difference, but there is none");
                judgement.problems.push(why);
            }
            (None, Some(_)) => judgement.passed += 1,
            (Some(_), Some(at)) => used[at] = true,
            (Some(why), None) => judgement.problems.push(format!("{name}: {why}")),
        }
    }
    for test in ottla.iter().filter(|test| !kafka.contains_key(&test.name)) {
        judgement.problems.push(format!("{}: Kafka's record has no such test", test.name));
    }
    for (entry, used) in allowed.iter().zip(used) {
        if !used {
            judgement.problems.push(format!("expect.toml: `{}` excuses no test", entry.test));
        }
        if let Some(name) = entry.waits_for.as_deref().filter(|name| serves(name)) {
            let test = &entry.test;
            judgement
                .problems
                .push(format!("expect.toml: `{test}` waits for {name}, which is served"));
        }
    }
    judgement
}

/// How Ottla's result differs from Kafka's for the worse, if it does.
fn differs(kafka: Verdict, here: Option<&Test>) -> Option<String> {
    let Some(test) = here else { return Some("did not run".into()) };
    match (kafka, test.verdict) {
        (_, Verdict::Pass) | (Verdict::Fail, Verdict::Fail) | (Verdict::Skip, Verdict::Skip) => {
            None
        }
        (Verdict::Skip, Verdict::Fail) => Some(format!("failed, Kafka skips it: {}", test.detail)),
        (_, Verdict::Skip) => Some(format!("skipped, but not on Kafka: {}", test.detail)),
        (Verdict::Pass, Verdict::Fail) => Some(test.detail.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(test: &str) -> Allowed {
        let reason = "not served".into();
        Allowed { test: test.into(), reason, waits_for: Some("EndTxn".into()), issue: None }
    }

    #[test]
    fn the_rules_of_honesty() {
        use Verdict::{Fail, Pass, Skip};
        #[rustfmt::skip] // columns
        let table = [
            // Kafka       Ottla         allowed      served  problems
            (Some(Pass), Some(Pass), None,        false, 0),
            (Some(Pass), Some(Fail), None,        false, 1),
            (Some(Pass), Some(Skip), None,        false, 1),
            (Some(Pass), None,       None,        false, 2), // it did not run, and no test did
            (Some(Fail), Some(Fail), None,        false, 0),
            (Some(Fail), Some(Pass), None,        false, 0),
            (Some(Skip), Some(Skip), None,        false, 0),
            (Some(Skip), Some(Fail), None,        false, 1),
            (None,       Some(Pass), None,        false, 2), // not recorded, and nothing is
            (Some(Pass), Some(Fail), Some("t"),   false, 0),
            (Some(Pass), Some(Fail), Some("t*"),  false, 0),
            (Some(Pass), Some(Pass), Some("t"),   false, 1), // the excuse is over
            (Some(Pass), Some(Pass), Some("t*"),  false, 1),
            (Some(Pass), Some(Pass), Some("x"),   false, 1), // names no test
            (Some(Pass), Some(Fail), Some("t"),   true,  1), // what it waits for is there
        ];
        for row in table {
            let (kafka, ottla, allowed, served, problems) = row;
            let kafka = kafka.map(|v| ("t".to_string(), v)).into_iter().collect();
            let ottla = ottla.map(|verdict| Test { verdict, ..Test::pass("t") });
            let ottla: Vec<Test> = ottla.into_iter().collect();
            let allowed: Vec<Allowed> = allowed.map(allow).into_iter().collect();
            let judged = judge(&kafka, &ottla, &allowed, |name| served && name == "EndTxn");
            assert_eq!(judged.problems.len(), problems, "{row:?}: {judged:?}");
        }
    }
}
