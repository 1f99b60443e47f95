//! What is asked: bodies within their bounds, one item or a batch of them, options.

mod body;
mod content;
mod items;
mod options;

pub(crate) use body::{Received, receive};
pub(crate) use content::{Content, Entry, Id, Kept, NewCollection, Probe};
pub(crate) use items::{Items, Shape, parse_one};
pub(crate) use options::{InsertOptions, QueryOptions, ScopeOptions};
