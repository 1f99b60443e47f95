//! Responses with a body.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;

use crate::request::EncodedBody;
use crate::request_memory::{SMALL, WorkPermit};

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
    let EncodedBody { kind, mut bytes } = body;
    // A slow reader may hold a large answer for long. The room of small ones is not worth a copy.
    if bytes.capacity() > SMALL {
        bytes.shrink_to_fit();
    }
    permit.shrink_to(bytes.capacity());
    let owner = PermittedBytes {
        bytes,
        _permit: permit,
    };
    typed(status, kind, Bytes::from_owner(owner))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::RequestSender;
    use crate::request_memory::RequestMemory;

    #[tokio::test]
    async fn an_answer_held_twice_its_size_until_it_was_read() {
        let memory = RequestMemory::new(64 << 20, 1 << 20, Duration::ZERO);
        let client = RequestSender::Address(None);
        let permit = memory.work(client, 32 << 20).await;
        let permit = permit.expect("there is enough");
        let mut bytes = Vec::with_capacity(16 << 20);
        bytes.resize(9 << 20, b' ');
        let kind = "application/json";
        let answer = with_permit(StatusCode::OK, EncodedBody { kind, bytes }, permit);
        assert_eq!(memory.in_use(), 9 << 20);
        drop(answer);
        assert_eq!(memory.in_use(), 0);
    }
}
