//! Configuration and limits of the service.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::api_key::ApiKeys;
use crate::clock::WallClock;
use crate::event_log::EventLog;

lookalike::settings! {
    /// Limits of the service. Requests that exceed them are refused, never truncated.
    ///
    /// ```
    /// use lookalike_server::ServiceLimits;
    ///
    /// let limits = ServiceLimits::default().batch(100).workers(8);
    /// assert_eq!(limits.batch, 100);
    /// ```
    #[derive(Clone, Copy, Debug)]
    pub struct ServiceLimits {
        /// Maximum size of a request body in bytes.
        body_bytes: usize = 8 << 20,
        /// Maximum number of items in a batch.
        batch: usize = 1000,
        /// Maximum number of connections; further ones are refused with 503.
        connections: usize = 512,
        /// Maximum number of connections from one address.
        // Half of all, so that one address cannot take every slot.
        address_connections: usize = 256,
        /// Timeout for the head of a request, and for an idle connection.
        header_timeout: Duration = Duration::from_secs(10),
        /// Timeout for the body of a request.
        body_timeout: Duration = Duration::from_secs(30),
        /// Minimum rate of a body in bytes a second.
        body_rate: usize = 1 << 10,
        /// Maximum time that a request waits for memory and for a worker. After that it is refused with 503.
        queue_timeout: Duration = Duration::from_secs(1),
        /// Maximum time that a worker spends on a request that compares texts, reads documents or looks up paragraphs. After that a request of
        /// several items, or of many paragraphs, is refused with 413.
        work_timeout: Duration = Duration::from_secs(10),
        /// Time limit for requests in progress when the service stops.
        drain: Duration = Duration::from_secs(10),
        /// Memory in bytes for all requests in progress: bodies, parsed items, sketches and answers.
        request_memory: usize = 256 << 20,
        /// Maximum number of requests that wait for a worker.
        queue: usize = 10_000,
        /// Number of threads that parse, extract, hash and search.
        workers: usize = 2,
        /// Maximum number of collections.
        collections: usize = 64,
    }
}

/// The configuration of a service, besides its store.
#[non_exhaustive]
pub struct ServiceConfig {
    /// The accepted keys.
    pub keys: ApiKeys,
    /// The limits.
    pub limits: ServiceLimits,
    /// The wall clock.
    pub clock: WallClock,
    /// True to trust the clock at the start even if it is more than an hour ahead of the newest record.
    pub trust_clock: bool,
    /// Receiver of log entries.
    pub log: EventLog,
    /// Directory for snapshots; without one clients cannot create any.
    pub snapshots: Option<PathBuf>,
}

lookalike::setters! {
    ServiceConfig {
        keys: ApiKeys,
        limits: ServiceLimits,
        trust_clock: bool,
    }
}

impl ServiceConfig {
    /// Creates a configuration with the default limits, without keys and snapshots.
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

    /// Sets the directory for snapshots.
    #[must_use]
    pub fn snapshots(mut self, folder: impl Into<Option<PathBuf>>) -> Self {
        self.snapshots = folder.into();
        self
    }
}

lookalike::opaque_debug! {
    [] ServiceConfig [];
}

/// An error in settings that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Everybody who can reach the address could read and delete everything.
    #[error("other machines can reach {0}, and no keys are required")]
    Open(SocketAddr),
}

/// Returns an error if other machines can reach the address and no keys are required.
///
/// # Errors
/// [`ConfigError::Open`].
pub fn check_address(address: SocketAddr, keys: &ApiKeys) -> Result<(), ConfigError> {
    // ::ffff:127.0.0.1 counts as a loopback address only in its IPv4 form.
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
