//! Documents of `--against`, with which the documents of the input are compared.

use std::ffi::OsString;
use std::path::Path;

use lookalike_batch::DocumentCollection;
use lookalike_corpus::{InputOptions, Inputs};

use crate::console::{self, Console};
use crate::failure::Failure;
use crate::kept_documents::kept_documents;

/// Finds the documents that `--against` names. Collections, and what `is_unread` names, are not read.
pub(crate) fn discover_against(
    against: &[OsString],
    is_unread: impl Fn(&Path) -> bool,
    options: &InputOptions,
    spool: &Path,
) -> Result<Inputs, Failure> {
    let read = against.iter().filter(|path| {
        let path = Path::new(path);
        !DocumentCollection::exists_in(path) && !is_unread(path)
    });
    let paths = read.map(kept_documents);
    let paths = paths.collect::<Result<Vec<_>, _>>()?.concat();
    match paths.is_empty() {
        true => Ok(Inputs {
            sources: Vec::new(),
            skips: Vec::new(),
        }),
        false => Ok(Inputs::discover(&paths, options, spool)?),
    }
}

/// Puts the documents of `--against` before the new ones, and returns the number of their sources. A job is told by that number where the new documents
/// begin: among equals the document with the lowest number survives, which must be one of `--against`.
pub(crate) fn against_first(
    mut against: Inputs,
    mut new: Inputs,
    console: &Console,
) -> Result<(Inputs, usize), Failure> {
    exclude_against_inputs(&mut new, &against, console)?;
    let count = against.sources.len();
    // Skipped files of `--against` are not copied to the results.
    against.skips.iter_mut().for_each(|skip| skip.file = None);
    against.sources.extend(new.sources);
    against.skips.extend(new.skips);
    Ok((against, count))
}

/// Removes inputs that are also given with `--against`: they would be read twice, and be copies of themselves.
fn exclude_against_inputs(
    new: &mut Inputs,
    against: &Inputs,
    console: &Console,
) -> Result<(), Failure> {
    if against.sources.is_empty() {
        return Ok(());
    }
    let again = new.exclude_inputs_of(
        against,
        "also given with --against: only compared with, not written",
    );
    if again > 0 && new.sources.is_empty() {
        return Err(Failure::Usage(
            "all of the input is also given with --against, so nothing is left to compare: name new documents".to_owned(),
        ));
    }
    if again > 0 {
        let (files, are) = if again == 1 {
            ("file", "is")
        } else {
            ("files", "are")
        };
        console.warn(&format!(
            "{} {files} of the input {are} also given with --against: only compared with, not written to the results",
            console::grouped(again as u64)
        ));
    }
    Ok(())
}
