//! `lookalike dedup`: the main job.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lookalike_batch::{
    Folder, Job, Keep, Method, Order, OutputOptions, PairList, RepeatedIds, Settings,
};
use lookalike_corpus::{Compression, InputOptions, Inputs, OutputFormat, RankField};

use crate::arguments::{
    BoilerplateArguments, InputArguments, MethodArguments, RunArguments, SchemeArguments,
    ScopeArguments, command_line, output_format,
};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::interrupt;

#[derive(clap::Args)]
#[command(after_help = "\
Writes into DIR: kept.jsonl and removed.jsonl (the records as they came in; inputs that are files are copied to
kept/ and removed/), clusters.jsonl, pairs.jsonl, skipped.jsonl, report.html and run.json, which is written last.
With --output-format parquet each of the .jsonl is a .parquet with the fields of the records as columns.

Each removed document resembles one that is kept by at least the threshold, or equals it.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    input: InputArguments,

    /// Where the results go; it is created
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,

    /// Earlier documents (files, directories or results of dedup) that new ones are compared with; they are never
    /// removed. May be given several times
    #[arg(long, value_name = "PATH", help_heading = "Input")]
    against: Vec<OsString>,

    #[command(flatten)]
    method: MethodArguments,

    #[command(flatten)]
    scope: ScopeArguments,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    /// Which document of a cluster survives: longest, shortest, first, max:FIELD, min:FIELD or newest:FIELD
    #[arg(
        long,
        value_name = "RULE",
        default_value = "longest",
        help_heading = "Output"
    )]
    keep: Keep,

    /// Order of records in kept.jsonl and removed.jsonl: id, or input
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "id",
        help_heading = "Output"
    )]
    order: Order,

    /// pairs.jsonl lists each removed document with its survivor (deciding), or all pairs
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "deciding",
        help_heading = "Output"
    )]
    pairs: PairList,

    /// Records that repeat an id: number (ID#2, ID#3, ...) or refuse
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "number",
        help_heading = "Input"
    )]
    repeated_ids: RepeatedIds,

    /// What results consist of: jsonl, or parquet (kept.parquet, removed.parquet, clusters.parquet, ...)
    #[arg(long, value_name = "FORMAT", default_value = "jsonl", value_parser = output_format, help_heading = "Output")]
    output_format: OutputFormat,

    /// Compress kept.jsonl and removed.jsonl: none, gz or zst [default: as the input]
    #[arg(long, value_name = "KIND", value_parser = compression, help_heading = "Output")]
    compress: Option<Compression>,

    /// Go on with a job that was interrupted
    #[arg(long, conflicts_with = "overwrite", help_heading = "Output")]
    resume: bool,

    /// Replace results that are already there
    #[arg(long, help_heading = "Output")]
    overwrite: bool,

    #[command(flatten)]
    run: RunArguments,
}

fn compression(text: &str) -> Result<Compression, String> {
    match text {
        "none" => Ok(Compression::None),
        "gz" => Ok(Compression::Gzip),
        "zst" => Ok(Compression::Zstd),
        _ => Err(format!("unknown compression {text:?}: use none, gz or zst")),
    }
}

/// The field that a survivor rule reads.
fn rank_field(keep: &Keep) -> Result<Option<RankField>, Failure> {
    match keep {
        Keep::Longest | Keep::Shortest | Keep::First => Ok(None),
        Keep::Max(_) | Keep::Min(_) | Keep::Newest(_) => Ok(Some(keep.to_string().parse()?)),
    }
}

impl Arguments {
    fn settings(&self, read: &InputOptions) -> Result<Settings, Failure> {
        let (scheme, terms) = self
            .scheme
            .scheme(self.method.weight, self.method.sketch(), read)?;
        Ok(Settings {
            scheme,
            terms,
            agree: self.method.agree,
            method: self.method.method,
            threshold: self.method.threshold,
            distance: self.method.distance,
            distance_for: self.method.distance_for,
            recall: self.method.recall,
            scope: self.scope.scope(),
            lengths: self.scope.lengths,
            keep: self.keep.clone(),
            order: self.order,
            pairs: self.pairs,
            repeated_ids: self.repeated_ids,
            strict: self.input.strict,
        })
    }

    fn folder(&self) -> Folder {
        match (self.resume, self.overwrite) {
            (true, _) => Folder::Resume,
            (_, true) => Folder::Overwrite,
            _ => Folder::New,
        }
    }

    /// All inputs, those of `--against` first, and the number of the latter.
    fn inputs(&self, options: &InputOptions, spool: &Path) -> Result<(Inputs, usize), Failure> {
        let against: Vec<OsString> = self.against.iter().map(results_of).collect();
        let mut all = match against.is_empty() {
            true => Inputs {
                sources: Vec::new(),
                skips: Vec::new(),
            },
            false => Inputs::discover(&against, options, spool)?,
        };
        let count = all.sources.len();
        let new = Inputs::discover(&self.input.inputs, options, spool)?;
        all.sources.extend(new.sources);
        all.skips.extend(new.skips);
        Ok((all, count))
    }
}

/// The kept records of an earlier result, or the path itself.
fn results_of(path: &OsString) -> OsString {
    let folder = Path::new(path);
    if !folder.join("run.json").is_file() {
        return path.clone();
    }
    let kept = folder.join("kept");
    let names = [
        "kept.jsonl",
        "kept.jsonl.gz",
        "kept.jsonl.zst",
        "kept.parquet",
    ];
    let lines = names.map(|name| folder.join(name));
    let lines = lines.into_iter().find(|path| path.is_file());
    if kept.is_dir() {
        kept.into()
    } else {
        lines.map_or_else(|| path.clone(), PathBuf::into_os_string)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_ours = !arguments.output.exists();
    let done = dedup(arguments);
    if done.is_err() && is_ours {
        // A job that failed leaves no empty folder. One with results in it stays, for they can be resumed.
        let _ = std::fs::remove_dir(&arguments.output);
    }
    done
}

fn dedup(arguments: &Arguments) -> Result<(), Failure> {
    arguments.method.check()?;
    let mut options = InputOptions {
        category: arguments.scope.category(&arguments.method),
        fields: arguments.scheme.fields,
        ..arguments.input.options(rank_field(&arguments.keep)?)
    };
    let boilerplate = &arguments.boilerplate;
    // Before anything is read where that can be: wrong settings should not cost time.
    let early = match boilerplate.is_off() {
        true => Some(arguments.settings(&options)?),
        false => None,
    };
    if arguments.method.method == Method::Copies && arguments.pairs == PairList::All {
        console::warning("--pairs all lists every pair of equal texts with --method copies");
    }
    let limits = arguments.run.limits();
    let spool = arguments.run.spool(arguments.temporary()?)?;
    interrupt::remove_unfinished(&arguments.output);
    let (inputs, against_sources) = arguments.inputs(&options, spool.path())?;
    let console = Console::new(arguments.run.quiet);
    boilerplate.learn(&inputs, &mut options, &limits, spool.path(), &console)?;
    let settings = match early {
        Some(settings) => settings,
        None => arguments.settings(&options)?,
    };
    let job = Job {
        settings: &settings,
        limits: &limits,
        inputs: &inputs,
        options: &options,
        against_sources,
        folder: spool.path(),
        observer: &console,
    };
    if arguments.output_format == OutputFormat::Parquet && arguments.compress.is_some() {
        return Err(Failure::Usage(
            "--compress is for JSON lines: Parquet is compressed by itself".to_owned(),
        ));
    }
    let output = OutputOptions {
        format: arguments.output_format,
        compression: arguments.compress,
        folder: arguments.folder(),
        command: command_line(),
    };
    let done = job.dedup(&arguments.output, &output);
    console.clear();
    let summary = done?;
    if !arguments.run.quiet {
        arguments
            .scope
            .warn(summary.counts.without_category, &arguments.method);
    }
    if arguments.run.json {
        console::json(&summary)?;
    } else if !arguments.run.quiet {
        console::dedup_summary(&summary, &arguments.output);
    }
    Ok(())
}

impl Arguments {
    /// Where temporary files go. The output directory is made when it is that.
    fn temporary(&self) -> Result<PathBuf, Failure> {
        if let Some(tmp) = &self.run.tmp {
            return Ok(tmp.clone());
        }
        let shown = self.output.display();
        std::fs::create_dir_all(&self.output).map_err(|error| {
            Failure::Failed(format!(
                "{shown}: {error}: name a directory that can be made and written to with -o"
            ))
        })?;
        Ok(self.output.clone())
    }
}
