//! Stop words and stems in a build without them: no scheme can ask for them.

use std::borrow::Cow;

use super::WordBatch;
use crate::scheme::Scheme;

/// A filter that cannot exist.
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
