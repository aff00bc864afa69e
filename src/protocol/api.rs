//! The API keys, said once: every key of Kafka 4.4 by number, and for those served here their
//! versions, first flexible version, listeners and whether the controller answers them.
//! ApiVersions, header decoding, the guard and dispatch derive from this table; a test compares
//! it with a real Kafka.

use std::fmt;

/// Where a key is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// On broker listeners only.
    Broker,
    /// On broker and controller listeners.
    Both,
}

/// What is served of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiRow {
    pub key: ApiKey,
    /// Lowest version that is accepted.
    pub min: i16,
    /// Highest version that is accepted.
    pub max: i16,
    /// First version with compact lengths and tagged fields; `i16::MAX` where none ever has.
    pub flexible_from: i16,
    pub scope: Scope,
    /// Whether a broker passes the request on to the active controller.
    pub forwarded: bool,
}

impl ApiRow {
    /// Whether a request of `version` is accepted.
    pub const fn serves(&self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// Whether `version` has compact lengths and tagged fields.
    pub const fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible_from
    }

    /// Lowest version that ApiVersions names. Produce is named from 0 though 0 to 2 are refused:
    /// librdkafka switches features off otherwise (KAFKA-18659).
    pub const fn advertised_min(&self) -> i16 {
        match self.key {
            ApiKey::Produce => 0,
            _ => self.min,
        }
    }
}

macro_rules! api_keys {
    ($($key:literal $name:ident
        $($min:literal ..= $max:literal $flexible:tt $scope:ident $where:ident)?;)*) => {
        /// A request kind of Kafka 4.4, served or not. `as i16` gives its number on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i16)]
        pub enum ApiKey {
            $($name = $key,)*
        }

        impl ApiKey {
            /// Every key, ascending.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// What is served of this key; nothing is for `None`.
            pub const fn row(self) -> Option<&'static ApiRow> {
                match self {
                    $(Self::$name => api_keys!(
                        @row $name $($min, $max, $flexible, $scope, $where)?
                    ),)*
                }
            }

            /// Kafka's name, without `Request`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }

        impl TryFrom<i16> for ApiKey {
            type Error = UnknownApiKey;

            fn try_from(key: i16) -> Result<Self, UnknownApiKey> {
                match key {
                    $($key => Ok(Self::$name),)*
                    _ => Err(UnknownApiKey(key)),
                }
            }
        }
    };
    (@row $name:ident) => { None };
    (@row $name:ident $min:literal, $max:literal, $flexible:tt, $scope:ident, $where:ident) => {
        Some(&ApiRow {
            key: ApiKey::$name,
            min: $min,
            max: $max,
            flexible_from: api_keys!(@flexible $flexible),
            scope: api_keys!(@scope $scope),
            forwarded: api_keys!(@forwarded $where),
        })
    };
    (@flexible never) => { i16::MAX };
    (@flexible $from:literal) => { $from };
    (@scope broker) => { Scope::Broker };
    (@scope both) => { Scope::Both };
    (@forwarded here) => { false };
    (@forwarded forwarded) => { true };
}

/// A number that is no API key of Kafka 4.4.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
#[error("{0} is not an API key of Kafka 4.4")]
pub struct UnknownApiKey(pub i16);

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The keys that are served, ascending.
pub fn served() -> impl Iterator<Item = &'static ApiRow> {
    ApiKey::ALL.iter().filter_map(|key| key.row())
}

api_keys! {
//  key name                      versions flexible listeners answered
    0   Produce                   3..=13   9      broker  here;
    1   Fetch                     4..=18   12     both    here;
    2   ListOffsets               1..=11   6      broker  here;
    3   Metadata                  0..=13   9      broker  here;
    4   LeaderAndIsr;
    5   StopReplica;
    6   UpdateMetadata;
    7   ControlledShutdown;
    8   OffsetCommit              2..=10   8      broker  here;
    9   OffsetFetch               1..=10   6      broker  here;
    10  FindCoordinator           0..=6    3      broker  here;
    11  JoinGroup                 0..=9    6      broker  here;
    12  Heartbeat                 0..=4    4      broker  here;
    13  LeaveGroup                0..=5    4      broker  here;
    14  SyncGroup                 0..=5    4      broker  here;
    15  DescribeGroups            0..=6    5      broker  here;
    16  ListGroups                0..=5    3      broker  here;
    17  SaslHandshake;
    18  ApiVersions               0..=5    3      both    here;
    19  CreateTopics              2..=7    5      both    forwarded;
    20  DeleteTopics              1..=6    4      both    forwarded;
    21  DeleteRecords             0..=2    2      broker  here;
    22  InitProducerId            0..=5    2      broker  here;
    23  OffsetForLeaderEpoch      2..=4    4      broker  here;
    24  AddPartitionsToTxn;
    25  AddOffsetsToTxn;
    26  EndTxn;
    27  WriteTxnMarkers;
    28  TxnOffsetCommit;
    29  DescribeAcls;
    30  CreateAcls;
    31  DeleteAcls;
    32  DescribeConfigs           1..=4    4      both    here;
    33  AlterConfigs              0..=2    2      both    forwarded;
    34  AlterReplicaLogDirs       1..=2    2      broker  here;
    35  DescribeLogDirs           1..=5    2      broker  here;
    36  SaslAuthenticate;
    37  CreatePartitions          0..=3    2      both    forwarded;
    38  CreateDelegationToken;
    39  RenewDelegationToken;
    40  ExpireDelegationToken;
    41  DescribeDelegationToken;
    42  DeleteGroups              0..=3    2      broker  here;
    43  ElectLeaders;
    44  IncrementalAlterConfigs   0..=1    1      both    forwarded;
    45  AlterPartitionReassignments;
    46  ListPartitionReassignments;
    47  OffsetDelete              0..=0    never  broker  here;
    48  DescribeClientQuotas;
    49  AlterClientQuotas;
    50  DescribeUserScramCredentials;
    51  AlterUserScramCredentials;
    52  Vote;
    53  BeginQuorumEpoch;
    54  EndQuorumEpoch;
    55  DescribeQuorum;
    56  AlterPartition;
    57  UpdateFeatures            0..=2    0      both    forwarded;
    58  Envelope;
    59  FetchSnapshot;
    60  DescribeCluster           0..=2    0      both    here;
    61  DescribeProducers         0..=0    0      broker  here;
    62  BrokerRegistration;
    63  BrokerHeartbeat;
    64  UnregisterBroker;
    65  DescribeTransactions;
    66  ListTransactions;
    67  AllocateProducerIds;
    68  ConsumerGroupHeartbeat    0..=1    0      broker  here;
    69  ConsumerGroupDescribe     0..=1    0      broker  here;
    70  ControllerRegistration;
    71  GetTelemetrySubscriptions;
    72  PushTelemetry;
    73  AssignReplicasToDirs;
    74  ListConfigResources       0..=1    0      broker  here;
    75  DescribeTopicPartitions   0..=0    0      broker  here;
    76  ShareGroupHeartbeat;
    77  ShareGroupDescribe;
    78  ShareFetch;
    79  ShareAcknowledge;
    80  AddRaftVoter;
    81  RemoveRaftVoter;
    82  UpdateRaftVoter;
    83  InitializeShareGroupState;
    84  ReadShareGroupState;
    85  WriteShareGroupState;
    86  DeleteShareGroupState;
    87  ReadShareGroupStateSummary;
    88  StreamsGroupHeartbeat;
    89  StreamsGroupDescribe;
    90  DescribeShareGroupOffsets;
    91  AlterShareGroupOffsets;
    92  DeleteShareGroupOffsets;
    93  StreamsGroupTopologyDescriptionUpdate;
    94  UnregisterController;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_all_keys_and_serves_34_of_them() {
        assert_eq!(served().count(), 34);
        assert!(served().all(|row| row.min <= row.max && row.advertised_min() <= row.min));
        assert_eq!(ApiKey::ALL.len(), 95);
    }

    #[test]
    fn produce_is_named_from_version_0_but_served_from_3() {
        let row = ApiKey::Produce.row().unwrap();
        assert_eq!((row.advertised_min(), row.serves(2), row.serves(3)), (0, false, true));
    }

    #[test]
    fn every_number_from_0_to_94_is_a_key_and_no_other() {
        for key in -1..=95 {
            assert_eq!(
                ApiKey::try_from(key).map(|key| key as i16).ok(),
                (0..95).contains(&key).then_some(key)
            );
        }
    }
}
