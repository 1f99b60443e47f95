//! Web archives: records of WARC (0.17 to 1.1, with WET and WAT) and ARC as rows.
//!
//! [`MemberReader`](member_reader::MemberReader) is the window over the decompressed bytes, [`head`] parses the head of a record, [`http`] undoes the
//! encodings of a response, [`page`] makes a row of a record, and [`wat`] reads metadata. This module separates the records, even if lengths are
//! wrong: a length is trusted only if the next record begins after it. Otherwise the record is bad, and reading continues at the next head that is
//! found. No allocation depends on a length in a head.
//!
//! Documents are responses of status 2xx, resources and conversions, if they contain text or PDF. All other records are counted by kind.

mod head;
mod http;
mod member_reader;
mod page;
mod wat;

use crate::error::ReadError;
use crate::format::{Compression, Format};
use crate::limits;
use crate::long_hash::LongHasher;
use crate::options::InputOptions;
use crate::record::BadRecordKind;
use crate::row::{RowReader, RowSink, SkipNotes};
use crate::source::{SkipKind, SkippedPart, Source};
use head::{ArchiveRecordHeader, HeaderMatch};
use member_reader::MemberReader;
use page::ArchivePages;

/// Maximum number of line ends after a block that are skipped to look for the next head. A block followed by more of them has ended.
const MAX_BLANK_BYTES: usize = 64 << 10;

/// A length below that of any record with its head: as few bytes behind a block hide none.
const MIN_RECORD_BYTES: u64 = 64;

/// Bytes of a block that are held beyond the longest document: room for the head of the response.
const ROOM_BYTES: usize = 64 << 10;

/// The state of reading one archive.
pub(crate) struct ArchiveReader<'a> {
    source: &'a Source,
    feed: MemberReader<'a>,
    pages: ArchivePages,
    notes: SkipNotes,
    /// Maximum number of bytes of a block that are held.
    hold: usize,
    /// Damage after which no record has been found yet.
    gap: Option<SkippedPart>,
    /// True if the bytes ahead belong to no record because of damage that was already reported.
    is_told: bool,
    /// The member of the previous record, and whether it has been reported to hold several.
    last_member: Option<(u64, bool)>,
}

/// The result of reading a block.
enum ArchiveBlock {
    /// The whole block: the number of bytes in the window, and the number of further bytes that are not held.
    Valid(usize, u64),
    /// The length is wrong, for this reason. The next head begins at this distance, if one was found.
    Invalid(String, Option<usize>),
    /// Damage cut the block off.
    Damaged,
}

impl<'a> ArchiveReader<'a> {
    pub(crate) fn open(
        source: &'a Source,
        options: &InputOptions,
    ) -> Result<ArchiveReader<'a>, ReadError> {
        let limit = limits::max_document_bytes(options);
        Ok(ArchiveReader {
            source,
            feed: MemberReader::open(source)?,
            pages: ArchivePages::new(source, limit),
            notes: SkipNotes::default(),
            hold: limit.saturating_add(ROOM_BYTES),
            gap: None,
            is_told: false,
            last_member: None,
        })
    }

    /// Reads one record, or skips the bytes between two. Returns false at the end.
    fn step(&mut self, sink: &mut RowSink<'_>) -> Result<bool, ReadError> {
        self.skip_blank_lines()?;
        if self.feed.rest().is_empty() {
            return Ok(self.skip_gap());
        }
        let (offset, member) = (self.feed.offset(), self.feed.member);
        match self.begin()? {
            HeaderMatch::Head(parsed) => {
                let (head, length) = *parsed;
                sink.skips.extend(self.gap.take());
                self.feed.advance(length);
                self.is_told = false;
                self.note_member(offset, member);
                self.record(&head, offset, member, sink)?;
            }
            HeaderMatch::Part => {
                // `begin` returns `Part` only if no more bytes follow without a gap.
                if !self.feed.is_before_gap() {
                    self.report_bad(sink, offset, "ends within its header".to_owned());
                }
                self.feed.advance(self.feed.rest().len());
            }
            HeaderMatch::Broken(end) => {
                let reason = "its header breaks off".to_owned();
                sink.bad(offset, BadRecordKind::Broken, reason);
                self.feed.advance(end);
                self.is_told = true;
            }
            HeaderMatch::None => {
                self.report_bad(sink, offset, "no record begins here".to_owned());
                self.resync()?;
            }
        }
        Ok(true)
    }

    /// Counts members that hold more than one record, each once.
    fn note_member(&mut self, offset: u64, member: u64) {
        let is_packed = matches!(
            self.source.compression,
            Compression::Gzip | Compression::Zstd
        );
        // No member begins at `u64::MAX`, so the first record never counts as a second one.
        let (last, told) = self.last_member.unwrap_or((u64::MAX, false));
        let shared = is_packed && last == member;
        if shared && !told {
            self.notes.add(SkipKind::SharedMember, offset, || {
                "several records are compressed as one member: all are read, but no tool can seek to one of them"
                    .to_owned()
            });
        }
        // Once a member is known to be shared, its further records are not reported again.
        self.last_member = Some((member, shared));
    }

    /// Reports a bad record, unless it is the consequence of one that was reported before.
    fn report_bad(&mut self, sink: &mut RowSink<'_>, offset: u64, reason: String) {
        if !std::mem::replace(&mut self.is_told, true) {
            sink.bad(offset, BadRecordKind::BrokenRun, reason);
        }
    }

    fn skip_blank_lines(&mut self) -> Result<(), ReadError> {
        loop {
            let rest = self.feed.rest();
            let blank = rest.iter().take_while(|b| matches!(b, b'\r' | b'\n'));
            let blank = blank.count();
            let all = blank == rest.len();
            self.feed.advance(blank);
            if !all || !self.feed.read_more()? {
                return Ok(());
            }
        }
    }

    /// Continues after damaged data. Returns false if there is none, which means the end.
    fn skip_gap(&mut self) -> bool {
        let offset = self.feed.offset();
        let Some(reason) = self.feed.skip_gap() else {
            return false;
        };
        // Bytes after a gap are nearly always in the middle of a record. The skip reports them, and an additional bad record would count the same
        // loss twice.
        self.is_told = true;
        // One entry for a run of damaged parts: millions of damaged members must not each hold a reason in memory.
        match &mut self.gap {
            Some(gap) => gap.count += 1,
            None => self.gap = Some(SkippedPart::damaged(self.source, offset, &reason)),
        }
        true
    }

    /// Parses the head at the reading position, reading as many bytes as it needs.
    fn begin(&mut self) -> Result<HeaderMatch, ReadError> {
        loop {
            let begin = head::begin(self.source.format, self.feed.rest());
            // A head ends with its member: where another member begins with a head, that of its predecessor was cut off.
            let most = match &begin {
                HeaderMatch::Head(parsed) => parsed.1,
                HeaderMatch::Part => usize::MAX,
                HeaderMatch::Broken(_) | HeaderMatch::None => 0,
            };
            if let Some(border) = self.boundary_with_header(most) {
                return Ok(HeaderMatch::Broken(border));
            }
            if begin != HeaderMatch::Part || !self.feed.read_more()? {
                return Ok(begin);
            }
        }
    }

    /// Moves to the next head, a gap or the end.
    fn resync(&mut self) -> Result<(), ReadError> {
        loop {
            // Starts at offset 1: the head at the reading position was just refused, and would be found forever.
            if let Some(at) = self.next_head() {
                self.feed.advance(at);
                return Ok(());
            }
            let rest = self.feed.rest().len();
            // The last bytes may be the start of a head.
            let passed = rest.saturating_sub(head::overlap(self.source.format));
            self.feed.advance(passed);
            if !self.feed.read_more()? {
                self.feed.advance(self.feed.rest().len());
                return Ok(());
            }
        }
    }

    /// Finds the next head in the window, after the first byte: at the start of a line or of a member.
    fn next_head(&mut self) -> Option<usize> {
        let in_line = head::find(self.source.format, self.feed.rest());
        // Take the nearer of the two. A border needs no line feed before it, which compressed records often lack.
        let at_border = self.boundary_with_header(in_line.unwrap_or(usize::MAX));
        at_border.or(in_line)
    }

    /// Finds the next head after one that was passed. It may begin at once.
    fn next_head_here(&mut self) -> Result<Option<usize>, ReadError> {
        Ok(match self.begin()? {
            HeaderMatch::Head(_) | HeaderMatch::Broken(_) => Some(0),
            _ => self.next_head(),
        })
    }

    /// Reads the record whose head was just passed.
    fn record(
        &mut self,
        head: &ArchiveRecordHeader,
        offset: u64,
        member: u64,
        sink: &mut RowSink<'_>,
    ) -> Result<(), ReadError> {
        let block = match &head.length {
            Ok(length) => self.block(*length, member)?,
            Err(reason) => ArchiveBlock::Invalid(reason.clone(), self.next_head_here()?),
        };
        match block {
            ArchiveBlock::Valid(held, unheld) => {
                let place = page::ArchivePlace { offset, member };
                let body = &self.feed.rest()[..held];
                // The row is made while the body is still held; only then does the window move on.
                let mut hasher =
                    self.pages
                        .add(head, body, unheld > 0, place, &mut self.notes, sink);
                self.feed.advance(held);
                if !self.skip_unheld(unheld, hasher.as_mut())? {
                    let reason = format!(
                        "a record has {} bytes by its length, but no record begins after it: records within it may be missing",
                        held as u64 + unheld
                    );
                    sink.skips
                        .push(SkippedPart::unreadable(self.source, offset, reason));
                    self.is_told = true;
                }
                if let Some(hasher) = hasher {
                    sink.set_long_hash(hasher.finish());
                }
                Ok(())
            }
            ArchiveBlock::Invalid(reason, next) => {
                let (from, border) = (self.feed.offset(), self.feed.boundary_from(1));
                match next {
                    Some(next) => self.feed.advance(next),
                    None => self.resync()?,
                }
                // Where a head comes later than the length says, other records may have begun.
                let most = head.length.as_ref().map_or(u64::MAX, |&length| length);
                let passed = self.feed.offset() - from;
                let is_one = !self.feed.rest().is_empty()
                    && (passed <= most.saturating_add(MIN_RECORD_BYTES)
                        || border.is_some_and(|border| border as u64 == passed));
                let kind = match is_one {
                    true => BadRecordKind::Broken,
                    false => BadRecordKind::BrokenRun,
                };
                sink.bad(offset, kind, reason);
                self.is_told = true;
                Ok(())
            }
            // The skip of the gap reports it.
            ArchiveBlock::Damaged => {
                self.feed.advance(self.feed.rest().len());
                Ok(())
            }
        }
    }

    /// Reads the block of this length, after a head in this member, and checks that it ends where it should.
    fn block(&mut self, length: u64, member: u64) -> Result<ArchiveBlock, ReadError> {
        let held = usize::try_from(length).unwrap_or(usize::MAX).min(self.hold);
        let there = self.fill_block_window(held)?;
        // A member that begins with a head is stronger evidence than a length.
        let border = match held > 0 && self.feed.member != member {
            true if begins(self.source.format, self.feed.rest()) == Some(true) => Some(0),
            _ => self.boundary_with_header(held),
        };
        if let Some(border) = border {
            return Ok(ArchiveBlock::Invalid(
                format!("its length is {length}, but the next record begins after {border} bytes"),
                Some(border),
            ));
        }
        // The data ends, or is damaged, within the block.
        if !there {
            let next = self.next_head_here()?;
            if next.is_none() && self.feed.is_before_gap() {
                return Ok(ArchiveBlock::Damaged);
            }
            let end = next.unwrap_or(self.feed.rest().len());
            return Ok(ArchiveBlock::Invalid(
                format!("its length is {length}, but it ends after {end} bytes"),
                next,
            ));
        }
        if length > held as u64 {
            let unheld = length - held as u64;
            // Whether the rest ends correctly cannot be known without holding it. But its existence can be checked, and `skip_unheld` stops where
            // another member begins with a record, and tells whether one follows.
            if !self.exceeds_file(length) {
                return Ok(ArchiveBlock::Valid(held, unheld));
            }
            let reason = format!("its length is {length}, more than the file holds");
            return Ok(ArchiveBlock::Invalid(reason, self.next_head_here()?));
        }
        // The price of not trusting lengths: the head of the next record is read before this record is returned.
        if self.is_followed_by_header(held)? {
            return Ok(match self.is_altered(held, member) {
                true => ArchiveBlock::Damaged,
                false => ArchiveBlock::Valid(held, 0),
            });
        }
        let reason = format!("its length is {length}, but no record begins after it");
        Ok(ArchiveBlock::Invalid(reason, self.next_head_here()?))
    }

    /// Reads until `n` bytes are available, or another record begins before that. Returns false if the data ends first.
    fn fill_block_window(&mut self, n: usize) -> Result<bool, ReadError> {
        let mut looked = 0;
        while self.feed.rest().len() < n {
            // A length that is gigabytes too large must not swallow the records that follow; the start of each member tells. Do not check after every
            // byte: each time, a possible start of a head would be parsed again.
            let there = self.feed.rest().len();
            if there - looked >= head::overlap(self.source.format) {
                looked = there;
                if self.boundary_with_header(n).is_some() {
                    return Ok(true);
                }
            }
            if !self.feed.read_more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the distance to a member within the next `n` bytes that begins with a head.
    fn boundary_with_header(&mut self, n: usize) -> Option<usize> {
        let format = self.source.format;
        self.feed.boundary_within(n, |bytes| begins(format, bytes))
    }

    /// Returns true if an uncompressed block of this length reaches beyond the end of the file.
    fn exceeds_file(&self, length: u64) -> bool {
        self.source.compression == Compression::None
            // Without compression, offsets are those of the file. With compression, the remaining length is unknown.
            && length > self.source.bytes.saturating_sub(self.feed.offset())
    }

    /// Returns true if line ends and a head, or nothing, follow the next `held` bytes.
    fn is_followed_by_header(&mut self, held: usize) -> Result<bool, ReadError> {
        let mut blank = held;
        loop {
            let more = self.feed.fill_window(blank + 1)?;
            match self.feed.rest().get(blank) {
                // Line ends stay in memory until the block is passed, so their number is limited; the rest of them are passed like all between
                // records.
                Some(b'\r' | b'\n') if blank - held >= MAX_BLANK_BYTES => return Ok(true),
                Some(b'\r' | b'\n') => blank += 1,
                // A block may be the last thing in the file. Others are followed by two CRLF (WARC 1.1, section 4), but any line ends are accepted.
                None if !more => return Ok(true),
                _ => break,
            }
        }
        // Where a member begins, the previous record has ended.
        if self.feed.boundary_from(held).is_some_and(|at| at <= blank) {
            return Ok(true);
        }
        loop {
            match head::begin(self.source.format, &self.feed.rest()[blank..]) {
                HeaderMatch::Head(_) | HeaderMatch::Broken(_) => return Ok(true),
                // The data after the block is damaged. The block is complete nevertheless if the end of a record directly follows it.
                HeaderMatch::None => return Ok(self.is_separated(held, blank)),
                // The file, or its readable part, ends within the next head. The block before it is complete nevertheless.
                HeaderMatch::Part if !self.feed.read_more()? => return Ok(true),
                HeaderMatch::Part => {}
            }
        }
    }

    /// Returns true if the block of `held` bytes ends a member that fails its checksum and contains no other record. In a member of several records,
    /// nobody knows which of them is wrong.
    fn is_altered(&self, held: usize, member: u64) -> bool {
        let is_alone = self.last_member == Some((member, false));
        let mut rest = self.feed.rest()[held..].iter();
        is_alone && self.feed.is_altered() && rest.all(|byte| matches!(byte, b'\r' | b'\n'))
    }

    /// Returns true if the bytes from `from` to `to` are the separator that a writer puts after a block.
    fn is_separated(&self, from: usize, to: usize) -> bool {
        let blank = &self.feed.rest()[from..to];
        match self.source.format {
            Format::Arc => blank.contains(&b'\n'),
            _ => blank.starts_with(b"\r\n\r\n"),
        }
    }

    /// Passes the part of a block that is not held, adding it to the hash of its text. Returns true if it ends where a block may end, or in
    /// damage.
    fn skip_unheld(
        &mut self,
        mut bytes: u64,
        mut hasher: Option<&mut LongHasher>,
    ) -> Result<bool, ReadError> {
        if bytes == 0 {
            return Ok(true);
        }
        while bytes > 0 {
            if self.feed.rest().is_empty() && !self.feed.read_more()? {
                return Ok(self.feed.is_before_gap());
            }
            // Steps end at borders, because that is where a wrong length is noticed.
            let here = self.feed.boundary_from(1);
            let most = here.unwrap_or(usize::MAX).min(self.feed.rest().len());
            let passed = usize::try_from(bytes).unwrap_or(usize::MAX).min(most);
            if let Some(hasher) = &mut hasher {
                hasher.update(&self.feed.rest()[..passed]);
            }
            self.feed.advance(passed);
            bytes -= passed as u64;
            // The next record has begun: the length was too large.
            if Some(passed) == here && begins(self.source.format, self.feed.rest()) == Some(true) {
                return Ok(true);
            }
        }
        self.is_followed_by_header(0)
    }
}

/// Returns whether a record begins with these bytes, or `None` if there are too few.
fn begins(format: Format, bytes: &[u8]) -> Option<bool> {
    match format {
        Format::Arc => match head::begin(Format::Arc, bytes) {
            HeaderMatch::Head(_) => Some(true),
            HeaderMatch::Part => None,
            HeaderMatch::Broken(_) | HeaderMatch::None => Some(false),
        },
        // All of `WARC/` and a digit: the few bytes after a border count as a head only if that is certain.
        _ => match head::begins_warc(bytes) {
            true if bytes.len() < 6 => None,
            begins => Some(begins),
        },
    }
}

impl RowReader for ArchiveReader<'_> {
    fn fill(&mut self, sink: &mut RowSink<'_>) -> Result<bool, ReadError> {
        while !sink.is_full() {
            if !self.step(sink)? {
                sink.skips.extend(self.gap.take());
                let name = self.source.name();
                // Counts by kind are reported once, at the end of the source: their number must not depend on chunks.
                sink.skips.extend(self.notes.drain(&name));
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn disk_bytes(&self) -> u64 {
        self.feed.disk_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::RowState;
    use crate::source::Inputs;

    /// Reads an archive to its end, calling `look` with the reader after each step. Returns for each record whether it is good.
    fn read_all(archive: &str, look: impl Fn(&ArchiveReader<'_>)) -> Vec<bool> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.warc");
        std::fs::write(&path, archive).unwrap();
        let options = InputOptions::default();
        let inputs = Inputs::discover(&[path.into()], &options, folder.path()).unwrap();
        let mut reader = ArchiveReader::open(&inputs.sources[0], &options).unwrap();
        let mut sink = RowSink {
            bytes: &mut Vec::new(),
            rows: Vec::new(),
            skips: &mut Vec::new(),
            attached: &mut 0,
            enough: usize::MAX,
        };
        while reader.step(&mut sink).unwrap() {
            look(&reader);
        }
        let rows = sink.rows.iter();
        rows.map(|row| row.state == RowState::Good).collect()
    }

    const HEAD: &str =
        "/1.0\r\nWARC-Type: resource\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\ntext";

    #[test]
    fn a_damaged_head_took_the_record_before_it_along() {
        let record = |name: &str| format!("{name}{HEAD}\r\n\r\n");
        let archive = ["WARC", "WARX", "WARC"].map(record).concat();
        assert_eq!(read_all(&archive, |_| {}), [true, false, true]);
    }

    #[test]
    fn line_feeds_behind_a_record_were_all_held() {
        let head = format!("WARC{HEAD}");
        let archive = [&head, &*"\n".repeat(8 << 20), &head].concat();
        let held = |reader: &ArchiveReader<'_>| assert!(reader.feed.rest().len() < 1 << 20);
        assert_eq!(read_all(&archive, held), [true, true]);
    }
}
