//! Arguments of a sweep: the settings to try, and the truth.

use std::path::{Path, PathBuf};

use lookalike::Scheme;
use lookalike::scheme::{Extraction, HtmlMode, Mask, Shingle, Sketch, Weight};
use lookalike_batch::BatchError;
use lookalike_corpus::{HtmlText, InputOptions};
use lookalike_eval::label::{LabelError, LabelSet, judged};
use lookalike_eval::{
    AccuracyTarget, DocumentIds, GroundTruth, SetMeasure, StratifiedLabels, SweepError,
    SweepLimits, SweepSetting,
};

use crate::arguments::{BoilerplateArguments, InputArguments, RunArguments, SchemeArguments};
use crate::console::Console;
use crate::evaluate::checkpoint::CheckpointArguments;
use crate::evaluate::swept_input::SweptInput;
use crate::evaluate::unusable_labels;
use crate::failure::Failure;

// The values that a sweep tries by default.
const SHINGLES: &str = "words:1,words:2,words:3,words:5,words:3+5,chars:9";
const WEIGHTS: &str = "set,tf,log-tf,idf";
const SKETCHES: &str = "simhash:64,super-shingle:6x14,minhash:128,none";
const MASKS: &str = "none,numbers+dates";
const HTML_MODES: &str = "visible,main";
const MEASURES: &str = "resemblance";

#[derive(clap::Args)]
#[command(after_help = "\
Without --labels, the truth is the exact resemblance, at --threshold, of the features that
--shingle and the other Features options name; documents with the same text as another are
set aside. Texts are never held in memory, but read again for each group of settings whose
sketches fit --memory. Every combination of --shingles, --weights and --sketches is
measured; weights only matter to simhash, and tf-length-noun applies to words:1 only. Tables
of terms are made from the input itself. Masks and HTML modes are tried as well, where they
change anything; the truth always uses --mask and --html, and --short applies to the truth
only.

Each cut is chosen on the data that its figures describe. Therefore the choice is repeated
on a half of the documents, or with --labels on parts of the labels, and tested on the rest:
that is what to expect elsewhere. Each recommendation ends with the command that applies it,
if one does.

With --fingerprints and --labels each INPUT is a setting: sketches of the same documents,
as fingerprint files, Parquet, raw numbers or an index. A quoted glob is one INPUT.

Examples:
  lookalike evaluate sweep news.jsonl --threshold 0.8 --page sweep.html
  lookalike evaluate sweep docs.jsonl --labels pairs.jsonl --precision 0.9 --recall 0.9
  lookalike evaluate sweep a.lkfp b.lkfp --fingerprints --labels pairs.jsonl")]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    pub(super) input: InputArguments,

    /// File of labelled pairs, as for `evaluate labels`
    #[arg(long, value_name = "FILE")]
    pub(super) labels: Option<PathBuf>,

    /// With --labels: each INPUT holds sketches of any kind, written by `fingerprint -o` or `index build`
    #[arg(long)]
    pub(super) fingerprints: bool,

    /// With --labels: lowest grade of near-duplicates
    #[arg(long, value_name = "GRADE", default_value_t = 1.0)]
    pub(super) positive: f64,

    /// Without --labels: minimum resemblance of near-duplicates
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    pub(super) threshold: f64,

    /// Features to try, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = SHINGLES)]
    pub(super) shingles: Vec<Shingle>,

    /// Weights to try in simhash, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = WEIGHTS)]
    pub(super) weights: Vec<Weight>,

    /// Sketches to try, separated by commas; none is the exact resemblance of the features
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = SKETCHES)]
    pub(super) sketches: Vec<Sketch>,

    /// Masks to try, separated by commas: none, numbers, dates, numbers+dates
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = MASKS, value_parser = mask)]
    pub(super) masks: Vec<Mask>,

    /// HTML modes to try, as for --html, separated by commas; those that change no text are left out
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = HTML_MODES)]
    pub(super) html_modes: Vec<HtmlMode>,

    /// With --labels: measures to try, separated by commas: resemblance, containment and coverage
    ///
    /// Containment is the shared features over the smaller set, coverage over the larger.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = MEASURES)]
    pub(super) measures: Vec<SetMeasure>,

    /// With --labels: also find the combinations of two tests that agree best with the labels
    #[arg(long, requires = "labels", hide_short_help = true)]
    pub(super) two_tests: bool,

    /// Second test for every setting: minimum length of the shorter text relative to the longer one, in bytes, above 0 and at most
    /// 1
    #[arg(long, value_name = "SHARE", value_parser = crate::arguments::positive_share, hide_short_help = true)]
    pub(super) lengths: Option<f64>,

    /// Minimum precision to reach, above 0 and at most 1
    #[arg(long, value_name = "SHARE", default_value = "0.9", value_parser = crate::arguments::positive_share)]
    pub(super) precision: f64,

    /// Minimum recall to reach, above 0 and at most 1
    #[arg(long, value_name = "SHARE", default_value = "0.9", value_parser = crate::arguments::positive_share)]
    pub(super) recall: f64,

    /// Write a self-contained HTML page with plots
    #[arg(long, value_name = "FILE")]
    pub(super) page: Option<PathBuf>,

    #[command(flatten)]
    pub(super) scheme: SchemeArguments,

    #[command(flatten)]
    pub(super) boilerplate: BoilerplateArguments,

    #[command(flatten)]
    pub(super) checkpoint: CheckpointArguments,

    #[command(flatten)]
    pub(in crate::evaluate) run: RunArguments,
}

/// Parses a mask of a list, in which commas separate masks.
fn mask(text: &str) -> Result<Mask, String> {
    text.replace('+', ",")
        .parse()
        .map_err(|_| format!("{text:?} is not a mask: use none, numbers, dates or numbers+dates"))
}

/// Returns the first value and the others, without repetitions.
pub(super) fn distinct_values<T: Copy + PartialEq>(first: T, others: &[T]) -> Vec<T> {
    // The value of the truth comes first, even if the list does not name it.
    let mut all = vec![first];
    for &other in others {
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

/// Tells whether features can have this weight.
fn fits(weight: Weight, shingle: Shingle) -> bool {
    // This weight needs the lengths of single words.
    !matches!(weight, Weight::TfLengthNoun(_)) || Some(shingle) == Shingle::words(1)
}

/// Refuses a list that repeats a value, because its settings would be measured and counted twice.
fn ensure_distinct<T: PartialEq>(option: &str, values: &[T]) -> Result<(), Failure> {
    let repeats = (1..values.len()).any(|at| values[..at].contains(&values[at]));
    match repeats {
        true => Err(Failure::Usage(format!(
            "{option} names a value twice: give each once"
        ))),
        false => Ok(()),
    }
}

impl SweepArguments {
    /// Refuses lists that repeat a value.
    pub(super) fn ensure_distinct_lists(&self) -> Result<(), Failure> {
        ensure_distinct("--shingles", &self.shingles)?;
        ensure_distinct("--weights", &self.weights)?;
        ensure_distinct("--sketches", &self.sketches)?;
        ensure_distinct("--masks", &self.masks)?;
        ensure_distinct("--html-modes", &self.html_modes)?;
        ensure_distinct("--measures", &self.measures)
    }

    /// Refuses a weight that none of the features can have, and warns of one that some of them cannot have.
    pub(super) fn check_weights(&self, console: &Console<'_>) -> Result<(), Failure> {
        let is_weighted = |sketch: &Sketch| sketch.fingerprint_bits() > 0;
        if !self.sketches.iter().any(is_weighted) {
            return Ok(());
        }
        for &weight in &self.weights {
            let left_out = self.shingles.iter().filter(|&&own| !fits(weight, own));
            let left_out: Vec<String> = left_out.map(Shingle::to_string).collect();
            if left_out.len() == self.shingles.len() {
                return Err(Failure::Usage(format!(
                    "--weights {weight} applies to single words: add words:1 to --shingles"
                )));
            }
            if !left_out.is_empty() {
                console.warn(&format!(
                    "--weights {weight} applies to single words, so it is not tried with {}",
                    left_out.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Returns all settings of every mask.
    pub(super) fn masked_settings(&self, base: &Scheme) -> Vec<SweepSetting> {
        let masks = distinct_values(base.mask, &self.masks).into_iter();
        masks
            .flat_map(|mask| self.settings(&base.mask(mask)))
            .collect()
    }

    /// Returns all settings: every weight for simhash, and the plain set for the other sketches.
    fn settings(&self, base: &Scheme) -> Vec<SweepSetting> {
        let weights = |sketch: Sketch| match sketch.fingerprint_bits() {
            // Other sketches are made of the set, so every weight would give the same row.
            0 => &[Weight::Set][..],
            _ => &self.weights,
        };
        let mut all = Vec::new();
        for &sketch in &self.sketches {
            for &shingle in &self.shingles {
                let wanted = weights(sketch)
                    .iter()
                    .filter(|&&weight| fits(weight, shingle));
                let schemes =
                    wanted.map(|&weight| base.shingle(shingle).weight(weight).sketch(sketch));
                let measures = match sketch {
                    Sketch::None => &self.measures[..],
                    // Other sketches have a score of their own.
                    _ => &[SetMeasure::Resemblance],
                };
                for scheme in schemes {
                    let setting = SweepSetting::from(scheme).lengths(self.lengths);
                    all.extend(measures.iter().map(|&measure| setting.measure(measure)));
                }
            }
        }
        all
    }

    /// Returns the other ways to extract HTML. There are none if recurring lines are removed, because these were learned with the current way.
    pub(super) fn other_extractions(
        &self,
        base: &Scheme,
        options: &InputOptions,
    ) -> Result<Vec<Extraction>, Failure> {
        if options.boilerplate.is_some() {
            return Ok(Vec::new());
        }
        let modes = distinct_values(base.html.mode, &self.html_modes).into_iter();
        modes
            // The first is the current one, which has been measured already.
            .skip(1)
            .map(|mode| {
                let html = Extraction { mode, ..base.html };
                // Only to refuse, before hours of work, a mode that needs a feature which this build lacks.
                HtmlText::new(html)
                    .map(|_| html)
                    .map_err(|error| Failure::Usage(error.to_string()))
            })
            .collect()
    }

    /// Returns the labelled pairs of this text, and a description of the truth.
    pub(super) fn labelled(
        &self,
        path: &Path,
        text: &str,
        documents: &dyn DocumentIds,
    ) -> Result<(GroundTruth, String), Failure> {
        let failed = |error: LabelError| unusable_labels(path, &error);
        let labels = LabelSet::parse(text, documents).map_err(failed)?;
        let LabelSet::Pairs(pairs) = labels else {
            return Err(Failure::Usage(format!(
                "{}: a sweep needs labelled pairs: use `evaluate labels` for clusters",
                path.display()
            )));
        };
        let (known, unknown) = judged(&pairs, self.positive).map_err(failed)?;
        let trues = known.iter().filter(|pair| pair.is_true).count();
        // An error means that only some pairs are of a sample.
        let bands = match StratifiedLabels::parse(text, self.positive) {
            Ok(None) => "",
            _ => {
                " Each counts once, although they were drawn by bands: precision and recall are those of the labelled pairs, not of the \
                 collection, which `evaluate labels` estimates."
            }
        };
        let words = format!(
            "{trues} of {} labelled pairs are true: those of grade {} or more; {unknown} are unknown and not counted.{bands}",
            known.len(),
            self.positive
        );
        Ok((GroundTruth::Judged(known), words))
    }

    /// Returns the exact answer, and a description of the truth.
    pub(super) fn exact(
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

    pub(super) fn too_large(&self, error: SweepError<Failure>) -> Failure {
        match error {
            SweepError::Documents(error) => error,
            SweepError::TooLarge { what, needed, .. } => Failure::Failed(format!(
                "{what} need {} or more, and --memory allows {}: raise --memory, give fewer documents, or leave them out of the sweep",
                crate::size::show(needed),
                crate::size::show(self.run.limits().memory)
            )),
            // `Ended`: only a cancelled job, because a checkpoint that cannot be written has been reported before.
            _ => BatchError::Cancelled.into(),
        }
    }

    /// Returns the minimum precision and recall to reach.
    pub(super) fn target(&self) -> AccuracyTarget {
        AccuracyTarget {
            precision: self.precision,
            recall: self.recall,
        }
    }
}
