//! Reading of one open source: decompresses its bytes, and checks that it did not change meanwhile.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use liblzma::bufread::XzDecoder;
use xxhash_rust::xxh3::Xxh3;
use zstd::zstd_safe::DDict;

use crate::error::ReadError;
use crate::format::Compression;
use crate::regular::{is_not_regular, open_regular};
use crate::source::{LearnedFacts, Source, SourceOrigin};

/// Compressed bytes that are read at once.
const READ_BYTES: usize = 128 << 10;

/// Largest accepted zstd window, as a power of two: 128 MiB. It limits the memory of the decoder.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Memory limit of an xz decoder: the dictionary of `xz -9` needs half of it.
const XZ_MEMORY_BYTES: u64 = 128 << 20;

/// Decompressed bytes requested per call of a library. On damage, a library drops what it decompressed in that call, and that amount must not depend
/// on how much the caller asked for.
const STEP_BYTES: usize = 32 << 10;

/// Bytes of a buffer that are zeroed at once.
const ZEROED_BYTES: usize = 4 * STEP_BYTES;

/// Compressed bytes that are examined to find out what a file holds. More than one block, which gives no text before its end: a block of zstd takes
/// up to 128 KiB, one of bzip2 up to 900 kB.
const PEEK_BYTES: u64 = 1 << 20;

/// Compressed bytes that are read at once to find out what a file holds: few, because most files give enough text at once.
const PEEK_STEP_BYTES: usize = 8 << 10;

/// Largest accepted dictionary at the beginning of a zstd file, before and after decompression; trained ones have up to 1 MiB. It limits the memory of
/// a decoder, and the time to begin a record, whose decoder copies the dictionary.
const MAX_DICTIONARY_BYTES: u32 = 2 << 20;

/// Skippable frames at the beginning of a zstd file that are passed over to find out what it holds.
const MAX_SKIPPABLE_FRAMES: u32 = 64;

/// The result of one read. Bytes may have been appended in any case.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodeStep {
    /// The requested number of bytes was appended.
    More,
    /// The source has ended.
    End,
    /// The compressed data is damaged from here on, for this reason.
    Damaged(String),
}

/// An open source.
pub(crate) struct SourceDecoder<'a> {
    source: &'a Source,
    stream: SteppedStream,
}

/// A stream that is decompressed in steps of fixed length.
struct SteppedStream {
    stream: DecodedStream<PackedInput>,
    /// A step that the caller has taken in part.
    step: Vec<u8>,
    /// Offset of the remaining part of the step.
    at: usize,
}

impl SteppedStream {
    /// Appends up to `want` bytes. Returns true if the stream ends after them.
    fn append(&mut self, out: &mut Vec<u8>, want: usize) -> io::Result<bool> {
        // Uncompressed files need no steps, because they cannot be damaged.
        if let DecodedStream::Plain(packed) = &mut self.stream {
            return packed.get_mut().append(out, want);
        }
        out.reserve(want);
        let end = out.len() + want;
        while out.len() < end {
            let start = out.len();
            // Zero the buffer first, since `Read` needs initialised memory. In pieces, because many files are far shorter than what is wanted: this
            // writes about one byte per byte read, at a small part of the cost of decompression.
            out.resize(end.min(start + ZEROED_BYTES), 0);
            let (filled, is_end) = fill(self, &mut out[start..]);
            out.truncate(start + filled);
            if !matches!(is_end, Ok(false)) {
                return is_end;
            }
        }
        Ok(false)
    }
}

impl Read for SteppedStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.step.len() {
            // There is room for a whole step, so decompress into the caller's buffer without a copy.
            if let Some(out) = out.get_mut(..STEP_BYTES) {
                return self.stream.read(out);
            }
            self.at = 0;
            self.step.resize(STEP_BYTES, 0);
            let read = self.stream.read(&mut self.step);
            // Truncate before returning the error: the next call must not return a step of zeros.
            self.step.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        let rest = &self.step[self.at..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// The bytes of a file as stored, buffered.
pub(crate) type PackedInput = BufReader<CountingFile>;

enum DecodedStream<R: BufRead> {
    Plain(R),
    Gzip(Box<GzipDecoder<R>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, R>>),
    Bzip2(Box<MultiBzDecoder<R>>),
    Xz(Box<XzReader<R>>),
}

impl<'a> SourceDecoder<'a> {
    /// Opens the source and checks that it is still the one that was discovered.
    pub(crate) fn open(source: &'a Source) -> Result<SourceDecoder<'a>, ReadError> {
        let file = open_source(source)?;
        let failed = |error| io_error(source, error);
        let (dictionary, capacity) = match source.compression {
            // Read past the buffer, which stays empty.
            Compression::None => (Vec::new(), 0),
            // From the file itself: the checksum of the counted one needs every byte once.
            Compression::Zstd => (embedded_dictionary(&mut &file).map_err(failed)?, READ_BYTES),
            _ => (Vec::new(), READ_BYTES),
        };
        let packed = BufReader::with_capacity(capacity, CountingFile::of(file, source));
        let stream = DecodedStream::new(packed, source.compression, &dictionary).map_err(failed)?;
        let decoder = SourceDecoder {
            source,
            stream: SteppedStream {
                stream,
                step: Vec::new(),
                at: 0,
            },
        };
        // Checked after opening: this checks the open file, so another file that takes its name later does not matter.
        decoder.check_unchanged()?;
        Ok(decoder)
    }

    /// Appends up to `want` decompressed bytes. Appends fewer only at the end or before damage.
    pub(crate) fn append(
        &mut self,
        out: &mut Vec<u8>,
        want: usize,
    ) -> Result<DecodeStep, ReadError> {
        match self.stream.append(out, want) {
            Ok(false) => Ok(DecodeStep::More),
            Ok(true) => {
                // A file that changed while it was read would be a mixture of two.
                self.check_unchanged()?;
                Ok(DecodeStep::End)
            }
            // Errors of the system have numbers. An error without one is a library's report about the data.
            Err(error) if error.raw_os_error().is_some() => Err(io_error(self.source, error)),
            Err(error) => {
                // A file that changed may look damaged without being so.
                self.check_unchanged()?;
                Ok(DecodeStep::Damaged(error.to_string()))
            }
        }
    }

    /// Returns the number of bytes of the file that were consumed so far, before decompression.
    pub(crate) fn disk_bytes(&self) -> u64 {
        position(self.stream.stream.packed())
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        check_unchanged(self.source, self.stream.stream.packed().get_ref())
    }
}

/// Opens the file of a source. If it is no longer a regular file, it counts as changed.
pub(crate) fn open_source(source: &Source) -> Result<File, ReadError> {
    open_regular(source.file()).map_err(|error| match is_not_regular(&error) {
        true => changed(source),
        false => io_error(source, error),
    })
}

fn changed(source: &Source) -> ReadError {
    ReadError::Changed {
        name: source.name().into_owned(),
    }
}

/// Checks that the open file is still the one that was discovered.
pub(crate) fn check_unchanged(source: &Source, counted: &CountingFile) -> Result<(), ReadError> {
    check_metadata(source, counted.file.metadata())
}

/// Checks by the metadata of a source's file that it is still the one that was discovered.
pub(crate) fn check_metadata(
    source: &Source,
    metadata: io::Result<Metadata>,
) -> Result<(), ReadError> {
    let now = metadata.map_err(|error| io_error(source, error))?;
    let same_time = match source.origin {
        // Copies in the spool directory have times of the job itself; no other process writes there.
        SourceOrigin::File(_) => now.modified().ok() == source.modified,
        SourceOrigin::Spool { .. } | SourceOrigin::Given(_) => true,
    };
    // Like make and rsync: cheap, and sufficient for files that are appended to. Jobs that resume compare checksums as well.
    if now.len() == source.bytes && same_time {
        return Ok(());
    }
    Err(changed(source))
}

impl<R: BufRead> DecodedStream<R> {
    fn new(packed: R, compression: Compression, dictionary: &[u8]) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => DecodedStream::Plain(packed),
            Compression::Gzip => DecodedStream::Gzip(Box::new(GzipDecoder::new(packed))),
            Compression::Zstd => DecodedStream::Zstd(Box::new(zstd_decoder(packed, dictionary)?)),
            Compression::Bzip2 => DecodedStream::Bzip2(Box::new(MultiBzDecoder::new(packed))),
            Compression::Xz => DecodedStream::Xz(Box::new(XzReader::new(packed)?)),
        })
    }

    /// Returns the bytes of the file that were read and not yet decompressed, and the file itself.
    fn packed(&self) -> &R {
        match self {
            DecodedStream::Plain(packed) => packed,
            DecodedStream::Gzip(decoder) => decoder.get_ref(),
            DecodedStream::Zstd(decoder) => decoder.get_ref(),
            DecodedStream::Bzip2(decoder) => decoder.get_ref(),
            DecodedStream::Xz(reader) => reader.decoder.get_ref(),
        }
    }
}

/// Returns the offset in the file of the next byte to decompress.
pub(crate) fn position(packed: &PackedInput) -> u64 {
    packed.get_ref().at - packed.buffer().len() as u64
}

impl<R: BufRead> Read for DecodedStream<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            DecodedStream::Plain(packed) => packed.read(out),
            DecodedStream::Gzip(reader) => reader.read(out),
            DecodedStream::Zstd(reader) => reader.read(out),
            DecodedStream::Bzip2(reader) => reader.read(out),
            DecodedStream::Xz(reader) => reader.read(out),
        }
    }
}

/// Decompresses the beginning of a file to at most `bytes` bytes. Damage ends the result early. Returns `None` if the compressed bytes that are
/// examined contain no text, although they are not the whole file.
pub(crate) fn peek(
    file: &mut (impl Read + Seek),
    compression: Compression,
    bytes: usize,
) -> io::Result<Option<Vec<u8>>> {
    file.rewind()?;
    let mut dictionary = Vec::new();
    if compression == Compression::Zstd {
        dictionary = embedded_dictionary(file)?;
        pass_skippable_frames(file)?;
    }
    let mut packed = BufReader::with_capacity(PEEK_STEP_BYTES, file.take(PEEK_BYTES));
    let mut out = vec![0; bytes];
    let mut stream = DecodedStream::new(&mut packed, compression, &dictionary)?;
    let (filled, end) = fill(&mut stream, &mut out);
    // Errors of the system have numbers. One without is damage, which is reported when the file is read.
    if let Err(error) = end
        && error.raw_os_error().is_some()
    {
        return Err(error);
    }
    out.truncate(filled);
    let is_cut = packed.get_ref().limit() == 0;
    Ok((filled > 0 || !is_cut).then_some(out))
}

/// Returns the dictionary in the first frame of a zstd file, as in `.warc.zst`, or nothing if there is none that can be used. Leaves the file at its
/// beginning.
///
/// It is in a skippable frame of this magic number, as it is or compressed as a zstd frame ("WARC compressed with zstd", iipc.github.io).
pub(crate) fn embedded_dictionary(file: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
    let mut head = [0; 8];
    let (filled, end) = fill(file, &mut head);
    end?;
    let [0x5d, 0x2a, 0x4d, 0x18, length @ ..] = head else {
        file.rewind()?;
        return Ok(Vec::new());
    };
    let length = u32::from_le_bytes(length);
    let mut content = Vec::new();
    if filled == head.len() && length <= MAX_DICTIONARY_BYTES {
        file.take(u64::from(length)).read_to_end(&mut content)?;
    }
    file.rewind()?;
    if content.starts_with(b"\x28\xb5\x2f\xfd") {
        let mut unpacked = Vec::new();
        let packed = zstd_decoder(&content[..], &[])?;
        let read = packed
            .take(u64::from(MAX_DICTIONARY_BYTES) + 1)
            .read_to_end(&mut unpacked);
        content = match read {
            Ok(bytes) if bytes <= MAX_DICTIONARY_BYTES as usize => unpacked,
            _ => Vec::new(),
        };
    }
    // A file without the dictionary that its frames name is refused by the decoder, with a reason. One that is broken would end the job.
    let is_usable = !content.is_empty() && DDict::try_create(&content).is_some();
    Ok(if is_usable { content } else { Vec::new() })
}

/// Moves behind the skippable frames with which a zstd file begins. They hold no text, and may be longer than what is examined.
fn pass_skippable_frames(file: &mut (impl Read + Seek)) -> io::Result<()> {
    let mut at = file.stream_position()?;
    for _ in 0..MAX_SKIPPABLE_FRAMES {
        let mut head = [0; 8];
        let (filled, end) = fill(file, &mut head);
        end?;
        let [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d] = head else {
            break;
        };
        if filled < head.len() {
            break;
        }
        at = file.seek(SeekFrom::Start(
            at + 8 + u64::from(u32::from_le_bytes([a, b, c, d])),
        ))?;
    }
    file.seek(SeekFrom::Start(at))?;
    Ok(())
}

/// Zeros between two gzip members that may be padding, as in blocks of a tape. More of them are a hole, where members are missing: an interrupted
/// download, or a crash before the data were on disk.
pub(crate) const MAX_PADDING_BYTES: u64 = 511;

/// A decoder of consecutive gzip members, with padding between them. Any number of zeros may follow the last one, as for gzip(1).
struct GzipDecoder<R> {
    /// `None` only while the next member is opened.
    member: Option<GzDecoder<R>>,
    /// A hole that was passed, to be reported at the end.
    hole: Option<String>,
}

impl<R: BufRead> GzipDecoder<R> {
    fn new(packed: R) -> Self {
        let member = Some(GzDecoder::new(packed));
        Self { member, hole: None }
    }

    fn member(&self) -> &GzDecoder<R> {
        self.member.as_ref().expect("a member is begun at once")
    }

    fn get_ref(&self) -> &R {
        self.member().get_ref()
    }
}

impl<R: BufRead> Read for GzipDecoder<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let member = self.member.as_mut().expect("a member is begun at once");
            let count = member.read(out)?;
            // Nothing read into an empty buffer is not the end of the member.
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            match skip_padding(member.get_mut(), MAX_PADDING_BYTES)? {
                // Only now, so that what is behind the hole is read.
                GzipPadding::End => {
                    return self
                        .hole
                        .take()
                        .map_or(Ok(0), |damage| Err(io::Error::other(damage)));
                }
                GzipPadding::Hole(damage) => self.hole = Some(damage),
                GzipPadding::Member => {}
            }
            let member = self.member.take();
            // The reader keeps what it has buffered of the next member: a decoder consumes no more than its own.
            self.member = member.map(|member| GzDecoder::new(member.into_inner()));
        }
    }
}

/// End of a gzip member and of the zeros that follow it: what comes next.
pub(crate) enum GzipPadding {
    Member,
    /// A member behind so many zeros that others are missing: the damage.
    Hole(String),
    End,
}

/// Skips the zeros before a gzip member, of which `most` are padding.
pub(crate) fn skip_padding(packed: &mut impl BufRead, most: u64) -> io::Result<GzipPadding> {
    let mut skipped = 0;
    loop {
        let bytes = packed.fill_buf()?;
        if bytes.is_empty() {
            return Ok(GzipPadding::End);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let is_over = zeros < bytes.len();
        packed.consume(zeros);
        skipped += zeros as u64;
        if is_over {
            return Ok(match skipped <= most {
                true => GzipPadding::Member,
                false => GzipPadding::Hole(format!(
                    "a hole of {skipped} zeros where a member should begin"
                )),
            });
        }
    }
}

/// Returns a decoder of zstd. The dictionary is that of the file, or empty.
pub(crate) fn zstd_decoder<R: io::BufRead>(
    reader: R,
    dictionary: &[u8],
) -> io::Result<zstd::stream::read::Decoder<'static, R>> {
    let mut decoder = zstd::stream::read::Decoder::with_dictionary(reader, dictionary)?;
    // Frames with larger windows (`zstd --ultra --long=31`) would take 2 GiB each, so they are refused.
    decoder.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(decoder)
}

/// A decoder of xz that returns everything before damage. The library drops what it decompressed in the call that meets the damage, which is all of a
/// short file with data behind its stream.
struct XzReader<R> {
    decoder: XzDecoder<R>,
    /// Damage behind the bytes that were returned last.
    damage: Option<io::Error>,
}

impl<R: BufRead> XzReader<R> {
    fn new(packed: R) -> io::Result<XzReader<R>> {
        // Without this flag decoding ends silently after the first stream: `cat a.xz b.xz` would lose b.
        let flags = liblzma::stream::CONCATENATED;
        let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES, flags)?;
        Ok(XzReader {
            decoder: XzDecoder::new_stream(packed, stream),
            damage: None,
        })
    }
}

impl<R: BufRead> Read for XzReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(damage) = self.damage.take() {
            return Err(damage);
        }
        let before = self.decoder.total_out();
        self.decoder
            .read(out)
            .or_else(|error| match (self.decoder.total_out() - before) as usize {
                0 => Err(error),
                count => {
                    self.damage = Some(error);
                    Ok(count)
                }
            })
    }
}

/// Reads until `out` is full, the end (`true`) or an error. Always returns the number of bytes read.
pub(crate) fn fill(reader: &mut impl Read, out: &mut [u8]) -> (usize, io::Result<bool>) {
    let mut filled = 0;
    while filled < out.len() {
        match reader.read(&mut out[filled..]) {
            Ok(0) => return (filled, Ok(true)),
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Err(error)),
        }
    }
    (filled, Ok(false))
}

/// A file that tracks its reading position, and computes a checksum if it is read from its first byte to its last.
pub(crate) struct CountingFile {
    file: File,
    /// Offset of the next byte to read.
    pub(crate) at: u64,
    summing: Option<Box<(Xxh3, Arc<LearnedFacts>)>>,
}

impl CountingFile {
    /// Wraps the open file of a source.
    pub(crate) fn of(file: File, source: &Source) -> CountingFile {
        // A further reading of the same source computes no checksum, so it costs one pass of hashing in all.
        let unknown = source.learned.sum.get().is_none();
        CountingFile {
            file,
            at: 0,
            summing: unknown.then(|| Box::new((Xxh3::new(), Arc::clone(&source.learned)))),
        }
    }

    /// Appends up to `want` bytes. Returns true if the file ends after them.
    fn append(&mut self, out: &mut Vec<u8>, want: usize) -> io::Result<bool> {
        let start = out.len();
        out.reserve(want);
        // Reads into uninitialised memory, without zeroing it first.
        let read = (&self.file).take(want as u64).read_to_end(out);
        self.note(&out[start..]);
        let is_end = read? < want;
        if is_end {
            self.note_end();
        }
        Ok(is_end)
    }

    fn note(&mut self, bytes: &[u8]) {
        self.at += bytes.len() as u64;
        if let Some(summing) = &mut self.summing {
            summing.0.update(bytes);
        }
    }

    fn note_end(&mut self) {
        if let Some(summing) = self.summing.take() {
            // Another reader may have set it already.
            let _ = summing.1.sum.set(summing.0.digest());
        }
    }
}

impl Read for CountingFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(out)?;
        self.note(&out[..n]);
        // Reading nothing into an empty buffer does not mean the end of the file.
        if n == 0 && !out.is_empty() {
            self.note_end();
        }
        Ok(n)
    }
}

impl Seek for CountingFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // A checksum needs every byte once, in order.
        self.summing = None;
        self.at = self.file.seek(to)?;
        Ok(self.at)
    }
}

pub(crate) fn io_error(source: &Source, error: io::Error) -> ReadError {
    ReadError::Io {
        name: source.name().into_owned(),
        cause: error,
    }
}
