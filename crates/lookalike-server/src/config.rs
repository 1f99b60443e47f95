//! What bounds the service, and which addresses it may listen on.

use std::net::SocketAddr;
use std::time::Duration;

use crate::key::Keys;

/// Bounds of the service. Whatever is beyond them is refused, never cut.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Items of a batch.
    pub batch: usize,
    /// Connections at a time; more are told to come again.
    pub connections: usize,
    /// The same of one address.
    pub address_connections: usize,
    /// How long the head of a request may take, and how long a connection may do nothing.
    pub header_timeout: Duration,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
    /// Bytes a second that a body must bring at least.
    pub body_rate: usize,
    /// How long a request waits for memory and for a worker before it is told to come again.
    pub patience: Duration,
    /// How long requests in progress may take to end when the service stops.
    pub drain: Duration,
    /// Bytes for requests in progress, all together: bodies, what is parsed of them, what their sketches take while they are made, answers.
    pub request_memory: usize,
    /// Requests that wait for a worker.
    pub queue: usize,
    /// Threads that parse, extract, hash and search.
    pub workers: usize,
    /// Collections.
    pub collections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 8 << 20,
            batch: 1000,
            connections: 512,
            address_connections: 256,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            body_rate: 1 << 10,
            patience: Duration::from_secs(1),
            drain: Duration::from_secs(10),
            request_memory: 256 << 20,
            queue: 10_000,
            workers: 2,
            collections: 64,
        }
    }
}

/// Settings that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Anybody who reaches the address could read and delete everything.
    #[error(
        "{0} can be reached from other machines, and there are no keys: listen on 127.0.0.1, or make a key with \
         `lookalike serve --keys FILE --make-key admin:NAME` and give --keys FILE"
    )]
    Open(SocketAddr),
}

/// Refuses to listen where others can reach it without a key.
///
/// # Errors
/// [`ConfigError::Open`].
pub fn check_address(address: SocketAddr, keys: &Keys) -> Result<(), ConfigError> {
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
        let keys = Keys::default();
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
