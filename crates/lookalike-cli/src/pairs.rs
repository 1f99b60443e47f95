//! `lookalike pairs`: all verified pairs on standard output.

use std::io::{BufWriter, stdout};

use lookalike_batch::{DedupJob, JobObserver, JobSettings, RepeatedIds};
use lookalike_corpus::InputOptions;

use crate::arguments::{
    BoilerplateArguments, InputArguments, MethodArguments, RunArguments, SchemeArguments,
    ScopeArguments, TestArguments,
};
use crate::console::{self, Console};
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
Prints one JSON object a line, {\"a\":..,\"b\":..,\"similarity\":..}, a < b, sorted by a and b;
with --method simhash also the distance of the fingerprints. Equal texts are pairs of
similarity 1.")]
pub(crate) struct PairsArguments {
    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    method: MethodArguments,

    #[command(flatten)]
    tests: TestArguments,

    #[command(flatten)]
    scope: ScopeArguments,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    /// Records that repeat an id: number (ID#2, ID#3, ...) or refuse
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "number",
        help_heading = "Input"
    )]
    repeated_ids: RepeatedIds,

    #[command(flatten)]
    run: RunArguments,
}

impl PairsArguments {
    fn settings(&self, read: &InputOptions) -> Result<JobSettings, Failure> {
        let method = &self.method;
        let (scheme, terms) = self.scheme.scheme(method.weight, method.sketch(), read)?;
        Ok(JobSettings {
            scope: self.scope.scope(),
            lengths: self.scope.lengths,
            repeated_ids: self.repeated_ids,
            losses: self.input.losses.policy(),
            ..self.method.settings(scheme, terms, &self.tests)
        })
    }
}

pub(crate) fn run(arguments: &PairsArguments) -> Result<(), Failure> {
    arguments.method.check()?;
    let mut options = InputOptions {
        category: arguments.scope.category(&arguments.method),
        fields: arguments.scheme.fields,
        ..arguments.input.options(None)
    };
    let boilerplate = &arguments.boilerplate;
    // Before anything is read where that can be: wrong settings should not cost time.
    let early = match boilerplate.is_off() {
        true => Some(arguments.settings(&options)?),
        false => None,
    };
    let limits = arguments.run.limits();
    let spool = arguments.run.spool(std::env::temp_dir())?;
    let inputs = arguments
        .input
        .discover(&options, spool.path(), None, arguments.run.quiet)?;
    let console = Console::new(arguments.run.quiet);
    boilerplate.learn(&inputs, &mut options, &limits, spool.path(), &console)?;
    let settings = match early {
        Some(settings) => settings,
        None => arguments.settings(&options)?,
    };
    let job = DedupJob::new(&inputs, spool.path())
        .settings(settings)
        .limits(limits)
        .options(options)
        .observer(&console);
    let done = job.write_pairs(&mut BufWriter::with_capacity(1 << 18, stdout().lock()));
    console.clear();
    let summary = done?;
    if !arguments.run.quiet {
        arguments
            .scope
            .warn(summary.counts.without_category, &arguments.method);
    }
    arguments.input.warn_of_unused(&inputs, arguments.run.quiet);
    if arguments.run.json {
        console::json_beside(&summary);
    } else if !arguments.run.quiet {
        console::pairs_summary(&summary, &console.measured());
    }
    arguments.input.losses.end(&summary.skipped)
}
