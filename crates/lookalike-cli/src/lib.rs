//! The `lookalike` command: near-duplicate detection for collections of any size.
//!
//! [`run`] is the whole program. [`program`] runs jobs for other programs, which pass the options of the command and get results and errors instead
//! of text.
//!
//! Each subcommand is a file; `arguments` contains their shared options, and `console` prints all messages. Results go to standard output or to the
//! directory given with `-o`, everything else to standard error. `failure` defines the exit statuses.

// Dead code is reported only in builds with all features, because other builds do not use the helpers of missing commands.
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports))]

mod against;
mod archive;
mod arguments;
mod bus_error;
mod caller;
#[cfg(feature = "service")]
mod client;
mod cluster;
mod collection;
#[cfg(feature = "service")]
mod collection_file;
mod completions;
#[cfg(feature = "service")]
mod config;
mod console;
mod dedup;
mod design;
#[cfg(feature = "evaluation")]
mod evaluate;
mod explain;
mod extract;
mod failure;
mod fingerprint;
mod finished_job;
mod index;
mod interrupt;
mod join;
mod kept_documents;
mod known_schemes;
mod links;
mod machine;
mod merge;
#[cfg(not(all(feature = "evaluation", feature = "service")))]
mod missing;
mod open_files;
mod option_style;
mod option_uses;
mod other_words;
mod output_file;
mod overlap;
mod pairs;
pub mod program;
mod radius_warning;
mod remedy;
#[cfg(feature = "service")]
mod serve;
mod short_help;
mod size;
mod spool;
#[cfg(feature = "service")]
mod store;
mod terms;
mod wrong_value;

use std::ffi::OsString;
use std::io::Write as _;
use std::sync::Arc;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use arguments::{is_standard_output, refuse_standard_streams};
pub use failure::Failure;
#[cfg(not(feature = "evaluation"))]
use missing::evaluate;
#[cfg(not(feature = "service"))]
use missing::{client, serve, store};
pub use option_style::OptionStyle;

/// Finds exact and near-duplicate documents, decides which to keep, and explains why.
#[derive(Parser)]
#[command(name = "lookalike", version, max_term_width = 92, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

const EXAMPLES: &str = "\
Examples:
  lookalike dedup pages/ -o out                 folders of text, source code or HTML
  lookalike dedup crawl.jsonl.gz -o out         one record per line, with fields id and text
  lookalike pairs news.jsonl --threshold 0.5    all pairs that resemble each other
  lookalike join crawl.u64 new.jsonl            pairs of fingerprints within 3 bits
  lookalike serve --data store                  the online service, on this machine
  lookalike explain a.html b.html               why two documents match, or do not

Every near-duplicate document that is reported was verified by exact resemblance, except by
join, index, cluster without --verify, dedup and pairs with --threshold 0, and the verdict
near of the service: these compare only sketches.

Exit status: 0 done; 1 failed; 2 wrong usage; 3 done, but some records or files could not be
read (see --max-skipped); 129, 130 or 143 ended by a signal.";

#[derive(Subcommand)]
enum CliCommand {
    /// Remove duplicates; write what is kept, what is removed and why, and a report
    Dedup(dedup::DedupArguments),
    /// List all pairs of documents that resemble each other
    Pairs(pairs::PairsArguments),
    /// Store what new documents are compared with, so that old ones are not read again
    Collection(collection::CollectionArguments),
    /// Pack a collection into one file, storing near-copies together; every document comes back byte for byte
    Archive(archive::ArchiveArguments),
    /// Print the texts that the other commands compare
    Extract(extract::ExtractArguments),
    /// Invert links: add the texts and addresses of links to the pages they point to
    Links(links::LinksArguments),
    /// Print the 64-bit simhash fingerprint, or another sketch, of every document
    #[command(visible_alias = "sketch")]
    Fingerprint(fingerprint::FingerprintJobArguments),
    /// List all pairs of fingerprints within a distance, from two collections or within one
    Join(join::JoinArguments),
    /// Merge sorted lists of pairs into the output of a single join
    Merge(merge::MergeArguments),
    /// Decide from fingerprints, or pairs of them, what to keep and what to remove
    Cluster(cluster::ClusterArguments),
    /// List the table designs of a Hamming index and the cost of each
    Design(design::DesignArguments),
    /// Count the documents that contain each feature, for weights by rarity
    Terms(Box<terms::TermsArguments>),
    /// Build, search and inspect a Hamming index on disk
    Index(index::IndexArguments),
    /// Measure precision and recall, against labels or the exact answer, over many settings
    Evaluate(evaluate::EvaluateArguments),
    /// Count the chunks shared by each pair of documents or servers
    Overlap(overlap::OverlapArguments),
    /// Serve verdicts on documents over HTTP: seen before, or new?
    Serve(serve::ServeArguments),
    /// Send requests to a service: check, insert, load, export
    Client(client::ClientArguments),
    /// Check, copy, restore, salvage or load the data of a stopped service
    Store(store::StoreArguments),
    /// Show why two documents match or do not
    Explain(explain::ExplainArguments),
    /// Print the completion script for a shell
    Completions(completions::CompletionsArguments),
    /// Write the manual pages to a directory
    Man(completions::ManArguments),
}

impl Cli {
    /// Returns the command with its arguments.
    fn definition() -> clap::Command {
        refuse_standard_streams(Self::command())
    }

    /// Removes the output `-` of commands that write to standard output if none is named.
    fn with_standard_output(mut self) -> Self {
        let output = match &mut self.command {
            CliCommand::Pairs(arguments) => &mut arguments.output,
            CliCommand::Extract(arguments) => &mut arguments.output,
            CliCommand::Links(arguments) => &mut arguments.output,
            CliCommand::Fingerprint(arguments) => &mut arguments.output,
            CliCommand::Join(arguments) => &mut arguments.output,
            CliCommand::Merge(arguments) => &mut arguments.output,
            // All others refuse it when they parse their arguments.
            _ => return self,
        };
        output.take_if(|path| is_standard_output(path));
        self
    }
}

/// Silences panics of libraries that damaged files cause: they are reported with the file, and are not errors of the program.
fn mute_handled_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !lookalike_corpus::panic_is_handled() {
            tell(panic);
        }
    }));
}

/// Parses the command line, with defaults from the configuration file.
fn read_arguments(words: Vec<OsString>) -> Result<Cli, Failure> {
    #[cfg(feature = "service")]
    let command = config::with_defaults(Cli::definition(), &words)?;
    #[cfg(not(feature = "service"))]
    let command = Cli::definition();
    // Help, version and usage errors end the process here.
    let mut command = short_help::shorten(command);
    let read = command.try_get_matches_from_mut(&words);
    #[cfg(feature = "service")]
    let file = config::named(&words);
    #[cfg(not(feature = "service"))]
    let file: Option<std::path::PathBuf> = None;
    let read = read.map_err(|error| {
        let error = other_words::with_meant(error, &command, &words);
        printed(&wrong_value::explained(error, &words, file.as_deref()))
    })?;
    // Checked on the matches of clap, which distinguish values on the command line from defaults.
    option_uses::check(&read)?;
    Cli::from_arg_matches(&read)
        .map(Cli::with_standard_output)
        .map_err(|error| printed(&error))
}

/// Prints help, the version or a usage error, and ends the process. Returns if standard output takes no help.
#[expect(clippy::exit, reason = "nothing has begun yet")]
fn printed(error: &clap::Error) -> Failure {
    match error.print().and_then(|()| std::io::stdout().flush()) {
        Err(cause) if !error.use_stderr() => cause.into(),
        _ => std::process::exit(error.exit_code()),
    }
}

/// Runs the command with these words, which begin with the name of the program, and returns its exit status.
///
/// It prints, handles signals and may end the process, like the program: invalid usage ends the process with status 2.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    mute_handled_panics();
    // A file beyond the shell's size limit then fails in its write, like a full disk; by default the process ends without a message.
    let _ = signal_hook::flag::register(libc::SIGXFSZ, Arc::default());
    let words: Vec<OsString> = words.into_iter().collect();
    // Results name the command line, which is not that of the process if another program calls this function.
    caller::set_words(words.iter().skip(1).cloned().collect());
    let cli = match read_arguments(words) {
        Ok(cli) => cli,
        Err(failure) => return failure::exit_status(Err(failure)),
    };
    // Collections of many additions, joins of many indexes, and services may need more open files than the soft limit.
    open_files::raise_limit();
    let done = match cli.command {
        CliCommand::Dedup(arguments) => dedup::run(&arguments),
        CliCommand::Pairs(arguments) => pairs::run(&arguments),
        CliCommand::Collection(arguments) => collection::run(&arguments),
        CliCommand::Archive(arguments) => archive::run(&arguments),
        CliCommand::Extract(arguments) => extract::run(&arguments),
        CliCommand::Links(arguments) => links::run(&arguments),
        CliCommand::Fingerprint(arguments) => fingerprint::run(&arguments),
        CliCommand::Join(arguments) => join::run(&arguments),
        CliCommand::Merge(arguments) => merge::run(&arguments),
        CliCommand::Cluster(arguments) => cluster::run(&arguments),
        CliCommand::Design(arguments) => design::run(&arguments),
        CliCommand::Terms(arguments) => terms::run(&arguments),
        CliCommand::Index(arguments) => index::run(&arguments),
        CliCommand::Evaluate(arguments) => evaluate::run(&arguments),
        CliCommand::Overlap(arguments) => overlap::run(&arguments),
        CliCommand::Serve(arguments) => serve::run(&arguments),
        CliCommand::Client(arguments) => client::run(&arguments),
        CliCommand::Store(arguments) => store::run(&arguments),
        CliCommand::Explain(arguments) => explain::run(&arguments),
        CliCommand::Completions(arguments) => completions::run(&arguments),
        CliCommand::Man(arguments) => completions::manual(&arguments),
    };
    // Before a failure is reported: after a signal it would be about files that the signal removed.
    interrupt::park_if_interrupted();
    failure::exit_status(done)
}

/// The programs in the guide, compiled as tests.
#[cfg(all(doctest, feature = "full"))]
#[doc = include_str!("../../../docs/reference/rust.md")]
pub struct RustGuide;
