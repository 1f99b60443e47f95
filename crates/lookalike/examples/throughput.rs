//! Measures how fast each stage of the core is on a text of yours, on one core:
//! `cargo run --release -p lookalike --example throughput -- TEXT [KILOBYTES [SHINGLE...]]`.
//!
//! The text is cut into documents of about 10 kB at line ends. Every stage runs over all of them five times, and the best run counts, in processor
//! time if the system reports it.
#![allow(clippy::print_stdout, reason = "an example shows its figures")]

use std::hint::black_box;
use std::time::Instant;

use lookalike::{
    FeatureExtractor, MinHash, OnePermutation, Scheme, Segmenter, Simhash, intersection_size,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args
        .next()
        .ok_or("usage: throughput TEXT [KILOBYTES_A_DOCUMENT [SHINGLE...]]")?;
    let size = args.next().map_or(Ok(10.0), |arg| arg.parse::<f64>())? * 1000.0;
    let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
    let documents = cut(&text, size as usize);
    let level = lookalike::level_name();
    println!(
        "{} bytes, {} documents, {level} kernels",
        text.len(),
        documents.len()
    );
    let mut shingles: Vec<String> = args.collect();
    if shingles.is_empty() {
        shingles = ["words:1", "words:4", "chars:5"].map(str::to_owned).into();
    }
    for shingle in shingles {
        let scheme = Scheme::default().shingle(shingle.parse()?);
        stages(&scheme, &text, &documents);
    }
    Ok(())
}

fn stages(scheme: &Scheme, text: &str, documents: &[&str]) {
    println!("\n{}", scheme.shingle);
    let mut extractor = FeatureExtractor::new(scheme);
    let count: usize = documents
        .iter()
        .map(|document| extractor.features(document).len())
        .sum();
    let report = |name: &str, run: &mut dyn FnMut(&str)| {
        let seconds = best(|| documents.iter().for_each(|document| run(document)));
        let bytes = text.len() as f64 / seconds / 1e6;
        let features = count as f64 / seconds / 1e6;
        println!("{name:28} {bytes:8.0} MB/s {features:8.1} M features/s");
    };
    let mut segmenter = Segmenter::new(scheme);
    let mut words = 0;
    report("words, one by one", &mut |text| {
        segmenter.words(text, |_| words += 1)
    });
    report("features", &mut |text| {
        _ = black_box(extractor.features(text))
    });
    report("features, simhash", &mut |text| {
        _ = black_box(Simhash::fingerprint(extractor.features(text)));
    });
    report("feature set", &mut |text| {
        _ = black_box(extractor.feature_set(text))
    });
    let minhash = MinHash::new(128, 0);
    let mut signature = vec![0; 128];
    report("features, minhash:128", &mut |text| {
        _ = black_box(minhash.signature_into(extractor.features(text), &mut signature));
    });
    let one = OnePermutation::new(128, 0);
    report("features, oph:128", &mut |text| {
        _ = black_box(one.signature_into(extractor.features(text), &mut signature));
    });
    let all: Vec<u64> = documents
        .iter()
        .flat_map(|text| extractor.features(text).to_vec())
        .collect();
    sketches_alone(&all, &mut signature, &minhash);
}

/// Measures the stages after the features, on features that are ready in blocks of 1600.
fn sketches_alone(features: &[u64], signature: &mut [u32], minhash: &MinHash) {
    let report = |name: &str, seconds: f64| {
        println!(
            "{name:28} {:22.1} M features/s",
            features.len() as f64 / seconds / 1e6
        );
    };
    let blocks = || features.chunks(1600);
    report(
        "simhash alone",
        best(|| blocks().for_each(|b| _ = black_box(Simhash::fingerprint(b)))),
    );
    report(
        "minhash:128 alone",
        best(|| blocks().for_each(|b| _ = black_box(minhash.signature_into(b, signature)))),
    );
    let one = OnePermutation::new(128, 0);
    for length in [36, 1600] {
        let blocks = || features.chunks(length);
        report(
            &format!("minhash:128 of {length}"),
            best(|| blocks().for_each(|b| _ = black_box(minhash.signature_into(b, signature)))),
        );
        report(
            &format!("oph:128 of {length}"),
            best(|| blocks().for_each(|b| _ = black_box(one.signature_into(b, signature)))),
        );
    }
    let (mut sorted, mut scratch) = (Vec::new(), Vec::new());
    for length in [40, 1000] {
        let seconds = best(|| {
            features.chunks(length).for_each(|block| {
                sorted.clear();
                sorted.extend_from_slice(block);
                lookalike::sort_dedup(&mut sorted, &mut scratch);
            });
        });
        report(&format!("sort_dedup of {length}"), seconds);
    }
    let sets: Vec<Vec<u64>> = features
        .chunks(1000)
        .map(|b| set(b, &mut scratch))
        .collect();
    let seconds = best(|| {
        sets.windows(2)
            .for_each(|pair| _ = black_box(intersection_size(&pair[0], &pair[1])));
    });
    report("intersection of 1000 x 1000", seconds / 2.0);
}

fn set(features: &[u64], scratch: &mut Vec<u64>) -> Vec<u64> {
    let mut set = features.to_vec();
    lookalike::sort_dedup(&mut set, scratch);
    set
}

/// Returns the seconds of the fastest of five runs. The system counts in steps of some milliseconds, so a short run is repeated many times.
fn best(mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut time = |_| {
        let (before, mut runs) = (seconds(start), 0.0);
        loop {
            run();
            runs += 1.0;
            let taken = seconds(start) - before;
            if taken > 0.1 {
                return taken / runs;
            }
        }
    };
    (0..5).map(&mut time).fold(f64::INFINITY, f64::min)
}

/// Returns the seconds that this thread has run or, if the system does not report this, that have passed.
fn seconds(start: Instant) -> f64 {
    let on_cpu = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = on_cpu
        .as_deref()
        .and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(
        || start.elapsed().as_secs_f64(),
        |nanoseconds| nanoseconds / 1e9,
    )
}

/// Cuts a text after line ends into documents of about `size` bytes.
fn cut(text: &str, size: usize) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut rest = text;
    while rest.len() > size {
        let bytes = rest.as_bytes();
        let line = bytes[size..].iter().position(|&byte| byte == b'\n');
        let (document, tail) = rest.split_at(line.map_or(rest.len(), |line| size + line + 1));
        documents.push(document);
        rest = tail;
    }
    documents.push(rest);
    documents
}
