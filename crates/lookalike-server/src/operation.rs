//! The operations of the service, with their names, paths and roles.

use crate::api_key::KeyRole;

/// An operation of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl ApiOperation {
    pub(crate) const ALL: [Self; 27] = [
        Self::Check,
        Self::Insert,
        Self::CheckAndInsert,
        Self::Query,
        Self::Delete,
        Self::Get,
        Self::Expire,
        Self::Paragraphs,
        Self::Rerank,
        Self::CopiesOf,
        Self::Export,
        Self::Load,
        Self::ListCollections,
        Self::CreateCollection,
        Self::ShowCollection,
        Self::ChangeCollection,
        Self::DropCollection,
        Self::Compact,
        Self::Resketch,
        Self::CancelResketch,
        Self::Snapshot,
        Self::Health,
        Self::Ready,
        Self::Metrics,
        Self::Description,
        Self::Console,
        Self::Other,
    ];

    /// Returns the name in metrics, logs and the description.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Insert => "insert",
            Self::CheckAndInsert => "check-and-insert",
            Self::Query => "query",
            Self::Delete => "delete",
            Self::Get => "get",
            Self::Expire => "expire",
            Self::Paragraphs => "paragraphs",
            Self::Rerank => "rerank",
            Self::CopiesOf => "copies-of",
            Self::Export => "export",
            Self::Load => "load",
            Self::ListCollections => "list-collections",
            Self::CreateCollection => "create-collection",
            Self::ShowCollection => "show-collection",
            Self::ChangeCollection => "change-collection",
            Self::DropCollection => "drop-collection",
            Self::Compact => "compact",
            Self::Resketch => "resketch",
            Self::CancelResketch => "cancel-resketch",
            Self::Snapshot => "snapshot",
            Self::Health => "healthz",
            Self::Ready => "readyz",
            Self::Metrics => "metrics",
            Self::Description => "description",
            Self::Console => "console",
            Self::Other => "other",
        }
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
            Self::Other => ("", ""),
        }
    }

    /// Returns the lowest role that may use the operation, or `None` if no key is needed.
    pub(crate) fn role(self) -> Option<KeyRole> {
        match self {
            Self::Health | Self::Ready | Self::Description | Self::Console | Self::Other => None,
            Self::Check
            | Self::Query
            | Self::Get
            | Self::Paragraphs
            | Self::Rerank
            | Self::CopiesOf
            | Self::Export
            | Self::ListCollections
            | Self::ShowCollection
            | Self::Metrics => Some(KeyRole::Read),
            // A key that may write may also compact.
            Self::Insert
            | Self::CheckAndInsert
            | Self::Delete
            | Self::Expire
            | Self::Load
            | Self::Compact => Some(KeyRole::Write),
            Self::CreateCollection
            | Self::ChangeCollection
            | Self::DropCollection
            | Self::Resketch
            | Self::CancelResketch
            | Self::Snapshot => Some(KeyRole::Admin),
        }
    }
}
