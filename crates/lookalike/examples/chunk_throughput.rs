//! Measures how fast texts are cut into chunks and the chunks hashed, in MB of text per second on one core.
//!
//! ```text
//! cargo run --release -p lookalike --example chunk_throughput -- TEXT.jsonl [ROUNDS]
//! ```
//!
//! The texts (field `text` of JSON lines) are in memory before the clock starts.

#![allow(clippy::print_stdout, reason = "an example prints what it measures")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Instant;

use lookalike::Scheme;
use lookalike::chunk::{ChunkBits, Chunker, Chunking};

const CHUNKINGS: [&str; 9] = [
    "doc",
    "lines:2",
    "lines:4",
    "lines:2:sliding",
    "fields:8:sliding",
    "words:8:sliding",
    "chars:20:sliding",
    "sentences",
    "paragraphs",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: TEXT.jsonl [ROUNDS]")?;
    let rounds: usize = arguments.next().map_or(Ok(3), |rounds| rounds.parse())?;
    let mut texts = Vec::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let record: serde_json::Value = serde_json::from_str(&line?)?;
        texts.extend(record["text"].as_str().map(str::to_owned));
    }
    let bytes: usize = texts.iter().map(String::len).sum();
    let paper = CHUNKINGS[..3].join(",");
    for names in CHUNKINGS.iter().copied().chain([paper.as_str()]) {
        let chunkings: Vec<Chunking> =
            names.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let mut chunker = Chunker::new(&chunkings, ChunkBits::Long, &Scheme::default());
        let mut times: Vec<f64> = (0..rounds).map(|_| time(&mut chunker, &texts)).collect();
        times.sort_by(f64::total_cmp);
        let median = times[rounds / 2];
        let speed = bytes as f64 / 1e6 / median;
        let size = bytes / 1_000_000;
        println!("{names}: {speed:.0} MB/s ({median:.2} s for {size} MB)");
    }
    Ok(())
}

fn time(chunker: &mut Chunker, texts: &[String]) -> f64 {
    let start = Instant::now();
    let mut chunks = 0;
    for text in texts {
        chunker.chunk(text);
        chunks += chunker.set(0).len();
    }
    std::hint::black_box(chunks);
    start.elapsed().as_secs_f64()
}
