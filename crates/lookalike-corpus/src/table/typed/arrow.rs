//! Reading of Arrow IPC, files (Feather 2) and streams, message by message.

use std::fs::{self, File};
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::file::metadata::ParquetMetaData;

use super::batch_source::BatchSource;
use super::messages::{ArrowMessages, MAX_HEADER_BYTES};
use super::texts::{TableBatch, read_texts_as_bytes};
use crate::decode;
use crate::error::ReadError;
use crate::guard::{catch_panic, catch_panic_as_error};
use crate::source::{SkippedPart, Source};

/// The first bytes of an Arrow file; a stream has no such mark.
const FILE_MAGIC: &[u8] = b"ARROW1\0\0";

/// The batches of the valid messages.
struct ArrowBatches {
    batches: Box<dyn RecordBatchReader<Item = Result<RecordBatch, ArrowError>> + Send>,
    /// The schema of the file, if texts are bytes in the batches.
    texts: Option<SchemaRef>,
    /// The problem after the valid messages, if any.
    wrong: Option<String>,
}

/// The state of reading an Arrow file or stream.
pub(super) struct ArrowTable<'a> {
    source: &'a Source,
    batches: Result<ArrowBatches, String>,
    ended: bool,
}

impl<'a> ArrowTable<'a> {
    /// Begins a table with batches of at most `most` bytes.
    pub(super) fn new(source: &'a Source, file: File, most: u64) -> ArrowTable<'a> {
        ArrowTable {
            source,
            batches: batches(file, source.bytes, most),
            ended: false,
        }
    }
}

impl BatchSource for ArrowTable<'_> {
    fn next_batch(&mut self, row: &mut u64, skips: &mut Vec<SkippedPart>) -> Option<TableBatch> {
        if self.ended {
            return None;
        }
        let lost = match &mut self.batches {
            Ok(arrow) => match catch_panic_as_error(|| arrow.batches.next().transpose()) {
                Ok(Some(rows)) => {
                    let texts = arrow.texts.clone();
                    return Some(TableBatch { rows, texts });
                }
                Ok(None) => arrow.wrong.clone(),
                Err(reason) => Some(reason),
            },
            Err(reason) => Some(reason.clone()),
        };
        self.ended = true;
        skips.extend(lost.map(|reason| SkippedPart::unreadable(self.source, *row, reason)));
        None
    }

    fn metadata(&self) -> Option<(SchemaRef, Option<Arc<ParquetMetaData>>)> {
        let ArrowBatches { batches, texts, .. } = self.batches.as_ref().ok()?;
        let schema = texts.clone().unwrap_or_else(|| batches.schema());
        Some((schema, None))
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        decode::check_metadata(self.source, fs::metadata(self.source.file()))
    }

    fn disk_bytes(&self) -> u64 {
        if self.ended { self.source.bytes } else { 0 }
    }
}

fn batches(mut file: File, bytes: u64, most: u64) -> Result<ArrowBatches, String> {
    let mut magic = [0; 8];
    let is_file = file.read_exact(&mut magic).is_ok() && magic == FILE_MAGIC;
    // A file is a stream between two marks. Its footer is not needed, and not trusted.
    let start = if is_file { first_message(&mut file) } else { 0 };
    // All messages are checked before the first is decoded, because the library allocates by the lengths in messages.
    let mut messages = ArrowMessages::new(&mut file, bytes, most);
    let (end, wrong) = messages.check_messages(start, is_file);
    // The schema, or a part of another message.
    let length = match end > start {
        true => messages.message(start)?.min(MAX_HEADER_BYTES),
        false => 0,
    };
    let failed = |error: std::io::Error| error.to_string();
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut first = vec![0; length as usize];
    file.read_exact(&mut first).map_err(failed)?;
    let texts = catch_panic(|| read_texts_as_bytes(&mut first))
        .ok()
        .flatten();
    // The library sees the end of the stream after the valid messages; it accepts a stream without an end mark.
    let rest = BufReader::new(file).take(end - start - length);
    let stream = Cursor::new(first).chain(rest);
    let reader = catch_panic_as_error(|| StreamReader::try_new(stream, None));
    // The reason found by the check is better, because it names the message.
    let reader = reader.map_err(|reason| wrong.clone().unwrap_or(reason))?;
    Ok(ArrowBatches {
        batches: Box::new(reader),
        texts,
        wrong,
    })
}

/// Returns the offset of the first message of a file: writers pad the mark with zeros, to 8 or to 64 bytes.
fn first_message(file: &mut File) -> u64 {
    let mut at = 8;
    let mut word = [0; 8];
    // A message begins with 0xFFFFFFFF or its length, never with eight zeros (which end a stream).
    while at < 64 && file.read_exact(&mut word).is_ok() && word == [0; 8] {
        at += 8;
    }
    at
}
