//! ASCII text to lower-cased bytes and word bounds, 64 bytes at a time.
//!
//! A block of 64 bytes becomes masks with one bit for each byte (letters, digits, ...). Shifts and ANDs of masks give the bytes that belong to words,
//! and the bounds of words are the positions where this mask changes. Only the making of the masks differs between the levels of instructions.

mod classes;

use super::versions;
use classes::{Classes, Classify};

pub(super) const BLOCK: usize = 64;

/// Rules for words of ASCII.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokeniserRules {
    /// True if the bytes are lower-cased.
    pub lower: bool,
    /// True if words are joined over `.`, `:`, `'`, `,` and `;` as in UAX #29.
    pub join: bool,
}

/// The free part of a batch, for a kernel to fill.
pub(crate) struct WordBatchRoom<'a> {
    /// The bytes that were asked for, and 64 more.
    pub bytes: &'a mut [u8],
    /// Position of `bytes` within the batch, which is added to the bounds.
    pub base: u32,
    /// A slot for one bound per byte, and 64 more.
    pub bounds: &'a mut [u32],
}

/// Result of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Position of the first byte that is not ASCII, or the length of the text.
    pub len: usize,
    /// Number of bounds that were written, two per word.
    pub bounds: usize,
    /// True if any word begins with `_`.
    pub underscore: bool,
}

versions! {
    /// Copies the ASCII bytes at the front of `text` to the room, lower-cased if the rules say so, and writes the bounds of the words among them. A
    /// word that reaches the first non-ASCII byte ends there.
    pub(crate) fn scan(text: &[u8], rules: TokeniserRules, room: WordBatchRoom<'_>) -> Scan {
        portable: scan_body::<classes::Portable>,
        neon: scan_body::<classes::Neon>,
        avx2: scan_body::<classes::Avx2>,
        avx512: scan_body::<classes::Avx512>,
    }
}

#[inline(always)]
fn scan_body<C: Classify>(text: &[u8], rules: TokeniserRules, room: WordBatchRoom<'_>) -> Scan {
    // A constant inside the loop, so that the masks for joining are only made if words are joined.
    match rules.join {
        true => scan_blocks::<C, true>(text, rules.lower, room),
        false => scan_blocks::<C, false>(text, rules.lower, room),
    }
}

#[inline(always)]
fn scan_blocks<C: Classify, const JOIN: bool>(
    text: &[u8],
    lower: bool,
    mut room: WordBatchRoom<'_>,
) -> Scan {
    let mut state = TokeniserState::default();
    let base = room.base;
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    let mut at = 0;
    for block in blocks {
        let classes = C::classify(block, lower, copy_at(room.bytes, at));
        // Joining at the end of a block depends on the byte after it.
        let next = text.get(at + BLOCK).copied().unwrap_or(b' ');
        state.block::<C, JOIN>(&classes, next, base + at as u32, room.bounds);
        // Checked after the block is done, because its words before that byte count.
        if classes.other != 0 {
            return state.finish(at + classes.other.trailing_zeros() as usize, &mut room);
        }
        at += BLOCK;
    }
    // Blanks after the text end its last word.
    let mut block = [b' '; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    let classes = C::classify(&block, lower, copy_at(room.bytes, at));
    state.block::<C, JOIN>(&classes, b' ', base + at as u32, room.bounds);
    if classes.other != 0 {
        return state.finish(at + classes.other.trailing_zeros() as usize, &mut room);
    }
    state.finish(text.len(), &mut room)
}

/// Returns the destination of the block's copy; rooms are a block longer than the text.
#[inline(always)]
fn copy_at(bytes: &mut [u8], at: usize) -> &mut [u8; BLOCK] {
    bytes[at..]
        .first_chunk_mut()
        .expect("the room is a block longer than the text")
}

/// State carried from one block to the next.
#[derive(Default)]
struct TokeniserState {
    /// Bit 0 of these is set if the last byte was a letter, a digit, or in a word.
    letter: u64,
    digit: u64,
    word: u64,
    underscore: u64,
    bounds: usize,
}

impl TokeniserState {
    /// Writes the bounds of one block, which begins at `base` and is followed by the byte `next`.
    #[inline(always)]
    fn block<C: Classify, const JOIN: bool>(
        &mut self,
        classes: &Classes,
        next: u8,
        base: u32,
        out: &mut [u32],
    ) {
        let Classes {
            letter,
            digit,
            underscore,
            other,
            ..
        } = *classes;
        let mut word = letter | digit | underscore;
        if JOIN {
            // At most one joining byte between two letters, as in UAX #29: `a..b` is two words, because neither dot has letters on both sides.
            word |= self.joins(classes, next);
        }
        // Nothing from the first non-ASCII byte on is a word here. This mask is all ones below the lowest set bit, or all ones if there is none.
        word &= other.wrapping_sub(1) & !other;
        // A word begins or ends where the mask differs from itself shifted by a byte, so bounds alternate.
        let changes = word ^ (word << 1 | self.word);
        self.word = word >> 63;
        // A change that is also in the mask is the first byte of a word.
        self.underscore |= changes & word & underscore;
        let out = out[self.bounds..]
            .first_chunk_mut()
            .expect("there is room for a block");
        // Writes a whole block, whatever the number of bounds: rooms have a block more of bounds than of bytes.
        C::positions(changes, base, out);
        self.bounds += changes.count_ones() as usize;
    }

    /// Rules WB6, WB7, WB11 and WB12 of UAX #29: letters join over one of `.':`, digits over one
    /// of `.',;`.
    #[inline(always)]
    fn joins(&mut self, classes: &Classes, next: u8) -> u64 {
        let Classes { letter, digit, .. } = *classes;
        let next_letter = u64::from(next.is_ascii_alphabetic()) << 63;
        let next_digit = u64::from(next.is_ascii_digit()) << 63;
        // Bytes between two letters: the letters shifted up by one and the letters shifted down by one, across the ends of blocks.
        let letters = (letter << 1 | self.letter) & (letter >> 1 | next_letter);
        let digits = (digit << 1 | self.digit) & (digit >> 1 | next_digit);
        self.letter = letter >> 63;
        self.digit = digit >> 63;
        letters & classes.joins_letters | digits & classes.joins_digits
    }

    /// Ends a word that reaches the end of the scanned text.
    #[inline(always)]
    fn finish(mut self, len: usize, room: &mut WordBatchRoom<'_>) -> Scan {
        // Bounds alternate: an odd number leaves a word open.
        if self.bounds % 2 == 1 {
            room.bounds[self.bounds] = room.base + len as u32;
            self.bounds += 1;
        }
        Scan {
            len,
            bounds: self.bounds,
            underscore: self.underscore != 0,
        }
    }
}

#[cfg(test)]
mod tests;
