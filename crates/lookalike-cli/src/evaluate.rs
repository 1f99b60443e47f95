//! `lookalike evaluate`: which scheme to trust, with evidence from the user's own data.

mod audit;
mod label;
mod labels;
mod sample;
mod sweep;

use std::ffi::OsString;

use clap::Subcommand;
use lookalike_corpus::{InputOptions, Inputs, Parser};
use lookalike_eval::{Collection, Estimate};

use crate::arguments::{InputArguments, RunArguments};
use crate::console;
use crate::failure::Failure;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What a method would miss, without labels: a sample of documents against all, exactly and by the method
    Audit(audit::Arguments),
    /// Precision, recall and F1 of one scheme against labelled pairs or known clusters
    Labels(labels::Arguments),
    /// Pairs for a person to judge, equally many from each band of distance or similarity
    Sample(sample::Arguments),
    /// Shows the pairs of a sample one by one and writes down what you say: true, false or unknown
    Label(label::Arguments),
    /// Many settings at once: curves, and advice which is the cheapest that reaches what you want
    Sweep(sweep::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.what {
        What::Audit(arguments) => audit::run(arguments),
        What::Labels(arguments) => labels::run(arguments),
        What::Sample(arguments) => sample::run(arguments),
        What::Label(arguments) => label::run(arguments),
        What::Sweep(arguments) => sweep::run(arguments),
    }
}

/// Shows `visit` the id and text of every readable record; records that cannot be read are counted
/// and told, or stop the command under `--strict`.
fn visit(
    input: &InputArguments,
    run: &RunArguments,
    mut visit: impl FnMut(&str, &str),
) -> Result<(), Failure> {
    let options: InputOptions = input.options(None);
    let spool = run.spool(std::env::temp_dir())?;
    let names: &[OsString] = &input.inputs;
    let inputs = Inputs::discover(names, &options, spool.path())?;
    let mut parser = Parser::new(&inputs, &options);
    let (mut unreadable, mut first) = (0_u64, None);
    for chunk in inputs.chunks(&options) {
        let chunk = chunk.map_err(|error| Failure::Failed(error.to_string()))?;
        parser.parse(&chunk, &mut |record| match record {
            Ok(record) => visit(&record.id, &record.text),
            Err(bad) => {
                let name = inputs.sources[bad.source as usize].name();
                unreadable += 1;
                first.get_or_insert(format!("{name}: line {}: {}", bad.line, bad.reason));
            }
        });
    }
    match first {
        Some(reason) if input.strict => Err(Failure::Failed(reason)),
        Some(reason) => {
            console::warning(&format!(
                "{unreadable} records left out, the first: {reason}"
            ));
            Ok(())
        }
        None => Ok(()),
    }
}

/// All documents in memory.
fn collection(input: &InputArguments, run: &RunArguments) -> Result<Collection, Failure> {
    let limit = run.limits().memory;
    let (mut documents, mut bytes) = (Vec::new(), 0_u64);
    visit(input, run, |id, text| {
        bytes += (id.len() + text.len()) as u64;
        if bytes <= limit {
            documents.push((id.to_owned(), text.to_owned()));
        }
    })?;
    if bytes > limit {
        return Err(Failure::Failed(format!(
            "the documents have {} and --memory allows {}: give a part of them, or use `evaluate audit`, which \
             holds a sample only",
            crate::size::show(bytes),
            crate::size::show(limit)
        )));
    }
    Collection::new(documents).map_err(|error| Failure::Failed(error.to_string()))
}

/// A share above 0 and at most 1.
fn share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| format!("{text:?} is no share above 0 and at most 1"))
}

/// A share and its limits: `0.950 [0.912, 0.973]`.
fn shown(estimate: &Estimate) -> String {
    format!(
        "{:.3} [{:.3}, {:.3}]",
        estimate.value, estimate.low, estimate.high
    )
}

/// Writes a result to standard output.
fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

/// A result as one JSON object on standard output.
fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    print(&(serde_json::to_string(value).map_err(std::io::Error::from)? + "\n"))
}
