//! A window over a decompressed archive that knows where members begin and where bytes are lost.

use std::collections::VecDeque;

use crate::error::ReadError;
use crate::member::{MemberDecoder, MemberOutput};
use crate::source::Source;

/// Bytes that are asked for at once.
const STEP_BYTES: usize = 32 << 10;

/// Passed bytes are given back once there are this many.
const SLACK_BYTES: usize = 1 << 20;

/// The bytes from the reading position on, as far as they were read.
pub(super) struct MemberReader<'a> {
    members: MemberDecoder<'a>,
    window: Vec<u8>,
    at: usize,
    /// Offset of the window in the decompressed source.
    base: u64,
    /// Offsets of members in the window and in the file.
    borders: VecDeque<(usize, u64)>,
    /// Offset in the file of the member that holds the reading position.
    member: u64,
    gap: Option<String>,
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
            member: 0,
            gap: None,
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

    /// Returns the offset in the file of the member at the reading position.
    pub(super) fn member(&self) -> u64 {
        self.member
    }

    /// Reads until `n` bytes are there, or nothing more follows without a gap. Says whether they
    /// are.
    pub(super) fn need(&mut self, n: usize) -> Result<bool, ReadError> {
        while self.rest().len() < n {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads on; false at a gap or the end.
    pub(super) fn more(&mut self) -> Result<bool, ReadError> {
        if self.ended || self.gap.is_some() {
            return Ok(false);
        }
        // At least half of the window is behind: moving the rest costs no more than reading it did.
        if self.at >= SLACK_BYTES && self.at * 2 >= self.window.len() {
            self.give_back();
        }
        let before = self.window.len();
        match self.members.append(&mut self.window, STEP_BYTES)? {
            MemberOutput::More => {}
            // The border is where the window ended: a member begins between two steps of the decoder, never
            // within one.
            MemberOutput::Member(at) => self.borders.push_back((before, at)),
            MemberOutput::Gap(reason) => self.gap = Some(reason),
            MemberOutput::End => self.ended = true,
        }
        // A border at the reading position is entered now, so that `borders` are all ahead, and `member` is
        // that of the next byte.
        self.settle();
        Ok(self.window.len() > before)
    }

    fn give_back(&mut self) {
        self.window.drain(..self.at);
        self.base += self.at as u64;
        // Borders before `at` were entered by `settle`, so none can fall below 0.
        for (border, _) in &mut self.borders {
            *border -= self.at;
        }
        self.at = 0;
    }

    /// Moves the reading position over bytes that are there.
    pub(super) fn pass(&mut self, n: usize) {
        self.at += n;
        debug_assert!(self.at <= self.window.len());
        self.settle();
    }

    /// Members that begin at the reading position or before it are entered.
    fn settle(&mut self) {
        while let Some(&(border, member)) = self.borders.front() {
            if border > self.at {
                break;
            }
            self.member = member;
            self.borders.pop_front();
        }
    }

    /// Returns the distances from the reading position to the members that begin after it.
    pub(super) fn borders(&self) -> impl Iterator<Item = usize> + '_ {
        self.borders.iter().map(|(border, _)| border - self.at)
    }

    /// Forgets what is there, and goes on behind the gap if one stopped the reading; says why it
    /// is there.
    pub(super) fn cross_gap(&mut self) -> Option<String> {
        let reason = self.gap.take()?;
        // What stands before the gap cannot be completed by what follows it.
        self.pass(self.rest().len());
        Some(reason)
    }
}
