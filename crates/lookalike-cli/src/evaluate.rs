//! `lookalike evaluate`: finds out which scheme to trust, with evidence from the user's own data.

mod audit;
mod checkpoint;
mod given;
mod held_documents;
mod label;
mod labels;
mod sample;
mod sweep;
mod swept_input;

use std::cell::RefCell;
use std::path::Path;

use clap::Subcommand;
use lookalike::{FeatureExtractor, Scheme, Sketch, TermCounts};
use lookalike_batch::{
    BatchError, DocumentUse, FieldTally, JobObserver, JobStage, SkippedRow, SkippedRows,
    ensure_documents_fit,
};
use lookalike_corpus::{InputOptions, Inputs, Parser, Record};
use lookalike_eval::sweep::DocumentSketcher;
use lookalike_eval::{DocumentSetError, EvaluatedDocument, LabelError, ShareEstimate, SketchedSet};
use serde::Serialize;

use crate::arguments::{
    BoilerplateArguments, InputArguments, LossArguments, RunArguments, SchemeArguments,
};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::spool::Spool;
use given::GivenSketches;
use held_documents::HeldDocuments;

#[derive(clap::Args)]
pub(crate) struct EvaluateArguments {
    #[command(subcommand)]
    what: EvaluateCommand,
}

#[derive(Subcommand)]
enum EvaluateCommand {
    /// Estimate without labels what a method misses, by comparing a sample of documents exactly with all
    Audit(audit::AuditArguments),
    /// Measure precision, recall and F1 of one scheme against labelled pairs or known clusters
    Labels(labels::LabelFileArguments),
    /// Draw pairs for a person to judge, equally many from each band of distance or similarity
    Sample(sample::SampleArguments),
    /// Show the pairs of a sample one by one and record your answers: true, false or unknown
    Label(label::LabelArguments),
    /// Measure many settings at once; plot curves and recommend the cheapest that reaches your target
    Sweep(sweep::SweepArguments),
}

pub(crate) fn run(arguments: &EvaluateArguments) -> Result<(), Failure> {
    match &arguments.what {
        EvaluateCommand::Audit(audit) => {
            audit.evaluate(&audit.run.console(), AnswerOutput::of(&audit.run))
        }
        EvaluateCommand::Labels(labels) => {
            labels.evaluate(&labels.run.console(), AnswerOutput::of(&labels.run))
        }
        EvaluateCommand::Sample(arguments) => sample::run(arguments),
        EvaluateCommand::Label(arguments) => label::run(arguments),
        EvaluateCommand::Sweep(sweep) => {
            sweep.evaluate(&sweep.run.console(), AnswerOutput::of(&sweep.run))
        }
    }
}

/// Returns the answer of an evaluation as JSON, for another program.
pub(crate) fn for_program(
    arguments: &EvaluateArguments,
    console: &Console<'_>,
) -> Result<String, Failure> {
    let mut answer = String::new();
    let output = AnswerOutput::Program(&mut answer);
    match &arguments.what {
        EvaluateCommand::Audit(arguments) => arguments.evaluate(console, output)?,
        EvaluateCommand::Labels(arguments) => arguments.evaluate(console, output)?,
        EvaluateCommand::Sweep(arguments) => arguments.evaluate(console, output)?,
        EvaluateCommand::Sample(_) | EvaluateCommand::Label(_) => {
            return Err(Failure::Usage(
                "only audit, labels and sweep return an answer to a program".to_owned(),
            ));
        }
    }
    Ok(answer)
}

/// Output of the answer of an evaluation. It is written before losses are reported, which change the exit status, not the answer.
enum AnswerOutput<'a> {
    Text,
    Json,
    Program(&'a mut String),
}

impl AnswerOutput<'_> {
    fn of(run: &RunArguments) -> Self {
        match run.json {
            true => Self::Json,
            false => Self::Text,
        }
    }

    fn write(self, answer: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        match self {
            Self::Text => return print(&text()),
            Self::Json => console::json(answer)?,
            Self::Program(json) => {
                *json = serde_json::to_string(answer).map_err(std::io::Error::from)?;
            }
        }
        Ok(())
    }
}

/// Input of an evaluation, which can be read repeatedly.
struct EvaluationInput<'a> {
    input: &'a InputArguments,
    run: &'a RunArguments,
    console: &'a Console<'a>,
    options: InputOptions,
    inputs: Inputs,
    /// Counts of the last reading, and what it left out.
    read: RefCell<(FieldTally, Vec<SkippedRow>)>,
    /// Holds the copy of standard input.
    _spool: Spool,
}

impl<'a> EvaluationInput<'a> {
    fn new(
        input: &'a InputArguments,
        run: &'a RunArguments,
        options: InputOptions,
        console: &'a Console<'a>,
    ) -> Result<Self, Failure> {
        // Inputs that can be read only once are copied there: an evaluation reads several times.
        let spool = run.spool(std::env::temp_dir())?;
        Ok(Self {
            inputs: input.discover(&options, spool.path(), None, console)?,
            read: RefCell::default(),
            input,
            run,
            console,
            options,
            _spool: spool,
        })
    }

    /// Creates the input with the fields that the scheme uses, and without the lines to be removed.
    fn of_scheme(
        input: &'a InputArguments,
        run: &'a RunArguments,
        scheme: &SchemeArguments,
        boilerplate: &BoilerplateArguments,
        console: &'a Console<'a>,
    ) -> Result<Self, Failure> {
        let options = input.options(None).fields(scheme.fields);
        let mut reading = Self::new(input, run, options, console)?;
        reading.learn(boilerplate)?;
        Ok(reading)
    }

    /// Reads everything once to learn the lines to be removed, if requested.
    fn learn(&mut self, boilerplate: &BoilerplateArguments) -> Result<(), Failure> {
        let Self {
            inputs,
            options,
            run,
            console,
            _spool: spool,
            ..
        } = self;
        boilerplate.learn(
            inputs,
            options,
            &run.document_limits(),
            spool.path(),
            console,
        )?;
        console.clear();
        Ok(())
    }

    /// Refuses documents that are too long to be processed in this way in the available memory.
    fn ensure_documents_fit(&self, documents: DocumentUse<'_>) -> Result<(), Failure> {
        let limits = self.run.limits();
        let fitting = limits.fitting_threads();
        Ok(ensure_documents_fit(
            &limits.threads(fitting),
            documents,
            &self.inputs,
            &self.options,
        )?)
    }

    /// Calls `visit` with every readable record. The others are counted, see [`Self::end`]; too many are an error.
    fn visit(&self, visit: impl FnMut(&Record<'_>)) -> Result<(), Failure> {
        self.visit_with(&self.options, visit)
    }

    /// Works like `visit`, with other options.
    fn visit_with(
        &self,
        options: &InputOptions,
        mut visit: impl FnMut(&Record<'_>),
    ) -> Result<(), Failure> {
        let inputs = &self.inputs;
        let mut parser = Parser::new(inputs, options);
        let (mut skipped, mut fields) = (SkippedRows::default(), FieldTally::default());
        inputs.skips.iter().for_each(|skip| skipped.add_part(skip));
        let (console, policy) = (self.console, self.input.losses.policy());
        console.stage(JobStage::Scan, inputs.total_bytes());
        let mut bytes = 0;
        for chunk in inputs.chunks(options) {
            let chunk = chunk.map_err(|error| Failure::Failed(error.to_string()))?;
            chunk.skips.iter().for_each(|skip| skipped.add_part(skip));
            bytes += chunk.disk_bytes;
            console.progress(bytes);
            if console.is_cancelled() {
                return Err(BatchError::Cancelled.into());
            }
            parser.parse(&chunk, &mut |record| match record {
                Ok(record) => {
                    fields.count(&record);
                    visit(&record);
                }
                Err(bad) => skipped.add_record(inputs, &bad),
            });
            // The check below then fails, so nothing that follows is needed.
            if policy.is_strict() && skipped.has_losses() {
                break;
            }
        }
        console.clear();
        let skipped = skipped.finish();
        // At the end of a reading, because only then it is known how many records there are, of which a limit may be a share.
        policy.check(&skipped, fields.records)?;
        fields.refuse_wrong_types(&skipped)?;
        fields.check(inputs, options)?;
        fields.refuse_no_text(inputs, options)?;
        // Of the last reading only: every reading loses the same records.
        self.read.replace((fields, skipped));
        Ok(())
    }

    /// Ends an evaluation that has printed its answer. Fails if something could not be read.
    fn end(&self) -> Result<(), Failure> {
        self.input.warn_of_unused(&self.inputs, self.console);
        let (fields, skipped) = &*self.read.borrow();
        for (count, what) in [
            (fields.missing(), "without a text"),
            (fields.too_long, "longer than --max-document"),
        ] {
            if count > 0 {
                let records = console::counted(count, "record");
                let told = format!("{records} {what}: evaluated as empty texts");
                self.console.warn(&told);
            }
        }
        self.input.losses.end_answered(skipped)
    }

    /// Returns the sketches of all documents, without the texts, as far as --memory minus the `taken` bytes allows. The input is read once, or twice
    /// if the scheme needs a table of terms.
    fn sketches(
        &self,
        scheme: &Scheme,
        sets_copies_aside: bool,
        taken: u64,
    ) -> Result<SketchedSet, Failure> {
        let mut counts = None;
        if scheme.needs_terms() {
            let counted = scheme.counted();
            let mut extractor = FeatureExtractor::new(&counted);
            let mut all = TermCounts::new(&counted);
            self.visit(|record| all.add(extractor.feature_set(&record.text)))?;
            counts = Some(all);
        }
        let mut sketcher = DocumentSketcher::new(scheme, counts);
        let mut all = HeldDocuments::new(self.run.limits().memory, taken);
        self.visit(|record| all.push(sketcher.sketch(&document(record))))?;
        let all = all.finish(match scheme.sketch {
            Sketch::None => "features",
            _ => "sketches",
        })?;
        let set = match sets_copies_aside {
            true => SketchedSet::of(all),
            false => SketchedSet::with_copies(all),
        };
        set.map_err(|error| unusable_documents(&error))
    }
}

/// Documents as their sketches: made from their texts, or given.
struct SketchedInput<'a> {
    set: SketchedSet,
    /// The scheme of the sketches; of given ones only the sketch is known.
    scheme: Scheme,
    /// A description of the scheme.
    name: String,
    /// The documents, unless sketches were given.
    reading: Option<EvaluationInput<'a>>,
    /// Facts about the given sketches, which are in `set`.
    given: Option<GivenSketches>,
}

impl<'a> SketchedInput<'a> {
    fn made(
        reading: EvaluationInput<'a>,
        scheme: Scheme,
        sets_copies_aside: bool,
        taken: u64,
    ) -> Result<Self, Failure> {
        reading.ensure_documents_fit(DocumentUse::Features(&scheme))?;
        Ok(Self {
            set: reading.sketches(&scheme, sets_copies_aside, taken)?,
            scheme,
            name: scheme.to_string(),
            reading: Some(reading),
            given: None,
        })
    }

    fn given(
        input: &InputArguments,
        run: &RunArguments,
        taken: u64,
        console: &Console<'_>,
    ) -> Result<Self, Failure> {
        let mut given = GivenSketches::read(&input.inputs, input, run, taken, console)?;
        Ok(Self {
            set: std::mem::take(&mut given.set),
            scheme: given.setting().scheme,
            name: given.scheme(),
            reading: None,
            given: Some(given),
        })
    }

    /// Ends an evaluation that has printed its answer. Fails if something could not be read.
    fn end(&self, losses: &LossArguments) -> Result<(), Failure> {
        match &self.reading {
            Some(reading) => reading.end(),
            None => losses.end_answered(self.given.iter().flat_map(|given| &given.skipped)),
        }
    }
}

/// Creates the failure for documents that do not fit in memory.
fn too_large(what: &str, bytes: u64, limit: u64) -> Failure {
    Failure::Failed(format!(
        "the {what} need {}, and --memory allows {}: raise --memory, or give a part of them",
        crate::size::show(bytes),
        crate::size::show(limit)
    ))
}

/// Adds the remedy to an error about documents that cannot be evaluated.
fn unusable_documents(error: &DocumentSetError) -> Failure {
    let remedy = match error {
        DocumentSetError::RepeatedId { .. } => {
            ": give them different ids, or name another field with --id"
        }
        _ => "",
    };
    Failure::Failed(format!("{error}{remedy}"))
}

/// Returns a line about exact copies, if there are any.
fn copies_note(copies: u64) -> String {
    match copies {
        0 => String::new(),
        _ => format!(
            "copies      {} with the same text as another, set aside\n",
            console::counted(copies, "document")
        ),
    }
}

/// Adds the remedy to an error about labels that cannot be used.
fn unusable_labels(path: &Path, error: &LabelError) -> Failure {
    let remedy = match error {
        LabelError::UnknownId { .. } => {
            ": give the documents that were labelled, or name the id field with --id"
        }
        LabelError::OneClass { .. } => {
            ": label some pairs of the other kind, or change the limit with --positive"
        }
        _ => "",
    };
    Failure::Failed(format!("{}: {error}{remedy}", path.display()))
}

/// Converts a record to a document of the evaluation.
fn document(record: &Record<'_>) -> EvaluatedDocument {
    EvaluatedDocument::new(&*record.id, &*record.text)
        .fields(record.fields.clone())
        // The category is read for `--distance-for site` alone, so it is the site.
        .site(record.category.as_deref().map(str::to_owned))
}

/// Formats a share with its confidence limits: `0.950 [0.912, 0.973]`.
fn shown(estimate: &ShareEstimate) -> String {
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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    #[test]
    fn losses_of_sketches_took_the_answer_from_a_program() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.into_os_string()
        };
        let code =
            |id: &str, code: &str| format!("{{\"id\":\"{id}\",\"fingerprint\":\"{code}\"}}\n");
        let codes = code("a", "0000000000000001") + &code("b", "0000000000000003");
        let codes = codes + "nonsense\n" + &code("c", "ffffffffffffffff");
        let codes = write("codes.jsonl", &codes);
        let label =
            |b: &str, label: bool| format!("{{\"a\":\"a\",\"b\":\"{b}\",\"label\":{label}}}\n");
        let labels = write("labels.jsonl", &(label("b", true) + &label("c", false)));
        for command in ["labels", "sweep"] {
            let words = ["evaluate", command, "--fingerprints", "--labels"];
            let mut words: Vec<OsString> = words.map(OsString::from).to_vec();
            words.extend([labels.clone(), codes.clone()]);
            let job = crate::program::evaluate(&words, &lookalike_batch::NoProgress);
            assert!(job.done.is_ok(), "{:?}", job.done);
            let lost = "1 record or file could not be read";
            assert!(
                job.warnings.iter().any(|told| told.contains(lost)),
                "{:?}",
                job.warnings
            );
        }
    }
}
