//! Sockets, connections and requests.

use crate::config::ConfigError;
use crate::config::table::config_keys;

config_keys! {
    /// Limits of listeners and connections.
    NetworkKeys;

    /// Connections that wait for nothing are closed after so many milliseconds.
    connections_max_idle_ms: i64 = "600000", Any;
        key "connections.max.idle.ms", dynamic ReadOnly;
    /// Most connections at a time.
    max_connections: i32 = "2147483647", AtLeast(0);
        key "max.connections", dynamic ClusterWide;
    /// Most connections at a time from one address.
    max_connections_per_ip: i32 = "2147483647", AtLeast(0);
        key "max.connections.per.ip", dynamic ClusterWide;
    /// Exceptions from `max.connections.per.ip`, `host:number` separated by commas.
    max_connections_per_ip_overrides: String = "", Any;
        key "max.connections.per.ip.overrides", dynamic ClusterWide;
    /// Largest request in bytes; a larger one closes the connection.
    socket_request_max_bytes: i32 = "104857600", AtLeast(1);
        key "socket.request.max.bytes", dynamic ReadOnly;
    /// Bytes of requests in memory at which reading pauses; -1: no limit.
    queued_max_request_bytes: i64 = "-1", Any;
        key "queued.max.request.bytes", dynamic ReadOnly;
    /// Connections that may wait to be accepted.
    socket_listen_backlog_size: i32 = "50", AtLeast(1);
        key "socket.listen.backlog.size", dynamic ReadOnly;
    /// How long an answer may wait for another node, in milliseconds.
    request_timeout_ms: i32 = "30000", Any;
        key "request.timeout.ms", dynamic ReadOnly;
    /// Most bytes of records in an answer to Fetch, whatever the client asks for.
    fetch_max_bytes: i32 = "57671680", AtLeast(1024);
        key "fetch.max.bytes", dynamic ReadOnly;
    /// Fetch sessions kept at a time.
    max_incremental_fetch_session_cache_slots: i32 = "1000", AtLeast(0);
        key "max.incremental.fetch.session.cache.slots", dynamic ReadOnly;
    /// Most partitions in an answer to DescribeTopicPartitions.
    max_request_partition_size_limit: i32 = "2000", AtLeast(1);
        key "max.request.partition.size.limit", dynamic ReadOnly;
}

impl NetworkKeys {
    /// `max.connections.per.ip.overrides` by host.
    ///
    /// # Errors
    /// [`ConfigError`] for an entry that is not `host:number`.
    pub fn connection_overrides(&self) -> Result<Vec<(String, i32)>, ConfigError> {
        let text = &self.max_connections_per_ip_overrides;
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries
            .map(|entry| {
                let (host, number) = entry.rsplit_once(':')?;
                Some((host.trim().to_owned(), number.trim().parse().ok()?))
            })
            .collect::<Option<_>>()
            .ok_or_else(|| {
                let name = "max.connections.per.ip.overrides";
                ConfigError::value(name, text, "Each entry must be in the form host:number")
            })
    }
}
