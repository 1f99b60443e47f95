//! The Hamming engine against slow, obvious versions of itself.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod collections;
mod designs;
mod indexes;
mod self_join;
