//! The clients of the service, identified by key or address.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::Request;

/// The name of a request's key, as an extension of the request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyName(pub(crate) Arc<str>);

/// The address of a connection, as an extension of its requests: an IPv4 address, or the /64 network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

impl PeerAddress {
    pub(crate) fn of(address: SocketAddr) -> Self {
        // A dual-stack socket shows IPv4 peers as ::ffff:a.b.c.d, which would all be in the same /64 network.
        Self(match address.ip().to_canonical() {
            IpAddr::V6(address) => {
                // A host chooses the lower 64 bits of its address freely (RFC 4291 section 2.5.1).
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        })
    }
}

/// The sender of a request: the holder of a key or, without keys, an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RequestSender {
    Key(KeyName),
    Address(Option<IpAddr>),
}

impl RequestSender {
    pub(crate) fn of(request: &Request) -> Self {
        let extensions = request.extensions();
        match extensions.get::<KeyName>() {
            // With keys, the key counts, whatever the address: by address, all clients behind a proxy would have one share together.
            Some(name) => Self::Key(name.clone()),
            None => Self::Address(
                extensions
                    .get::<PeerAddress>()
                    .map(|PeerAddress(address)| *address),
            ),
        }
    }
}
