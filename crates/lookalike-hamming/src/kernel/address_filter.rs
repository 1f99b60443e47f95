//! Marks of addresses in words of 64 bits, and lookups of many addresses.
//!
//! An address that is looked up is an *item*: the position of its mark is in the upper forty bits, and the lower 24 bits are free for its owner, for
//! example for the position of a code.

/// Number of bits of an item that belong to its owner.
pub(in super::super) const PAYLOAD_BITS: u32 = 24;
const PAYLOAD: u64 = (1 << PAYLOAD_BITS) - 1;

/// Kind of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum FilterKind {
    /// Each address has a bit of its own.
    Bitmap,
    /// A hash chooses a word and three of its bits: fewer words than addresses, but false positives.
    BlockedBloom,
}

/// Knuth's multiplicative hash: the golden ratio's fraction.
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the number of the stretch of an address of `address_bits` bits, among 2^`digit_bits` stretches, and the address as an item.
#[inline(always)]
pub(in super::super) fn filter_item<const BLOOM: bool>(
    address: u64,
    address_bits: u32,
    digit_bits: u32,
) -> (usize, u64) {
    if BLOOM {
        let hash = address.wrapping_mul(GOLDEN_RATIO);
        // Two shifts: if all words are one stretch, a digit has no bits, and a single shift by 64 would overflow.
        let digit = hash >> 1 >> (63 - digit_bits);
        // The digit is shifted out, so that word and bits come from bits of the hash that the stretch does not determine.
        (digit as usize, hash << digit_bits & !PAYLOAD)
    } else {
        let digit = address >> (address_bits - digit_bits);
        // An address has at most 32 bits (`FilterShape`), so none is lost. Those of the digit stay on top, and are masked off wherever the number of
        // a word is used.
        (digit as usize, address << PAYLOAD_BITS)
    }
}

/// Returns the number of an item's word, below surplus bits that the caller masks off.
#[inline(always)]
fn word_of<const BLOOM: bool>(item: u64) -> usize {
    (item >> word_shift::<BLOOM>()) as usize
}

#[inline(always)]
const fn word_shift<const BLOOM: bool>() -> u32 {
    if BLOOM {
        // The numbers of its three bits, six bits each, are below the number of the word.
        PAYLOAD_BITS + 18
    } else {
        PAYLOAD_BITS + 6
    }
}

/// Returns the bits that an item has in its word.
#[inline(always)]
fn pattern<const BLOOM: bool>(item: u64) -> u64 {
    let bit = |number: u32| 1 << (item >> (PAYLOAD_BITS + 6 * number) & 63);
    if BLOOM {
        // Two of them may be the same bit: such an item is a false positive a little more often, but never missed.
        bit(0) | bit(1) | bit(2)
    } else {
        bit(0)
    }
}

/// Marks items in the words of their stretch, whose number is a power of two.
pub(in super::super) fn insert<const BLOOM: bool>(words: &mut [u64], items: &[u64]) {
    let last = words.len() - 1;
    for &item in items {
        // One read and one write of one word for all three bits, which is why they are in one word.
        words[word_of::<BLOOM>(item) & last] |= pattern::<BLOOM>(item);
    }
}

/// Writes the owner's bits of the items that are marked to the front of `room`, which is as long as `items`, and returns their number.
#[inline(always)]
pub(super) fn select_one_by_one<const BLOOM: bool>(
    words: &[u64],
    items: &[u64],
    room: &mut [u32],
) -> usize {
    let last = words.len() - 1;
    let mut kept = 0;
    for &item in items {
        let word = words[word_of::<BLOOM>(item) & last];
        let at = |number: u32| word >> (item >> (PAYLOAD_BITS + 6 * number) & 63);
        let found = if BLOOM { at(0) & at(1) & at(2) } else { at(0) };
        // Written whether it is kept or not: a branch on a mark, which is as good as random, would be mispredicted.
        room[kept] = (item & PAYLOAD) as u32;
        kept += (found & 1) as usize;
    }
    kept
}
