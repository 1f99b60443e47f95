//! Configuration and limits of the service.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::api_key::ApiKeys;
use crate::clock::WallClock;
use crate::event_log::EventLog;

/// Limits of the service. Requests beyond them are refused, never cut.
///
/// ```
/// use lookalike_server::ServiceLimits;
///
/// let limits = ServiceLimits::default().batch(100).workers(8);
/// assert_eq!(limits.batch, 100);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ServiceLimits {
    /// Largest body of a request, in bytes.
    pub body_bytes: usize,
    /// Largest number of items of a batch.
    pub batch: usize,
    /// Largest number of connections; further ones are refused with 503.
    pub connections: usize,
    /// Largest number of connections of one address.
    pub address_connections: usize,
    /// Time limit on the head of a request, and on an idle connection.
    pub header_timeout: Duration,
    /// Time limit on the body of a request.
    pub body_timeout: Duration,
    /// Least number of bytes a second of a body.
    pub body_rate: usize,
    /// Longest time that a request waits for memory and for a worker. After it the request is refused with 503.
    pub queue_timeout: Duration,
    /// Longest time that a worker spends on one request that compares texts. After it a request of several is refused with 413.
    pub work_timeout: Duration,
    /// Time limit on requests in progress when the service stops.
    pub drain: Duration,
    /// Bytes of memory for all requests in progress: bodies, parsed items, sketches and answers.
    pub request_memory: usize,
    /// Largest number of requests that wait for a worker.
    pub queue: usize,
    /// Number of threads that parse, extract, hash and search.
    pub workers: usize,
    /// Largest number of collections.
    pub collections: usize,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        Self {
            body_bytes: 8 << 20,
            batch: 1000,
            connections: 512,
            address_connections: 256,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            body_rate: 1 << 10,
            queue_timeout: Duration::from_secs(1),
            work_timeout: Duration::from_secs(10),
            drain: Duration::from_secs(10),
            request_memory: 256 << 20,
            queue: 10_000,
            workers: 2,
            collections: 64,
        }
    }
}

lookalike::setters! {
    ServiceLimits {
        body_bytes: usize,
        batch: usize,
        connections: usize,
        address_connections: usize,
        header_timeout: Duration,
        body_timeout: Duration,
        body_rate: usize,
        queue_timeout: Duration,
        work_timeout: Duration,
        drain: Duration,
        request_memory: usize,
        queue: usize,
        workers: usize,
        collections: usize,
    }
}

/// Configuration of a service, beside its store.
#[non_exhaustive]
pub struct ServiceConfig {
    /// The accepted keys.
    pub keys: ApiKeys,
    /// Limits on the work.
    pub limits: ServiceLimits,
    /// The wall clock.
    pub clock: WallClock,
    /// Trust the clock at the start even if it is more than an hour ahead of the newest record.
    pub trust_clock: bool,
    /// Receiver of log entries.
    pub log: EventLog,
    /// Directory for snapshots; without it clients cannot make any.
    pub snapshots: Option<PathBuf>,
}

impl ServiceConfig {
    /// A configuration without keys and snapshots, with the default limits.
    pub fn new(clock: WallClock, log: EventLog) -> Self {
        Self {
            keys: ApiKeys::default(),
            limits: ServiceLimits::default(),
            clock,
            trust_clock: false,
            log,
            snapshots: None,
        }
    }

    /// Sets the accepted keys.
    #[must_use]
    pub fn keys(mut self, keys: ApiKeys) -> Self {
        self.keys = keys;
        self
    }

    /// Sets the limits on the work.
    #[must_use]
    pub fn limits(mut self, limits: ServiceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Trusts the clock at the start, or compares it with the newest record.
    #[must_use]
    pub fn trust_clock(mut self, trust: bool) -> Self {
        self.trust_clock = trust;
        self
    }

    /// Sets the directory for snapshots.
    #[must_use]
    pub fn snapshots(mut self, folder: impl Into<Option<PathBuf>>) -> Self {
        self.snapshots = folder.into();
        self
    }
}

impl fmt::Debug for ServiceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceConfig")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Settings that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Everybody who reaches the address could read and delete everything.
    #[error("other machines can reach {0}, and no keys are required")]
    Open(SocketAddr),
}

/// Refuses an address that other machines can reach if no keys are required.
///
/// # Errors
/// [`ConfigError::Open`].
pub fn check_address(address: SocketAddr, keys: &ApiKeys) -> Result<(), ConfigError> {
    // ::ffff:127.0.0.1 counts as a loopback address in its IPv4 form only.
    if address.ip().to_canonical().is_loopback() || keys.are_required() {
        return Ok(());
    }
    Err(ConfigError::Open(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_open_without_keys() {
        let keys = ApiKeys::default();
        for open in [
            "127.0.0.1:1",
            "127.8.8.8:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert_eq!(
                check_address(open.parse().expect("an address"), &keys),
                Ok(())
            );
        }
        for closed in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "192.168.1.1:1"] {
            assert!(check_address(closed.parse().expect("an address"), &keys).is_err());
        }
    }
}
