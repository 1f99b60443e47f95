//! Ids of fingerprints: none, numbers, or texts in one buffer.

use std::borrow::Cow;
use std::cmp::Ordering;

use lookalike_hamming::Word;

use super::sized_fingerprint::SizedFingerprint;

/// The ids of a collection, by position.
#[derive(Clone, Debug, Default)]
pub enum FingerprintIds {
    /// No ids: fingerprints stand for themselves.
    #[default]
    None,
    /// Numbers from a fingerprint file.
    Numbers(Vec<u64>),
    /// Texts from JSON Lines, fingerprint files or tables, concatenated, with the end of each.
    Texts {
        /// The texts, concatenated.
        bytes: String,
        /// End of each text in `bytes`.
        ends: Vec<u64>,
    },
}

/// Name of a fingerprint in results.
///
/// Numbers sort before all other names, which sort as the texts that results show. The order can therefore be verified from the results.
#[derive(Clone, Copy, Debug)]
pub enum FingerprintName<'a> {
    /// The fingerprint itself.
    Fingerprint(SizedFingerprint),
    /// A number.
    Number(u64),
    /// A text.
    Text(&'a str),
}

impl<'a> FingerprintName<'a> {
    /// Returns the name of a fingerprint that stands for itself.
    pub fn from_code<W: Word>(code: W) -> Self {
        Self::Fingerprint(SizedFingerprint::new(code))
    }

    /// Returns the name as a text: digits for a fingerprint, decimal digits for a number.
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Self::Fingerprint(fingerprint) => fingerprint.to_string().into(),
            Self::Number(number) => number.to_string().into(),
            Self::Text(text) => text.into(),
        }
    }
}

impl Ord for FingerprintName<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            // Any order between the kinds would do, as long as it is total.
            (Self::Number(_), _) => Ordering::Less,
            (_, Self::Number(_)) => Ordering::Greater,
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            // Digits of the same length sort as their numbers do.
            (Self::Fingerprint(a), Self::Fingerprint(b)) => a.cmp(b),
            (Self::Fingerprint(a), Self::Text(b)) => a.to_string().as_str().cmp(b),
            (Self::Text(a), Self::Fingerprint(b)) => (*a).cmp(b.to_string().as_str()),
        }
    }
}

impl PartialOrd for FingerprintName<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// Not derived: a fingerprint without an id equals the text of its digits.
impl PartialEq for FingerprintName<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for FingerprintName<'_> {}

impl FingerprintIds {
    /// Returns the name of the fingerprint at a position.
    pub fn name<W: Word>(&self, at: usize, fingerprint: W) -> FingerprintName<'_> {
        match self {
            Self::None => FingerprintName::from_code(fingerprint),
            Self::Numbers(numbers) => FingerprintName::Number(numbers[at]),
            Self::Texts { bytes, ends } => {
                let start = at.checked_sub(1).map_or(0, |before| ends[before]) as usize;
                FingerprintName::Text(&bytes[start..ends[at] as usize])
            }
        }
    }

    /// Tells whether fingerprints stand for themselves.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Removes all ids but keeps the allocation.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::None => {}
            Self::Numbers(numbers) => numbers.clear(),
            Self::Texts { bytes, ends } => {
                bytes.clear();
                ends.clear();
            }
        }
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Numbers(numbers) => size_of_val(numbers.as_slice()) as u64,
            Self::Texts { bytes, ends } => (bytes.len() + size_of_val(ends.as_slice())) as u64,
        }
    }

    /// Keeps the ids at the positions that are `true`.
    pub(super) fn retain(&mut self, kept: &[bool]) {
        let mut flags = kept.iter().copied();
        match self {
            Self::None => {}
            Self::Numbers(numbers) => numbers.retain(|_| flags.next().unwrap_or(false)),
            Self::Texts { bytes, ends } => {
                let (mut texts, mut start) = (String::with_capacity(bytes.len()), 0);
                ends.retain_mut(|end| {
                    let text = &bytes[start..*end as usize];
                    start = *end as usize;
                    let is_kept = flags.next().unwrap_or(false);
                    if is_kept {
                        texts.push_str(text);
                        *end = texts.len() as u64;
                    }
                    is_kept
                });
                *bytes = texts;
            }
        }
    }

    pub(crate) fn extend_numbers(&mut self, more: &[u64]) {
        match self {
            Self::Numbers(numbers) => numbers.extend_from_slice(more),
            // Nothing is lost: a file has ids of one kind, and `CodeFiles::read_chunk` starts each file without ids.
            other => *other = Self::Numbers(more.to_vec()),
        }
    }

    /// Appends concatenated texts with their ends among them.
    pub(crate) fn extend_texts(&mut self, texts: &str, more: &[u64]) {
        if !matches!(self, Self::Texts { .. }) {
            *self = Self::Texts {
                bytes: String::new(),
                ends: Vec::new(),
            };
        }
        if let Self::Texts { bytes, ends } = self {
            let before = bytes.len() as u64;
            bytes.push_str(texts);
            ends.extend(more.iter().map(|end| before + end));
        }
    }

    /// Appends a text as the id of the next fingerprint. If the fingerprints so far, `before`, have no ids, they keep standing for themselves.
    pub(crate) fn push_text<W: Word>(&mut self, text: &str, before: &[W]) {
        if !matches!(self, Self::Texts { .. }) {
            *self = Self::Texts {
                bytes: String::new(),
                ends: Vec::new(),
            };
            // Ids and fingerprints have the same positions, so earlier fingerprints without ids get their digits.
            before.iter().for_each(|&code| self.push_none(code));
        }
        self.push(text);
    }

    /// Records that the next fingerprint has no id, so that it stands for itself.
    pub(crate) fn push_none<W: Word>(&mut self, code: W) {
        if matches!(self, Self::Texts { .. }) {
            // The digits are what results would show, so the fingerprint still stands for itself.
            self.push(&SizedFingerprint::new(code).to_string());
        }
    }

    fn push(&mut self, text: &str) {
        if let Self::Texts { bytes, ends } = self {
            bytes.push_str(text);
            ends.push(bytes.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_fingerprint_without_an_id_stands_for_itself_wherever_others_have_one(
            given in prop::collection::vec(prop::option::of("[a-zé]{0,5}"), 0..30),
        ) {
            let codes: Vec<u64> = (0..given.len() as u64).map(|at| at * 977).collect();
            let mut ids = FingerprintIds::None;
            for (at, id) in given.iter().enumerate() {
                match id {
                    Some(id) => ids.push_text(id, &codes[..at]),
                    None => ids.push_none(codes[at]),
                }
            }
            prop_assert_eq!(ids.is_none(), given.iter().all(Option::is_none));
            for (at, id) in given.iter().enumerate() {
                let shown = match ids.name(at, codes[at]) {
                    FingerprintName::Text(text) => text.to_owned(),
                    FingerprintName::Fingerprint(fingerprint) => fingerprint.to_string(),
                    FingerprintName::Number(number) => number.to_string(),
                };
                prop_assert_eq!(shown, id.clone().unwrap_or_else(|| SizedFingerprint::new(codes[at]).to_string()));
            }
        }

        #[test]
        fn texts_that_come_in_parts_are_those_of_the_whole(
            parts in prop::collection::vec(prop::collection::vec("[a-zé]{0,5}", 0..6), 0..6),
        ) {
            let mut ids = FingerprintIds::None;
            for part in &parts {
                let ends = part.iter().scan(0, |end, text| { *end += text.len() as u64; Some(*end) });
                ids.extend_texts(&part.concat(), &ends.collect::<Vec<u64>>());
            }
            for (at, text) in parts.concat().iter().enumerate() {
                prop_assert_eq!(ids.name(at, 1_u64), FingerprintName::Text(text));
            }
        }
    }
}
