//! Arguments and their errors.

use std::ffi::OsString;
use std::str::FromStr;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::failure::Failure;

/// A broker that speaks the Kafka wire protocol. Without arguments it serves localhost:9092 and
/// keeps its data in ./data.
#[derive(Debug, Parser)]
#[command(name = "ottla", version, subcommand_negates_reqs = true, max_term_width = 100)]
#[command(after_help = "\
Settings are Kafka's keys. Each source stands over the ones before it: the file of --config, the
environment (KAFKA_NUM_PARTITIONS=3 sets num.partitions), the arguments.")]
pub(super) struct Arguments {
    /// Read settings from a file in the syntax of Kafka's server.properties
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// Set one setting, such as --set num.partitions=3; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// Keep data in this directory (log.dirs)
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Listen for clients on this port; 0 picks a free one
    #[arg(long, value_name = "N", value_parser = port)]
    pub port: Option<u16>,
    /// Serve /health and /metrics on this port; 0 picks a free one, -1 is none (ottla.http.port)
    #[arg(long, value_name = "N", value_parser = http_port, allow_negative_numbers = true)]
    http_port: Option<i32>,
    /// Create a topic before the broker is ready; may be given several times
    #[arg(long, value_name = "NAME[:PARTITIONS[:REPLICAS]]")]
    pub topic: Vec<TopicSpec>,
    /// Keep data in a new directory that is removed at the end
    #[arg(long, conflicts_with = "data_dir")]
    pub ephemeral: bool,
    #[command(subcommand)]
    command: Option<Subcommand>,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    /// Ask a running broker whether it serves: exit code 0 if it does, 1 if not
    Healthcheck {
        /// Address of the broker
        #[arg(long, value_name = "HOST:PORT", default_value = "localhost:9092")]
        bootstrap: String,
    },
}

/// `key=value` of `--set`.
#[derive(Debug, Clone)]
struct Setting {
    key: String,
    value: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Self { key: key.trim().to_owned(), value: value.to_owned() })
            }
            _ => Err("write KEY=VALUE, such as num.partitions=3".to_owned()),
        }
    }
}

/// `name[:partitions[:replicas]]` of `--topic`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSpec {
    pub name: String,
    /// `None`: `num.partitions`.
    pub partitions: Option<i32>,
    /// `None`: `default.replication.factor`.
    pub replicas: Option<i16>,
}

impl FromStr for TopicSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write NAME[:PARTITIONS[:REPLICAS]], such as orders:3, with numbers from 1 on";
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default().to_owned();
        let partitions = number(parts.next()).ok_or(form)?;
        let replicas = number(parts.next()).ok_or(form)?;
        if name.is_empty() || parts.next().is_some() {
            return Err(form.to_owned());
        }
        Ok(Self { name, partitions, replicas })
    }
}

/// `Some(None)` where nothing is written, `None` for what is no number from 1 on.
fn number<T: FromStr + PartialOrd + From<u8>>(text: Option<&str>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => text.parse().ok().filter(|number| *number >= T::from(1)).map(Some),
    }
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "a port is a number from 0 to 65535".to_owned())
}

fn http_port(text: &str) -> Result<i32, String> {
    if text == "-1" {
        return Ok(-1);
    }
    let wrong = |_| "a port is a number from 0 to 65535, or -1 for no HTTP at all".to_owned();
    port(text).map(i32::from).map_err(wrong)
}

/// What the arguments ask for.
pub(super) enum Asked {
    Run(Arguments),
    Healthcheck { bootstrap: String },
    Show(String),
}

/// # Errors
/// [`Failure`] with exit code 2.
pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Asked, Failure> {
    match Arguments::try_parse_from(arguments) {
        Ok(Arguments { command: Some(Subcommand::Healthcheck { bootstrap }), .. }) => {
            Ok(Asked::Healthcheck { bootstrap })
        }
        Ok(arguments) => Ok(Asked::Run(arguments)),
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            Ok(Asked::Show(error.render().to_string()))
        }
        Err(error) => Err(failure(&error)),
    }
}

impl Arguments {
    /// The settings among the arguments: as written, key, value.
    pub fn settings(&self) -> Vec<(String, String, String)> {
        let mut settings: Vec<_> = self
            .set
            .iter()
            .map(|Setting { key, value }| {
                (format!("--set {key}={value}"), key.clone(), value.clone())
            })
            .collect();
        if let Some(dir) = &self.data_dir {
            settings.push((format!("--data-dir {dir}"), "log.dirs".to_owned(), dir.clone()));
        }
        if let Some(port) = self.http_port {
            let argument = format!("--http-port {port}");
            settings.push((argument, "ottla.http.port".to_owned(), port.to_string()));
        }
        settings
    }
}

/// clap's error in the form of the house.
fn failure(error: &clap::Error) -> Failure {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    };
    // `--port <N>` without what follows the name.
    let plain = |text: &str| text.split(' ').next().unwrap_or(text).to_owned();
    let argument = context(ContextKind::InvalidArg).map(plain).unwrap_or_default();
    let value = context(ContextKind::InvalidValue).unwrap_or_default();
    let help = "`ottla --help` lists all arguments".to_owned();
    let did_you_mean = |kind| match context(kind) {
        Some(near) => format!("did you mean `{near}`?"),
        None => help.clone(),
    };
    match error.kind() {
        ErrorKind::UnknownArgument => Failure::wrong_use(format!("unknown argument `{argument}`"))
            .hint(did_you_mean(ContextKind::SuggestedArg)),
        ErrorKind::InvalidSubcommand => {
            let command = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            Failure::wrong_use(format!("unknown command `{command}`"))
                .hint(did_you_mean(ContextKind::SuggestedSubcommand))
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            Failure::wrong_use(format!("`{argument}` needs a value")).hint(help)
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let source = std::error::Error::source(error).map(ToString::to_string);
            Failure::wrong_use(format!("`{argument}` cannot be `{value}`"))
                .hint(source.unwrap_or(help))
        }
        ErrorKind::ArgumentConflict => {
            let other = context(ContextKind::PriorArg).map(plain).unwrap_or_default();
            if other == argument || other.is_empty() {
                return Failure::wrong_use(format!("`{argument}` is given twice")).hint(help);
            }
            Failure::wrong_use(format!("`{argument}` and `{other}` exclude each other"))
                .hint("drop one of the two")
        }
        _ => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default();
            Failure::wrong_use(line.trim_start_matches("error: ")).hint(help)
        }
    }
}
