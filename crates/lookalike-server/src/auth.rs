//! The gate that every request passes: checks its key, measures its time, and counts and logs its result.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::header::{AUTHORIZATION, HOST, TRANSFER_ENCODING};
use axum::http::{StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use crate::api_key::{ApiKey, KeyScope};
use crate::app_state::AppState;
use crate::client::KeyName;
use crate::event_log::{LogEntry, LogLevel};
use crate::host;
use crate::load_shedding::ShedRequest;
use crate::operation::ApiOperation;
use crate::problem::{ProblemDetails, ProblemExt};
use crate::request::body_format;

/// Passes an admitted request on to its operation, and counts and logs the result.
pub(crate) async fn authenticate(
    State((app, operation)): State<(Arc<AppState>, ApiOperation)>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    // Before admission, because a key may be for some collections only.
    let (mut request, collection) = named_collection(request).await;
    let response = match admit(&app, operation, collection.as_deref(), &request) {
        Err(problem) => problem.into_response(),
        Ok(holder) => {
            if let Some(key) = holder {
                let extensions = request.extensions_mut();
                extensions.insert(KeyName(key.name));
                // For the list of collections, which shows only those in the scope.
                extensions.insert(key.scope);
            }
            // A last resort: a panic on this thread would close the connection and, with HTTP/2, interrupt its other requests.
            AssertUnwindSafe(next.run(request))
                .catch_unwind()
                .await
                .unwrap_or_else(|_| ProblemDetails::panic().into_response())
        }
    };
    // The time until the answer is ready: how fast the client takes it, or how long an export runs, is not part of it.
    let (status, took) = (response.status(), started.elapsed());
    app.metrics.request(operation, status.as_u16(), took);
    let told = response.extensions().get::<ProblemExt>();
    if let Some(told) = told {
        app.metrics.refused(told.code);
    }
    // Under load, 503 is an intended answer and counted by metrics. Errors that an operator has to repair have a detail for operators.
    let is_failure = told.is_some_and(|told| told.operator_detail.is_some())
        || (status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE);
    let level = if is_failure {
        LogLevel::Error
    } else {
        LogLevel::Debug
    };
    // Checked before the entry is built, because this runs for every request.
    if app.log.enabled(level) {
        let mut entry = LogEntry::new(level, "request")
            .with("operation", operation.name())
            .with("status", status.as_u16())
            .with("micros", took.as_micros() as u64);
        if let Some(told) = told {
            entry = entry.with("code", told.code);
            if let Some(detail) = &told.operator_detail {
                entry = entry.with("reason", detail.as_str());
            }
        }
        app.log.record(&entry);
    }
    response
}

/// Returns the collection that the path of a request names, decoded as for handlers.
async fn named_collection(request: Request) -> (Request, Option<String>) {
    let (mut parts, body) = request.into_parts();
    let params = RawPathParams::from_request_parts(&mut parts, &())
        .await
        .ok();
    // The placeholder in the paths of `ApiOperation::path`.
    let name = params.iter().flatten().find(|(name, _)| *name == "name");
    let name = name.map(|(_, value)| value.to_owned());
    (Request::from_parts(parts, body), name)
}

/// Tells whether a key is valid for an operation. A key for certain collections is not valid for operations that would reveal others;
/// listing collections shows it only its own.
fn is_in_scope(key: &ApiKey, operation: ApiOperation, collection: Option<&str>) -> bool {
    match collection {
        Some(name) => key.scope.includes(name),
        None => key.scope == KeyScope::All || operation == ApiOperation::ListCollections,
    }
}

/// Refuses bodies with a transfer coding. If a body has two lengths, proxies and this service may disagree on where it ends. In HTTP/1.1,
/// the header must give the length, but hyper drops it when there is a transfer coding as well.
fn check_framing(request: &Request) -> Result<(), ProblemDetails> {
    if !request.headers().contains_key(TRANSFER_ENCODING) {
        return Ok(());
    }
    Err(ProblemDetails::new(
        StatusCode::BAD_REQUEST,
        "framing",
        "the body is sent with a transfer coding",
        "send it with the header Content-Length and without Transfer-Encoding",
    ))
}

/// Refuses requests of HTTP/1.1 that do not name exactly one host (RFC 9112 section 3.2): a proxy may take another one than this service.
fn check_host(request: &Request) -> Result<(), ProblemDetails> {
    let names = request.headers().get_all(HOST).iter().count();
    if request.version() != Version::HTTP_11 || names == 1 {
        return Ok(());
    }
    Err(ProblemDetails::new(
        StatusCode::BAD_REQUEST,
        "malformed",
        match names {
            0 => "the request has no header Host",
            _ => "the request has several headers Host",
        },
        "send one header Host",
    ))
}

/// Refuses requests that a page of another site may have caused: without keys, only the request itself can show that it is intended.
fn check_sender(operation: ApiOperation, request: &Request) -> Result<(), ProblemDetails> {
    if !host::is_local(request) {
        return Err(ProblemDetails::new(
            StatusCode::FORBIDDEN,
            "host",
            "this service has no keys and answers to localhost only",
            "send the request to localhost, or require keys",
        ));
    }
    // After the name of the host, because to the browser a page whose name resolves to this machine is of the same site.
    if host::is_cross_site(request) {
        return Err(ProblemDetails::new(
            StatusCode::FORBIDDEN,
            "origin",
            "this service has no keys and does not answer pages of other sites",
            "send the request from a program, or require keys",
        ));
    }
    // Browsers send a preflight before any other operation with an effect, because its method or the type of its body is not simple.
    if operation == ApiOperation::Compact
        && body_format(request.headers()).is_err()
        && !host::is_same_origin(request)
    {
        return Err(ProblemDetails::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media-type",
            "without keys this request is only taken with the header `Content-Type: application/json`: a page of any site could send it",
            "send it with that header, its body may be empty",
        ));
    }
    Ok(())
}

/// Decides whether a request may perform an operation. Returns its key, if one is required.
fn admit(
    app: &AppState,
    operation: ApiOperation,
    collection: Option<&str>,
    request: &Request,
) -> Result<Option<ApiKey>, ProblemDetails> {
    // Check this first for every operation, because a request may be smuggled after any of them (RFC 9112 section 11.2).
    check_framing(request)?;
    check_host(request)?;
    // Health checks and the description reveal nothing secret, and a load balancer has no key.
    let Some(needed) = operation.role() else {
        return Ok(None);
    };
    // Before keys are checked, because shed requests should cost nothing. Operations without a role are not shed, so that health checks are
    // answered.
    if request.extensions().get::<ShedRequest>().is_some() {
        return Err(ProblemDetails::busy(
            "overload",
            "the service is overloaded",
        ));
    }
    let keys = app.keys();
    if !keys.are_required() {
        return check_sender(operation, request).map(|()| None);
    }
    let secret = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        // RFC 9110 section 11.1: names of schemes are case-insensitive.
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, secret)| secret.trim());
    let unknown = || {
        ProblemDetails::new(
            StatusCode::UNAUTHORIZED,
            "key",
            "the request has no key, or an unknown one",
            "send the header `Authorization: Bearer KEY`",
        )
    };
    let is_for = |key: &ApiKey| is_in_scope(key, operation, collection);
    let allows = |key: &ApiKey| key.role >= needed && is_for(key);
    // An unknown key and no key get the same answer, so that nobody can probe names or scopes without a key.
    let key = secret
        .and_then(|secret| keys.find(secret, allows))
        .ok_or_else(unknown)?;
    // `find` prefers keys that are allowed, so if this one is not, no other line with its secret is.
    if allows(key) {
        return Ok(Some(key.clone()));
    }
    if !is_for(key) {
        return Err(ProblemDetails::new(
            StatusCode::FORBIDDEN,
            "scope",
            "this key is for other collections",
            "use another key",
        ));
    }
    let role = key.role;
    Err(ProblemDetails::new(
        StatusCode::FORBIDDEN,
        "role",
        format!(
            "{} needs a key with the role {needed}; this one has {role}",
            operation.name()
        ),
        "use another key",
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use axum::body::Body;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use axum::{Router, http};
    use lookalike_store::{Store, StoreOptions, UnixMillis};
    use tower::ServiceExt as _;

    use super::*;
    use crate::{EventLog, ServiceConfig};

    #[tokio::test]
    async fn a_panic_is_answered_counted_and_logged_without_its_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = StoreOptions::default().create(true);
        let store = Store::open(folder.path(), options).expect("a store");
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        let log = EventLog::new(LogLevel::Error, move |entry| {
            heard.lock().expect("whole").push_str(&format!("{entry:?}"));
        });
        let clock = Arc::new(|| UnixMillis(0));
        let app = AppState::new(store, ServiceConfig::new(clock, log)).expect("an app");
        let app = Arc::new(app);
        let auth = from_fn_with_state((Arc::clone(&app), ApiOperation::Check), authenticate);
        async fn fail() -> Response {
            panic!("secret words")
        }
        let router: Router = Router::new().route("/", get(fail)).layer(auth);
        let request = http::Request::get("/")
            .header(HOST, "localhost")
            .body(Body::empty())
            .expect("a request");
        let response = router.oneshot(request).await.expect("an answer");
        assert_eq!(response.status(), 500);
        let said = said.lock().expect("whole");
        assert!(
            said.contains("internal") && !said.contains("secret words"),
            "{said}"
        );
        let text = app.metrics.text(&crate::metrics::GaugeValues {
            waiting: 0,
            request_memory: 0,
            clock_held: false,
            time_ahead: std::time::Duration::ZERO,
            collections: &[],
        });
        assert!(
            text.contains("operation=\"check\",status=\"500\"} 1"),
            "{text}"
        );
    }
}
