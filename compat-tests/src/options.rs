//! The command line of `compat-tests/run`.

use crate::broker::Kind;
use crate::suite::{Set, Suite};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Ottla, judged by what Kafka did.
    Ottla,
    /// Kafka, recorded.
    Oracle,
    /// Spoiled answers and a dead port: every folder must fail. The answers are Ottla's, or Kafka's.
    SelfCheck(Kind),
}

#[derive(Debug)]
pub struct Options {
    pub mode: Mode,
    pub set: Set,
    only: Vec<String>,
}

const USAGE: &str = "usage: compat-tests/run [--all|--long] [--only NAME]... [--oracle|--self-check]
  without arguments   the set that CI runs
  --all, --long       every folder; with the long ones too
  --only NAME         this folder only; prints NOT RUN for the rest and exits 3
  --oracle            runs Apache Kafka instead and records oracle.json, or fails if a record no longer holds
  --self-check        runs the folders against spoiled answers and a dead port: each must fail
                      (with --oracle too, Kafka's answers are the ones that are spoiled)";

impl Options {
    pub fn parse(words: &[String]) -> Result<Options, String> {
        let mut options = Options { mode: Mode::Ottla, set: Set::Ci, only: Vec::new() };
        let (mut oracle, mut self_check) = (false, false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--all" => options.set = Set::All,
                "--long" => options.set = Set::Long,
                "--oracle" => oracle = true,
                "--self-check" => self_check = true,
                "--only" => {
                    let names = words.next().ok_or("--only needs the name of a folder")?;
                    options.only.extend(names.split(',').map(String::from));
                }
                other => return Err(format!("`{other}` is no option\n{USAGE}")),
            }
        }
        options.mode = match (self_check, oracle) {
            (true, true) => Mode::SelfCheck(Kind::Kafka),
            (true, false) => Mode::SelfCheck(Kind::Ottla),
            (false, true) => Mode::Oracle,
            (false, false) => Mode::Ottla,
        };
        Ok(options)
    }

    pub fn partial(&self) -> bool {
        !self.only.is_empty()
    }

    pub fn choose<'a>(&self, suites: &'a [Suite]) -> Result<Vec<&'a Suite>, String> {
        let named = |name: &str| suites.iter().find(|suite| suite.folder.name == name);
        if self.partial() {
            let names =
                suites.iter().map(|s| s.folder.name.as_str()).collect::<Vec<_>>().join(", ");
            let found = self.only.iter().map(|name| {
                named(name).ok_or(format!("no folder is called `{name}`; there are {names}"))
            });
            return found.collect();
        }
        Ok(suites.iter().filter(|suite| suite.set <= self.set).collect())
    }
}
