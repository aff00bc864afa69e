//! How many connections, how large a frame, how long idle: Kafka's settings of the network side.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Settings of one connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// `socket.request.max.bytes`.
    pub frame_bytes_max: i32,
    /// `connections.max.idle.ms`.
    pub idle: Duration,
}

/// `max.connections`, `max.connections.per.ip` and its overrides, over all listeners.
pub struct ConnectionLimits {
    all: Arc<Semaphore>,
    per_ip: usize,
    per_ip_overrides: HashMap<IpAddr, usize>,
    by_ip: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection's place; dropping frees it.
pub struct Place {
    limits: Arc<ConnectionLimits>,
    ip: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionLimits {
    pub fn new(all: usize, per_ip: usize, per_ip_overrides: HashMap<IpAddr, usize>) -> Arc<Self> {
        let all = Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { all, per_ip, per_ip_overrides, by_ip: Mutex::default() })
    }

    /// Waits for a place among all connections: at the limit, accepting stops.
    pub async fn permit(&self) -> OwnedSemaphorePermit {
        let permit = self.all.clone().acquire_owned().await;
        permit.unwrap_or_else(|_| {
            crate::common::broken_invariant("net", "never closed", "connection semaphore closed")
        })
    }

    /// `None` when `ip` has as many connections as it may: Kafka closes the new one at once.
    pub fn enter(self: &Arc<Self>, ip: IpAddr, permit: OwnedSemaphorePermit) -> Option<Place> {
        let max = self.per_ip_overrides.get(&ip).copied().unwrap_or(self.per_ip);
        let mut by_ip = self.by_ip.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_ip.entry(ip).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(Place { limits: self.clone(), ip, _permit: permit })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_ip = self.limits.by_ip.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_ip.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                by_ip.remove(&self.ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_gets_its_own_limit_and_its_places_back() {
        let (one, two) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let limits = ConnectionLimits::new(10, 1, HashMap::from([(two, 2)]));
        let first = limits.enter(one, limits.permit().await);
        assert!(first.is_some());
        assert!(limits.enter(one, limits.permit().await).is_none());
        let others =
            [limits.enter(two, limits.permit().await), limits.enter(two, limits.permit().await)];
        assert!(others.iter().all(Option::is_some));
        drop(first);
        assert!(limits.enter(one, limits.permit().await).is_some());
        assert_eq!(limits.all.available_permits(), 8);
    }
}
