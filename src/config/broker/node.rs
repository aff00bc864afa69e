//! Who the node is, and where it listens.

use crate::config::table::config_keys;

config_keys! {
    /// Identity, roles, listeners and the quorum, as written; `Listeners` has them parsed.
    NodeKeys;

    /// Number of this node, the same after each start.
    node_id: i32 = required, AtLeast(0);
        key "node.id", dynamic ReadOnly;
    /// Old name of `node.id`; the two must not differ.
    broker_id: i32 = "-1", Any;
        key "broker.id", dynamic ReadOnly;
    /// What the node is: broker, controller, or both.
    process_roles: Vec<String> = required, SomeOf(&["broker", "controller"]);
        key "process.roles", dynamic ReadOnly;
    /// Where this broker stands; consumers may read from replicas in their own rack.
    rack: Option<String> = null, Any;
        key "broker.rack", dynamic ReadOnly;
    /// Addresses to listen on, `NAME://host:port` separated by commas; an empty host is every
    /// address of the machine, port 0 a free one.
    listeners: Vec<String> = "PLAINTEXT://:9092", NotEmptyList;
        key "listeners", dynamic PerBroker;
    /// Addresses that clients are told, by listener; not set: those of `listeners`.
    advertised_listeners: Option<Vec<String>> = null, NotEmptyList;
        key "advertised.listeners", dynamic ReadOnly;
    /// Security protocol of each listener name.
    listener_security_protocol_map: String =
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", Any;
        key "listener.security.protocol.map", dynamic PerBroker;
    /// Listener that other brokers use; not set: by `security.inter.broker.protocol`.
    inter_broker_listener_name: Option<String> = null, Any;
        key "inter.broker.listener.name", dynamic ReadOnly;
    /// Security protocol between brokers, when `inter.broker.listener.name` is not set.
    security_inter_broker_protocol: String =
        "PLAINTEXT", OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]);
        key "security.inter.broker.protocol", dynamic ReadOnly;
    /// Listeners of the controller.
    controller_listener_names: Vec<String> = required, NotEmptyList;
        key "controller.listener.names", dynamic ReadOnly;
    /// Controllers of the quorum, `id@host:port` separated by commas.
    controller_quorum_voters: Vec<String> = "", Any;
        key "controller.quorum.voters", dynamic ReadOnly;
    /// Directory of the metadata log; not set: the first of `log.dirs`.
    metadata_log_dir: Option<String> = null, Any;
        key "metadata.log.dir", dynamic ReadOnly;
    /// After how long without a heartbeat a broker is fenced, in milliseconds.
    broker_session_timeout_ms: i32 = "9000", Any;
        key "broker.session.timeout.ms", dynamic ReadOnly;
}
