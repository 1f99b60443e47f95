//! A window over a decompressed archive that tracks where members begin and where bytes are lost.

use std::collections::VecDeque;

use crate::error::ReadError;
use crate::member::{MemberDecoder, MemberOutput};
use crate::source::Source;

/// Bytes requested from the decoder at once.
const STEP_BYTES: usize = 32 << 10;

/// The window is compacted once this many bytes have been passed.
const SLACK_BYTES: usize = 1 << 20;

/// The decompressed bytes from the reading position on, as far as they have been read.
pub(super) struct MemberReader<'a> {
    members: MemberDecoder<'a>,
    window: Vec<u8>,
    at: usize,
    /// Offset of the window in the decompressed source.
    base: u64,
    /// Offset of each member that begins ahead: in the window, and in the file.
    borders: VecDeque<(usize, u64)>,
    /// Number of members at the front of `borders` that are known not to begin a record, and are not checked again.
    refused: usize,
    /// Offset in the file of the member at the reading position.
    pub(super) member: u64,
    gap: Option<String>,
    /// True if the member before the gap fails its checksum, so any of its bytes may be wrong.
    is_altered: bool,
    ended: bool,
}

impl<'a> MemberReader<'a> {
    pub(super) fn open(source: &'a Source) -> Result<MemberReader<'a>, ReadError> {
        Ok(MemberReader {
            members: MemberDecoder::open(source)?,
            window: Vec::new(),
            at: 0,
            base: 0,
            borders: VecDeque::new(),
            refused: 0,
            member: 0,
            gap: None,
            is_altered: false,
            ended: false,
        })
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.members.disk_bytes()
    }

    /// Returns the bytes from the reading position on.
    pub(super) fn rest(&self) -> &[u8] {
        &self.window[self.at..]
    }

    /// Returns the reading position in the decompressed source.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Reads until `n` bytes are available, or until a gap or the end. Returns true if they are available.
    pub(super) fn fill_window(&mut self, n: usize) -> Result<bool, ReadError> {
        while self.rest().len() < n {
            if !self.read_more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads one step further. Returns false at a gap or the end.
    pub(super) fn read_more(&mut self) -> Result<bool, ReadError> {
        if self.ended || self.gap.is_some() {
            return Ok(false);
        }
        // At least half of the window has been passed, so moving the rest costs no more than reading it did.
        if self.at >= SLACK_BYTES && self.at * 2 >= self.window.len() {
            self.give_back();
        }
        let before = self.window.len();
        match self.members.append(&mut self.window, STEP_BYTES)? {
            MemberOutput::More => {}
            // The border is the old end of the window: a member begins between two steps of the decoder, never within one.
            MemberOutput::Member(at) => self.borders.push_back((before, at)),
            MemberOutput::Gap(reason) => (self.gap, self.is_altered) = (Some(reason), false),
            MemberOutput::Altered(reason) => (self.gap, self.is_altered) = (Some(reason), true),
            MemberOutput::End => self.ended = true,
        }
        // If a border is at the reading position, settle it now, so that `borders` are all ahead and `member` is the member of the next byte.
        self.settle();
        Ok(self.window.len() > before)
    }

    fn give_back(&mut self) {
        self.window.drain(..self.at);
        self.base += self.at as u64;
        // `settle` removed the borders up to `at`, so none becomes negative.
        for (border, _) in &mut self.borders {
            *border -= self.at;
        }
        self.at = 0;
    }

    /// Moves the reading position over `n` bytes, which must be in the window.
    pub(super) fn advance(&mut self, n: usize) {
        self.at += n;
        debug_assert!(self.at <= self.window.len());
        self.settle();
    }

    /// Updates `member` for the borders at or before the reading position, and removes them.
    fn settle(&mut self) {
        while let Some(&(border, member)) = self.borders.front() {
            if border > self.at {
                break;
            }
            self.member = member;
            self.borders.pop_front();
            self.refused = self.refused.saturating_sub(1);
        }
    }

    /// Returns the distance to the first member that begins at least `from` bytes after the reading position.
    pub(super) fn boundary_from(&self, from: usize) -> Option<usize> {
        let before = |&(border, _): &(usize, u64)| border - self.at < from;
        let found = self.borders.get(self.borders.partition_point(before));
        found.map(|(border, _)| border - self.at)
    }

    /// Returns the distance to the first member within the next `n` bytes for which `begins` returns true. `begins` returns `None` if the bytes do
    /// not suffice to decide.
    ///
    /// Members can be one byte each, and there can be millions: a refused member is not checked again, otherwise the time would be quadratic.
    pub(super) fn boundary_within(
        &mut self,
        n: usize,
        begins: impl Fn(&[u8]) -> Option<bool>,
    ) -> Option<usize> {
        for index in self.refused..self.borders.len() {
            let border = self.borders[index].0;
            if border - self.at >= n {
                break;
            }
            match begins(&self.window[border..]) {
                Some(true) => return Some(border - self.at),
                Some(false) if index == self.refused => self.refused += 1,
                _ => {}
            }
        }
        None
    }

    /// Returns true if the bytes in the window are the last ones before a gap.
    pub(super) fn is_before_gap(&self) -> bool {
        self.gap.is_some()
    }

    /// Returns true if the bytes in the window are the last ones of a member that fails its checksum.
    pub(super) fn is_altered(&self) -> bool {
        self.is_before_gap() && self.is_altered && self.borders.is_empty()
    }

    /// Drops the bytes in the window and continues after the gap, if one stopped the reading. Returns the reason of the gap.
    pub(super) fn skip_gap(&mut self) -> Option<String> {
        let reason = self.gap.take()?;
        // Bytes before the gap cannot be completed by those after it.
        self.advance(self.rest().len());
        Some(reason)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;

    use super::*;
    use crate::options::InputOptions;
    use crate::source::Inputs;

    #[test]
    fn every_member_was_looked_at_again_with_each_that_followed() {
        let member = |byte: u8| {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&[byte]).unwrap();
            encoder.finish().unwrap()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.warc.gz");
        std::fs::write(&path, [member(b'x').repeat(1000), member(b'y')].concat()).unwrap();
        let options = InputOptions::default();
        let inputs = Inputs::discover(&[path.into()], &options, folder.path()).unwrap();
        let mut reader = MemberReader::open(&inputs.sources[0]).unwrap();
        let looks = Cell::new(0);
        let begins = |bytes: &[u8]| {
            looks.set(looks.get() + 1);
            (bytes.len() > 3 || bytes[0] == b'y').then_some(bytes[0] == b'y')
        };
        while reader.read_more().unwrap() {
            reader.boundary_within(usize::MAX, begins);
        }
        // Up to four times each: with one, two or three bytes available it is not certain.
        assert!(looks.get() <= 4 * 1001, "{}", looks.get());
        assert_eq!(reader.boundary_within(usize::MAX, begins), Some(1000));
        assert_eq!(reader.boundary_within(1000, begins), None);
        assert_eq!(reader.boundary_from(7), Some(7));
        assert_eq!(reader.boundary_from(1001), None);
        reader.advance(900);
        assert_eq!(reader.boundary_within(usize::MAX, begins), Some(100));
    }
}
