//! Which path leads to which operation.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};

use crate::app::App;
use crate::endpoint::{collection, document, status};
use crate::gate;
use crate::operation::Operation;
use crate::problem::Problem;

/// The routes of a service. Each passes the gate with its own operation, and so does what has no route.
pub fn app(app: &Arc<App>) -> Router {
    let behind_gate = |operation: Operation, route: MethodRouter<Arc<App>>| {
        route.route_layer(from_fn_with_state((Arc::clone(app), operation), gate::pass))
    };
    let on = |operation, route| behind_gate(operation, route);
    let collections = behind_gate(
        Operation::CreateCollection,
        axum::routing::put(collection::create),
    )
    .merge(on(Operation::ShowCollection, get(collection::show)))
    .merge(on(
        Operation::DropCollection,
        axum::routing::delete(collection::drop_collection),
    ));
    let other = Router::new()
        .fallback(|| async { no_route() })
        .layer(from_fn_with_state(
            (Arc::clone(app), Operation::Other),
            gate::pass,
        ));
    Router::new()
        .route("/healthz", on(Operation::Health, get(status::health)))
        .route("/readyz", on(Operation::Ready, get(status::ready)))
        .route("/metrics", on(Operation::Metrics, get(status::metrics)))
        .route(
            "/v1/collections",
            on(Operation::ListCollections, get(collection::list)),
        )
        .route("/v1/collections/{name}", collections)
        .route(
            "/v1/collections/{name}/check",
            on(Operation::Check, post(document::check)),
        )
        .route(
            "/v1/collections/{name}/query",
            on(Operation::Query, post(document::query)),
        )
        .route(
            "/v1/collections/{name}/insert",
            on(Operation::Insert, post(document::insert)),
        )
        .route(
            "/v1/collections/{name}/check-and-insert",
            on(Operation::CheckAndInsert, post(document::check_and_insert)),
        )
        .route(
            "/v1/collections/{name}/delete",
            on(Operation::Delete, post(document::delete)),
        )
        .route(
            "/v1/collections/{name}/get",
            on(Operation::Get, post(document::get)),
        )
        .method_not_allowed_fallback(|| async { no_method() })
        .fallback_service(other)
        .with_state(Arc::clone(app))
}

fn no_route() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no-route",
        "there is nothing under this path",
        "docs/operations.md lists the paths; documents are named by `id` in the body",
    )
}

fn no_method() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method",
        "this path is not asked with this method",
        "use a method of the header Allow",
    )
}
