//! The two smallest files: `partition.metadata`, which names a partition's topic id, and
//! `.kafka_cleanshutdown`, which says that a directory was left in order.

use serde::{Deserialize, Serialize};

use super::checkpoint::Malformed;
use crate::common::TopicId;

pub(super) const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";

pub(super) fn encode_partition_metadata(topic_id: TopicId) -> String {
    format!("version: 0\ntopic_id: {topic_id}")
}

/// `None` for an empty file: a crash took its content.
///
/// # Errors
/// [`Malformed`].
pub(super) fn decode_partition_metadata(text: &str) -> Result<Option<TopicId>, Malformed> {
    if text.trim_matches('\0').is_empty() {
        return Ok(None);
    }
    let wrong = |line, what: String| Malformed { line, what };
    let mut lines = text.lines();
    if lines.next() != Some("version: 0") {
        return Err(wrong(1, "`version: 0` is expected".to_owned()));
    }
    let id = lines.next().and_then(|line| line.strip_prefix("topic_id: "));
    let id = id.ok_or_else(|| wrong(2, "`topic_id: ` is expected".to_owned()))?;
    id.trim_end().parse().map(Some).map_err(|error| wrong(2, format!("{error}")))
}

/// Whether a crash came before all of the file was on the disk: its end is missing, or zeros.
pub(super) fn is_torn_partition_metadata(bytes: &[u8]) -> bool {
    bytes.contains(&0) || bytes.len() < encode_partition_metadata(TopicId::NONE).len()
}

/// The content of `.kafka_cleanshutdown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CleanShutdown {
    version: i32,
    #[serde(rename = "brokerEpoch")]
    pub broker_epoch: i64,
}

impl CleanShutdown {
    pub(super) fn new(broker_epoch: i64) -> Self {
        Self { version: 0, broker_epoch }
    }

    pub(super) fn encode(self) -> String {
        format!(r#"{{"version":{},"brokerEpoch":{}}}"#, self.version, self.broker_epoch)
    }

    /// `None` for what is not such a file: the directory then counts as not stopped cleanly.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok().filter(|read: &Self| read.version == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_metadata_is_kafkas_and_read_back() {
        let id: TopicId = "TwABAgMEBQYHCAkKCwwNDg".parse().expect("an id");
        let text = encode_partition_metadata(id);
        assert_eq!(text, "version: 0\ntopic_id: TwABAgMEBQYHCAkKCwwNDg");
        assert_eq!(decode_partition_metadata(&text), Ok(Some(id)));
        assert_eq!(decode_partition_metadata(&format!("{text}\n")), Ok(Some(id)));
        assert_eq!(decode_partition_metadata(""), Ok(None));
        assert!(!is_torn_partition_metadata(text.as_bytes()));
        assert!(is_torn_partition_metadata(&text.as_bytes()[..42]));
        assert!(is_torn_partition_metadata(&[0; 43]));
        for (text, line) in
            [("version: 1\n", 1), ("version: 0\n", 2), ("version: 0\ntopic_id: x", 2)]
        {
            assert_eq!(decode_partition_metadata(text).expect_err(text).line, line);
        }
    }

    #[test]
    fn clean_shutdown_is_kafkas_json_and_read_back() {
        let clean = CleanShutdown::new(42);
        assert_eq!(clean.encode(), r#"{"version":0,"brokerEpoch":42}"#);
        assert_eq!(CleanShutdown::decode(clean.encode().as_bytes()), Some(clean));
        for text in ["", "\0\0\0", "{", r#"{"version":1,"brokerEpoch":42}"#, r#"{"version":0}"#] {
            assert_eq!(CleanShutdown::decode(text.as_bytes()), None, "{text}");
        }
    }
}
