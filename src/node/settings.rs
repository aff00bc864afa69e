//! What the rooms are made with, from the configuration.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::common::BrokerId;
use crate::config::{BrokerConfig, Values};
use crate::env::Net;
use crate::metadata::{ConfigResource, Delta, Image};
use crate::net::{ConnectionLimits, Limits};

fn millis(ms: i64) -> Duration {
    Duration::from_millis(ms.max(0) as u64)
}

pub fn connection(config: &BrokerConfig) -> Limits {
    Limits {
        frame_bytes_max: config.network.socket_request_max_bytes,
        idle: millis(config.network.connections_max_idle_ms),
    }
}

pub fn connections(config: &BrokerConfig, net: &Net) -> Arc<ConnectionLimits> {
    let network = &config.network;
    let overrides = network.connection_overrides().unwrap_or_default();
    let resolved = overrides.into_iter().flat_map(|(host, max)| {
        let addresses = net.resolve(&host, 0).into_iter().flatten();
        addresses.map(move |address| (address.ip(), max.max(0) as usize)).collect::<Vec<_>>()
    });
    let overrides: HashMap<IpAddr, usize> = resolved.collect();
    let (all, per_ip) = (network.max_connections, network.max_connections_per_ip);
    ConnectionLimits::new(all.max(0) as usize, per_ip.max(0) as usize, overrides)
}

/// The configuration with the dynamic values of `image`; what is wrong there is told once here.
pub fn with_dynamic(fixed: &BrokerConfig, image: &Image) -> BrokerConfig {
    let values = |resource| -> Values {
        image.configs(&resource).map(|own| (**own).clone()).unwrap_or_default()
    };
    let own = values(ConfigResource::broker(BrokerId(fixed.node.node_id)));
    let (config, refused) = fixed.with_dynamic(&values(ConfigResource::all_brokers()), &own);
    for error in refused {
        tracing::warn!(%error, "dynamic config value left out");
    }
    config
}

/// Whether the step changes a config of brokers.
pub fn changes_brokers(delta: &Delta) -> bool {
    delta.configs().any(|resource| resource.kind == crate::metadata::ConfigKind::Broker)
}
