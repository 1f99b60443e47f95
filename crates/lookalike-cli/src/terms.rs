//! `lookalike terms`: in how many documents each feature occurs.

use std::path::PathBuf;

use lookalike_batch::{JobObserver, TermTable};
use lookalike_corpus::InputOptions;

use crate::arguments::{BoilerplateArguments, InputArguments, RunArguments, SchemeArguments};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::output_file::write_bytes;

#[derive(clap::Args)]
#[command(after_help = "\
The table is for --terms: weights by rarity (--weight idf, tf-idf, log-tf-idf), --method
i-match and --shingle phrases:N. It counts the features of one scheme, for phrases the words
and pairs of words, and its id becomes part of every scheme that uses it.

Example:
  lookalike terms crawl/ --shingle words:1 -o words.terms
  lookalike fingerprint crawl/ --shingle words:1 --weight idf --terms words.terms")]
pub(crate) struct TermsArguments {
    #[command(flatten)]
    input: InputArguments,

    /// The table's file
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    #[command(flatten)]
    run: RunArguments,
}

pub(crate) fn run(arguments: &TermsArguments) -> Result<(), Failure> {
    let mut options = arguments.input.options(None);
    let boilerplate = &arguments.boilerplate;
    let scheme = |options: &InputOptions| arguments.scheme.counted(options);
    // Before anything is read where that can be: wrong settings should not cost time.
    let early = boilerplate.is_off().then(|| scheme(&options)).transpose()?;
    let limits = arguments.run.limits();
    let spool = arguments.run.spool(std::env::temp_dir())?;
    let inputs = arguments
        .input
        .discover(&options, spool.path(), None, arguments.run.quiet)?;
    let console = Console::new(arguments.run.quiet);
    boilerplate.learn(&inputs, &mut options, &limits, spool.path(), &console)?;
    let scheme = match early {
        Some(scheme) => scheme,
        None => scheme(&options)?,
    };
    let job = TermTable {
        inputs: &inputs,
        options: &options,
        scheme,
        limits: &limits,
        losses: arguments.input.losses.policy(),
        observer: &console,
    };
    let done = job.count();
    console.clear();
    let (terms, summary) = done?;
    arguments.input.warn_of_unused(&inputs, arguments.run.quiet);
    write_bytes(&arguments.output, &terms.to_bytes())?;
    if arguments.run.json {
        console::json(&summary)?;
    } else if !arguments.run.quiet {
        console::terms_summary(&summary, &console.measured());
    }
    arguments.input.losses.end(&summary.skipped)
}
