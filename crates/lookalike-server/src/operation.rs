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

/// Each operation in the order of the enum, with its name and the least role that may ask for it.
const TABLE: [(Op, &str, Option<KeyRole>); ApiOperation::COUNT] = [
    (Op::Check, "check", READ),
    (Op::Insert, "insert", WRITE),
    (Op::CheckAndInsert, "check-and-insert", WRITE),
    (Op::Query, "query", READ),
    (Op::Delete, "delete", WRITE),
    (Op::Get, "get", READ),
    (Op::Expire, "expire", WRITE),
    (Op::Paragraphs, "paragraphs", READ),
    (Op::Rerank, "rerank", READ),
    (Op::CopiesOf, "copies-of", READ),
    (Op::Export, "export", READ),
    (Op::Load, "load", WRITE),
    (Op::ListCollections, "list-collections", READ),
    (Op::CreateCollection, "create-collection", ADMIN),
    (Op::ShowCollection, "show-collection", READ),
    (Op::ChangeCollection, "change-collection", ADMIN),
    (Op::DropCollection, "drop-collection", ADMIN),
    // Whoever may write may have it put in order.
    (Op::Compact, "compact", WRITE),
    (Op::Resketch, "resketch", ADMIN),
    (Op::CancelResketch, "cancel-resketch", ADMIN),
    (Op::Snapshot, "snapshot", ADMIN),
    (Op::Health, "healthz", None),
    (Op::Ready, "readyz", None),
    (Op::Metrics, "metrics", READ),
    (Op::Description, "description", None),
    (Op::Console, "console", None),
    (Op::Other, "other", None),
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
        match self {
            Self::Check => ("POST", "/v1/collections/{name}/check"),
            Self::Insert => ("POST", "/v1/collections/{name}/insert"),
            Self::CheckAndInsert => ("POST", "/v1/collections/{name}/check-and-insert"),
            Self::Query => ("POST", "/v1/collections/{name}/query"),
            Self::Delete => ("POST", "/v1/collections/{name}/delete"),
            Self::Get => ("POST", "/v1/collections/{name}/get"),
            Self::Paragraphs => ("POST", "/v1/collections/{name}/paragraphs"),
            Self::Rerank => ("POST", "/v1/collections/{name}/rerank"),
            Self::CopiesOf => ("POST", "/v1/collections/{name}/copies-of"),
            Self::Export => ("GET", "/v1/collections/{name}/export"),
            Self::Expire => ("POST", "/v1/collections/{name}/expire"),
            Self::Load => ("POST", "/v1/collections/{name}/load"),
            Self::ListCollections => ("GET", "/v1/collections"),
            Self::CreateCollection => ("PUT", "/v1/collections/{name}"),
            Self::ShowCollection => ("GET", "/v1/collections/{name}"),
            Self::ChangeCollection => ("PATCH", "/v1/collections/{name}"),
            Self::DropCollection => ("DELETE", "/v1/collections/{name}"),
            Self::Compact => ("POST", "/v1/collections/{name}/compact"),
            Self::Resketch => ("POST", "/v1/collections/{name}/resketch"),
            Self::CancelResketch => ("DELETE", "/v1/collections/{name}/resketch"),
            Self::Snapshot => ("POST", "/v1/snapshots"),
            Self::Health => ("GET", "/healthz"),
            Self::Ready => ("GET", "/readyz"),
            Self::Metrics => ("GET", "/metrics"),
            Self::Description => ("GET", "/openapi.json"),
            Self::Console => ("GET", "/"),
            // It has no route: `RouteBuilder::finish` uses it for whatever matches none.
            Self::Other => ("", ""),
        }
    }
}
