//! Arrow IPC, files (Feather 2) and streams, message by message.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::root_as_message;
use arrow_schema::ArrowError;

use super::column;
use crate::chunk;
use crate::decode;
use crate::error::ReadError;
use crate::guard::guarded;
use crate::options::InputOptions;
use crate::row::{RowReader, RowSink};
use crate::source::Source;

/// How an Arrow file begins; a stream has no such mark.
const FILE_MAGIC: &[u8] = b"ARROW1\0\0";

/// Stands before each message, but in files of old versions.
const CONTINUATION: u32 = u32::MAX;

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// An Arrow file or stream that is being read.
pub(crate) struct ArrowTable<'a> {
    source: &'a Source,
    limit: usize,
    batches: Result<(Batches, Option<String>), String>,
    batch: Option<RecordBatch>,
    at: usize,
    number: u64,
    ended: bool,
}

impl<'a> ArrowTable<'a> {
    pub(crate) fn open(
        source: &'a Source,
        options: &InputOptions,
    ) -> Result<ArrowTable<'a>, ReadError> {
        decode::Decoder::open(source)?;
        let file = File::open(source.file()).map_err(|error| decode::io_error(source, error))?;
        Ok(ArrowTable {
            source,
            limit: chunk::max_document_bytes(options),
            batches: batches(file, source.bytes),
            batch: None,
            at: 0,
            number: 0,
            ended: false,
        })
    }
}

impl RowReader for ArrowTable<'_> {
    fn fill(&mut self, sink: &mut RowSink<'_>) -> Result<bool, ReadError> {
        let (batches, wrong) = match &mut self.batches {
            Ok((batches, wrong)) => (batches, wrong),
            Err(reason) => {
                sink.skips.push(chunk::lost(self.source, 0, reason.clone()));
                return Ok(true);
            }
        };
        while !sink.is_full() {
            if let Some(batch) = self.batch.take() {
                self.at = column::add_rows(&batch, self.at, self.number, self.limit, sink);
                if self.at < batch.num_rows() {
                    self.batch = Some(batch);
                } else {
                    self.number += batch.num_rows() as u64;
                }
                continue;
            }
            self.at = 0;
            match guarded(|| batches.next().transpose()) {
                Ok(Some(batch)) => self.batch = Some(batch),
                Ok(None) => {
                    let lost = |reason| chunk::lost(self.source, self.number, reason);
                    sink.skips.extend(wrong.take().map(lost));
                    self.ended = true;
                    return Ok(true);
                }
                Err(reason) => {
                    let damage = chunk::lost(self.source, self.number, reason);
                    sink.skips.push(damage);
                    self.ended = true;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn disk_bytes(&self) -> u64 {
        if self.ended { self.source.bytes } else { 0 }
    }
}

/// The batches of the sound messages, and what is wrong behind them.
fn batches(mut file: File, bytes: u64) -> Result<(Batches, Option<String>), String> {
    let mut magic = [0; 8];
    let is_file = file.read_exact(&mut magic).is_ok() && magic == FILE_MAGIC;
    // A file is a stream between two marks. Its footer is not needed, and not believed.
    let start = if is_file { first_message(&mut file) } else { 0 };
    let (end, wrong) = sound_messages(&mut file, start, bytes);
    let failed = |error: std::io::Error| error.to_string();
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let stream = BufReader::new(file).take(end - start);
    let reader = guarded(|| StreamReader::try_new(stream, None));
    let reader = reader.map_err(|reason| wrong.clone().unwrap_or(reason))?;
    Ok((Box::new(reader), wrong))
}

/// Where the messages of a file begin: writers pad the mark with zeros, to 8 or to 64 bytes.
fn first_message(file: &mut File) -> u64 {
    let mut at = 8;
    let mut word = [0; 8];
    while at < 64 && file.read_exact(&mut word).is_ok() && word == [0; 8] {
        at += 8;
    }
    at
}

/// Walks over the messages from `at` on: where the last sound one ends, and what is wrong with the
/// next. None may reach beyond the end of the file, for readers allocate what a message asks for.
fn sound_messages(file: &mut File, mut at: u64, bytes: u64) -> (u64, Option<String>) {
    if file.seek(SeekFrom::Start(at)).is_err() {
        return (at, Some("it cannot be read".to_owned()));
    }
    loop {
        match message_bytes(file, at, bytes) {
            Ok(0) => return (at, None),
            Ok(length) => at += length,
            Err(reason) => return (at, Some(reason)),
        }
    }
}

/// Length of the message at a place with its prefix and body; 0 for the mark of the end.
fn message_bytes(file: &mut File, at: u64, bytes: u64) -> Result<u64, String> {
    let beyond = || "it ends within a message, or without a mark of its end".to_owned();
    let mut word = || -> Option<u32> {
        let mut word = [0; 4];
        file.read_exact(&mut word).ok()?;
        Some(u32::from_le_bytes(word))
    };
    let mut prefix = 4;
    let mut length = word().ok_or_else(beyond)?;
    if length == CONTINUATION {
        length = word().ok_or_else(beyond)?;
        prefix = 8;
    }
    if length == 0 {
        return Ok(0);
    }
    let left = bytes.saturating_sub(at + prefix);
    if u64::from(length) > left {
        return Err(beyond());
    }
    let mut head = vec![0; length as usize];
    file.read_exact(&mut head).map_err(|_| beyond())?;
    let message = root_as_message(&head).map_err(|error| format!("no message: {error}"))?;
    let body = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
    if body > left - u64::from(length) {
        return Err(beyond());
    }
    let length = prefix + u64::from(length) + body;
    file.seek(SeekFrom::Start(at + length))
        .map_err(|error| error.to_string())?;
    Ok(length)
}
