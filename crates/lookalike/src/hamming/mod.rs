//! Exact Hamming search over fingerprints.
pub mod code;
mod kernel;
pub use kernel::Level;
