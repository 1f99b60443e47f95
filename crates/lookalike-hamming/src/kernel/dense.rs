//! Buckets as bits: entries of any number of bits back to back, with a unary directory.
//!
//! The directory has, for each bucket in turn, a zero for each of its entries and then a one: the one after n zeros ends a bucket up to whose end
//! there are n entries in all. The number of entries before every 64th bucket is stored separately; with it, a bucket is found by passing over at
//! most 63 ones. This is Elias and Fano's code of the bucket starts, 1 + 1 / load bits per entry and half a bit per bucket (Elias 1974; Fano 1971).

use super::super::code::Integer;
use super::bits::{deposit, low_ones};
use super::probe_set::{EntryRange, ProbeLocations};
use super::ranks::Ranks;

/// Number of buckets between two counts of entries.
pub(in super::super) const GROUP: usize = 64;
/// Number of bytes that may be read beyond the unary directory or the last entry.
pub(in super::super) const PADDING: usize = 24;
/// Number of bits that eight bytes hold from any bit of the first byte on.
pub(super) const WORD_BITS: usize = 57;

/// A table as bits.
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a> {
    /// Number of entries before each 64th bucket, and of all entries.
    pub(in super::super) counts: Ranks<'a>,
    /// A zero for each entry, a one for the end of each bucket.
    pub(in super::super) unary: &'a [u8],
    /// The entries.
    pub(in super::super) entries: &'a [u8],
    /// Bits of an entry.
    pub(in super::super) entry_bits: usize,
}

/// Returns the bits from `bit` on, at least [`WORD_BITS`] of them; all ones beyond the end, which stops every search for a one.
#[inline(always)]
fn word(bytes: &[u8], bit: usize) -> u64 {
    match bytes.get(bit / 8..).and_then(<[u8]>::first_chunk) {
        Some(eight) => u64::from_le_bytes(*eight) >> (bit % 8),
        // Padding follows the last bit, so only a crafted directory with a correct check leads here.
        None => u64::MAX,
    }
}

impl Dense<'_> {
    /// Returns the entries of a bucket. `select` returns the position of the n-th one of a word, counted from zero, or 64 if it has fewer.
    ///
    /// The unary codes of most groups take 128 bits or less, so two words from the beginning of the group on hold the end of the bucket and of the
    /// one before; no branch depends on which of the two words it is.
    #[inline(always)]
    pub(super) fn range_with(&self, bucket: usize, select: impl Fn(u64, u32) -> u32) -> EntryRange {
        let group = bucket / GROUP;
        // Before the group, there are a zero for each entry and a one for each bucket.
        let base = self.counts.get(group) + group * GROUP;
        let nth = (bucket % GROUP) as u32;
        let Some(bytes) = self.unary.get(base / 8..).and_then(<[u8]>::first_chunk) else {
            return self.walk(base, bucket, select);
        };
        // Three words of eight bytes hold 128 bits from any bit of the first byte on: one read, wherever the group begins.
        let (low, high) = two_words(bytes, base % 8);
        // A select instead of a branch: whether the end is in the first or the second word is as good as random.
        let below = low.count_ones();
        let (word, nth, before) = if nth < below {
            (low, nth, 0)
        } else {
            (high, nth - below, 64)
        };
        let end = select(word, nth);
        // A group of more than 64 entries may reach beyond 128 bits.
        if end >= 64 {
            return self.walk(base, bucket, select);
        }
        // The entries are the zeros since the one before: that one is in the same word, or is the last of the first word, or ends the group before. A
        // first word without any counts as 64 leading zeros, which is right, too.
        let earlier = word & low_ones(end as usize);
        let count = if earlier != 0 {
            end + earlier.leading_zeros() - 64
        } else if before > 0 {
            end + low.leading_zeros()
        } else {
            end
        };
        // Zeros before the first bit of the bucket: its position less one for each bucket before.
        let first = base + (before + end - count) as usize - bucket;
        EntryRange {
            first: first as u64,
            count,
        }
    }

    /// Does the same as [`Dense::range_with`], word by word from the unary codes of the group on, which begin at bit `base`.
    #[cold]
    fn walk(&self, base: usize, bucket: usize, select: impl Fn(u64, u32) -> u32) -> EntryRange {
        let kept = low_ones(WORD_BITS);
        let mut bit = base;
        let mut left = (bucket % GROUP) as u32;
        while left > 0 {
            // Each round passes 57 bits. Only buckets of large groups get here, by a call that is out of the way of all others.
            let word = word(self.unary, bit) & kept;
            let ones = word.count_ones();
            // Stops after the last one of the bucket before: at the first bit of this one.
            if ones >= left {
                bit += select(word, left - 1) as usize + 1;
                break;
            }
            left -= ones;
            bit += WORD_BITS;
        }
        let first = bit;
        loop {
            let word = word(self.unary, bit) & kept;
            if word != 0 {
                bit += word.trailing_zeros() as usize;
                // A damaged directory may claim more bits than there are.
                return EntryRange {
                    first: first.saturating_sub(bucket) as u64,
                    count: (bit - first) as u32,
                };
            }
            bit += WORD_BITS;
        }
    }

    /// Returns the rank of the first entry of a bucket, and the number of its entries.
    pub(in super::super) fn range(&self, bucket: usize) -> (usize, usize) {
        let select = |word, n: u32| deposit(1 << n, word).trailing_zeros();
        let found = self.range_with(bucket, select);
        (found.first as usize, found.count as usize)
    }

    /// Returns an entry by its rank; zero beyond the end.
    pub(in super::super) fn entry(&self, rank: usize) -> u128 {
        let bit = rank * self.entry_bits;
        // As long as `PADDING`, so that every entry is whole.
        let mut bytes = [0; 24];
        if let Some(found) = self.entries.get(bit / 8..).and_then(<[u8]>::first_chunk) {
            bytes = *found;
        }
        // Entries of 128 bits that begin within a byte extend over 17 bytes.
        let [low, middle, high] = [0, 8, 16].map(|at| {
            let eight = bytes[at..].first_chunk().copied().unwrap_or_default();
            u128::from(u64::from_le_bytes(eight))
        });
        // Three loads whatever the width: entries of more than 57 bits are rare, and not worth a separate path.
        let whole =
            (low | middle << 64) >> (bit % 8) | (high << 64).unbounded_shl(64 - (bit % 8) as u32);
        match self.entry_bits {
            128.. => whole,
            bits => whole & ((1 << bits) - 1),
        }
    }

    /// Returns the byte in which the unary codes of the group of a bucket begin.
    #[inline(always)]
    pub(in super::super) fn unary_place(&self, bucket: usize) -> usize {
        let group = bucket / GROUP;
        (self.counts.get(group) + group * GROUP) / 8
    }

    /// Returns the first and the last byte that are read for some entries, at least one: each is read as eight bytes.
    #[inline(always)]
    pub(in super::super) fn place(&self, range: EntryRange) -> (usize, usize) {
        let start = range.first as usize * self.entry_bits;
        let last = start + range.count.saturating_sub(1) as usize * self.entry_bits;
        // `word` reads eight bytes from the byte in which an entry begins.
        (start / 8, last / 8 + 7)
    }
}

/// Returns 128 bits from a bit of the first byte on.
#[inline(always)]
fn two_words(bytes: &[u8; 24], bit: usize) -> (u64, u64) {
    let (words, _) = bytes.as_chunks::<8>();
    let (a, b) = (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]));
    let c = u64::from_le_bytes(words[2]);
    // Shifted in two steps, because one of 64 bits would overflow.
    (
        a >> bit | b << 1 << (63 - bit),
        b >> bit | c << 1 << (63 - bit),
    )
}

impl Dense<'_> {
    /// Returns an entry as a word; zero beyond the end.
    #[inline(always)]
    fn entry_word<W: Integer>(&self, rank: usize) -> W {
        if self.entry_bits > WORD_BITS {
            return W::from_u128(self.entry(rank));
        }
        let kept = low_ones(self.entry_bits);
        W::from_u128((word(self.entries, rank * self.entry_bits) & kept).into())
    }

    /// Compares the entries of probes one by one; see [`super::ProbeDense`].
    #[inline(always)]
    pub(super) fn probe_one_by_one<W: Integer>(
        &self,
        probes: ProbeLocations<'_>,
        needle: W,
        hit: &mut dyn FnMut(u32, W),
    ) -> u64 {
        let mut compared = 0;
        for (bucket, left, range) in probes.for_each() {
            compared += u64::from(range.count);
            self.compare(range, needle, left, &mut |entry| hit(bucket, entry));
        }
        compared
    }

    /// Visits the entries of a range that are within `left` of `needle`.
    #[inline(always)]
    pub(super) fn compare<W: Integer>(
        &self,
        range: EntryRange,
        needle: W,
        left: u32,
        hit: &mut impl FnMut(W),
    ) {
        let first = range.first as usize;
        for rank in first..first + range.count as usize {
            let entry: W = self.entry_word(rank);
            if (entry ^ needle).ones() <= left {
                hit(entry);
            }
        }
    }
}

/// Maximum bits of a word that fits eight bytes together with seven other bits.
const SHORT_BITS: u32 = 57;

/// Collects bits into whole bytes.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct BitWriter {
    held: u128,
    bits: u32,
}

impl BitWriter {
    /// Appends the low `bits` bits of each word, which has no others set.
    pub(in super::super) fn push_words<W: Integer>(
        &mut self,
        words: &[W],
        bits: u32,
        out: &mut Vec<u8>,
    ) {
        let low = |word: &W| word.low(64).to_u128() as u64;
        // With up to seven bits held, longer words would not fit the 64 bits of the loop below.
        if bits > SHORT_BITS {
            let high = bits.saturating_sub(64);
            for word in words {
                self.push(low(word), bits.min(64), out);
                if high > 0 {
                    self.push((word.to_u128() >> 64) as u64, high, out);
                }
            }
            return;
        }
        // Whole bytes of the held bits go out first, so that at most seven bits are held from here on.
        let whole = self.bits / 8;
        out.extend_from_slice(&self.held.to_le_bytes()[..whole as usize]);
        let mut held = (self.held >> (8 * whole)) as u64;
        let mut count = self.bits % 8;
        let start = out.len();
        // Spare room, because each store writes eight bytes, however few of them are whole.
        out.resize(start + (words.len() * bits as usize).div_ceil(8) + 16, 0);
        let room = &mut out[start..];
        let mut at = 0;
        for word in words {
            // At most seven bits are held and at most 57 come, so never more than 64.
            held |= low(word) << count;
            count += bits;
            // Eight bytes in any case, so that no branch depends on how many are whole.
            room[at..at + 8].copy_from_slice(&held.to_le_bytes());
            let bytes = count / 8;
            at += bytes as usize;
            // Two shifts, because one of eight bytes would overflow.
            held = held >> (4 * bytes) >> (4 * bytes);
            count %= 8;
        }
        out.truncate(start + at);
        (self.held, self.bits) = (held.into(), count);
    }

    /// Appends the low `bits` bits of `value`, at most 64; it has no others set.
    #[inline]
    pub(in super::super) fn push(&mut self, value: u64, bits: u32, out: &mut Vec<u8>) {
        self.held |= u128::from(value) << self.bits;
        self.bits += bits;
        // Up to 63 bits are held and up to 64 come, so 128 are enough.
        if self.bits >= 64 {
            out.extend_from_slice(&(self.held as u64).to_le_bytes());
            self.held >>= 64;
            self.bits -= 64;
        }
    }

    /// Writes the held bits, and padding that may be read.
    pub(in super::super) fn finish(&mut self, out: &mut Vec<u8>) {
        let bytes = self.bits.div_ceil(8) as usize;
        out.extend_from_slice(&self.held.to_le_bytes()[..bytes]);
        out.extend_from_slice(&[0; PADDING]);
        *self = Self::default();
    }
}
