//! The operations, each a function from a request to a response.

pub(crate) mod asked;
pub(crate) mod collection;
pub(crate) mod document;
pub(crate) mod export;
pub(crate) mod page;
pub(crate) mod snapshot;
pub(crate) mod status;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;

use crate::memory::WorkPermit;
use crate::request::Written;

/// An answer with the memory that it takes until it is sent.
struct Held {
    bytes: Vec<u8>,
    _permit: WorkPermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// An answer of a media type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, bytes: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(bytes.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, bytes: impl Into<Bytes>) -> Response {
    typed(status, "application/json", bytes)
}

/// An answer that gives its memory back when it is sent; what the work took beside it is given back at once.
fn held(written: Written, mut permit: WorkPermit) -> Response {
    let Written { kind, bytes } = written;
    permit.shrink_to(bytes.capacity());
    let held = Held {
        bytes,
        _permit: permit,
    };
    typed(StatusCode::OK, kind, Bytes::from_owner(held))
}
