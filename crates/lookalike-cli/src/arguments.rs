//! Arguments that several subcommands share: what to read, how texts become features, what to use of the machine.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use lookalike::scheme::{Case, Normalization, Scheme, Segmentation, Shingle, Sketch, Weight};
use lookalike_batch::{Limits, Method, SPOOL};
use lookalike_corpus::{FieldPath, Format, InputOptions, RankField};

use tempfile::{Builder, TempDir};

use crate::failure::Failure;
use crate::{machine, size};

/// What to read.
#[derive(Args)]
pub(crate) struct InputArguments {
    /// Files, directories, globs, or - for standard input; JSONL, text, source code or HTML, plain or .gz or .zst
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<OsString>,

    /// Read everything as jsonl, text or html, whatever names and contents say
    #[arg(long, value_name = "FORMAT", help_heading = "Input")]
    format: Option<Format>,

    /// Field of JSONL records that holds the id; a.b for nested fields [default: id, else url, else made from
    /// file and line]
    #[arg(long, value_name = "FIELD", help_heading = "Input")]
    id: Option<FieldPath>,

    /// Field of JSONL records that holds the text [default: text, else html, whose visible text is taken]
    #[arg(long, value_name = "FIELD", help_heading = "Input")]
    text: Option<FieldPath>,

    /// Longer documents are kept, but not compared; they are counted
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size::parse, help_heading = "Input")]
    max_document: u64,

    /// Stop at the first record that cannot be read, instead of counting and listing it
    #[arg(long, help_heading = "Input")]
    pub(crate) strict: bool,
}

impl InputArguments {
    /// How sources are read, with the field that ranks survivors.
    pub(crate) fn options(&self, rank_field: Option<RankField>) -> InputOptions {
        InputOptions {
            format: self.format,
            id_field: self.id.clone(),
            text_field: self.text.clone(),
            rank_field,
            max_document_bytes: self.max_document,
            ..InputOptions::default()
        }
    }
}

/// How texts become features.
#[derive(Args)]
pub(crate) struct SchemeArguments {
    /// Features: runs of words (words:5) or of characters (chars:9)
    #[arg(
        long,
        value_name = "KIND:N",
        default_value = "words:5",
        help_heading = "Features"
    )]
    shingle: Shingle,

    /// What a word is: unicode (by the rules of Unicode) or word-chars (runs of letters, digits and _, as \w+)
    #[arg(
        long,
        value_name = "RULE",
        default_value = "unicode",
        help_heading = "Features"
    )]
    segment: Segmentation,

    /// Unicode normalisation: nfc, nfkc or none
    #[arg(
        long,
        value_name = "FORM",
        default_value = "nfc",
        help_heading = "Features"
    )]
    normalize: Normalization,

    /// lower or keep
    #[arg(
        long,
        value_name = "CASE",
        default_value = "lower",
        help_heading = "Features"
    )]
    case: Case,

    /// Seed of all hashes: sketches of different seeds cannot be compared
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        help_heading = "Features"
    )]
    seed: u64,
}

impl SchemeArguments {
    /// The scheme with a sketch.
    pub(crate) fn scheme(&self, weight: Weight, sketch: Sketch) -> Scheme {
        Scheme {
            normalization: self.normalize,
            case: self.case,
            segmentation: self.segment,
            shingle: self.shingle,
            weight,
            seed: self.seed,
            sketch,
        }
    }
}

/// How candidates are found and what counts as near.
#[derive(Args)]
pub(crate) struct MethodArguments {
    /// allpairs (finds every pair), minhash, supershingle, simhash, or copies (exact ones only)
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "allpairs",
        help_heading = "Method"
    )]
    pub(crate) method: Method,

    /// Least resemblance of near-duplicates, above 0 and at most 1
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.8,
        help_heading = "Method"
    )]
    pub(crate) threshold: f64,

    /// simhash: most bits in which fingerprints of candidates differ, 0 to 16
    #[arg(
        long,
        value_name = "BITS",
        default_value_t = 3,
        help_heading = "Method"
    )]
    pub(crate) distance: u32,

    /// simhash: count features once (set) or as often as they occur (tf)
    #[arg(
        long,
        value_name = "WEIGHT",
        default_value = "set",
        help_heading = "Method"
    )]
    pub(crate) weight: Weight,

    /// minhash: number of hash functions
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Method")]
    pub(crate) functions: u16,

    /// minhash: share of the pairs at the threshold that must be found
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.999,
        help_heading = "Method"
    )]
    pub(crate) recall: f64,
}

impl MethodArguments {
    /// The sketch that the method needs.
    pub(crate) fn sketch(&self) -> Sketch {
        match self.method {
            Method::Copies | Method::AllPairs => Sketch::None,
            Method::MinHash => Sketch::MinHash {
                functions: self.functions,
            },
            Method::SuperShingle => Sketch::SuperShingle {
                groups: 6,
                rows: 14,
            },
            Method::Simhash => Sketch::Simhash,
        }
    }

    /// Refuses numbers that mean nothing.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.recall > 0.0 && self.recall < 1.0 {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "recall {} is not between 0 and 1: use --method allpairs to find every pair",
            self.recall
        )))
    }
}

/// What to use of the machine, and what to print.
#[derive(Args)]
pub(crate) struct RunArguments {
    /// Worker threads [default: all processors]
    #[arg(long, value_name = "N", value_parser = threads, help_heading = "Running")]
    threads: Option<usize>,

    /// Resident memory of the whole job; beyond it temporary files are used [default: half of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "Running")]
    memory: Option<u64>,

    /// Where temporary files go [default: the output directory, else the system's]
    #[arg(long, value_name = "DIR", help_heading = "Running")]
    pub(crate) tmp: Option<PathBuf>,

    /// Print the summary as one JSON object
    #[arg(long, help_heading = "Running")]
    pub(crate) json: bool,

    /// Print no progress and no summary
    #[arg(long, short, help_heading = "Running")]
    pub(crate) quiet: bool,
}

impl RunArguments {
    /// A folder for temporary files in `--tmp`, else in `default`; it vanishes with the job.
    pub(crate) fn spool(&self, default: PathBuf) -> Result<TempDir, Failure> {
        let parent = self.tmp.clone().unwrap_or(default);
        Builder::new()
            .prefix(SPOOL)
            .tempdir_in(&parent)
            .map_err(|error| {
                let reason = error.to_string();
                let reason = reason.split(" at path").next().unwrap_or_default();
                Failure::Failed(format!(
                    "{}: {reason}: temporary files go there; name another directory with --tmp",
                    parent.display()
                ))
            })
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            threads: self.threads.unwrap_or_else(machine::default_threads),
            memory: self.memory.unwrap_or_else(machine::default_memory),
        }
    }
}

/// 1 to 1024 threads.
fn threads(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=1024).contains(n))
        .ok_or_else(|| format!("{text:?} is not a number of threads from 1 to 1024"))
}

/// The command line as it was given, quoted where a shell would need it.
pub(crate) fn command_line() -> String {
    let quoted = |argument: OsString| {
        let text = argument.to_string_lossy().into_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            text
        } else {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
    };
    let words = std::env::args_os().skip(1).map(quoted);
    std::iter::once("lookalike".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}
