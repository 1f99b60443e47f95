//! The operations of the service, with their names, paths and roles.

use ApiOperation as Op;

use crate::api_key::KeyRole;

/// An operation of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// The number of an operation is its row in `TABLE` and in the counters of `ServiceMetrics`.
#[repr(usize)]
pub(crate) enum ApiOperation {
    Check,
    Insert,
    CheckAndInsert,
    Query,
    Delete,
    Get,
    Expire,
    Paragraphs,
    Rerank,
    CopiesOf,
    Export,
    Load,
    ListCollections,
    CreateCollection,
    ShowCollection,
    ChangeCollection,
    DropCollection,
    Compact,
    Resketch,
    CancelResketch,
    Snapshot,
    Health,
    Ready,
    Metrics,
    Description,
    Console,
    /// Any request that is not an operation.
    Other,
}

const READ: Option<KeyRole> = Some(KeyRole::Read);
const WRITE: Option<KeyRole> = Some(KeyRole::Write);
const ADMIN: Option<KeyRole> = Some(KeyRole::Admin);

/// Each operation in the order of the enum, with its name, the least role that may ask for it, and its method and path.
// One line each, so that columns can be read.
#[rustfmt::skip]
const TABLE: [(Op, &str, Option<KeyRole>, &str); ApiOperation::COUNT] = [
    (Op::Check, "check", READ, "POST /v1/collections/{name}/check"),
    (Op::Insert, "insert", WRITE, "POST /v1/collections/{name}/insert"),
    (Op::CheckAndInsert, "check-and-insert", WRITE, "POST /v1/collections/{name}/check-and-insert"),
    (Op::Query, "query", READ, "POST /v1/collections/{name}/query"),
    (Op::Delete, "delete", WRITE, "POST /v1/collections/{name}/delete"),
    (Op::Get, "get", READ, "POST /v1/collections/{name}/get"),
    (Op::Expire, "expire", WRITE, "POST /v1/collections/{name}/expire"),
    (Op::Paragraphs, "paragraphs", READ, "POST /v1/collections/{name}/paragraphs"),
    (Op::Rerank, "rerank", READ, "POST /v1/collections/{name}/rerank"),
    (Op::CopiesOf, "copies-of", READ, "POST /v1/collections/{name}/copies-of"),
    (Op::Export, "export", READ, "GET /v1/collections/{name}/export"),
    (Op::Load, "load", WRITE, "POST /v1/collections/{name}/load"),
    (Op::ListCollections, "list-collections", READ, "GET /v1/collections"),
    (Op::CreateCollection, "create-collection", ADMIN, "PUT /v1/collections/{name}"),
    (Op::ShowCollection, "show-collection", READ, "GET /v1/collections/{name}"),
    (Op::ChangeCollection, "change-collection", ADMIN, "PATCH /v1/collections/{name}"),
    (Op::DropCollection, "drop-collection", ADMIN, "DELETE /v1/collections/{name}"),
    // Whoever may write may have it put in order.
    (Op::Compact, "compact", WRITE, "POST /v1/collections/{name}/compact"),
    (Op::Resketch, "resketch", ADMIN, "POST /v1/collections/{name}/resketch"),
    (Op::CancelResketch, "cancel-resketch", ADMIN, "DELETE /v1/collections/{name}/resketch"),
    (Op::Snapshot, "snapshot", ADMIN, "POST /v1/snapshots"),
    (Op::Health, "healthz", None, "GET /healthz"),
    (Op::Ready, "readyz", None, "GET /readyz"),
    (Op::Metrics, "metrics", READ, "GET /metrics"),
    (Op::Description, "description", None, "GET /openapi.json"),
    (Op::Console, "console", None, "GET /"),
    // It has no route: `RouteBuilder::finish` uses it for whatever matches none.
    (Op::Other, "other", None, ""),
];

// Rows are found by the numbers of their operations.
const _: () = {
    let mut at = 0;
    while at < TABLE.len() {
        assert!(TABLE[at].0 as usize == at);
        at += 1;
    }
};

impl ApiOperation {
    /// Number of operations.
    pub(crate) const COUNT: usize = Self::Other as usize + 1;

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    /// Returns the name in metrics, logs and the description.
    pub(crate) fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The least role that may ask for it; anybody, when `None`.
    pub(crate) fn role(self) -> Option<KeyRole> {
        TABLE[self as usize].2
    }

    /// Returns method and path, from which the router and the description are made.
    pub(crate) fn path(self) -> (&'static str, &'static str) {
        // A row without a path has no method either.
        TABLE[self as usize].3.split_once(' ').unwrap_or_default()
    }
}
