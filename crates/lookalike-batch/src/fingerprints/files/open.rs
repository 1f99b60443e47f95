//! Opens a file or standard input: returns its first bytes and its contents, decompressed, and counts the bytes read.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike_corpus::Compression;
use lookalike_hamming::FileError;

use super::error::CodesError;
use super::source::FingerprintSource;

/// The bytes of a collection, decompressed.
pub(super) type FingerprintStream = Box<dyn Read + Send>;

/// Log2 of the largest accepted zstd window, which bounds the decoder's memory.
const ZSTD_WINDOW_LOG: u32 = 27;
// Magic bytes and the method, deflate (RFC 1952, section 2.3.1); only the first two are compared.
const GZIP: [u8; 4] = [0x1f, 0x8b, 8, 0];
// The magic number of a frame, little-endian (RFC 8878, section 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// An open file, decompressed, from its first byte.
pub(super) struct OpenedFile {
    pub(super) name: String,
    pub(super) input: FingerprintStream,
    /// The first decompressed bytes, padded with zeros. `None` for raw numbers.
    pub(super) head: Option<[u8; 4]>,
    /// Its stored size in bytes.
    pub(super) bytes: Option<u64>,
}

/// Returns the first bytes of a file of raw numbers that is compressed as its name says, or `None` if it holds something else. The numbers themselves
/// start with arbitrary bytes.
fn raw_head(source: &FingerprintSource) -> Option<[u8; 4]> {
    source.raw_packing().map(|packing| match packing {
        Compression::Gzip => GZIP,
        Compression::Zstd => ZSTD,
        _ => [0; 4],
    })
}

/// Opens a source. The stored bytes that are read are added to `read`.
pub(super) fn open(
    source: &FingerprintSource,
    read: Arc<AtomicU64>,
) -> Result<OpenedFile, CodesError> {
    let (name, path) = (source.name().to_owned(), source.path());
    let failed = |cause| CodesError::Io {
        name: name.clone(),
        cause,
    };
    let (stored, bytes): (FingerprintStream, _) = if source.is_standard_input() {
        (Box::new(io::stdin()), None)
    } else {
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        // A pipe or a device tells no useful length, and progress is then shown without a total.
        (Box::new(file), metadata.is_file().then_some(metadata.len()))
    };
    let counted = CountingStream {
        input: stored,
        read,
    };
    let (start, input) = begin(Box::new(counted)).map_err(failed)?;
    let raw = raw_head(source);
    let (start, input) = match unpacked(raw.unwrap_or(padded(&start)), input).map_err(failed)? {
        (input, false) => (start, input),
        (input, true) => begin(input).map_err(failed)?,
    };
    // Lines may be none, but an empty file of another format has lost its header, and all that followed.
    if start.is_empty() && source.has_header() {
        let cause = FileError::Truncated { offset: 0 };
        return Err(CodesError::File { name, cause });
    }
    // Raw numbers can begin with the magic bytes of any format by chance, so for them the name decides alone.
    let head = raw.is_none().then(|| padded(&start));
    Ok(OpenedFile {
        name,
        input,
        head,
        bytes,
    })
}

/// Reads the first bytes, at most four, and puts them back.
fn begin(mut input: FingerprintStream) -> io::Result<(Vec<u8>, FingerprintStream)> {
    let mut start = Vec::new();
    (&mut input).take(4).read_to_end(&mut start)?;
    Ok((start.clone(), Box::new(Cursor::new(start).chain(input))))
}

/// Returns the first bytes, padded with zeros.
fn padded(start: &[u8]) -> [u8; 4] {
    let mut head = [0; 4];
    head[..start.len()].copy_from_slice(start);
    head
}

/// Returns the decompressed stream, and whether it was compressed.
fn unpacked(head: [u8; 4], input: FingerprintStream) -> io::Result<(FingerprintStream, bool)> {
    Ok(match head {
        [0x1f, 0x8b, ..] => {
            // A gzip file may consist of several members (RFC 1952, section 2.2).
            let decoder = flate2::bufread::MultiGzDecoder::new(BufReader::new(input));
            (Box::new(decoder), true)
        }
        ZSTD => {
            let mut decoder = zstd::stream::read::Decoder::new(input)?;
            // A frame may declare a window of up to 3.75 TB (RFC 8878, section 3.1.1.1.2).
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            (Box::new(decoder), true)
        }
        _ => (input, false),
    })
}

/// A stream that counts the bytes read from it.
struct CountingStream {
    input: FingerprintStream,
    read: Arc<AtomicU64>,
}

impl Read for CountingStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(out)?;
        // Other threads only show the count as progress.
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
