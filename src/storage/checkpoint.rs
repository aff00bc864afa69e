//! Kafka's checkpoint text: a line with the version 0, a line with the count, then the rows.
//! `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`,
//! `replication-offset-checkpoint` and `cleaner-offset-checkpoint` hold `topic partition offset` rows.

use std::collections::BTreeMap;

use crate::common::{Offset, TopicPartition};

pub(super) const RECOVERY_POINT: &str = "recovery-point-offset-checkpoint";
pub(super) const LOG_START: &str = "log-start-offset-checkpoint";
pub(super) const CLEANER: &str = "cleaner-offset-checkpoint";
pub(super) const REPLICATION: &str = "replication-offset-checkpoint";

const VERSION: &str = "0";

/// Why a text file of ours cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Malformed {
    pub line: usize,
    pub what: String,
}

pub(super) fn encode(rows: impl ExactSizeIterator<Item = String>) -> Vec<u8> {
    let mut out = format!("{VERSION}\n{}\n", rows.len());
    for row in rows {
        out.push_str(&row);
        out.push('\n');
    }
    out.into_bytes()
}

/// The rows with their line numbers.
///
/// # Errors
/// [`Malformed`]: another version, or more or fewer rows than announced.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<(usize, &str)>, Malformed> {
    let wrong = |line, what: &str| Malformed { line, what: what.to_owned() };
    let text = std::str::from_utf8(bytes).map_err(|_| wrong(1, "not text"))?;
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    if lines.next().is_none_or(|(_, line)| line != VERSION) {
        return Err(wrong(1, "the version 0 is expected"));
    }
    let count = lines.next().and_then(|(_, line)| line.parse::<usize>().ok());
    let count = count.ok_or_else(|| wrong(2, "the number of rows is expected"))?;
    let rows: Vec<(usize, &str)> = lines.collect();
    if rows.len() != count {
        return Err(wrong(2, &format!("{count} rows are announced, {} are there", rows.len())));
    }
    Ok(rows)
}

/// Offsets by partition.
pub(super) type Offsets = BTreeMap<TopicPartition, Offset>;

pub(super) fn encode_offsets(offsets: &Offsets) -> Vec<u8> {
    encode(offsets.iter().map(|(at, offset)| format!("{} {} {offset}", at.topic, at.partition)))
}

/// # Errors
/// [`Malformed`].
pub(super) fn decode_offsets(bytes: &[u8]) -> Result<Offsets, Malformed> {
    let mut offsets = Offsets::new();
    for (number, line) in decode(bytes)? {
        let wrong = || Malformed { line: number, what: format!("`{line}` is no offset entry") };
        let mut words = line.split(' ');
        let (Some(topic), Some(partition), Some(offset), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(wrong());
        };
        let partition = partition.parse().map_err(|_| wrong())?;
        let offset = offset.parse().map_err(|_| wrong())?;
        offsets.insert(TopicPartition::new(topic, partition), offset);
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_kafkas() {
        let offsets = [(TopicPartition::new("orders", 3), 42), (TopicPartition::new("a", 0), 7)];
        let offsets: Offsets = offsets.into_iter().collect();
        assert_eq!(encode_offsets(&offsets), b"0\n2\na 0 7\norders 3 42\n");
        assert_eq!(encode_offsets(&Offsets::new()), b"0\n0\n");
    }

    #[test]
    fn damage_is_told_with_its_line() {
        #[rustfmt::skip]
        let table: [(&[u8], usize); 7] = [
            (b"",                     1),
            (b"1\n0\n",               1),
            (b"0\n",                  2),
            (b"0\n2\na 0 7\n",        2),
            (b"0\n1\na 0\n",          3),
            (b"0\n2\na 0 7\na x 7\n", 4),
            (b"0\n1\na 0 7 7\n",      3),
        ];
        for (bytes, line) in table {
            let error = decode_offsets(bytes).expect_err("damaged");
            assert_eq!(error.line, line, "{}: {error}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(rows in proptest::collection::btree_map(("[a-z.-]{1,5}", 0i32..9), 0i64.., 0..9)) {
            let offsets: Offsets = rows.into_iter().map(|((topic, partition), offset)| (TopicPartition::new(topic, partition), offset)).collect();
            prop_assert_eq!(decode_offsets(&encode_offsets(&offsets)), Ok(offsets));
        }
    }
}
