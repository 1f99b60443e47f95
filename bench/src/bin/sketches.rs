//! Text to sketch, one thread: lookalike and the Rust peers on the same texts.
//!
//! `sketches FILE [MEGABYTES [WIDTH]]` prints one JSON object per (job, engine): documents, bytes of
//! text, shingles and CPU seconds of one pass (a median). `text to ...` includes splitting into
//! words, shingling and hashing; `hashes to ...` starts with 64-bit hashes of the shingles.
//! Repeated shingles count each time.

use std::error::Error;
use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;

use gaoya::minhash::{MinHasher, MinHasher32};
use gaoya::simhash::{SimHash, SimSipHasher64};
use lookalike::{FeatureExtractor, MinHash, OnePermutation, Scheme, Simhash};
use lookalike_bench::measure::{Stopwatch, best_and_median};
use lookalike_bench::records::{Words, lines, text};

const FUNCTIONS: usize = 128;
const PASSES: usize = 7;
const LEAST_SECONDS: f64 = 0.15;

/// The texts of a race, and the width of their shingles.
struct Course {
    texts: Vec<String>,
    width: usize,
    bytes: usize,
    shingles: usize,
}

impl Course {
    /// Reads every n-th text of a file, with n such that they have about `bytes` bytes.
    fn read(path: &str, bytes: usize, width: usize) -> Result<Course, Box<dyn Error>> {
        let file = std::fs::read(path)?;
        let mut course = Course {
            texts: Vec::new(),
            width,
            bytes: 0,
            shingles: 0,
        };
        let mut words = Words::default();
        let step = (file.len() / bytes).max(1);
        for line in lines(&file, usize::MAX).into_iter().step_by(step) {
            let text = text(line)?.into_owned();
            words.read(&text);
            course.bytes += text.len();
            course.shingles += words.shingles(width).count();
            course.texts.push(text);
        }
        Ok(course)
    }

    /// Returns the CPU seconds of one pass: the median over groups of passes that are long enough to be measured.
    fn seconds(pass: &mut dyn FnMut()) -> f64 {
        pass();
        let mut figures = Vec::new();
        while figures.len() < PASSES {
            let (watch, mut rounds) = (Stopwatch::start(), 0.0);
            while rounds < 1.0 || watch.wall() < LEAST_SECONDS {
                pass();
                rounds += 1.0;
            }
            figures.push(watch.cpu() / rounds);
        }
        best_and_median(figures).1
    }

    /// Times a pass and prints the figures.
    fn time(&self, job: &str, engine: &str, mut pass: impl FnMut()) {
        let seconds = Course::seconds(&mut pass);
        println!(
            "{{\"job\": \"{job}\", \"engine\": \"{engine}\", \"docs\": {}, \"bytes\": {}, \
             \"shingles\": {}, \"cpu\": {seconds:.6}}}",
            self.texts.len(),
            self.bytes,
            self.shingles
        );
    }

    /// Returns an extractor for the words and shingles of the race.
    fn extractor(&self) -> Result<FeatureExtractor, Box<dyn Error>> {
        let scheme = Scheme::default().shingle(format!("words:{}", self.width).parse()?);
        Ok(FeatureExtractor::new(&scheme))
    }

    /// Runs a pass of a peer, which gets the shingles of each text.
    fn pass<T>(&self, words: &mut Words, mut sketch: impl FnMut(&Words) -> T) {
        for text in &self.texts {
            words.read(text);
            black_box(sketch(words));
        }
    }
}

/// Times text to 64-bit simhash.
fn race_simhash(course: &Course) -> Result<(), Box<dyn Error>> {
    let job = format!("text to simhash-64, words:{}", course.width);
    let mut extractor = course.extractor()?;
    course.time(&job, "lookalike", || {
        for text in &course.texts {
            black_box(Simhash::fingerprint(extractor.features(text)));
        }
    });
    let (mut words, width) = (Words::default(), course.width);
    course.time(&job, "simhash (crate)", || {
        course.pass(&mut words, |w| simhash::simhash_stream(w.shingles(width)));
    });
    let gaoya = SimHash::<SimSipHasher64, u64, 64>::new(SimSipHasher64::new(1, 2));
    course.time(&job, "gaoya SimHash", || {
        course.pass(&mut words, |w| gaoya.create_signature(w.shingles(width)));
    });
    Ok(())
}

/// Times text to min-hash signature.
fn race_minhash(course: &Course) -> Result<(), Box<dyn Error>> {
    let job = format!("text to min-hash-128, words:{}", course.width);
    let mut extractor = course.extractor()?;
    let ours = MinHash::new(FUNCTIONS, 0);
    let mut signature = [0; FUNCTIONS];
    course.time(&job, "lookalike", || {
        for text in &course.texts {
            black_box(ours.signature_into(extractor.features(text), &mut signature));
        }
    });
    let one = OnePermutation::new(FUNCTIONS, 0);
    course.time(&job, "lookalike, one permutation", || {
        for text in &course.texts {
            black_box(one.signature_into(extractor.features(text), &mut signature));
        }
    });
    let (mut words, width) = (Words::default(), course.width);
    let hasher = ahash::RandomState::with_seeds(1, 2, 3, 4);
    let gaoya = MinHasher32::new_with_hasher(FUNCTIONS, hasher);
    course.time(&job, "gaoya MinHasher32", || {
        course.pass(&mut words, |w| gaoya.create_signature(w.shingles(width)));
    });
    Ok(())
}

/// Times given hashes to min-hash signature, that is, the kernel alone.
fn race_kernel(course: &Course) -> Result<(), Box<dyn Error>> {
    let job = format!("hashes to min-hash-128, words:{}", course.width);
    let mut extractor = course.extractor()?;
    let texts = course.texts.iter();
    let features: Vec<Vec<u64>> = texts.map(|t| extractor.features(t).to_vec()).collect();
    let ours = MinHash::new(FUNCTIONS, 0);
    let mut signature = [0; FUNCTIONS];
    course.time(&job, "lookalike", || {
        for document in &features {
            black_box(ours.signature_into(document, &mut signature));
        }
    });
    let one = OnePermutation::new(FUNCTIONS, 0);
    course.time(&job, "lookalike, one permutation", || {
        for document in &features {
            black_box(one.signature_into(document, &mut signature));
        }
    });
    let gaoya = MinHasher32::new_with_hasher(FUNCTIONS, Ready);
    course.time(&job, "gaoya MinHasher32", || {
        for document in &features {
            black_box(gaoya.create_signature(document.iter()));
        }
    });
    Ok(())
}

/// A hasher for values that are hashes already.
#[derive(Clone, Copy)]
struct Ready;

/// The state of [`Ready`].
struct ReadyHash(u64);

impl BuildHasher for Ready {
    type Hasher = ReadyHash;

    fn build_hasher(&self) -> ReadyHash {
        ReadyHash(0)
    }
}

impl Hasher for ReadyHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[..8]);
        self.0 = u64::from_le_bytes(word);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: sketches FILE [MEGABYTES [WIDTH]]")?;
    let megabytes: usize = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let width: usize = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let course = Course::read(&path, megabytes * 1_000_000, width)?;
    race_simhash(&course)?;
    race_minhash(&course)?;
    race_kernel(&course)
}
