//! The house rules as a test (`cargo test tidy`): sizes, imports, unsafe, heads, exemptions.
//! A failure names the way out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::env::Files;

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const EXEMPTIONS_MAX: usize = 10;

/// Each room with its floor and the rooms that it may import; `node`, `cli` and `main` wire all.
#[rustfmt::skip]
const ROOMS: &[(&str, u8, &[&str])] = &[
    ("common",      0, &[]),
    ("env",         0, &["common"]),
    ("protocol",    1, &["env", "common"]),
    ("config",      1, &["common"]),
    ("telemetry",   1, &["common"]),
    ("storage",     2, &["protocol", "config", "telemetry", "env", "common"]),
    ("machine",     2, &["env", "common"]),
    ("security",    2, &["protocol", "config", "common"]),
    ("net",         3, &["protocol", "security", "config", "telemetry", "env", "common"]),
    ("metadata",    3, &["machine", "protocol", "config", "common"]),
    ("replica",     4, &["storage", "machine", "metadata", "protocol", "config", "telemetry", "env", "common"]),
    ("quorum",      4, &["machine", "protocol", "config", "telemetry", "env", "common"]),
    ("controller",  4, &["machine", "metadata", "protocol", "config", "telemetry", "env", "common"]),
    ("coordinator", 5, &["machine", "metadata", "protocol", "config", "telemetry", "env", "common"]),
    ("broker",      6, &["coordinator", "replica", "controller", "metadata", "net", "security", "machine", "storage", "protocol", "config", "telemetry", "env", "common"]),
    ("http",        7, &["telemetry", "env", "common"]),
    ("cli",         8, &["config", "protocol", "telemetry", "env", "common"]),
    ("fuzz",        8, &["protocol", "config", "storage", "quorum", "env"]),
    ("node",        8, &["broker", "http", "coordinator", "replica", "quorum", "controller", "metadata", "net", "security", "machine", "storage", "protocol", "config", "telemetry", "env", "common", "cli"]),
];

/// Every `allow`, `expect` of a lint, and exception to a rule here, with its reason.
#[rustfmt::skip]
const EXEMPTIONS: &[(&str, &str, &str)] = &[
    ("env/mod.rs", "disallowed_methods", "the doors are where the originals are used"),
];

struct Source {
    /// Relative to `src/`.
    path: String,
    room: String,
    lines: Vec<String>,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut dirs: Vec<PathBuf> = vec![root.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in Files::Real.list(&dir).expect("source directory") {
            let path = dir.join(&entry.name);
            if entry.is_dir {
                dirs.push(path);
            } else if entry.name.ends_with(".rs") {
                let relative = path.strip_prefix(&root).expect("below src").display().to_string();
                let text =
                    String::from_utf8(Files::Real.read(&path).expect("source")).expect("UTF-8");
                let room = relative.split('/').next().unwrap_or_default().trim_end_matches(".rs");
                let room = room.to_owned();
                found.push(Source {
                    path: relative,
                    room,
                    lines: text.lines().map(str::to_owned).collect(),
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn complain(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn files_and_functions_can_be_read_in_one_sitting() {
    let mut problems = Vec::new();
    for source in sources() {
        if source.lines.len() > FILE_LINES_MAX {
            let lines = source.lines.len();
            problems.push(format!(
                "src/{}: {lines} lines, {FILE_LINES_MAX} allowed; split it",
                source.path
            ));
        }
        for (line, length) in long_functions(&source.lines) {
            problems.push(format!(
                "src/{}:{line}: a function of {length} lines, {FUNCTION_LINES_MAX} allowed; take a part out",
                source.path
            ));
        }
    }
    complain(&problems);
}

/// Functions over the limit as (line, length); relies on rustfmt's indentation.
fn long_functions(lines: &[String]) -> Vec<(usize, usize)> {
    let mut long = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let body = line.trim_start();
        let indent = line.len() - body.len();
        let is_function = body.starts_with("fn ")
            || [" fn ", ")fn "].iter().any(|f| {
                let head = body.split(['(', '"', '/']).next().unwrap_or_default();
                (head.starts_with("pub")
                    || head.starts_with("async")
                    || head.starts_with("const")
                    || head.starts_with("unsafe"))
                    && body.contains(f)
            });
        // A declaration in a trait has no body.
        let head = lines[start..].iter().find(|line| line.ends_with('{') || line.ends_with(';'));
        if !is_function || head.is_none_or(|head| head.ends_with(';')) {
            continue;
        }
        let closing = format!("{}}}", " ".repeat(indent));
        let end = lines[start..].iter().position(|l| *l == closing);
        if let Some(length) = end.map(|end| end + 1).filter(|length| *length > FUNCTION_LINES_MAX) {
            long.push((start + 1, length));
        }
    }
    long
}

#[test]
fn rooms_import_only_what_the_table_allows() {
    let table: BTreeMap<&str, (u8, &[&str])> =
        ROOMS.iter().map(|(r, f, i)| (*r, (*f, *i))).collect();
    let mut problems = Vec::new();
    for source in sources() {
        if ["lib", "main", "tidy"].contains(&source.room.as_str()) {
            continue;
        }
        let Some((floor, allowed)) = table.get(source.room.as_str()) else {
            problems.push(format!(
                "src/{}: room `{}` is not in the table of tidy.rs",
                source.path, source.room
            ));
            continue;
        };
        for (number, room) in imports(&source.lines) {
            if room == source.room || allowed.contains(&room.as_str()) {
                continue;
            }
            let other = table.get(room.as_str()).map_or(255, |(floor, _)| *floor);
            problems.push(format!(
                "src/{}:{number}: {} (floor {floor}) imports {room} (floor {other}); take what you need as an argument",
                source.path, source.room
            ));
        }
    }
    complain(&problems);
}

fn imports(lines: &[String]) -> BTreeSet<(usize, String)> {
    let mut found = BTreeSet::new();
    for (number, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        for part in code.split("crate::").skip(1) {
            let room: String =
                part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if part[room.len()..].starts_with("::") || part[room.len()..].starts_with(';') {
                found.insert((number + 1, room));
            }
        }
    }
    found
}

#[test]
fn the_table_has_no_circle_and_points_down() {
    let floors: BTreeMap<&str, u8> = ROOMS.iter().map(|(room, floor, _)| (*room, *floor)).collect();
    let order: BTreeMap<&str, usize> =
        ROOMS.iter().enumerate().map(|(at, (room, ..))| (*room, at)).collect();
    for (room, floor, allowed) in ROOMS {
        for other in *allowed {
            assert!(floors[other] <= *floor, "{room} may import {other}, which is above it");
            assert!(
                *room == "node" || order[other] < order[room],
                "{room} and {other} could form a circle"
            );
        }
    }
}

#[test]
fn unsafe_reexports_and_exemptions_stay_where_they_are_listed() {
    let mut problems = Vec::new();
    let mut listed: BTreeSet<usize> = BTreeSet::new();
    assert!(
        EXEMPTIONS.len() <= EXEMPTIONS_MAX,
        "{} exemptions, {EXEMPTIONS_MAX} allowed",
        EXEMPTIONS.len()
    );
    for source in sources().iter().filter(|source| source.path != "tidy.rs") {
        if source.path.ends_with("mod.rs")
            && !source.lines.first().is_some_and(|l| l.starts_with("//! "))
        {
            problems.push(format!(
                "src/{}: a room starts with a `//!` head that says what lives there",
                source.path
            ));
        }
        for (number, line) in source.lines.iter().enumerate() {
            let at = format!("src/{}:{}", source.path, number + 1);
            let code = line.split("//").next().unwrap_or_default();
            if source.path == "lib.rs" && code.contains("pub use") {
                problems
                    .push(format!("{at}: no re-export at the crate root; import from the room"));
            }
            let is_unsafe =
                ["unsafe {", "unsafe fn", "unsafe impl"].iter().any(|word| code.contains(word));
            if is_unsafe && source.path != "storage/mmap.rs" {
                problems.push(format!("{at}: `unsafe` lives in storage/mmap.rs only"));
            }
            if !code.contains("allow(") && !code.contains("expect(clippy") {
                continue;
            }
            let exemption = EXEMPTIONS
                .iter()
                .position(|(path, lint, _)| source.path == *path && code.contains(lint));
            match exemption {
                Some(found) => _ = listed.insert(found),
                None if code.trim_start().starts_with('#') => {
                    problems.push(format!(
                        "{at}: `{}` is not in tidy's list of exemptions",
                        code.trim()
                    ));
                }
                None => {}
            }
        }
    }
    for (at, (path, lint, _)) in
        EXEMPTIONS.iter().enumerate().filter(|(at, _)| !listed.contains(at))
    {
        problems.push(format!(
            "tidy.rs: exemption {at} ({path}, {lint}) is not used any more; drop it"
        ));
    }
    complain(&problems);
}

#[test]
fn tidy_itself_sees_what_it_looks_for() {
    let long = format!("fn f() {{\n{}}}", "    x();\n".repeat(FUNCTION_LINES_MAX));
    let lines: Vec<String> = long.lines().map(str::to_owned).collect();
    assert_eq!(long_functions(&lines), [(1, FUNCTION_LINES_MAX + 2)]);
    let lines = ["use crate::replica::Partition; // crate::quorum::X".to_owned()];
    assert_eq!(imports(&lines), BTreeSet::from([(1, "replica".to_owned())]));
}
