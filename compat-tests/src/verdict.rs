//! What a test said.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Pass,
    Fail,
    Skip,
}

#[derive(Debug, Clone)]
pub struct Test {
    pub name: String,
    pub verdict: Verdict,
    /// Why it failed or was skipped.
    pub detail: String,
}

impl Test {
    pub fn pass(name: impl Into<String>) -> Test {
        Test { name: name.into(), verdict: Verdict::Pass, detail: String::new() }
    }

    pub fn fail(name: impl Into<String>, detail: impl Into<String>) -> Test {
        Test { name: name.into(), verdict: Verdict::Fail, detail: detail.into() }
    }

    /// Whether it stands for the script as a whole: `run.sh` that ended badly, `setup` that failed.
    pub fn is_broken_script(&self) -> bool {
        Test::names_broken_script(&self.name, self.verdict)
    }

    pub fn names_broken_script(name: &str, verdict: Verdict) -> bool {
        verdict == Verdict::Fail && ["run.sh", "setup"].contains(&name)
    }

    /// An error is a failure that says why.
    pub fn of(name: impl Into<String>, outcome: Result<(), String>) -> Test {
        match outcome {
            Ok(()) => Test::pass(name),
            Err(detail) => Test::fail(name, detail),
        }
    }
}
