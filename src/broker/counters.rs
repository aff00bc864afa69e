//! Requests by key and version: handles made at start, so that counting is one atomic add.

use prometheus::IntCounter;

use crate::protocol::api::{self, ApiKey};
use crate::telemetry::Metrics;

/// One counter per served key and version.
pub struct RequestCounters(Vec<(ApiKey, i16, Vec<IntCounter>)>);

impl RequestCounters {
    pub fn new(metrics: &Metrics) -> Self {
        let of = |key: ApiKey, version: i16| {
            metrics.requests.with_label_values(&[key.name(), &version.to_string()])
        };
        let rows = api::served().map(|row| {
            (row.key, row.min, (row.min..=row.max).map(|version| of(row.key, version)).collect())
        });
        Self(rows.collect())
    }

    /// A version that is not served is not counted.
    pub fn count(&self, key: ApiKey, version: i16) {
        let row = self.0.binary_search_by_key(&key, |(of, ..)| *of);
        if let Ok(at) = row {
            let (_, min, counters) = &self.0[at];
            let counter = usize::try_from(version - min).ok().and_then(|nth| counters.get(nth));
            if let Some(counter) = counter {
                counter.inc();
            }
        }
    }
}
