//! The operations, each a function from a request to a response.

pub(crate) mod collection;
mod collection_request;
pub(crate) mod document;
pub(crate) mod export;
pub(crate) mod load;
pub(crate) mod overlap;
pub(crate) mod page;
pub(crate) mod resketch;
pub(crate) mod snapshot;
pub(crate) mod status;
