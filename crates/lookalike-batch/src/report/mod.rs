//! The report of a finished job as one self-contained HTML page, and the aligned differences in it.
//!
//! This is the last step in the way of the data: a job hands over its counts and a few example
//! pairs as [`ReportData`], [`render`] makes the page. [`diff`] also serves `explain` in a terminal.
//!
//! The page needs no network and no other file. Everything in it that came from a document is
//! untrusted: each printed string passes one formatter that escapes markup and makes control and
//! direction characters visible, and the content security policy of the page allows only its own
//! style and script, by their hashes.

pub(crate) mod atlas;
mod chart;
mod cluster;
mod data;
pub mod diff;
mod explanation;
mod figure;
mod page;
mod statement;
mod visible;

#[cfg(test)]
mod tests;

pub use data::{
    BelowRow, ClusterRow, InputRow, ReportCounts, ReportData, ReportExample, ResultRow, SkipRow,
};
pub use explanation::render_explanation;

/// Reason why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The template could not be filled: a defect of this crate, not of the data.
    #[error("the report page could not be written")]
    Template(#[from] minijinja::Error),
}

/// Makes the report page.
///
/// The result depends on `data` alone. At most [`ReportData::MAX_INPUTS`] inputs and
/// [`ReportData::MAX_CLUSTERS`] clusters are listed; what is left out is counted on the page.
///
/// # Errors
///
/// [`ReportError::Template`] when the built-in template fails, which no data should bring about.
///
/// # Complexity
///
/// Linear in the inputs, plus one bounded alignment (see [`diff::side_by_side`]) for each cluster.
pub fn render(data: &ReportData) -> Result<String, ReportError> {
    page::render(data)
}
