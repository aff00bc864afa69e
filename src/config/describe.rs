//! What DescribeConfigs says of topics, groups and brokers. Source: answers of Apache Kafka 4.4.

use super::broker::{BrokerConfig, honoured_keys};
use super::group;
use super::key::{Key, Kind, Parsed};
use super::known;
use super::table::Texts;
use super::topic::TopicConfig;
use super::{ConfigError, Values};

/// Where a described value comes from; the number is `config_source` on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum ConfigSource {
    DynamicTopic = 1,
    DynamicBroker = 2,
    DynamicDefaultBroker = 3,
    StaticBroker = 4,
    Default = 5,
    DynamicGroup = 8,
}

/// A value that stands, or would stand without the ones before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSynonym {
    pub name: String,
    /// `None`: null, as for what is sensitive.
    pub value: Option<String>,
    pub source: ConfigSource,
}

/// One entry of a DescribeConfigs answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigRow {
    pub name: String,
    pub value: Option<String>,
    pub source: ConfigSource,
    /// `None`: the key is unknown.
    pub kind: Option<Kind>,
    pub is_read_only: bool,
    pub is_sensitive: bool,
    /// Strongest first.
    pub synonyms: Vec<ConfigSynonym>,
    pub doc: Option<&'static str>,
}

/// Keys that stand for each other, strongest first. Every other key stands for itself.
const CHAINS: &[&[&str]] = &[
    &["log.retention.ms", "log.retention.minutes", "log.retention.hours"],
    &["log.roll.ms", "log.roll.hours"],
    &["log.roll.jitter.ms", "log.roll.jitter.hours"],
    &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"],
];

fn chain(name: &str) -> Vec<&str> {
    if let Some(chain) = CHAINS.iter().find(|chain| chain.contains(&name)) {
        return chain.to_vec();
    }
    match known::without_listener(name) {
        plain if plain == name => vec![name],
        plain => vec![name, plain],
    }
}

/// The row of a topic or a group: the first synonym is where its value comes from.
fn changeable_row(key: &Key, value: Option<String>, synonyms: Vec<ConfigSynonym>) -> ConfigRow {
    ConfigRow {
        name: key.name.to_owned(),
        value,
        source: synonyms.first().map_or(ConfigSource::Default, |synonym| synonym.source),
        kind: Some(key.kind),
        is_read_only: false,
        is_sensitive: key.is_sensitive(),
        synonyms,
        doc: Some(key.doc.trim()),
    }
}

impl BrokerConfig {
    /// The rows of a topic with the values `overrides` of its own.
    /// - `names`: those asked for; empty: all.
    ///
    /// # Errors
    /// [`ConfigError`] when `overrides` are no configuration: the image is damaged.
    pub fn describe_topic(
        &self,
        overrides: &Values,
        names: &[&str],
    ) -> Result<Vec<ConfigRow>, ConfigError> {
        let config = TopicConfig::resolve(&self.topic_defaults, overrides)?;
        let shown = TopicConfig::KEYS.iter().filter(|key| {
            let is_asked = names.is_empty() || names.contains(&key.name);
            is_asked && (!key.internal || overrides.contains_key(key.name))
        });
        Ok(shown.map(|key| self.topic_row(key, &config, overrides)).collect())
    }

    fn topic_row(&self, key: &Key, config: &TopicConfig, overrides: &Values) -> ConfigRow {
        let mut synonyms = Vec::new();
        let own = overrides.get(key.name).map(|text| rendered(key, text));
        if let Some(value) = &own {
            synonyms.push(ConfigSynonym {
                name: key.name.to_owned(),
                value: Some(value.clone()),
                source: ConfigSource::DynamicTopic,
            });
        }
        if let Some(first) = key.broker {
            synonyms.extend(self.synonyms(first));
        }
        let inherited = || match (config.derived(key.name), key.broker) {
            (Some(number), _) => Some(number.to_string()),
            (None, Some(broker)) => {
                let text = self.layers.text(broker).or(key.default_text());
                text.map(|text| rendered(key, text))
            }
            (None, None) => key.default_text().map(|text| rendered(key, text)),
        };
        changeable_row(key, own.or_else(inherited), synonyms)
    }

    /// The rows of a group, which need not exist, with the values `own`.
    /// - `names`: those asked for; empty: all.
    pub fn describe_group(&self, own: &Values, names: &[&str]) -> Vec<ConfigRow> {
        let is_set = |key: &Key| {
            own.contains_key(key.name) || key.broker.is_some_and(|name| self.is_written(name))
        };
        let shown = group::KEYS.iter().filter(|key| {
            let is_asked = names.is_empty() || names.contains(&key.name);
            is_asked && (!key.internal || is_set(key))
        });
        shown.map(|key| self.group_row(key, own)).collect()
    }

    fn group_row(&self, key: &Key, own: &Values) -> ConfigRow {
        // Kafka has no typed values of internal keys at hand.
        let as_shown =
            |text: &String| if key.internal { text.clone() } else { rendered(key, text) };
        let own = own.get(key.name).map(as_shown);
        let one = |value: String, source| ConfigSynonym {
            name: key.name.to_owned(),
            value: Some(value),
            source,
        };
        let mut synonyms = Vec::new();
        synonyms.extend(own.clone().map(|value| one(value, ConfigSource::DynamicGroup)));
        let default = key.default_text().map(str::to_owned);
        match key.broker {
            Some(name) => synonyms.extend(self.synonyms(name)),
            None => synonyms.extend(default.clone().map(|it| one(it, ConfigSource::Default))),
        }
        let inherited = || match self.broker_value(key.broker?)? {
            // `streams.assignor.name`: the first of the broker's assignors.
            Parsed::List(names) if key.kind == Kind::String => names.into_iter().next(),
            value => Some(value.render()),
        };
        changeable_row(key, own.or_else(inherited).or(default), synonyms)
    }

    /// The rows of this broker: every honoured key, and whatever else is set.
    /// - `names`: those asked for; empty: all.
    pub fn describe_broker(&self, names: &[&str]) -> Vec<ConfigRow> {
        let layers = &self.layers;
        let is_own = |name: &str| name.starts_with("ottla.");
        let mut shown: Vec<&str> = honoured_keys()
            .filter(|key| !key.internal && !is_own(key.name))
            .map(|key| key.name)
            .chain(layers.own.keys().chain(layers.cluster.keys()).map(String::as_str))
            .chain(layers.statics.iter().map(|(name, _, _)| name))
            .filter(|name| names.is_empty() || names.contains(name))
            .collect();
        shown.sort_unstable();
        shown.dedup();
        shown.into_iter().map(|name| self.broker_row(name)).collect()
    }

    fn broker_row(&self, name: &str) -> ConfigRow {
        let key = known::broker_key(name);
        let synonyms = self.synonyms(name);
        let text = self.layers.text(name).or(key.and_then(Key::default_text));
        ConfigRow {
            name: name.to_owned(),
            value: text.and_then(|text| shown(key, text)),
            source: synonyms.first().map_or(ConfigSource::Default, |synonym| synonym.source),
            kind: key.map(|key| key.kind),
            is_read_only: key.is_none_or(|key| key.name != name || !key.is_dynamic()),
            is_sensitive: key.is_none_or(Key::is_sensitive),
            synonyms,
            doc: key.map(|key| key.doc.trim()),
        }
    }

    /// The values of `name` and of the keys that stand in for it, by source; nothing before the
    /// first value of `name` itself.
    fn synonyms(&self, name: &str) -> Vec<ConfigSynonym> {
        let layers = &self.layers;
        let chain = chain(name);
        let mut synonyms = Vec::new();
        let own = |name: &str| layers.own.get(name).cloned();
        let cluster = |name: &str| layers.cluster.get(name).cloned();
        let fixed = |name: &str| layers.statics.text(name).map(str::to_owned);
        // A prefixed key has no default: the plain one's follows.
        let default = |name: &str| {
            let key = known::broker_key(name).filter(|key| key.name == name)?;
            key.default_text().map(str::to_owned)
        };
        let mut add = |source: ConfigSource, values: &dyn Fn(&str) -> Option<String>| {
            for name in &chain {
                if let Some(text) = values(name) {
                    let is_open = known::broker_key(name).is_some_and(|key| !key.is_sensitive());
                    // As written: only what stands in the end is in its type's form.
                    let value = is_open.then_some(text);
                    synonyms.push(ConfigSynonym { name: (*name).to_owned(), value, source });
                }
            }
        };
        add(ConfigSource::DynamicBroker, &own);
        add(ConfigSource::DynamicDefaultBroker, &cluster);
        add(ConfigSource::StaticBroker, &fixed);
        add(ConfigSource::Default, &default);
        let first = synonyms.iter().position(|synonym| synonym.name == name);
        synonyms.split_off(first.unwrap_or(synonyms.len()))
    }
}

/// The rows of the resource with the empty name: the dynamic values for all brokers.
/// - `names`: those asked for; empty: all.
pub fn describe_cluster_default(cluster: &Values, names: &[&str]) -> Vec<ConfigRow> {
    let asked =
        cluster.iter().filter(|(name, _)| names.is_empty() || names.contains(&name.as_str()));
    let source = ConfigSource::DynamicDefaultBroker;
    asked
        .map(|(name, text)| {
            let key = known::broker_key(name);
            let value = shown(key, text);
            ConfigRow {
                name: name.clone(),
                value: value.clone(),
                source,
                kind: key.map(|key| key.kind),
                is_read_only: key.is_none_or(|key| key.name != name || !key.is_dynamic()),
                is_sensitive: key.is_none_or(Key::is_sensitive),
                synonyms: vec![ConfigSynonym { name: name.clone(), value, source }],
                doc: key.map(|key| key.doc.trim()),
            }
        })
        .collect()
}

/// A value as it may be shown: not at all where it is, or may be, a secret.
fn shown(key: Option<&Key>, text: &str) -> Option<String> {
    let key = key.filter(|key| !key.is_sensitive())?;
    Some(rendered(key, text))
}

/// `text` in its type's own form; what does not parse is shown as it is.
fn rendered(key: &Key, text: &str) -> String {
    key.parse(text).map_or_else(|_| text.to_owned(), |parsed| parsed.render())
}
