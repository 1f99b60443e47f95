//! The body of a request, read within a size, a time, a least rate and a budget of memory.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::packed::PACKED;
use crate::app_state::AppState;
use crate::client::BodySender;
use crate::problem::ProblemDetails;
use crate::request_memory::BodyPermit;

/// The time in which the least rate is measured.
const WINDOW: Duration = Duration::from_secs(5);
/// The first buffer of a body that does not come at once.
const FIRST: usize = 16 << 10;

/// A body as it came.
#[derive(Debug)]
pub(crate) struct ReceivedBody {
    pub(crate) bytes: Bytes,
    pub(crate) format: BodyFormat,
    /// Memory of the body, unless it arrived at once.
    _permit: Option<BodyPermit>,
}

/// Format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    Json,
    /// See [`super::packed`].
    Packed,
}

/// Reads a body. Memory is taken for what has come, never for what is declared.
pub(crate) async fn receive(
    app: &AppState,
    request: Request,
) -> Result<ReceivedBody, ProblemDetails> {
    if is_encoded(request.headers()) {
        return Err(ProblemDetails::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content-encoding",
            "bodies of requests are not decompressed",
            "send the body as it is, without Content-Encoding",
        ));
    }
    let format = match body_format(request.headers()) {
        // Nothing needs no type.
        Err(_) if is_absent(&request) => BodyFormat::Json,
        format => format?,
    };
    let most = app.limits.body_bytes;
    let declared = declared(&request, most)?;
    let client = BodySender::of(&request);
    let mut body = request.into_body();
    let mut pace = BodyPace::new(app);
    let Some(first) = next(&mut body, &mut pace).await? else {
        let bytes = Bytes::new();
        return Ok(ReceivedBody {
            bytes,
            format,
            _permit: None,
        });
    };
    // The head need not declare a length in HTTP/2.
    if first.len() > most {
        return Err(larger_than(most));
    }
    // One frame lies in the buffer of its connection, which is bounded.
    if body.is_end_stream() {
        return Ok(ReceivedBody {
            bytes: first,
            format,
            _permit: None,
        });
    }
    let largest = declared.unwrap_or(most);
    let mut permit = app.memory.body(client, largest);
    let mut bytes = Vec::new();
    let mut part = Some(first);
    while let Some(piece) = part {
        let length = bytes.len() + piece.len();
        if length > most {
            return Err(larger_than(most));
        }
        if length > bytes.capacity() {
            // Twice as much as came, but no more than is to come.
            let room = (2 * length).max(FIRST).min(largest.max(length));
            // Before the buffer grows, never after it: while this waits, what came stays in the buffer of the
            // connection, and flow control stops the sender.
            permit.grow_to(room).await?;
            // Exactly what was taken: `reserve` may double it.
            bytes.reserve_exact(room - bytes.len());
        }
        bytes.extend_from_slice(&piece);
        // Not held while the next is awaited: no permit covers it.
        drop(piece);
        part = next(&mut body, &mut pace).await?;
    }
    Ok(ReceivedBody {
        bytes: bytes.into(),
        format,
        _permit: Some(permit),
    })
}

/// Time limits of a body: in total, and the least number of bytes of each window.
struct BodyPace {
    end: Instant,
    window: Duration,
    window_end: Instant,
    /// Bytes that a window must bring, and those that this one brought.
    least: usize,
    brought: usize,
}

impl BodyPace {
    fn new(app: &AppState) -> Self {
        let now = Instant::now();
        let window = WINDOW.min(app.limits.body_timeout);
        Self {
            end: now + app.limits.body_timeout,
            window,
            window_end: now + window,
            least: (app.limits.body_rate as f64 * window.as_secs_f64()) as usize,
            brought: 0,
        }
    }

    /// Begins the next window, unless the last one brought too little.
    fn next_window(&mut self) -> Result<(), ProblemDetails> {
        let now = Instant::now();
        // A byte now and then would hold memory until the end.
        if now >= self.end || self.brought < self.least {
            return Err(ProblemDetails::new(
                StatusCode::REQUEST_TIMEOUT,
                "slow-body",
                "the body did not arrive in time",
                "send the request again, in smaller parts over a slow connection",
            ));
        }
        self.brought = 0;
        self.window_end = now + self.window;
        Ok(())
    }
}

/// The next part of a body; `None` at its end.
async fn next(body: &mut Body, pace: &mut BodyPace) -> Result<Option<Bytes>, ProblemDetails> {
    loop {
        let until = pace.window_end.min(pace.end);
        match timeout_at(until, body.frame()).await {
            Err(_) => pace.next_window()?,
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => {
                return Err(ProblemDetails::malformed("the body ended early"));
            }
            // What is no data are trailers, which say nothing here.
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    pace.brought += data.len();
                    return Ok(Some(data));
                }
            }
        }
    }
}

fn larger_than(most: usize) -> ProblemDetails {
    ProblemDetails::too_large(format!("the body is larger than {most} bytes"))
}

/// Tells whether the request has no body and declares none.
fn is_absent(request: &Request) -> bool {
    request.body().is_end_stream() && !request.headers().contains_key(CONTENT_TYPE)
}

/// Declared format of a body. Browsers do not send these types to another site without a preflight.
pub(crate) fn body_format(headers: &HeaderMap) -> Result<BodyFormat, ProblemDetails> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let essence = kind
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    for (known, format) in [
        ("application/json", BodyFormat::Json),
        (PACKED, BodyFormat::Packed),
    ] {
        if essence.eq_ignore_ascii_case(known) {
            return Ok(format);
        }
    }
    Err(ProblemDetails::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "media-type",
        "the body is not declared as JSON",
        "send JSON in UTF-8 with the header `Content-Type: application/json`, or a batch in the compact format with its own",
    ))
}

/// True if the body is not what it means (RFC 9110 section 8.4).
fn is_encoded(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(CONTENT_ENCODING).iter();
    codings
        .into_iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The length that the header declares.
fn declared(request: &Request<Body>, most: usize) -> Result<Option<usize>, ProblemDetails> {
    // A declared length only refuses early and sizes the buffer; it is never believed as to what comes.
    let exact = request.body().size_hint().exact();
    let header = request.headers().get(CONTENT_LENGTH);
    let told = header.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    match exact.or(told) {
        Some(length) if length > most as u64 => Err(larger_than(most)),
        length => Ok(length.map(|length| length as usize)),
    }
}
