//! `lookalike overlap`: counts the chunks that each pair of documents, or servers, shares.

use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

use lookalike::chunk::{ChunkBits, Chunking};
use lookalike_batch::overlap::{
    ATLAS_RESULTS, AtlasOptions, AtlasSummary, ExactCopies, MinShared, MirrorSettings,
    OverlapEngine, OverlapJob, OverlapSettings, OverlapUnit, ServerName, TextChunks,
};
use lookalike_corpus::{FieldPath, OutputFolder, OutputFormat};

use crate::arguments::{
    BoilerplateArguments, InputArguments, RepeatedIdArguments, RunArguments, WordArguments,
    command_line, output_format, output_path, positive_share,
};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::finished_job::resumed_when_finished;
use crate::interrupt;
use crate::output_file::{ResultFolder, if_exists};

#[derive(clap::Args)]
#[command(after_help = "\
Prints one JSON object per line, with a < b, sorted by a and b:
{\"a\":..,\"b\":..,\"chunking\":..,\"shared\":..,\"chunks_a\":..,
\"chunks_b\":..,\"containment_a\":..,\"containment_b\":..,\"resemblance\":..}. It counts distinct
chunks.

Examples:
  lookalike overlap pages/ --chunk lines:2 --min-shared 25
  lookalike overlap crawl.jsonl --chunk words:8:sliding --min-shared 1 --min-containment 0.5
  lookalike overlap crawl.jsonl --by server --chunk doc --min-shared 10
  lookalike overlap crawl.jsonl --chunk doc,lines:2 --min-shared doc=1,lines:2=25 -o atlas
  lookalike overlap crawl.jsonl --chunk lines:2 --copies-of http://gone.example/page.html

With -o DIR: pairs.jsonl (the rows), copies.jsonl, servers.jsonl, mirrors.jsonl,
mirror_pages.jsonl, aliases.jsonl, skip.jsonl, skipped.jsonl (--output-format parquet:
pairs.parquet, ...), atlas.html and, last, run.json.")]
pub(crate) struct OverlapArguments {
    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    chunks: ChunkArguments,

    /// Write the atlas to this directory: rows of all chunkings, replicas, savings, mirrors, servers, a page
    #[arg(long, short, value_name = "DIR", value_parser = output_path(), help_heading = "Output")]
    output: Option<PathBuf>,

    /// Minimum share of its chunks that a kept document must hold for skip.jsonl to list a document, above 0 and at most 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, value_parser = positive_share, help_heading = "Output")]
    copy_containment: f64,

    /// Minimum share of the servers of a mirrored page set that must hold each of its pages, from 0.5 to 1
    ///
    /// With a lower share, a set also keeps pages that more of its mirrors lack. With 1, all servers of a set hold all of its pages.
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, value_parser = set_share, help_heading = "Mirrors", hide_short_help = true)]
    set_page_share: f64,

    /// Minimum share of the pages of a mirrored page set that each of its servers must hold, from 0.5 to 1
    ///
    /// With a lower share, servers with fewer of the pages count as mirrors.
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, value_parser = set_share, help_heading = "Mirrors", hide_short_help = true)]
    set_server_share: f64,

    /// Minimum number of pages at the same paths for servers to be aliases of one another
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Mirrors", hide_short_help = true)]
    alias_pages: u32,

    /// Field with the address of the server that a document came from; servers with different addresses are not aliases
    #[arg(
        long,
        value_name = "FIELD",
        default_value = OverlapSettings::ADDRESS,
        help_heading = "Mirrors",
        hide_short_help = true
    )]
    address: FieldPath,

    /// Format of the results: jsonl or parquet
    #[arg(long, value_name = "FORMAT", default_value = "jsonl", value_parser = output_format, requires = "output",
        help_heading = "Output")]
    output_format: OutputFormat,

    /// Resume an interrupted job: what it had read and counted is kept. A job that was still reading starts from the beginning
    #[arg(
        long,
        conflicts_with = "overwrite",
        requires = "output",
        help_heading = "Output"
    )]
    resume: bool,

    /// Replace existing results
    #[arg(long, requires = "output", help_heading = "Output")]
    overwrite: bool,

    /// Print the documents of this list (ids, one per line): the first, then the others by how much is new in each
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "output_format", "resume", "overwrite", "copies_of"],
        help_heading = "Output")]
    rerank: Option<PathBuf>,

    /// Print the documents that overlap with the one with this URL or id, highest containment first
    #[arg(long, value_name = "URL", conflicts_with_all = ["output", "output_format", "resume", "overwrite"], help_heading = "Output")]
    copies_of: Option<String>,

    /// Width of a chunk's fingerprint: 64 bits, or 32 as in the paper (Shivakumar and Garcia-Molina 1998)
    #[arg(long, value_name = "BITS", default_value = "64", value_parser = bits, help_heading = "Overlap")]
    bits: ChunkBits,

    #[command(flatten)]
    repeats: RepeatedIdArguments,

    #[command(flatten)]
    words: WordArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    #[command(flatten)]
    run: RunArguments,
}

/// Chunks, and the pairs that share enough of them.
#[derive(clap::Args)]
#[command(next_help_heading = "Overlap")]
struct ChunkArguments {
    /// Kind of chunk: doc, sentences, paragraphs, lines:N, words:N, chars:N or fields:N
    ///
    /// Fields are separated by white space. With words:N:sliding and the like a chunk begins at every word, not only where the last
    /// one ended. --segment, --normalize, --case, --mask and --fold define words and characters.
    #[arg(
        long,
        value_name = "CHUNKING,...",
        value_delimiter = ',',
        default_value = "lines:2"
    )]
    chunk: Vec<Chunking>,

    /// List pairs that share at least T chunks; CHUNKING=T for one chunking, as in 25,doc=1
    #[arg(long, value_name = "T", value_delimiter = ',', default_value = "1")]
    min_shared: Vec<MinShared>,

    /// List pairs in which one side holds at least this share of the other's chunks
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = crate::arguments::share)]
    min_containment: f64,

    /// Engine that counts pairs: auto, count (common chunks cost little) or sort; the result is the same
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    engine: OverlapEngine,

    /// Compare documents, or servers (each the union of its documents)
    #[arg(long, value_name = "UNIT", default_value = "document")]
    by: OverlapUnit,

    /// Source of the name of a document's server: url (the host), field:NAME, or path:N (the first N components of the id)
    #[arg(long, value_name = "WHERE", default_value = "url")]
    server: ServerName,

    /// Documents with equal text: each has rows (listed), or the smallest id stands for all (apart)
    ///
    /// By default they are listed on standard output, and apart with -o, where copies.jsonl has the sets.
    #[arg(long, value_name = "WHAT")]
    copies: Option<ExactCopies>,
}

fn bits(text: &str) -> Result<ChunkBits, String> {
    match text {
        "32" => Ok(ChunkBits::Short),
        "64" => Ok(ChunkBits::Long),
        _ => Err(format!("{text:?} is not a fingerprint width: use 64 or 32")),
    }
}

/// Parses a share for page sets, from 0.5 to 1.
fn set_share(text: &str) -> Result<f64, String> {
    let share = crate::arguments::share(text)
        .ok()
        .filter(|share| (0.5..=1.0).contains(share));
    share.ok_or_else(|| format!("{text:?} is not a share from 0.5 to 1"))
}

impl OverlapArguments {
    fn settings(&self) -> OverlapSettings {
        // n documents of equal text are n (n - 1) / 2 rows. A list is asked for by somebody who wants
        // pairs; the atlas has the sets in a file of their own.
        let copies = self.chunks.copies.unwrap_or(match self.output {
            Some(_) => ExactCopies::Apart,
            None => ExactCopies::Listed,
        });
        OverlapSettings::default()
            .chunkings(self.chunks.chunk.clone())
            .scheme(self.words.scheme())
            .bits(self.bits)
            .min_shared(self.chunks.min_shared.clone())
            .min_containment(self.chunks.min_containment)
            .engine(self.chunks.engine)
            .by(self.chunks.by)
            .server(self.chunks.server.clone())
            .address(self.address.clone())
            .copies(copies)
            .repeated_ids(self.repeats.repeated_ids)
            .losses(self.input.losses.policy())
    }
}

/// The task of a run.
enum OverlapTask {
    Rows,
    Atlas(PathBuf),
    Rerank(Vec<String>),
    CopiesOf(String),
}

impl OverlapArguments {
    fn task(&self) -> Result<OverlapTask, Failure> {
        Ok(match (&self.output, &self.rerank, &self.copies_of) {
            (Some(folder), _, _) => OverlapTask::Atlas(folder.clone()),
            (_, Some(file), _) => OverlapTask::Rerank(result_list(file)?),
            (_, _, Some(url)) => OverlapTask::CopiesOf(url.clone()),
            _ => OverlapTask::Rows,
        })
    }
}

/// Reads a list of ids, one per line, or of JSON objects with an `id` or `url`, one per line.
pub(crate) fn result_list(path: &Path) -> Result<Vec<String>, Failure> {
    let failed = |reason: String| Failure::Failed(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(path)
        .map_err(|error| failed(format!("{error}: give a file of ids, one per line")))?;
    // The mark is no part of the first id.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // Numbered before the filter, so that messages name the line in the file.
    let lines = text.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| {
            // An id is written as it is; only objects are parsed.
            if !line.starts_with('{') {
                return Ok(line.to_owned());
            }
            let object: Option<serde_json::Value> = serde_json::from_str(line).ok();
            let id = object
                .as_ref()
                .and_then(|object| object["id"].as_str().or(object["url"].as_str()));
            let none = || {
                failed(format!(
                    "line {}: not a JSON object with an id or url",
                    number + 1
                ))
            };
            id.map(str::to_owned).ok_or_else(none)
        })
        .collect()
}

pub(crate) fn run(arguments: &OverlapArguments) -> Result<(), Failure> {
    let task = arguments.task()?;
    let console = arguments.run.console();
    if let OverlapTask::Atlas(folder) = task {
        let losses = &arguments.input.losses;
        let summary = match arguments.write_atlas(&folder, &console) {
            Ok(summary) => summary,
            Err(failure) => {
                let skipped = resumed_when_finished(failure, &folder, losses.policy(), &console)?;
                return losses.end(&skipped);
            }
        };
        console.summarise(&summary, Some(&folder), |summary, _| {
            console::atlas_summary(summary, &folder);
        })?;
        return losses.end(&summary.overlap.skipped);
    }
    let summary = arguments.with_job(&console, |job| {
        // Locked once, because nothing else writes there and each write would lock it again.
        let mut out = BufWriter::with_capacity(1 << 18, stdout().lock());
        let summary = match &task {
            OverlapTask::Rerank(ids) => job.rerank(ids, &mut out),
            OverlapTask::CopiesOf(url) => job.copies_of(url, &mut out),
            OverlapTask::Rows | OverlapTask::Atlas(_) => job.write_rows(&mut out),
        }?;
        // Dropping the writer would lose an error at the end, such as a full disk.
        out.flush()?;
        Ok(summary)
    })?;
    console.summarise(&summary, None, console::overlap_summary)?;
    arguments.input.losses.end(&summary.skipped)
}

impl OverlapArguments {
    /// Runs `task` with a job over the inputs.
    fn with_job<T>(
        &self,
        console: &Console<'_>,
        task: impl FnOnce(&OverlapJob<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let limits = self.run.document_limits();
        let mut options = self.input.options(None);
        // Created before inputs are discovered, because inputs from a store or from standard input are copied there.
        let output = self.output.as_deref();
        let folder = output.map(ResultFolder::create).transpose()?;
        let spool = output.map_or_else(std::env::temp_dir, Path::to_owned);
        let spool = self.run.spool(spool)?;
        // After the spool, so that an interruption removes the spool first and then may find the folder empty.
        if let Some(folder) = &folder {
            folder.remove_on_interrupt(true);
        }
        if let Some(output) = output.filter(|_| self.resume) {
            interrupt::warn_of_nothing_in(output, console);
        }
        let output = output.map(|path| OutputFolder {
            path,
            results: &ATLAS_RESULTS,
        });
        let inputs = self
            .input
            .discover(&options, spool.path(), output, console)?;
        // This needs its own reading: the recurring lines must be known before the first chunk is cut.
        self.boilerplate
            // This changes the options: from here on, texts lack these lines.
            .learn(&inputs, &mut options, &limits, spool.path(), console)?;
        let job = OverlapJob::new(&inputs, spool.path())
            .settings(self.settings())
            .limits(limits)
            .options(options)
            .observer(console);
        let done = console.ended(task(&job))?;
        // A resumed job does not read again what was read before, so it is unknown whether that contained HTML.
        if !self.resume {
            self.input.warn_of_unused(&inputs, console);
        }
        Ok(done)
    }

    /// Runs the job, with the atlas in `folder`.
    fn write_atlas(&self, folder: &Path, console: &Console<'_>) -> Result<AtlasSummary, Failure> {
        let options = AtlasOptions {
            format: self.output_format,
            folder: if_exists(self.resume, self.overwrite),
            command: command_line(),
            copy_containment: self.copy_containment,
            mirrors: MirrorSettings {
                page_share: self.set_page_share,
                server_share: self.set_server_share,
                alias_pages: self.alias_pages,
            },
        };
        self.with_job(console, |job| Ok(job.atlas(folder, &options)?))
    }

    /// Returns the chunking of single texts, for another program.
    pub(crate) fn text_chunks(&self) -> Result<TextChunks, Failure> {
        Ok(TextChunks::new(self.settings(), &self.input.options(None))?)
    }

    /// Runs the job for another program, with the atlas in the output directory.
    pub(crate) fn atlas_for_program(&self, console: &Console<'_>) -> Result<AtlasSummary, Failure> {
        match &self.output {
            Some(folder) => self.write_atlas(folder, console),
            None => Err(Failure::Usage(
                "the atlas needs a directory: name one with --output".to_owned(),
            )),
        }
    }
}
