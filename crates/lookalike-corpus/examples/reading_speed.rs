//! Measures how fast documents are read, in megabytes per second: reading, JSON parsing and HTML stripping.
//!
//! `cargo run --release -p lookalike-corpus --example reading_speed -- FILE...`: reads all files several times and measures the CPU time of the
//! thread. Without arguments it generates 32 MiB of input.

#![expect(clippy::print_stdout, reason = "an example that reports figures")]

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write;
use std::time::Instant;

use lookalike::HtmlMode;
use lookalike_corpus::{HtmlText, InputOptions, Inputs, Parser, RecordChunk};

const ROUNDS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let made = arguments.is_empty();
    if made {
        let path = dir.path().join("made.jsonl");
        std::fs::write(&path, made_lines())?;
        arguments.push(path.into());
    }
    let options = InputOptions::default();
    let inputs = Inputs::discover(&arguments, &options, dir.path())?;
    let chunks = read(&inputs, &options)?;
    parse(&inputs, &options, &chunks);
    if made {
        strip();
    }
    Ok(())
}

fn read(inputs: &Inputs, options: &InputOptions) -> Result<Vec<RecordChunk>, Box<dyn Error>> {
    let clock = Clock::start();
    let mut bytes = 0;
    for _ in 0..2 {
        for chunk in inputs.chunks(options) {
            bytes += chunk?.bytes.len();
        }
    }
    report("read and decompress", bytes, clock.seconds());
    Ok(inputs.chunks(options).collect::<Result<_, _>>()?)
}

fn parse(inputs: &Inputs, options: &InputOptions, chunks: &[RecordChunk]) {
    let mut parser = Parser::new(inputs, options);
    let (mut records, mut text_bytes) = (0, 0);
    let clock = Clock::start();
    for chunk in (0..ROUNDS).flat_map(|_| chunks) {
        parser.parse(chunk, &mut |record| {
            records += 1;
            text_bytes += record.map_or(0, |record| record.text.len());
        });
    }
    let bytes: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
    report("parse", bytes * ROUNDS, clock.seconds());
    println!(
        "{} records, {} bytes of text",
        records / ROUNDS,
        text_bytes / ROUNDS
    );
}

fn strip() {
    let page = made_page();
    let mut text = String::new();
    let clock = Clock::start();
    for _ in 0..ROUNDS * 8 {
        text.clear();
        HtmlText::new(HtmlMode::Visible.into())
            .expect("visible text needs no feature")
            .extract(&page, &mut text);
    }
    report(
        "made HTML to text",
        page.len() * ROUNDS * 8,
        clock.seconds(),
    );
}

/// CPU time of this thread, because the machine may be busy, or elapsed time if the system does not report that.
struct Clock(Instant, Option<f64>);

impl Clock {
    fn start() -> Clock {
        Clock(Instant::now(), Self::running())
    }

    fn running() -> Option<f64> {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let nanoseconds: f64 = told.split(' ').next()?.parse().ok()?;
        Some(nanoseconds / 1e9)
    }

    fn seconds(&self) -> f64 {
        match (self.1, Self::running()) {
            (Some(before), Some(now)) => now - before,
            _ => self.0.elapsed().as_secs_f64(),
        }
    }
}

fn report(step: &str, bytes: usize, seconds: f64) {
    println!("{step:<20} {:>8.0} MB/s", bytes as f64 / 1e6 / seconds);
}

const SENTENCE: &str = "The crews had left at dawn, and the harbour lay empty in the rain.";

fn made_lines() -> String {
    let mut lines = String::new();
    let mut number = 0;
    while lines.len() < 32 << 20 {
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
    while page.len() < 1 << 20 {
        write!(
            page,
            "<div class=\"entry odd\" id=\"x1\"><h2><a href=\"/a/b?c=d\">{SENTENCE}</a></h2>\n  <p>{SENTENCE} \
             <em>{SENTENCE}</em> &amp; more&nbsp;so</p></div>\n"
        )
        .ok();
    }
    page
}
