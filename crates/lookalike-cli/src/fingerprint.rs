//! `lookalike fingerprint`: the 64-bit simhash of every document.

use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;

use lookalike::scheme::{Sketch, Weight};
use lookalike_batch::{Fingerprints, Observer};
use lookalike_corpus::{AtomicFile, Compression, Inputs};

use crate::arguments::{InputArguments, RunArguments, SchemeArguments};
use crate::console::{self, Console};
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
Prints {\"id\":..,\"fingerprint\":\"16 hex digits\"} for each document, in input order; null for a text without features.
Fingerprints are comparable only under one scheme, which the summary names.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    input: InputArguments,

    /// Write to this file (name it .jsonl, .jsonl.gz or .jsonl.zst) instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// How features count: set (once), tf, log-tf, idf, tf-idf, log-tf-idf, or yu
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
    run: RunArguments,
}

/// How a file of this name is compressed.
fn compression(path: &std::path::Path) -> Result<Compression, Failure> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    [Compression::None, Compression::Gzip, Compression::Zstd]
        .into_iter()
        .find(|compression| name.ends_with(&format!(".jsonl{}", compression.suffix())))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "{}: binary fingerprint files are not supported yet: name the file .jsonl, .jsonl.gz or .jsonl.zst",
                path.display()
            ))
        })
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let compression = arguments.output.as_deref().map(compression).transpose()?;
    let (scheme, terms) =
        arguments
            .scheme
            .scheme(arguments.weight, Sketch::Simhash, &arguments.input.html)?;
    let limits = arguments.run.limits();
    let options = arguments.input.options(None);
    let spool = arguments.run.spool(std::env::temp_dir())?;
    let inputs = Inputs::discover(&arguments.input.inputs, &options, spool.path())?;
    let console = Console::new(arguments.run.quiet);
    let job = Fingerprints {
        inputs: &inputs,
        options: &options,
        scheme,
        terms,
        threads: limits.threads,
        strict: arguments.input.strict,
        observer: &console,
    };
    let done = match (&arguments.output, compression) {
        (Some(path), Some(compression)) => {
            let failed = |error| {
                Failure::Failed(format!(
                    "{}: {error}: choose another file with -o",
                    path.display()
                ))
            };
            let mut file = AtomicFile::create(path, compression).map_err(failed)?;
            let done = job.write(&mut file)?;
            file.commit().map_err(failed)?;
            Ok(done)
        }
        _ => {
            let mut out = BufWriter::with_capacity(1 << 18, stdout().lock());
            job.write(&mut out)
                .and_then(|done| out.flush().map(|()| done).map_err(job_error))
        }
    };
    console.clear();
    let summary = done?;
    if arguments.run.json {
        console::json(&summary);
    } else if !arguments.run.quiet {
        console::fingerprint_summary(&summary, &console.measured());
    }
    Ok(())
}

fn job_error(source: std::io::Error) -> lookalike_batch::BatchError {
    let remedy = "check where standard output goes";
    lookalike_batch::BatchError::File {
        path: "standard output".into(),
        source,
        remedy,
    }
}
