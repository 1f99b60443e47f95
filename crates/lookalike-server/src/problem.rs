//! Errors as `application/problem+json` (RFC 9457), with a code for programs and a remedy for people.

use std::borrow::Cow;
use std::fmt;

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use lookalike_store::StoreError;
use serde::Serialize;
use serde_json::json;

/// A setting of a collection that is missing from a request or wrong in it.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SettingField {
    Scheme,
    Equal,
    Terms,
    Boilerplate,
}

/// The error of a request, as sent to the client.
#[derive(Clone, Debug)]
pub struct ProblemDetails {
    pub(crate) status: StatusCode,
    /// Code for programs, from a small fixed set.
    pub(crate) code: &'static str,
    detail: String,
    remedy: Cow<'static, str>,
    /// Number of the item in a batch, from 0.
    item: Option<usize>,
    /// Field of the body that is missing or wrong, if it is a setting of a collection.
    field: Option<SettingField>,
    retry_after: Option<u32>,
    /// Detail that only the log shows.
    pub(crate) operator_detail: Option<String>,
}

impl ProblemDetails {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            remedy: remedy.into(),
            item: None,
            field: None,
            retry_after: None,
            operator_detail: None,
        }
    }

    /// Creates the error for a body that does not have the form that the operation takes.
    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        let remedy = "see / or /openapi.json of the service for the operations and their fields";
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail, remedy)
    }

    /// Creates the error for a request that is well-formed but makes no sense.
    pub(crate) fn invalid(detail: impl Into<String>, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail, remedy)
    }

    /// A request that the state of the service or of a collection forbids.
    pub(crate) fn conflict(
        code: &'static str,
        detail: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail, remedy)
    }

    /// Creates the error for a second resketch. It does not name the collection of the first, which the key may not be for.
    pub(crate) fn one_resketch() -> Self {
        Self::conflict(
            "resketching",
            "a collection is being sketched anew, and one job runs at a time",
            "send the request again when that job has ended",
        )
    }

    /// Too much for now; `code` says of what.
    pub(crate) fn busy(code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            // In seconds; the header takes no fractions.
            retry_after: Some(1),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                code,
                detail,
                "nothing was done; send the request again after the delay in Retry-After",
            )
        }
    }

    /// Creates the error for something that is too large.
    pub(crate) fn too_large(detail: impl Into<String>) -> Self {
        let remedy = "send it in parts, or raise the limit of the service";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail, remedy)
    }

    /// Creates the error for a panic, which affects only this request.
    pub(crate) fn panic() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "a program error, which affects no other request",
            "report it with the log of the service; this request will fail again",
        )
    }

    /// Changes the remedy for a request that was carried out, so that only the answer failed.
    pub(crate) fn of_written(self) -> Self {
        Self {
            // The status of the cause might make clients send the documents again.
            status: StatusCode::INTERNAL_SERVER_ERROR,
            remedy: "the request was carried out, and only its answer failed: each document was inserted or not by its verdict; get tells which"
                .into(),
            retry_after: None,
            ..self
        }
    }

    /// Sets the number of the item that caused the error, in a batch.
    pub(crate) fn at(mut self, item: Option<usize>) -> Self {
        self.item = item;
        self
    }

    /// Sets the field of the body that caused the error.
    pub(crate) fn of_field(mut self, field: SettingField) -> Self {
        self.field = Some(field);
        self
    }

    /// Returns the detail for the log.
    pub(crate) fn for_operators(&self) -> String {
        self.operator_detail
            .clone()
            .unwrap_or_else(|| self.detail.clone())
    }

    pub(crate) fn with_operator_detail(mut self, operator_detail: String) -> Self {
        self.operator_detail = Some(operator_detail);
        self
    }
}

impl fmt::Display for ProblemDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.detail, self.remedy)
    }
}

impl From<StoreError> for ProblemDetails {
    fn from(error: StoreError) -> Self {
        // Clients are only told messages that contain no path of the machine; the rest goes to the log.
        let said = error.to_string();
        match error {
            StoreError::NoCollection(_) => Self::new(
                StatusCode::NOT_FOUND,
                "no-collection",
                said,
                "make it with PUT /v1/collections/NAME; GET /v1/collections lists them",
            ),
            StoreError::BadName(_) => Self::new(
                StatusCode::BAD_REQUEST,
                "bad-name",
                said,
                "choose another name",
            ),
            StoreError::Exists { .. } => Self::conflict(
                "exists",
                said,
                "choose another name, or remove the collection first; with texts kept, `lookalike client resketch NAME` gives it another scheme, table of terms or radius, and `lookalike client export OLD | lookalike client insert NEW -` fills another one",
            ),
            StoreError::NotEmpty { .. } => Self::invalid(
                "there is already a directory with this name",
                "choose another name",
            ),
            StoreError::OtherScheme { .. } => Self::conflict(
                "other-scheme",
                said,
                "make the sketches with the collection's scheme, which GET /v1/collections/NAME shows, or insert the texts",
            ),
            StoreError::OtherForm { .. } => Self::invalid(
                said,
                "send the text or page, or a sketch of the collection's scheme",
            ),
            StoreError::StaleCursor => Self::conflict("cursor", said, "ask again without `after`"),
            StoreError::BatchTooLarge { .. } => Self {
                remedy: "send the documents in several requests".into(),
                ..Self::too_large(said)
            },
            StoreError::DocumentTooLarge { .. } => Self {
                remedy: "send its text in parts under several ids, or use a collection that keeps no texts".into(),
                ..Self::too_large(said)
            },
            StoreError::Invalid(_) => Self::invalid(said, "correct the request as the detail says"),
            StoreError::DiskFull { .. } => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "disk-full",
                "the disk of the service is full, so nothing was written; reads still work, and deletes while their reserve lasts",
                "free some space and send the request again; no restart is needed",
            )
            .with_operator_detail(said),
            StoreError::Stopped(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "stopped",
                "writes have stopped because the disk failed; reads still work",
                "repair the cause and start the service again; get tells then whether a write during which the disk failed was carried out",
            )
            .with_operator_detail(said),
            StoreError::Thread { .. } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "threads",
                "the service could not start the threads of the collection",
                "raise the limit on threads of the service, and start it again",
            )
            .with_operator_detail(said),
            StoreError::OutOfFiles { .. } => Self::busy(
                "out-of-files",
                "the service has reached its limit on open files; nothing was done",
            )
            .with_operator_detail(said),
            // The same request will find a collection, or none, once the other operation has ended.
            StoreError::BeingRemoved(_) => Self::busy("being-removed", said),
            StoreError::Replaced => Self::busy("replaced", said),
            StoreError::Rebuilding(_) => Self::one_resketch().with_operator_detail(said),
            StoreError::Closed => Self::busy("closed", "the collection is being closed"),
            // Damage, foreign files, other versions, runs that cannot be built, failures of the medium: their messages contain paths, which are not for clients.
            _ => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "storage",
                "the files of the collection could not be read or written",
                "see the log of the service; `lookalike store restore` restores a snapshot",
            )
            .with_operator_detail(said),
        }
    }
}

impl IntoResponse for ProblemDetails {
    fn into_response(self) -> Response {
        // RFC 9457 section 4.2.1: with the type `about:blank`, the title is the phrase of the status.
        let mut body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
            "remedy": self.remedy,
        });
        if let Some(item) = self.item {
            body["item"] = item.into();
        }
        if let Some(field) = self.field {
            body["field"] = json!(field);
        }
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(CONTENT_TYPE, kind);
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        // It is unknown where the body ends, so nothing after it may be read as a request.
        if self.code == "framing" {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        // RFC 9110 section 11.6.1: a 401 must name an authentication scheme.
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // The detail for operators goes to the log along with the response.
        response.extensions_mut().insert(ProblemExt {
            code: self.code,
            operator_detail: self.operator_detail,
        });
        response
    }
}

/// The extension of an error response, for metrics and the log.
#[derive(Clone, Debug)]
pub(crate) struct ProblemExt {
    pub(crate) code: &'static str,
    pub(crate) operator_detail: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Faults of the service were called invalid requests.
    #[test]
    fn clients_were_told_to_correct_requests_because_the_service_had_no_thread_or_run() {
        let thread = StoreError::Thread {
            name: "pages".to_owned(),
            cause: Arc::new(std::io::ErrorKind::WouldBlock.into()),
        };
        let run = StoreError::RunBuild {
            path: "/data/secret".into(),
            reason: "too many documents".to_owned(),
        };
        for (error, status, code) in [(thread, 503, "threads"), (run, 500, "storage")] {
            let problem = ProblemDetails::from(error);
            assert_eq!((problem.status.as_u16(), problem.code), (status, code));
            assert!(problem.operator_detail.is_some());
            assert!(!problem.detail.contains("secret"), "{problem:?}");
        }
    }

    /// A document over the limit was an invalid request, which could be corrected "as the detail says".
    #[test]
    fn what_is_too_large_to_be_stored_has_a_remedy_that_helps() {
        let document = StoreError::DocumentTooLarge {
            id: "a".to_owned(),
            bytes: 5,
            limit: 4,
        };
        let batch = StoreError::BatchTooLarge { bytes: 5, limit: 4 };
        for (error, remedy) in [(document, "text in parts"), (batch, "several requests")] {
            let problem = ProblemDetails::from(error);
            assert_eq!((problem.status.as_u16(), problem.code), (413, "too-large"));
            assert!(problem.remedy.contains(remedy), "{problem}");
        }
    }

    #[test]
    fn failures_of_the_store_have_their_statuses_and_keep_paths_to_themselves() {
        let path = || "/data/secret".into();
        let full = StoreError::DiskFull { path: path() };
        let missing = StoreError::Missing {
            path: path(),
            named_by: "x",
        };
        for (error, status, code) in [
            (full, 507, "disk-full"),
            (missing, 500, "storage"),
            (StoreError::Stopped("/data/secret".into()), 503, "stopped"),
            (StoreError::Closed, 503, "closed"),
        ] {
            let is_secret = error.to_string().contains("secret");
            let problem = ProblemDetails::from(error);
            assert_eq!((problem.status.as_u16(), problem.code), (status, code));
            assert_eq!(problem.operator_detail.is_some(), is_secret);
            assert!(!problem.detail.contains("secret"), "{problem:?}");
            // Only errors that resolve with time should be retried.
            assert_eq!(
                problem.into_response().headers().contains_key(RETRY_AFTER),
                code == "closed"
            );
        }
    }
}
