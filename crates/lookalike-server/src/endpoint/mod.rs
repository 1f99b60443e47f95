//! The operations, each a function from a request to a response.

pub(crate) mod collection;
pub(crate) mod document;
pub(crate) mod status;

use axum::body::Body;
use axum::extract::Path;
use axum::extract::Query;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;

use crate::memory::Share;
use crate::problem::Problem;

/// The name of a collection in the path. It is only ever compared with names of collections that exist, or checked by the
/// store before one is made.
type Name = Result<Path<String>, PathRejection>;

fn name(path: Name) -> Result<String, Problem> {
    match path {
        Ok(Path(name)) => Ok(name),
        Err(rejection) => Err(Problem::malformed(rejection.body_text())),
    }
}

/// Options of a request.
type Options<T> = Result<Query<T>, QueryRejection>;

fn options<T>(query: Options<T>) -> Result<T, Problem> {
    match query {
        Ok(Query(options)) => Ok(options),
        Err(rejection) => Err(Problem::malformed(rejection.body_text())),
    }
}

/// An answer with the share of memory that it takes until it is sent.
struct Held {
    bytes: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// An answer in JSON.
fn json(status: StatusCode, bytes: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(bytes.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// An answer that gives its share of memory back when it is sent.
fn held(bytes: Vec<u8>, share: Share) -> Response {
    let held = Held {
        bytes,
        _share: share,
    };
    json(StatusCode::OK, Bytes::from_owner(held))
}
