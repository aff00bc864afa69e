//! Ottla's own keys; each is shown by DescribeConfigs only when it is set.

use crate::config::table::config_keys;

config_keys! {
    /// What Kafka has no key for.
    OttlaKeys;

    /// Host of the HTTP listener for `/health` and `/metrics`.
    http_host: String = "localhost", NotEmpty;
        key "ottla.http.host", dynamic ReadOnly;
    /// Port of the HTTP listener; 0: a free one, -1: none.
    http_port: i32 = "9664", Between(-1, 65_535);
        key "ottla.http.port", dynamic ReadOnly;
    /// Id of the cluster, 22 characters of base64url; not set: a random one, made on the first
    /// start.
    cluster_id: Option<String> = null, NotEmpty;
        key "ottla.cluster.id", dynamic ReadOnly;
    /// Room on a disk of logs that clients' records may not take, in bytes: below it produce is
    /// refused, so that offsets, indexes and metadata can still be written; 0: none is kept.
    disk_reserve_bytes: i64 = "33554432", AtLeast(0);
        key "ottla.disk.reserve.bytes", dynamic ReadOnly;
    /// What is logged: a level, or targets with levels, such as `warn,ottla::broker=debug`.
    log_filter: String = "info", NotEmpty;
        key "ottla.log.filter", dynamic ReadOnly;
}
