//! Reads pairs in the form that `lookalike join` prints: one JSON object a line, compressed or not.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike_corpus::JsonId;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::error::CodesError;
use super::ids::FingerprintName;
use super::json_lines::{JsonLines, object};
use super::open::{self, OpenedFile};
use super::source::FingerprintSource;

/// Bytes read at once. All lists of a merge are open at the same time, so a buffer is small: 64 MiB for a thousand lists.
const BUFFER: usize = 64 << 10;

/// The id of a document in a line. Numbers sort before texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub(crate) enum ListedId<'a> {
    /// A number from a fingerprint file.
    Number(u64),
    /// Any other id, including numbers that are not integers of 64 bits.
    Text(Cow<'a, str>),
}

impl<'de: 'a, 'a> Deserialize<'de> for ListedId<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        // As written, because that decides whether an id is a number.
        let written = <&RawValue>::deserialize(json)?;
        // Numbers with a sign, a fraction or more than 64 bits fail here and remain texts, as they are written.
        if let Ok(number) = written.get().parse() {
            return Ok(Self::Number(number));
        }
        let id = JsonId::deserialize(written).map_err(D::Error::custom)?;
        Ok(Self::Text(id.0))
    }
}

impl ListedId<'_> {
    pub(crate) fn into_owned(self) -> ListedId<'static> {
        match self {
            Self::Number(number) => ListedId::Number(number),
            Self::Text(text) => ListedId::Text(Cow::Owned(text.into_owned())),
        }
    }
}

impl<'a> From<FingerprintName<'a>> for ListedId<'a> {
    fn from(name: FingerprintName<'a>) -> Self {
        match name {
            FingerprintName::Number(number) => Self::Number(number),
            name => Self::Text(name.text()),
        }
    }
}

/// Formats the id for messages: a text in quotation marks, so that a number differs from a text of the same digits.
impl std::fmt::Display for ListedId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// Two documents and their distance.
pub(crate) struct ListedPair<'a> {
    pub(crate) a: ListedId<'a>,
    pub(crate) b: ListedId<'a>,
    /// Their distance, or `None` if the line has a similarity instead, as `lookalike pairs` writes it.
    pub(crate) distance: Option<u8>,
    /// Number of the line, counted from 1.
    pub(crate) line: u64,
    /// Names of the fields that held the two ids.
    pub(crate) sides: &'static str,
}

/// A line from a join within one collection (a, b) or of two (f, q).
#[derive(Deserialize)]
struct JoinedLine<'a> {
    #[serde(borrow)]
    a: Option<ListedId<'a>>,
    #[serde(borrow)]
    b: Option<ListedId<'a>>,
    #[serde(borrow)]
    f: Option<ListedId<'a>>,
    #[serde(borrow)]
    q: Option<ListedId<'a>>,
    // Optional and wide, so that a missing or too large distance gets an error that says so.
    distance: Option<u64>,
    similarity: Option<f64>,
}

/// An open list of pairs.
pub(crate) struct PairFile {
    name: String,
    lines: JsonLines,
    bytes: Option<u64>,
    read: Arc<AtomicU64>,
}

/// Line of a list that is not a pair.
pub(crate) struct NoPair {
    pub(crate) line: u64,
    pub(crate) reason: String,
}

impl PairFile {
    /// Opens a list; `-` is standard input.
    pub(crate) fn open(source: &FingerprintSource) -> Result<Self, CodesError> {
        let read = Arc::default();
        let OpenedFile {
            name, input, bytes, ..
        } = open::open(source, Arc::clone(&read))?;
        Ok(Self {
            name,
            lines: JsonLines::new(input, BUFFER),
            bytes,
            read,
        })
    }

    /// Returns the name as the user wrote it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the stored bytes of the file. `None` for standard input.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Returns the stored bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Returns the line of the last pair.
    pub(crate) fn line(&self) -> &[u8] {
        self.lines.line()
    }

    /// Returns the number of that line, counted from 1.
    pub(crate) fn line_number(&self) -> u64 {
        self.lines.number
    }

    /// Returns the next pair, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Result<Option<ListedPair<'_>>, NoPair>, CodesError> {
        let advanced = loop {
            let advanced = self.lines.advance().map_err(|cause| {
                let name = self.name.clone();
                CodesError::Io { name, cause }
            })?;
            // Blank lines are skipped.
            if advanced != Ok(true) || !self.lines.line().is_empty() {
                break advanced;
            }
        };
        // A line that is too long is an error, not a loss: without the pair a decision might differ.
        let line = self.lines.number;
        let pair = advanced.and_then(|is_there| match is_there {
            true => pair_of(self.line(), line).map(Some),
            false => Ok(None),
        });
        Ok(pair.map_err(|reason| NoPair { line, reason }))
    }
}

/// Parses the pair of a line. The error is the reason in words.
fn pair_of(line: &[u8], number: u64) -> Result<ListedPair<'_>, String> {
    let read: JoinedLine<'_> = object("pair", line)?;
    let (a, b, sides) = match (read.a, read.b, read.f, read.q) {
        (Some(a), Some(b), None, None) => (a, b, "a and b"),
        (None, None, Some(f), Some(q)) => (f, q, "f and q"),
        _ => return Err("has neither a and b nor f and q".to_owned()),
    };
    let distance = match (read.distance, read.similarity) {
        (Some(distance), _) => Some(bits_of(distance)?),
        (None, Some(similarity)) if (0.0..=1.0).contains(&similarity) => None,
        (None, _) => return Err("has no distance".to_owned()),
    };
    Ok(ListedPair {
        a,
        b,
        distance,
        line: number,
        sides,
    })
}

/// Returns a distance, which cannot be more than the bits of a fingerprint.
fn bits_of(distance: u64) -> Result<u8, String> {
    u8::try_from(distance)
        .ok()
        // The widest fingerprint has 128 bits, and sketches of several places are paired up to as many differing places.
        .filter(|&distance| distance <= 128)
        .ok_or_else(|| format!("distance {distance} is more than the bits of a fingerprint"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(String, String, Option<u8>), String> {
        let pair = pair_of(line.as_bytes(), 1)?;
        Ok((pair.a.to_string(), pair.b.to_string(), pair.distance))
    }

    #[test]
    fn pairs_of_one_collection_and_of_two_are_read_with_ids_of_both_kinds() {
        let owned = |a: &str, b: &str, distance| Ok((a.to_owned(), b.to_owned(), Some(distance)));
        assert_eq!(
            read(r#"{"a":"x\n","b":7,"distance":3,"more":[1]}"#),
            owned("\"x\\n\"", "7", 3)
        );
        assert_eq!(
            read(r#"{"f":12,"q":"12","distance":0}"#),
            owned("12", "\"12\"", 0)
        );
        // Numbers that do not fit 64 bits keep their digits as written.
        assert_eq!(
            read(r#"{"a":18446744073709551616,"b":1e3,"distance":0}"#),
            owned("\"18446744073709551616\"", "\"1e3\"", 0)
        );
    }

    #[test]
    fn a_pair_of_texts_has_no_distance() {
        let (a, b, distance) = read(r#"{"a":"x","b":"y","similarity":0.9,"against":"a"}"#).unwrap();
        assert_eq!((&*a, &*b, distance), ("\"x\"", "\"y\"", None));
    }

    #[test]
    fn lines_that_are_no_pairs_are_refused_with_a_reason() {
        for (line, reason) in [
            (r#"{"a":"x","distance":1}"#, "neither a and b"),
            (r#"{"a":"x","q":"y","distance":1}"#, "neither a and b"),
            (r#"{"a":"x","b":"y","similarity":1.9}"#, "no distance"),
            (r#"{"a":"x","b":"y"}"#, "no distance"),
            (r#"{"a":"x","b":"y","distance":129}"#, "distance 129"),
            (r#"{"a":"x","b":"y","distance":-1}"#, "invalid value"),
            (
                r#"{"a":{},"b":"y","distance":1}"#,
                "the id field holds an object",
            ),
            ("a\tb\t1", "expected value"),
        ] {
            let found = read(line).unwrap_err();
            assert!(found.contains(reason), "{line}: {found}");
        }
    }
}
