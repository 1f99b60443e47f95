//! Integration tests of the crate's promises, one module a theme.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod reading;
mod support;
