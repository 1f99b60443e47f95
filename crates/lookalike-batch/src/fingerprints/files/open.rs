//! Opens a file or standard input: returns its first bytes and its contents, decompressed, and counts the bytes read.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
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
    // Raw numbers can begin with the magic bytes of any format by chance, so for them the name decides alone.
    let raw = source.raw_packing();
    let packing = raw.unwrap_or_else(|| packing_of(padded(&start)));
    let (start, input) = match packing {
        Compression::None => (start, input),
        packing => unpacked(packing, input).and_then(begin).map_err(failed)?,
    };
    // Lines may be none, but an empty file of another format has lost its header, and all that followed.
    if start.is_empty() && source.has_header() {
        let cause = FileError::Truncated { offset: 0 };
        return Err(CodesError::File { name, cause });
    }
    let head = raw.is_none().then(|| padded(&start));
    Ok(OpenedFile {
        name,
        input,
        head,
        bytes,
    })
}

/// Opens a file, and decompresses it if it begins like gzip or zstd.
///
/// # Errors
/// If it cannot be opened or read.
pub fn decompressed(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let (start, input) = begin(Box::new(File::open(path)?))?;
    unpacked(packing_of(padded(&start)), input)
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

/// Returns the compression of a stream with these first bytes.
fn packing_of(head: [u8; 4]) -> Compression {
    match head {
        // RFC 1952, section 2.3.1.
        [0x1f, 0x8b, ..] => Compression::Gzip,
        ZSTD => Compression::Zstd,
        _ => Compression::None,
    }
}

/// Returns the decompressed stream.
fn unpacked(packing: Compression, input: FingerprintStream) -> io::Result<FingerprintStream> {
    match packing {
        Compression::Gzip => {
            // A gzip file may consist of several members (RFC 1952, section 2.2).
            let decoder = flate2::bufread::MultiGzDecoder::new(BufReader::new(input));
            Ok(Box::new(decoder))
        }
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(input)?;
            // A frame may declare a window of up to 3.75 TB (RFC 8878, section 3.1.1.1.2).
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Ok(Box::new(decoder))
        }
        _ => Ok(input),
    }
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
