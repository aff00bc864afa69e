//! The table `differential/masks`: what two right answers may differ in, each with its reason.
//!
//! ```text
//! mask    Metadata.clusterId                    each broker makes its own
//! sort    Metadata.topics by name               answered in hash order
//! subset  ApiVersions.apiKeys by apiKey         only keys that Ottla serves are compared
//! own     ListGroups.groups by groupId          groups of earlier cases end at times of their own
//! ```
//! Paths name fields without indexes; `*.port` is a field of every API. A masked field must still have
//! the same type, nullness and array length. `own` keeps, of an answer's array, the elements of the case
//! itself. Sorting orders both sides by fields; `subset` drops
//! elements of Kafka's array whose key the other side does not have.

use serde_json::Value;
use std::path::Path;

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Mask,
    SortBy(String),
    SubsetBy(String),
    OwnBy(String),
}

pub struct Masks {
    rows: Vec<(Rule, String)>,
}

impl Masks {
    pub fn load(path: &Path) -> Result<Masks, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{path:?}: {e}"))?;
        let lines = text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
        let rows: Result<Vec<_>, String> = lines.map(row).collect();
        Ok(Masks { rows: rows? })
    }

    fn rule(&self, api: &str, path: &str) -> Option<&Rule> {
        let full = format!("{api}.{path}");
        let of = |row: &str| match row.strip_prefix("*.") {
            Some(suffix) => path == suffix || path.ends_with(&format!(".{suffix}")),
            None => row == full,
        };
        self.rows.iter().find(|(_, row)| of(row)).map(|(rule, _)| rule)
    }

    /// The answer with only the case's own elements in the arrays that an `own` row names.
    pub fn own(&self, api: &str, case: &str, answer: &Value) -> Value {
        let mut answer = answer.clone();
        for (rule, path) in &self.rows {
            let (Rule::OwnBy(key), Some(field)) = (rule, path.strip_prefix(&format!("{api}.")))
            else {
                continue;
            };
            let fields: Vec<&str> = field.split('.').collect();
            keep_own(&mut answer, &fields, key, case);
        }
        answer
    }

    /// What differs between Kafka's answer and the other broker's, a line each.
    pub fn differences(&self, api: &str, kafka: &Value, other: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.compare(api, "", kafka, other, &mut found);
        found
    }

    /// Whether two answers differ in nothing but fields that a row masks.
    pub fn cover(&self, api: &str, left: &Value, right: &Value) -> bool {
        let bare = Masks { rows: Vec::new() };
        let found = bare.differences(api, left, right);
        found.iter().all(|line| {
            let path = line.split(':').next().unwrap_or_default();
            self.rule(api, path) == Some(&Rule::Mask)
        })
    }

    fn compare(&self, api: &str, path: &str, kafka: &Value, other: &Value, out: &mut Vec<String>) {
        let rule = self.rule(api, path);
        if rule == Some(&Rule::Mask) {
            if shape(kafka) != shape(other) {
                out.push(format!("{path}: Kafka {}, here {}", shape(kafka), shape(other)));
            }
            return;
        }
        match (kafka, other) {
            (Value::Object(left), Value::Object(right)) => {
                for (name, value) in left {
                    let inner =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    match right.get(name) {
                        Some(there) => self.compare(api, &inner, value, there, out),
                        None => out.push(format!("{inner}: missing")),
                    }
                }
                let extra = right.keys().filter(|name| !left.contains_key(*name));
                out.extend(extra.map(|name| format!("{path}.{name}: only here")));
            }
            (Value::Array(left), Value::Array(right)) => {
                let (left, right) = arranged(rule, left, right);
                if left.len() != right.len() {
                    let (l, r) = (brief(&Value::Array(left)), brief(&Value::Array(right)));
                    out.push(format!("{path}: Kafka {l}, here {r}"));
                    return;
                }
                for (left, right) in left.iter().zip(&right) {
                    self.compare(api, path, left, right, out);
                }
            }
            (left, right) if left != right => {
                out.push(format!("{path}: Kafka {}, here {}", brief(left), brief(right)));
            }
            _ => {}
        }
    }
}

fn keep_own(value: &mut Value, fields: &[&str], key: &str, case: &str) {
    let Some((field, rest)) = fields.split_first() else { return };
    let Some(Value::Array(elements)) = value.get_mut(*field) else { return };
    if rest.is_empty() {
        elements.retain(|e| e[key].as_str().is_some_and(|name| name.starts_with(case)));
    }
    elements.iter_mut().for_each(|element| keep_own(element, rest, key, case));
}

/// `rule path [by key] reason`; a row without a reason is refused.
fn row(line: &str) -> Result<(Rule, String), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let key = || words.get(3).map(|key| key.to_string()).ok_or(format!("`{line}`: by what?"));
    let (rule, reason_at) = match words.first() {
        Some(&"mask") => (Rule::Mask, 2),
        Some(&"sort") => (Rule::SortBy(key()?), 4),
        Some(&"subset") => (Rule::SubsetBy(key()?), 4),
        Some(&"own") => (Rule::OwnBy(key()?), 4),
        _ => return Err(format!("`{line}`: mask, sort, subset or own?")),
    };
    match (words.get(1), words.get(reason_at)) {
        (Some(path), Some(_)) => Ok((rule, path.to_string())),
        _ => Err(format!("`{line}`: a row needs a path and a reason")),
    }
}

fn arranged(rule: Option<&Rule>, left: &[Value], right: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let (mut left, mut right) = (left.to_vec(), right.to_vec());
    let (Rule::SortBy(key) | Rule::SubsetBy(key) | Rule::OwnBy(key)) = (match rule {
        Some(rule) => rule,
        None => return (left, right),
    }) else {
        return (left, right);
    };
    // An array of plain values is ordered by the values themselves.
    let keys = |v: &Value| key.split(',').map(|key| v[key].to_string()).collect::<Vec<_>>();
    let of = |v: &Value| if v.is_object() { keys(v) } else { vec![v.to_string()] };
    if matches!(rule, Some(Rule::SubsetBy(_))) {
        let known: Vec<Vec<String>> = right.iter().map(of).collect();
        left.retain(|v| known.contains(&of(v)));
    }
    left.sort_by_key(of);
    right.sort_by_key(of);
    (left, right)
}

fn shape(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "a boolean".into(),
        Value::Number(_) => "a number".into(),
        Value::String(_) => "a text".into(),
        Value::Array(elements) => format!("{} elements", elements.len()),
        Value::Object(_) => "an object".into(),
    }
}

fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mask_keeps_type_nullness_and_length() {
        let masks = Masks {
            rows: vec![(Rule::Mask, "A.x".into()), (Rule::SortBy("n".into()), "A.s".into())],
        };
        #[rustfmt::skip] // columns
        let table = [
            (json!({"x": "a"}),              json!({"x": "b"}),              0),
            (json!({"x": "a"}),              json!({"x": null}),             1),
            (json!({"x": [1]}),              json!({"x": [2]}),              0),
            (json!({"x": [1]}),              json!({"x": [1, 2]}),           1),
            (json!({"y": "a"}),              json!({"y": "b"}),              1),
            (json!({"y": "a"}),              json!({}),                      1),
            (json!({}),                      json!({"y": "a"}),              1),
            (json!({"s": [{"n": 1}, {"n": 2}]}), json!({"s": [{"n": 2}, {"n": 1}]}), 0),
            (json!({"r": [{"n": 1}, {"n": 2}]}), json!({"r": [{"n": 2}, {"n": 1}]}), 2),
        ];
        for (kafka, other, count) in table {
            assert_eq!(masks.differences("A", &kafka, &other).len(), count, "{kafka} {other}");
        }
    }
}
