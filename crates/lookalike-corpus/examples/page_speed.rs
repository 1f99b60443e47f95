//! Measures how fast web archives are read and HTML is converted to text, on one core; one of the programs that `bench/pages.py` compares.
//!
//! `cargo run --release -p lookalike-corpus --example page_speed -- PAGES.jsonl[.gz] [ARCHIVE.warc.gz]`: converts the field `html` of the first file
//! in each mode of this build, then reads all records of the archive with their bodies. Measures the CPU time of the thread. Prints one line of JSON
//! for each measurement.

#![expect(clippy::print_stdout, reason = "an example that reports figures")]

use std::error::Error;
use std::ffi::OsString;
use std::time::Instant;

use lookalike::HtmlMode;
use lookalike_corpus::{HtmlText, InputOptions, Inputs, raw_records};

/// Minimum duration of each measurement, in seconds.
const LONG_ENOUGH: f64 = 2.0;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let pages = pages(arguments.next().ok_or("which file of pages?")?)?;
    for mode in HtmlMode::ALL {
        if let Ok(mut extractor) = HtmlText::new(mode.into()) {
            let mut text = String::new();
            measure(mode.name(), || {
                for page in &pages {
                    text.clear();
                    extractor.extract(page, &mut text);
                }
                Ok(pages.iter().map(|page| page.len() as u64).sum())
            })?;
        }
    }
    let Some(archive) = arguments.next() else {
        return Ok(());
    };
    let options = InputOptions::default();
    let spool = std::env::temp_dir();
    let inputs = Inputs::discover(&[archive], &options, &spool)?;
    measure("archive", || {
        let mut bytes = 0;
        raw_records::<lookalike_corpus::ReadError>(&inputs, &options, &mut |record| {
            bytes += record.bytes.len() as u64;
            Ok(())
        })?;
        Ok(bytes)
    })
}

fn pages(path: OsString) -> Result<Vec<String>, Box<dyn Error>> {
    let options = InputOptions::default();
    let inputs = Inputs::discover(&[path], &options, &std::env::temp_dir())?;
    let mut pages = Vec::new();
    raw_records::<Box<dyn Error>>(&inputs, &options, &mut |record| {
        let page: serde_json::Value = serde_json::from_slice(record.bytes)?;
        pages.extend(page["html"].as_str().map(str::to_owned));
        Ok(())
    })?;
    Ok(pages)
}

/// Repeats `work`, which returns the number of bytes that it processed, and prints its speed.
fn measure(
    name: &str,
    mut work: impl FnMut() -> Result<u64, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    work()?;
    let clock = Clock::start();
    let (mut bytes, mut rounds) = (0, 0);
    while clock.seconds() < LONG_ENOUGH {
        bytes += work()?;
        rounds += 1;
    }
    let seconds = clock.seconds();
    println!(
        "{{\"name\":\"{name}\",\"rounds\":{rounds},\"seconds\":{seconds:.3},\"mb_a_second\":{:.1}}}",
        bytes as f64 / 1e6 / seconds
    );
    Ok(())
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
