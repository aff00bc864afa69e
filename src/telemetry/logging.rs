//! Logs: one line per event on stderr, stdout belongs to the ready line.

use std::io::{self, IsTerminal};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The filter is not `level` or `room=level,…`, or logging was set up twice.
#[derive(Debug, thiserror::Error)]
pub enum LogFilterError {
    #[error("log filter `{filter}` is not understood: {reason}")]
    Syntax { filter: String, reason: String },
    #[error("a log subscriber is already set")]
    AlreadySet,
}

/// Sets the process's subscriber up, once.
/// - `filter`: `info`, or targets with levels, such as `warn,ottla::broker=debug`.
///
/// # Errors
/// [`LogFilterError`].
pub fn init_logging(filter: &str) -> Result<(), LogFilterError> {
    let targets = targets_of(filter)?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false);
    tracing_subscriber::registry()
        .with(lines)
        .with(targets)
        .try_init()
        .map_err(|_| LogFilterError::AlreadySet)
}

fn targets_of(filter: &str) -> Result<Targets, LogFilterError> {
    let targets: Targets = filter.parse().map_err(|error| LogFilterError::Syntax {
        filter: filter.to_owned(),
        reason: format!("{error}"),
    })?;
    // What goes wrong in the quorum is told by the quorum room, in an operator's words.
    let named = targets.iter().any(|(target, _)| target == "openraft");
    Ok(if named { targets } else { targets.with_target("openraft", LevelFilter::OFF) })
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_filter_is_a_level_or_targets_and_openraft_is_quiet_unless_named() {
        #[rustfmt::skip]
        let table = [
            // filter                     target              level          shown
            ("info",                      "ottla::net",       Level::INFO,   Some(true)),
            ("info",                      "ottla::net",       Level::DEBUG,  Some(false)),
            ("warn,ottla::broker=debug",  "ottla::broker",    Level::DEBUG,  Some(true)),
            ("info",                      "openraft::core",   Level::INFO,   Some(false)),
            ("info,openraft=debug",       "openraft::core",   Level::DEBUG,  Some(true)),
            ("loud=very",                 "ottla",            Level::ERROR,  None),
        ];
        for (filter, target, level, shown) in table {
            let got = targets_of(filter).ok().map(|targets| targets.would_enable(target, &level));
            assert_eq!(got, shown, "{filter}: {target} {level}");
        }
    }
}
