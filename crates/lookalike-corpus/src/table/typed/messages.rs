//! The messages of an Arrow file or stream, checked before the library reads them.
//!
//! The library allocates the size that a message, or a packed buffer in it, declares: one wrong byte can request terabytes, and end the process. Only
//! the messages before the first impossible one are passed on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use arrow_ipc::{Buffer, CompressionType, Message, RecordBatch, root_as_message};
use lz4_flex::frame::FrameDecoder;

/// Marker before each message, except in files of old versions.
const CONTINUATION: u32 = u32::MAX;

/// Unpacked size that any batch may have. Larger ones are limited to [`MAX_RATIO`] their packed size.
const ALWAYS_ALLOWED_BYTES: u64 = 64 << 20;
/// Compression ratio that columns hardly ever reach.
const MAX_RATIO: u64 = 1000;
/// Maximum compression ratio of LZ4.
const MAX_LZ4_RATIO: u64 = 255;
/// Number of rows that a batch of any size may have.
const ALWAYS_ALLOWED_ROWS: u64 = 1 << 24;
/// Maximum number of rows per byte of the batch, beyond that.
const MAX_ROWS_PER_BYTE: u64 = 8000;
/// Maximum number of bytes of a message without its body: the schema, or the positions of the columns.
pub(super) const MAX_HEADER_BYTES: u64 = 256 << 20;

/// A file whose messages are being checked.
pub(super) struct ArrowMessages<'f> {
    file: &'f mut File,
    /// Length of the file.
    bytes: u64,
    /// Maximum unpacked size of a batch, and of all dictionaries together.
    most: u64,
    /// Unpacked size of each dictionary.
    dictionaries: BTreeMap<i64, u64>,
}

/// The buffers of a batch that the library would unpack.
struct PackedMessage<'m> {
    /// Offset of the body in the file.
    body: u64,
    /// Length of the body.
    bytes: u64,
    batch: RecordBatch<'m>,
}

impl<'f> ArrowMessages<'f> {
    /// Creates a check of the messages in a file of `bytes` bytes, each of which may unpack to at most `most`.
    pub(super) fn new(file: &'f mut File, bytes: u64, most: u64) -> ArrowMessages<'f> {
        ArrowMessages {
            file,
            bytes,
            most,
            dictionaries: BTreeMap::new(),
        }
    }

    /// Checks the messages from `at` on. Returns the end of the last valid one, and the reason why the next is invalid, if any. After the end mark, a
    /// file has its footer, and a stream nothing.
    pub(super) fn check_messages(&mut self, mut at: u64, is_file: bool) -> (u64, Option<String>) {
        loop {
            match self.message(at) {
                Ok(0) => return (at, self.check_after_end(is_file)),
                Ok(length) => at += length,
                // Messages are chained by their lengths: after a wrong one, the start of the next is unknown.
                Err(reason) => return (at, Some(reason)),
            }
        }
    }

    /// Returns the length of the message at an offset, including its prefix and body, or 0 for the end mark.
    pub(super) fn message(&mut self, at: u64) -> Result<u64, String> {
        self.seek(at)?;
        let mut prefix = 4;
        let mut length = u32::from_le_bytes(self.read()?);
        // Since Arrow 0.15 (IPC format, "Encapsulated message format"); before that, the length came first.
        if length == CONTINUATION {
            length = u32::from_le_bytes(self.read()?);
            prefix = 8;
        }
        let head_bytes = u64::from(length);
        if head_bytes == 0 {
            return Ok(0);
        }
        let left = self.bytes.saturating_sub(at + prefix);
        if head_bytes > left {
            return Err(unexpected_end());
        }
        if head_bytes > MAX_HEADER_BYTES {
            return Err(format!(
                "a message has a header of {head_bytes} bytes, and at most {MAX_HEADER_BYTES} are read: write the table with fewer columns or less metadata"
            ));
        }
        let mut head = vec![0; length as usize];
        self.file
            .read_exact(&mut head)
            .map_err(|_| unexpected_end())?;
        // Verifies the flatbuffer: every offset in it stays within the head.
        let message = root_as_message(&head).map_err(|error| format!("no message: {error}"))?;
        let body = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
        if body > left - head_bytes {
            return Err(unexpected_end());
        }
        self.check(&message, at + prefix + head_bytes, body)?;
        Ok(prefix + head_bytes + body)
    }

    /// Refuses a message that would take more memory than allowed.
    fn check(&mut self, message: &Message<'_>, body: u64, bytes: u64) -> Result<(), String> {
        let dictionary = message.header_as_dictionary_batch();
        let batch = match &dictionary {
            Some(dictionary) => dictionary.data(),
            None => message.header_as_record_batch(),
        };
        let Some(batch) = batch else {
            return Ok(());
        };
        let rows = u64::try_from(batch.length())
            .map_err(|_| "a batch has a negative number of rows".to_owned())?;
        // Columns of nulls have rows but no bytes, so bytes alone do not limit the unpacked size.
        if rows > ALWAYS_ALLOWED_ROWS.max(bytes.saturating_mul(MAX_ROWS_PER_BYTE)) {
            return Err(format!(
                "a batch of {bytes} bytes says that it has {rows} rows: not read"
            ));
        }
        let unpacked = match batch.compression() {
            None => bytes,
            Some(packing) => {
                let packed = PackedMessage { body, bytes, batch };
                self.unpacked(&packed, packing.codec())?
            }
        };
        if unpacked > self.most {
            return Err(self.too_much("a batch", unpacked));
        }
        if let Some(dictionary) = dictionary {
            let before = self.dictionaries.entry(dictionary.id()).or_default();
            // A delta is added to the dictionary with its id; any other batch replaces it.
            let kept = if dictionary.isDelta() { *before } else { 0 };
            *before = kept.saturating_add(unpacked);
            // A saturated value exceeds any limit by itself, and the others cannot overflow, given the sizes of files.
            let all = self.dictionaries.values().sum();
            if all > self.most {
                return Err(self.too_much("its dictionaries", all));
            }
        }
        Ok(())
    }

    /// Checks the bytes after the end mark: an end mark in place of a message would hide the rest.
    fn check_after_end(&mut self, is_file: bool) -> Option<String> {
        // Minimum size of a message; fewer bytes are padding.
        const MESSAGE: u64 = 64;
        // The length of the footer in four bytes, and the mark.
        const TAIL: u64 = 10;
        let mark = self.file.stream_position().ok()?;
        let mut end = self.bytes;
        if is_file {
            let start = self.bytes.saturating_sub(TAIL);
            self.seek(start).ok()?;
            let tail: [u8; TAIL as usize] = self.read().ok()?;
            match tail.strip_suffix(b"ARROW1").and_then(<[u8]>::first_chunk) {
                Some(footer) => end = start.saturating_sub(u32::from_le_bytes(*footer).into()),
                // A power failure left zeros at the end, which look like an end mark.
                None if tail == [0; TAIL as usize] => {}
                // A file that was cut within its footer has lost nothing.
                None => return None,
            }
        }
        let hidden = end.saturating_sub(mark);
        (hidden >= MESSAGE).then(|| format!("{hidden} bytes after its end mark are not read"))
    }

    fn too_much(&self, what: &str, bytes: u64) -> String {
        format!(
            "{what} of {bytes} bytes, and at most {} are read: write smaller batches",
            self.most
        )
    }

    /// Computes the unpacked size of a batch's buffers.
    fn unpacked(
        &mut self,
        packed: &PackedMessage<'_>,
        codec: CompressionType,
    ) -> Result<u64, String> {
        let mut all = 0_u64;
        for buffer in packed.batch.buffers().into_iter().flatten() {
            // Declared sizes are added up: many small false sizes are as bad as a large one.
            all = all.saturating_add(self.unpacked_buffer(packed, buffer, codec)?);
            let allowed = ALWAYS_ALLOWED_BYTES.max(packed.bytes.saturating_mul(MAX_RATIO));
            if all > allowed {
                return Err(format!(
                    "a batch of {} bytes says that it comes to more than {allowed}: not read",
                    packed.bytes
                ));
            }
            if all > self.most {
                return Err(self.too_much("a batch", all));
            }
        }
        Ok(all)
    }

    /// Reads the unpacked size of a buffer, which begins with its length, or with -1 if it is not packed.
    fn unpacked_buffer(
        &mut self,
        packed: &PackedMessage<'_>,
        buffer: &Buffer,
        codec: CompressionType,
    ) -> Result<u64, String> {
        const PREFIX: u64 = 8;
        if buffer.length() == 0 {
            return Ok(0);
        }
        // Negative numbers are as wrong as too large ones.
        let [start, length] = [buffer.offset(), buffer.length()].map(|number| number as u64);
        let end = start.checked_add(length);
        if length < PREFIX || end.is_none_or(|end| end > packed.bytes) {
            return Err("a buffer lies outside its batch".to_owned());
        }
        self.seek(packed.body + start)?;
        let length = length - PREFIX;
        let declared = match i64::from_le_bytes(self.read()?) {
            // Arrow format, BodyCompression: buffers that do not shrink are stored uncompressed.
            -1 => return Ok(length),
            declared => u64::try_from(declared)
                .map_err(|_| format!("a buffer says that it comes to {declared} bytes"))?,
        };
        // For the other codec, the library allocates just the declared size; this one is read to its end.
        if codec == CompressionType::LZ4_FRAME
            && length.saturating_mul(MAX_LZ4_RATIO) > ALWAYS_ALLOWED_BYTES.max(declared)
        {
            let file = self.file.try_clone().map_err(|error| error.to_string())?;
            let mut reader = FrameDecoder::new(file.take(length)).take(declared.saturating_add(1));
            // Ignore damage: the library finds it and stops there, too.
            let grown = std::io::copy(&mut reader, &mut std::io::sink());
            if grown.is_ok_and(|bytes| bytes > declared) {
                return Err(format!(
                    "a buffer comes to more than the {declared} bytes that it says"
                ));
            }
        }
        Ok(declared)
    }

    fn seek(&mut self, at: u64) -> Result<(), String> {
        let moved = self.file.seek(SeekFrom::Start(at));
        moved.map(drop).map_err(|error| error.to_string())
    }

    fn read<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        let read = self.file.read_exact(&mut bytes);
        read.map(|()| bytes).map_err(|_| unexpected_end())
    }
}

fn unexpected_end() -> String {
    "it ends within a message, or without an end mark".to_owned()
}
