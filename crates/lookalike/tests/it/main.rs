//! Tests of the core through its public interface: laws, definitions, published vectors and the worked examples of the sources. Each file states what
//! it checks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod band;
mod chunk;
mod cluster;
mod feature;
#[path = "../../../lookalike-hamming/tests/it/fuzzed.rs"]
mod fuzzed;
#[path = "../fuzzing/mod.rs"]
mod fuzzing;
#[cfg(feature = "languages")]
mod languages;
#[path = "../../../lookalike-corpus/tests/fuzzing/mutate.rs"]
mod mutate;
mod resemblance;
mod scheme;
mod scheme_vectors;
mod sketch;
mod sketcher;
mod sources;
mod terms;
mod text;
mod unicode;
mod vectors;
mod weight;
