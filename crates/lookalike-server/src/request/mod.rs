//! What is asked: bodies within their bounds, one item or a batch of them, options.

mod body;
mod content;
mod items;
mod options;
pub(crate) mod packed;

pub(crate) use body::{Form, Received, form, receive};
pub(crate) use content::{
    ChangedCollection, Content, Entry, HASHES, Id, Kept, KeptParts, NAME, NewCollection,
    NewSnapshot, Page, Paragraphs, Probe,
};
pub(crate) use items::{Answered, Item, Items, Shape, Written, parse_one};
pub(crate) use options::{
    GetOptions, InsertOptions, Looks, PageOptions, QueryOptions, ScopeOptions,
};
