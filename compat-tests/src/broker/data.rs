//! What stands in a broker's data directory, of partition 0 of a topic.

use std::path::Path;

/// Names of the partition's files, sorted; none where there is no directory.
pub fn files(data: &Path, topic: &str) -> Vec<String> {
    let entries =
        std::fs::read_dir(data.join(format!("{topic}-0"))).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().to_string()).collect();
    names.sort_unstable();
    names
}

/// Base offsets of the segment files with this ending, ascending.
pub fn bases(data: &Path, topic: &str, ending: &str) -> Vec<i64> {
    let names = files(data, topic);
    names.iter().filter_map(|name| name.strip_suffix(ending)?.parse().ok()).collect()
}

/// What a checkpoint file of the directory has of the partition.
pub fn checkpoint(data: &Path, file: &str, topic: &str) -> Option<i64> {
    let text = std::fs::read_to_string(data.join(file)).ok()?;
    let start = format!("{topic} 0 ");
    text.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
}
