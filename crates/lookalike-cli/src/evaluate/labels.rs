//! `lookalike evaluate labels`: measures one scheme against labels by people, or against known clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use lookalike::cluster::Components;
use lookalike::scheme::{Sketch, Weight};
use lookalike_batch::Method;
use lookalike_batch::fingerprints::files::decompressed;
use lookalike_eval::cluster::ClusteredPairs;
use lookalike_eval::label::{LabelError, LabelSet, judged};
use lookalike_eval::stratified_labels::{BandPoint, StratifiedLabels};
use lookalike_eval::sweep::{self, GroundTruth, cut_name};
use lookalike_eval::text_dedup_benchmark::{TextDedupFigures, text_dedup_figures};
use lookalike_eval::{
    CountedScore, CurvePoint, ScoreCurve, SetMeasure, ShareEstimate, SweepRow, SweepSetting,
    for_each_scored_pair,
};
use serde::Serialize;

use super::held_documents::join_limits;
use super::{AnswerOutput, EvaluationInput, SketchedInput, shown, unusable_labels};
use crate::arguments::{BoilerplateArguments, InputArguments, RunArguments, SchemeArguments};
use crate::console::{self, Console};
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
Labels are JSON lines of one kind, plain or in gzip or zstd:
{\"a\":..,\"b\":..,\"label\":NUMBER|true|false|null}, {\"id\":..,\"cluster\":..},
or the CORE benchmark's {\"core_id\":..,\"labelled_duplicates\":[..]}.
null means that nobody could tell: it is counted but not used. Clusters are compared by the
adjusted Rand index, as in NEWS-COPY, CORE labels by the rules of text-dedup.

Examples:
  lookalike evaluate labels docs.jsonl --labels pairs.jsonl --sketch simhash:64
  lookalike evaluate labels docs.lkfp --fingerprints --labels pairs.jsonl")]
pub(crate) struct LabelFileArguments {
    #[command(flatten)]
    input: InputArguments,

    /// File of labels: pairs, or the cluster of each document
    ///
    /// Pairs without a label do not count. A document without a cluster counts as a cluster of its own.
    #[arg(long, value_name = "FILE")]
    labels: PathBuf,

    /// INPUT holds sketches of any kind, written by `fingerprint -o` or `index build`
    #[arg(long)]
    fingerprints: bool,

    /// Labelled pairs: lowest grade of near-duplicates [default: 1]
    #[arg(long, value_name = "GRADE")]
    positive: Option<f64>,

    /// Sketch to measure: none (the exact resemblance), simhash:64, minhash:128, super-shingle:6x14, oph:128, winnow:16, ...
    #[arg(long, value_name = "SKETCH", default_value = "none")]
    sketch: Sketch,

    /// Weights of features in a simhash
    #[arg(long, value_name = "WEIGHT", default_value = "set")]
    weight: Weight,

    /// With --sketch none: resemblance, containment (shared features over the smaller set) or coverage (over the larger)
    #[arg(long, value_name = "MEASURE", default_value = "resemblance")]
    measure: SetMeasure,

    /// Clusters and CORE: minimum score of a pair: resemblance, share (minhash), equal bits or equal hashes [default: 0.8, all but 3 bits, 2]
    ///
    /// Of fingerprints of 64 bits, 61 equal bits are a distance of 3.
    #[arg(long, value_name = "SCORE")]
    cut: Option<f64>,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    #[command(flatten)]
    pub(super) run: RunArguments,
}

impl LabelFileArguments {
    fn positive(&self) -> f64 {
        self.positive.unwrap_or(1.0)
    }

    /// Returns the minimum score of a pair; by default that of the method that compares such sketches.
    fn cut(&self, sketch: Sketch) -> f64 {
        self.cut.unwrap_or_else(|| match sketch {
            Sketch::SuperShingle { .. } => Method::SuperShingle.default_equal().into(),
            Sketch::Buckets { .. } => Method::Buckets.default_equal().into(),
            Sketch::IMatch { .. } => Method::IMatch.default_equal().into(),
            _ => match sketch.fingerprint_bits() {
                0 => 0.8,
                // The score of a fingerprint is its equal bits, and the default of jobs is a number of different ones.
                bits => f64::from(bits - Method::Simhash.default_distance()),
            },
        })
    }

    /// Refuses a cut that no pair can have as its score.
    fn ensure_cut_fits(&self, sketch: Sketch) -> Result<(), Failure> {
        let Some(cut) = self.cut else {
            return Ok(());
        };
        let counted = |low: u32, high: u32, what: &str| {
            let is_count = cut.fract() == 0.0 && (low.into()..=high.into()).contains(&cut);
            let wanted = format!("a whole number of equal {what}, {low} to {high}");
            (is_count, wanted)
        };
        let (fits, wanted) = match (sketch, sketch.fingerprint_bits()) {
            (Sketch::SuperShingle { groups: hashes, .. }, _)
            | (Sketch::Buckets { buckets: hashes }, _)
            | (Sketch::IMatch { lexicons: hashes }, _) => counted(1, hashes.into(), "hashes"),
            (_, 0) => (
                cut > 0.0 && cut <= 1.0,
                "a share above 0 and at most 1".to_owned(),
            ),
            // Below half of the bits, two fingerprints are less alike than unrelated ones are on average.
            (_, bits) => {
                let (fits, wanted) = counted(bits / 2, bits, "bits");
                let equal = f64::from(bits) - cut;
                match cut >= 0.0 && cut.fract() == 0.0 && cut < equal {
                    // Jobs name the bits that differ, so a small number is meant as such.
                    true => (fits, format!("{wanted}: {equal} for a distance of {cut}")),
                    false => (fits, wanted),
                }
            }
        };
        match fits {
            true => Ok(()),
            false => Err(Failure::Usage(format!(
                "--cut {cut}: the score of {sketch} is {wanted}"
            ))),
        }
    }

    /// Warns of options that apply to labels of another kind.
    fn warn_of_unused(&self, labels: &LabelSet) {
        let (kind, unused) = match labels {
            LabelSet::Pairs(_) => (
                "labelled pairs, for which every cut is shown",
                self.cut.map(|_| "--cut"),
            ),
            LabelSet::Clusters(_) => (
                "clusters, which have no grades",
                self.positive.map(|_| "--positive"),
            ),
            LabelSet::Duplicates(_) => (
                "labels of CORE, which have no grades",
                self.positive.map(|_| "--positive"),
            ),
        };
        if let Some(option) = unused.filter(|_| !self.run.quiet) {
            let file = self.labels.display();
            console::warning(&format!("{option} has no effect: {file} holds {kind}"));
        }
    }
}

/// Output of the command.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "labels")]
enum LabelFileResult {
    Pairs {
        labelled: u64,
        unknown: u64,
        row: Box<SweepRow>,
        /// Present if the pairs of the labels were drawn by bands.
        #[serde(skip_serializing_if = "Option::is_none")]
        bands: Option<BandedCurve>,
    },
    Clusters {
        cut: String,
        adjusted_rand_index: f64,
        pairs: Box<CurvePoint>,
    },
    Core {
        cut: String,
        #[serde(flatten)]
        figures: TextDedupFigures,
    },
}

/// The curve of pairs that were drawn by bands, for the whole collection.
#[derive(Serialize)]
struct BandedCurve {
    #[serde(flatten)]
    labels: StratifiedLabels,
    curve: Vec<BandPoint>,
    untouched_bands: u64,
    unlabelled_pairs: u64,
}

impl BandedCurve {
    fn parse(text: &str, positive: f64) -> Result<Option<Self>, LabelError> {
        let labels = StratifiedLabels::parse(text, positive)?;
        Ok(labels.map(|labels| Self {
            curve: labels.curve(),
            untouched_bands: labels.untouched(),
            unlabelled_pairs: labels.unlabelled(),
            labels,
        }))
    }

    fn describe(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "\nThe pairs were drawn by bands; weighted by the pairs in each band, the figures for the whole collection are:\n\n\
             {:18} {:>5} {:>5} {:>7}  {:24} {:24} {:>6}  unknown: precision if",
            "up to band", "true", "false", "unknown", "precision", "recall in these bands", "F1"
        );
        for (band, point) in self.labels.bands().iter().zip(&self.curve) {
            let (low, high) = point.precision_with_unknown;
            let unknown = match low < high {
                true => format!("all false {low:.3}, all true {high:.3}"),
                false => String::new(),
            };
            let _ = writeln!(
                text,
                "{:18} {:>5} {:>5} {:>7}  {}  {unknown}",
                point.band,
                band.trues,
                band.falses,
                band.unknown,
                last_columns(&point.precision, &point.recall, point.f1)
            );
        }
        let unknown = self.labels.bands().iter().filter(|band| band.known() == 0);
        let unknown: Vec<&str> = unknown.map(|band| &*band.stratum.name).collect();
        if !unknown.is_empty() {
            let _ = writeln!(
                text,
                "only unknown labels, so not in precision, recall and F1: {}",
                unknown.join(", ")
            );
        }
        if self.untouched_bands + self.unlabelled_pairs > 0 {
            let _ = writeln!(
                text,
                "not labelled yet: {} pairs in these bands, and {} bands without a label, which the table leaves out",
                self.unlabelled_pairs, self.untouched_bands
            );
        }
    }
}

/// Bytes of memory for each byte of labels: their text, and of each label some hundred bytes.
const LABELS_FACTOR: u64 = 5;

/// Returns the memory that labels take in bytes.
pub(super) fn labels_bytes(text: &str) -> u64 {
    LABELS_FACTOR * text.len() as u64
}

/// Reads a file of labels, or of pairs to label, without a byte order mark. It may be compressed by gzip or zstd.
pub(super) fn read_labels(path: &Path, run: &RunArguments) -> Result<String, Failure> {
    let failed = |reason: &dyn Display| Failure::Failed(format!("{}: {reason}", path.display()));
    let most = run.limits().memory;
    let mut text = Vec::new();
    decompressed(path)
        .and_then(|file| file.take(most / LABELS_FACTOR + 1).read_to_end(&mut text))
        .map_err(|error| failed(&error))?;
    if text.len() as u64 > most / LABELS_FACTOR {
        let most = crate::size::show(most);
        return Err(failed(&format_args!(
            "the labels do not fit in the {most} that --memory allows: raise --memory, or give a part of them"
        )));
    }
    let text = String::from_utf8(text)
        .map_err(|error| failed(&format_args!("{error}: give lines of JSON in UTF-8")))?;
    match text.strip_prefix('\u{feff}') {
        Some(lines) => Ok(lines.to_owned()),
        None => Ok(text),
    }
}

impl LabelFileArguments {
    /// Measures the agreement with the labels.
    pub(super) fn evaluate(&self, console: &Console, output: AnswerOutput) -> Result<(), Failure> {
        // First, because the documents may take hours.
        let text = read_labels(&self.labels, &self.run)?;
        let taken = labels_bytes(&text);
        let input = SketchedInput::labelled(self, taken, console)?;
        let sketch = input.scheme.sketch;
        let failed = |error: LabelError| unusable_labels(&self.labels, &error);
        let labels = LabelSet::parse(&text, &input.set).map_err(failed)?;
        if self.measure != SetMeasure::Resemblance
            && !(self.sketch == Sketch::None && matches!(labels, LabelSet::Pairs(_)))
        {
            return Err(Failure::Usage(format!(
                "--measure {} compares the features themselves with labelled pairs: use it with --sketch none and labelled pairs",
                self.measure
            )));
        }
        self.warn_of_unused(&labels);
        let answer = match labels {
            LabelSet::Pairs(pairs) => {
                let (mut known, unknown) = judged(&pairs, self.positive()).map_err(failed)?;
                let firsts = input.set.first_copies();
                for pair in &mut known {
                    pair.has_equal_texts = firsts[pair.a as usize] == firsts[pair.b as usize];
                }
                let labelled = known.len() as u64;
                let row = Box::new(input.row(self.measure, &GroundTruth::Judged(known)));
                LabelFileResult::Pairs {
                    labelled,
                    unknown,
                    row,
                    // From the text again, because a `LabelSet` does not keep the bands.
                    bands: BandedCurve::parse(&text, self.positive()).map_err(failed)?,
                }
            }
            LabelSet::Clusters(truth) => clusters(self, &input, taken, &truth),
            LabelSet::Duplicates(labelled) => {
                let found = found(self, &input, taken);
                let members = members(&found);
                let documents: Vec<(BTreeSet<u32>, BTreeSet<u32>)> = labelled
                    .into_iter()
                    .map(|(at, labelled)| {
                        // The benchmark predicts for a document all others of its cluster.
                        let same = members[&found[at as usize]].iter().copied();
                        (labelled, same.filter(|&other| other != at).collect())
                    })
                    .collect();
                LabelFileResult::Core {
                    cut: cut_name(sketch, self.cut(sketch)),
                    figures: text_dedup_figures(&documents),
                }
            }
        };
        output.write(&answer, || describe(&answer, &input.name))?;
        input.end(&self.input.losses)
    }
}

impl SketchedInput<'_> {
    /// Reads the documents or sketches that the labels are about.
    fn labelled<'a>(
        arguments: &'a LabelFileArguments,
        taken: u64,
        console: &'a Console<'a>,
    ) -> Result<SketchedInput<'a>, Failure> {
        if arguments.fingerprints {
            let given = SketchedInput::given(&arguments.input, &arguments.run, taken, console)?;
            arguments.ensure_cut_fits(given.scheme.sketch)?;
            return Ok(given);
        }
        arguments.ensure_cut_fits(arguments.sketch)?;
        let reading = EvaluationInput::of_scheme(
            &arguments.input,
            &arguments.run,
            &arguments.scheme,
            &arguments.boilerplate,
            console,
        )?;
        let scheme =
            arguments
                .scheme
                .measured(arguments.weight, arguments.sketch, &reading.options)?;
        // Copies are not set aside, because pairs of equal texts may be labelled.
        SketchedInput::made(reading, scheme, false, taken)
    }

    fn row(&self, measure: SetMeasure, truth: &GroundTruth) -> SweepRow {
        let sketches = self.set.sketches();
        match &self.given {
            Some(given) => given.row(sketches, truth, "as given"),
            None => {
                let setting = SweepSetting::from(self.scheme).measure(measure);
                sweep::measure(&setting, sketches, truth)
            }
        }
    }
}

/// Returns the cluster of each document after merging pairs at or above the cut.
fn found(arguments: &LabelFileArguments, input: &SketchedInput<'_>, taken: u64) -> Vec<u32> {
    let sketches = input.set.sketches();
    let cut = arguments.cut(input.scheme.sketch);
    let limits = join_limits(&arguments.run.limits(), input.set.bytes() + taken);
    let mut clusters = Components::new(sketches.len() as u32);
    // Merged as they are found: all pairs of a large cluster would not fit in memory.
    for_each_scored_pair(sketches, cut, limits, |pair| {
        clusters.join(pair.a, pair.b);
    });
    // Every method finds equal texts, even those without a sketch.
    for (at, &first) in (0..).zip(input.set.first_copies()) {
        clusters.join(first, at);
    }
    let documents = 0..sketches.len() as u32;
    documents.map(|document| clusters.first(document)).collect()
}

/// Returns the documents of each cluster, ascending.
fn members(clusters: &[u32]) -> BTreeMap<u32, Vec<u32>> {
    let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (document, &cluster) in (0..).zip(clusters) {
        members.entry(cluster).or_default().push(document);
    }
    members
}

fn clusters(
    arguments: &LabelFileArguments,
    input: &SketchedInput<'_>,
    taken: u64,
    truth: &[u32],
) -> LabelFileResult {
    let pairs = ClusteredPairs::count(truth, &found(arguments, input, taken));
    // Clusters have no scores: all pairs are found at the same cut.
    let counted = CountedScore {
        score: 1.0,
        found: pairs.second,
        correct: pairs.both,
    };
    let name = |_| "in one cluster".to_owned();
    // A curve of a single point gives precision, recall and their limits as for other labels.
    let mut curve = ScoreCurve::of_counts(&[counted], pairs.first, &[1.0], name);
    LabelFileResult::Clusters {
        cut: cut_name(input.scheme.sketch, arguments.cut(input.scheme.sketch)),
        adjusted_rand_index: pairs.adjusted_rand(),
        pairs: Box::new(curve.points.remove(0)),
    }
}

/// Formats the last columns of a row: precision, recall and F1.
fn last_columns(precision: &ShareEstimate, recall: &ShareEstimate, f1: f64) -> String {
    format!("{:24} {:24} {f1:>6.3}", shown(precision), shown(recall))
}

/// Writes a row for each cut of a curve.
pub(super) fn describe_points(text: &mut String, curve: &ScoreCurve) {
    let _ = writeln!(
        text,
        "{:24} {:>6} {:>6}  {:24} {:24} {:>6}",
        "cut", "found", "true", "precision", "recall", "F1"
    );
    for point in curve.points.iter().chain(&curve.exactly) {
        let _ = writeln!(
            text,
            "{:24} {:>6} {:>6}  {}",
            point.parameter,
            point.found,
            point.correct,
            last_columns(&point.precision, &point.recall, point.f1)
        );
    }
}

fn describe(answer: &LabelFileResult, scheme: &str) -> String {
    let mut text = String::new();
    match answer {
        LabelFileResult::Pairs {
            labelled,
            unknown,
            row,
            bands,
        } => {
            let curve = &row.curve;
            let _ = writeln!(
                text,
                "labels      {labelled} pairs, {} of them near-duplicates; {unknown} unknown, not counted",
                curve.true_pairs
            );
            let _ = writeln!(text, "average precision  {:.4}", curve.average_precision);
            if let Some(best) = &curve.best {
                let _ = writeln!(text, "best F1     {:.4} at {}", best.f1, best.parameter);
            }
            text.push('\n');
            describe_points(&mut text, curve);
            if let Some(bands) = bands {
                bands.describe(&mut text);
            }
        }
        LabelFileResult::Clusters {
            cut,
            adjusted_rand_index,
            pairs,
        } => {
            let _ = writeln!(
                text,
                "adjusted Rand index  {adjusted_rand_index:.4} at {cut}"
            );
            let _ = writeln!(
                text,
                "pairs in one cluster: precision {}, recall {}, F1 {:.4}",
                shown(&pairs.precision),
                shown(&pairs.recall),
                pairs.f1
            );
        }
        LabelFileResult::Core { cut, figures } => {
            let _ = writeln!(text, "CORE rules at {cut}");
            for (name, figure) in [
                ("precision of duplicates", figures.precision_duplicates),
                ("recall of duplicates", figures.recall_duplicates),
                (
                    "precision of non-duplicates",
                    figures.precision_non_duplicates,
                ),
                ("recall of non-duplicates", figures.recall_non_duplicates),
                (
                    "\"Macro F1\" as text-dedup prints it (a mean of precisions)",
                    figures.printed_macro_f1,
                ),
                ("macro F1", figures.macro_f1),
                ("accuracy", figures.accuracy),
            ] {
                let _ = writeln!(text, "{name:27}  {figure:.4}");
            }
        }
    }
    let _ = writeln!(text, "\nscheme      {scheme}");
    text
}
