//! Reading the body of a request, with limits on its size, its time, its rate and its memory.

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
use crate::client::RequestSender;
use crate::deadline::deadline;
use crate::problem::ProblemDetails;
use crate::request_memory::ClientPermit;

/// Interval over which the minimum rate is measured.
const WINDOW: Duration = Duration::from_secs(5);
/// Size in bytes of the first buffer for a body that does not arrive at once.
const BUFFER_BYTES: usize = 16 << 10;

/// A body that was received completely.
#[derive(Debug)]
pub(crate) struct ReceivedBody {
    pub(crate) bytes: Bytes,
    pub(crate) format: BodyFormat,
    /// Memory of the body, unless it arrived at once.
    _permit: Option<ClientPermit>,
}

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    Json,
    /// See [`super::packed`].
    Packed,
}

/// Receives a body. Memory is taken for bytes that have arrived, never for the declared length.
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
        // An absent body needs no content type.
        Err(_) if is_absent(&request) => BodyFormat::Json,
        format => format?,
    };
    let most = app.limits.body_bytes;
    let declared = declared(&request, most)?;
    let client = RequestSender::of(&request);
    let mut body = request.into_body();
    let mut pace = BodyPace::new(app);
    let received = |bytes, permit| ReceivedBody {
        bytes,
        format,
        _permit: permit,
    };
    let Some(first) = next(&mut body, &mut pace).await? else {
        return Ok(received(Bytes::new(), None));
    };
    // In HTTP/2, the head need not declare a length.
    if first.len() > most {
        return Err(larger_than(most));
    }
    // A single frame is in the buffer of its connection, which is bounded.
    if body.is_end_stream() {
        return Ok(received(first, None));
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
            // Twice as much as has arrived, but not more than the declared or largest length.
            let room = (2 * length).max(BUFFER_BYTES).min(largest.max(length));
            // Take memory before the buffer grows: while this waits, data stay in the buffer of the connection, and flow control stops the
            // sender.
            permit.grow_to(room).await?;
            // Exactly what was taken, because `reserve` may double it.
            bytes.reserve_exact(room - bytes.len());
        }
        bytes.extend_from_slice(&piece);
        // Free the piece before the next is awaited, because no permit covers it.
        drop(piece);
        part = next(&mut body, &mut pace).await?;
    }
    Ok(received(bytes.into(), Some(permit)))
}

/// The time limits of a body: the total time, and a minimum number of bytes in each window.
struct BodyPace {
    end: Instant,
    window: Duration,
    window_end: Instant,
    /// Minimum number of bytes in a window, followed by the number received in the current one.
    least: usize,
    brought: usize,
}

impl BodyPace {
    fn new(app: &AppState) -> Self {
        let now = Instant::now();
        let window = WINDOW.min(app.limits.body_timeout);
        Self {
            end: Instant::from_std(deadline(now.into_std(), app.limits.body_timeout)),
            window,
            window_end: now + window,
            least: (app.limits.body_rate as f64 * window.as_secs_f64()) as usize,
            brought: 0,
        }
    }

    /// Starts the next window, or returns an error if the last one brought too few bytes.
    fn next_window(&mut self) -> Result<(), ProblemDetails> {
        let now = Instant::now();
        // Otherwise a body sent byte by byte would hold its memory until the total time is over.
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

/// Returns the next part of a body, or `None` at its end.
async fn next(body: &mut Body, pace: &mut BodyPace) -> Result<Option<Bytes>, ProblemDetails> {
    loop {
        let until = pace.window_end.min(pace.end);
        match timeout_at(until, body.frame()).await {
            Err(_) => pace.next_window()?,
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => {
                return Err(ProblemDetails::malformed("the body ended early"));
            }
            // Frames other than data are trailers, which are ignored.
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

/// Tells whether the request has no body and no content type.
fn is_absent(request: &Request) -> bool {
    request.body().is_end_stream() && !request.headers().contains_key(CONTENT_TYPE)
}

/// Returns the declared format of a body. Browsers do not send these types to another site without a preflight.
pub(crate) fn body_format(headers: &HeaderMap) -> Result<BodyFormat, ProblemDetails> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let mut parts = kind.unwrap_or_default().split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    if parts.any(is_other_charset) {
        return Err(ProblemDetails::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media-type",
            "the body is declared in another charset than UTF-8",
            "send JSON in UTF-8",
        ));
    }
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

/// Returns true for a parameter of a media type that names another charset than UTF-8, which would be read as if it were UTF-8.
fn is_other_charset(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return false;
    };
    // US-ASCII is a part of UTF-8.
    let is_utf8 = ["utf-8", "utf8", "us-ascii"]
        .iter()
        .any(|known| value.trim_matches('"').eq_ignore_ascii_case(known));
    name.eq_ignore_ascii_case("charset") && !is_utf8
}

/// Returns true if the body has a content coding (RFC 9110 section 8.4).
fn is_encoded(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(CONTENT_ENCODING).iter();
    codings
        .into_iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Returns the declared length of the body, or an error if it exceeds the limit.
fn declared(request: &Request<Body>, most: usize) -> Result<Option<usize>, ProblemDetails> {
    // A declared length only serves to refuse early and to size the buffer; what arrives is still checked.
    let exact = request.body().size_hint().exact();
    let header = request.headers().get(CONTENT_LENGTH);
    let told = header.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    match exact.or(told) {
        Some(length) if length > most as u64 => Err(larger_than(most)),
        length => Ok(length.map(|length| length as usize)),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_body_in_another_charset_was_read_as_utf_8() {
        let format = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            body_format(&headers).map_err(|problem| problem.status.as_u16())
        };
        for kind in [
            "application/json",
            "Application/JSON ; Charset=\"UTF-8\"",
            "application/json;charset=utf8",
            "application/json; charset=us-ascii",
            "application/json; profile=a",
        ] {
            assert_eq!(format(kind), Ok(BodyFormat::Json), "{kind}");
        }
        for kind in [
            "application/json; charset=latin-1",
            "application/json;profile=a;charset=\"utf-16\"",
            "text/plain; charset=utf-8",
            "",
        ] {
            assert_eq!(format(kind), Err(415), "{kind}");
        }
    }
}
