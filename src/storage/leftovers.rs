//! Putting a partition's directory in order before it is opened: what an interrupted change left
//! is finished or undone, as Kafka's suffixes say. `.cleaned`, `.deleted` and `.tmp` go; a `.swap`
//! segment takes the place of those it was made from, if all its files have come that far: files
//! are renamed from `.cleaned` one by one, so while one is left the swap has not begun.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::error::{At, DiskError};
use super::names::{CLEANED, DELETED, EPOCH_CHECKPOINT, Kind, Place, SWAP, parse_segment_file};
use crate::common::Offset;
use crate::env::{Files, OpenMode};
use crate::protocol::batch::BatchHeader;

const TEMPORARY: &str = ".tmp";
/// Read ahead for headers.
const WINDOW_BYTES: usize = 64 << 10;

/// What a partition's directory holds, in order.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub segments: Vec<Listed>,
    /// Offsets of the snapshots.
    pub snapshots: BTreeSet<Offset>,
    pub has_epochs: bool,
}

/// A segment that has data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    pub base: Offset,
    /// Both index files are there.
    pub indexed: bool,
}

/// Cleans the directory up and lists what is left.
///
/// # Errors
/// [`DiskError`].
pub(super) fn tidy(files: &Files, place: &Place) -> Result<Listing, DiskError> {
    let dir = place.dir();
    let mut names: Vec<String> = Vec::new();
    let listed = files.list(&dir).at("list", &dir)?;
    let half = listed.iter().filter_map(|entry| entry.name.strip_suffix(CLEANED));
    let half = half.filter_map(parse_segment_file).map(|(base, _)| base).min();
    let undone = |name: &str| {
        let base = name.strip_suffix(SWAP).and_then(parse_segment_file).map(|(base, _)| base);
        base.zip(half).is_some_and(|(base, half)| base >= half)
    };
    // A `.cleaned` file goes last, since it says that its swap has not begun.
    let (cleaned, listed): (Vec<_>, Vec<_>) =
        listed.into_iter().partition(|entry| entry.name.ends_with(CLEANED));
    for entry in listed.into_iter().chain(cleaned).filter(|entry| !entry.is_dir) {
        let gone = [CLEANED, DELETED, TEMPORARY].iter().any(|end| entry.name.ends_with(end));
        if gone || undone(&entry.name) {
            remove(files, &dir.join(&entry.name))?;
        } else {
            names.push(entry.name);
        }
    }
    if names.iter().any(|name| name.ends_with(SWAP)) {
        finish_swaps(files, &dir, &mut names)?;
    }
    let mut kinds: BTreeMap<Offset, Vec<Kind>> = BTreeMap::new();
    for (base, kind) in names.iter().filter_map(|name| parse_segment_file(name)) {
        kinds.entry(base).or_default().push(kind);
    }
    let has_epochs = names.iter().any(|name| name == EPOCH_CHECKPOINT);
    let mut listing = Listing { has_epochs, ..Listing::default() };
    let newest_snapshot = kinds.iter().rev().find(|(_, kinds)| kinds.contains(&Kind::Snapshot));
    let newest_snapshot = newest_snapshot.map(|(base, _)| *base);
    for (base, kinds) in kinds {
        let has = |kind| kinds.contains(&kind);
        let has_data = has(Kind::Log);
        if has(Kind::Snapshot) && (has_data || newest_snapshot == Some(base)) {
            listing.snapshots.insert(base);
        }
        if has_data {
            let indexed = has(Kind::OffsetIndex) && has(Kind::TimeIndex);
            listing.segments.push(Listed { base, indexed });
            continue;
        }
        // Indexes without data, and snapshots that no segment begins with, but the newest.
        for kind in kinds {
            if kind != Kind::Snapshot || newest_snapshot != Some(base) {
                remove(files, &place.segment(base, kind))?;
            }
        }
    }
    Ok(listing)
}

/// Old segments within the offsets of the swapped-in ones go first; a crash in between finds the
/// swap files again.
fn finish_swaps(files: &Files, dir: &Path, names: &mut Vec<String>) -> Result<(), DiskError> {
    let swapped: Vec<String> =
        names.iter().filter_map(|name| name.strip_suffix(SWAP)).map(str::to_owned).collect();
    for name in &swapped {
        let Some((base, Kind::Log)) = parse_segment_file(name) else { continue };
        let next = next_offset(files, &dir.join(format!("{name}{SWAP}")), base)?;
        for old in names.iter().filter(|old| !old.ends_with(SWAP)) {
            let inside = |(at, kind)| at >= base && at < next && kind != Kind::Snapshot;
            if parse_segment_file(old).is_some_and(inside) {
                remove(files, &dir.join(old))?;
            }
        }
    }
    // The data first: once it has its name, what else is named so is new, too.
    let is_data = |name: &&String| matches!(parse_segment_file(name), Some((_, Kind::Log)));
    let (data, others): (Vec<_>, Vec<_>) = swapped.iter().partition(is_data);
    for name in data.into_iter().chain(others) {
        let (from, to) = (dir.join(format!("{name}{SWAP}")), dir.join(name));
        files.rename(&from, &to).at("rename", &from)?;
    }
    let list = files.list(dir).at("list", dir)?;
    *names = list.into_iter().filter(|entry| !entry.is_dir).map(|entry| entry.name).collect();
    Ok(())
}

/// The offset after the last batch of a swapped-in segment.
fn next_offset(files: &Files, path: &Path, base: Offset) -> Result<Offset, DiskError> {
    let file = files.open(path, OpenMode::Read).at("open", path)?;
    let (mut window, mut position, mut next) = (vec![0; WINDOW_BYTES], 0, base + 1);
    loop {
        let read = file.read_at(&mut window, position).at("read", path)?;
        let mut at = 0;
        while let Ok(header) = BatchHeader::parse(&window[at.min(read)..read]) {
            next = header.next_offset();
            at += header.size_bytes();
        }
        if at == 0 {
            return Ok(next);
        }
        position += at as u64;
    }
}

fn remove(files: &Files, path: &Path) -> Result<(), DiskError> {
    if files.exists(path) {
        files.remove_file(path).at("remove", path)?;
    }
    Ok(())
}
