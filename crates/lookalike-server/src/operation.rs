//! What can be asked of the service: the label of each in metrics, and who may ask.

use crate::key::Role;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Operation {
    Check,
    Insert,
    CheckAndInsert,
    Query,
    Delete,
    Get,
    ListCollections,
    CreateCollection,
    ShowCollection,
    DropCollection,
    Health,
    Ready,
    Metrics,
    /// Everything that is no operation.
    Other,
}

impl Operation {
    pub(crate) const ALL: [Self; 14] = [
        Self::Check,
        Self::Insert,
        Self::CheckAndInsert,
        Self::Query,
        Self::Delete,
        Self::Get,
        Self::ListCollections,
        Self::CreateCollection,
        Self::ShowCollection,
        Self::DropCollection,
        Self::Health,
        Self::Ready,
        Self::Metrics,
        Self::Other,
    ];

    /// Its name in metrics and logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Insert => "insert",
            Self::CheckAndInsert => "check-and-insert",
            Self::Query => "query",
            Self::Delete => "delete",
            Self::Get => "get",
            Self::ListCollections => "list-collections",
            Self::CreateCollection => "create-collection",
            Self::ShowCollection => "show-collection",
            Self::DropCollection => "drop-collection",
            Self::Health => "healthz",
            Self::Ready => "readyz",
            Self::Metrics => "metrics",
            Self::Other => "other",
        }
    }

    /// The least role that may ask for it; anybody, when `None`.
    pub(crate) fn role(self) -> Option<Role> {
        match self {
            Self::Health | Self::Ready | Self::Other => None,
            Self::Check
            | Self::Query
            | Self::Get
            | Self::ListCollections
            | Self::ShowCollection
            | Self::Metrics => Some(Role::Read),
            Self::Insert | Self::CheckAndInsert | Self::Delete => Some(Role::Write),
            Self::CreateCollection | Self::DropCollection => Some(Role::Admin),
        }
    }
}
