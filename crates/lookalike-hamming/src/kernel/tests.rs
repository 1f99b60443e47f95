//! Compares every kernel, at every level of this processor, with its portable twin.

use super::super::code::Integer;
use super::super::index::SingleProbeSearch;
use super::super::layout::Layout;
use super::super::table::{ProbeTable, SingleProbeTable, TableNumbers};
use super::super::table_key::TableKey;
use super::bits::{deposit, deposit_portably, extract, extract_portably, low_ones};
use super::dispatch::run_at;
use super::level::CpuLevel;
use super::one_by_one::OneByOne;
use super::specialised::SelectMembers;
use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn extract_and_deposit_equal_their_twins(word: u64, a: u64, b: u64) {
        for mask in [a, a & b, a | b, a & b & a.rotate_left(17), 0, u64::MAX, 1 << 63] {
            prop_assert_eq!(extract(word, mask), extract_portably(word, mask));
            prop_assert_eq!(deposit(word, mask), deposit_portably(word, mask));
            prop_assert_eq!(deposit_portably(extract_portably(word, mask), mask), word & mask);
        }
    }

    #[test]
    fn permutations_equal_their_twin(words: Vec<u64>, a: u64, b: u64) {
        for address in [a, a & b, a | b, 0, u64::MAX] {
            let rest_bits = address.count_zeros();
            let permuted = |&word: &u64| {
                let high = extract_portably(word, address).checked_shl(rest_bits).unwrap_or(0);
                high | extract_portably(word, !address)
            };
            let expected: Vec<u64> = words.iter().map(permuted).collect();
            for level in CpuLevel::available() {
                let mut found = words.clone();
                run_at(level, Permute { words: &words, address, out: &mut found });
                prop_assert_eq!(&found, &expected, "{:?}", level);
            }
        }
    }

    #[test]
    fn probes_equal_their_twins(
        sizes in proptest::collection::vec(0_usize..40, 8),
        bytes in proptest::collection::vec(0_u8..3, 320 * 8 + 8),
        width in 1_usize..=8,
        radius in 0_u32..9,
    ) {
        let mut starts = vec![0_u32];
        for size in sizes {
            starts.push(starts[starts.len() - 1] + size as u32);
        }
        let probes = ProbeSet { bucket: 5, xor_masks: &[0, 1, 2, 4], radius };
        let needle = 0x0101_0200_0201_0001 & low_ones(8 * width);
        let range = |mask: &u32| {
            let at = (probes.bucket ^ mask) as usize;
            EntryRange { first: starts[at].into(), count: starts[at + 1] - starts[at] }
        };
        let ranges: Vec<EntryRange> = probes.xor_masks.iter().map(range).collect();
        let located = ProbeLocations { probes, ranges: &ranges };
        let entries = &bytes[..starts[8] as usize * width + 8];
        let mut expected = Vec::new();
        let mut of_all = 0;
        for (bucket, left, range) in located.for_each() {
            of_all += u64::from(range.count);
            for rank in range.first as usize..range.first as usize + range.count as usize {
                let entry = u64::read(&entries[rank * width..(rank + 1) * width]);
                if (entry ^ needle).count_ones() <= left {
                    expected.push((bucket, entry));
                }
            }
        }
        for level in CpuLevel::available() {
            let mut found = Vec::new();
            let hit = &mut |bucket, entry| found.push((bucket, entry));
            let compared = run_at(level, ProbePacked { entries, width, probes: located, needle, hit });
            prop_assert_eq!((compared, &found), (of_all, &expected), "{:?}", level);
        }
        probe_some_lines(&bytes, width, probes, needle)?;
    }

    #[test]
    fn marks_are_found_as_by_their_twins(
        words in proptest::collection::vec(any::<u64>(), 64),
        thin: u64,
        word_bits in 0_u32..=6,
        items in proptest::collection::vec(any::<u64>(), 0..100),
    ) {
        let words: Vec<u64> = words[..1 << word_bits].iter().map(|word| word | thin).collect();
        marks_equal_their_twin::<false>(&words, &items)?;
        marks_equal_their_twin::<true>(&words, &items)?;
    }

    #[test]
    fn what_was_marked_is_found(
        addresses in proptest::collection::vec(0_u64..1 << 16, 0..300),
        digit_bits in 0_u32..=3,
    ) {
        marks_are_found::<false>(&addresses, digit_bits)?;
        marks_are_found::<true>(&addresses, digit_bits)?;
    }

    #[test]
    fn scans_equal_the_obvious_scan(
        bytes in proptest::collection::vec(0_u8..4, 64 * 8),
        width in 0_usize..=8,
        count in 0_usize..=64,
        radius in 0_u32..20,
        tail in 0_usize..20,
    ) {
        let end = (count * width + tail).min(bytes.len());
        let needle = 0x0102_0300_0301_0203 & low_ones(8 * width);
        let mut expected = 0;
        for i in 0..count {
            let entry = u64::read(&bytes[i * width..(i + 1) * width]);
            if (entry ^ needle).count_ones() <= radius {
                expected |= 1 << i;
            }
        }
        let line: &[u8; 64] = bytes.first_chunk().expect("512 bytes");
        let in_line = 64_usize.checked_div(width).unwrap_or(64).min(count);
        for level in CpuLevel::available() {
            let entries = ScanPacked { bytes: &bytes[..end], width, count, needle, radius };
            prop_assert_eq!(run_at(level, entries), expected, "{:?}", level);
            let found = run_at(level, ScanRun { place: 0, entries });
            prop_assert_eq!(found, expected, "{:?}", level);
            let entries = ScanPacked { bytes: line, count: in_line, ..entries };
            let found = run_at(level, ScanLine { line, entries });
            prop_assert_eq!(found, expected & low_ones(in_line), "{:?}", level);
        }
    }

    #[test]
    fn word_kernels_equal_their_twins(
        mut words in proptest::collection::vec(any::<u64>(), 0..=64),
        radius in 0_u32..=40,
        cut in 1_u32..30,
    ) {
        for i in (1..words.len()).step_by(3) {
            words[i] = words[i - 1] ^ (words[i] & words[i] << 1 & words[i] << 2 & words[i] << 3);
        }
        let needle = words.first().copied().unwrap_or(5);
        let is_near = |a: u64, b: u64| (a ^ b).count_ones() <= radius;
        let near = words.iter().enumerate().filter(|&(_, &word)| is_near(word, needle));
        let expected = near.fold(0, |hits, (at, _)| hits | 1 << at);
        let ends: Vec<u32> = (1..=words.len() as u32).filter(|end| end % cut == 0).collect();
        let start = (cut as usize / 2).min(ends.first().map_or(0, |&end| end as usize));
        let mut expected_pairs = Vec::new();
        let mut from = start;
        for &end in &ends {
            let group = &words[from..end as usize];
            from = end as usize;
            if group.len() <= 20 {
                for (i, &a) in group.iter().enumerate() {
                    let near = group[i + 1..].iter().filter(|&&b| is_near(a, b));
                    expected_pairs.extend(near.map(|&b| (a, b)));
                }
            }
        }
        for level in CpuLevel::available() {
            prop_assert_eq!(run_at(level, ScanWords { words: &words, needle, radius }), expected);
            let mut pairs = Vec::new();
            let kernel = ClosePairs { words: &words, start, ends: &ends, most: 20, radius, pairs: &mut pairs };
            run_at(level, kernel);
            prop_assert_eq!(&pairs, &expected_pairs, "{:?}", level);
        }
    }
}

proptest! {
    #[test]
    fn buckets_as_bits_are_found_wherever_they_are(
        sizes in proptest::collection::vec(prop_oneof![9 => 0_usize..4, 1 => 0_usize..200], 1..200),
        entry_bits in 0_u32..=64,
        bucket in any::<u32>(),
        radius in 0_u32..30,
        rank_bytes in 4_u64..=8,
    ) {
        let rank_bytes = RankBytes::new(rank_bytes).unwrap();
        let (mut unary, mut bits) = (BitWriter::default(), BitWriter::default());
        let (mut unary_bytes, mut entries, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        let value = |rank: usize| (rank as u64).wrapping_mul(0x9e37_79b9) & low_ones(entry_bits as usize);
        let mut rank = 0;
        for (at, &size) in sizes.iter().enumerate() {
            if at % DENSE_GROUP == 0 {
                counts.extend_from_slice(rank_bytes.cut(&(rank as u64).to_le_bytes()));
            }
            for _ in 0..size {
                unary.push(0, 1, &mut unary_bytes);
                bits.push(value(rank), entry_bits, &mut entries);
                rank += 1;
            }
            unary.push(1, 1, &mut unary_bytes);
        }
        counts.extend_from_slice(rank_bytes.cut(&(rank as u64).to_le_bytes()));
        counts.extend_from_slice(&[0; RANK_PADDING]);
        unary.finish(&mut unary_bytes);
        bits.finish(&mut entries);
        let table = Dense {
            counts: Ranks::new(&counts, rank_bytes),
            unary: &unary_bytes,
            entries: &entries,
            entry_bits: entry_bits as usize,
        };
        let mut start = 0;
        for (at, &size) in sizes.iter().enumerate() {
            prop_assert_eq!(table.range(at), (start, size));
            start += size;
        }
        for rank in 0..rank {
            prop_assert_eq!(table.entry(rank), u128::from(value(rank)));
        }
        // All xor masks of at most two bits that stay inside, which are more than are gathered together.
        let whole = sizes.len().ilog2();
        let bucket = bucket & low_ones(whole as usize) as u32;
        let xor_masks: Vec<u32> = (0..1 << whole).filter(|mask: &u32| mask.count_ones() <= 2).collect();
        let mut ranges = vec![EntryRange::default(); xor_masks.len()];
        let portable = CpuLevel::PORTABLE;
        run_at(portable, LocateDense { table, bucket, xor_masks: &xor_masks, out: &mut ranges });
        for (mask, range) in xor_masks.iter().zip(&ranges) {
            let at = (bucket ^ mask) as usize;
            let first = sizes[..at].iter().sum::<usize>() as u64;
            prop_assert_eq!(*range, EntryRange { first, count: sizes[at] as u32 });
        }
        let needle = value(3);
        let probes = ProbeSet { bucket, xor_masks: &xor_masks, radius };
        let located = ProbeLocations { probes, ranges: &ranges };
        let mut expected = Vec::new();
        for (mask, range) in xor_masks.iter().zip(&ranges).filter(|(mask, _)| mask.count_ones() <= radius) {
            for rank in range.first..range.first + u64::from(range.count) {
                let entry = value(rank as usize);
                if (entry ^ needle).count_ones() + mask.count_ones() <= radius {
                    expected.push((bucket ^ mask, entry));
                }
            }
        }
        expected.sort_unstable();
        let within = |mask: &&u32| mask.count_ones() <= radius;
        let sizes = xor_masks.iter().filter(within).map(|mask| sizes[(bucket ^ mask) as usize] as u64);
        let compared: u64 = sizes.sum();
        for level in CpuLevel::available() {
            let mut again = vec![EntryRange::default(); xor_masks.len()];
            run_at(level, LocateDense { table, bucket, xor_masks: &xor_masks, out: &mut again });
            prop_assert_eq!(&again, &ranges, "{:?}", level);
            let mut found = Vec::new();
            let hit = &mut |bucket, entry| found.push((bucket, entry));
            let counted = run_at(level, ProbeDense { table, probes: located, needle, hit });
            prop_assert_eq!(counted, compared, "{:?}", level);
            found.sort_unstable();
            prop_assert_eq!(&found, &expected, "{:?}", level);
        }
    }
}

proptest! {
    #[test]
    fn windows_equal_the_comparison_of_each_word(
        xs in proptest::collection::vec(any::<u32>(), 0..40),
        mut ys in proptest::collection::vec(any::<u32>(), WINDOW..200),
        places in proptest::collection::vec(any::<usize>(), 40),
        radius in 0_u32..20,
        first in 0_usize..9,
    ) {
        for (x, place) in xs.iter().zip(&places) {
            let at = place % ys.len();
            ys[at] = x ^ 1 << (at % 32);
        }
        let (places, last) = (places.as_slice(), ys.len() - WINDOW);
        let window = move |at: usize| places[at] % (last + 1);
        let mut expected = Vec::new();
        for (at, &x) in xs.iter().enumerate() {
            let near = ys.iter().enumerate().skip(window(at)).take(WINDOW);
            let near = near.filter(|(_, y)| (x ^ **y).count_ones() <= radius);
            expected.extend(near.map(|(place, _)| ((first + at) as u32, place as u32)));
        }
        for level in CpuLevel::available() {
            let mut found = Vec::new();
            run_at(level, NearWindows { xs: &xs, ys: &ys, window, radius, first, found: &mut found });
            prop_assert_eq!(&found, &expected, "{:?}", level);
        }
    }
}

#[derive(Default, PartialEq, Debug)]
struct Seen(Vec<(u32, u64)>);

impl BucketVisitor<u64> for Seen {
    fn hit(&mut self, bucket: u32, entry: u64) {
        self.0.push((bucket, entry));
    }

    fn overflow(&mut self, bucket: u32, radius: u32) -> u64 {
        self.0.push((bucket, u64::from(radius) << 60));
        3
    }
}

fn probe_some_lines(
    bytes: &[u8],
    width: usize,
    probes: ProbeSet<'_>,
    needle: u64,
) -> Result<(), TestCaseError> {
    let capacity = 60 / width as u32;
    let line = |(tail, bytes): (u32, &[u8])| {
        let mut line = CacheLine([0; 64]);
        line.0.copy_from_slice(bytes);
        line.0[60..].copy_from_slice(&(tail % (capacity + 3)).to_le_bytes());
        line
    };
    let lines: Vec<CacheLine> = (3_u32..)
        .step_by(5)
        .zip(bytes.chunks_exact(64))
        .map(line)
        .collect();
    let (mut expected, mut of_all) = (Seen::default(), 0);
    for (bucket, left) in probes.probes() {
        let line = &lines[bucket as usize];
        let count = line.tail().min(capacity);
        of_all += u64::from(count);
        for at in 0..count as usize {
            let entry = u64::read(&line.0[at * width..(at + 1) * width]);
            if (entry ^ needle).count_ones() <= left {
                expected.hit(bucket, entry);
            }
        }
        if line.tail() > capacity {
            of_all += expected.overflow(bucket, left);
        }
    }
    for level in CpuLevel::available() {
        let mut found = Seen::default();
        let compared = run_at(
            level,
            ProbeBuckets {
                lines: &lines,
                width,
                capacity,
                probes,
                needle,
                visitor: &mut found,
            },
        );
        prop_assert_eq!((compared, &found), (of_all, &expected), "{:?}", level);
    }
    Ok(())
}

fn marks_equal_their_twin<const BLOOM: bool>(
    words: &[u64],
    items: &[u64],
) -> Result<(), TestCaseError> {
    let mut room = vec![0; items.len()];
    let kept = Vector::<u64>::select_members::<BLOOM>(OneByOne, words, items, &mut room);
    for level in CpuLevel::available() {
        let mut found = vec![0; items.len()];
        let kernel = SelectMembers::<BLOOM> {
            words,
            items,
            room: &mut found,
        };
        prop_assert_eq!(run_at(level, kernel), kept, "{:?}", level);
        prop_assert_eq!(&found[..kept], &room[..kept], "{:?}", level);
    }
    Ok(())
}

/// Of all addresses of 16 bits, those that were marked are found, and few or none of the others.
fn marks_are_found<const BLOOM: bool>(
    addresses: &[u64],
    digit_bits: u32,
) -> Result<(), TestCaseError> {
    const BITS: u32 = 16;
    let stretch = 1 << (BITS - 6 - digit_bits);
    let mut words = vec![0; stretch << digit_bits];
    for &address in addresses {
        let (digit, item) = filter_item::<BLOOM>(address, BITS, digit_bits);
        insert::<BLOOM>(&mut words[digit * stretch..][..stretch], &[item]);
    }
    let mut found = Vec::new();
    for address in 0..1 << BITS {
        let (digit, item) = filter_item::<BLOOM>(address, BITS, digit_bits);
        let words = &words[digit * stretch..][..stretch];
        select_members::<BLOOM>(words, &[item | address], &mut found);
    }
    let marked = |address: &u64| found.binary_search(&(*address as u32)).is_ok();
    prop_assert!(addresses.iter().all(marked));
    let distinct: std::collections::BTreeSet<_> = addresses.iter().collect();
    let mistaken = found.len() - distinct.len();
    // Three bits for each of 300 marks in 1024 words: about four addresses are false positives.
    prop_assert!(mistaken <= if BLOOM { 100 } else { 0 }, "{}", mistaken);
    Ok(())
}

#[test]
fn hints_accept_anything() {
    prefetch(&[0_u8; 3], 1_000);
}

/// Creates a table of these codes whose buckets are numbered by the bits of `address`.
fn table_of(codes: &[u64], address: u64, layout: Layout, numbers: TableNumbers) -> ProbeTable<u64> {
    let (mask, budget) = (address.into(), 0);
    let mut table = ProbeTable::<u64>::new(&TableKey { mask, budget }, mask, layout, numbers);
    table.reserve(codes.len());
    let mut buckets = vec![Vec::new(); 1 << address.count_ones()];
    for &code in codes {
        buckets[extract(code, address) as usize].push(extract(code, !address));
    }
    for mut rests in buckets {
        rests.sort_unstable();
        table.push(&rests, &[rests.len() as u32]);
    }
    table.finish();
    table
}

fn search_at<T: SingleProbeTable<u64>>(
    level: CpuLevel,
    tables: &[T],
    queries: &[u64],
    radius: u32,
    found: &mut dyn FnMut(usize, u64, u32),
) -> u64 {
    let kernel = SingleProbeSearch {
        tables,
        queries,
        radius,
        found,
    };
    run_at(level, kernel)
}

proptest! {
    #[test]
    fn searches_of_tables_probed_once_find_what_agrees_in_a_key(
        seeds in proptest::collection::vec(any::<u64>(), 1..60),
        copies in 0_u64..20,
        // Entries of eight bytes, crowded and sparse, and of six.
        masks in proptest::collection::vec((0_u32..63, prop_oneof![9 => 0_u32..9, 1 => Just(16_u32)]), 1..6),
        radius in 0_u32..8,
        (rank_bytes, unit) in (4_u64..=8, 4_u32..8),
    ) {
        let numbers = TableNumbers { ranks: RankBytes::new(rank_bytes).unwrap(), unit: 1 << unit };
        let near = |seed: &u64| (0..copies).map(|i| seed ^ (1 << (i * 7 % 64)) ^ (1 << (i * 5 % 64))).collect::<Vec<_>>();
        let mut codes: Vec<u64> = seeds.iter().flat_map(near).chain(seeds.iter().copied()).collect();
        codes.sort_unstable();
        codes.dedup();
        let queries: Vec<u64> = seeds.iter().map(|seed| seed ^ 1 << 9).chain(seeds.iter().copied()).collect();
        let masks: Vec<u64> = masks.iter().map(|&(at, bits)| low_ones(bits as usize).rotate_left(at)).collect();
        let mut expected = Vec::new();
        for (number, &query) in queries.iter().enumerate() {
            for &code in &codes {
                let apart = code ^ query;
                if apart.count_ones() <= radius && masks.iter().any(|mask| apart & mask == 0) {
                    expected.push((number, code, apart.count_ones()));
                }
            }
        }
        let agree = |query: u64, mask: u64| codes.iter().filter(|&code| (code ^ query) & mask == 0).count();
        let mut compared = 0;
        for &query in &queries {
            compared += masks.iter().map(|&mask| agree(query, mask)).sum::<usize>();
        }
        let [lines, packed] = [Layout::CacheLineBuckets, Layout::Packed]
            .map(|layout| masks.iter().map(|&mask| table_of(&codes, mask, layout, numbers)).collect::<Vec<_>>());
        let lines: Vec<_> = lines.iter().filter_map(ProbeTable::bucket_table).collect();
        let packed: Vec<_> = packed.iter().filter_map(ProbeTable::packed_table).collect();
        for level in CpuLevel::available() {
            let (mut in_lines, mut in_runs) = (Vec::new(), Vec::new());
            let found = &mut |query, code, distance| in_lines.push((query, code, distance));
            prop_assert_eq!(search_at(level, &lines, &queries, radius, found), compared as u64, "{:?}", level);
            let found = &mut |query, code, distance| in_runs.push((query, code, distance));
            prop_assert_eq!(search_at(level, &packed, &queries, radius, found), compared as u64, "{:?}", level);
            for mut found in [in_lines, in_runs] {
                // The results of one query come together.
                prop_assert!(found.is_sorted_by_key(|&(query, _, _)| query));
                found.sort_unstable();
                prop_assert_eq!(&found, &expected, "{:?}", level);
            }
        }
    }
}
