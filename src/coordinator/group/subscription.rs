//! What the coordinator may know of the consumer protocol: a subscription's topics. Everything
//! else in a member's metadata, and all of its assignment, is opaque.

use crate::common::TopicName;

/// Protocol type of consumers; groups of other types (Connect) have metadata of their own.
pub const CONSUMER: &str = "consumer";

/// Topics of a `ConsumerProtocolSubscription`: int16 version, then version 0's fields (topics,
/// nullable user data), which every later version begins with.
/// - Returns `None` where the bytes are not that.
pub fn topics(mut metadata: &[u8]) -> Option<Vec<TopicName>> {
    let bytes = &mut metadata;
    let _version = take::<2>(bytes)?;
    let count = i32::from_be_bytes(take(bytes)?);
    let mut topics = Vec::new();
    for _ in 0..usize::try_from(count).ok()? {
        let size = usize::try_from(i16::from_be_bytes(take(bytes)?)).ok()?;
        let (name, rest) = bytes.split_at_checked(size)?;
        topics.push(TopicName::from(std::str::from_utf8(name).ok()?));
        *bytes = rest;
    }
    let user_data = i32::from_be_bytes(take(bytes)?);
    (user_data < 0 || bytes.len() >= user_data as usize).then_some(topics)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_read_from_the_part_that_all_versions_share() {
        let (v0, user_data) = (b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff", b"\0\0\0\0\0\0\0\0\0\x02");
        #[rustfmt::skip]
        let table: [(&[u8], Option<&[&str]>); 8] = [
            (v0,                                                  Some(&["t"])),
            (b"\0\x03\0\0\0\x01\0\x01t\0\0\0\0\0\0\0\0\0\0\0\x01", Some(&["t"])), // later fields follow
            (b"\0\0\0\0\0\0\0\0\0\x01x",                          Some(&[])),
            (user_data,                                           None), // shorter than it says
            (b"",                                                 None),
            (b"\0\0\xff\xff\xff\xff",                             None), // null topics
            (b"\0\0\x7f\xff\xff\xff",                             None),
            (b"\0\0\0\0\0\x01\0\x01\xff\xff\xff\xff\xff",         None), // not UTF-8
        ];
        for (bytes, expected) in table {
            let got = topics(bytes);
            let got: Option<Vec<&str>> = got.as_ref().map(|t| t.iter().map(|n| &**n).collect());
            assert_eq!(got.as_deref(), expected, "{bytes:?}");
        }
    }
}
