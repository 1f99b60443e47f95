//! The Hamming engine against slow, obvious versions of itself.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod batch;
mod collections;
mod designs;
mod files;
mod indexes;
mod real;
mod self_join;
mod stored;
