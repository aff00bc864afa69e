//! Reads Kafka's message schemas (`common/message/*.json` of the jars, unpacked by `setup`).

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// An inclusive range of versions; `NONE` contains nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    pub min: i16,
    pub max: i16,
}

impl Versions {
    pub const NONE: Versions = Versions { min: 0, max: -1 };

    pub fn contains(&self, version: i16) -> bool {
        (self.min..=self.max).contains(&version)
    }

    /// Parses `3`, `0-9`, `2+` and `none`.
    fn parse(text: &str) -> Versions {
        let number = |part: &str| part.trim().parse::<i16>().ok();
        match text.trim() {
            "none" | "" => Versions::NONE,
            open if open.ends_with('+') => {
                Versions { min: number(&open[..open.len() - 1]).unwrap_or(0), max: i16::MAX }
            }
            text => match text.split_once('-') {
                Some((min, max)) => {
                    Versions { min: number(min).unwrap_or(0), max: number(max).unwrap_or(-1) }
                }
                None => number(text).map_or(Versions::NONE, |v| Versions { min: v, max: v }),
            },
        }
    }
}

#[derive(Debug, Clone)]
pub enum Kind {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    Uuid,
    String,
    Bytes,
    Records,
    Struct(Vec<Field>),
    Array(Box<Kind>),
}

#[derive(Debug, Clone)]
pub struct Field {
    /// As in Kafka's JSON form: the first letter is lower case.
    pub name: String,
    pub kind: Kind,
    pub versions: Versions,
    pub nullable: Versions,
    /// The tag and the versions in which the field is a tagged one.
    pub tagged: Option<(u32, Versions)>,
    /// The `default` of the schema, if it has one.
    pub default: Option<Value>,
    /// Versions with compact lengths, where they differ from the message's.
    pub flexible: Option<Versions>,
}

#[derive(Debug, Clone)]
pub struct Message {
    pub name: String,
    /// The API key of requests and responses, the record type of records.
    pub key: Option<i16>,
    /// `request`, `response`, `header`, `metadata`, `coordinator-key`, `coordinator-value`, `data`.
    pub kind: String,
    /// What a release serves.
    pub valid: Versions,
    /// What the file says, an unstable newest version included.
    pub declared: Versions,
    pub flexible: Versions,
    pub fields: Vec<Field>,
}

/// All schemas of one Kafka release.
pub struct Schemas {
    by_name: BTreeMap<String, Message>,
}

impl Schemas {
    /// - `folder`: holds the `.json` files, in any subfolders.
    pub fn load(folder: &Path) -> Result<Schemas, String> {
        let mut by_name = BTreeMap::new();
        for path in json_files(folder)? {
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{path:?}: {e}"))?;
            let value: Value = serde_json::from_str(&without_comments(&text))
                .map_err(|e| format!("{path:?}: {e}"))?;
            let message = message(&value).ok_or_else(|| format!("{path:?}: not a schema"))?;
            by_name.insert(message.name.clone(), message);
        }
        if by_name.is_empty() {
            return Err(format!("no schemas in {folder:?}; run compat-tests/setup"));
        }
        Ok(Schemas { by_name })
    }

    /// An array of messages in the words of Kafka's files, as Ottla prints its own table.
    pub fn parse(text: &str) -> Result<Schemas, String> {
        let all: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let messages = all.as_array().ok_or("not an array of messages")?.iter();
        let named = messages.map(|value| {
            let message = message(value).ok_or_else(|| format!("not a message: {value}"))?;
            Ok((message.name.clone(), message))
        });
        Ok(Schemas { by_name: named.collect::<Result<_, String>>()? })
    }

    pub fn get(&self, name: &str) -> Option<&Message> {
        self.by_name.get(name)
    }

    /// The request of an API called by its bare name, as in `Metadata`.
    pub fn request(&self, api: &str) -> Result<&Message, String> {
        self.get(&format!("{api}Request")).ok_or_else(|| format!("no API is called {api}"))
    }

    pub fn response(&self, api: &str) -> Result<&Message, String> {
        self.get(&format!("{api}Response")).ok_or_else(|| format!("no API is called {api}"))
    }

    /// The bare name of an API key.
    pub fn api(&self, key: i16) -> Option<&str> {
        self.by_name
            .values()
            .find(|m| m.kind == "request" && m.key == Some(key))
            .map(|m| m.name.trim_end_matches("Request"))
    }

    pub fn all(&self) -> impl Iterator<Item = &Message> {
        self.by_name.values()
    }
}

fn json_files(folder: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{folder:?}: {e}"))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(json_files(&path)?);
        } else if path.extension().is_some_and(|e| e == "json") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Drops `//` comments; no schema has `//` inside a string of the fields that are read here.
fn without_comments(text: &str) -> String {
    text.lines()
        .map(|line| match line.find("//") {
            Some(at) if line[..at].matches('"').count() % 2 == 0 => &line[..at],
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn message(value: &Value) -> Option<Message> {
    let kind = value["type"].as_str().unwrap_or_default().to_string();
    let common = value["commonStructs"].as_array().cloned().unwrap_or_default();
    let declared = Versions::parse(value["validVersions"].as_str().unwrap_or("none"));
    let mut valid = declared;
    if value["latestVersionUnstable"] == true {
        valid.max -= 1; // not advertised without a setting for developers
    }
    Some(Message {
        name: value["name"].as_str()?.to_string(),
        key: value["apiKey"].as_i64().map(|k| k as i16),
        kind,
        valid,
        declared,
        flexible: Versions::parse(value["flexibleVersions"].as_str().unwrap_or("none")),
        fields: fields(&value["fields"], &common, 0)?,
    })
}

/// Struct types may refer to each other; deeper than this none of Kafka's do.
const DEPTH_MAX: usize = 12;

fn fields(value: &Value, common: &[Value], depth: usize) -> Option<Vec<Field>> {
    if depth > DEPTH_MAX {
        return Some(Vec::new());
    }
    // Retired messages have no fields at all.
    let fields = value.as_array().map_or(&[][..], Vec::as_slice);
    fields.iter().map(|f| field(f, common, depth)).collect()
}

fn field(value: &Value, common: &[Value], depth: usize) -> Option<Field> {
    let name = value["name"].as_str()?;
    let range = |key: &str| value[key].as_str().map_or(Versions::NONE, Versions::parse);
    // A field that is always tagged may have no other versions.
    let tagged = value["taggedVersions"].as_str().map(Versions::parse);
    let versions = tagged.filter(|_| value["versions"].is_null());
    let versions = versions.unwrap_or_else(|| range("versions"));
    let tagged_in = tagged.unwrap_or(versions);
    let tagged = value["tag"].as_u64().map(|tag| (tag as u32, tagged_in));
    Some(Field {
        name: lower_first(name),
        kind: kind(value["type"].as_str()?, &value["fields"], common, depth)?,
        versions,
        nullable: range("nullableVersions"),
        tagged,
        default: value.get("default").cloned(),
        flexible: value["flexibleVersions"].as_str().map(Versions::parse),
    })
}

fn kind(name: &str, inner: &Value, common: &[Value], depth: usize) -> Option<Kind> {
    if let Some(element) = name.strip_prefix("[]") {
        return Some(Kind::Array(Box::new(kind(element, inner, common, depth)?)));
    }
    Some(match name {
        "bool" => Kind::Bool,
        "int8" => Kind::Int8,
        "int16" => Kind::Int16,
        "uint16" => Kind::Uint16,
        "int32" => Kind::Int32,
        "uint32" => Kind::Uint32,
        "int64" => Kind::Int64,
        "float64" => Kind::Float64,
        "uuid" => Kind::Uuid,
        "string" => Kind::String,
        "bytes" => Kind::Bytes,
        "records" => Kind::Records,
        _ if inner.is_array() => Kind::Struct(fields(inner, common, depth + 1)?),
        _ => {
            let shared = common.iter().find(|c| c["name"].as_str() == Some(name))?;
            Kind::Struct(fields(&shared["fields"], common, depth + 1)?)
        }
    })
}

fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_lowercase().collect::<String>() + letters.as_str())
}
