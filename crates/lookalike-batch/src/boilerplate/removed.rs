//! Counts of the boilerplate lines that were removed from texts.

use lookalike_corpus::{InputOptions, RemovedBoilerplate};
use serde::{Deserialize, Serialize};

/// Counts of the lines that were learned and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BoilerplateCounts {
    /// The pages among which the lines recur, and the id of the set of lines, as in the scheme.
    pub lines_of: String,
    /// Number of lines learned.
    pub learned: u64,
    /// Number of documents from which lines were removed.
    pub documents: u64,
    /// Number of lines removed.
    pub lines: u64,
    /// Number of bytes of these lines.
    pub bytes: u64,
    /// Number of documents that kept all lines because almost nothing else would have been left.
    pub kept_whole: u64,
    /// Number of documents without a site, which kept all lines.
    pub without_site: u64,
}

tally! {
    /// The counts of [`BoilerplateCounts`] that change during the job.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub(crate) struct RemovedTally {
        documents: u64,
        lines: u64,
        bytes: u64,
        kept_whole: u64,
        without_site: u64,
    }
}

impl RemovedTally {
    /// Counts a document.
    pub(crate) fn count(&mut self, removed: &RemovedBoilerplate) {
        self.documents += u64::from(removed.lines > 0);
        self.lines += removed.lines;
        self.bytes += removed.bytes;
        self.kept_whole += u64::from(removed.kept_whole);
        self.without_site += u64::from(removed.without_site);
    }

    /// Returns the counts for a summary, or `None` if nothing was to be removed.
    pub(crate) fn counts(&self, options: &InputOptions) -> Option<BoilerplateCounts> {
        let lines = options.boilerplate.as_ref()?;
        Some(BoilerplateCounts {
            lines_of: lines.scheme().to_string(),
            learned: lines.len() as u64,
            documents: self.documents,
            lines: self.lines,
            bytes: self.bytes,
            kept_whole: self.kept_whole,
            without_site: self.without_site,
        })
    }
}
