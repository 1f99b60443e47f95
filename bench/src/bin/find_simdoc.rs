//! Finds all pairs of sets with resemblance at least a threshold with the crate `find-simdoc`: 1-bit min-hash and sketch sorting.
//!
//! `find_simdoc SETS.txt RESEMBLANCE [DIMENSIONS]`: one set per line, with elements separated by spaces. Sketches have 64 times DIMENSIONS
//! bits (20, as in the crate's example). Prints processor seconds, wall seconds, and pairs. One thread.

use std::env;
use std::fs;

use find_simdoc::JaccardSearcher;
use lookalike_bench::measure::Stopwatch;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [path, resemblance, rest @ ..] = arguments.as_slice() else {
        return Err("usage: find_simdoc SETS.txt RESEMBLANCE [DIMENSIONS]".into());
    };
    let resemblance: f64 = resemblance.parse()?;
    let dimensions = rest.first().map_or(Ok(20), |given| given.parse())?;
    let sets = fs::read_to_string(path)?;
    let watch = Stopwatch::start();
    let searcher = JaccardSearcher::new(1, Some(' '), Some(42))?;
    let searcher = searcher.build_sketches(sets.lines(), dimensions)?;
    let pairs = searcher.search_similar_pairs(1.0 - resemblance);
    println!("{:.3} {:.3} {}", watch.cpu(), watch.wall(), pairs.len());
    Ok(())
}
