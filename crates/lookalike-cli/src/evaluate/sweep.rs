//! `lookalike evaluate sweep`: measures many settings at once, with curves and advice.

mod advised_job;
mod answer;
mod arguments;
mod given_sweep;
mod measurement;
mod setting_measurer;

use std::path::Path;

use lookalike::Scheme;
use lookalike::scheme::{Sketch, Weight};
use lookalike_batch::{DocumentUse, JobObserver, JobStage};
use lookalike_eval::{SetMeasure, SweepLimits};

use super::checkpoint::Checkpoint;
use super::labels::read_labels;
use super::swept_input::SweptInput;
use super::{AnswerOutput, EvaluationInput};
use crate::arguments::ensure_resemblance;
use crate::console::Console;
use crate::failure::Failure;
use crate::output_file::{check_output, files_of};
use arguments::distinct_values;
use measurement::SweepMeasurement;
use setting_measurer::{SettingMeasurer, SweepCheckpoint};

pub(crate) use arguments::SweepArguments;

impl SweepArguments {
    /// Runs the sweep.
    pub(super) fn evaluate(&self, console: &Console, output: AnswerOutput) -> Result<(), Failure> {
        ensure_resemblance(self.threshold)?;
        self.ensure_distinct_lists()?;
        if self.labels.is_none() && self.measures != [SetMeasure::Resemblance] {
            return Err(Failure::Usage(
                "--measures applies to labelled pairs: give --labels".to_owned(),
            ));
        }
        if self.fingerprints {
            return self.evaluate_sketches(console, output);
        }
        self.check_weights(console)?;
        // First, because the documents may take hours.
        let labels = self.labels.as_deref();
        let labels = labels
            .map(|path| Ok::<_, Failure>((path, read_labels(path, &self.run)?)))
            .transpose()?;
        let reading = EvaluationInput::of_scheme(
            &self.input,
            &self.run,
            &self.scheme,
            &self.boilerplate,
            console,
        )?;
        let read = files_of(&reading.inputs).chain(self.scheme.files());
        check_output(self.page.as_deref(), read.chain(self.labels.as_deref()))?;
        let base = self
            .scheme
            .measured(Weight::Set, Sketch::None, &reading.options)?;
        // Refused before the sweep begins, not hours later at the group of settings whose features do not fit.
        for shingle in distinct_values(base.shingle, &self.shingles) {
            let scheme = base.shingle(shingle);
            reading.ensure_documents_fit(DocumentUse::Features(&scheme))?;
        }
        let (measured, words, checkpoint) = self.measure(&reading, &base, labels, console)?;
        measured.write(self, &words, console, output)?;
        // Only after the answer was printed: until then it can be computed again from the checkpoint.
        checkpoint.map_or(Ok(()), Checkpoint::remove)?;
        reading.end()
    }

    /// Measures everything, and returns a description of the truth as well. `labels` are the file and its text.
    fn measure(
        &self,
        reading: &EvaluationInput<'_>,
        base: &Scheme,
        labels: Option<(&Path, String)>,
        console: &Console<'_>,
    ) -> Result<(SweepMeasurement, String, SweepCheckpoint), Failure> {
        // Copies are not set aside if pairs of equal texts may be labelled.
        let documents = SweptInput::new(reading, &reading.options, labels.is_none())?;
        let limits = self.run.limits();
        let limits = SweepLimits::default()
            .threads(limits.threads)
            .memory(limits.memory.saturating_sub(documents.bytes()));
        let (truth, words) = match labels {
            Some((path, text)) => self.labelled(path, &text, &documents)?,
            None => {
                console.stage(JobStage::Truth, 0);
                self.exact(&documents, base, limits)?
            }
        };
        let digest = documents.digest;
        let measurer = SettingMeasurer::new(self, console, base, &truth, limits, digest)?;
        let measured = SweepMeasurement::new(self, reading, &documents, base, &measurer)?;
        Ok((measured, words, measurer.checkpoint))
    }
}
