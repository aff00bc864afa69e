//! The config room's tables as the controller's [`ConfigRules`].

use std::sync::{Arc, Mutex, PoisonError};

use super::error::{ConfigFault, Refusal, RequestFault};
use super::world::{ConfigRules, Proposed};
use crate::common::BrokerId;
use crate::config::{
    BrokerConfig, ConfigError, ConfigRow, Kind, Level, TopicConfig, Values, broker_key, topic,
};
use crate::metadata::{ConfigKind, ConfigResource, Configs, Image};

/// Judges by the configuration of this node, as Kafka's controller does by its own.
pub struct KafkaRules {
    node: BrokerId,
    /// Static values only: dynamic ones come from the image.
    config: BrokerConfig,
    /// What [`KafkaRules::now`] made last, since dynamic values seldom change.
    last: Mutex<Option<Last>>,
}

/// A configuration with the dynamic values it was made of.
struct Last {
    cluster: Option<Arc<Configs>>,
    own: Option<Arc<Configs>>,
    config: Arc<BrokerConfig>,
}

fn same(a: &Option<Arc<Configs>>, b: Option<&Arc<Configs>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

impl KafkaRules {
    /// `config`: as read at the start, without dynamic values.
    pub fn new(config: BrokerConfig) -> Self {
        Self { node: BrokerId(config.node.node_id), config, last: Mutex::default() }
    }

    fn now(&self, image: &Image) -> Arc<BrokerConfig> {
        let (all, one) = (ConfigResource::all_brokers(), ConfigResource::broker(self.node));
        let (cluster, own) = (image.configs(&all), image.configs(&one));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && same(&last.cluster, cluster)
            && same(&last.own, own)
        {
            return last.config.clone();
        }
        let none = Values::new();
        let values = |of: Option<&Arc<Configs>>| of.map_or(none.clone(), |of| (**of).clone());
        // What is refused here was told when it came into the image.
        let config = Arc::new(self.config.with_dynamic(&values(cluster), &values(own)).0);
        let (cluster, own) = (cluster.cloned(), own.cloned());
        *last = Some(Last { cluster, own, config: config.clone() });
        config
    }

    fn check_topic(&self, image: &Image, settings: &Values) -> Result<(), ConfigError> {
        for name in settings.keys().filter(|name| topic::key(name).is_none()) {
            topic::validate(name, "")?;
        }
        TopicConfig::resolve(&self.now(image).topic_defaults, settings).map(|_| ())
    }

    /// The value of a key that brokers and topics share a name for, the topic's own first.
    fn value<'a>(&self, image: &'a Image, own: Option<&'a Configs>, key: &str) -> Option<&'a str> {
        let of = |resource| image.configs(&resource)?.get(key);
        own.and_then(|own| own.get(key))
            .or_else(|| of(ConfigResource::broker(self.node)))
            .or_else(|| of(ConfigResource::all_brokers()))
            .map(String::as_str)
    }
}

impl ConfigRules for KafkaRules {
    fn list_default(&self, kind: ConfigKind, name: &str) -> Option<String> {
        let (key, rows) = match kind {
            ConfigKind::Topic => {
                (topic::key(name)?, self.config.describe_topic(&Values::new(), &[name]).ok()?)
            }
            ConfigKind::Broker => (broker_key(name)?, self.config.describe_broker(&[name])),
            ConfigKind::BrokerLogger | ConfigKind::ClientMetrics | ConfigKind::Group => {
                return None;
            }
        };
        let value = rows.into_iter().next().and_then(|row| row.value);
        let default = || key.default_text().unwrap_or_default().to_owned();
        (key.kind == Kind::List).then(|| value.unwrap_or_else(default))
    }

    fn check(&self, resource: &ConfigResource, proposed: &Proposed<'_>) -> Result<(), Refusal> {
        let first = proposed.set.first();
        let broker = |level| {
            let checked = self.now(proposed.image).check_dynamic(level, proposed.settings);
            checked.map_err(|error| RequestFault::BrokerConfig(error.to_string()).into())
        };
        match resource.kind {
            ConfigKind::Topic => self
                .check_topic(proposed.image, proposed.settings)
                .map_err(|error| ConfigFault::Value(error.to_string()).into()),
            ConfigKind::Broker if resource.name.is_empty() => broker(Level::Cluster),
            ConfigKind::Broker => broker(Level::Broker),
            // Nothing here reads them yet, so that no key is known.
            ConfigKind::ClientMetrics => first.map_or(Ok(()), |key| {
                let text = format!("Unknown client metrics configuration: {key}");
                Err(RequestFault::BrokerConfig(text).into())
            }),
            ConfigKind::Group => self
                .now(proposed.image)
                .check_group(proposed.settings)
                .map_err(|error| ConfigFault::Value(error.to_string()).into()),
            // Refused before: there are no loggers of Kafka's names.
            ConfigKind::BrokerLogger => Ok(()),
        }
    }

    fn describe_topic(&self, image: &Image, own: &Configs) -> Vec<ConfigRow> {
        // `check` came first, so that there is nothing to refuse.
        self.now(image).describe_topic(own, &[]).unwrap_or_default()
    }

    fn min_insync_replicas(&self, image: &Image, own: Option<&Configs>) -> usize {
        let set = self.value(image, own, "min.insync.replicas").and_then(|text| text.parse().ok());
        set.unwrap_or_else(|| self.config.topic_defaults.min_insync_replicas.max(1) as usize)
    }

    fn is_unclean_election_enabled(&self, image: &Image, own: Option<&Configs>) -> bool {
        let set = self.value(image, own, "unclean.leader.election.enable");
        set.map_or(self.config.topic_defaults.unclean_leader_election_enable, |text| {
            text.trim().eq_ignore_ascii_case("true")
        })
    }
}
