//! Inputs that are nearly valid, the same in every run.

use std::time::{Duration, Instant};

/// Words that are significant to readers.
const WORDS: &[&[u8]] = &[
    b"<",
    b"</",
    b">",
    b"<!--",
    b"-->",
    b"<script>",
    b"</script>",
    b"<![CDATA[",
    b"]]>",
    b"<svg>",
    b"<template>",
    b"<pre>\n",
    b"<table><tr><td>",
    b"<p hidden>",
    b"&#x110000;",
    b"&amp",
    b"'\"",
    b"\r\n\r\n",
    b"\n\n",
    b"\r\n",
    b"WARC/1.0\r\n",
    b"Content-Length: 18446744073709551615\r\n",
    b"Content-Length: 0\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Content-Encoding: br\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"{\"text\":\"",
    b"\\ud800",
    b"\\u0000",
    b"\"}\n",
    b"[[[[[[[[",
    b"{\"a\":",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x1f\x8b\x08",
    b"\x28\xb5\x2f\xfd",
    b"PAR1",
    b" obj\n<<",
    b">>\nstream\n",
    b"/Filter /FlateDecode",
    b" 0 R ",
    b"ARROW1",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\",\"",
    b"\"\"",
];

/// Pseudo-random numbers that are the same in every run: SplitMix64.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}

/// Returns the seeds for the inputs of a test: `count` of them, or as many as the environment specifies.
///
/// `LOOKALIKE_FUZZ_EXECUTIONS` overrides the count, `LOOKALIKE_FUZZ_MILLIS` replaces it by a time for each target, and `LOOKALIKE_FUZZ_SEED` is the
/// first seed of other inputs.
pub(crate) fn draws(count: u64) -> impl Iterator<Item = Numbers> {
    let wanted = |name: &str| {
        let value = std::env::var(name).ok()?;
        Some(value.parse::<u64>().expect("a number"))
    };
    let seed = wanted("LOOKALIKE_FUZZ_SEED").unwrap_or(0) << 32;
    let count = wanted("LOOKALIKE_FUZZ_EXECUTIONS").unwrap_or(count);
    let end = wanted("LOOKALIKE_FUZZ_MILLIS")
        .map(|millis| Instant::now() + Duration::from_millis(millis));
    let count = end.map_or(count, |_| u64::MAX - seed);
    (0..count)
        .take_while(move |_| end.is_none_or(|end| Instant::now() < end))
        .map(move |number| Numbers(seed + number))
}

/// Prints the target and the input if a test panics on it.
pub(crate) struct Trying<'a> {
    pub(crate) target: &'a str,
    pub(crate) bytes: &'a [u8],
}

impl Drop for Trying<'_> {
    #[allow(clippy::print_stderr, reason = "whoever mends it needs the input")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: {}", self.target, self.bytes.escape_ascii());
        }
    }
}

/// Returns one of the inputs with one to eight changes.
pub(crate) fn mutated(seeds: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seeds[numbers.below(seeds.len())].clone();
    for _ in 0..=numbers.below(8) {
        change(&mut bytes, seeds, numbers);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], numbers: &mut Numbers) {
    let at = numbers.below(bytes.len() + 1);
    let to = (at + numbers.below(64)).min(bytes.len());
    match numbers.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
        1 if at < bytes.len() => bytes[at] = numbers.below(256) as u8,
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..to)),
        4 => {
            let piece = bytes[at..to].to_vec();
            insert(bytes, at, &piece.repeat(1 + numbers.below(20)));
        }
        5 => {
            let other = &seeds[numbers.below(seeds.len())];
            let from = numbers.below(other.len() + 1);
            let end = (from + numbers.below(256)).min(other.len());
            insert(bytes, at, &other[from..end]);
        }
        6 => digits(bytes, at, numbers),
        _ => insert(bytes, at, WORDS[numbers.below(WORDS.len())]),
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// Replaces the next number in digits, which may be a length or a count.
fn digits(bytes: &mut Vec<u8>, from: usize, numbers: &mut Numbers) {
    let Some(start) = (from..bytes.len()).find(|&at| bytes[at].is_ascii_digit()) else {
        return;
    };
    let length = bytes[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let end = start + length.count();
    let number = [0, 1, 7, 255, 65_536, i64::MAX as u64, u64::MAX][numbers.below(7)];
    bytes.splice(start..end, number.to_string().into_bytes());
}
