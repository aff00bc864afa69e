//! Plays one case against one broker and notes what it answered.

use super::plan::own_port;
use super::scenario::{Case, How, Step, Version};
use crate::wire::batch;
use crate::wire::codec::{from_hex, to_hex};
use crate::wire::connection::{Answer, Connection};
use crate::wire::schema::Schemas;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a single answer may take; longer than any wait that a case asks for.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long `until` goes on asking.
const UNTIL: Duration = Duration::from_secs(30);

/// One compared answer.
#[derive(Debug, Clone)]
pub struct Note {
    pub step: usize,
    pub api: String,
    pub version: i16,
    pub answer: Value,
}

/// The versions of each API that both brokers serve.
pub type Served = BTreeMap<String, (i16, i16)>;

pub struct Player<'a> {
    pub schemas: &'a Schemas,
    pub address: String,
    pub served: &'a Served,
}

struct Game<'a> {
    player: &'a Player<'a>,
    connections: BTreeMap<String, Connection>,
    /// Asked per connection and not yet answered.
    open: BTreeMap<String, Vec<(String, i16)>>,
    kept: BTreeMap<String, Value>,
    notes: Vec<Note>,
    last: Option<(String, Asked)>,
}

#[derive(Clone)]
struct Asked {
    api: String,
    version: i16,
    body: Value,
}

impl Player<'_> {
    /// - `version`: of the case's subject.
    /// - `name`: unique to case and version, the same for both brokers.
    ///
    /// # Errors
    /// The case itself is wrong, or the broker could not be reached.
    pub fn play(&self, case: &Case, version: i16, name: &str) -> Result<Vec<Note>, String> {
        let own = |suffix: &str| Value::String(format!("{name}{suffix}"));
        let long = Value::String("x".repeat(5000));
        let kept = [("t", own("")), ("g", own("-group")), ("long", long)];
        let kept = kept.map(|(name, value)| (name.to_string(), value)).into();
        let (connections, open) = (BTreeMap::new(), BTreeMap::new());
        let mut game =
            Game { player: self, connections, open, kept, notes: Vec::new(), last: None };
        for (index, step) in case.steps.iter().enumerate() {
            game.step(index, step, version).map_err(|e| format!("step {}: {e}", index + 1))?;
        }
        let kept = game.kept;
        let named = |note: Note| {
            let answer = own_port(with_names(readable(note.answer), &kept), &self.address);
            Note { answer, ..note }
        };
        Ok(game.notes.into_iter().map(named).collect())
    }
}

impl Game<'_> {
    fn step(&mut self, index: usize, step: &Step, subject: i16) -> Result<(), String> {
        match step {
            Step::Request { on, how, api, version, body } => {
                let version = self.version(api, version, subject)?;
                let body = filled(body, &self.kept)?;
                self.request(index, on, *how, Asked { api: api.clone(), version, body })
            }
            Step::Receive { on } => {
                let connection = self.connections.get_mut(on).ok_or("no such connection")?;
                let answer = connection.receive(self.player.schemas)?;
                let open = self.open.entry(on.clone()).or_default();
                if open.is_empty() {
                    return Err("nothing was sent that waits".into());
                }
                let (api, version) = open.remove(0);
                self.note(index, &api, version, answer);
                Ok(())
            }
            Step::Until { path, value } => self.until(path, value),
            Step::Keep { name, path } => {
                let note = self.notes.last().ok_or("nothing to keep from")?;
                let value = field(&note.answer, path)
                    .ok_or_else(|| format!("no `{path}` to keep in {}", note.answer))?;
                self.kept.insert(name.clone(), value.clone());
                Ok(())
            }
            Step::Quiet => {
                self.notes.last_mut().ok_or("nothing to leave out")?.answer =
                    Value::String("not compared".into());
                Ok(())
            }
            Step::Without { path } => {
                let note = self.notes.last_mut().ok_or("nothing to leave a field out of")?;
                let field = field_mut(&mut note.answer, path)
                    .ok_or_else(|| format!("no `{path}` to leave out"))?;
                *field = Value::String("not compared".into());
                Ok(())
            }
            Step::Close { on } => self.connections.remove(on).map(|_| ()).ok_or("none open".into()),
        }
    }

    fn version(&self, api: &str, version: &Version, subject: i16) -> Result<i16, String> {
        Ok(match version {
            Version::Each => subject,
            Version::Number(number) => *number,
            Version::Max => self.player.served.get(api).ok_or(format!("{api} is not served"))?.1,
        })
    }

    fn connection(&mut self, on: &str) -> Result<&mut Connection, String> {
        if !self.connections.contains_key(on) {
            let connection = Connection::open(&self.player.address, PATIENCE)?;
            self.connections.insert(on.into(), connection);
        }
        self.connections.get_mut(on).ok_or_else(|| "no connection".into())
    }

    fn request(&mut self, index: usize, on: &str, how: How, asked: Asked) -> Result<(), String> {
        let schemas = self.player.schemas;
        let connection = self.connection(on)?;
        connection.send(schemas, &asked.api, asked.version, &asked.body)?;
        match how {
            How::Send => self.open.entry(on.into()).or_default().push((asked.api, asked.version)),
            How::SendUnanswered => connection.expect_no_answer(),
            How::Ask => {
                let answer = connection.receive(schemas)?;
                if answer == Answer::Closed {
                    self.connections.remove(on);
                }
                self.note(index, &asked.api, asked.version, answer);
                self.last = Some((on.into(), asked));
            }
        }
        Ok(())
    }

    fn until(&mut self, path: &str, value: &Value) -> Result<(), String> {
        let (on, Asked { api, version, body }) = self.last.clone().ok_or("nothing to ask again")?;
        let deadline = Instant::now() + UNTIL;
        loop {
            let note = self.notes.last_mut().ok_or("nothing was answered")?;
            if field(&note.answer, path) == Some(value) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Ok(()); // the comparison shows what it was to the end
            }
            std::thread::sleep(Duration::from_millis(10));
            let schemas = self.player.schemas;
            let answer = self.connection(&on)?.ask(schemas, &api, version, &body)?;
            if answer == Answer::Closed {
                self.connections.remove(&on);
            }
            if let Some(note) = self.notes.last_mut() {
                note.answer = answer.to_value();
            }
        }
    }

    fn note(&mut self, step: usize, api: &str, version: i16, answer: Answer) {
        self.notes.push(Note { step, api: api.into(), version, answer: answer.to_value() });
    }
}

/// A field by its path, as in `topics.0.name`.
pub fn field<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Array(elements) => elements.get(part.parse::<usize>().ok()?),
        value => value.get(part),
    })
}

fn field_mut<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Array(elements) => elements.get_mut(part.parse::<usize>().ok()?),
        value => value.get_mut(part),
    })
}

/// Replaces names by what was kept, and descriptions of batches by their bytes.
fn filled(value: &Value, kept: &BTreeMap<String, Value>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => match text.strip_prefix('$').and_then(|name| kept.get(name)) {
            Some(value) => value.clone(),
            None => Value::String(inline(text, kept)?),
        },
        Value::Array(elements) => {
            Value::Array(elements.iter().map(|e| filled(e, kept)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let filled = fields.iter().map(|(k, v)| Ok((k.clone(), filled(v, kept)?)));
            let filled: serde_json::Map<_, _> = filled.collect::<Result<_, String>>()?;
            if let Some(spec) = filled.get("batch") {
                return Ok(Value::String(to_hex(&batch::build(spec)?)));
            }
            if let Some(Value::Array(specs)) = filled.get("batches") {
                let all: Result<Vec<_>, _> = specs.iter().map(batch::build).collect();
                return Ok(Value::String(to_hex(&all?.concat())));
            }
            Value::Object(filled)
        }
        other => other.clone(),
    })
}

fn inline(text: &str, kept: &BTreeMap<String, Value>) -> Result<String, String> {
    let mut out = text.to_string();
    while let Some(start) = out.find("${") {
        let end = out[start..].find('}').ok_or_else(|| format!("`{text}`: no `}}`"))? + start;
        let name = &out[start + 2..end];
        let value = kept.get(name).ok_or_else(|| format!("nothing is kept as `{name}`"))?;
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        out.replace_range(start..=end, &shown);
    }
    Ok(out)
}

/// Puts the batches of a Fetch answer in a form that can be compared field by field.
fn readable(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| match value.as_str().and_then(from_hex) {
                    Some(bytes) if key == "records" => (key, batch::describe(&bytes)),
                    _ => (key, readable(value)),
                })
                .collect(),
        ),
        Value::Array(elements) => Value::Array(elements.into_iter().map(readable).collect()),
        other => other,
    }
}

/// Shorter texts would be found where they only look alike.
const NAMED_MIN: usize = 8;

/// Puts names in place of kept texts, so that ids of each broker's own making compare as equal.
fn with_names(value: Value, kept: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => {
            let mut out = text;
            for (name, value) in kept {
                match value {
                    Value::String(known) if known.len() >= NAMED_MIN && name.len() > 1 => {
                        out = out.replace(known, &format!("${{{name}}}"));
                    }
                    _ => {}
                }
            }
            Value::String(out)
        }
        Value::Array(elements) => {
            Value::Array(elements.into_iter().map(|e| with_names(e, kept)).collect())
        }
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(k, v)| (k, with_names(v, kept))).collect())
        }
        other => other,
    }
}
