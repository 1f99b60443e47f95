//! Responses with a body.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;

use crate::request::EncodedBody;
use crate::request_memory::WorkPermit;

/// The bytes of a response, with their memory permit.
struct PermittedBytes {
    bytes: Vec<u8>,
    _permit: WorkPermit,
}

impl AsRef<[u8]> for PermittedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Creates a response with a media type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, bytes: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(bytes.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Creates a JSON response.
pub(crate) fn json(status: StatusCode, bytes: impl Into<Bytes>) -> Response {
    typed(status, "application/json", bytes)
}

/// A response that holds its memory until it is sent. Memory of the work beyond the body is given back at once.
pub(crate) fn with_permit(status: StatusCode, body: EncodedBody, permit: WorkPermit) -> Response {
    let EncodedBody { kind, bytes } = body;
    permit.shrink_to(bytes.capacity());
    let owner = PermittedBytes {
        bytes,
        _permit: permit,
    };
    typed(status, kind, Bytes::from_owner(owner))
}
