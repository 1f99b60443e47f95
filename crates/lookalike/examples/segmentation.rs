//! Measures how fast texts are cut into words: `segmentation FILE [seconds]`, with one text in the file.
//!
//! Prints megabytes and words per second on one thread, by Unicode's rules and by dictionaries.

use std::hint::black_box;
use std::time::{Duration, Instant};

use lookalike::{Scheme, Segmentation, Segmenter};

#[expect(clippy::print_stdout, reason = "an example talks to a person")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let text = std::fs::read_to_string(arguments.next().ok_or("name a file")?)?;
    let seconds = arguments.next().map_or(Ok(3), |seconds| seconds.parse())?;
    for segmentation in [Segmentation::Unicode, Segmentation::Languages] {
        let scheme = Scheme::default().segmentation(segmentation);
        let mut segmenter = Segmenter::new(&scheme);
        // Dictionaries are read on first use.
        let loading = Instant::now();
        segmenter.words("\u{4e2d}\u{6587}", |word| {
            black_box(word);
        });
        let loading = loading.elapsed();
        let (start, mut rounds, mut words) = (Instant::now(), 0_u32, 0_u64);
        while start.elapsed() < Duration::from_secs(seconds) {
            segmenter.words(&text, |word| {
                words += u64::from(!black_box(word).is_empty())
            });
            rounds += 1;
        }
        let spent = start.elapsed().as_secs_f64();
        println!(
            "{segmentation}: {:.1} MB/s, {:.2} million words/s, {} words, first use {:.0} ms",
            text.len() as f64 * f64::from(rounds) / spent / 1e6,
            words as f64 / spent / 1e6,
            words / u64::from(rounds),
            loading.as_secs_f64() * 1e3,
        );
    }
    Ok(())
}
