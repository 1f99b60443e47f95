//! Requests: bodies within their limits, one item or a batch, and options.

mod body;
mod exported;
mod fields;
mod fields_by_name;
mod hex_words;
mod items;
mod min_equal;
mod options;
pub(crate) mod packed;
mod sent_fields;

pub(crate) use body::{BodyFormat, ReceivedBody, body_format, receive};
pub(crate) use exported::ExportedDocument;
pub use fields::MAX_METADATA_BYTES;
pub(crate) use fields::{
    ChangedCollection, ChunkedDocument, ChunkedItem, ContentItem, DocumentId, ExpiringDocument,
    HASHES, KeptParts, NAME, NewCollection, NewDocument, NewSnapshot, PageItem, ParagraphQuery,
    ParagraphRuleOption, ResketchedCollection,
};
pub(crate) use hex_words::HexBits;
pub(crate) use items::{
    EncodedBody, ItemResponse, ItemsShape, RequestItem, RequestItems, no_compact_form, parse_one,
};
pub(crate) use min_equal::{ShownRadius, places_name};
pub(crate) use options::{
    CheckAndInsertOptions, CopiesOptions, CopyScope, GetOptions, InsertOptions, NeighbourOptions,
    PageOptions, QueryOptions, RerankOptions, ScopeOptions,
};
pub(crate) use sent_fields::SentFields;
