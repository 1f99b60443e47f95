//! gaoya end to end: JSON Lines to `kept.jsonl`, one thread.
//!
//! `gaoya_pipeline FILE DIR [THRESHOLD [LIMIT]]`. `MinHasher32` over the shingles (aHash instead of
//! the default FNV, which is slower on strings), and `MinHashIndex` with the bands that gaoya
//! computes for the threshold and 128 functions. The index checks the estimate of each candidate.
//! Each record queries for similar earlier ones and is then inserted; clusters by union-find.

use std::error::Error;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use gaoya::minhash::{
    MinHashIndex, MinHasher, MinHasher32, SmallVecContainer, calculate_minhash_params,
};
use lookalike_bench::measure::{Stopwatch, peak_rss_bytes};
use lookalike_bench::records::{Words, lines, text};

const FUNCTIONS: usize = 128;
const SHINGLE: usize = 5;

type Index = MinHashIndex<u32, u32, SmallVecContainer<u32, 2>>;

struct Options {
    input: PathBuf,
    output: PathBuf,
    threshold: f64,
    limit: usize,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let usage = "usage: gaoya_pipeline FILE DIR [THRESHOLD [LIMIT]]";
    let mut arguments = std::env::args().skip(1);
    Ok(Options {
        input: arguments.next().ok_or(usage)?.into(),
        output: arguments.next().ok_or(usage)?.into(),
        threshold: arguments.next().map_or(Ok(0.8), |text| text.parse())?,
        limit: arguments
            .next()
            .map_or(Ok(usize::MAX), |text| text.parse())?,
    })
}

/// Union-find over record numbers; the root of a cluster is its first record.
struct Clusters(Vec<u32>);

impl Clusters {
    fn root(&mut self, mut item: u32) -> u32 {
        while self.0[item as usize] != item {
            let next = self.0[item as usize];
            self.0[item as usize] = self.0[next as usize];
            item = next;
        }
        item
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

/// Makes a sketch of every record, queries the index with it, and inserts it.
fn cluster(records: &[&[u8]], threshold: f64) -> Result<(Clusters, usize), Box<dyn Error>> {
    let (bands, rows) = calculate_minhash_params(threshold, FUNCTIONS);
    let hasher = ahash::RandomState::with_seeds(1, 2, 3, 4);
    let minhasher = MinHasher32::new_with_hasher(bands * rows, hasher);
    let mut index = Index::new_with_capacity(bands, rows, threshold, records.len(), 0.3);
    let mut clusters = Clusters((0..u32::try_from(records.len())?).collect());
    let mut words = Words::default();
    for (number, line) in (0u32..).zip(records) {
        words.read(&text(line)?);
        if words.shingles(SHINGLE).next().is_none() {
            continue;
        }
        let signature = minhasher.create_signature(words.shingles(SHINGLE));
        for other in index.query(&signature) {
            clusters.join(number, *other);
        }
        index.insert(number, signature);
    }
    Ok((clusters, bands))
}

/// Writes the records that are first in their cluster. Returns their number.
fn write_kept(folder: &Path, records: &[&[u8]], clusters: &Clusters) -> std::io::Result<usize> {
    fs::create_dir_all(folder)?;
    let mut out = BufWriter::with_capacity(1 << 20, fs::File::create(folder.join("kept.jsonl"))?);
    let mut kept = 0;
    for (number, line) in (0u32..).zip(records) {
        if clusters.0[number as usize] == number {
            out.write_all(line)?;
            kept += 1;
        }
    }
    out.flush()?;
    Ok(kept)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let watch = Stopwatch::start();
    let bytes = fs::read(&options.input)?;
    let records = lines(&bytes, options.limit);
    let (clusters, bands) = cluster(&records, options.threshold)?;
    let kept = write_kept(&options.output, &records, &clusters)?;
    println!(
        "{{\"engine\": \"gaoya\", \"version\": \"0.2.2\", \"docs\": {}, \"kept\": {kept}, \
         \"seconds_wall\": {:.3}, \"seconds_cpu\": {:.3}, \"peak_rss_bytes\": {}, \"bands\": {bands}}}",
        records.len(),
        watch.wall(),
        watch.cpu(),
        peak_rss_bytes()
    );
    Ok(())
}
