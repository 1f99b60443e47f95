//! Renders the report of a finished job as one self-contained HTML page, and the aligned differences in it.
//!
//! The report is the last step of a job: it hands its summary and a few example pairs over, and `page` renders them. [`diff`] is also used by
//! `explain` in a terminal.
//!
//! The page needs no network and no other file. Everything in it that comes from a document is untrusted: each printed string passes one formatter,
//! which escapes markup and makes control and direction characters visible. The page's content security policy allows only its own style and script,
//! by their hashes.

/// Hash of the style that all pages share, as policies name it. A macro, because `concat!` takes no constants.
macro_rules! style_hash {
    () => {
        "'sha256-qV+iidNLFjWmzbcEb8hCwFUQoYJ8eD8Ndg49fEX82ng='"
    };
}

pub(crate) mod atlas;
mod chart;
mod cluster;
mod data;
pub mod diff;
mod explanation;
mod figure;
mod page;
mod results;
mod statement;
mod visible;

#[cfg(test)]
mod tests;

pub(crate) use data::{BelowThresholdRow, InputRow, ReportData};
pub use data::{ClusterRow, ReportExample};
pub use explanation::render_explanation;
pub(crate) use page::render;

/// Reason why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The built-in template failed: a defect of this crate, not of the data.
    #[error("the report page could not be written")]
    Template(#[from] minijinja::Error),
}

/// Returns a value for a template.
pub(crate) fn serialized(value: impl serde::Serialize) -> minijinja::Value {
    minijinja::Value::from(minijinja::value::Serde(value))
}
