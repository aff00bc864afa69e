//! Names on disk: segment files by base offset, partition directories by topic and number.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use uuid::Uuid;

use crate::common::{Offset, TopicPartition};

/// Longest name a file system takes.
const NAME_BYTES_MAX: usize = 255;
/// What deleted segment files wait under.
pub(super) const DELETED: &str = ".deleted";
/// A segment that the cleaner writes, not whole yet.
pub(super) const CLEANED: &str = ".cleaned";
/// A cleaned segment that is whole and takes the place of those it was made from.
pub(super) const SWAP: &str = ".swap";
const FUTURE: &str = "-future";
pub(super) const EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
pub(super) const PARTITION_METADATA: &str = "partition.metadata";

/// A file of a segment, by its suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Log,
    OffsetIndex,
    TimeIndex,
    TxnIndex,
    /// State of producers before the segment's first record.
    Snapshot,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TxnIndex, Self::Snapshot];

    /// What belongs to the segment's data; the data itself comes first.
    pub(super) const OF_SEGMENT: [Self; 4] =
        [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TxnIndex];

    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TxnIndex => ".txnindex",
            Self::Snapshot => ".snapshot",
        }
    }
}

/// `00000000000000000042.log`
pub(super) fn segment_file(base_offset: Offset, kind: Kind) -> String {
    format!("{base_offset:020}{}", kind.suffix())
}

/// Reads what [`segment_file`] writes; `None` for any other name.
pub(super) fn parse_segment_file(name: &str) -> Option<(Offset, Kind)> {
    let (digits, suffix) = name.split_at_checked(20)?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.suffix() == suffix)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?.zip(Some(kind))
}

/// What a directory beside `meta.properties` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DirName {
    Partition(TopicPartition),
    /// Deleted, its files not yet removed.
    Deleted,
    /// What a move between log directories has copied so far.
    Future(TopicPartition),
    /// Set aside by Kafka (`-stray`).
    Aside,
    Other,
}

pub(super) fn parse_dir(name: &str) -> DirName {
    if name.ends_with("-delete") && name.contains('.') {
        return DirName::Deleted;
    }
    if name.ends_with("-stray") {
        return DirName::Aside;
    }
    if let Some(moving) = name.strip_suffix(FUTURE) {
        let partition = moving.rsplit_once('.').map(|(partition, _)| parse_dir(partition));
        return match partition {
            Some(DirName::Partition(partition)) => DirName::Future(partition),
            _ => DirName::Aside,
        };
    }
    let parsed = name.rsplit_once('-').filter(|(topic, number)| {
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        !topic.is_empty() && !number.is_empty() && digits && *topic != "__cluster_metadata"
    });
    match parsed.and_then(|(topic, number)| Some((topic, number.parse().ok()?))) {
        Some((topic, partition)) => DirName::Partition(TopicPartition::new(topic, partition)),
        None => DirName::Other,
    }
}

/// `<topic>-<partition>.<32 hex digits>-delete`, the topic cut where the name would be too long.
pub(super) fn deleted_dir(partition: &TopicPartition, id: Uuid) -> String {
    let suffix = format!("-{}.{}-delete", partition.partition, id.simple());
    let kept = partition.topic.len().min(NAME_BYTES_MAX - suffix.len());
    format!("{}{suffix}", &partition.topic[..kept])
}

/// `<topic>-<partition>.<32 hex digits>-future`; `None` where the name would be too long.
pub(super) fn future_dir(partition: &TopicPartition, id: Uuid) -> Option<String> {
    let name = format!("{partition}.{}{FUTURE}", id.simple());
    (name.len() <= NAME_BYTES_MAX).then_some(name)
}

/// A log's directory, which a deletion renames under those that still read it.
#[derive(Debug)]
pub(super) struct Place(RwLock<Where>);

#[derive(Debug)]
struct Where {
    dir: PathBuf,
    is_deleted: bool,
}

impl Place {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self(RwLock::new(Where { dir, is_deleted: false }))
    }

    pub(super) fn dir(&self) -> PathBuf {
        self.0.read().unwrap_or_else(PoisonError::into_inner).dir.clone()
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.read().unwrap_or_else(PoisonError::into_inner).dir.join(name)
    }

    /// Runs `act` on the directory, which keeps its name meanwhile.
    pub(super) fn standing<T>(&self, act: impl FnOnce(&Path) -> T) -> T {
        act(&self.0.read().unwrap_or_else(PoisonError::into_inner).dir)
    }

    /// Whether the log as a whole was deleted; its files may be gone.
    pub(super) fn is_deleted(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_deleted
    }

    pub(super) fn segment(&self, base_offset: Offset, kind: Kind) -> PathBuf {
        self.file(&segment_file(base_offset, kind))
    }

    /// Runs `rename`, by which the directory becomes `to`. Whoever could not open a file under the
    /// old name hears from [`Place::is_deleted`] only after it.
    pub(super) fn renamed<E>(
        &self,
        to: &Path,
        is_deleted: bool,
        rename: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
        rename(&place.dir)?;
        *place = Where { dir: to.to_owned(), is_deleted };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_names_are_kafkas_and_read_back() {
        for kind in Kind::ALL {
            assert_eq!(parse_segment_file(&segment_file(170_210, kind)), Some((170_210, kind)));
        }
        assert_eq!(segment_file(42, Kind::Log), "00000000000000000042.log");
        for name in ["42.log", "0000000000000000004x.log", "00000000000000000042.log.deleted", "é"]
        {
            assert_eq!(parse_segment_file(name), None, "{name}");
        }
    }

    #[test]
    fn directories_are_told_apart_as_kafka_does() {
        let partition =
            |topic: &str, number| DirName::Partition(TopicPartition::new(topic, number));
        let table = [
            ("orders-0", partition("orders", 0)),
            ("my-topic.v2-17", partition("my-topic.v2", 17)),
            ("a.b-delete-3", partition("a.b-delete", 3)),
            ("orders-0.3fa85f6457174562b3fc2c963f66afa6-delete", DirName::Deleted),
            (
                "orders-0.3fa85f6457174562b3fc2c963f66afa6-future",
                DirName::Future(TopicPartition::new("orders", 0)),
            ),
            ("orders-future", DirName::Aside),
            ("orders-0.3fa85f6457174562b3fc2c963f66afa6-stray", DirName::Aside),
            ("__cluster_metadata-0", DirName::Other),
            ("__ottla_metadata", DirName::Other),
            ("lost+found", DirName::Other),
            ("orders-99999999999", DirName::Other),
            ("-1", DirName::Other),
        ];
        for (name, is) in table {
            assert_eq!(parse_dir(name), is, "{name}");
        }
    }

    #[test]
    fn a_future_directory_is_read_back_and_never_cut() {
        let partition = TopicPartition::new("a.b-c", 3);
        let name = future_dir(&partition, Uuid::from_u128(1)).unwrap();
        assert_eq!(name, "a.b-c-3.00000000000000000000000000000001-future");
        assert_eq!(parse_dir(&name), DirName::Future(partition));
        let fits = |bytes| {
            let partition = TopicPartition::new("x".repeat(bytes).as_str(), 7);
            future_dir(&partition, Uuid::nil()).is_some()
        };
        assert_eq!((fits(213), fits(214)), (true, false));
    }

    #[test]
    fn a_deleted_directory_of_a_long_topic_still_fits() {
        let long = "x".repeat(249);
        let name = deleted_dir(&TopicPartition::new(long.as_str(), 123), Uuid::nil());
        assert_eq!(name.len(), NAME_BYTES_MAX);
        assert_eq!(parse_dir(&name), DirName::Deleted);
    }
}
