//! Hamming search and self-join over random fingerprints: lookalike compared with crates for the same purpose.
//!
//! `hamming RECORDS QUERIES FOLDER`: makes the fingerprints (uniform, every sixteenth with a neighbour
//! planted within the distance) and queries (every second within the distance of a record), writes
//! both to FOLDER for `peers/faiss_hamming.py`, runs every engine in turn on one thread, and prints a
//! Markdown table that includes what each search found.

use std::fs;
use std::path::Path;

use lookalike_bench::measure::Stopwatch;
use lookalike_hamming::{CostConstants, Layout, PlanLimits, SelfJoinLimits, TableIndex, plan, self_join};

const RADIUS: u32 = 3;

/// The figures of one engine.
struct Row {
    name: String,
    build_seconds: f64,
    bytes: Option<usize>,
    queries_per_second: f64,
    found: usize,
}

fn mix(i: u64) -> u64 {
    let mixed = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 32
}

/// Flips up to `RADIUS` bits, chosen by `noise`.
fn near(code: u64, noise: u64) -> u64 {
    (0..noise % u64::from(RADIUS + 1)).fold(code, |code, error| {
        code ^ 1 << (noise >> (8 + 6 * error) & 63)
    })
}

fn records(count: u64) -> Vec<u64> {
    let planted = |i: u64| {
        if i % 16 == 15 {
            near(mix(i - 15), mix(i + (1 << 50)))
        } else {
            mix(i)
        }
    };
    (0..count).map(planted).collect()
}

fn queries(records: &[u64], count: u64) -> Vec<u64> {
    let pick = |i: u64| records[(mix(i) % records.len() as u64) as usize];
    let make = |i: u64| {
        if i % 2 == 0 {
            near(pick(i), mix(i + (1 << 51)))
        } else {
            mix(i + (1 << 52))
        }
    };
    (0..count).map(make).collect()
}

fn save(path: &Path, numbers: &[u64]) -> std::io::Result<()> {
    let bytes: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    fs::write(path, bytes)
}

/// Builds an index and searches it; `search` returns what it found.
fn row<I>(
    name: &str,
    queries: &[u64],
    build: impl FnOnce() -> I,
    bytes: impl FnOnce(&I) -> Option<usize>,
    search: impl FnOnce(&I, &[u64]) -> usize,
) -> Row {
    let watch = Stopwatch::start();
    let index = build();
    let build_seconds = watch.cpu();
    let bytes = bytes(&index);
    let watch = Stopwatch::start();
    let found = search(&index, queries);
    let queries_per_second = queries.len() as f64 / watch.cpu();
    eprintln!("{name}: {queries_per_second:.0} queries/s, {found} found");
    Row {
        name: name.to_owned(),
        build_seconds,
        bytes,
        queries_per_second,
        found,
    }
}

/// Measures the fastest design of lookalike with this number of tables, in a layout.
fn ours(records: &[u64], queries: &[u64], tables: usize, layout: Layout) -> Result<Row, String> {
    let plans = plan(
        records.len() as u64,
        64,
        RADIUS,
        &PlanLimits::default(),
        &CostConstants::default(),
    );
    let fitting = plans
        .iter()
        .filter(|costed| costed.design.tables().len() == tables && costed.layout == layout);
    let best = fitting.min_by(|a, b| a.costs.query_ns.total_cmp(&b.costs.query_ns));
    let best = best.ok_or("no design of so many tables")?;
    let name = format!("lookalike, {tables} tables, {layout}");
    let built =
        TableIndex::build(records, &best.design, layout).map_err(|error| error.to_string())?;
    drop(built);
    Ok(row(
        &name,
        queries,
        || TableIndex::build(records, &best.design, layout).expect("it was built before"),
        |index| Some(index.bytes()),
        |index, queries| {
            let mut found = 0;
            for group in queries.chunks(64) {
                let searched = index.search_group(group, RADIUS, &mut |_, _, _| found += 1);
                searched.expect("the design is for this radius");
            }
            found
        },
    ))
}

fn mih(records: &[u64], queries: &[u64]) -> Row {
    row(
        "mih-rs 0.3.1",
        queries,
        || mih_rs::Index::new(records.to_vec()).expect("mih-rs takes any codes"),
        |_| None,
        |index, queries| {
            let mut searcher = index.range_searcher();
            queries
                .iter()
                .map(|&query| searcher.run(query, RADIUS as usize).len())
                .sum()
        },
    )
}

fn gaoya(records: &[u64], queries: &[u64]) -> Row {
    // Its index returns distances below the given one.
    let distance = RADIUS as usize + 1;
    // It is so slow that some of the queries are enough; with six blocks it takes a kilobyte per fingerprint.
    let queries = &queries[..queries.len().min(2_000)];
    row(
        "gaoya 0.2.2, 5 blocks",
        queries,
        || {
            let mut index = gaoya::simhash::SimHashIndex::<u64, u32>::new(5, distance);
            for (id, &record) in (0..).zip(records) {
                index.insert(id, record);
            }
            index
        },
        |_| None,
        |index, queries| {
            queries
                .iter()
                .map(|query| index.query_return_distance(query).len())
                .sum()
        },
    )
}

fn self_joins(records: &[u64]) -> Vec<(String, f64, usize)> {
    let mut rows = Vec::new();
    let watch = Stopwatch::start();
    let mut pairs = 0;
    let counted = std::sync::atomic::AtomicUsize::new(0);
    self_join(records, RADIUS, SelfJoinLimits::default(), || {
        |_, _, _| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    pairs += counted.into_inner();
    rows.push(("lookalike self_join".to_owned(), watch.cpu(), pairs));
    let watch = Stopwatch::start();
    let mut found = hashbrown::HashSet::new();
    let sort = all_pairs_hamming::multi_sort::MultiSort::new().num_blocks(RADIUS as usize + 2);
    sort.similar_pairs(records, RADIUS as usize, &mut found);
    rows.push((
        "all-pairs-hamming 0.1.0, MultiSort".to_owned(),
        watch.cpu(),
        found.len(),
    ));
    rows
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, count, asked, folder] = arguments.as_slice() else {
        return Err("usage: hamming RECORDS QUERIES FOLDER".into());
    };
    let mut records = records(count.parse()?);
    records.sort_unstable();
    records.dedup();
    let queries = queries(&records, asked.parse()?);
    fs::create_dir_all(folder)?;
    save(&Path::new(folder).join("records.u64"), &records)?;
    save(&Path::new(folder).join("queries.u64"), &queries)?;
    let mut rows = Vec::new();
    for (tables, layout) in [
        (2, Layout::Dense),
        (2, Layout::Packed),
        (2, Layout::CacheLineBuckets),
        (6, Layout::Packed),
        (6, Layout::CacheLineBuckets),
        (8, Layout::Packed),
        (8, Layout::CacheLineBuckets),
    ] {
        rows.push(ours(&records, &queries, tables, layout)?);
    }
    rows.push(mih(&records, &queries));
    rows.push(gaoya(&records, &queries));
    println!(
        "| engine | build, s | bytes a fingerprint | thousand queries/s | found |\n|---|---|---|---|---|"
    );
    for row in &rows {
        let bytes = row.bytes.map_or("-".to_owned(), |bytes| {
            format!("{:.1}", bytes as f64 / records.len() as f64)
        });
        println!(
            "| {} | {:.2} | {bytes} | {:.1} | {} |",
            row.name,
            row.build_seconds,
            row.queries_per_second / 1e3,
            row.found
        );
    }
    println!("\n\n| self-join | s | million fingerprints/s | pairs |\n|---|---|---|---|");
    for (name, seconds, pairs) in self_joins(&records) {
        println!(
            "| {name} | {seconds:.2} | {:.2} | {pairs} |",
            records.len() as f64 / seconds / 1e6
        );
    }
    Ok(())
}
