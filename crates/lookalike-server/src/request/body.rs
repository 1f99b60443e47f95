//! The body of a request, read within a size, a time and a share of memory, all of which are known before the first byte.

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::packed::PACKED;
use crate::app::App;
use crate::memory::Share;
use crate::problem::Problem;

/// Memory that a request takes for each byte of its body: the body, what is parsed of it, and what is extracted from that.
const BYTES_PER_BYTE: usize = 4;
/// Memory that a request takes in any case.
const LEAST: usize = 16 << 10;

/// A body as it came.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    pub(crate) form: Form,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    /// See [`super::packed`].
    Packed,
}

/// Reads a body; its share of memory lasts until the answer is on its way.
///
/// `extra` is the memory that the answer may take.
pub(crate) async fn receive(
    app: &App,
    request: Request,
    extra: usize,
) -> Result<(Received, Share), Problem> {
    let form = form(request.headers())?;
    let most = app.limits.body_bytes;
    let length = declared(&request, most)?;
    let share = app
        .memory
        .take(length.unwrap_or(most) * BYTES_PER_BYTE + LEAST + extra)
        .await?;
    let reading = Limited::new(request.into_body(), most).collect();
    let late = |_| {
        Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "slow-body",
            "the body did not arrive in time",
            "send the request again, in smaller parts over a slow connection",
        )
    };
    let body = tokio::time::timeout(app.limits.body_timeout, reading)
        .await
        .map_err(late)?;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            larger_than(most)
        } else {
            Problem::malformed("the body ended before it was whole")
        }
    })?;
    let bytes = body.to_bytes();
    Ok((Received { bytes, form }, share))
}

fn larger_than(most: usize) -> Problem {
    Problem::too_large(format!("the body is larger than {most} bytes"))
}

/// A page in a browser cannot send these types to another site without asking first.
fn form(headers: &HeaderMap) -> Result<Form, Problem> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let essence = kind
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    for (known, form) in [("application/json", Form::Json), (PACKED, Form::Packed)] {
        if essence.eq_ignore_ascii_case(known) {
            return Ok(form);
        }
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "media-type",
        "the body is not declared as JSON",
        "send it as JSON in UTF-8 with the header `Content-Type: application/json`, or a batch in the compact form with its own",
    ))
}

/// The length that the header declares.
fn declared(request: &Request<Body>, most: usize) -> Result<Option<usize>, Problem> {
    let exact = request.body().size_hint().exact();
    let header = request.headers().get(CONTENT_LENGTH);
    let told = header.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    match exact.or(told) {
        Some(length) if length > most as u64 => Err(larger_than(most)),
        length => Ok(length.map(|length| length as usize)),
    }
}
