//! Web archives: records of WARC (0.17 to 1.1, with WET and WAT) and ARC as rows.
//!
//! [`MemberReader`](member_reader::MemberReader) is the window over the decompressed bytes, [`head`] parses what stands
//! before a record, [`http`] undoes the encodings of a response, [`page`] makes a row of it, [`wat`] of metadata. Here
//! records are told from each other, also where lengths lie: a length is believed only when the
//! next record begins behind it; otherwise the record is bad, and reading goes on at the next head
//! that is found. Nothing is allocated by what a head says.
//!
//! Which records are documents: responses of status 2xx, resources and conversions, if they hold
//! text or PDF. All others are counted by kind.

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
use crate::record::BadKind;
use crate::row::{RowReader, RowSink, SkipNotes};
use crate::source::{SkipKind, SkippedPart, Source};
use head::{ArchiveHead, HeadBegin};
use member_reader::MemberReader;
use page::ArchivePages;

/// Line ends behind a block that are looked over for the next head; a block that more of them follow has ended.
const MOST_BLANK_BYTES: usize = 64 << 10;

/// Held of a block beyond the longest document: room for the head of the response.
const ROOM_BYTES: usize = 64 << 10;

/// An archive that is being read.
pub(crate) struct ArchiveReader<'a> {
    source: &'a Source,
    feed: MemberReader<'a>,
    pages: ArchivePages,
    notes: SkipNotes,
    /// Most bytes of a block that are held.
    hold: usize,
    /// Damage behind which no record was found yet.
    gap: Option<SkippedPart>,
    /// True if bytes that belong to no record follow from damage that was reported already.
    is_told: bool,
    /// The member of the record before, and whether it was told that it holds several.
    last_member: Option<(u64, bool)>,
}

/// The result of reading a block.
enum ArchiveBlock {
    /// All of it: this many bytes are there, and this many more follow that are not held.
    Sound(usize, u64),
    /// Its length is wrong. The next head begins this far on, if it was found.
    Wrong(String, Option<usize>),
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

    /// Reads one record, or crosses what lies between two; false at the end.
    fn step(&mut self, sink: &mut RowSink<'_>) -> Result<bool, ReadError> {
        self.pass_blank_lines()?;
        if self.feed.rest().is_empty() {
            return Ok(self.cross_gap());
        }
        let (offset, member) = (self.feed.offset(), self.feed.member());
        match self.begin()? {
            HeadBegin::Head(parsed) => {
                let (head, length) = *parsed;
                sink.skips.extend(self.gap.take());
                self.feed.pass(length);
                self.is_told = false;
                self.note_member(offset, member);
                self.record(&head, offset, member, sink)?;
            }
            HeadBegin::Part => {
                // `begin` stops at a part only when no more bytes follow without a gap.
                self.tell(sink, offset, "ends within its header".to_owned());
                self.feed.pass(self.feed.rest().len());
            }
            HeadBegin::None => {
                self.tell(sink, offset, "no record begins here".to_owned());
                self.resync()?;
            }
        }
        Ok(true)
    }

    /// Counts members that hold more than one record, once each.
    fn note_member(&mut self, offset: u64, member: u64) {
        let is_packed = matches!(
            self.source.compression,
            Compression::Gzip | Compression::Zstd
        );
        // No member begins at `u64::MAX`: the first record is never a second one.
        let (last, told) = self.last_member.unwrap_or((u64::MAX, false));
        let shared = is_packed && last == member;
        if shared && !told {
            self.notes.add(SkipKind::SharedMember, offset, || {
                "several records are compressed as one member: all are read, but no tool can seek to one of them"
                    .to_owned()
            });
        }
        // Once a member was found to be shared it stays so for its further records, which are not told again.
        self.last_member = Some((member, shared));
    }

    /// A bad record, unless it is the consequence of one that was told before.
    fn tell(&mut self, sink: &mut RowSink<'_>, offset: u64, reason: String) {
        if !std::mem::replace(&mut self.is_told, true) {
            sink.bad(offset, BadKind::Broken, reason);
        }
    }

    fn pass_blank_lines(&mut self) -> Result<(), ReadError> {
        loop {
            let rest = self.feed.rest();
            let blank = rest.iter().take_while(|b| matches!(b, b'\r' | b'\n'));
            let blank = blank.count();
            let all = blank == rest.len();
            self.feed.pass(blank);
            if !all || !self.feed.more()? {
                return Ok(());
            }
        }
    }

    /// Goes on behind damaged data; false if there is none, which is the end.
    fn cross_gap(&mut self) -> bool {
        let offset = self.feed.offset();
        let Some(reason) = self.feed.cross_gap() else {
            return false;
        };
        // Bytes behind a gap are in the middle of a record nearly always; the skip tells of them, and a bad
        // record in addition would count the same loss twice.
        self.is_told = true;
        // One entry for damage behind damage: a file of millions of broken members must not cost the memory of
        // as many reasons.
        match &mut self.gap {
            Some(gap) => gap.count += 1,
            None => self.gap = Some(SkippedPart::damaged(self.source, offset, &reason)),
        }
        true
    }

    /// The head at the reading position, with as many bytes as it takes.
    fn begin(&mut self) -> Result<HeadBegin, ReadError> {
        loop {
            let begin = head::begin(self.source.format, self.feed.rest());
            if begin != HeadBegin::Part || !self.feed.more()? {
                return Ok(begin);
            }
        }
    }

    /// Moves to the next head, a gap or the end.
    fn resync(&mut self) -> Result<(), ReadError> {
        loop {
            // From 1 on: what stands at the reading position was refused a moment ago, and would be found for
            // ever.
            if let Some(at) = self.next_head() {
                self.feed.pass(at);
                return Ok(());
            }
            let rest = self.feed.rest().len();
            // The last bytes may be the beginning of a head.
            let passed = rest.saturating_sub(head::overlap(self.source.format));
            self.feed.pass(passed);
            if !self.feed.more()? {
                self.feed.pass(self.feed.rest().len());
                return Ok(());
            }
        }
    }

    /// Finds the next head among the bytes in memory, behind the first of them: in a line or
    /// where a member begins.
    fn next_head(&mut self) -> Option<usize> {
        let in_line = head::find(self.source.format, self.feed.rest());
        // The nearer one of the two. A border needs no line feed in front of it, which compressed records
        // often lack.
        let at_border = self.border_with_head(in_line.unwrap_or(usize::MAX));
        at_border.or(in_line)
    }

    /// The record whose head was just passed.
    fn record(
        &mut self,
        head: &ArchiveHead,
        offset: u64,
        member: u64,
        sink: &mut RowSink<'_>,
    ) -> Result<(), ReadError> {
        let length = match &head.length {
            Ok(length) => *length,
            Err(reason) => {
                sink.bad(offset, BadKind::Broken, reason.clone());
                self.is_told = true;
                return self.resync();
            }
        };
        match self.block(length)? {
            ArchiveBlock::Sound(held, unheld) => {
                let place = page::ArchivePlace { offset, member };
                let body = &self.feed.rest()[..held];
                // The page is made while the body is still held; only then the window moves on.
                let mut hasher =
                    self.pages
                        .add(head, body, unheld > 0, place, &mut self.notes, sink);
                self.feed.pass(held);
                self.pass_unheld(unheld, hasher.as_mut())?;
                if let Some(hasher) = hasher {
                    sink.set_long_hash(hasher.finish());
                }
                Ok(())
            }
            ArchiveBlock::Wrong(reason, next) => {
                sink.bad(offset, BadKind::Broken, reason);
                self.is_told = true;
                match next {
                    Some(next) => self.feed.pass(next),
                    None => self.resync()?,
                }
                Ok(())
            }
        }
    }

    /// Gets the bytes of a block of this length and looks whether it ends where it should.
    fn block(&mut self, length: u64) -> Result<ArchiveBlock, ReadError> {
        let held = usize::try_from(length).unwrap_or(usize::MAX).min(self.hold);
        let there = self.need_block(held)?;
        // A member that begins with a head is surer than a length.
        if let Some(border) = self.border_with_head(held) {
            return Ok(ArchiveBlock::Wrong(
                format!("its length is {length}, but the next record begins after {border} bytes"),
                Some(border),
            ));
        }
        // The data ends, or is damaged, within the block.
        if !there {
            let rest = self.feed.rest().len();
            let next = self.next_head().unwrap_or(rest);
            return Ok(ArchiveBlock::Wrong(
                format!("its length is {length}, but it ends after {next} bytes"),
                Some(next),
            ));
        }
        if length > held as u64 {
            let unheld = length - held as u64;
            // Whether the rest ends well is not known without holding it. What can be known is whether it
            // exists, and `pass_unheld` stops where another record begins.
            if !self.is_beyond_file(length) {
                return Ok(ArchiveBlock::Sound(held, unheld));
            }
            let reason = format!("its length is {length}, more than the file holds");
            return Ok(ArchiveBlock::Wrong(reason, self.next_head()));
        }
        // The price of not trusting lengths: the head of the next record is read before this one is given out.
        if self.ends_well(held)? {
            return Ok(ArchiveBlock::Sound(held, 0));
        }
        let reason = format!("its length is {length}, but no record begins after it");
        Ok(ArchiveBlock::Wrong(reason, self.next_head()))
    }

    /// Reads until `n` bytes are there; stops where another record begins before.
    fn need_block(&mut self, n: usize) -> Result<bool, ReadError> {
        let mut looked = 0;
        while self.feed.rest().len() < n {
            // A length that lies by gigabytes must not swallow the records that follow; each member is its own
            // witness. Not at each byte: what may be a head so far would be looked at again each time.
            let there = self.feed.rest().len();
            if there - looked >= head::overlap(self.source.format) {
                looked = there;
                if self.border_with_head(n).is_some() {
                    return Ok(true);
                }
            }
            if !self.feed.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A member within the next `n` bytes that begins with a record of its own.
    fn border_with_head(&mut self, n: usize) -> Option<usize> {
        let format = self.source.format;
        self.feed.border_of(n, |bytes| begins(format, bytes))
    }

    /// Returns true if an uncompressed block of this length reaches beyond the end of the file.
    fn is_beyond_file(&self, length: u64) -> bool {
        self.source.compression == Compression::None
            // Without compression offsets are those of the file. With it the length that remains is not known.
            && length > self.source.bytes.saturating_sub(self.feed.offset())
    }

    /// Returns true if line feeds and a head, or nothing, follow the next `held` bytes.
    fn ends_well(&mut self, held: usize) -> Result<bool, ReadError> {
        let mut blank = held;
        loop {
            let more = self.feed.need(blank + 1)?;
            match self.feed.rest().get(blank) {
                // They are in memory until the block is passed, so there is a bound; those behind it are passed
                // like all between records.
                Some(b'\r' | b'\n') if blank - held >= MOST_BLANK_BYTES => return Ok(true),
                Some(b'\r' | b'\n') => blank += 1,
                // A block may be the last thing in the file. Others are followed by two CRLF (WARC 1.1, section
                // 4); any line ends do.
                None if !more => return Ok(true),
                _ => break,
            }
        }
        // Where a member begins, the record before it has ended.
        if self.feed.border_from(held).is_some_and(|at| at <= blank) {
            return Ok(true);
        }
        loop {
            match head::begin(self.source.format, &self.feed.rest()[blank..]) {
                HeadBegin::Head(_) => return Ok(true),
                // What follows is damaged. The block is whole nevertheless if what ends a record stands just behind it.
                HeadBegin::None => return Ok(self.is_separated(held, blank)),
                // The file, or what is readable of it, ends within the next head. The block before it is whole
                // nevertheless.
                HeadBegin::Part if !self.feed.more()? => return Ok(true),
                HeadBegin::Part => {}
            }
        }
    }

    /// Returns true if these bytes are what a writer puts behind a block.
    fn is_separated(&self, from: usize, to: usize) -> bool {
        let blank = &self.feed.rest()[from..to];
        match self.source.format {
            Format::Arc => blank.contains(&b'\n'),
            _ => blank.starts_with(b"\r\n\r\n"),
        }
    }

    /// Passes the part of a block that is not held, and adds it to the hash of its text.
    fn pass_unheld(
        &mut self,
        mut bytes: u64,
        mut hasher: Option<&mut LongHasher>,
    ) -> Result<(), ReadError> {
        while bytes > 0 {
            if self.feed.rest().is_empty() && !self.feed.more()? {
                return Ok(());
            }
            // Steps end at borders, since that is where a length that lies is found out.
            let here = self.feed.border_from(1);
            let most = here.unwrap_or(usize::MAX).min(self.feed.rest().len());
            let passed = usize::try_from(bytes).unwrap_or(usize::MAX).min(most);
            if let Some(hasher) = &mut hasher {
                hasher.update(&self.feed.rest()[..passed]);
            }
            self.feed.pass(passed);
            bytes -= passed as u64;
            // The next record has begun: the length was too large.
            if Some(passed) == here && begins(self.source.format, self.feed.rest()) == Some(true) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Tells whether a record begins with these bytes; none if there are too few.
fn begins(format: Format, bytes: &[u8]) -> Option<bool> {
    match format {
        Format::Arc => match head::begin(Format::Arc, bytes) {
            HeadBegin::Head(_) => Some(true),
            HeadBegin::Part => None,
            HeadBegin::None => Some(false),
        },
        // `WARC/` and a digit, all of them: a few bytes behind a border are taken for a head only once it
        // is certain.
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
                // Counts by kind are told once, at the end of the source: their number must not depend on chunks.
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

    /// Reads an archive to its end; `look` is shown the reader after each step. Returns which records are good.
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
