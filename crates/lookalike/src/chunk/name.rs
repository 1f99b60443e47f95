//! Names of chunkings, as used on command lines and in results.

use std::fmt;

use super::{Chunking, RunChunking};
use crate::scheme::parse_error::option_from_str;

option_from_str!(
    Chunking,
    "chunking",
    "doc, sentences, paragraphs, or lines:N, words:N, chars:N or fields:N with N from 1 to 1000, such as words:8, or \
     overlapping, such as words:8:sliding",
    parse_chunking
);

fn parse_chunking(text: &str) -> Option<Chunking> {
    let (kind, rest) = text
        .split_once(':')
        .map_or((text, None), |(k, r)| (k, Some(r)));
    match (kind, rest) {
        ("doc", None) => Some(Chunking::Document),
        ("sentences", None) => Some(Chunking::Sentences),
        ("paragraphs", None) => Some(Chunking::Paragraphs),
        ("lines", rest) => run(rest).map(Chunking::Lines),
        ("fields", rest) => run(rest).map(Chunking::Fields),
        ("words", rest) => run(rest).map(Chunking::Words),
        ("chars", rest) => run(rest).map(Chunking::Characters),
        _ => None,
    }
}

/// Parses `N` or `N:sliding`; runs of one part if there is no text.
fn run(rest: Option<&str>) -> Option<RunChunking> {
    let Some(rest) = rest else {
        return Some(RunChunking::SINGLE);
    };
    let (number, sliding) = match rest.split_once(':') {
        None => (rest, false),
        Some((number, "sliding")) => (number, true),
        Some(_) => return None,
    };
    RunChunking::new(number.parse().ok()?, sliding)
}

impl fmt::Display for Chunking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, run) = match self {
            Self::Document => return f.write_str("doc"),
            Self::Sentences => return f.write_str("sentences"),
            Self::Paragraphs => return f.write_str("paragraphs"),
            Self::Lines(run) => ("lines", run),
            Self::Fields(run) => ("fields", run),
            Self::Words(run) => ("words", run),
            Self::Characters(run) => ("chars", run),
        };
        let sliding = if run.sliding { ":sliding" } else { "" };
        write!(f, "{kind}:{}{sliding}", run.length)
    }
}
