//! Every request passes here: who asks, how long it took, what became of it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, TRANSFER_ENCODING};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use crate::app::App;
use crate::host;
use crate::log::{Entry, Level};
use crate::operation::Operation;
use crate::overload::Shed;
use crate::problem::{Problem, Told};
use crate::request::form;

/// Lets a request through to its operation, and counts what becomes of it.
pub(crate) async fn pass(
    State((app, operation)): State<(Arc<App>, Operation)>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let response = match admit(&app, operation, &request) {
        Err(problem) => problem.into_response(),
        Ok(holder) => {
            if let Some(holder) = holder {
                request.extensions_mut().insert(holder);
            }
            AssertUnwindSafe(next.run(request))
                .catch_unwind()
                .await
                .unwrap_or_else(|_| Problem::panic().into_response())
        }
    };
    let (status, took) = (response.status(), started.elapsed());
    app.metrics.request(operation, status.as_u16(), took);
    let told = response.extensions().get::<Told>();
    if let Some(told) = told {
        app.metrics.refused(told.code);
    }
    let is_failure = told.is_some_and(|told| told.secret.is_some())
        || (status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE);
    let level = if is_failure {
        Level::Error
    } else {
        Level::Debug
    };
    if app.log.wants(level) {
        let mut entry = Entry::new(level, "request")
            .with("operation", operation.name())
            .with("status", status.as_u16())
            .with("micros", took.as_micros() as u64);
        if let Some(told) = told {
            entry = entry.with("code", told.code);
            if let Some(secret) = &told.secret {
                entry = entry.with("reason", secret.as_str());
            }
        }
        app.log.say(&entry);
    }
    response
}

/// Two lengths of one body let those on the way and us disagree on where it ends. Bodies of HTTP/1.1 have one, in their
/// header; hyper forgets it beside a transfer coding, so that none of these is taken.
fn check_framing(request: &Request) -> Result<(), Problem> {
    if !request.headers().contains_key(TRANSFER_ENCODING) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::BAD_REQUEST,
        "framing",
        "the body is sent with a transfer coding",
        "send it with the header Content-Length and without Transfer-Encoding",
    ))
}

/// The name of the key that a request came with, as an extension of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyName(pub(crate) Arc<str>);

/// Refuses what a page of another site may have sent: without keys the request alone must tell that it was meant.
fn check_sender(operation: Operation, request: &Request) -> Result<(), Problem> {
    if !host::is_local(request) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "host",
            "this service has no keys and answers to localhost only",
            "send the request to localhost, or start the service with --keys",
        ));
    }
    // Browsers ask before they send any other operation that changes something: its method or the type of its body is none of
    // the simple ones.
    if operation == Operation::Compact
        && form(request.headers()).is_err()
        && !host::is_own_page(request)
    {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media-type",
            "without keys this request is only taken with the header `Content-Type: application/json`: a page of any site could send it",
            "send it with that header, its body may be empty",
        ));
    }
    Ok(())
}

/// Refuses whoever may not ask for an operation; the name of the key, where one is asked for.
fn admit(app: &App, operation: Operation, request: &Request) -> Result<Option<KeyName>, Problem> {
    check_framing(request)?;
    let Some(needed) = operation.role() else {
        return Ok(None);
    };
    if request.extensions().get::<Shed>().is_some() {
        return Err(Problem::busy(
            "overload",
            "more requests come than can be answered in time",
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
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, secret)| secret.trim());
    let unknown = || {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "key",
            "the request has no key, or one that is not known here",
            "send the header `Authorization: Bearer KEY`",
        )
    };
    let key = secret
        .and_then(|secret| keys.find(secret))
        .ok_or_else(unknown)?;
    let role = key.role;
    if role >= needed {
        return Ok(Some(KeyName(Arc::clone(&key.name))));
    }
    Err(Problem::new(
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
    use lookalike_store::{OpenOptions, Store, Time};
    use tower::ServiceExt as _;

    use super::*;
    use crate::{Keys, Limits, Log, Setup};

    #[tokio::test]
    async fn a_panic_is_answered_counted_and_logged_without_its_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = OpenOptions {
            create: true,
            ..OpenOptions::default()
        };
        let store = Store::open(folder.path(), options).expect("a store");
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        let log = Log::new(Level::Error, move |entry| {
            heard.lock().expect("whole").push_str(&format!("{entry:?}"));
        });
        let clock = Arc::new(|| Time(0));
        let setup = Setup {
            keys: Keys::default(),
            limits: Limits::default(),
            clock,
            trust_clock: false,
            log,
            snapshots: None,
        };
        let app = App::new(store, setup).expect("an app");
        let app = Arc::new(app);
        let gate = from_fn_with_state((Arc::clone(&app), Operation::Check), pass);
        async fn fail() -> Response {
            panic!("secret words")
        }
        let router: Router = Router::new().route("/", get(fail)).layer(gate);
        let request = http::Request::get("/")
            .body(Body::empty())
            .expect("a request");
        let response = router.oneshot(request).await.expect("an answer");
        assert_eq!(response.status(), 500);
        let said = said.lock().expect("whole");
        assert!(
            said.contains("internal") && !said.contains("secret words"),
            "{said}"
        );
        let text = app.metrics.text(&crate::metric::Gauges {
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
