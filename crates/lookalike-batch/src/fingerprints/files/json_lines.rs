//! Reads fingerprints in the form that `lookalike fingerprint` prints: one JSON object a line.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use lookalike_corpus::JsonId;
use lookalike_hamming::Word;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::open::FingerprintStream;
use super::row_counts::RowCounts;
use super::sized_fingerprint::{bits_of_digits, parse_code};
use super::{CodesError, FingerprintFile};

/// Number of lines that are read before other work gets a turn.
const LINES: usize = 4096;
/// Maximum bytes of a line. A longer one is not of this format and must not fill the memory.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Usual number of bytes that are read at once.
pub(super) const READ_BYTES: usize = 1 << 18;

/// Maximum bytes of lines that are held while the width of fingerprints is searched, and bytes read at a time.
const MAX_HELD_BYTES: usize = 1 << 20;
const PEEKED_AT_ONCE: usize = 1 << 16;

/// Maximum bytes of lines without a fingerprint that are passed while the width is searched.
const MAX_PASSED_BYTES: usize = 1 << 30;

/// A stream of lines.
pub(super) struct JsonLines {
    input: BufReader<FingerprintStream>,
    line: Vec<u8>,
    /// Number of the last line, counted from 1.
    pub(super) number: u64,
    /// True if the end of the last line was not read, because it is too long.
    is_cut: bool,
}

/// A stream of lines whose width was searched.
pub(super) struct PeekedLines {
    /// Width of the first fingerprint. `None` if there is none, or if too many other lines come before it.
    pub(super) bits: Option<u32>,
    /// Number of lines before it whose fingerprint is null. They do not come again.
    pub(super) nulls: u64,
    /// All other lines, with their numbers.
    pub(super) lines: JsonLines,
}

/// State of the search for the width of fingerprints.
#[derive(Default)]
struct WidthSearch {
    bits: Option<u32>,
    nulls: u64,
    /// Number of lines before those that are held.
    passed: u64,
    /// Lines to be read again.
    held: Vec<u8>,
}

impl WidthSearch {
    /// Takes the next line, with its line break.
    fn add(&mut self, line: &[u8]) {
        // The width is known, but the piece has more lines.
        if self.bits.is_some() {
            return self.held.extend_from_slice(line);
        }
        let content = line.trim_ascii();
        let parsed = object::<FingerprintLine<'_>>("fingerprint", content);
        let fingerprint = parsed.ok().and_then(|parsed| parsed.fingerprint);
        // The reader refuses longer lines.
        let is_null = matches!(fingerprint, Some(None)) && (line.len() as u64) < MAX_LINE_BYTES;
        if !is_null && !content.is_empty() {
            self.bits = fingerprint
                .flatten()
                .and_then(|digits| bits_of_digits(&digits));
            return self.held.extend_from_slice(line);
        }
        // However many there are, such lines are only counted. Behind a line that is held, an empty one keeps the numbers of the others.
        self.nulls += u64::from(is_null);
        match self.held.is_empty() {
            true => self.passed += 1,
            false => self.held.push(b'\n'),
        }
    }
}

#[derive(Deserialize)]
struct FingerprintLine<'a> {
    #[serde(borrow)]
    id: Option<JsonId<'a>>,
    /// `None` if the field is missing, `Some(None)` if it is null.
    #[serde(borrow, default, deserialize_with = "present")]
    fingerprint: Option<Option<Cow<'a, str>>>,
}

/// Deserializes a field that is present, whatever its value.
pub(super) fn present<'de, D: Deserializer<'de>>(
    field: D,
) -> Result<Option<Option<Cow<'de, str>>>, D::Error> {
    // The raw text tells whether the digits stand in quotation marks.
    let Some(value) = Option::<&RawValue>::deserialize(field)? else {
        return Ok(Some(None));
    };
    let JsonId(text) = JsonId::deserialize(value).map_err(D::Error::custom)?;
    match value.get().starts_with('"') {
        true => Ok(Some(Some(text))),
        // Its digits are decimal, but sixteen of them would be parsed as hexadecimal.
        false => Err(D::Error::custom(format!(
            "{text} is a number: put hexadecimal digits in quotation marks"
        ))),
    }
}

impl JsonLines {
    /// Finds the width of the fingerprints in the first line with one that is not null.
    pub(super) fn peek(mut input: FingerprintStream) -> io::Result<PeekedLines> {
        let (mut search, mut rest) = (WidthSearch::default(), Vec::new());
        let (mut piece, mut passed) = (vec![0; PEEKED_AT_ONCE], 0);
        // Stop at the first line that gives the width: the writer of the lines may be waiting for an answer.
        while search.bits.is_none()
            && search.held.len() + rest.len() < MAX_HELD_BYTES
            && passed < MAX_PASSED_BYTES
        {
            let read = match input.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            passed += read;
            rest.extend_from_slice(&piece[..read]);
            // A line that is not complete yet is parsed with the next piece. At the end of the input the last line may lack its line break.
            let end = match read {
                0 => rest.len(),
                _ => (rest.iter().rposition(|&byte| byte == b'\n')).map_or(0, |last| last + 1),
            };
            let lines = rest[..end].split_inclusive(|&byte| byte == b'\n');
            lines.for_each(|line| search.add(line));
            rest.drain(..end);
            if read == 0 {
                break;
            }
        }
        // What was looked at comes again first, so that nothing of a pipe is lost.
        search.held.append(&mut rest);
        let input = Box::new(Cursor::new(search.held).chain(input));
        Ok(PeekedLines {
            bits: search.bits,
            nulls: search.nulls,
            lines: Self {
                number: search.passed,
                ..Self::new(input, READ_BYTES)
            },
        })
    }

    /// Creates a stream that reads so many bytes at once.
    pub(super) fn new(input: FingerprintStream, bytes: usize) -> Self {
        Self {
            input: BufReader::with_capacity(bytes, input),
            line: Vec::new(),
            number: 0,
            is_cut: false,
        }
    }

    /// Returns the last line, without white space around it.
    pub(super) fn line(&self) -> &[u8] {
        self.line.trim_ascii()
    }

    /// Reads the next line, which may be blank. Returns false at the end. A line that is too long is an error in words.
    pub(super) fn advance(&mut self) -> io::Result<Result<bool, String>> {
        if std::mem::take(&mut self.is_cut) {
            self.input.skip_until(b'\n')?;
        }
        self.line.clear();
        let limited = &mut io::Read::take(&mut self.input, MAX_LINE_BYTES);
        let read = limited.read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(Ok(false));
        }
        self.number += 1;
        self.is_cut = read as u64 == MAX_LINE_BYTES && !self.line.ends_with(b"\n");
        Ok(match self.is_cut {
            true => Err("longer than 1 MiB".to_owned()),
            false => Ok(true),
        })
    }

    /// Passes some lines to `take`, and notes its answers in `rows`. Returns false at the end.
    pub(super) fn read(
        &mut self,
        rows: &mut RowCounts,
        take: &mut dyn FnMut(&[u8]) -> Result<bool, String>,
    ) -> Result<bool, CodesError> {
        for _ in 0..LINES {
            let taken = match self.advance().map_err(rows.failed())? {
                Ok(false) => return Ok(false),
                // Blank lines are skipped, but keep their numbers.
                Ok(true) if self.line().is_empty() => continue,
                Ok(true) => take(self.line()),
                Err(reason) => Err(reason),
            };
            rows.note("line", self.number, taken)?;
        }
        Ok(true)
    }
}

/// Parses a line that is an object. The error is the reason in words, with what is `wanted`.
pub(super) fn object<'a, T: Deserialize<'a>>(wanted: &str, line: &'a [u8]) -> Result<T, String> {
    // serde would take the values of an array for the fields, in order.
    if line.trim_ascii_start().starts_with(b"[") {
        return Err(format!("not a {wanted}: not a JSON object"));
    }
    serde_json::from_slice(line).map_err(|error| malformed(wanted, line, &error))
}

/// Returns the reason why a line is malformed.
fn malformed(wanted: &str, line: &[u8], error: &serde_json::Error) -> String {
    // `serde_json` would name a type of this program.
    if error.is_data() && !line.starts_with(b"{") {
        return format!("not a {wanted}: not a JSON object");
    }
    let text = error.to_string();
    // `serde_json` counts lines within what it got, which is one line; the caller names the line of the file.
    let what = text.split(" at line ").next().unwrap_or_default();
    let column = error.column().max(1);
    format!("not a {wanted}: {what}, at character {column}")
}

/// Takes one line. Returns false if its fingerprint is null.
pub(super) fn take<W: Word>(line: &[u8], out: &mut FingerprintFile<W>) -> Result<bool, String> {
    let parsed: FingerprintLine<'_> = object("fingerprint", line)?;
    // A missing field is a mistake, but `null` stands for a text without features.
    let Some(fingerprint) = parsed.fingerprint else {
        return Err("not a fingerprint: no field named fingerprint".to_owned());
    };
    let Some(digits) = fingerprint else {
        return Ok(false);
    };
    let code = parse_code(&digits)?;
    let id = parsed.id.as_ref().map(|JsonId(id)| id.as_ref());
    out.push(id, code);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprints::files::ids::FingerprintName;

    #[test]
    fn lines_without_an_id_among_others_stand_for_themselves() {
        let mut out = FingerprintFile::<u64>::default();
        let lines = [
            r#"{"fingerprint":"0000000000000001"}"#,
            r#"{"id":"b","fingerprint":"0000000000000002"}"#,
            r#"{"id":7,"fingerprint":"0000000000000003"}"#,
            r#"{"fingerprint":"0000000000000004"}"#,
        ];
        for line in lines {
            assert_eq!(take(line.as_bytes(), &mut out), Ok(true));
        }
        let names: Vec<_> = (0..4)
            .map(|at| out.ids.name(at, out.codes[at]))
            .map(|name| match name {
                FingerprintName::Text(text) => text.to_owned(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(names, ["0000000000000001", "b", "7", "0000000000000004"]);
    }

    #[test]
    fn fingerprints_behind_a_mebibyte_of_nulls_were_taken_for_64_bits() {
        let nulls = "{\"id\":\"a\",\"fingerprint\":null}\n".repeat(40_000);
        assert!(nulls.len() > 1 << 20);
        let one = r#"{"id":"b","fingerprint":"00000007"}"#;
        let input = format!("{nulls}no line\n{nulls}{one}\n{nulls}no end");
        let input = Box::new(Cursor::new(input.into_bytes()));
        let mut peeked = JsonLines::peek(input).unwrap();
        assert_eq!((peeked.bits, peeked.nulls), (Some(32), 80_000));
        let (mut rows, mut out) = (
            RowCounts::new("in".to_owned(), false),
            FingerprintFile::<u32>::default(),
        );
        rows.add_nulls(peeked.nulls);
        let mut take = |line: &[u8]| take(line, &mut out);
        while peeked.lines.read(&mut rows, &mut take).unwrap() {}
        assert_eq!(out.codes, [7]);
        let counts = rows.summary(None);
        assert_eq!(counts.without_features, 120_000);
        assert_eq!(counts.skipped[0].count, 2);
        let first = &counts.skipped[0].first;
        assert!(first.starts_with("in, line 40001: "), "{first}");
    }

    #[test]
    fn a_number_of_sixteen_digits_was_read_as_hexadecimal() {
        let mut out = FingerprintFile::<u64>::default();
        let line = br#"{"id":"a","fingerprint":1234567890123456}"#;
        let told = take(line, &mut out).unwrap_err();
        assert!(told.contains("1234567890123456 is a number"), "{told}");
        assert!(out.codes.is_empty());
    }

    #[test]
    fn a_line_that_is_no_object_was_told_with_a_type_of_this_program() {
        let mut out = FingerprintFile::<u64>::default();
        for line in [
            "5a3b5c7d9e1f2a4b",
            "12",
            "[]",
            "[1,2]",
            r#"["a","0000000000000001"]"#,
            "null",
            "\"0000000000000001\"",
        ] {
            let told = take(line.as_bytes(), &mut out).unwrap_err();
            assert_eq!(told, "not a fingerprint: not a JSON object", "{line}");
        }
    }

    #[test]
    fn what_is_no_fingerprint_is_told() {
        let mut out = FingerprintFile::<u64>::default();
        let cases = [
            ("{", "not a fingerprint: EOF"),
            ("[]", "not a fingerprint"),
            ("{}", "no field named fingerprint"),
            (r#"{"fingerprint":"12"}"#, "16 hexadecimal digits"),
            (
                r#"{"fingerprint":12}"#,
                "12 is a number: put hexadecimal digits",
            ),
        ];
        for (line, reason) in cases {
            let told = take(line.as_bytes(), &mut out).unwrap_err();
            assert!(told.contains(reason), "{line}: {told}");
        }
        assert_eq!(
            take(br#"{"id":"a","fingerprint":null}"#, &mut out),
            Ok(false)
        );
    }
}
