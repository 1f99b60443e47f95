//! Measurements of all settings, and the answer and page made from them.

use lookalike::Scheme;
use lookalike_batch::{JobObserver, JobStage};
use lookalike_eval::page::{self, PageHead};
use lookalike_eval::{
    AccuracyTarget, ConjunctiveRule, DocumentHalves, DocumentIds as _, ExpectedAccuracy,
    GroundTruth, HalvedAccuracy, JudgedScores, Recommendation, SweepResult, SweepSetting,
    expected_accuracy_of_halves,
};

use super::advised_job::{self, SketchJoin};
use super::answer::{RecommendedJob, SweepOutput, describe, expectation_of};
use super::arguments::SweepArguments;
use super::setting_measurer::SettingMeasurer;
use crate::arguments::command_line;
use crate::console::{self, Console};
use crate::evaluate::swept_input::SweptInput;
use crate::evaluate::{AnswerOutput, EvaluationInput};
use crate::failure::Failure;
use crate::output_file::write_bytes;

/// Maximum number of combinations of two tests in the answer.
const MAX_COMBINATIONS: usize = 10;

/// Everything that was measured.
#[derive(Default)]
pub(super) struct SweepMeasurement {
    pub(super) settings: Vec<SweepSetting>,
    /// For given sketches, the join for each setting.
    pub(super) joins: Vec<SketchJoin>,
    pub(super) swept: SweepResult,
    pub(super) copies: u64,
    pub(super) two_tests: Vec<ConjunctiveRule>,
    pub(super) expected: Vec<ExpectedAccuracy>,
    /// Accuracy on halves of the documents; only without labels.
    pub(super) halves: Option<Vec<HalvedAccuracy>>,
}

impl SweepMeasurement {
    /// Sweeps over all masks, and all ways to extract HTML that change a text. The documents are read repeatedly.
    pub(super) fn new(
        arguments: &SweepArguments,
        reading: &EvaluationInput<'_>,
        documents: &SweptInput<'_>,
        base: &Scheme,
        measurer: &SettingMeasurer<'_>,
    ) -> Result<Self, Failure> {
        let mut settings = arguments.masked_settings(base);
        let mut tallies = measurer.tallies(documents, &settings)?;
        for html in arguments.other_extractions(base, &reading.options)? {
            let options = reading.options.clone().html(html);
            let other = match documents.reread_with(&options)? {
                Ok(other) => other,
                // The truth names documents by position, so it does not apply to other documents.
                Err(found) => {
                    measurer.console.warn(&format!(
                        "--html-modes {} is not tried: with it the input gives {found} documents, not the same {} as with --html {}",
                        html.mode,
                        documents.records(),
                        base.html.mode
                    ));
                    continue;
                }
            };
            // If no text differs, the rows would be the same.
            if !other.has_texts_of(documents) {
                let more = arguments.masked_settings(&base.html(html));
                tallies.extend(measurer.tallies(&other, &more)?);
                settings.extend(more);
            }
        }
        let truth = measurer.truth;
        let mut measured = Self {
            swept: SweepResult {
                documents: documents.len() as u64,
                true_pairs: truth.true_pairs(),
                rows: measurer.rows(&settings, &tallies),
            },
            copies: documents.copies(),
            ..Self::default()
        };
        match truth {
            GroundTruth::Judged(judged) => {
                measurer.console.stage(JobStage::Compare, 0);
                // Tests and families need the score of each pair.
                let mut scores = JudgedScores::new(documents, judged);
                scores.add_tallies(&settings, &tallies);
                if arguments.two_tests {
                    scores.limit_first_tests(advised_job::can_be_first_test);
                    measured.two_tests = scores.conjunctive_rules(MAX_COMBINATIONS);
                }
                measured.expected = scores.expectations(arguments.two_tests);
            }
            GroundTruth::Complete { .. } => {
                // The same halves as in the tallies, because they depend on the ids alone.
                let halves = DocumentHalves::new(documents.ids.iter().map(String::as_str));
                measured.halves = Some(expected_accuracy_of_halves(
                    &settings,
                    &tallies,
                    truth,
                    &halves,
                    arguments.target(),
                ));
            }
        }
        measured.settings = settings;
        Ok(measured)
    }

    fn advised(&self, kept: &[String], advice: Recommendation) -> RecommendedJob<Recommendation> {
        let (setting, cut) = (&self.settings[advice.row], advice.point.cut);
        // Given sketches name no scheme from which a job could make them, so the advice is a join of the files.
        let command = match self.joins.get(advice.row) {
            Some(join) => join.command(cut),
            None => advised_job::of_setting(kept, setting, cut),
        };
        RecommendedJob { advice, command }
    }

    fn answer<'a>(
        &'a self,
        truth: &'a str,
        target: AccuracyTarget,
        kept: &[String],
    ) -> SweepOutput<'a> {
        let advise = |advice| self.advised(kept, advice);
        let both = |two: &ConjunctiveRule| RecommendedJob {
            command: advised_job::of_both(kept, &self.settings, two),
            advice: two.clone(),
        };
        SweepOutput {
            truth,
            copies: self.copies,
            target,
            best: self.swept.best(target).map(advise),
            advice: self
                .swept
                .recommendations(target)
                .into_iter()
                .map(advise)
                .collect(),
            sensitivity: self.swept.sensitivity(),
            expected: &self.expected,
            halves: self.halves.as_deref(),
            two_tests: self.two_tests.iter().map(both).collect(),
            shows_points: !self.joins.is_empty(),
            sweep: &self.swept,
        }
    }

    /// Writes the page and the answer.
    pub(super) fn write(
        &self,
        arguments: &SweepArguments,
        words: &str,
        console: &Console<'_>,
        output: AnswerOutput<'_>,
    ) -> Result<(), Failure> {
        console.clear();
        let target = arguments.target();
        let answer = self.answer(words, target, &advised_job::kept_arguments());
        if let Some(path) = &arguments.page {
            let head = PageHead {
                command: console::sanitized(&command_line()).into_owned(),
                truth: match self.copies {
                    0 => words.to_owned(),
                    copies => format!(
                        "{words} {} with the same text as another are set aside.",
                        console::counted(copies, "document")
                    ),
                },
                target,
                job: answer
                    .advice
                    .first()
                    .and_then(|first| first.command.as_deref())
                    .map(|job| console::sanitized(job).into_owned()),
            };
            let expectation = expectation_of(&self.expected, self.halves.as_deref());
            let html = page::render(&self.swept, &head, expectation.as_ref());
            let html = html.map_err(|error| Failure::Failed(error.to_string()))?;
            write_bytes(path, html.as_bytes())?;
        }
        output.write(&answer, || describe(&answer))
    }
}
