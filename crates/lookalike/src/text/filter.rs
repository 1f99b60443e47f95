//! Stop words and stems in a build that has none: no scheme asks for them.

use std::borrow::Cow;

use super::WordBatch;
use crate::scheme::Scheme;

/// There is none.
#[derive(Debug, Clone)]
pub(super) enum WordListFilter {}

impl WordListFilter {
    pub(super) fn new(_: &Scheme) -> Option<Self> {
        None
    }

    pub(super) fn begin(&mut self, _: &str) {
        match *self {}
    }

    pub(super) fn word<'w>(&self, _: &'w str) -> Option<Cow<'w, str>> {
        match *self {}
    }

    pub(super) fn apply(&mut self, _: &WordBatch) -> &WordBatch {
        match *self {}
    }
}
