//! Eight words of AVX-512, whose ones are counted by VPOPCNTDQ or, without it, by lookup.

use super::address_filter::{PAYLOAD_BITS, select_one_by_one};
use super::bits::low_ones;
use super::dense::{Dense, WORD_BITS};
use super::probe_set::{EntryRange, ProbeLocations, ProbeSet};
use super::vector::Vector;
use super::windows::{NearWindows, WINDOW};
use std::arch::x86_64::*;

/// The instructions of AVX-512 F, BW, DQ and VL and those up to AVX2; with `POPCNT`, VPOPCNTDQ as well.
#[derive(Clone, Copy)]
pub(super) struct Avx512<const POPCNT: bool>(());

const LANES: usize = 8;

/// Shuffles that spread eight packed entries over the 64-bit lanes of a vector: the first brings four dwords to each 128-bit lane, which then holds
/// the bytes of two entries; the second brings those bytes into place.
struct Spread {
    dwords: [u32; 16],
    bytes: [u8; 64],
}

impl Spread {
    /// Creates the shuffles. `at[lane]` is the position in the loaded vector of the first byte of entry `2 * lane`.
    const fn new(width: usize, at: [usize; 4]) -> Self {
        let mut spread = Self {
            dwords: [0; 16],
            bytes: [0x80; 64],
        };
        let mut lane = 0;
        while lane < 4 {
            let mut i = 0;
            while i < 4 {
                // Lanes beyond the last entry of a line wrap around: they hold garbage, which is masked off by the number of entries.
                spread.dwords[4 * lane + i] = (at[lane] / 4 + i) as u32 & 15;
                i += 1;
            }
            let mut byte = 0;
            while byte < width {
                // For all widths, `at % 4 + 2 * width` is at most 16, so the four dwords of a lane hold both its entries.
                let from = at[lane] % 4 + byte;
                spread.bytes[16 * lane + byte] = from as u8;
                spread.bytes[16 * lane + 8 + byte] = (from + width) as u8;
                byte += 1;
            }
            lane += 1;
        }
        spread
    }

    /// Creates the shuffles for eight entries loaded as their first and their last 32 bytes.
    const fn of_group(width: usize) -> Self {
        let mut at = [0; 4];
        let mut lane = 0;
        while lane < 4 {
            let first = 2 * width * lane;
            // Lanes 0 and 1 end at byte 4 * width <= 32, and lanes 2 and 3 begin at 4 * width >= 8 * width - 32, so the entries of each lane are in
            // one of the two loads.
            let in_low_half = first + 2 * width <= 32;
            at[lane] = if in_low_half {
                first
            } else {
                first + 64 - 8 * width
            };
            lane += 1;
        }
        Self::new(width, at)
    }

    /// Creates the shuffles for the entries `8 * group..` of one line.
    const fn of_line(width: usize, group: usize) -> Self {
        let first = 8 * width * group;
        Self::new(
            width,
            [
                first,
                first + 2 * width,
                first + 4 * width,
                first + 6 * width,
            ],
        )
    }
}

/// Shuffles of a group of eight, indexed by width less four.
static GROUP_SPREADS: [Spread; 5] = [
    Spread::of_group(4),
    Spread::of_group(5),
    Spread::of_group(6),
    Spread::of_group(7),
    Spread::of_group(8),
];

/// Shuffles of a line, indexed by width less four, and group.
static LINE_SPREADS: [[Spread; 2]; 5] = [
    [Spread::of_line(4, 0), Spread::of_line(4, 1)],
    [Spread::of_line(5, 0), Spread::of_line(5, 1)],
    [Spread::of_line(6, 0), Spread::of_line(6, 1)],
    [Spread::of_line(7, 0), Spread::of_line(7, 1)],
    [Spread::of_line(8, 0), Spread::of_line(8, 1)],
];

impl<const POPCNT: bool> Avx512<POPCNT> {
    /// # Safety
    ///
    /// The processor must have these instructions.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        Self(())
    }

    /// Counts the ones in each lane. VPOPCNTDQ counts eight words in three cycles, and starts with another eight in each cycle; the lookup of nibbles
    /// takes eight instructions, two of which use the only port that shuffles.
    #[inline(always)]
    fn ones(self, x: __m512i) -> __m512i {
        // SAFETY: a value of this type proves that the instructions are there.
        unsafe {
            if POPCNT {
                return _mm512_popcnt_epi64(x);
            }
            let table = _mm512_broadcast_i32x4(_mm_setr_epi8(
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
            ));
            let nibbles = _mm512_set1_epi8(15);
            let low = _mm512_shuffle_epi8(table, _mm512_and_si512(x, nibbles));
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(x), nibbles);
            let sums = _mm512_add_epi8(low, _mm512_shuffle_epi8(table, high));
            // The sum of absolute differences from zero adds the eight counts of each lane.
            _mm512_sad_epu8(sums, _mm512_setzero_si512())
        }
    }

    /// Spreads packed entries over the lanes: one shuffle across the vector by dwords, one within its quarters by bytes. A single shuffle by bytes
    /// across the vector belongs to VBMI, which the oldest processors with AVX-512 lack.
    #[inline(always)]
    fn spread(self, loaded: __m512i, how: &Spread) -> __m512i {
        // SAFETY: both tables are 64 bytes, and the instructions are there.
        unsafe {
            let dwords = _mm512_loadu_si512(how.dwords.as_ptr().cast());
            let bytes = _mm512_loadu_si512(how.bytes.as_ptr().cast());
            _mm512_shuffle_epi8(_mm512_permutexvar_epi32(dwords, loaded), bytes)
        }
    }
}

impl<const POPCNT: bool> Vector<u64> for Avx512<POPCNT> {
    type Lanes = __m512i;
    const LANES: usize = LANES;
    const WIDE: bool = true;
    const PARTS: bool = true;

    #[inline(always)]
    fn splat(self, word: u64) -> __m512i {
        // SAFETY: the instructions are there.
        unsafe { _mm512_set1_epi64(word as i64) }
    }

    #[inline(always)]
    fn load(self, words: &[u64]) -> __m512i {
        // Masked lanes are not touched, even at the end of a page.
        let kept = low_ones(words.len()) as u8;
        // SAFETY: the mask keeps the load within the words.
        unsafe { _mm512_maskz_loadu_epi64(kept, words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn packed_lanes(width: usize, left: usize) -> usize {
        if (4..=8).contains(&width) && left >= LANES {
            LANES
        } else {
            0
        }
    }

    #[inline(always)]
    fn load_packed(self, bytes: &[u8], width: usize, _: usize) -> __m512i {
        // Two overlapping loads: one of 64 bytes would read beyond the group, and perhaps beyond the last page of a table.
        let group = &bytes[..LANES * width];
        // SAFETY: a group is 8 * width >= 32 bytes, of which the first and the last 32 are read.
        let loaded = unsafe {
            let first = _mm256_loadu_si256(group.as_ptr().cast());
            let last = _mm256_loadu_si256(group.as_ptr().add(LANES * width - 32).cast());
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), last)
        };
        self.spread(loaded, &GROUP_SPREADS[width - 4])
    }

    #[inline(always)]
    fn load_line(self, line: &[u8; 64], width: usize) -> Option<[__m512i; 2]> {
        let [first, second] = LINE_SPREADS.get(width.wrapping_sub(4))?;
        // SAFETY: a line is 64 bytes.
        let loaded = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        Some([self.spread(loaded, first), self.spread(loaded, second)])
    }

    #[inline(always)]
    fn near(self, lanes: __m512i, needles: __m512i, radius: u32) -> u64 {
        // SAFETY: the instructions are there.
        unsafe {
            // XOR and VPCMPUQ take one to three cycles; the level decides on the count between them (see `ones`).
            let apart = self.ones(_mm512_xor_si512(lanes, needles));
            _mm512_cmple_epu64_mask(apart, _mm512_set1_epi64(radius.into())).into()
        }
    }

    #[inline(always)]
    fn near_words(self, words: &[u64], needles: __m512i, radius: u32) -> u64 {
        // The mask is part of the comparison, because lanes that are not loaded are zero, which may be near the needle.
        let kept = low_ones(words.len()) as u8;
        // SAFETY: the instructions are there.
        unsafe {
            let apart = self.ones(_mm512_xor_si512(self.load(words), needles));
            _mm512_mask_cmple_epu64_mask(kept, apart, _mm512_set1_epi64(radius.into())).into()
        }
    }

    #[inline(always)]
    fn extract(self, word: u64, mask: u64) -> u64 {
        // SAFETY: BMI2 is there.
        unsafe { _pext_u64(word, mask) }
    }

    #[inline(always)]
    fn deposit(self, word: u64, mask: u64) -> u64 {
        // SAFETY: BMI2 is there.
        unsafe { _pdep_u64(word, mask) }
    }

    #[inline(always)]
    fn select(self, word: u64, n: u32) -> u32 {
        self.deposit(1 << n, word).trailing_zeros()
    }

    #[inline(always)]
    fn probe_dense(
        self,
        table: Dense<'_>,
        probes: ProbeLocations<'_>,
        needle: u64,
        hit: &mut dyn FnMut(u32, u64),
    ) -> u64 {
        // An entry of more than 57 bits may reach into a ninth byte, which a gather of eight does not load.
        let gathered = (1..=WORD_BITS).contains(&table.entry_bits) && table.entries.len() >= 8;
        if !POPCNT || !gathered {
            return table.probe_one_by_one(probes, needle, hit);
        }
        self.probe_gathered(table, probes, needle, hit)
    }

    #[inline(always)]
    fn select_members<const BLOOM: bool>(
        self,
        words: &[u64],
        items: &[u64],
        room: &mut [u32],
    ) -> usize {
        self.select_gathered::<BLOOM>(words, items, room)
    }

    #[inline(always)]
    fn near_windows<F: Fn(usize) -> usize + Copy>(self, search: NearWindows<'_, F>) {
        if POPCNT {
            self.near_by_vectors(search);
        } else {
            search.find_one_by_one();
        }
    }
}

/// Number of probes whose entries are gathered at a time.
const PROBES: usize = 32;
/// Number of entries of a bucket that are gathered; further ones are compared one by one.
const GATHERED: usize = 4;

// Separate forms of the kernels that gather.
impl<const POPCNT: bool> Avx512<POPCNT> {
    /// Lists the entries of all probes, and gathers and compares them eight at a time: buckets hold one entry on average, and a loop over so few
    /// would be mispredicted at every second bucket.
    ///
    /// The table must have entries of 1 to 57 bits, and at least eight bytes of them.
    #[inline(always)]
    fn probe_gathered(
        self,
        table: Dense<'_>,
        probes: ProbeLocations<'_>,
        needle: u64,
        hit: &mut dyn FnMut(u32, u64),
    ) -> u64 {
        let ProbeSet {
            bucket,
            xor_masks,
            radius,
        } = probes.probes;
        let (mut compared, bits) = (0, table.entry_bits as u64);
        let groups = xor_masks.chunks(PROBES).zip(probes.ranges.chunks(PROBES));
        for (xor_masks, ranges) in groups {
            // Eight more than can be listed, because the last eight are read whole.
            let mut places = [0_u64; PROBES * GATHERED + 8];
            let mut owners = [0_u8; PROBES * GATHERED + 8];
            let mut listed = 0;
            for (at, (&mask, range)) in xor_masks.iter().zip(ranges).enumerate() {
                // Masks ascend by value, not by their number of ones: a query with a smaller radius skips some of them on the way.
                let Some(left) = radius.checked_sub(mask.count_ones()) else {
                    continue;
                };
                // The bit at which the first entry begins.
                let first = range.first * bits;
                compared += u64::from(range.count);
                // All four are written, and the list only grows by those that exist.
                let four = [first, first + bits, first + 2 * bits, first + 3 * bits];
                places[listed..listed + GATHERED].copy_from_slice(&four);
                owners[listed..listed + GATHERED].copy_from_slice(&[at as u8; GATHERED]);
                listed += range.count.min(GATHERED as u32) as usize;
                // With one entry per bucket on average, 4 buckets in 1000 have more than four, so this branch is predicted well.
                if range.count > GATHERED as u32 {
                    let rest = EntryRange {
                        first: range.first + GATHERED as u64,
                        count: range.count - GATHERED as u32,
                    };
                    table.compare(rest, needle, left, &mut |entry| hit(bucket ^ mask, entry));
                }
            }
            for start in (0..listed).step_by(8) {
                // Always there, because the list has eight slots more than can be listed.
                let eight = places[start..].first_chunk().unwrap_or(&[0; 8]);
                // With the whole radius, which is the same for all eight. The bits of the masks are checked for the few that pass.
                let (mut near, entries) = self.near_entries(table, eight, needle, radius);
                // Lanes after the end of the list are left over from buckets of fewer than four entries.
                near &= low_ones(listed - start) as u8;
                while near != 0 {
                    let lane = near.trailing_zeros() as usize;
                    near &= near - 1;
                    // The owner is the probe of an entry, because several buckets share a vector.
                    let (mask, entry) = (xor_masks[owners[start + lane] as usize], entries[lane]);
                    // Now the bits of the mask count, too.
                    if (entry ^ needle).count_ones() + mask.count_ones() <= radius {
                        hit(bucket ^ mask, entry);
                    }
                }
            }
        }
        compared
    }

    /// Returns a mask of those of eight entries that are within `radius` of `needle`, and the entries. `places` are the bits at which they begin;
    /// those beyond the table are replaced by the last eight bytes. The table must have entries of 1 to 57 bits, and at least eight bytes of them.
    #[inline(always)]
    fn near_entries(
        self,
        table: Dense<'_>,
        places: &[u64; 8],
        needle: u64,
        radius: u32,
    ) -> (u8, [u64; 8]) {
        let bits = table.entry_bits;
        // The last bit position whose eight bytes are inside the table.
        let last = (table.entries.len() - 8) * 8;
        // SAFETY: the list is 64 bytes; place <= last, so the first byte of an entry is at least eight bytes before the end.
        let entries = unsafe {
            let places = _mm512_loadu_si512(places.as_ptr().cast());
            // Lanes without an entry may hold anything, and so may ranks of a crafted directory: this keeps the gather inside.
            let places = _mm512_min_epu64(places, _mm512_set1_epi64(last as i64));
            // An entry begins at any bit: the gather starts at the byte of its first bit, and the shift drops the bits before it.
            let shifts = _mm512_and_si512(places, _mm512_set1_epi64(7));
            let bytes = _mm512_srli_epi64::<3>(places);
            let found = _mm512_i64gather_epi64::<1>(bytes, table.entries.as_ptr().cast());
            let kept = _mm512_set1_epi64(low_ones(bits) as i64);
            _mm512_and_si512(_mm512_srlv_epi64(found, shifts), kept)
        };
        let near = self.near(entries, self.splat(needle), radius) as u8;
        let mut out = [0; 8];
        // Most groups of eight have no hit, and nothing is stored for them.
        if near != 0 {
            // SAFETY: the list is 64 bytes.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), entries) };
        }
        (near, out)
    }

    /// Looks up the marks of eight items at a time: items are in the order of their stretch, whose words are in the cache, so a gather takes little
    /// more than eight loads, and there is no branch on the marks.
    #[inline(always)]
    fn select_gathered<const BLOOM: bool>(
        self,
        words: &[u64],
        items: &[u64],
        room: &mut [u32],
    ) -> usize {
        assert!(words.len().is_power_of_two() && room.len() >= items.len());
        let (groups, rest) = items.as_chunks::<LANES>();
        let mut kept = 0;
        for group in groups {
            // SAFETY: a group is 64 bytes; places are at most the last of the words; no more items are kept than were looked at before, so eight
            // slots of the room are left.
            unsafe {
                let items = _mm512_loadu_si512(group.as_ptr().cast());
                let places = if BLOOM {
                    _mm512_srli_epi64::<{ PAYLOAD_BITS + 18 }>(items)
                } else {
                    _mm512_srli_epi64::<{ PAYLOAD_BITS + 6 }>(items)
                };
                let last = _mm512_set1_epi64(words.len() as i64 - 1);
                let places = _mm512_and_si512(places, last);
                let found = _mm512_i64gather_epi64::<8>(places, words.as_ptr().cast());
                let bits = self.pattern::<BLOOM>(items);
                // All bits of an item are tested at once: it is kept if none is missing.
                let set = _mm512_cmpeq_epi64_mask(_mm512_and_si512(found, bits), bits);
                let own = _mm512_and_si512(items, _mm512_set1_epi64((1 << PAYLOAD_BITS) - 1));
                // Kept items move to the front, and eight are stored in any case: the next store overwrites the surplus. VPCOMPRESSQ into a register,
                // then a plain store: its form with a memory operand takes a hundred cycles and more on Zen 4.
                let own = _mm512_cvtepi64_epi32(_mm512_maskz_compress_epi64(set, own));
                _mm256_storeu_si256(room.as_mut_ptr().add(kept).cast(), own);
                kept += set.count_ones() as usize;
            }
        }
        kept + select_one_by_one::<BLOOM>(words, rest, &mut room[kept..])
    }

    /// Returns the bits that items have in their words.
    #[inline(always)]
    fn pattern<const BLOOM: bool>(self, items: __m512i) -> __m512i {
        // SAFETY: the instructions are there.
        unsafe {
            let (one, low) = (_mm512_set1_epi64(1), _mm512_set1_epi64(63));
            let first = _mm512_srli_epi64::<PAYLOAD_BITS>(items);
            // VPSLLVQ shifts each lane by its own number.
            let bit = _mm512_sllv_epi64(one, _mm512_and_si512(first, low));
            if !BLOOM {
                return bit;
            }
            let second = _mm512_srli_epi64::<{ PAYLOAD_BITS + 6 }>(items);
            let second = _mm512_sllv_epi64(one, _mm512_and_si512(second, low));
            let third = _mm512_srli_epi64::<{ PAYLOAD_BITS + 12 }>(items);
            let third = _mm512_sllv_epi64(one, _mm512_and_si512(third, low));
            _mm512_or_si512(bit, _mm512_or_si512(second, third))
        }
    }

    /// Takes the minimum of the differences over eight windows before one comparison judges them.
    #[inline(always)]
    fn near_by_vectors<F: Fn(usize) -> usize + Copy>(self, mut search: NearWindows<'_, F>) {
        let (groups, rest) = search.xs.as_chunks::<LANES>();
        for (group, words) in groups.iter().enumerate() {
            let base = group * LANES;
            // SAFETY: the instructions are there.
            let near = unsafe {
                // More than any number of ones.
                let mut least = _mm512_set1_epi32(33);
                // Eight windows for one branch: hits are rare, so it is hardly ever taken.
                for (at, &x) in words.iter().enumerate() {
                    let from = (search.window)(base + at);
                    let apart = self.bits_apart(x, &search.ys[from..from + WINDOW]);
                    // Eight independent loads, counts and minima, which overlap; the one comparison at the end only waits for the last.
                    least = _mm512_min_epu32(least, apart);
                }
                _mm512_cmple_epu32_mask(least, _mm512_set1_epi32(search.radius as i32))
            };
            if near != 0 {
                self.near_at(&mut search, words, base);
            }
        }
        self.near_at(&mut search, rest, groups.len() * LANES);
    }

    /// Finds the near words for at most eight words, from position `base` of their list on.
    #[inline(always)]
    fn near_at<F: Fn(usize) -> usize + Copy>(
        self,
        search: &mut NearWindows<'_, F>,
        words: &[u32],
        base: usize,
    ) {
        // All windows first: which word is near is unpredictable, so a branch for each would be mispredicted. Eight words with a mask of sixteen bits
        // each fill the 128 bits.
        let mut near = 0_u128;
        for (at, &x) in words.iter().enumerate() {
            let from = (search.window)(base + at);
            let apart = self.bits_apart(x, &search.ys[from..from + WINDOW]);
            // SAFETY: the instructions are there.
            let hits =
                unsafe { _mm512_cmple_epu32_mask(apart, _mm512_set1_epi32(search.radius as i32)) };
            near |= u128::from(hits) << (WINDOW * at);
        }
        while near != 0 {
            let bit = near.trailing_zeros() as usize;
            let (at, place) = (base + bit / WINDOW, bit % WINDOW);
            let pair = (
                (search.first + at) as u32,
                ((search.window)(at) + place) as u32,
            );
            search.found.push(pair);
            near &= near - 1;
        }
    }

    /// Returns the number of bits in which each word of a window differs from `x`.
    #[inline(always)]
    fn bits_apart(self, x: u32, window: &[u32]) -> __m512i {
        assert!(window.len() == WINDOW);
        // SAFETY: a window is 64 bytes; this is only called with VPOPCNTDQ.
        unsafe {
            let loaded = _mm512_loadu_si512(window.as_ptr().cast());
            _mm512_popcnt_epi32(_mm512_xor_si512(loaded, _mm512_set1_epi32(x as i32)))
        }
    }
}
