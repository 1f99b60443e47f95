//! How fast documents come in: megabytes a second for reading, JSON parsing and HTML stripping.
//!
//! `cargo run --release -p lookalike-corpus --example throughput -- FILE...`: reads the files three
//! times and prints the best of each step. Without arguments it makes 64 MiB of its own.

#![expect(clippy::print_stdout, reason = "an example that reports figures")]

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write;
use std::time::{Duration, Instant};

use lookalike_corpus::{Chunk, HtmlText, InputOptions, Inputs, Parser};

const ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.is_empty() {
        let path = dir.path().join("made.jsonl");
        std::fs::write(&path, made_lines())?;
        arguments.push(path.into());
    }
    let options = InputOptions::default();
    let inputs = Inputs::discover(&arguments, &options, dir.path())?;
    let mut best = [Duration::MAX; 2];
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut counts = (0, 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        chunks = inputs.chunks(&options).collect::<Result<_, _>>()?;
        best[0] = best[0].min(start.elapsed());
        let start = Instant::now();
        counts = parse(&inputs, &options, &chunks);
        best[1] = best[1].min(start.elapsed());
    }
    let bytes: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
    println!(
        "{} records, {} bytes, {} bytes of text",
        counts.0, bytes, counts.1
    );
    report("read and decompress", bytes, best[0]);
    report("parse", bytes, best[1]);
    let page = made_page();
    let mut html = HtmlText::new();
    let mut text = String::new();
    let start = Instant::now();
    for _ in 0..ROUNDS {
        text.clear();
        html.extract(&page, &mut text);
    }
    report("HTML to text", page.len(), start.elapsed() / ROUNDS as u32);
    Ok(())
}

fn parse(inputs: &Inputs, options: &InputOptions, chunks: &[Chunk]) -> (u64, usize) {
    let mut parser = Parser::new(inputs, options);
    let mut counts = (0, 0);
    for chunk in chunks {
        parser.parse(chunk, &mut |record| {
            counts.0 += 1;
            counts.1 += record.map_or(0, |record| record.text.len());
        });
    }
    counts
}

fn report(step: &str, bytes: usize, time: Duration) {
    let rate = bytes as f64 / 1e6 / time.as_secs_f64();
    println!("{step:<20} {rate:>8.0} MB/s");
}

const SENTENCE: &str = "The crews had left at dawn, and the harbour lay empty in the rain.";

fn made_lines() -> String {
    let mut lines = String::new();
    let mut number = 0;
    while lines.len() < 64 << 20 {
        number += 1;
        let text = [SENTENCE; 8].join(if number % 2 == 0 { " " } else { "\\n" });
        writeln!(
            lines,
            "{{\"id\":{number},\"lang\":\"en\",\"text\":\"{text}\"}}"
        )
        .ok();
    }
    lines
}

fn made_page() -> String {
    let mut page = String::from("<!DOCTYPE html><html><body>");
    while page.len() < 64 << 20 {
        write!(
            page,
            "<div class=\"entry odd\" id=\"x1\"><h2><a href=\"/a/b?c=d\">{SENTENCE}</a></h2>\n  <p>{SENTENCE} \
             <em>{SENTENCE}</em> &amp; more&nbsp;so</p></div>\n"
        )
        .ok();
    }
    page
}
