//! `lookalike evaluate sweep`: many settings at once, curves and advice.

mod advised_job;
mod given_sweep;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;

use lookalike::Scheme;
use lookalike::hash::xxh3_64;
use lookalike::scheme::{Extraction, HtmlMode, Mask, Shingle, Sketch, Weight};
use lookalike_batch::{BatchError, DocumentUse, JobObserver, JobStage};
use lookalike_corpus::{HtmlText, InputOptions};
use lookalike_eval::halves::NOTHING_CHOSEN;
use lookalike_eval::label::{LabelSet, judged};
use lookalike_eval::page::{self, PageHead, SweepExpectation};
use lookalike_eval::sweep::FeatureSensitivity;
use lookalike_eval::{
    AccuracyTarget, ConjunctiveRule, DocumentHalves, DocumentSet, ExpectedAccuracy, GroundTruth,
    HalvedAccuracy, JudgedScores, Recommendation, SetMeasure, SettingTally, SweepError,
    SweepLimits, SweepResult, SweepRow, SweepSetting, SweptDocuments, each_tally,
    expected_of_halves,
};
use serde::{Deserialize, Serialize};

use super::checkpoint::{Checkpoint, CheckpointArguments};
use super::labels::{describe_points, read_labels};
use super::swept_input::SweptInput;
use super::{EvaluationInput, print, shown, told_copies};
use crate::arguments::{
    BoilerplateArguments, InputArguments, RunArguments, SchemeArguments, command_line,
};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::output_file::{files_of, refuse_input, write_bytes};
use given_sweep::SketchJoin;

#[derive(clap::Args)]
#[command(after_help = "\
Without --labels, the truth is the exact resemblance, at --threshold, of the features that
--shingle and the other Features options name; documents with the same text as another are
set aside. Texts are never held in memory, but read again for each group of settings whose
sketches fit --memory; with --labels they are held. Every combination of --shingles,
--weights and --sketches is measured; weights only matter to simhash. Tables of terms are
made from the input itself. Masks and HTML modes are tried as well, where they change
anything; the truth always uses --mask and --html.

Each cut is chosen on the data that its figures describe. Therefore the choice is repeated
on a half of the documents, or with --labels on parts of the labels, and tested on the rest:
that is what to expect elsewhere. Each recommendation ends with the command that applies it.

With --fingerprints and --labels each INPUT is a setting: sketches of the same documents,
as fingerprint files, Parquet, raw numbers or an index. A quoted glob is one INPUT.

Examples:
  lookalike evaluate sweep news.jsonl --threshold 0.8 --page sweep.html
  lookalike evaluate sweep docs.jsonl --labels pairs.jsonl --precision 0.9 --recall 0.9
  lookalike evaluate sweep a.lkfp b.lkfp --fingerprints --labels pairs.jsonl")]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    input: InputArguments,

    /// File of labelled pairs, as for `evaluate labels`
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,

    /// With --labels: each INPUT holds sketches of any kind, written by `fingerprint -o` or `index build`
    #[arg(long)]
    fingerprints: bool,

    /// With --labels: lowest grade of near-duplicates
    #[arg(long, value_name = "GRADE", default_value_t = 1.0)]
    positive: f64,

    /// Without --labels: minimum resemblance of near-duplicates
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    threshold: f64,

    /// Features to try, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "words:1,words:2,words:3,words:5,words:3+5,chars:9"
    )]
    shingles: Vec<Shingle>,

    /// Weights to try in simhash, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "set,tf,log-tf,idf"
    )]
    weights: Vec<Weight>,

    /// Sketches to try, separated by commas; none is the exact resemblance of the features
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "simhash:64,super-shingle:6x14,minhash:128,none"
    )]
    sketches: Vec<Sketch>,

    /// Masks to try, separated by commas: none, numbers, dates, numbers+dates
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "none,numbers+dates",
        value_parser = mask
    )]
    masks: Vec<Mask>,

    /// HTML modes to try, as for --html, separated by commas; those that change no text are left out
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "visible,main"
    )]
    html_modes: Vec<HtmlMode>,

    /// With --labels: measures to try, separated by commas: resemblance, containment and coverage
    ///
    /// Containment is the shared features over the smaller set, coverage over the larger.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "resemblance"
    )]
    measures: Vec<SetMeasure>,

    /// With --labels: also find the combinations of two tests that agree best with the labels
    #[arg(long, requires = "labels", hide_short_help = true)]
    two_tests: bool,

    /// Second test for every setting: minimum length of the shorter text relative to the longer one, in bytes, above 0 and at most
    /// 1
    #[arg(long, value_name = "SHARE", value_parser = super::share, hide_short_help = true)]
    lengths: Option<f64>,

    /// Minimum precision to reach
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    precision: f64,

    /// Minimum recall to reach
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    recall: f64,

    /// Write a self-contained HTML page with plots
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    #[command(flatten)]
    checkpoint: CheckpointArguments,

    #[command(flatten)]
    run: RunArguments,
}

/// A mask of a list, in which commas stand between masks.
fn mask(text: &str) -> Result<Mask, String> {
    text.replace('+', ",")
        .parse()
        .map_err(|_| format!("{text:?} is not a mask: use none, numbers, dates or numbers+dates"))
}

/// The first and the others, each once.
fn each_once<T: Copy + PartialEq>(first: T, others: &[T]) -> Vec<T> {
    let mut all = vec![first];
    for &other in others {
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

impl SweepArguments {
    /// All settings of every mask.
    fn masked_settings(&self, base: &Scheme) -> Vec<SweepSetting> {
        let masks = each_once(base.mask, &self.masks).into_iter();
        masks
            .flat_map(|mask| self.settings(&base.mask(mask)))
            .collect()
    }

    /// All settings: every weight for simhash, the set for the other sketches.
    fn settings(&self, base: &Scheme) -> Vec<SweepSetting> {
        let weights = |sketch: Sketch| match sketch.fingerprint_bits() {
            0 => &[Weight::Set][..],
            _ => &self.weights,
        };
        let fits = |shingle: Shingle, weight: Weight| {
            !matches!(weight, Weight::TfLengthNoun(_)) || Some(shingle) == Shingle::words(1)
        };
        let mut all = Vec::new();
        for &sketch in &self.sketches {
            for &shingle in &self.shingles {
                let wanted = weights(sketch)
                    .iter()
                    .filter(|&&weight| fits(shingle, weight));
                let schemes =
                    wanted.map(|&weight| base.shingle(shingle).weight(weight).sketch(sketch));
                let measures = match sketch {
                    Sketch::None => &self.measures[..],
                    _ => &[SetMeasure::Resemblance],
                };
                for scheme in schemes {
                    all.extend(measures.iter().map(|&measure| SweepSetting {
                        scheme,
                        measure,
                        lengths: self.lengths,
                    }));
                }
            }
        }
        all
    }

    /// The other ways to read HTML. Lines that recur were learned under the one at hand, so that then there are none.
    fn other_extractions(
        &self,
        base: &Scheme,
        options: &InputOptions,
    ) -> Result<Vec<Extraction>, Failure> {
        if options.boilerplate.is_some() {
            return Ok(Vec::new());
        }
        let modes = each_once(base.html.mode, &self.html_modes).into_iter();
        modes
            .skip(1)
            .map(|mode| {
                let html = Extraction { mode, ..base.html };
                HtmlText::new(html)
                    .map(|_| html)
                    .map_err(|error| Failure::Usage(error.to_string()))
            })
            .collect()
    }

    /// The labelled pairs, and what is true in words.
    fn labelled(
        &self,
        path: &std::path::Path,
        collection: &DocumentSet,
    ) -> Result<(GroundTruth, String), Failure> {
        let LabelSet::Pairs(pairs) = read_labels(path, collection)? else {
            return Err(Failure::Usage(format!(
                "{}: a sweep needs labelled pairs: use `evaluate labels` for clusters",
                path.display()
            )));
        };
        let (known, unknown) = judged(&pairs, self.positive)
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
        let trues = known.iter().filter(|pair| pair.2).count();
        let words = format!(
            "{trues} of {} labelled pairs are true: those of grade {} or more; {unknown} are unknown and not counted.",
            known.len(),
            self.positive
        );
        Ok((GroundTruth::Judged(known), words))
    }

    /// The exact answer, and what is true in words.
    fn exact(
        &self,
        documents: &SweptInput<'_>,
        base: &Scheme,
        limits: SweepLimits,
    ) -> Result<(GroundTruth, String), Failure> {
        let truth = GroundTruth::of_documents(documents, base, self.threshold, limits);
        let truth = truth.map_err(|error| self.too_large(error))?;
        if truth.true_pairs() == 0 {
            return Err(Failure::Failed(format!(
                "no two documents{} resemble each other by {}: lower --threshold, or give labels",
                match documents.copies() {
                    0 => "",
                    _ => " of different texts",
                },
                self.threshold
            )));
        }
        let words = format!(
            "{} pairs are true: those whose resemblance over {} is {} or more.",
            truth.true_pairs(),
            base.shingle,
            self.threshold
        );
        Ok((truth, words))
    }

    fn too_large(&self, error: SweepError<Failure>) -> Failure {
        match error {
            SweepError::Documents(failure) => failure,
            SweepError::TooLarge { what, needed, .. } => Failure::Failed(format!(
                "{what} need {} or more, and --memory allows {}: raise --memory, give fewer documents, or leave them out of the sweep",
                crate::size::show(needed),
                crate::size::show(self.run.limits().memory)
            )),
            _ => BatchError::Cancelled.into(),
        }
    }
}

/// Something chosen, and the job that follows it.
#[derive(Serialize)]
pub(super) struct RecommendedJob<T> {
    #[serde(flatten)]
    advice: T,
    /// None where no job decides so.
    command: Option<String>,
}

/// Output as JSON. All but `expected` and `halves` is chosen on the data that its figures are of.
#[derive(Serialize)]
pub(super) struct SweepOutput<'a> {
    truth: &'a str,
    /// Documents that were set aside, for another one has their text.
    copies: u64,
    target: AccuracyTarget,
    best: Option<RecommendedJob<Recommendation>>,
    advice: Vec<RecommendedJob<Recommendation>>,
    sensitivity: Vec<FeatureSensitivity>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    expected: &'a [ExpectedAccuracy],
    /// Accuracy to expect on other documents, without labels; none if a half of the documents has no true pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    halves: Option<&'a [HalvedAccuracy]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    two_tests: Vec<RecommendedJob<ConjunctiveRule>>,
    /// True if each cut of each setting is shown: of sketches that are there, there are few settings.
    #[serde(skip)]
    shows_points: bool,
    #[serde(flatten)]
    sweep: &'a SweepResult,
}

/// Everything that was measured.
#[derive(Default)]
struct SweepMeasurement {
    settings: Vec<SweepSetting>,
    /// Of sketches that are there: the join for each setting.
    joins: Vec<SketchJoin>,
    swept: SweepResult,
    copies: u64,
    two_tests: Vec<ConjunctiveRule>,
    expected: Vec<ExpectedAccuracy>,
    /// Without labels.
    halves: Option<Vec<HalvedAccuracy>>,
}

/// Counts of one setting, as a checkpoint keeps them.
#[derive(Serialize, Deserialize)]
struct MeasuredSetting {
    setting: String,
    tally: SettingTally,
}

/// File of what is measured, if one is wanted.
type SweepCheckpoint = Option<Checkpoint<MeasuredSetting>>;

/// Name of a setting in a checkpoint: all that tells it from others.
fn setting_name(setting: &SweepSetting) -> String {
    let lengths = setting.lengths.unwrap_or(0.0);
    format!("{} {} lengths={lengths}", setting.scheme, setting.measure)
}

/// Settings on their way to rows.
struct SettingMeasurer<'a> {
    arguments: &'a SweepArguments,
    console: &'a Console<'a>,
    truth: &'a GroundTruth,
    limits: SweepLimits,
    checkpoint: SweepCheckpoint,
    known: HashMap<String, SettingTally>,
}

impl<'a> SettingMeasurer<'a> {
    /// Takes over what an earlier sweep of the same documents, of so many hashed, has measured.
    fn new(
        arguments: &'a SweepArguments,
        console: &'a Console<'a>,
        base: &Scheme,
        truth: &'a GroundTruth,
        limits: SweepLimits,
        digest: u64,
    ) -> Result<Self, Failure> {
        let judged = match truth {
            GroundTruth::Judged(pairs) => format!("{pairs:?}"),
            GroundTruth::Complete(_) => format!("{base} {}", arguments.threshold),
        };
        let of = format!("{judged} {digest:016x}");
        let opened = arguments
            .checkpoint
            .open("sweep", &of, arguments.run.quiet)?;
        let (checkpoint, done) = opened.unzip();
        let known = done.unwrap_or_default().into_iter();
        Ok(Self {
            known: known
                .map(|done: MeasuredSetting| (done.setting, done.tally))
                .collect(),
            arguments,
            console,
            truth,
            limits,
            checkpoint,
        })
    }

    /// The counts of these settings.
    fn tallies<D: SweptDocuments>(
        &self,
        documents: &D,
        settings: &[SweepSetting],
    ) -> Result<Vec<SettingTally>, Failure>
    where
        Failure: From<D::Error>,
    {
        let names: Vec<String> = settings.iter().map(setting_name).collect();
        let mut tallies: Vec<Option<SettingTally>> = names
            .iter()
            .map(|name| self.known.get(name).cloned())
            .collect();
        let missing: Vec<usize> = (0..settings.len())
            .filter(|&at| tallies[at].is_none())
            .collect();
        let wanted: Vec<SweepSetting> = missing.iter().map(|&at| settings[at]).collect();
        let mut done = (settings.len() - missing.len()) as u64;
        let mut written = Ok(());
        let mut add = |at: usize, tally: SettingTally| {
            let at = missing[at];
            // Anew each time: texts that were read again in between had a stage of their own.
            self.console.stage(JobStage::Measure, settings.len() as u64);
            done += 1;
            self.console.advance(done);
            if let Some(checkpoint) = &self.checkpoint {
                written = checkpoint.push(&MeasuredSetting {
                    setting: names[at].clone(),
                    tally: tally.clone(),
                });
            }
            tallies[at] = Some(tally);
            match self.console.is_cancelled() || written.is_err() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let swept = each_tally(documents, &wanted, self.truth, self.limits, &mut add);
        written?;
        let swept = swept.map_err(|error| match error {
            SweepError::Documents(error) => SweepError::Documents(error.into()),
            SweepError::TooLarge {
                what,
                needed,
                most_bytes,
            } => SweepError::TooLarge {
                what,
                needed,
                most_bytes,
            },
            _ => SweepError::Ended,
        });
        swept.map_err(|error| self.arguments.too_large(error))?;
        Ok(tallies.into_iter().flatten().collect())
    }

    /// The rows of these settings.
    fn rows(&self, settings: &[SweepSetting], tallies: &[SettingTally]) -> Vec<SweepRow> {
        let counted = settings.iter().zip(tallies);
        counted
            .map(|(setting, tally)| tally.row_of(setting, self.truth))
            .collect()
    }
}

impl SweepMeasurement {
    /// Sweeps all masks, and all ways to read HTML that change a text, over documents that are read again and again.
    fn of_input(
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
            let other = match documents.read_otherwise(&options)? {
                Ok(other) => other,
                Err(found) => {
                    let wanted = documents.records();
                    warn_of_other_documents(measurer.console, html.mode, found, wanted, base);
                    continue;
                }
            };
            // Where no text differs, the rows would be the same.
            if !other.has_texts_of(documents) {
                let more = arguments.masked_settings(&base.html(html));
                tallies.extend(measurer.tallies(&other, &more)?);
                settings.extend(more);
            }
        }
        let all = 0..documents.len() as u32;
        let halves = DocumentHalves::new(all.map(|at| documents.id(at)));
        let (truth, target) = (measurer.truth, arguments.target());
        Ok(Self {
            swept: SweepResult {
                documents: documents.len() as u64,
                true_pairs: truth.true_pairs(),
                rows: measurer.rows(&settings, &tallies),
            },
            halves: Some(expected_of_halves(
                &settings, &tallies, truth, &halves, target,
            )),
            settings,
            copies: documents.copies(),
            ..Self::default()
        })
    }

    /// The same over documents in memory, of which some pairs are judged.
    fn of_labelled(
        arguments: &SweepArguments,
        reading: &EvaluationInput<'_>,
        collection: &DocumentSet,
        base: &Scheme,
        measurer: &SettingMeasurer<'_>,
    ) -> Result<Self, Failure> {
        let judged: &[_] = match measurer.truth {
            GroundTruth::Judged(judged) => judged,
            GroundTruth::Complete(_) => &[],
        };
        let mut scores = JudgedScores::new(collection, judged);
        let mut settings = arguments.masked_settings(base);
        let mut tallies = measurer.tallies(collection, &settings)?;
        scores.add(collection, &settings);
        for html in arguments.other_extractions(base, &reading.options)? {
            let options = reading.options.clone().html(html);
            let other = reading.collection_under(&options)?;
            let ids = |of: &DocumentSet| -> Vec<String> {
                of.documents().iter().map(|one| one.id.clone()).collect()
            };
            if ids(&other) != ids(collection) {
                let (found, wanted) = (other.len(), collection.len());
                warn_of_other_documents(measurer.console, html.mode, found, wanted, base);
                continue;
            }
            // The rows would be the same.
            if other.texts().eq(collection.texts()) {
                continue;
            }
            let more = arguments.masked_settings(&base.html(html));
            tallies.extend(measurer.tallies(&other, &more)?);
            scores.add(&other, &more);
            settings.extend(more);
        }
        measurer.console.stage(JobStage::Compare, 0);
        let two_tests = match arguments.two_tests {
            true => scores.conjunctive_rules(MOST_TOGETHER),
            false => Vec::new(),
        };
        Ok(Self {
            swept: SweepResult {
                documents: collection.len() as u64,
                true_pairs: measurer.truth.true_pairs(),
                rows: measurer.rows(&settings, &tallies),
            },
            settings,
            two_tests,
            expected: scores.expectations(arguments.two_tests),
            // Nothing is set aside: somebody may have judged a pair of equal texts.
            ..Self::default()
        })
    }

    fn advised(&self, kept: &[String], advice: Recommendation) -> RecommendedJob<Recommendation> {
        let (setting, cut) = (&self.settings[advice.row], advice.point.cut);
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
}

pub(crate) fn run(arguments: &SweepArguments) -> Result<(), Failure> {
    let console = Console::new(arguments.run.quiet);
    arguments.evaluate(&console, |answer| match arguments.run.json {
        true => Ok(console::json(answer)?),
        false => print(&describe(answer)),
    })
}

impl SweepArguments {
    /// Sweeps, and returns what `show` makes of the answer.
    pub(super) fn evaluate<T>(
        &self,
        console: &Console<'_>,
        show: impl FnOnce(&SweepOutput<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            return Err(Failure::Usage(format!(
                "threshold {} is not above 0 and at most 1",
                self.threshold
            )));
        }
        if self.labels.is_none() && self.measures != [SetMeasure::Resemblance] {
            return Err(Failure::Usage(
                "--measures applies to labelled pairs: give --labels".to_owned(),
            ));
        }
        if self.fingerprints {
            return self.evaluate_sketches(console, show);
        }
        let reading = EvaluationInput::of_scheme(
            &self.input,
            &self.run,
            &self.scheme,
            &self.boilerplate,
            console,
        )?;
        refuse_input(self.page.as_deref(), files_of(&reading.inputs))?;
        let base = self
            .scheme
            .measured(Weight::Set, Sketch::None, &reading.options)?;
        for shingle in each_once(base.shingle, &self.shingles) {
            let scheme = base.shingle(shingle);
            reading.ensure_documents_fit(DocumentUse::Features(&scheme))?;
        }
        let (measured, words, checkpoint) = self.measure(&reading, &base, console)?;
        let shown = self.told(&measured, &words, console, show)?;
        // Only when the answer is out: until then it can be made again from the checkpoint.
        checkpoint.map_or(Ok(()), Checkpoint::remove)?;
        reading.end()?;
        Ok(shown)
    }

    /// The least precision and recall that are wished.
    fn target(&self) -> AccuracyTarget {
        AccuracyTarget {
            precision: self.precision,
            recall: self.recall,
        }
    }

    /// Writes the page, and returns what `show` makes of the answer.
    fn told<T>(
        &self,
        measured: &SweepMeasurement,
        words: &str,
        console: &Console<'_>,
        show: impl FnOnce(&SweepOutput<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        console.clear();
        let target = self.target();
        if let Some(path) = &self.page {
            let head = PageHead {
                command: console::harmless(&command_line()).into_owned(),
                truth: match measured.copies {
                    0 => words.to_owned(),
                    copies => format!(
                        "{words} {} with the same text as another are set aside.",
                        console::counted(copies, "document")
                    ),
                },
                target,
            };
            let expectation = expectation_of(&measured.expected, measured.halves.as_deref());
            let html = page::render(&measured.swept, &head, expectation.as_ref());
            let html = html.map_err(|error| Failure::Failed(error.to_string()))?;
            write_bytes(path, html.as_bytes())?;
        }
        show(&measured.answer(words, target, &advised_job::kept_arguments()))
    }

    /// Measures everything, and says in words what is true.
    fn measure(
        &self,
        reading: &EvaluationInput<'_>,
        base: &Scheme,
        console: &Console<'_>,
    ) -> Result<(SweepMeasurement, String, SweepCheckpoint), Failure> {
        let limits = self.run.limits();
        let limits_beside = |held: u64| SweepLimits {
            threads: limits.threads,
            memory: limits.memory.saturating_sub(held),
        };
        if let Some(path) = &self.labels {
            let collection = reading.collection()?;
            let (truth, words) = self.labelled(path, &collection)?;
            let texts = collection.documents().iter();
            let held = texts.map(lookalike_eval::EvaluatedDocument::bytes).sum();
            let all = collection.documents().iter();
            let digest = all.fold(0, |digest: u64, document| {
                let own = xxh3_64(&document.text_hash().to_le_bytes(), 0);
                digest.wrapping_add(xxh3_64(document.id.as_bytes(), own))
            });
            let limits = limits_beside(held);
            let measurer = SettingMeasurer::new(self, console, base, &truth, limits, digest)?;
            let measured =
                SweepMeasurement::of_labelled(self, reading, &collection, base, &measurer)?;
            return Ok((measured, words, measurer.checkpoint));
        }
        let documents = SweptInput::new(reading, &reading.options)?;
        let limits = limits_beside(documents.bytes());
        console.stage(JobStage::Truth, 0);
        let (truth, words) = self.exact(&documents, base, limits)?;
        let digest = documents.digest();
        let measurer = SettingMeasurer::new(self, console, base, &truth, limits, digest)?;
        let measured = SweepMeasurement::of_input(self, reading, &documents, base, &measurer)?;
        Ok((measured, words, measurer.checkpoint))
    }
}

/// Says that a way to read HTML is not tried.
fn warn_of_other_documents(
    console: &Console<'_>,
    mode: HtmlMode,
    found: usize,
    wanted: usize,
    base: &Scheme,
) {
    console.warn(&format!(
        "--html-modes {mode} is not tried: with it the input gives {found} documents, not the same {wanted} as with --html {}",
        base.html.mode
    ));
}

/// Combinations of two tests that are told.
const MOST_TOGETHER: usize = 10;

fn describe(answer: &SweepOutput<'_>) -> String {
    let mut text = describe_rows(answer);
    describe_advice(&mut text, answer);
    describe_together(&mut text, &answer.two_tests);
    if let Some(expectation) = expectation_of(answer.expected, answer.halves) {
        describe_expectation(&mut text, &expectation);
    }
    text
}

fn describe_rows(answer: &SweepOutput<'_>) -> String {
    let swept = answer.sweep;
    let mut text = format!(
        "{} settings over {} documents. {}\n{}Each cut is chosen on the data that its figures describe.\n\n",
        swept.rows.len(),
        swept.documents,
        answer.truth,
        told_copies(answer.copies)
    );
    let features = swept.rows.iter().map(|row| row.features.len());
    let width = features.max().unwrap_or(0).max(12);
    let sketches = swept.rows.iter().map(|row| row.sketch.len());
    let sketch_width = sketches.max().unwrap_or(0).max(18);
    let _ = writeln!(
        text,
        "{:sketch_width$} {:width$} {:11} {:>6}  {:>7} {:>6}  best cut",
        "sketch", "features", "weight", "bytes", "best F1", "AP"
    );
    for row in &swept.rows {
        let (f1, cut) = row
            .curve
            .best
            .as_ref()
            .map_or((0.0, "nothing found"), |best| (best.f1, &*best.parameter));
        let _ = writeln!(
            text,
            "{:sketch_width$} {:width$} {:11} {:>6.0}  {f1:>7.4} {:>6.3}  {cut}",
            row.sketch, row.features, row.weight, row.bytes, row.curve.average_precision
        );
    }
    for row in swept.rows.iter().filter(|_| answer.shows_points) {
        let _ = writeln!(text, "\n{} of {}", row.sketch, row.features);
        describe_points(&mut text, &row.curve);
    }
    text
}

fn describe_advice(text: &mut String, answer: &SweepOutput<'_>) {
    let target = answer.target;
    let _ = writeln!(
        text,
        "\nTarget: precision {} and recall {}. The cheapest settings that reach it, on the data they are chosen on:",
        target.precision, target.recall
    );
    if answer.advice.is_empty() {
        text.push_str("none\n");
    }
    for advised in answer.advice.iter().take(5) {
        let not_sure = match advised.advice.is_sure {
            true => "",
            false => "; not certain, the limits reach below the target",
        };
        describe_setting(text, advised, not_sure);
    }
    if let Some(best) = &answer.best {
        text.push_str("\nThe best by F1, whatever its cost:\n");
        describe_setting(text, best, "");
    }
}

fn describe_setting(text: &mut String, advised: &RecommendedJob<Recommendation>, note: &str) {
    let advice = &advised.advice;
    let _ = writeln!(
        text,
        "  {} at {}: precision {}, recall {}, F1 {:.4}, {:.0} bytes a document{note}",
        advice.setting,
        advice.point.parameter,
        shown(&advice.point.precision),
        shown(&advice.point.recall),
        advice.point.f1,
        advice.bytes
    );
    describe_command(text, advised.command.as_deref());
}

fn describe_command(text: &mut String, command: Option<&str>) {
    let _ = match command {
        Some(command) => writeln!(text, "    {command}"),
        None => writeln!(text, "    no single command does this"),
    };
}

fn describe_together(text: &mut String, together: &[RecommendedJob<ConjunctiveRule>]) {
    if !together.is_empty() {
        text.push_str("\nTwo tests, both of which must pass; the best, chosen on these labels:\n");
    }
    for RecommendedJob {
        advice: two,
        command,
    } in together
    {
        let _ = writeln!(
            text,
            "  {} and {}: precision {}, recall {}, F1 {:.4}",
            two.first,
            two.second,
            shown(&two.precision),
            shown(&two.recall),
            two.f1
        );
        describe_command(text, command.as_deref());
    }
}

/// Accuracy to expect elsewhere, and how it was measured; none if it was not.
fn expectation_of<'a>(
    labels: &'a [ExpectedAccuracy],
    halves: Option<&'a [HalvedAccuracy]>,
) -> Option<SweepExpectation<'a>> {
    let (elsewhere, basis) = match (labels.first(), halves) {
        (Some(first), _) => (
            "labels",
            format!(
                "settings and cuts chosen on four fifths of {} families of labelled pairs, tested on the last fifth;\n\
                 95 % limits by resampling families",
                first.families
            ),
        ),
        (None, Some(halves)) => {
            let known = match halves.first() {
                Some(first) => format!(
                    " added; {} true pairs lie in a half",
                    console::grouped(first.true_pairs)
                ),
                None => ": unknown, for one of the halves has no true pair".to_owned(),
            };
            (
                "documents",
                format!(
                    "settings and cuts chosen on one half of the documents, tested on the other, both ways{known}"
                ),
            )
        }
        (None, None) => return None,
    };
    Some(SweepExpectation {
        heading: format!("Expected on other {elsewhere}"),
        basis,
        labels,
        halves: halves.unwrap_or_default(),
    })
}

fn describe_expectation(text: &mut String, expectation: &SweepExpectation<'_>) {
    let _ = writeln!(text, "\n{}: {}", expectation.heading, expectation.basis);
    let labels = expectation.labels.iter().map(|one| one.choice.len());
    let halves = expectation.halves.iter().map(|one| one.choice.len());
    let width = labels.chain(halves).max().unwrap_or(0).max(18);
    for one in expectation.labels {
        let _ = writeln!(
            text,
            "  best of {:5} {:width$} F1 {:.3} [{:.3}, {:.3}], precision {:.3}, recall {:.3}",
            one.settings, one.choice, one.f1, one.low, one.high, one.precision, one.recall
        );
    }
    for one in expectation.halves {
        let _ = writeln!(
            text,
            "  best of {:5} {:width$} F1 {:.3}, precision {}, recall {}",
            one.settings,
            one.choice,
            one.f1,
            shown(&one.precision),
            shown(&one.recall)
        );
        let chosen = one.chosen.each_ref();
        let chosen = chosen.map(|chosen| chosen.as_deref().unwrap_or(NOTHING_CHOSEN));
        let _ = writeln!(text, "    chosen: {}", chosen.join("; "));
    }
}
