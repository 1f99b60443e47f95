//! Files of exported documents: one line of JSON each, plain or compressed by gzip or zstd, sent unchanged. Also the fields that other JSON records
//! have in common with them.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use lookalike_batch::fingerprints::files::decompressed;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::record_sender::{RecordRequest, RecordSender};
use crate::failure::Failure;
use crate::size;

/// Maximum length of a line. No service accepts a document of this size.
const MAX_LINE_BYTES: u64 = 256 << 20;
/// Length of the start of a line in which the time of expiry must occur; it follows the id.
const HEAD: usize = 16 << 10;

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    let shown = path.display().to_string();
    move |error| Failure::Failed(format!("{shown}: {error}"))
}

fn open(path: &Path) -> Result<impl BufRead, Failure> {
    let input = decompressed(path).map_err(failed(path))?;
    Ok(BufReader::with_capacity(HEAD, input))
}

fn has_expiry(line: &[u8]) -> bool {
    const FIELD: &[u8] = b"\"expires_ms\"";
    line.windows(FIELD.len()).any(|part| part == FIELD)
}

/// Returns true if the lines are those of an export: each has the time at which its document expires, possibly null.
fn is_exported(input: &mut dyn BufRead) -> io::Result<bool> {
    // Works however few bytes a pipe or a compressed block returns at once.
    let mut head = input.take(HEAD as u64);
    let mut line = Vec::new();
    while head.read_until(b'\n', &mut line)? > 0 {
        // A byte order mark at the beginning of a file is not white space to JSON.
        let first = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        let first = first.trim_ascii();
        if !first.is_empty() {
            return Ok(first.starts_with(b"{") && has_expiry(first));
        }
        line.clear();
    }
    Ok(false)
}

/// Returns true if a file is an export.
pub(crate) fn is_export(path: &Path) -> Result<bool, Failure> {
    is_exported(&mut open(path)?).map_err(failed(path))
}

/// Fields of a JSON record that are stored beside its text.
#[derive(Default)]
pub(super) struct FieldsBesideText {
    ttl_seconds: Option<u64>,
    /// `Some(None)` is `null`: the document never expires.
    expires_ms: Option<Option<u64>>,
    metadata: Option<Box<RawValue>>,
    text_hash: Option<String>,
}

/// The same fields as written.
#[derive(Deserialize)]
struct WrittenFields<'a> {
    #[serde(borrow)]
    ttl_seconds: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    expires_ms: Option<&'a RawValue>,
    metadata: Option<Box<RawValue>>,
    #[serde(borrow)]
    text_hash: Option<&'a RawValue>,
}

/// Deserializes a field that is present, even if it is `null`.
fn deserialize_present<'de: 'a, 'a, D: Deserializer<'de>>(
    field: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(field).map(Some)
}

/// Parses a field, if it is present.
fn parsed<T: DeserializeOwned>(name: &str, field: Option<&RawValue>) -> Result<Option<T>, String> {
    let value = field.map(|field| serde_json::from_str(field.get()));
    let value = value.transpose();
    value.map_err(|error| format!("{name}: {error}"))
}

/// Returns the fields of a JSON record that are stored beside its text.
pub(super) fn fields_beside_text(record: &[u8]) -> Result<FieldsBesideText, String> {
    const FIELDS: [&[u8]; 3] = [b"ttl_seconds", b"expires_ms", b"metadata"];
    // A byte search avoids parsing records without such fields.
    if !record
        .split(|&byte| byte == b'"')
        .any(|part| FIELDS.contains(&part))
    {
        return Ok(FieldsBesideText::default());
    }
    // As in the text, invalid UTF-8 is replaced.
    let record = String::from_utf8_lossy(record);
    let record = record.strip_prefix('\u{feff}').unwrap_or(&record);
    let written: WrittenFields<'_> =
        serde_json::from_str(record).map_err(|error| error.to_string())?;
    // Only a line of an export has the hash of a stored text; an ordinary record may use the name for something else.
    let text_hash = written.text_hash.filter(|_| written.expires_ms.is_some());
    Ok(FieldsBesideText {
        ttl_seconds: parsed("ttl_seconds", written.ttl_seconds)?,
        expires_ms: parsed("expires_ms", written.expires_ms)?,
        metadata: written.metadata,
        text_hash: parsed("text_hash", text_hash)?,
    })
}

impl FieldsBesideText {
    /// Adds the fields to an item of a request, and returns the metadata, which are added separately. `ttl_seconds` is the lifetime of a
    /// record without one of its own.
    pub(super) fn add_to(
        self,
        item: &mut Value,
        ttl_seconds: Option<u64>,
    ) -> Option<Box<RawValue>> {
        if let Some(end) = self.expires_ms {
            // `null` as well: it means never, while a document without the field gets the lifetime of the collection.
            item["expires_ms"] = end.into();
        }
        let default = ttl_seconds.filter(|_| self.expires_ms.is_none());
        if let Some(seconds) = self.ttl_seconds.or(default) {
            item["ttl_seconds"] = seconds.into();
        }
        if let Some(hash) = self.text_hash {
            item["text_hash"] = hash.into();
        }
        // Not as a `Value`, which would round numbers and lose the order of fields.
        self.metadata
    }
}

/// A line of an export.
pub(super) struct ExportedLine {
    pub(super) number: u64,
    document: Vec<u8>,
}

/// Joins the documents of some lines to a JSON array.
pub(super) fn array(lines: &[ExportedLine]) -> Vec<u8> {
    let documents = lines.iter().map(|line| line.document.as_slice());
    let documents: Vec<&[u8]> = documents.collect();
    [b"[", documents.join(&b","[..]).as_slice(), b"]"].concat()
}

/// Sends the documents of an export. Lines that are not JSON are left out.
pub(super) fn send_lines<R: RecordRequest<ExportedLine>>(
    path: &Path,
    sender: &mut RecordSender<R, ExportedLine>,
) -> Result<(), Failure> {
    let (mut input, shown) = (open(path)?, path.display());
    let mut number = 0;
    while !sender.is_finished() {
        let mut line = Vec::new();
        let read = input
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line);
        let read = read.map_err(failed(path))? as u64;
        if read == 0 {
            break;
        }
        number += 1;
        let is_too_long = read == MAX_LINE_BYTES && !line.ends_with(b"\n");
        if is_too_long {
            // Skip the rest of a line that no service accepts.
            input.skip_until(b'\n').map_err(failed(path))?;
        }
        let mark: &[u8] = if number == 1 { b"\xef\xbb\xbf" } else { b"" };
        let document = line.strip_prefix(mark).unwrap_or(&line).trim_ascii();
        if document.is_empty() {
            continue;
        }
        // Parse all of it: skipped parts could contain something that the service cannot read, which would have all lines refused.
        let problem = if is_too_long {
            let most = size::show(MAX_LINE_BYTES);
            Some(("too-long", format!("has more than {most}")))
        } else {
            let parsed: Result<Value, _> = serde_json::from_slice(document);
            let error = parsed.err();
            error.map(|error| ("invalid-json", format!("is not JSON: {error}")))
        };
        if let Some((kind, what)) = problem {
            let first = format!("{shown}, line {number} {what}");
            sender.skipped.add(kind, first);
            continue;
        }
        let document = document.to_vec();
        let bytes = document.len();
        sender.push(ExportedLine { number, document }, bytes)?;
    }
    sender.send()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_is_told_from_fingerprints_by_its_first_line() {
        for (text, wanted) in [
            (
                "{\"id\":\"a\",\"fingerprint\":null,\"expires_ms\":null}\n",
                true,
            ),
            (
                "{\"id\":\"a\",\"fingerprint\":\"0123456789abcdef\"}\n",
                false,
            ),
            ("{\"id\":\"a\"}\n{\"expires_ms\":1}\n", false),
            ("", false),
        ] {
            // A pipe that returned few bytes at once used to be misjudged.
            for most in [1, 7, 1000] {
                let mut input = BufReader::with_capacity(most, text.as_bytes());
                let found = is_exported(&mut input).expect("it is in memory");
                assert_eq!(found, wanted, "{text}");
            }
        }
    }
}
