//! `lookalike terms`: counts the documents that contain each feature, and keeps such tables up to date with a collection.

use std::collections::HashSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use lookalike::hash::siphash::SipKey;
use lookalike::{GrowingTerms, Scheme, TermCounts};
use lookalike_batch::{
    DriftSummary, PathLock, TermTable, TermsError, TermsMemory, TermsSummary, merge_terms,
    read_terms,
};
use lookalike_corpus::InputOptions;

use crate::arguments::{
    BoilerplateArguments, InputArguments, RunArguments, SchemeArguments, hash_key, output_path,
};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::output_file::{check_output, files_of, write_bytes};
use crate::remedy;
use crate::{machine, size};

#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
The table is for --terms: weights by rarity (--weight idf, tf-idf, log-tf-idf), --method
i-match and --shingle phrases:N. It counts the features of one scheme (for phrases, words
and pairs of words), and its id becomes part of every scheme that uses it.

Example:
  lookalike terms crawl/ --shingle words:1 -o words.terms
  lookalike fingerprint crawl/ --shingle words:1 --weight idf --terms words.terms
  lookalike terms add words.terms tuesday/ --shingle words:1 -o words.terms

A table that has grown a little keeps its weights and its id, so old and new fingerprints
can be compared. Once new weights would move a fingerprint by --tolerance bits, the table
adopts them, and its id changes. To count a directory called add, write ./add."
)]
pub(crate) struct TermsArguments {
    #[command(subcommand)]
    command: Option<TermsCommand>,

    #[command(flatten)]
    count: TermsCountArguments,
}

#[derive(Subcommand)]
enum TermsCommand {
    /// Add the counts of more documents to a table
    Add(Box<TermsAddArguments>),
    /// Merge tables of different documents
    Merge(TermsMergeArguments),
    /// Reduce all counts so far, so that documents added later count more
    Decay(TermsDecayArguments),
}

#[derive(clap::Args)]
struct TermsCountArguments {
    #[command(flatten)]
    reading: ReadingArguments,

    /// File for the table
    #[arg(long, short, value_name = "FILE", value_parser = output_path(), required = true)]
    output: Option<PathBuf>,

    /// Also keep features that only one document has, so that tables merge and grow without loss
    ///
    /// Without it, a feature that occurs in one document of each of two tables counts once when they are merged.
    #[arg(long)]
    singles: bool,
}

/// Documents that are counted, and options for reading them.
#[derive(clap::Args)]
struct ReadingArguments {
    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    // Flattened last, because arguments after it have no heading.
    #[command(flatten, next_help_heading = None::<&str>)]
    run: RunArguments,
}

#[derive(clap::Args)]
#[command(after_help = "\
The options for input and for features must be those that the table was made with.

Example:
  lookalike terms add words.terms tuesday/ --shingle words:1 -o words.terms")]
struct TermsAddArguments {
    /// The table
    #[arg(value_name = "TABLE")]
    table: PathBuf,

    #[command(flatten)]
    reading: ReadingArguments,

    /// File for the new table, which may be the old one
    #[arg(long, short, value_name = "FILE", value_parser = output_path())]
    output: PathBuf,

    /// Drift of the weights, in bits of a 64-bit fingerprint, beyond which the table adopts new ones
    #[arg(long, value_name = "BITS", default_value = "1", value_parser = tolerance)]
    tolerance: f64,
}

#[derive(clap::Args)]
#[command(after_help = "\
The result has the weights of the combined counts, whatever the order of the tables. With
--tolerance it keeps those of the first table as long as they are close enough.

Example:
  lookalike terms merge monday.terms tuesday.terms -o week.terms")]
struct TermsMergeArguments {
    /// Tables of the same features; each document may be in only one of them
    #[arg(value_name = "TABLE", num_args = 2.., required = true)]
    tables: Vec<PathBuf>,

    /// Drift of the weights, in bits of a 64-bit fingerprint, beyond which the first table's are replaced; 0: always
    #[arg(long, value_name = "BITS", default_value = "0", value_parser = tolerance)]
    tolerance: f64,

    #[command(flatten)]
    output: TermsOutputArguments,
}

#[derive(clap::Args)]
#[command(after_help = "\
Run before adding each day's documents, --factor 0.9 makes those of a week ago count half.

Example:
  lookalike terms decay words.terms --factor 0.9 -o words.terms")]
struct TermsDecayArguments {
    /// The table
    #[arg(value_name = "TABLE")]
    table: PathBuf,

    /// Factor for all counts, above 0 and below 1
    #[arg(long, value_name = "F", value_parser = factor)]
    factor: f64,

    /// Drift of the weights, in bits of a 64-bit fingerprint, beyond which the table adopts new ones
    #[arg(long, value_name = "BITS", default_value = "1", value_parser = tolerance)]
    tolerance: f64,

    #[command(flatten)]
    output: TermsOutputArguments,
}

/// Output of a table that is made from tables.
#[derive(clap::Args)]
struct TermsOutputArguments {
    /// File for the new table, which may be an old one
    #[arg(long, short, value_name = "FILE", value_parser = output_path())]
    output: PathBuf,

    /// File with the key of tables made with --hash siphash
    #[arg(long, value_name = "FILE")]
    hash_key: Option<PathBuf>,

    /// Memory limit of the whole job [default: half of the memory of the machine, or of its container]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,

    /// Print no summary
    #[arg(long, short)]
    quiet: bool,
}

fn tolerance(text: &str) -> Result<f64, String> {
    // NaN is in no range.
    let bits = text.parse().ok().filter(|bits| (0.0..=64.0).contains(bits));
    bits.ok_or_else(|| format!("{text:?} is not a number of bits from 0 to 64"))
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|f| *f > 0.0 && *f < 1.0);
    factor.ok_or_else(|| format!("{text:?} is not a number above 0 and below 1"))
}

pub(crate) fn run(arguments: &TermsArguments) -> Result<(), Failure> {
    match &arguments.command {
        Some(TermsCommand::Add(add)) => add.run(),
        Some(TermsCommand::Merge(merge)) => merge.run(),
        Some(TermsCommand::Decay(decay)) => decay.run(),
        None => arguments.count.run(),
    }
}

impl TermsCountArguments {
    fn run(&self) -> Result<(), Failure> {
        let output = self.output.as_deref();
        let output = output.expect("required where there is no subcommand");
        let console = self.reading.run.console();
        let start = TableStart::Empty {
            singles: self.singles,
        };
        let (mut table, summary) = self.reading.count(start, output, &console)?;
        // A tolerance of 0, because a new table has no weights to keep.
        table.refresh_weights(0.0);
        self.reading.finish(table, summary, output, &console)
    }
}

impl TermsAddArguments {
    fn run(&self) -> Result<(), Failure> {
        let reading = &self.reading;
        let memory = TermsMemory::of_tables(reading.run.limits().memory);
        let _lock = lock_replaced(&self.output, [&self.table])?;
        let table = read(
            &self.table,
            hash_key(reading.scheme.hash_key.as_deref())?,
            memory,
        )?;
        let console = reading.run.console();
        let start = TableStart::Old {
            path: &self.table,
            table: Box::new(table),
        };
        let (mut table, mut summary) = reading.count(start, &self.output, &console)?;
        // The new weights come from all counts, and are compared with those with which fingerprints were made.
        summary.drift = Some(DriftSummary::refresh_weights(&mut table, self.tolerance));
        reading.finish(table, summary, &self.output, &console)
    }
}

/// The table to which documents are added.
enum TableStart<'a> {
    Empty {
        singles: bool,
    },
    Old {
        path: &'a Path,
        table: Box<GrowingTerms>,
    },
}

impl TableStart<'_> {
    /// Refuses to count the features of another scheme.
    fn check(&self, scheme: &Scheme) -> Result<(), Failure> {
        match self {
            Self::Empty { .. } => Ok(()),
            Self::Old { path, table } => {
                let same = table.counts().scheme().ensure_same(scheme);
                same.map_err(|error| failed(path, TermsError::Features(error)))
            }
        }
    }

    fn table(self, scheme: &Scheme) -> GrowingTerms {
        match self {
            Self::Empty { singles: false } => GrowingTerms::new(TermCounts::new(scheme)),
            Self::Empty { singles: true } => {
                GrowingTerms::new(TermCounts::new(scheme).with_singles())
            }
            Self::Old { table, .. } => *table,
        }
    }
}

impl ReadingArguments {
    /// Counts the documents that are read, and adds the counts to a table, whose weights do not change yet.
    fn count(
        &self,
        start: TableStart<'_>,
        output: &Path,
        console: &Console,
    ) -> Result<(GrowingTerms, TermsSummary), Failure> {
        let mut options = self.input.options(None);
        let boilerplate = &self.boilerplate;
        let scheme = |options: &InputOptions| {
            let scheme = self.scheme.counted(options)?;
            start.check(&scheme)?;
            Ok::<_, Failure>(scheme)
        };
        // Checked before anything is read, if possible: wrong settings should not cost time.
        let early = boilerplate.is_off().then(|| scheme(&options)).transpose()?;
        let limits = self.run.document_limits();
        let spool = self.run.spool(std::env::temp_dir())?;
        let inputs = self.input.discover(&options, spool.path(), None, console)?;
        let read = files_of(&inputs).chain(self.scheme.files());
        check_output(Some(output), read)?;
        boilerplate.learn(&inputs, &mut options, &limits, spool.path(), console)?;
        let scheme = early.map_or_else(|| scheme(&options), Ok)?;
        let mut table = start.table(&scheme);
        let scan = self.input.scan(&inputs, &options, &limits, console);
        let job = TermTable::new(scan, spool.path());
        let summary = console.ended(job.count(&mut table))?;
        self.input.warn_of_unused(&inputs, console);
        Ok((table, summary))
    }

    /// Writes the table and prints the summary.
    fn finish(
        &self,
        table: GrowingTerms,
        summary: TermsSummary,
        output: &Path,
        console: &Console,
    ) -> Result<(), Failure> {
        let skipped = summary.skipped.clone();
        let summary = TermsSummary {
            // Only if a table was added to; otherwise all documents are new.
            read: summary.read.filter(|_| summary.drift.is_some()),
            missing_text: summary.missing_text,
            too_long: summary.too_long,
            boilerplate: summary.boilerplate,
            bytes_on_disk: summary.bytes_on_disk,
            drift: summary.drift,
            skipped: summary.skipped,
            ..TermsSummary::of(&table)
        };
        // Written under a temporary name, because the output may be the table itself.
        write_bytes(output, &table.to_bytes())?;
        console.summarise(&summary, Some(output), console::terms_summary)?;
        self.input.losses.end(&skipped)
    }
}

impl TermsMergeArguments {
    fn run(&self) -> Result<(), Failure> {
        self.refuse_repeats()?;
        let _lock = lock_replaced(&self.output.output, &self.tables)?;
        let memory = self.output.memory();
        let key = hash_key(self.output.hash_key.as_deref())?;
        let (first, others) = self.tables.split_first().expect("two or more, says clap");
        let mut table = read(first, key, memory)?;
        for path in others {
            // Two tables at a time, whatever the number of files.
            let other = read(path, key, memory.reserving(table.memory()))?;
            merge_terms(&mut table, other, memory).map_err(|error| failed(path, error))?;
        }
        self.output.finish(table, self.tolerance)
    }

    /// Refuses a file that is named twice, because its documents would count twice.
    fn refuse_repeats(&self) -> Result<(), Failure> {
        let mut places = HashSet::new();
        // A file that is not there is an error of the reading.
        let is_repeat = |path: &&PathBuf| {
            let place = path.canonicalize();
            place.is_ok_and(|place| !places.insert(place))
        };
        match self.tables.iter().find(is_repeat) {
            None => Ok(()),
            Some(path) => Err(Failure::Usage(format!(
                "{} is given twice, and its documents would count twice: give each table once",
                path.display()
            ))),
        }
    }
}

impl TermsDecayArguments {
    fn run(&self) -> Result<(), Failure> {
        let key = hash_key(self.output.hash_key.as_deref())?;
        let _lock = lock_replaced(&self.output.output, [&self.table])?;
        let mut table = read(&self.table, key, self.output.memory())?;
        // Changes only the counts; weights follow by the same rule as after adding documents.
        table.counts_mut().decay(self.factor);
        self.output.finish(table, self.tolerance)
    }
}

impl TermsOutputArguments {
    fn memory(&self) -> TermsMemory {
        TermsMemory::of_tables(self.memory.unwrap_or_else(machine::default_memory))
    }

    fn finish(&self, mut table: GrowingTerms, tolerance: f64) -> Result<(), Failure> {
        let console = Console::new(self.quiet).json(self.json);
        let drift = DriftSummary::refresh_weights(&mut table, tolerance);
        let summary = TermsSummary {
            drift: Some(drift),
            ..TermsSummary::of(&table)
        };
        // Written next to its place and renamed, because the output may be one of the tables.
        write_bytes(&self.output, &table.to_bytes())?;
        Ok(console.summarise(&summary, Some(&self.output), console::terms_summary)?)
    }
}

/// Locks the output if it is one of the tables: what another command added to it meanwhile would be lost.
fn lock_replaced<'p>(
    output: &Path,
    tables: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<Option<PathLock>, Failure> {
    let place = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file());
    let Some(replaced) = place(output) else {
        return Ok(None);
    };
    if !tables
        .into_iter()
        .any(|table| place(table).as_ref() == Some(&replaced))
    {
        return Ok(None);
    }
    let failed = |told: &dyn Display| Failure::Failed(format!("{}: {told}", output.display()));
    match PathLock::take(&replaced).map_err(|error| failed(&error))? {
        Some(lock) => Ok(Some(lock)),
        None => Err(failed(
            &"another command is changing this table: wait until it has finished, or choose another output",
        )),
    }
}

fn failed(path: &Path, error: TermsError) -> Failure {
    let told = match &error {
        TermsError::Memory(error) => remedy::with_remedy(error),
        TermsError::File(error) => remedy::terms_error_with_remedy(error),
        _ => error.to_string(),
    };
    Failure::Failed(format!("{}: {told}", path.display()))
}

fn read(path: &Path, key: Option<SipKey>, memory: TermsMemory) -> Result<GrowingTerms, Failure> {
    read_terms(path, key, memory).map_err(|error| failed(path, error))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct MergeCommand {
        #[command(flatten)]
        arguments: TermsMergeArguments,
    }

    #[test]
    fn a_table_given_twice_counted_twice() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, link, out] = ["a", "b", "link", "out"].map(|name| folder.path().join(name));
        std::fs::write(&a, "").unwrap();
        std::fs::write(&b, "").unwrap();
        std::os::unix::fs::symlink(&a, &link).unwrap();
        let refused = |again: &Path| {
            let words = [Path::new("merge"), &a, &b, again, Path::new("-o"), &out];
            MergeCommand::parse_from(words).arguments.refuse_repeats()
        };
        let told = refused(&link).unwrap_err().to_string();
        assert!(told.contains("link is given twice"), "{told}");
        assert!(refused(&folder.path().join("missing")).is_ok());
    }
}
