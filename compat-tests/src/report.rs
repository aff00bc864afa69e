//! The closing table and the last line.

use crate::folder::judge::Judgement;
use crate::verdict::{Test, Verdict};
use std::time::Duration;

pub struct Row {
    pub suite: String,
    pub kafka: Option<(usize, usize)>,
    pub ottla: Option<(usize, usize)>,
    pub judgement: Judgement,
    pub took: Duration,
}

/// Passed and failed; a skipped test is neither.
pub fn count<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> (usize, usize) {
    verdicts.fold((0, 0), |(passed, failed), verdict| match verdict {
        Verdict::Pass => (passed + 1, failed),
        Verdict::Fail => (passed, failed + 1),
        Verdict::Skip => (passed, failed),
    })
}

pub fn count_tests(tests: &[Test]) -> (usize, usize) {
    count(tests.iter().map(|t| &t.verdict))
}

/// Prints the table, the problems and the last line; returns whether all is well.
pub fn close(rows: &[Row]) -> bool {
    println!(
        "\n{:<24} {:>13} {:>13} {:>18} {:>8}",
        "client", "Kafka", "Ottla", "differences", "seconds"
    );
    for row in rows {
        let pair = |counts: Option<(usize, usize)>| {
            counts.map_or("-".into(), |(passed, failed)| format!("{passed}/{failed}"))
        };
        let (new, allowed) = (row.judgement.problems.len(), row.judgement.allowed);
        println!(
            "{:<24} {:>13} {:>13} {:>18} {:>8.1}",
            row.suite,
            pair(row.kafka),
            pair(row.ottla),
            format!("{new} ({allowed} allowed)"),
            row.took.as_secs_f64(),
        );
    }
    for row in rows.iter().filter(|row| !row.judgement.problems.is_empty()) {
        println!("\n{}:", row.suite);
        for problem in row.judgement.problems.iter().take(PROBLEMS_SHOWN) {
            println!("  {}", problem.replace('\n', "\n    "));
        }
        let more = row.judgement.problems.len().saturating_sub(PROBLEMS_SHOWN);
        if more > 0 {
            println!("  … and {more} more");
        }
    }
    let sum =
        |of: fn(&Judgement) -> usize| rows.iter().map(|row| of(&row.judgement)).sum::<usize>();
    let failed = sum(|j| j.problems.len());
    println!("\n{} differences are allowed for now by expect.toml", sum(|j| j.allowed));
    println!("{} passed, {failed} failed", sum(|j| j.passed));
    failed == 0 && !rows.is_empty()
}

/// Of one suite; the rest would hide the others'.
const PROBLEMS_SHOWN: usize = 60;
