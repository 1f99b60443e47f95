//! Helpers of the tests: files in a directory of their own, and readings of them.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use lookalike_corpus::{
    BadRecord, InputOptions, Inputs, Parser, ReadError, RecordPart, SkippedPart, TextState,
    raw_records,
};

/// A directory of files that is removed with the test.
pub(crate) struct Corpus {
    dir: tempfile::TempDir,
}

impl Corpus {
    pub(crate) fn new() -> Corpus {
        Corpus {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn with(name: impl AsRef<Path>, bytes: &[u8]) -> Corpus {
        let corpus = Corpus::new();
        corpus.add(name, bytes);
        corpus
    }

    pub(crate) fn add(&self, name: impl AsRef<Path>, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join("in").join(name)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Discovers one argument relative to the directory; an empty one means the directory.
    pub(crate) fn inputs(&self, name: &str, options: &InputOptions) -> Inputs {
        let argument: OsString = self.path(name).into();
        Inputs::discover(&[argument], options, self.dir.path()).unwrap()
    }
}

/// The fields of a record that tests compare.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) source: u32,
    pub(crate) number: u64,
    pub(crate) offset: u64,
    pub(crate) raw: Vec<u8>,
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) state: TextState,
    pub(crate) rank: Option<f64>,
    pub(crate) replaced: bool,
}

/// Everything that one reading returns.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) records: Vec<Result<Seen, BadRecord>>,
    pub(crate) blank_lines: u64,
    pub(crate) skips: Vec<SkippedPart>,
}

impl Reading {
    pub(crate) fn texts(&self) -> Vec<&str> {
        let good = self.records.iter().flatten();
        good.map(|seen| seen.text.as_str()).collect()
    }

    pub(crate) fn ids(&self) -> Vec<&str> {
        self.records
            .iter()
            .flatten()
            .map(|seen| seen.id.as_str())
            .collect()
    }

    pub(crate) fn reasons(&self) -> Vec<&str> {
        let bad = self
            .records
            .iter()
            .filter_map(|record| record.as_ref().err());
        bad.map(|bad| bad.reason.as_str()).collect()
    }

    /// Returns the reading without the chunk positions of bad records.
    pub(crate) fn placeless(mut self) -> Reading {
        for bad in self
            .records
            .iter_mut()
            .filter_map(|record| record.as_mut().err())
        {
            bad.raw = 0..bad.raw.len();
        }
        self
    }
}

pub(crate) fn read(inputs: &Inputs, options: &InputOptions) -> Reading {
    let mut parser = Parser::new(inputs, options);
    let mut reading = Reading::default();
    for chunk in inputs.chunks(options) {
        let mut chunk = chunk.unwrap();
        let before = reading.records.len() as u64;
        parser.parse(&chunk, &mut |record| {
            reading.records.push(record.map(|record| Seen {
                source: record.source,
                number: record.number,
                offset: record.offset,
                raw: record.raw.to_vec(),
                id: record.id.into_owned(),
                text: record.text.into_owned(),
                state: record.text_state,
                rank: record.order_key.number(),
                replaced: record.replaced,
            }));
        });
        assert_eq!(reading.records.len() as u64 - before, chunk.records);
        reading.blank_lines += chunk.blank_lines;
        reading.skips.append(&mut chunk.skips);
    }
    reading
}

/// A raw record with its parts joined.
#[derive(Debug, PartialEq)]
pub(crate) struct Raw {
    pub(crate) source: u32,
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: &'static [u8],
    pub(crate) is_file: bool,
}

pub(crate) fn read_raw(inputs: &Inputs, options: &InputOptions) -> Vec<Raw> {
    let mut records: Vec<Raw> = Vec::new();
    raw_records::<ReadError>(inputs, options, &mut |raw| {
        if raw.part.begins() {
            records.push(Raw {
                source: raw.source,
                number: raw.number,
                bytes: raw.bytes.to_vec(),
                end: raw.end,
                is_file: raw.part == RecordPart::File,
            });
        } else {
            let last = records.last_mut().unwrap();
            assert_eq!((last.source, last.number), (raw.source, raw.number));
            last.bytes.extend_from_slice(raw.bytes);
            last.end = raw.end;
        }
        Ok(())
    })
    .unwrap();
    records
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Returns the lines of a shared corpus, or prints a note and returns `None` if the corpora are not available.
#[expect(
    clippy::print_stderr,
    reason = "a skipped test must not look like a passed one"
)]
pub(crate) fn shared_lines(name: &str) -> Option<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data")
        .join(name);
    let Ok(packed) = fs::File::open(&path) else {
        eprintln!("skipped: {name} is not at hand");
        return None;
    };
    let lines = BufReader::new(flate2::read::MultiGzDecoder::new(packed)).lines();
    Some(lines.collect::<Result<_, _>>().unwrap())
}
