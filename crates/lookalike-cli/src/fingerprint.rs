//! `lookalike fingerprint`: computes the simhash or another sketch of every document, and converts fingerprints between formats.

use std::path::{Path, PathBuf};

use lookalike::Preset;
use lookalike::scheme::{Sketch, Weight};
use lookalike_batch::FingerprintJob;
use lookalike_batch::fingerprints::files::{
    ArchiveScratch, CodeFormat, CodeImport, FingerprintSource,
};
use lookalike_corpus::{Compression, InputOptions};

use crate::arguments::{
    BoilerplateArguments, InputArguments, RunArguments, SchemeArguments, fingerprint_sources,
    preset_name, preset_shingle, preset_sketch,
};
use crate::console;
use crate::failure::Failure;
use crate::output_file::{begin_file, check_output, files_of, is_stream, write_output};
use crate::radius_warning::{self, CheckedFeatures, DEFAULT_DISTANCE, RadiusUse};

#[derive(clap::Args)]
#[command(
    mut_arg("shingle", preset_shingle),
    mut_arg("sketch", preset_sketch),
    after_help = "\
Prints {\"id\":..,\"fingerprint\":\"16 hex digits\"} for each document, in input order; null for a
text without features. Only fingerprints of one scheme can be compared; the summary names
the scheme.

The name of the output chooses its format: .jsonl; .lkfp, a fingerprint file, with the
scheme and checksums; .u64, little-endian 64-bit numbers without ids (each also .gz or
.zst); .parquet, with the columns id and fingerprint; .lkar, an archive: sorted, without
ids, at 5 to 6 bytes per fingerprint, with the scheme. Only .jsonl and .parquet keep texts
without features. With --import, any of them is read and written as any other; lines without
ids, among others with ids, get their digits as ids.

With --sketch simhash:32 or simhash:128, fingerprints have 8 or 32 digits, files of raw
numbers have names such as .u32 or .u128, and there are no archives. The shorter fingerprint
is a part of the longer one; only fingerprints of the same width are compared.

Longer sketches are for `join --equal` and `cluster --equal`: --sketch super-shingle:6x14,
of which near-duplicates share two (48 bytes per page), or minhash:N, the minima of N
functions, of which near-duplicates share a fraction equal to their resemblance. They are
stored as super_shingles or signature in .jsonl and .parquet, as 16 or 8 hexadecimal digits
each, and in .lkfp; raw numbers without ids go to names such as .u64x6 or .u32x128.

Example:
  lookalike fingerprint crawl.jsonl -o crawl.lkfp
  lookalike fingerprint --import crawl.lkfp -o crawl.parquet
  lookalike index build crawl.parquet -o crawl.lkix
  lookalike fingerprint crawl.jsonl --sketch super-shingle:6x14 -o shingles.lkfp"
)]
pub(crate) struct FingerprintJobArguments {
    #[command(flatten)]
    input: InputArguments,

    /// Write to this file (.jsonl, .lkfp, .u64, .parquet or .lkar, see below) instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Read fingerprints, in any of the formats of -o, and write them unchanged
    #[arg(long)]
    import: bool,

    /// Features and sketch for collections of a kind: one-topic, pages of a focused crawl (words:3, simhash:128)
    ///
    /// `join`, `cluster` and `index build` have the same option for the distance that goes with them.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = preset_name(),
        conflicts_with_all = ["shingle", "sketch", "import"],
        help_heading = "Features"
    )]
    preset: Option<Preset>,

    /// Sketch of each document: simhash:64 (or 32 or 128), super-shingle:GxR or minhash:N
    #[arg(
        long,
        value_name = "SKETCH",
        default_value = "simhash:64",
        value_parser = stored_sketch,
        conflicts_with = "import",
        help_heading = "Features"
    )]
    sketch: Sketch,

    /// Weights of features: set (each counts once), tf, log-tf, idf, tf-idf, log-tf-idf, tf-length-noun, or tf-length-noun:N, with
    /// λ = N instead of a λ that depends on the length of the text
    #[arg(
        long,
        value_name = "WEIGHT",
        default_value = "set",
        help_heading = "Features"
    )]
    weight: Weight,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    #[command(flatten)]
    run: RunArguments,
}

/// Parses a sketch. The error for an unknown one lists those that files can hold.
fn stored_sketch(text: &str) -> Result<Sketch, String> {
    text.parse().map_err(|_| {
        "use simhash:64 (or 32 or 128), super-shingle:GxR (each 1 to 255, such as super-shingle:6x14) or minhash:N (1 to 65535)"
            .to_owned()
    })
}

impl FingerprintJobArguments {
    /// Returns where fingerprints are sorted: by default next to the output, which is about as large.
    fn scratch(&self) -> ArchiveScratch<'_> {
        let beside = self.output.as_deref().and_then(Path::parent);
        // The parent of a bare name is the empty path, which system calls do not accept for the current folder.
        let beside = beside.filter(|folder| !folder.as_os_str().is_empty());
        let told = self.run.tmp.as_deref();
        ArchiveScratch {
            folder: told.or(beside).unwrap_or(Path::new(".")),
            memory: self.run.limits().memory,
        }
    }

    /// Returns the output file, or `None` if lines go to a stream.
    fn file(&self) -> Option<&Path> {
        let lines = Some((CodeFormat::JsonLines, Compression::None));
        // A pipe or a device gets plain lines as they are made.
        let takes_lines = |path: &Path| {
            is_stream(path) && (CodeFormat::of(path) == lines || CodeFormat::of(path).is_none())
        };
        self.output.as_deref().filter(|path| !takes_lines(path))
    }
}

pub(crate) fn run(arguments: &FingerprintJobArguments) -> Result<(), Failure> {
    if arguments.import {
        return import(arguments);
    }
    if arguments.sketch.fingerprint_bits() == 0 && arguments.weight != Weight::Set {
        return Err(Failure::Usage(format!(
            "--weight {} has no effect here: {} is made from the set of features; leave one of the two options out",
            arguments.weight, arguments.sketch
        )));
    }
    let mut options = arguments
        .input
        .options(None)
        .fields(arguments.scheme.fields);
    let boilerplate = &arguments.boilerplate;
    let scheme = |options: &InputOptions| {
        arguments
            .scheme
            .scheme(arguments.weight, arguments.sketch, options)
    };
    // Checked before anything is read, if possible: wrong settings should not cost time.
    let early = boilerplate.is_off().then(|| scheme(&options)).transpose()?;
    let limits = arguments.run.document_limits();
    let console = arguments.run.console();
    let spool = arguments.run.spool(std::env::temp_dir())?;
    let inputs = arguments
        .input
        .discover(&options, spool.path(), None, &console)?;
    let read = files_of(&inputs).chain(arguments.scheme.files());
    check_output(arguments.output.as_deref(), read)?;
    boilerplate.learn(&inputs, &mut options, &limits, spool.path(), &console)?;
    let (scheme, terms) = early.map_or_else(|| scheme(&options), Ok)?;
    let scan = arguments.input.scan(&inputs, &options, &limits, &console);
    let job = FingerprintJob::new(scan).scheme(scheme).terms(terms);
    let summary = console.ended(match arguments.file() {
        Some(path) => Ok(job.write_file(path, begin_file, arguments.scratch())?),
        None => write_output(arguments.output.as_deref(), |out| job.write(out)),
    })?;
    arguments.input.warn_of_unused(&inputs, &console);
    let output = arguments.output.as_deref();
    console.summarise(&summary, output, console::fingerprint_summary)?;
    if let (true, Some(features)) = (arguments.run.warns(), CheckedFeatures::of(&scheme)) {
        // The distance at which these fingerprints will probably be searched.
        let distance = arguments.preset.map_or(DEFAULT_DISTANCE, Preset::distance);
        radius_warning::warn(features, distance, RadiusUse::Fingerprints);
    }
    arguments.input.losses.end(&summary.skipped)
}

/// Converts fingerprints from one format to another.
fn import(arguments: &FingerprintJobArguments) -> Result<(), Failure> {
    let spool = arguments.run.spool(std::env::temp_dir())?;
    let inputs = fingerprint_sources(&arguments.input.inputs, spool.path())?;
    let read = inputs.iter().map(FingerprintSource::path);
    check_output(arguments.output.as_deref(), read)?;
    let console = arguments.run.console();
    let file = arguments.file();
    let job = CodeImport::new(&inputs, arguments.scratch())
        .output(file)
        .begin(begin_file)
        .losses(arguments.input.losses.policy())
        .observer(&console);
    let stream = arguments.output.as_deref().filter(|_| file.is_none());
    // This also applies to a file: the job writes it itself, and nothing to `out`, because some formats need more than a stream.
    let summary = console.ended(write_output(stream, |out| job.run(out)))?;
    let output = arguments.output.as_deref();
    console.summarise(&summary, output, console::import_summary)?;
    let rows = summary.inputs.iter().flat_map(|input| &input.skipped);
    arguments.input.losses.end(rows)
}
