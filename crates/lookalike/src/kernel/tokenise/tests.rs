//! Compares the kernel with a loop over bytes, at every level, and with the classes of single bytes.

use proptest::prelude::*;

use super::*;
use crate::kernel::CpuLevel;
use crate::text::WordBatch;

/// Words of the ASCII front of `text`, and its length, found byte by byte.
fn obvious(text: &[u8], rules: TokeniserRules) -> (Vec<Vec<u8>>, usize) {
    let len = text
        .iter()
        .position(|byte| !byte.is_ascii())
        .unwrap_or(text.len());
    let is_word = |at: usize| {
        let byte = text[at];
        byte.is_ascii_alphanumeric() || byte == b'_' || rules.join && joins(text, at)
    };
    let mut words: Vec<Vec<u8>> = vec![Vec::new()];
    for (at, byte) in text[..len].iter().enumerate() {
        match words.last_mut() {
            Some(word) if is_word(at) && rules.lower => word.push(byte.to_ascii_lowercase()),
            Some(word) if is_word(at) => word.push(*byte),
            _ => words.push(Vec::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    (words, len)
}

fn joins(text: &[u8], at: usize) -> bool {
    let (Some(before), Some(after)) = (at.checked_sub(1).map(|b| text[b]), text.get(at + 1)) else {
        return false;
    };
    let letters = before.is_ascii_alphabetic() && after.is_ascii_alphabetic();
    let digits = before.is_ascii_digit() && after.is_ascii_digit();
    match text[at] {
        b'.' | b'\'' => letters || digits,
        b':' => letters,
        b',' | b';' => digits,
        _ => false,
    }
}

fn scanned(
    level: CpuLevel,
    text: &[u8],
    rules: TokeniserRules,
    before: &str,
) -> (Vec<Vec<u8>>, usize) {
    let mut batch = WordBatch::default();
    batch.push(before);
    let scan = scan(level, text, rules, batch.room(text.len()));
    batch.commit(scan, scan.len, false);
    let words = batch
        .words()
        .skip(1)
        .map(|word| word.as_bytes().to_vec())
        .collect();
    (words, scan.len)
}

fn check(text: &[u8]) {
    for (lower, join) in [(false, false), (false, true), (true, false), (true, true)] {
        let rules = TokeniserRules { lower, join };
        let expected = obvious(text, rules);
        for level in CpuLevel::available() {
            assert_eq!(
                scanned(level, text, rules, "xy"),
                expected,
                "{rules:?} {level:?}"
            );
        }
    }
}

#[test]
fn each_byte_has_its_class_at_every_place() {
    for byte in 0..=255u8 {
        for len in [0, 1, 62, 63, 64, 65, 127, 128, 129] {
            for (before, after) in [(b'a', b'Z'), (b'0', b'9'), (b' ', b'_'), (b'a', b'5')] {
                let mut text = vec![before; len];
                text.push(byte);
                text.push(after);
                check(&text);
            }
        }
    }
}

proptest! {
    #[test]
    fn all_levels_find_the_obvious_words(
        text in proptest::collection::vec(
            prop_oneof![
                8 => proptest::sample::select(b"abYZ019_.,;:' \n".to_vec()),
                1 => proptest::sample::select((0..128u8).collect::<Vec<_>>()),
            ],
            0..400,
        ),
        other in proptest::option::of((0usize..400, 128u8..=255)),
    ) {
        let mut text = text;
        if let Some((at, byte)) = other
            && let Some(slot) = text.get_mut(at)
        {
            *slot = byte;
        }
        check(&text);
    }
}
