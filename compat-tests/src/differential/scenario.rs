//! Reads the scenario tables of `differential/cases/*.cases`. Their form, line by line:
//!
//! ```text
//! # a comment
//! == title of the case              a case is played once per version of the first API marked `*`
//! versions 4-9                      … of these versions only
//! @a JoinGroup * {json}             asks on connection `a` (without `@`: on `main`); version: number, max, *
//! @a> JoinGroup 5 {json}            sends; the answer is read later
//! @a<                               reads that answer
//! @a! Produce 9 {json}              sends what gets no answer
//! until topics.0.errorCode = 0      asks the last question again until the field has this value
//! keep member = memberId            remembers a field of the last answer as `$member` or `${member}`
//! topic $t 1 {"cleanup.policy": "compact"}   creates a topic with so many partitions and waits for it;
//!                                   keeps its id as `$id` (of another name, `$NAME-id`)
//! quiet                             the last answer is not compared
//! without topics.0.name             this field of the last answer is not compared
//! close a                           closes a connection
//! ```
//! Lines that begin with a blank continue the one before. `$t` and `$g` are names of the case's own
//! topic and group, `$long` is a text of 5000 letters. `{"batch": {…}}` stands for a record batch, `{"batches": […]}` for several.

use serde_json::{Value, json};
use std::path::Path;

#[derive(Debug, Clone, PartialEq)]
pub enum Version {
    /// The version under test.
    Each,
    /// The newest that both brokers serve.
    Max,
    Number(i16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Ask,
    Send,
    SendUnanswered,
}

#[derive(Debug, Clone)]
pub enum Step {
    Request { on: String, how: How, api: String, version: Version, body: Value },
    Receive { on: String },
    Until { path: String, value: Value },
    Keep { name: String, path: String },
    Quiet,
    Without { path: String },
    Close { on: String },
}

#[derive(Debug, Clone)]
pub struct Case {
    /// `family/title`.
    pub title: String,
    pub only: Option<(i16, i16)>,
    pub steps: Vec<Step>,
}

impl Case {
    /// The API whose versions the case goes through.
    pub fn subject(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| match step {
            Step::Request { api, version: Version::Each, .. } => Some(api.as_str()),
            _ => None,
        })
    }

    pub fn apis(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match step {
            Step::Request { api, .. } => Some(api.as_str()),
            _ => None,
        })
    }
}

/// All cases of a folder, ordered by file name.
pub fn load(folder: &Path) -> Result<Vec<Case>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{folder:?}: {e}"))?;
    let mut files: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "cases"));
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{path:?}: {e}"))?;
        let family = path.file_stem().unwrap_or_default().to_string_lossy().to_string();
        cases.extend(parse(&family, &text).map_err(|e| format!("{path:?}: {e}"))?);
    }
    Ok(cases)
}

fn parse(family: &str, text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in joined(text) {
        let fail = |why: String| format!("line {number}: {why}");
        if let Some(title) = line.strip_prefix("== ") {
            let title = format!("{family}/{}", title.trim());
            if cases.iter().any(|case| case.title == title) {
                return Err(fail(format!("a second case is called `{title}`")));
            }
            cases.push(Case { title, only: None, steps: Vec::new() });
            continue;
        }
        let case = cases.last_mut().ok_or_else(|| fail("a step before the first case".into()))?;
        if let Some(range) = line.strip_prefix("versions ") {
            let (min, max) = range.trim().split_once('-').unwrap_or((range.trim(), range.trim()));
            let number = |text: &str| text.parse::<i16>().map_err(|e| fail(format!("{text}: {e}")));
            case.only = Some((number(min)?, number(max)?));
        } else if let Some(topic) = line.strip_prefix("topic ") {
            case.steps.extend(topic_steps(topic).map_err(fail)?);
        } else {
            case.steps.push(step(&line).map_err(fail)?);
        }
    }
    Ok(cases)
}

/// Lines without comments, continuation lines joined to what they continue.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        match lines.last_mut() {
            Some((_, last)) if line.starts_with(char::is_whitespace) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => lines.push((index + 1, line.trim_end().to_string())),
        }
    }
    lines
}

fn step(line: &str) -> Result<Step, String> {
    let (word, rest) = line.split_once(' ').map_or((line, ""), |(w, r)| (w, r.trim()));
    let pair = |rest: &str| {
        let pair = rest.split_once('=').map(|(a, b)| (a.trim().to_string(), b.trim().to_string()));
        pair.ok_or_else(|| format!("`{line}` has no `=`"))
    };
    match word {
        "quiet" => return Ok(Step::Quiet),
        "without" => return Ok(Step::Without { path: rest.to_string() }),
        "close" => return Ok(Step::Close { on: rest.to_string() }),
        "keep" => return pair(rest).map(|(name, path)| Step::Keep { name, path }),
        "until" => {
            let (path, value) = pair(rest)?;
            let value = serde_json::from_str(&value).map_err(|e| format!("{value}: {e}"))?;
            return Ok(Step::Until { path, value });
        }
        _ => {}
    }
    let Some(on) = word.strip_prefix('@') else {
        return request("main", How::Ask, line);
    };
    match (on.strip_suffix('<'), on.strip_suffix('>'), on.strip_suffix('!')) {
        (Some(on), _, _) => Ok(Step::Receive { on: on.into() }),
        (_, Some(on), _) => request(on, How::Send, rest),
        (_, _, Some(on)) => request(on, How::SendUnanswered, rest),
        _ => request(on, How::Ask, rest),
    }
}

fn topic_steps(text: &str) -> Result<Vec<Step>, String> {
    let mut parts = text.splitn(3, ' ');
    let (name, count) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let count: i32 = count.parse().map_err(|_| format!("`{text}`: how many partitions?"))?;
    let configs: Value =
        serde_json::from_str(parts.next().unwrap_or("{}")).map_err(|e| format!("`{text}`: {e}"))?;
    let configs: Vec<Value> = configs
        .as_object()
        .map(|c| c.iter().map(|(k, v)| json!({ "name": k, "value": v })).collect())
        .unwrap_or_default();
    let topic =
        json!({ "name": name, "numPartitions": count, "replicationFactor": 1, "configs": configs });
    let ask = |api: &str, version: i16, body: Value| Step::Request {
        on: "main".into(),
        how: How::Ask,
        api: api.into(),
        version: Version::Number(version),
        body,
    };
    let until = |path: &str, value: Value| Step::Until { path: path.into(), value };
    let ends: Vec<Value> =
        (0..count).map(|index| json!({ "partitionIndex": index, "timestamp": -1 })).collect();
    let own = name.trim_start_matches('$').trim_start_matches("{t}-");
    let id = if name == "$t" { "id".to_string() } else { format!("{own}-id") };
    Ok(vec![
        ask("CreateTopics", 7, json!({ "topics": [topic] })),
        Step::Quiet,
        ask(
            "Metadata",
            12,
            json!({ "topics": [{ "name": name }], "allowAutoTopicCreation": false }),
        ),
        until("topics.0.errorCode", json!(0)),
        until(&format!("topics.0.partitions.{}.leaderId", count - 1), json!(1)),
        Step::Keep { name: id, path: "topics.0.topicId".into() },
        Step::Quiet,
        // Kafka's metadata shows a leader a moment before that leader serves.
        ask(
            "ListOffsets",
            7,
            json!({ "replicaId": -1, "topics": [{ "name": name, "partitions": ends }] }),
        ),
        until("topics.0.partitions.0.errorCode", json!(0)),
        until(&format!("topics.0.partitions.{}.errorCode", count - 1), json!(0)),
        Step::Quiet,
    ])
}

fn request(on: &str, how: How, text: &str) -> Result<Step, String> {
    let mut parts = text.splitn(3, ' ');
    let (api, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let body = parts.next().unwrap_or("{}");
    let version = match version {
        "*" => Version::Each,
        "max" => Version::Max,
        number => Version::Number(number.parse().map_err(|_| format!("`{text}`: which version?"))?),
    };
    let body = serde_json::from_str(body).map_err(|e| format!("`{body}`: {e}"))?;
    Ok(Step::Request { on: on.into(), how, api: api.into(), version, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_written() {
        let text = "# note\n== one\nversions 1-2\n@a> JoinGroup * {\"groupId\":\n  \"$g\"}\n@a<\n\
                    keep m = memberId\nHeartbeat max {}\nuntil errorCode = 0\n\
                    without errorCode\nquiet\nclose a\n";
        let cases = parse("groups", text).unwrap();
        assert_eq!(cases.len(), 1);
        assert_eq!((cases[0].title.as_str(), cases[0].only), ("groups/one", Some((1, 2))));
        assert_eq!(cases[0].subject(), Some("JoinGroup"));
        assert_eq!(cases[0].steps.len(), 8);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("Heartbeat 1 {}", "before the first case"),
            ("== a\nHeartbeat {}", "which version"),
            ("== a\nkeep x", "no `=`"),
            ("== a\n== a", "a second case"),
        ] {
            let error = parse("f", text).unwrap_err();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
