//! `lookalike archive`: stores a collection in one file, near-copies next to their survivor, and restores every record byte for byte.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use lookalike_batch::{
    ArchiveBlockSize, ArchiveLevel, ArchiveSettings, ArchiveSummary, CollectionArchive,
    CollectionArchiveInfo, DedupJob, JobLimits, JobSettings,
};
use lookalike_corpus::{
    InputOptions, parent_directory, sync_directory, sync_file_system, without_temporary_path,
};
use tempfile::TempPath;

use crate::arguments::{
    self, InputArguments, RunArguments, SimilarityArguments, is_standard_output, output_path,
};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::output_file::{ensure_parent_exists, resolve_links};
use crate::spool::Spool;
use crate::{machine, size};

#[derive(clap::Args)]
#[command(after_help = "\
An archive holds text, HTML, PDF and other files, and JSON Lines. Documents that `dedup`
would remove are stored next to the one it would keep, where compression finds them.
Everything comes back byte for byte; compressed files come back decompressed.

Examples:
  lookalike archive build manuals/ -o manuals.lka
  lookalike archive info manuals.lka --verify
  lookalike archive extract manuals.lka --id manuals/2/intro.html > intro.html
  lookalike archive extract manuals.lka -o manuals-again")]
pub(crate) struct ArchiveArguments {
    #[command(subcommand)]
    command: ArchiveCommand,
}

#[derive(Subcommand)]
enum ArchiveCommand {
    /// Write documents to an archive
    Build(Box<ArchiveBuildArguments>),
    /// Extract one document, or all files
    Extract(ArchiveExtractArguments),
    /// Show what an archive holds
    Info(ArchiveInfoArguments),
}

#[derive(clap::Args)]
#[command(mut_arg("inputs", |inputs| inputs.long_help(
    "Files, directories or globs to read, or - for standard input\n\n\
     Formats: JSONL, text, source code, HTML, PDF, plain or compressed (.gz, .zst, .bz2, .xz). Web archives, JSON arrays and tables \
     are refused, because their records, as read, are not bytes of the file.",
)))]
struct ArchiveBuildArguments {
    #[command(flatten)]
    input: InputArguments,

    /// File of the archive; it must not exist yet
    #[arg(long, short, value_name = "FILE", value_parser = output_path())]
    output: PathBuf,

    /// Compression level, from 1 (fast) to 19 (small)
    #[arg(long, value_name = "N", default_value_t, help_heading = "Output")]
    level: ArchiveLevel,

    /// Size of blocks, 64K to 32M: larger blocks make the archive smaller; with smaller blocks, `extract --id` is faster and takes
    /// less memory
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = parse_block, help_heading = "Output")]
    block: ArchiveBlockSize,

    #[command(flatten)]
    similarity: SimilarityArguments,

    #[command(flatten)]
    run: RunArguments,
}

#[derive(clap::Args)]
#[command(after_help = "\
With --id the documents go to standard output, or with -o to one file, one after another in
the order given. Without it all files are written under PATH, at the paths that they had.")]
struct ArchiveExtractArguments {
    /// File of the archive
    #[arg(value_name = "FILE")]
    archive: PathBuf,

    /// Id of a document, as `dedup` reports it; may be repeated
    #[arg(long, value_name = "ID")]
    id: Vec<String>,

    /// New directory for all files; with --id, a new file
    #[arg(long, short, value_name = "PATH", required_unless_present = "id")]
    output: Option<PathBuf>,

    #[command(flatten)]
    reading: ArchiveReadingArguments,

    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(clap::Args)]
struct ArchiveInfoArguments {
    /// File of the archive
    #[arg(value_name = "FILE")]
    archive: PathBuf,

    /// Read every block and compare every document with its checksum
    #[arg(long)]
    verify: bool,

    #[command(flatten)]
    reading: ArchiveReadingArguments,

    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// Use of the machine for reading a whole archive.
#[derive(clap::Args)]
struct ArchiveReadingArguments {
    /// Worker threads [default: all processors; fewer if --memory is small]
    #[arg(long, value_name = "N", value_parser = arguments::threads)]
    threads: Option<usize>,

    /// Memory limit of the whole command [default: half of the memory of the machine, or of its container]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,
}

impl ArchiveReadingArguments {
    fn limits(&self) -> JobLimits {
        machine::limits(self.threads, self.memory)
    }
}

pub(crate) fn run(arguments: &ArchiveArguments) -> Result<(), Failure> {
    match &arguments.command {
        ArchiveCommand::Build(arguments) => arguments.run(),
        ArchiveCommand::Extract(arguments) => arguments.run(),
        ArchiveCommand::Info(arguments) => arguments.run(),
    }
}

impl ArchiveBuildArguments {
    fn settings(&self, read: &InputOptions) -> Result<JobSettings, Failure> {
        Ok(self
            .similarity
            .settings(read)?
            .losses(self.input.losses.policy()))
    }

    fn run(&self) -> Result<(), Failure> {
        // Checked before anything is read; `put_file` checks again, since hours may pass in between.
        refuse_existing(&self.output)?;
        ensure_parent_exists(&self.output)?;
        let console = self.run.console();
        let summary = self.build(&console)?;
        console.summarise(&summary, Some(&self.output), |summary, measured| {
            console::archive_summary(summary, &self.output, measured);
        })?;
        self.input.losses.end(&summary.skipped)
    }

    fn build(&self, console: &Console) -> Result<ArchiveSummary, Failure> {
        // Everything that can be refused without reading comes first: a job may run for hours.
        self.similarity.method.check()?;
        let options = self.similarity.options(self.input.options(None));
        let settings = self.settings(&options)?;
        let spool = self.run.spool(parent_directory(&self.output).to_owned())?;
        let inputs = self.input.discover(&options, spool.path(), None, console)?;
        // Not created earlier: if the archive goes to an input directory, it would be found as an input.
        let place = SiblingTempPath::new(&self.output)?;
        let job = DedupJob::new(&inputs, spool.path())
            .settings(settings)
            .limits(self.run.document_limits())
            .options(options)
            .observer(console);
        let archive = ArchiveSettings {
            level: self.level,
            block: self.block,
        };
        let summary = console.ended(job.archive(&place.path(), archive))?;
        self.similarity
            .warn(summary.counts.without_category, console);
        self.input.warn_of_unused(&inputs, console);
        place.put_file()?;
        Ok(summary)
    }
}

impl ArchiveExtractArguments {
    fn run(&self) -> Result<(), Failure> {
        let archive = CollectionArchive::open(&self.archive)?;
        match (&self.output, self.id.is_empty()) {
            // Chosen documents are a stream, but all files need a directory.
            (Some(output), false) if is_standard_output(output) => self.print_chosen(&archive),
            (Some(output), true) if is_standard_output(output) => Err(Failure::Usage(
                "-o -: all files cannot go to standard output; name a directory (./- for one called -), or choose documents with --id"
                    .to_owned(),
            )),
            (Some(folder), true) => self.extract_all(&archive, folder),
            (Some(file), false) => {
                refuse_existing(file)?;
                let place = SiblingTempPath::new(file)?;
                let failed = |error| unwritable(file, error);
                // In a folder of its own next to the output, so that it is on the same file system and can be renamed.
                let mut out = File::create_new(place.path()).map_err(failed)?;
                self.extract_chosen(&archive, &mut |bytes| out.write_all(bytes).map_err(failed))?;
                out.sync_all().map_err(failed)?;
                place.put_file()
            }
            (None, _) => self.print_chosen(&archive),
        }
    }

    /// Writes the chosen documents to standard output.
    fn print_chosen(&self, archive: &CollectionArchive) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        self.extract_chosen(archive, &mut |bytes| Ok(out.write_all(bytes)?))?;
        Ok(out.flush()?)
    }

    /// Calls `write` with the documents, once all of them have been found.
    fn extract_chosen(
        &self,
        archive: &CollectionArchive,
        write: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let found = self.id.iter().map(|id| archive.find(id));
        // Find all ids before writing the first byte: a misspelt one must not leave half of the documents in a pipe.
        let found: Vec<usize> = found.collect::<Result<_, _>>()?;
        let memory = self.reading.limits().memory;
        for record in found {
            write(&archive.read(record, memory)?)?;
        }
        Ok(())
    }

    fn extract_all(&self, archive: &CollectionArchive, folder: &Path) -> Result<(), Failure> {
        let is_empty =
            |folder: &Path| fs::read_dir(folder).is_ok_and(|mut all| all.next().is_none());
        // A new directory is wanted, but one that was created for this is as good: `rename` replaces an empty one.
        if !is_empty(folder) {
            refuse_existing(folder)?;
        }
        // A link stays, and the empty directory behind it is replaced.
        let target = resolve_links(folder);
        let place = SiblingTempPath::new(&target)?;
        let failed = |error| unwritable(folder, error);
        fs::create_dir(place.path()).map_err(failed)?;
        let device = |path: &Path| fs::metadata(path).map(|data| data.dev());
        let own = device(&place.path()).map_err(failed)?;
        if device(&target).is_ok_and(|device| device != own) {
            return Err(Failure::Usage(format!(
                "{}: is a mount point, which cannot be replaced: name a new directory in it with -o",
                folder.display()
            )));
        }
        let console = Console::new(self.quiet);
        // Into the temporary directory: files of an interrupted extraction never lie under the name of the output.
        console.ended(archive.extract(&place.path(), &self.reading.limits(), &console))?;
        if let Ok(empty) = fs::metadata(&target) {
            fs::set_permissions(place.path(), empty.permissions()).map_err(failed)?;
        }
        // Before the rename: after a power cut, the name never stands for partial files.
        sync_file_system(&place.path()).map_err(failed)?;
        // A directory can only replace an empty one.
        fs::rename(place.path(), &target).map_err(failed)?;
        sync_directory(parent_directory(&target)).map_err(failed)
    }
}

impl ArchiveInfoArguments {
    fn run(&self) -> Result<(), Failure> {
        let archive = CollectionArchive::open(&self.archive)?;
        if self.verify {
            let console = Console::new(self.json);
            console.ended(archive.verify(&self.reading.limits(), &console))?;
        }
        let info = archive.info();
        match self.json {
            true => console::json(&info)?,
            false => print(&info)?,
        }
        Ok(())
    }
}

/// Parses a block size.
fn parse_block(text: &str) -> Result<ArchiveBlockSize, String> {
    let size = ArchiveBlockSize::try_from(size::parse(text)?);
    size.map_err(|error| error.to_string())
}

/// Prints facts about an archive on standard output.
fn print(info: &CollectionArchiveInfo) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{}, {}, {} stored next to the one that they copy",
        console::counted(info.sources, "file"),
        console::counted(info.documents, "document"),
        console::grouped(info.copies)
    )?;
    writeln!(
        out,
        "{} in {}: {:.2} to 1",
        size::show(info.source_bytes),
        size::show(info.archive_bytes),
        info.ratio
    )?;
    writeln!(
        out,
        "{}, {} with copies only; directory {}",
        console::counted(info.blocks, "block"),
        console::grouped(info.dependent_blocks),
        size::show(info.directory_bytes)
    )?;
    Ok(())
}

/// A temporary path in the directory of an output, which gets its name when it is complete. It is removed with the command.
struct SiblingTempPath {
    folder: Spool,
    output: PathBuf,
}

impl SiblingTempPath {
    fn new(output: &Path) -> Result<Self, Failure> {
        ensure_parent_exists(output)?;
        let folder =
            Spool::new(parent_directory(output)).map_err(|error| unwritable(output, error))?;
        Ok(Self {
            folder,
            output: output.to_owned(),
        })
    }

    fn path(&self) -> PathBuf {
        // Nothing has this path yet: a job creates it, as a file or as a directory.
        self.folder.path().join("output")
    }

    /// Gives the file its name, unless the name has been taken meanwhile.
    fn put_file(self) -> Result<(), Failure> {
        let failed = |error| unwritable(&self.output, error);
        // For `persist_noclobber`: `rename` of the standard library replaces what is there.
        let file = TempPath::try_from_path(self.path()).map_err(failed)?;
        // A hard link or a rename that does not replace, so that no race can overwrite a file created meanwhile.
        let put = file.persist_noclobber(&self.output);
        put.map_err(|error| failed(error.error))?;
        // A file is durable, but its name is only once its directory was synced.
        sync_directory(parent_directory(&self.output)).map_err(failed)
    }
}

fn unwritable(output: &Path, error: io::Error) -> Failure {
    Failure::Failed(format!(
        "{}: {}: check the permissions and the free space there, or choose another place with -o",
        output.display(),
        without_temporary_path(error)
    ))
}

fn refuse_existing(output: &Path) -> Result<(), Failure> {
    match output.symlink_metadata() {
        // `symlink_metadata`, so that a dangling link counts as existing. Other errors occur when the file is created.
        Err(_) => Ok(()),
        Ok(_) => Err(Failure::Usage(format!(
            "{}: already exists, and nothing is overwritten: choose another place with -o, or remove it",
            output.display()
        ))),
    }
}
