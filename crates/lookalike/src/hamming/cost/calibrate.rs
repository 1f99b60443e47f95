//! Measures [`Constants`] on this machine, with a clock that the caller brings.

use super::super::code::Word;
use super::super::kernel::{self, BitWriter, DENSE_GROUP, Dense, Flipped};
use super::Constants;
use std::hint::black_box;

/// Measures the constants of one core; takes a second or two, and the memory of the largest working
/// set in `working_sets` (bytes; ascending).
///
/// `clock` returns seconds from any origin. The library itself reads no clock.
pub fn calibrate(clock: &mut dyn FnMut() -> f64, working_sets: &[u64]) -> Constants {
    let line_ns = working_sets
        .iter()
        .map(|&size| (size as f64, random_line(clock, size)));
    let line_ns = line_ns.collect();
    let scanned_code_ns = scan(clock);
    let default = Constants::default();
    // Twice the entries cost the difference.
    let (shorter, longer) = (probe(clock, 8), probe(clock, 16));
    let entry_ns = ((longer - shorter) / 8.0).clamp(0.0, shorter / 8.0);
    let probe_ns = shorter - 8.0 * entry_ns;
    let select_ns = (dense_probe(clock) - probe_ns - entry_ns).max(0.0);
    // The rest is arithmetic as well, and scales with a probe.
    let scale = shorter / (default.probe_ns + 8.0 * default.entry_ns);
    Constants {
        query_ns: default.query_ns * scale,
        table_ns: default.table_ns * scale,
        probe_ns,
        select_ns,
        entry_ns,
        scanned_code_ns,
        build_entry_ns: default.build_entry_ns * scale,
        line_ns,
    }
}

/// Shortest of five timings, in nanoseconds for each of `units`.
fn best(clock: &mut dyn FnMut() -> f64, units: usize, work: &mut dyn FnMut()) -> f64 {
    let timings = (0..5).map(|_| {
        let start = clock();
        work();
        clock() - start
    });
    timings.fold(f64::INFINITY, f64::min) * 1e9 / units as f64
}

fn random_line(clock: &mut dyn FnMut() -> f64, bytes: u64) -> f64 {
    const PROBES: usize = 200_000;
    const AHEAD: u64 = 16;
    let mut lines = Vec::with_capacity((bytes as usize / 64).max(1));
    kernel::ask_huge_pages(&mut lines);
    lines.resize(lines.capacity(), [1_u64; 8]);
    let count = lines.len() as u64;
    let at = |i: u64| {
        let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i.wrapping_mul(0xc2b2_ae3d) << 32;
        ((u128::from(mixed.wrapping_mul(0xff51_afd7_ed55_8ccd)) * u128::from(count)) >> 64) as usize
    };
    let mut from = 0;
    best(clock, PROBES, &mut || {
        let mut sum = 0;
        for i in from..from + PROBES as u64 {
            kernel::prefetch(&lines, at(i + AHEAD));
            sum += lines[at(i)][0];
        }
        from += PROBES as u64;
        black_box(sum);
    })
}

fn scan(clock: &mut dyn FnMut() -> f64) -> f64 {
    let words: Vec<u64> = (0..1 << 20)
        .map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    best(clock, words.len(), &mut || {
        let hits = words
            .chunks(64)
            .map(|chunk| kernel::scan_words(chunk, 1, 3).count_ones());
        black_box(hits.sum::<u32>());
    })
}

/// A probe of a bucket of `load` entries of five bytes, in the nearest caches.
fn probe(clock: &mut dyn FnMut() -> f64, load: u32) -> f64 {
    const BUCKETS: u32 = 512;
    const ROUNDS: u32 = 4_000;
    let starts = (0..=BUCKETS).map(|bucket| (bucket * load).to_le_bytes());
    let starts: Vec<_> = starts.collect();
    let bytes = 0..BUCKETS * load * 5 + 8;
    let bytes: Vec<u8> = bytes
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let flips: Vec<u32> = std::iter::once(0)
        .chain((0..9).map(|bit| 1 << bit))
        .collect();
    best(clock, (ROUNDS * 10) as usize, &mut || {
        let mut sum = 0;
        for round in 0..ROUNDS {
            let bucket = round.wrapping_mul(2_654_435_761) % BUCKETS;
            let flips = flips.as_slice();
            let probes = Flipped {
                bucket,
                flips,
                radius: 3,
            };
            let hit = &mut |_, entry| sum += entry;
            u64::probe_packed((&starts, &bytes), 5, probes, u64::from(round) << 8, hit);
        }
        black_box(sum);
    })
}

/// A probe of a dense table, one entry of 37 bits a bucket, in the nearest caches.
fn dense_probe(clock: &mut dyn FnMut() -> f64) -> f64 {
    const BUCKETS: u32 = 1024;
    const ROUNDS: u32 = 4_000;
    let (mut marks, mut bits) = (BitWriter::default(), BitWriter::default());
    let (mut mark_bytes, mut entries, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for bucket in 0..BUCKETS {
        if bucket % DENSE_GROUP as u32 == 0 {
            counts.push(bucket.to_le_bytes());
        }
        bits.push(
            u64::from(bucket.wrapping_mul(2_654_435_761)),
            37,
            &mut entries,
        );
        // A zero, the entry, below a one, the end.
        marks.push(0b10, 2, &mut mark_bytes);
    }
    counts.push(BUCKETS.to_le_bytes());
    bits.finish(&mut entries);
    marks.finish(&mut mark_bytes);
    let table = Dense::new((&counts, &mark_bytes, &entries), 37);
    let flips: Vec<u32> = std::iter::once(0)
        .chain((0..10).map(|bit| 1 << bit))
        .collect();
    let probes = ROUNDS as usize * flips.len();
    best(clock, probes, &mut || {
        let mut sum = 0;
        for round in 0..ROUNDS {
            let bucket = round.wrapping_mul(2_654_435_761) % BUCKETS;
            let flips = flips.as_slice();
            let probes = Flipped {
                bucket,
                flips,
                radius: 3,
            };
            let hit = &mut |_, entry| sum += entry;
            u64::probe_dense(table, probes, u64::from(round) << 8, hit);
        }
        black_box(sum);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_follow_the_clock_that_is_given() {
        let mut now = 0.0;
        let mut clock = || {
            now += 1e-3;
            now
        };
        let constants = calibrate(&mut clock, &[1 << 12, 1 << 16]);
        // Every work takes a millisecond by this clock.
        let per_line = 1e6 / 200_000.0;
        assert_eq!(constants.line_ns.len(), 2);
        assert!(
            constants
                .line_ns
                .iter()
                .all(|(_, ns)| (ns - per_line).abs() < 1e-6)
        );
        assert!((constants.scanned_code_ns - 1e6 / f64::from(1 << 20)).abs() < 1e-6);
        // Long and short probes took the same time.
        assert!(constants.entry_ns.abs() < 1e-6);
        assert!((constants.probe_ns - 1e6 / 40_000.0).abs() < 1e-6);
        assert!(constants.query_ns < Constants::default().query_ns);
    }
}
