//! The command line: arguments, what they ask for, how an error is told.
//! Lives here: arguments, reading of the files that they name, `ottla healthcheck`.
//! May not live here: defaults and bounds of settings (`config/`), starting a node (`node.rs`),
//! ending the process (`main.rs` does, with the exit code that it is given).

mod arguments;
mod failure;
mod healthcheck;

use std::ffi::OsString;

pub use arguments::TopicSpec;
pub use failure::Failure;
pub use healthcheck::healthcheck;

use crate::config::{self, BrokerConfig, Notices, Sources};
use crate::env::{Files, Random};

/// What the program is asked to do.
#[derive(Debug)]
pub enum Command {
    Run(Box<Run>),
    /// Ask the broker at this address whether it serves; see [`healthcheck`].
    Healthcheck {
        bootstrap: String,
    },
    /// Print this on stdout and end well: help or version.
    Show(String),
}

/// A node to start.
#[derive(Debug)]
pub struct Run {
    pub config: BrokerConfig,
    /// To be told once logging is set up.
    pub notices: Notices,
    /// Topics to create before the node is ready.
    pub topics: Vec<TopicSpec>,
    /// The data directory does not exist yet, and is to be removed at the end.
    pub is_ephemeral: bool,
}

/// What the command line is read in.
pub struct Surroundings {
    pub variables: Vec<(String, String)>,
    pub files: Files,
    /// A path that does not exist, for `--ephemeral`.
    pub ephemeral_dir: String,
}

impl Surroundings {
    /// The process's own. Variables that are not UTF-8 are none of ours.
    pub fn of_process(files: Files, random: &Random) -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let name = format!("ottla-{:016x}", random.next_u64());
        let ephemeral_dir = std::env::temp_dir().join(name).to_string_lossy().into_owned();
        Self { variables, files, ephemeral_dir }
    }
}

/// Reads the command line, and the file and variables that belong to it.
/// - `arguments`: with the program's name in front.
///
/// # Errors
/// [`Failure`] ready to be shown, with its exit code.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    around: &Surroundings,
) -> Result<Command, Failure> {
    let arguments = match arguments::parse(arguments)? {
        arguments::Asked::Run(arguments) => arguments,
        arguments::Asked::Healthcheck { bootstrap } => {
            return Ok(Command::Healthcheck { bootstrap });
        }
        arguments::Asked::Show(text) => return Ok(Command::Show(text)),
    };
    let mut sources = Sources {
        file: None,
        variables: around.variables.clone(),
        arguments: arguments.settings(),
        port: arguments.port,
    };
    if let Some(path) = &arguments.config {
        let text = around.files.read(path.as_ref()).map_err(|error| {
            Failure::failed(format!("cannot read the configuration: {error}")).at(path)
        })?;
        sources.file = Some((path.clone(), String::from_utf8_lossy(&text).into_owned()));
    }
    if arguments.ephemeral {
        let dir = around.ephemeral_dir.clone();
        sources.arguments.push(("--ephemeral".to_owned(), "log.dirs".to_owned(), dir));
    }
    let (config, notices) = config::load(&sources)?;
    let (topics, is_ephemeral) = (arguments.topic, arguments.ephemeral);
    Ok(Command::Run(Box::new(Run { config, notices, topics, is_ephemeral })))
}

#[cfg(test)]
mod tests;
