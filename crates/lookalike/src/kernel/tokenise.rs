//! ASCII text to lower-cased bytes and word bounds, 64 bytes at a time.
//!
//! A block of 64 bytes becomes masks of one bit a byte (letters, digits, ...); what a word is
//! becomes shifts and ands of masks; the bounds of words are the places where the word mask
//! changes. Only the making of masks differs between the levels of instructions.

mod classes;

use super::versions;
use classes::{Classes, Classify};

pub(super) const BLOCK: usize = 64;

/// Rule for words of ASCII.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokeniserRules {
    /// Lower-case the bytes.
    pub lower: bool,
    /// Join words over `.`, `:`, `'`, `,` and `;` as UAX #29 does.
    pub join: bool,
}

/// The free part of a batch, for a kernel to fill.
pub(crate) struct WordBatchRoom<'a> {
    /// As many bytes as were asked for, and 64 more.
    pub bytes: &'a mut [u8],
    /// Position of `bytes` within the batch: bounds are counted from there.
    pub base: u32,
    /// A bound for each byte, and 64 more.
    pub bounds: &'a mut [u32],
}

/// Progress of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Position of the first byte that is not ASCII, or the length of the text.
    pub len: usize,
    /// Number of bounds that were written, two a word.
    pub bounds: usize,
    /// True if any word begins with `_`.
    pub underscore: bool,
}

versions! {
    /// Copies the ASCII bytes at the front of `text` to the room, lower-cased if wished, and writes
    /// the bounds of the words among them. A word that reaches the first other byte ends there.
    pub(crate) fn scan(text: &[u8], rules: TokeniserRules, room: WordBatchRoom<'_>) -> Scan {
        portable: scan_body::<classes::Portable>,
        neon: scan_body::<classes::Neon>,
        avx2: scan_body::<classes::Avx2>,
        avx512: scan_body::<classes::Avx512>,
    }
}

#[inline(always)]
fn scan_body<C: Classify>(text: &[u8], rules: TokeniserRules, room: WordBatchRoom<'_>) -> Scan {
    // A constant inside the loop: the masks for joining are not made where nothing joins.
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
        // What joins at the end of a block depends on the byte behind it.
        let next = text.get(at + BLOCK).copied().unwrap_or(b' ');
        state.block::<C, JOIN>(&classes, next, base + at as u32, room.bounds);
        // Looked at after the block is done, whose words in front of that byte count.
        if classes.other != 0 {
            return state.finish(at + classes.other.trailing_zeros() as usize, &mut room);
        }
        at += BLOCK;
    }
    // Blanks behind the text end its last word.
    let mut block = [b' '; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    let classes = C::classify(&block, lower, copy_at(room.bytes, at));
    state.block::<C, JOIN>(&classes, b' ', base + at as u32, room.bounds);
    if classes.other != 0 {
        return state.finish(at + classes.other.trailing_zeros() as usize, &mut room);
    }
    state.finish(text.len(), &mut room)
}

/// The place of the block's copy; rooms are a block longer than the text.
#[inline(always)]
fn copy_at(bytes: &mut [u8], at: usize) -> &mut [u8; BLOCK] {
    bytes[at..]
        .first_chunk_mut()
        .expect("the room is a block longer than the text")
}

/// State carried from one block to the next.
#[derive(Default)]
struct TokeniserState {
    /// True if the last byte was a letter, a digit, in a word: bit 0.
    letter: u64,
    digit: u64,
    word: u64,
    underscore: u64,
    bounds: usize,
}

impl TokeniserState {
    /// Writes the bounds of one block, which lies at `base` and is followed by the byte `next`.
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
            // One joining byte at most between two letters, as UAX #29 has it: `a..b` is two words, since
            // neither dot has letters on both sides.
            word |= self.joins(classes, next);
        }
        // Nothing at or behind a byte that is not ASCII is a word here.
        // All ones below the lowest set bit, all ones if there is none.
        word &= other.wrapping_sub(1) & !other;
        // Where the mask differs from itself, moved by a byte, a word begins or ends: bounds alternate.
        let changes = word ^ (word << 1 | self.word);
        self.word = word >> 63;
        // A change that is in the mask is the first byte of a word.
        self.underscore |= changes & word & underscore;
        let out = out[self.bounds..]
            .first_chunk_mut()
            .expect("there is room for a block");
        // Written for a whole block whatever there is: rooms have a block of bounds more than bytes.
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
        // Bytes between two letters: the one before moved up, the one behind moved down, over the ends of
        // blocks.
        let letters = (letter << 1 | self.letter) & (letter >> 1 | next_letter);
        let digits = (digit << 1 | self.digit) & (digit >> 1 | next_digit);
        self.letter = letter >> 63;
        self.digit = digit >> 63;
        letters & classes.joins_letters | digits & classes.joins_digits
    }

    /// Ends a word that reaches the end of what was scanned.
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
