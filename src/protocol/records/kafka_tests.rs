//! Records as an Apache Kafka 4.4.0 node wrote them, read and written again.

use bytes::Bytes;

use super::group::GroupRecord;
use super::metadata::MetadataRecord;
use super::txn::TransactionRecord;

fn bytes(hex: &str) -> Bytes {
    let digits = hex.split_whitespace().collect::<String>();
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn kafkas_metadata_records_come_out_as_they_went_in() {
    #[rustfmt::skip]
    let table = [
        // RegisterBroker v4
        "0100040000000100b191efc6dcfb4825b7cba30344415287000000000000000c020a504c41494e544558540a6c6f6361\
         6c686f737472d0000000080e73686172652e76657273696f6e0000000200116d657461646174612e76657273696f6e00\
         0700210021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e0000000100147472616e73\
         616374696f6e2e76657273696f6e00000002001073747265616d732e76657273696f6e00000001000e67726f75702e76\
         657273696f6e00000001000e6b726166742e76657273696f6e000000010000010001001102ce31d76c619b5b864b4d26\
         f4b3fa7948",
        // Topic
        "010200135f5f636f6e73756d65725f6f6666736574732766e9fce2604d14b8f4dcd64265519200",
        // Partition v2
        "01030200000000db93c28198ad494eb0ea4ebb4ffb41d902000000010200000001010100000001000000000000000002\
         ce31d76c619b5b864b4d26f4b3fa794800",
        // Config
        "01040002135f5f636f6e73756d65725f6f66667365747311636f6d7072657373696f6e2e747970650970726f6475636572\
         00",
        // PartitionChange v2
        "010502000000002766e9fce2604d14b8f4dcd642655192040001010104ffffffff0605020000000107050200000001",
        // RemoveTopic
        "0109008dd76052104740ec947373510e0dae5800",
        // FeatureLevel
        "010c0021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e000100",
        // ProducerIds
        "010f0000000001000000000000000c00000000000003e800",
        // NoOp
        "01140000",
    ];
    for hex in table {
        let value = bytes(hex);
        let record = MetadataRecord::decode(&value).unwrap();
        assert_eq!(record.encode().unwrap(), value, "{record:?}");
    }
}

/// Kafka writes the lowest version that has the fields that are set, we always the newest.
#[test]
fn kafkas_registration_changes_of_every_version_are_read() {
    let table = [
        ("01110000000001000000000000000c010001ff", -1, 0, None),
        ("01110100000001000000000000000c01010101", 0, 1, None),
        ("01110300000001000000000000000c01030101", 0, 0, Some(vec![])),
    ];
    for (hex, fenced, in_controlled_shutdown, cordoned) in table {
        let record = MetadataRecord::decode(&bytes(hex)).unwrap();
        let MetadataRecord::BrokerRegistrationChange(change) = &record else {
            panic!("{record:?}");
        };
        assert_eq!(
            (change.fenced, change.in_controlled_shutdown),
            (fenced, in_controlled_shutdown)
        );
        assert_eq!((change.broker_epoch, &change.cordoned_log_dirs), (12, &cordoned));
        assert_eq!(MetadataRecord::decode(&record.encode().unwrap()), Ok(record));
    }
}

#[test]
fn kafkas_group_records_come_out_as_they_went_in() {
    #[rustfmt::skip]
    let table = [
        // an empty group
        ("000200026731", "0003000000000000ffffffff000001a23426187200000000"),
        // a static member with a subscription and an assignment
        ("000200026731",
         "00030008636f6e73756d657200000001000572616e6765002769312d64383136663431302d663466352d343364662d\
          383037632d336131386433353237323832000001a23426187e00000001002769312d64383136663431302d66346635\
          2d343364662d383037632d336131386433353237323832000269310010636f6e736f6c652d636f6e73756d6572000a\
          2f3132372e302e302e31000493e00000afc80000001c00030000000100066f7264657273ffffffff00000000ffffff\
          ffffff0000001e00030000000100066f7264657273000000020000000000000001ffffffff"),
        // a committed offset with its topic's id
        ("00010002673100066f726465727300000000",
         "000400000000000000020000000001000001a2342619e5010010db93c28198ad494eb0ea4ebb4ffb41d9"),
    ];
    for (key, value) in table {
        let (key, value) = (bytes(key), bytes(value));
        let record = GroupRecord::decode(&key, Some(&value)).unwrap();
        assert_eq!(record.encode().unwrap(), (key, Some(value)), "{record:?}");
    }
}

/// A transactional id that is new, then a transaction of a client of version 2 from its begin to its end.
#[test]
fn kafkas_transaction_records_come_out_as_they_went_in() {
    let key = bytes("000000087061796d656e7473");
    #[rustfmt::skip]
    let table = [
        ("Empty",          "0001000000000000000000000000ea600000000001a23afea99bffffffffffffffff010008000000\
                            0000000000"),
        ("Ongoing",        "0001000000000000000000000000ea60010203747403000000010000000200000001a23afeac5800\
                            0001a23afeaa56020008000000000000000002020002"),
        ("PrepareCommit",  "0001000000000000000000010000ea60020203747403000000010000000200000001a23afeada300\
                            0001a23afeaa56020008000000000000000002020002"),
        ("CompleteCommit", "0001000000000000000000010000ea600401000001a23afeada5000001a23afeaa5602000800000000\
                            0000000002020002"),
    ];
    for (state, hex) in table {
        let value = bytes(hex);
        let record = TransactionRecord::decode(&key, Some(&value)).unwrap();
        assert_eq!(record.encode().unwrap(), (key.clone(), Some(value)), "{state}: {record:?}");
    }
}
