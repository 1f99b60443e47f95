//! Decompression that tracks the members of a file and continues after a damaged one.
//!
//! Web archives consist of gzip members or zstd frames, one per record. If one is damaged, the search for the next magic number starts after the
//! beginning of the damaged member, and reading continues there. The output of one read never crosses the border between two members.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flate2::bufread::GzDecoder;

use crate::decode::{
    self, CountingFile, DecodeStep, GzipPadding, PackedInput, SourceDecoder, position,
};
use crate::error::ReadError;
use crate::format::Compression;
use crate::source::Source;

const READ_BYTES: usize = 128 << 10;

/// Total number of bytes for which damaged members may be searched again from their second byte on. Beyond that, the search continues where decoding
/// failed, so a hostile file costs linear time.
const MAX_RESCAN_BYTES: u64 = 64 << 20;

/// The result of one read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MemberOutput {
    /// More bytes of the same member.
    More,
    /// The first bytes of a member, which begins at this offset in the file.
    Member(u64),
    /// Bytes are missing here, for this reason. A member begins with the next read, unless the file ends.
    Gap(String),
    /// The member whose bytes were just read fails its checksum, for this reason. As for a gap, another one follows.
    Altered(String),
    /// The end of the file.
    End,
}

/// A source as a sequence of members. A file without members counts as a single one.
pub(crate) struct MemberDecoder<'a> {
    source: &'a Source,
    state: MemberState<'a>,
    /// The dictionary of a zstd file, or empty.
    dictionary: Vec<u8>,
    /// Number of bytes that were searched again after damage, which `MAX_RESCAN_BYTES` limits.
    again: u64,
    /// The error after bytes that were already returned.
    pending: Option<io::Error>,
}

enum MemberState<'a> {
    /// Between members.
    Between(PackedInput),
    /// Within the member at this offset in the file.
    Within(u64, MemberStream),
    /// A source that does not consist of members, and whether its first bytes were returned.
    Whole(SourceDecoder<'a>, bool),
    Finished(u64),
}

/// The bytes of one member.
enum MemberStream {
    Gzip(Box<GzDecoder<PackedInput>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, PackedInput>>),
}

impl MemberStream {
    fn input(&self) -> &PackedInput {
        match self {
            MemberStream::Gzip(decoder) => decoder.get_ref(),
            MemberStream::Zstd(decoder) => decoder.get_ref(),
        }
    }

    /// Returns the input at the end of the member, because both decoders work on the buffer of the reader.
    fn into_input(self) -> PackedInput {
        match self {
            MemberStream::Gzip(decoder) => decoder.into_inner(),
            MemberStream::Zstd(decoder) => decoder.finish(),
        }
    }
}

impl Read for MemberStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            MemberStream::Gzip(decoder) => decoder.read(out),
            MemberStream::Zstd(decoder) => decoder.read(out),
        }
    }
}

impl<'a> MemberDecoder<'a> {
    pub(crate) fn open(source: &'a Source) -> Result<MemberDecoder<'a>, ReadError> {
        let mut dictionary = Vec::new();
        let state = match source.compression {
            Compression::Gzip | Compression::Zstd => {
                // Only to check that the file is the one that was discovered.
                decode::SourceDecoder::open(source)?;
                let file = decode::open_source(source)?;
                if source.compression == Compression::Zstd {
                    dictionary = decode::embedded_dictionary(&mut &file)
                        .map_err(|error| decode::io_error(source, error))?;
                }
                MemberState::Between(BufReader::with_capacity(
                    READ_BYTES,
                    CountingFile::of(file, source),
                ))
            }
            _ => MemberState::Whole(SourceDecoder::open(source)?, false),
        };
        Ok(MemberDecoder {
            source,
            state,
            dictionary,
            again: 0,
            pending: None,
        })
    }

    /// Returns the number of bytes of the file that were consumed so far.
    pub(crate) fn disk_bytes(&self) -> u64 {
        match &self.state {
            MemberState::Between(input) => position(input),
            MemberState::Within(_, member) => position(member.input()),
            MemberState::Whole(decoder, _) => decoder.disk_bytes(),
            MemberState::Finished(bytes) => *bytes,
        }
    }

    /// Appends up to `want` bytes, and at least one unless it returns `Gap` or `End`.
    pub(crate) fn append(
        &mut self,
        out: &mut Vec<u8>,
        want: usize,
    ) -> Result<MemberOutput, ReadError> {
        loop {
            match self.step(out, want) {
                Ok(Some(output)) => return Ok(output),
                Ok(None) => {}
                Err(error) => return Err(self.read_error(error)),
            }
        }
    }

    /// Converts the error of a step: it may contain an error of the file itself, otherwise it comes from the system.
    fn read_error(&self, error: io::Error) -> ReadError {
        match error.downcast::<ReadError>() {
            Ok(error) => error,
            Err(error) => decode::io_error(self.source, error),
        }
    }

    /// Takes one step. Returns `None` if there is nothing to report.
    fn step(&mut self, out: &mut Vec<u8>, want: usize) -> io::Result<Option<MemberOutput>> {
        // The state is taken out, because the decoder must be consumed to return its input. Each path below sets a new one; after an error it stays
        // `Finished`, which ends the source.
        match std::mem::replace(&mut self.state, MemberState::Finished(0)) {
            MemberState::Finished(bytes) => {
                self.state = MemberState::Finished(bytes);
                Ok(Some(MemberOutput::End))
            }
            MemberState::Whole(decoder, begun) => self.whole(decoder, begun, out, want),
            MemberState::Between(input) => self.next_member(input, out, want),
            MemberState::Within(at, mut member) => match self.read_some(&mut member, out, want) {
                Ok(0) => {
                    self.state = MemberState::Between(member.into_input());
                    Ok(None)
                }
                Ok(_) => {
                    self.state = MemberState::Within(at, member);
                    Ok(Some(MemberOutput::More))
                }
                // A member that ends early may be whole except for its checksum.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.resume_at_next_member(at, member.into_input(), error)
                }
                Err(error) => {
                    let resumed = self.resume_at_next_member(at, member.into_input(), error)?;
                    Ok(resumed.map(|output| match output {
                        MemberOutput::Gap(reason) => MemberOutput::Altered(reason),
                        output => output,
                    }))
                }
            },
        }
    }

    fn whole(
        &mut self,
        mut decoder: SourceDecoder<'a>,
        begun: bool,
        out: &mut Vec<u8>,
        want: usize,
    ) -> io::Result<Option<MemberOutput>> {
        let before = out.len();
        let step = decoder.append(out, want).map_err(io::Error::other)?;
        let more = if begun {
            MemberOutput::More
        } else {
            MemberOutput::Member(0)
        };
        let bytes = decoder.disk_bytes();
        self.state = match step {
            DecodeStep::More => MemberState::Whole(decoder, true),
            // Return the bytes first; the next step reports the end.
            DecodeStep::End | DecodeStep::Damaged(_) if out.len() > before => {
                MemberState::Whole(decoder, true)
            }
            DecodeStep::End => MemberState::Finished(bytes),
            DecodeStep::Damaged(reason) => {
                self.state = MemberState::Finished(bytes);
                return Ok(Some(MemberOutput::Gap(reason)));
            }
        };
        Ok((out.len() > before).then_some(more))
    }

    /// Begins the next member and reads its first bytes.
    fn next_member(
        &mut self,
        mut input: PackedInput,
        out: &mut Vec<u8>,
        want: usize,
    ) -> io::Result<Option<MemberOutput>> {
        if self.source.compression == Compression::Gzip {
            // Padding, as between the members of other files. Nothing pads a file in front.
            let most = match position(&input) {
                0 => 0,
                _ => decode::MAX_PADDING_BYTES,
            };
            if let GzipPadding::Hole(damage) = decode::skip_padding(&mut input, most)? {
                self.state = MemberState::Between(input);
                return Ok(Some(MemberOutput::Gap(damage)));
            }
        }
        let at = position(&input);
        // Checksums of other readers need this empty read too, to notice the end of the file.
        if input.fill_buf()?.is_empty() {
            let counted = input.get_ref();
            decode::check_unchanged(self.source, counted).map_err(io::Error::other)?;
            self.state = MemberState::Finished(at);
            // A failed download leaves a file of no bytes; an empty archive has at least an empty member.
            let is_empty = at == 0;
            return Ok(is_empty.then(|| MemberOutput::Gap("unexpected end of file".to_owned())));
        }
        let mut member = match self.source.compression {
            // One frame at a time: a record is a frame, and offsets are reported by frame.
            Compression::Zstd => {
                let decoder = decode::zstd_decoder(input, &self.dictionary)?;
                MemberStream::Zstd(Box::new(decoder.single_frame()))
            }
            _ => MemberStream::Gzip(Box::new(GzDecoder::new(input))),
        };
        match self.read_some(&mut member, out, want) {
            Ok(n) => {
                self.state = MemberState::Within(at, member);
                // An empty member is not reported, because it contains no record.
                Ok((n > 0).then_some(MemberOutput::Member(at)))
            }
            Err(error) => self.resume_at_next_member(at, member.into_input(), error),
        }
    }

    /// Reads up to `want` bytes. An error after some bytes is returned by the next call.
    fn read_some(
        &mut self,
        reader: &mut impl Read,
        out: &mut Vec<u8>,
        want: usize,
    ) -> io::Result<usize> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        let start = out.len();
        out.resize(start + want, 0);
        let (filled, end) = decode::fill(reader, &mut out[start..]);
        out.truncate(start + filled);
        match end {
            // Bytes before the damage are valid as far as the library checked them, and may end a record.
            Err(error) if filled > 0 => {
                self.pending = Some(error);
                Ok(filled)
            }
            end => end.map(|_| filled),
        }
    }

    /// Handles a member that begins at `start` and cannot be read further: searches the next one.
    fn resume_at_next_member(
        &mut self,
        start: u64,
        mut input: PackedInput,
        error: io::Error,
    ) -> io::Result<Option<MemberOutput>> {
        // A failing disk is not a damaged member: searching further would silently lose the rest of the file.
        if error.raw_os_error().is_some() {
            return Err(error);
        }
        decode::check_unchanged(self.source, input.get_ref()).map_err(io::Error::other)?;
        let stopped = position(&input);
        // A false magic number before an intact member must not cost the member: search from the second byte on, as long as the budget lasts.
        self.again += stopped.saturating_sub(start);
        let from = if self.again <= MAX_RESCAN_BYTES {
            start + 1
        } else {
            stopped.max(start + 1)
        };
        input.seek(SeekFrom::Start(from))?;
        self.state = match find_magic(&mut input, magic(self.source.compression))? {
            // The three or four bytes may occur by chance. Then decoding fails at once, and the search continues after them.
            true => MemberState::Between(input),
            // All bytes of the file were examined, which is what progress counts.
            false => MemberState::Finished(self.source.bytes),
        };
        Ok(Some(MemberOutput::Gap(error.to_string())))
    }
}

fn magic(compression: Compression) -> &'static [u8] {
    match compression {
        Compression::Zstd => b"\x28\xb5\x2f\xfd",
        _ => b"\x1f\x8b\x08",
    }
}

/// Moves the input to the next magic number. Returns false if there is none.
fn find_magic(input: &mut PackedInput, magic: &[u8]) -> io::Result<bool> {
    loop {
        let buffer = input.fill_buf()?;
        if let Some(found) = memchr::memmem::find(buffer, magic) {
            input.consume(found);
            return Ok(true);
        }
        // The magic number may begin in the last bytes of this buffer. Seek back by at most three bytes to refill the buffer from there, because
        // `BufReader` cannot keep them.
        let left = buffer.len().min(magic.len() - 1);
        let passed = buffer.len() - left;
        input.consume(passed);
        if passed == 0 {
            // Only the end of the file leaves so few bytes.
            return Ok(false);
        }
        let at = position(input);
        input.seek(SeekFrom::Start(at))?;
    }
}
