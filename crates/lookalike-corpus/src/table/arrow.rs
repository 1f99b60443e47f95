//! Arrow IPC: files (Feather 2) by their footer, streams message by message.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::root_as_message;
use arrow_schema::ArrowError;

use super::column;
use super::parquet::guarded;
use crate::chunk;
use crate::decode;
use crate::error::ReadError;
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
    batches: Result<Batches, String>,
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
        let batches = match &mut self.batches {
            Ok(batches) => batches,
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

fn batches(mut file: File, bytes: u64) -> Result<Batches, String> {
    let mut magic = [0; 8];
    let is_file = file.read_exact(&mut magic).is_ok() && magic == FILE_MAGIC;
    // Both kinds are a sequence of messages, which a hostile one may say to be of any length.
    check_messages(&mut file, if is_file { 8 } else { 0 }, bytes)?;
    file.rewind().map_err(|error| error.to_string())?;
    let file = BufReader::new(file);
    if is_file {
        let reader = guarded(|| FileReader::try_new(file, None))?;
        Ok(Box::new(reader))
    } else {
        let reader = guarded(|| StreamReader::try_new(file, None))?;
        Ok(Box::new(reader))
    }
}

/// Walks over the messages from `at` on: none may reach beyond the end of the file, for readers
/// allocate what a message asks for.
fn check_messages(file: &mut File, mut at: u64, bytes: u64) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut word = [0; 4];
    loop {
        file.seek(SeekFrom::Start(at)).map_err(failed)?;
        if file.read_exact(&mut word).is_err() {
            return Ok(());
        }
        at += 4;
        let mut length = u32::from_le_bytes(word);
        if length == CONTINUATION {
            file.read_exact(&mut word).map_err(failed)?;
            length = u32::from_le_bytes(word);
            at += 4;
        }
        if length == 0 {
            return Ok(());
        }
        if u64::from(length) > bytes.saturating_sub(at) {
            return Err("a message reaches beyond the end of the file".to_owned());
        }
        let mut head = vec![0; length as usize];
        file.read_exact(&mut head).map_err(failed)?;
        let message = root_as_message(&head).map_err(|error| format!("no message: {error}"))?;
        at += u64::from(length);
        let body = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
        if body > bytes.saturating_sub(at) {
            return Err("the body of a message reaches beyond the end of the file".to_owned());
        }
        at += body;
    }
}
