//! Which path leads to which operation.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::app::App;
use crate::endpoint::{collection, document, export, page, snapshot, status};
use crate::operation::Operation;
use crate::problem::Problem;
use crate::{description, gate};

/// The routes of a service. Each passes the gate with its own operation, and so does what has no route.
pub fn app(app: &Arc<App>) -> Router {
    let routes = Routes(app, Router::new())
        .with(Operation::Health, status::health)
        .with(Operation::Ready, status::ready)
        .with(Operation::Metrics, status::metrics)
        .with(Operation::Description, description::json)
        .with(Operation::Console, description::console)
        .with(Operation::Snapshot, snapshot::create)
        .with(Operation::ListCollections, collection::list)
        .with(Operation::CreateCollection, collection::create)
        .with(Operation::ShowCollection, collection::show)
        .with(Operation::ChangeCollection, collection::change)
        .with(Operation::DropCollection, collection::drop_collection)
        .with(Operation::Compact, collection::compact)
        .with(Operation::Check, document::check)
        .with(Operation::Query, document::query)
        .with(Operation::Insert, document::insert)
        .with(Operation::CheckAndInsert, document::check_and_insert)
        .with(Operation::Delete, document::delete)
        .with(Operation::Get, document::get)
        .with(Operation::Paragraphs, page::paragraphs)
        .with(Operation::Export, export::export);
    let gate = from_fn_with_state((Arc::clone(app), Operation::Other), gate::pass);
    let other = Router::new().fallback(|| async { no_route() }).layer(gate);
    routes
        .1
        .method_not_allowed_fallback(|| async { no_method() })
        .fallback_service(other)
        .with_state(Arc::clone(app))
}

/// The routes of the listener for health.
pub(crate) fn health(app: &Arc<App>) -> Router {
    let routes = Routes(app, Router::new())
        .with(Operation::Health, status::health)
        .with(Operation::Ready, status::ready);
    let gate = from_fn_with_state((Arc::clone(app), Operation::Other), gate::pass);
    let other = Router::new().fallback(|| async { no_route() }).layer(gate);
    routes
        .1
        .method_not_allowed_fallback(|| async { no_method() })
        .fallback_service(other)
        .with_state(Arc::clone(app))
}

struct Routes<'a>(&'a Arc<App>, Router<Arc<App>>);

impl Routes<'_> {
    fn with<T: 'static>(self, operation: Operation, handler: impl Handler<T, Arc<App>>) -> Self {
        let Self(app, router) = self;
        let (method, path) = operation.path();
        let method = match method {
            "PUT" => MethodFilter::PUT,
            "POST" => MethodFilter::POST,
            "PATCH" => MethodFilter::PATCH,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        let route: MethodRouter<Arc<App>> = on(method, handler);
        let gate = from_fn_with_state((Arc::clone(app), operation), gate::pass);
        Self(app, router.route(path, route.route_layer(gate)))
    }
}

fn no_route() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no-route",
        "there is nothing under this path",
        "docs/how-to/operations.md lists the paths; documents are named by `id` in the body",
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
