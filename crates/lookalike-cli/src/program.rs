//! Jobs for other programs: the options of the command as words, results and errors as values.
//!
//! Nothing is printed and no signals are handled: warnings are returned, and the observer gets the progress. Calls may run at the same time in
//! several threads.

use std::ffi::OsString;
use std::path::Path;

use clap::FromArgMatches as _;
use clap::error::{ContextKind, ContextValue};
use lookalike_batch::kernel::DedupKernel;
use lookalike_batch::overlap::{AtlasSummary, TextChunks};
use lookalike_batch::{DedupSummary, ExtractionSummary, JobObserver};
use lookalike_corpus::InMemoryDocument;

pub use crate::dedup::DocumentJob;
pub use crate::explain::{NumberedDocument, PairExplanation};

use crate::arguments::store_settings;
use crate::console::Console;
use crate::dedup::DedupArguments;
#[cfg(feature = "evaluation")]
use crate::evaluate;
use crate::failure::Failure;
use crate::{Cli, CliCommand, caller, option_uses, other_words};

/// The result of a job, with its warnings.
#[derive(Debug)]
pub struct ProgramJob<T> {
    /// The result.
    pub done: Result<T, Failure>,
    /// Warnings, one line each.
    pub warnings: Vec<String>,
}

/// Runs `lookalike dedup` with these words, which begin with `dedup`, and writes its results to the directory that they name.
///
/// ```
/// use lookalike_batch::NoProgress;
///
/// let folder = tempfile::tempdir()?;
/// let (pages, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
/// std::fs::write(&pages, "{\"id\":1,\"text\":\"a rose is a rose\"}\n{\"id\":2,\"text\":\"A rose is a rose!\"}\n")?;
/// let words = ["dedup".into(), pages.into(), "-o".into(), out.into()];
/// let summary = lookalike_cli::program::dedup(&words, &NoProgress).done?;
/// assert_eq!((summary.decisions.kept, summary.decisions.removed_near), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn dedup(words: &[OsString], observer: &dyn JobObserver) -> ProgramJob<DedupSummary> {
    for_dedup(words, |arguments| {
        arguments.write_results(&Console::for_program(observer), None)
    })
}

/// Works like [`dedup()`], and also writes the decisions on all documents to a file, for
/// [`SavedDecisions::open`](lookalike_batch::SavedDecisions::open). Documents are added to a collection after everything that may fail.
pub fn dedup_saving_decisions(
    words: &[OsString],
    decisions: &Path,
    observer: &dyn JobObserver,
) -> ProgramJob<DedupSummary> {
    for_dedup(words, |arguments| {
        arguments.write_results(&Console::for_program(observer), Some(decisions))
    })
}

/// Parses options of `lookalike dedup` for documents that the program passes in memory, and opens the collections that they name. The inputs and the
/// output directory among the words are ignored.
pub fn document_job(words: &[OsString]) -> ProgramJob<DocumentJob> {
    for_dedup(words, |arguments| arguments.document_job())
}

/// Parses options of `lookalike dedup` for documents that the program's own engine distributes over many machines. The inputs and the output
/// directory among the words are ignored.
pub fn dedup_kernel(words: &[OsString]) -> ProgramJob<DedupKernel> {
    for_dedup(words, |arguments| arguments.dedup_kernel())
}

/// Explains two texts, or, without texts, the documents that the words of `lookalike explain` name.
pub fn explain(
    words: &[OsString],
    texts: Option<[&str; 2]>,
    observer: &dyn JobObserver,
) -> ProgramJob<PairExplanation> {
    for_program(words, |command| match command {
        CliCommand::Explain(arguments) => {
            arguments.explain_for_program(texts, &Console::for_program(observer))
        }
        _ => Err(other_command("explain")),
    })
}

/// Explains two documents of the job with these words of `lookalike dedup`. The program passes the documents again, under these names.
pub fn explain_given(
    words: &[OsString],
    names: [&str; 2],
    documents: [InMemoryDocument<'_>; 2],
    observer: &dyn JobObserver,
) -> ProgramJob<PairExplanation> {
    for_dedup(words, |arguments| {
        arguments.explain_given(names, documents, observer)
    })
}

/// Explains two documents of the job with these words of `lookalike dedup`. Its inputs are read again.
pub fn explain_numbered(
    words: &[OsString],
    documents: [&NumberedDocument; 2],
    observer: &dyn JobObserver,
) -> ProgramJob<PairExplanation> {
    for_dedup(words, |arguments| {
        arguments.explain_numbered(documents, &Console::for_program(observer))
    })
}

/// Runs `lookalike overlap` with these words, which begin with `overlap`, and writes the atlas to the directory that they name.
pub fn overlap(words: &[OsString], observer: &dyn JobObserver) -> ProgramJob<AtlasSummary> {
    for_program(words, |command| match command {
        CliCommand::Overlap(arguments) => {
            arguments.atlas_for_program(&Console::for_program(observer))
        }
        _ => Err(other_command("overlap")),
    })
}

/// Parses options of `lookalike overlap` for texts whose chunks the program's own engine counts. The inputs among the words are ignored.
pub fn text_chunks(words: &[OsString]) -> ProgramJob<TextChunks> {
    for_program(words, |command| match command {
        CliCommand::Overlap(arguments) => arguments.text_chunks(),
        _ => Err(other_command("overlap")),
    })
}

/// Runs `lookalike evaluate audit`, `labels` or `sweep` with these words, which begin with `evaluate`, and returns what `--json` prints.
#[cfg(feature = "evaluation")]
pub fn evaluate(words: &[OsString], observer: &dyn JobObserver) -> ProgramJob<String> {
    for_program(words, |command| match command {
        CliCommand::Evaluate(arguments) => {
            evaluate::for_program(&arguments, &Console::for_program(observer))
        }
        _ => Err(other_command("evaluate")),
    })
}

/// Runs `lookalike pairs` with these words, which begin with `pairs`, and writes the pairs to the file that they name with `--output`.
pub fn pairs(words: &[OsString], observer: &dyn JobObserver) -> ProgramJob<()> {
    for_program(words, |command| match command {
        CliCommand::Pairs(arguments) => {
            arguments.pairs_for_program(&Console::for_program(observer))
        }
        _ => Err(other_command("pairs")),
    })
}

/// Runs `lookalike extract` with these words, which begin with `extract`, and writes the texts to the file that they name with `--output`.
pub fn extract(words: &[OsString], observer: &dyn JobObserver) -> ProgramJob<ExtractionSummary> {
    for_program(words, |command| match command {
        CliCommand::Extract(arguments) => {
            arguments.extract_for_program(&Console::for_program(observer))
        }
        _ => Err(other_command("extract")),
    })
}

/// Returns the URLs of the objects that an argument names in a store, so that they can be requested one by one: see
/// [`object_urls`](lookalike_corpus::object_urls). Settings come from the environment.
pub fn object_urls(argument: &str) -> Result<Vec<String>, Failure> {
    Ok(lookalike_corpus::object_urls(argument, &store_settings())?)
}

fn other_command(name: &str) -> Failure {
    Failure::Usage(format!("the first word must be {name}"))
}

fn for_dedup<T>(
    words: &[OsString],
    job: impl FnOnce(&DedupArguments) -> Result<T, Failure>,
) -> ProgramJob<T> {
    for_program(words, |command| match command {
        CliCommand::Dedup(arguments) => job(&arguments),
        _ => Err(other_command("dedup")),
    })
}

fn for_program<T>(
    words: &[OsString],
    job: impl FnOnce(CliCommand) -> Result<T, Failure>,
) -> ProgramJob<T> {
    let (done, warnings) = caller::for_program(words, || job(command(words)?));
    ProgramJob { done, warnings }
}

/// Parses the command.
fn command(words: &[OsString]) -> Result<CliCommand, Failure> {
    // clap takes the first word for the name of the program.
    let all = std::iter::once(OsString::from("lookalike")).chain(words.iter().cloned());
    let unknown = |error: clap::Error| Failure::Usage(first_paragraph(&error));
    // `try_`: otherwise clap would end the process, which belongs to another program.
    let mut definition = Cli::definition();
    let read = definition
        .try_get_matches_from_mut(all)
        .map_err(|error| unknown(other_words::with_meant(error, &definition, words)))?;
    // Options without effect are refused, as on the command line.
    option_uses::check(&read)?;
    let cli = Cli::from_arg_matches(&read).map_err(unknown)?;
    Ok(cli.with_standard_output().command)
}

/// Returns the message of an error without usage and hints, which refer to a command line, but with the name or value that was probably meant.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    // clap separates usage and tips by an empty line.
    let paragraph: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    let mut text = paragraph.join(" ");
    for kind in [ContextKind::InvalidArg, ContextKind::PriorArg] {
        // The placeholder for the value, as in `--shingle <KIND:N>`, belongs to a command line, too.
        if let Some(ContextValue::String(argument)) = error.get(kind)
            && let Some((name, _)) = argument.split_once(" <")
        {
            text = text.replace(argument, name);
        }
    }
    match probably_meant(error) {
        Some(meant) => format!("{text}: did you mean '{meant}'?"),
        None => text,
    }
}

/// Returns the existing name or value that is most like a wrong one.
fn probably_meant(error: &clap::Error) -> Option<&str> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let meant = kinds.into_iter().find_map(|kind| error.get(kind))?;
    match meant {
        ContextValue::String(meant) => Some(meant),
        // The best is the last.
        ContextValue::Strings(several) => several.last().map(String::as_str),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_options_are_told_in_a_sentence_and_end_nothing() {
        let refused = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            document_job(&words).done.unwrap_err().to_string()
        };
        let said = refused(&["dedup", "-", "-o", "out", "--methd", "minhash"]);
        assert_eq!(
            said,
            "unexpected argument '--methd' found: did you mean '--method'?"
        );
        // The word of datasketch.
        let said = refused(&["dedup", "-", "-o", "out", "--num-perm=128"]);
        assert_eq!(
            said,
            "unexpected argument '--num-perm' found: did you mean '--functions'?"
        );
        let said = refused(&["dedup", "-", "-o", "out", "--min-length=9"]);
        assert!(said.ends_with("leave them out of the input"), "{said}");
        let said = refused(&["dedup", "-", "-o", "out", "--shingle", "wrds:5"]);
        assert!(said.contains("for '--shingle'"), "{said}");
        assert!(refused(&["dedup", "-", "-o", "out", "--threshold", "2x"]).contains("not a share"));
        assert!(refused(&["pairs", "-"]).contains("first word"));
    }
}
