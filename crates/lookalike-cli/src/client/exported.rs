//! Files of exported documents: a line of JSON each, plain or packed by gzip or zstd, sent as they stand.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, stdin};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::failure::Failure;

/// Bytes of documents of a request, unless one has more.
const BYTES: usize = 2 << 20;
/// Longest line. No service takes a document of so many bytes.
const LONGEST: u64 = 256 << 20;
/// Longest beginning of a line in which the time of expiry stands: it follows the id.
const HEAD: usize = 16 << 10;

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    let shown = path.display().to_string();
    move |error| Failure::Failed(format!("{shown}: {error}"))
}

/// Unpacks a file by its first bytes.
fn open(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    let mut input = BufReader::with_capacity(HEAD, File::open(path).map_err(failed(path))?);
    let head = input.fill_buf().map_err(failed(path))?;
    // The magic number of gzip (RFC 1952, section 2.3.1). Several members are one file (section 2.2).
    if head.starts_with(&[0x1f, 0x8b]) {
        let unpacked = flate2::bufread::MultiGzDecoder::new(input);
        return Ok(Box::new(BufReader::with_capacity(HEAD, unpacked)));
    }
    // That of a Zstandard frame (RFC 8878, section 3.1.1), lowest byte first.
    if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let unpacked = zstd::Decoder::with_buffer(input).map_err(failed(path))?;
        return Ok(Box::new(BufReader::with_capacity(HEAD, unpacked)));
    }
    Ok(Box::new(input))
}

fn says_when_it_expires(line: &[u8]) -> bool {
    const FIELD: &[u8] = b"\"expires_ms\":";
    line.windows(FIELD.len()).any(|part| part == FIELD)
}

/// Tells whether lines are those of an export: each says when its document expires, if ever.
fn is_exported(input: &mut dyn BufRead) -> io::Result<bool> {
    let mut line = Vec::new();
    // However little a pipe or a packed block gives at once.
    input.take(HEAD as u64).read_until(b'\n', &mut line)?;
    Ok(line.starts_with(b"{") && says_when_it_expires(&line))
}

/// Tells whether a file is an export.
pub(super) fn is_export(path: &Path) -> Result<bool, Failure> {
    is_exported(&mut *open(path)?).map_err(failed(path))
}

/// A file with all of standard input, which is looked at before it is read. It goes with the folder.
pub(super) fn spooled_stdin(folder: &Path) -> Result<PathBuf, Failure> {
    let path = folder.join("standard input");
    let copied = File::create(&path).and_then(|mut file| io::copy(&mut stdin().lock(), &mut file));
    copied.map(|_| path.clone()).map_err(failed(&path))
}

/// Fields of a line of an export, but for the text.
#[derive(Deserialize)]
pub(super) struct ExportedFields {
    #[serde(deserialize_with = "Option::deserialize")]
    expires_ms: Option<u64>,
    metadata: Option<Value>,
    text_hash: Option<String>,
}

/// Fields of a record beside its text, if it is a line of an export.
pub(super) fn beside_text(record: &[u8]) -> Option<ExportedFields> {
    // A search for some bytes spares the parser on lines that are no exports.
    if !says_when_it_expires(record) {
        return None;
    }
    serde_json::from_slice(record).ok()
}

impl ExportedFields {
    /// Gives it to an item of a request.
    pub(super) fn add_to(self, item: &mut Value) {
        item["expires_ms"] = self.expires_ms.into();
        for (name, value) in [
            ("metadata", self.metadata),
            ("text_hash", self.text_hash.map(Value::from)),
        ] {
            if let Some(value) = value {
                item[name] = value;
            }
        }
    }
}

/// Hands on the documents of an export as arrays of JSON.
pub(super) fn for_each_batch(
    path: &Path,
    most: usize,
    send: &mut dyn FnMut(Vec<u8>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut input = open(path)?;
    let (mut batch, mut number, mut line) = (Vec::new(), 0_u64, Vec::new());
    let mut first = 1;
    let mut count = 0;
    loop {
        line.clear();
        let read = input.as_mut().take(LONGEST).read_until(b'\n', &mut line);
        let is_end = read.map_err(failed(path))? == 0;
        let document = line.trim_ascii();
        // Decided before the document is added: the batch goes without it.
        let is_full = count == most || batch.len() + document.len() > BYTES;
        if count > 0 && (is_end || is_full) {
            batch.push(b']');
            let sent = send(std::mem::take(&mut batch));
            sent.map_err(|failure| of_lines(path, first, number, failure))?;
            // `number` is that of the last line that was sent.
            (count, first) = (0, number + 1);
        }
        if is_end {
            return Ok(());
        }
        number += 1;
        if document.is_empty() {
            continue;
        }
        let parsed: Result<IgnoredAny, _> = serde_json::from_slice(document);
        parsed.map_err(|error| {
            let shown = path.display();
            Failure::Failed(format!("{shown}: line {number} is not JSON: {error}"))
        })?;
        batch.push(if count == 0 { b'[' } else { b',' });
        batch.extend_from_slice(document);
        count += 1;
    }
}

/// A failure with the lines that it is about.
fn of_lines(path: &Path, first: u64, last: u64, failure: Failure) -> Failure {
    match failure {
        Failure::Failed(what) => {
            let shown = path.display();
            Failure::Failed(format!("{shown}: lines {first} to {last}: {what}"))
        }
        other => other,
    }
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
            // A pipe that gives little at once was taken for something else.
            for most in [1, 7, 1000] {
                let mut input = BufReader::with_capacity(most, text.as_bytes());
                let found = is_exported(&mut input).expect("it is in memory");
                assert_eq!(found, wanted, "{text}");
            }
        }
    }
}
