//! `meta.properties`: whose directory it is. Java properties: `version`, `cluster.id`, `node.id`
//! (`broker.id` in version 0) and `directory.id`. Ours begin with a comment that has a checksum.

use uuid::Uuid;

use super::checkpoint::Malformed;
use crate::common::{BrokerId, format_uuid, parse_uuid};

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MetaProperties {
    pub cluster_id: String,
    pub node_id: BrokerId,
    /// `None` in files of before Kafka 3.7.
    pub directory_id: Option<Uuid>,
}

impl MetaProperties {
    pub(super) fn encode(&self) -> String {
        let mut rows = format!("cluster.id={}\n", escaped(&self.cluster_id));
        if let Some(id) = self.directory_id {
            rows.push_str(&format!("directory.id={}\n", format_uuid(id)));
        }
        rows.push_str(&format!("node.id={}\nversion=1\n", self.node_id));
        format!("{CRC_LINE}{:08x}\n{rows}", crc_of_rows(&rows))
    }

    /// Reads what [`MetaProperties::encode`] or Kafka writes.
    ///
    /// # Errors
    /// [`Malformed`]: a key is missing or its value is not what it must be.
    pub(super) fn decode(text: &str) -> Result<Self, Malformed> {
        let mut version = None;
        let (mut cluster_id, mut node_id, mut directory_id) = (None, None, None);
        for (at, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if let Some(crc) = line.strip_prefix(CRC_LINE)
                && u32::from_str_radix(crc, 16) != Ok(crc_of_rows(text))
            {
                let what = "the rows have another checksum than this line says; if they were \
                            edited on purpose, remove it";
                return Err(Malformed { line: at + 1, what: what.to_owned() });
            }
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let wrong = |what: &str| Malformed { line: at + 1, what: what.to_owned() };
            let (key, value) =
                line.split_once(['=', ':']).ok_or_else(|| wrong("no `key=value`"))?;
            let value = unescaped(value.trim());
            match key.trim() {
                "version" => version = Some(value),
                "cluster.id" => cluster_id = Some(value),
                "node.id" | "broker.id" => {
                    let id = value.parse().map_err(|_| wrong("the node id is not a number"))?;
                    node_id = Some(BrokerId(id));
                }
                "directory.id" => {
                    let id = parse_uuid(&value).map_err(|error| wrong(&error.to_string()))?;
                    directory_id = Some(id);
                }
                _ => {}
            }
        }
        let missing = |key| move || Malformed { line: 1, what: format!("`{key}` is missing") };
        if version.as_deref().is_some_and(|version| version != "0" && version != "1") {
            return Err(Malformed { line: 1, what: "`version` is neither 0 nor 1".to_owned() });
        }
        Ok(Self {
            cluster_id: cluster_id.ok_or_else(missing("cluster.id"))?,
            node_id: node_id.ok_or_else(missing("node.id"))?,
            directory_id,
        })
    }
}

/// A comment to Kafka; a file without it is believed as it is.
const CRC_LINE: &str = "#crc32c=";

/// CRC-32C of all rows but comments.
fn crc_of_rows(text: &str) -> u32 {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.fold(0, |crc, row| {
        crc32c::crc32c_append(crc32c::crc32c_append(crc, row.as_bytes()), b"\n")
    })
}

fn escaped(value: &str) -> String {
    let escape = |c: char| if "=:#!\\".contains(c) { format!("\\{c}") } else { c.to_string() };
    value.chars().map(escape).collect()
}

fn unescaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut escape = false;
    for c in value.chars() {
        escape = c == '\\' && !escape;
        if !escape {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> MetaProperties {
        MetaProperties {
            cluster_id: "MkU3OEVBNTcwNTJENDM2Qk".to_owned(),
            node_id: BrokerId(1),
            directory_id: Some(Uuid::from_u128(7)),
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_is_java_properties() {
        let text = sample().encode();
        assert_eq!(
            text,
            "#crc32c=14d7568d\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\ndirectory.id=AAAAAAAAAAAAAAAAAAAABw\n\
             node.id=1\nversion=1\n"
        );
        assert_eq!(MetaProperties::decode(&text), Ok(sample()));
        let odd = MetaProperties { cluster_id: "a=b:c\\d#".to_owned(), ..sample() };
        assert_eq!(MetaProperties::decode(&odd.encode()), Ok(odd));
    }

    #[test]
    fn files_of_older_kafka_are_read() {
        let text = "#\n#Mon Jan 01 00:00:00 UTC 2024\nbroker.id=3\nversion=0\ncluster.id=x\n";
        let read = MetaProperties::decode(text).expect("version 0");
        assert_eq!((read.node_id, read.directory_id), (BrokerId(3), None));
    }

    #[test]
    fn damage_is_told_with_its_line() {
        #[rustfmt::skip]
        let table = [
            ("",                                   1),
            ("version=1\ncluster.id=x\n",          1),
            ("version=1\nnode.id=one\n",           2),
            ("version=9\nnode.id=1\ncluster.id=x", 1),
            ("node.id=1\n\ndirectory.id=zz\n",     3),
            ("version=1\nnonsense\n",              2),
        ];
        for (text, line) in table {
            assert_eq!(MetaProperties::decode(text).expect_err(text).line, line, "{text}");
        }
    }
}
