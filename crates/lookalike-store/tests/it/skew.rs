//! Unevenly distributed fingerprints: answers are complete, and take no longer than they should.

use std::path::Path;
use std::time::{Duration, Instant};

use lookalike::{Fingerprint, Scheme};
use lookalike_store::{
    Collection, CollectionSettings, Store, StoreOptions, StoredDocument, UnixMillis, Verdict,
    WriteOp,
};

const NOW: UnixMillis = UnixMillis(1000);
const COUNT: u64 = 100_000;
/// Number of fingerprints in a check.
const ASKED: usize = 100;

fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}

fn store(folder: &Path) -> Store {
    let options = StoreOptions::default().create(true);
    Store::open(folder, options).expect("it opens")
}

fn fill(store: &Store, name: &str, code: impl Fn(u64) -> u64) -> std::sync::Arc<Collection> {
    let settings = CollectionSettings::new(&Scheme::default());
    let pages = store
        .create_collection(name, &settings)
        .expect("a collection");
    for first in (0..COUNT).step_by(10_000) {
        let insert =
            |n: u64| WriteOp::Insert(StoredDocument::new(n.to_string(), Fingerprint(code(n))));
        let batch = (first..first + 10_000).map(insert).collect();
        pages.write(batch, NOW).expect("a write");
    }
    pages
}

/// Returns the median time of fifty checks, each of a hundred fingerprints close to stored ones. The median is hardly affected by other
/// work of the machine.
fn half(pages: &Collection, code: &impl Fn(u64) -> u64) -> Duration {
    let mut times: Vec<Duration> = (0..50)
        .map(|round| {
            let asked = (0..ASKED as u64).map(|at| mix(round * 1000 + at));
            let codes: Vec<_> = asked
                .map(|dice| Fingerprint(code(dice % COUNT) ^ (1 << ((dice >> 32) % 48))))
                .collect();
            let begun = Instant::now();
            let verdicts = pages.check_many(&codes, 3, NOW).expect("a check");
            let taken = begun.elapsed();
            assert!(verdicts.iter().all(|verdict| *verdict != Verdict::New));
            taken
        })
        .collect();
    times.sort_unstable();
    times[25]
}

/// All documents agree in some bits: in a quarter, which is one of the blocks that tables are addressed by when bits are even, or in more
/// than half. A bucket with all of them would take a thousand times as long.
#[test]
fn a_bucket_that_all_fingerprints_share_costs_little_in_memory_and_in_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    let even = fill(&store, "even", mix);
    let (quarter, half_of_them) = (0xffff_u64 << 48, 0xffff_ffff_f000_0000_u64);
    let hot = [("quarter", quarter), ("half", half_of_them)].map(|(name, shared)| {
        let code = move |n| mix(n) & !shared | 0xabcd_ef01_2345_6789 & shared;
        (fill(&store, name, code), code)
    });
    for place in ["in memory", "in a run"] {
        let usual = half(&even, &mix);
        for (pages, code) in &hot {
            let taken = half(pages, code);
            assert!(
                taken < 10 * usual + Duration::from_millis(1),
                "{place}: {taken:?}, where bits are even {usual:?}"
            );
        }
        even.compact().expect("a run");
        hot.iter()
            .for_each(|(pages, _)| pages.compact().expect("a run"));
    }
    drop((even, hot));
    store.close().expect("an end");
}

/// Equal pages are a single entry, with a list of their ids.
#[test]
fn a_hundred_thousand_equal_pages_take_less_memory_than_as_many_different_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    let sizes = [("even", u64::MAX), ("equal", 1)].map(|(name, distinct)| {
        let code = |n: u64| mix(n % distinct);
        let pages = fill(&store, name, code);
        let begun = Instant::now();
        let verdict = pages.check(Fingerprint(code(0)), 3, NOW).expect("a check");
        assert_eq!(verdict, Verdict::SameFingerprint);
        assert!(begun.elapsed() < Duration::from_millis(100));
        pages.compact().expect("a run");
        let found = pages
            .query(Fingerprint(code(0)), 3, NOW, 2)
            .expect("a query");
        assert_eq!(
            (found.verdict, found.more),
            (Verdict::SameFingerprint, distinct == 1)
        );
        pages.stats().run_bytes
    });
    assert!(sizes[1] <= sizes[0], "{sizes:?}");
    store.close().expect("an end");
}
