//! The routes from paths to operations.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::app_state::AppState;
use crate::endpoint::{
    collection, document, export, load, overlap, page, resketch, snapshot, status,
};
use crate::operation::ApiOperation;
use crate::problem::ProblemDetails;
use crate::{auth, description};

/// Creates the routes of a service. Every request passes the authentication of its operation, and so does one to any other path or with any other method.
///
/// They are routes of axum 0.8. A server of your own around them lacks what [`serve`](crate::serve) adds: limits on connections, headers and idle
/// time, TLS, and the address of a client. Without addresses and keys, all clients share the memory that one client may take for bodies.
/// Requests of HTTP/1.1, as `Request::get` makes them, need the header `Host`.
///
/// ```
/// use axum::body::Body;
/// use axum::http::{Request, StatusCode};
/// use lookalike_server::{AppState, EventLog, LogLevel, ServiceConfig, router};
/// use lookalike_store::{Store, StoreOptions, UnixMillis};
/// use std::sync::Arc;
/// use std::time::SystemTime;
/// use tower::ServiceExt as _;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let store = Store::open(folder.path(), StoreOptions::default().create(true))?;
/// let clock = Arc::new(|| UnixMillis::from(SystemTime::now()));
/// let log = EventLog::new(LogLevel::Error, |entry| eprintln!("{}", entry.event));
/// let app = Arc::new(AppState::new(store, ServiceConfig::new(clock, log))?);
///
/// let request = Request::get("/healthz").header("host", "localhost").body(Body::empty())?;
/// let response = router(&app).oneshot(request).await?;
/// assert_eq!(response.status(), StatusCode::OK);
/// assert_eq!(app.store().collections().len(), 0);
/// drop(response);
/// app.close().await?;
/// # Ok(())
/// # }
/// ```
pub fn router(app: &Arc<AppState>) -> Router {
    RouteBuilder::new(app)
        .with(ApiOperation::Health, status::health)
        .with(ApiOperation::Ready, status::ready)
        .with(ApiOperation::Metrics, status::metrics)
        .with(ApiOperation::Description, description::json)
        .with(ApiOperation::Console, description::console)
        .with(ApiOperation::Snapshot, snapshot::create)
        .with(ApiOperation::ListCollections, collection::list)
        .with(ApiOperation::CreateCollection, collection::create)
        .with(ApiOperation::ShowCollection, collection::show)
        .with(ApiOperation::ChangeCollection, collection::change)
        .with(ApiOperation::DropCollection, collection::drop_collection)
        .with(ApiOperation::Compact, collection::compact)
        .with(ApiOperation::Resketch, resketch::resketch)
        .with(ApiOperation::CancelResketch, resketch::cancel)
        .with(ApiOperation::Check, document::check)
        .with(ApiOperation::Query, document::query)
        .with(ApiOperation::Insert, document::insert)
        .with(ApiOperation::CheckAndInsert, document::check_and_insert)
        .with(ApiOperation::Delete, document::delete)
        .with(ApiOperation::Get, document::get)
        .with(ApiOperation::Paragraphs, page::paragraphs)
        .with(ApiOperation::Rerank, overlap::rerank)
        .with(ApiOperation::CopiesOf, overlap::copies_of)
        .with(ApiOperation::Expire, document::expire)
        .with(ApiOperation::Export, export::export)
        .with(ApiOperation::Load, load::load)
        .finish()
}

/// Creates the routes of the listener for health checks.
pub(crate) fn health_router(app: &Arc<AppState>) -> Router {
    RouteBuilder::new(app)
        .with(ApiOperation::Health, status::health)
        .with(ApiOperation::Ready, status::ready)
        .finish()
}

struct RouteBuilder<'a> {
    app: &'a Arc<AppState>,
    router: Router<Arc<AppState>>,
}

impl<'a> RouteBuilder<'a> {
    fn new(app: &'a Arc<AppState>) -> Self {
        let router = Router::new();
        Self { app, router }
    }

    /// Adds the route of an operation.
    fn with<T: 'static>(
        mut self,
        operation: ApiOperation,
        handler: impl Handler<T, Arc<AppState>>,
    ) -> Self {
        let (method, path) = operation.path();
        let method = match method {
            "PUT" => MethodFilter::PUT,
            "POST" => MethodFilter::POST,
            "PATCH" => MethodFilter::PATCH,
            "DELETE" => MethodFilter::DELETE,
            // axum answers HEAD with the same handler.
            _ => MethodFilter::GET,
        };
        let route: MethodRouter<Arc<AppState>> = on(method, handler);
        let auth = from_fn_with_state((Arc::clone(self.app), operation), auth::authenticate);
        // The layer is added to each route separately, because it depends on the operation. So no route can be added without it.
        self.router = self.router.route(path, route.route_layer(auth));
        self
    }

    /// Adds answers for all other paths and methods.
    fn finish(self) -> Router {
        let state = (Arc::clone(self.app), ApiOperation::Other);
        let auth = from_fn_with_state(state, auth::authenticate);
        // The layers of routes apply to their own method only.
        let no_method = (|| async { no_method() }).layer(auth.clone());
        let other = Router::new().fallback(|| async { no_route() }).layer(auth);
        self.router
            .method_not_allowed_fallback(no_method)
            .fallback_service(other)
            .with_state(Arc::clone(self.app))
    }
}

fn no_route() -> ProblemDetails {
    ProblemDetails::new(
        StatusCode::NOT_FOUND,
        "no-route",
        "this path does not exist",
        "see / or /openapi.json of the service for the paths; documents are named by `id` in the body",
    )
}

fn no_method() -> ProblemDetails {
    ProblemDetails::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method",
        "this path does not support this method",
        "use a method that the header Allow names",
    )
}
