//! Measures many settings on one collection: gives each a curve, and recommends some.
//!
//! One reading makes the sketches of as many settings as fit in memory; they are compared and dropped before the next reading. A text is split into
//! words once for all settings that split it the same way. Sets that do not fit are compared in parts. The truth is either a list of judged pairs,
//! and no other pairs count, or every pair whose exact resemblance reaches a threshold.

mod columns;
mod documents;
mod features;
mod set_join;
mod tally;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use lookalike::resemblance::close_lengths;
use lookalike::sketch::{SketchValue, Sketcher};
use lookalike::{FeatureExtractor, Features, Scheme, Sketch, TermCounts};
use lookalike_hamming::SelfJoinLimits;
use serde::Serialize;
use thiserror::Error;

use crate::curve::{CurvePoint, ScoreCurve};
use crate::document_halves::DocumentHalves;
use crate::document_set::{DocumentIds, DocumentSet, EvaluatedDocument, SketchedDocument};
use crate::label::{JudgedPair, LabelError, LabelSet, judged};
use crate::score::{
    HalvedCounts, ScoredPair, SetMeasure, max_score, most_hashes, score, score_counts,
};
use columns::{SketchColumn, columns, expected_bytes};
pub use documents::{SweptDocument, SweptDocuments};
use features::{FeatureReader, FeatureScheme};
use set_join::for_each_similar_pair;
pub use tally::SettingTally;

/// The true pairs.
#[derive(Debug, Clone)]
pub enum GroundTruth {
    /// Judged pairs; all other pairs are ignored.
    Judged(Vec<JudgedPair>),
    /// All near-duplicates; all other pairs are not near-duplicates.
    Complete {
        /// The pairs, ascending.
        pairs: Vec<(u32, u32)>,
        /// Minimum resemblance of a pair.
        threshold: f64,
    },
}

impl GroundTruth {
    /// Returns the number of true pairs.
    #[must_use]
    pub fn true_pairs(&self) -> u64 {
        match self {
            Self::Judged(pairs) => pairs.iter().filter(|pair| pair.is_true).count() as u64,
            Self::Complete { pairs, .. } => pairs.len() as u64,
        }
    }

    /// Reads the labelled pairs of a collection. Grades of `positive` and above are true; pairs with unknown labels are left out.
    ///
    /// # Errors
    /// [`LabelError`] for a line that cannot be used, for labels that name clusters, and if all labels are of one class.
    pub fn of_labels(
        text: &str,
        documents: &dyn DocumentIds,
        positive: f64,
    ) -> Result<Self, LabelError> {
        let LabelSet::Pairs(pairs) = LabelSet::parse(text, documents)? else {
            return Err(LabelError::NotPairs);
        };
        let (known, _) = judged(&pairs, positive)?;
        Ok(Self::Judged(known))
    }

    /// Finds every pair whose exact resemblance under `scheme` is at least `threshold`.
    ///
    /// ```
    /// use lookalike::Scheme;
    /// use lookalike_eval::{DocumentSet, GroundTruth};
    ///
    /// let documents = DocumentSet::new([("a", "one two three four"), ("b", "one two three five")])?;
    /// let words = Scheme::default().shingle("words:1".parse()?);
    /// // Three of five words are in both.
    /// assert_eq!(GroundTruth::exact(&documents, &words, 0.6).true_pairs(), 1);
    /// assert_eq!(GroundTruth::exact(&documents, &words, 0.7).true_pairs(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn exact(collection: &DocumentSet, scheme: &Scheme, threshold: f64) -> Self {
        let limits = SweepLimits::default();
        match Self::of_documents(collection, scheme, threshold, limits) {
            Ok(truth) => truth,
            Err(error) => unreachable!("a set in memory without a limit: {error}"),
        }
    }

    /// Does the same as [`Self::exact`] for documents that are read, within `limits`.
    ///
    /// # Errors
    /// [`SweepError`] if a reading fails or the pairs do not fit in memory.
    pub fn of_documents<D: SweptDocuments>(
        documents: &D,
        scheme: &Scheme,
        threshold: f64,
        limits: SweepLimits,
    ) -> Result<Self, SweepError<D::Error>> {
        let mut pairs = Vec::new();
        let mut needed = 0;
        let mut add = |pair: ScoredPair| {
            needed += PAIR_BYTES;
            // Beyond the limit the pairs are only counted, so that the error states the memory needed.
            if needed <= limits.memory {
                pairs.push((pair.a, pair.b));
            }
        };
        let scheme = scheme.features_only();
        let text_bytes = text_bytes(documents);
        // The other half is for the join.
        let fits = expected_bytes(&scheme, documents.len() as u64, text_bytes) < limits.memory / 2;
        // A table of terms needs all documents at once.
        match fits || scheme.needs_terms() {
            true => {
                let column = columns(documents, &[scheme], limits)?.remove(0);
                let join = limits.with_columns(&[&column]);
                crate::score::for_each_scored_pair(&column, threshold, join, &mut add);
            }
            false => for_each_similar_pair(documents, &scheme, threshold, limits, &mut add)?,
        }
        limits.ensure(needed, || "the true pairs".to_owned())?;
        // Joins deliver pairs in any order; `measure_set` looks pairs up by binary search.
        pairs.sort_unstable();
        Ok(Self::Complete { pairs, threshold })
    }

    /// Returns the judged pairs with marks on those whose texts are equal. `None` if the truth is complete.
    fn marked(&self, documents: &impl SweptDocuments) -> Option<Self> {
        let Self::Judged(pairs) = self else {
            return None;
        };
        // Texts that are equal under one way to extract them may differ under another.
        let mark = |pair: &JudgedPair| JudgedPair {
            has_equal_texts: documents.have_equal_texts(pair.a, pair.b),
            ..*pair
        };
        Some(Self::Judged(pairs.iter().map(mark).collect()))
    }

    /// Returns the memory of the pairs, in bytes.
    fn bytes(&self) -> u64 {
        match self {
            Self::Judged(pairs) => size_of_val(&**pairs) as u64,
            Self::Complete { pairs, .. } => size_of_val(&**pairs) as u64,
        }
    }
}

/// Bytes for each true pair in a growing list.
const PAIR_BYTES: u64 = 16;

/// Returns the bytes of all texts.
fn text_bytes(documents: &impl SweptDocuments) -> u64 {
    let all = 0..documents.len() as u32;
    all.map(|at| documents.text_bytes(at)).sum()
}

lookalike::settings! {
    /// Limits on the memory and threads of a sweep.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SweepLimits {
        /// Number of threads, at least 1.
        threads: usize = 1,
        /// Bytes for sketches and joins.
        memory: u64 = u64::MAX,
    }
}

impl SweepLimits {
    fn ensure<E>(self, needed: u64, what: impl FnOnce() -> String) -> Result<(), SweepError<E>> {
        match needed <= self.memory {
            true => Ok(()),
            false => Err(SweepError::TooLarge {
                needed,
                most_bytes: self.memory,
                what: what(),
            }),
        }
    }

    /// Returns the limits with `bytes` less memory.
    fn minus(self, bytes: u64) -> Self {
        Self {
            memory: self.memory.saturating_sub(bytes),
            ..self
        }
    }

    /// Returns the limits of a join while these columns are held.
    fn with_columns(self, columns: &[&SketchColumn]) -> SelfJoinLimits {
        let held = columns.iter().map(|column| columns::bytes(column)).sum();
        SelfJoinLimits::default()
            .threads(self.threads)
            .scratch_bytes(usize::try_from(self.minus(held).memory).unwrap_or(usize::MAX))
    }
}

/// Reason why a sweep has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SweepError<E> {
    /// Reading the documents failed.
    #[error("{0}")]
    Documents(E),
    /// Data that must be held at once do not fit in memory.
    #[error("{what} take {needed} bytes, and {most_bytes} are left")]
    TooLarge {
        /// Name of the data.
        what: String,
        /// Bytes that they need, at least.
        needed: u64,
        /// Bytes that are left for them.
        most_bytes: u64,
    },
    /// The caller ended the sweep.
    #[error("ended by its caller")]
    Ended,
}

/// Scheme, with the way in which its sketches are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SweepSetting {
    /// The scheme.
    pub scheme: Scheme,
    /// Measure of sets; other sketches have their own. Measures other than resemblance make sense with [`GroundTruth::Judged`] only.
    pub measure: SetMeasure,
    /// Minimum ratio of the shorter text's bytes to the longer text's: a second test (Manku et al. 2007, section 6).
    pub lengths: Option<f64>,
}

impl From<Scheme> for SweepSetting {
    fn from(scheme: Scheme) -> Self {
        Self {
            scheme,
            measure: SetMeasure::default(),
            lengths: None,
        }
    }
}

lookalike::setters! {
    SweepSetting {
        measure: SetMeasure,
    }
}

impl SweepSetting {
    /// Sets the minimum ratio of the shorter text's bytes to the longer text's; `None` sets no minimum.
    #[must_use]
    pub fn lengths(mut self, lengths: impl Into<Option<f64>>) -> Self {
        self.lengths = lengths.into();
        self
    }

    /// The sketch, and the measure where it is not the sketch's own.
    pub(crate) fn sketch_name(&self) -> String {
        match self.measure {
            SetMeasure::Resemblance => self.scheme.sketch.to_string(),
            measure => format!("{} ({measure})", self.scheme.sketch),
        }
    }

    pub(crate) fn cut_name(&self, cut: f64) -> String {
        match self.measure {
            SetMeasure::Resemblance => cut_name(self.scheme.sketch, cut),
            measure => format!("{measure} >= {cut}"),
        }
    }

    /// Returns the name of the features, with the scheme's other settings for the text.
    pub(crate) fn features_name(&self) -> String {
        let scheme = &self.scheme;
        let mut name = scheme.shingle.to_string();
        if scheme.mask != lookalike::Mask::default() {
            name += &format!(" mask={}", scheme.mask);
        }
        // `main` is the default of jobs, so it is not named.
        if scheme.html.mode != lookalike::HtmlMode::default() {
            name += &format!(" html={}", scheme.html);
        }
        name
    }
}

/// Measurements of one setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepRow {
    /// Description of the features: shingle, mask and HTML mode.
    pub features: String,
    /// The weight of the features.
    pub weight: String,
    /// The sketch.
    pub sketch: String,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Mean number of bytes of a document's sketch.
    pub bytes: f64,
    /// Number of documents without a sketch.
    pub without_sketch: u64,
    /// Precision and recall over the cuts.
    pub curve: ScoreCurve,
}

/// The results of all settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SweepResult {
    /// Number of documents compared.
    pub documents: u64,
    /// Number of true pairs among them.
    pub true_pairs: u64,
    /// One row for each setting, in the given order.
    pub rows: Vec<SweepRow>,
}

/// Minimum precision and recall that the user accepts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AccuracyTarget {
    /// Minimum precision, in [0, 1].
    pub precision: f64,
    /// Minimum recall, in [0, 1].
    pub recall: f64,
}

impl AccuracyTarget {
    fn is_met(&self, precision: f64, recall: f64) -> bool {
        precision >= self.precision && recall >= self.recall
    }
}

/// A setting and a cut, chosen on the same data as its figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Recommendation {
    /// Position of its row in the result.
    pub row: usize,
    /// The features, their weight and the sketch.
    pub setting: String,
    /// Mean number of bytes of a document's sketch: the cost of the setting.
    pub bytes: f64,
    /// The cut.
    pub point: CurvePoint,
    /// True if the lower confidence limits reach the target too.
    pub is_sure: bool,
}

impl Recommendation {
    fn new(at: usize, row: &SweepRow, point: CurvePoint, target: AccuracyTarget) -> Self {
        Self {
            row: at,
            setting: format!("{} of {} weighted {}", row.sketch, row.features, row.weight),
            bytes: row.bytes,
            is_sure: target.is_met(point.precision.low, point.recall.low),
            point,
        }
    }
}

/// The sketches of all documents under a scheme, with a table of terms of this collection where
/// the scheme needs one.
#[must_use]
pub fn sketches_of(collection: &DocumentSet, scheme: &Scheme) -> Vec<Option<SketchValue>> {
    match columns(collection, &[*scheme], SweepLimits::default()) {
        Ok(mut columns) => columns.remove(0),
        Err(error) => unreachable!("a set in memory without a limit: {error}"),
    }
}

/// A cut in the words of the sketch.
#[must_use]
pub fn cut_name(sketch: Sketch, cut: f64) -> String {
    match sketch {
        Sketch::Simhash32 | Sketch::Simhash | Sketch::Simhash128 => {
            format!("k <= {}", f64::from(sketch.fingerprint_bits()) - cut)
        }
        Sketch::SuperShingle { .. } | Sketch::Buckets { .. } | Sketch::IMatch { .. } => {
            format!("equal >= {cut}")
        }
        Sketch::MinHash { .. } | Sketch::OnePermutation { .. } | Sketch::BBit { .. } => {
            format!("share >= {cut}")
        }
        _ => format!("resemblance >= {cut}"),
    }
}

/// Maker of sketches of documents, one after another, without keeping their texts.
///
/// ```
/// use lookalike::{Scheme, Sketch};
/// use lookalike_eval::sweep::DocumentSketcher;
/// use lookalike_eval::{EvaluatedDocument, SketchedSet, scored_pairs};
///
/// let scheme = Scheme::default().shingle("words:1".parse()?).sketch(Sketch::MinHash { functions: 64 });
/// let mut sketcher = DocumentSketcher::new(&scheme, None);
/// let texts = [("a", "one two three"), ("b", "three two one"), ("c", "four")];
/// let sketched = texts.map(|(id, text)| sketcher.sketch(&EvaluatedDocument::new(id, text)));
/// let set = SketchedSet::of(sketched.into())?;
/// // The words of a and b are the same, their texts are not.
/// assert_eq!((set.copies(), scored_pairs(set.sketches(), 1.0).len()), (0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DocumentSketcher {
    extractor: FeatureExtractor,
    sketcher: Sketcher,
}

impl DocumentSketcher {
    /// Creates a sketcher under `scheme`. If the scheme needs a table of terms, it is made from `counts`.
    ///
    /// # Panics
    /// If the scheme needs a table of terms, but `counts`, which count the features of [`Scheme::counted`], are `None`.
    #[must_use]
    pub fn new(scheme: &Scheme, counts: Option<TermCounts>) -> Self {
        let terms = counts.map(|mut counts| Arc::new(counts.terms()));
        // The table is made of this collection, so its id enters the scheme only here.
        let scheme = scheme.terms(terms.as_ref().map(|terms| terms.id()));
        let made = "the table was made for the scheme";
        Self {
            extractor: FeatureExtractor::with_terms(&scheme, terms.as_ref()).expect(made),
            sketcher: Sketcher::new(&scheme, terms.as_ref()).expect(made),
        }
    }

    /// Returns the document's id, sketch and text hash.
    pub fn sketch(&mut self, document: &EvaluatedDocument) -> SketchedDocument {
        let features = self
            .extractor
            .extract_with(&document.text, &document.fields);
        SketchedDocument {
            sketch: self.sketcher.sketch(&features),
            text: Some(document.text_hash()),
            id: document.id.clone(),
        }
    }
}

/// Tells whether two lengths are as close as they must be, if they must.
pub(crate) fn may_match(least: Option<f64>, a: u64, b: u64) -> bool {
    least.is_none_or(|share| close_lengths(a, b, share))
}

/// The cuts that the curve of a setting is shown at: distances, numbers of hashes, or shares. Judged pairs show what lies far out as well;
/// all pairs of a collection within a large distance would be nearly all pairs.
fn cuts_of(setting: &SweepSetting, truth: &GroundTruth) -> Vec<f64> {
    // In bits of 64-bit fingerprints. Jobs take distances of up to a quarter of the bits.
    let (most_bits, least_share) = match truth {
        GroundTruth::Judged(_) => (24, 0.3),
        // True pairs may have smaller shares than the threshold: those of other features, or by an estimate.
        GroundTruth::Complete { threshold, .. } => (16, (threshold / 2.0).min(0.3)),
    };
    let sketch = setting.scheme.sketch;
    match (sketch.fingerprint_bits(), most_hashes(sketch)) {
        // From 1.00 down in steps of 0.05, computed from whole numbers so that each prints with two digits.
        (0, None) => {
            let steps = (1..=20).rev().map(|step| f64::from(step) / 20.0);
            let steps = steps.take_while(|&cut| cut > least_share);
            steps.chain([least_share]).collect()
        }
        (0, Some(most)) => (1..=most).rev().map(f64::from).collect(),
        // The same share of the bits for other widths.
        (bits, _) => (0..=most_bits * bits / 64)
            .map(|k| f64::from(bits - k))
            .collect(),
    }
}

/// Returns the smallest score that counts.
fn min_score(setting: &SweepSetting, truth: &GroundTruth) -> f64 {
    cuts_of(setting, truth).last().copied().unwrap_or(1.0)
}

impl SettingTally {
    /// Returns the row of the setting, which must be the one that was counted.
    #[must_use]
    pub fn row_of(&self, setting: &SweepSetting, truth: &GroundTruth) -> SweepRow {
        self.row(None, setting, truth, truth.true_pairs())
    }

    /// Returns the row of the setting for one half of the documents; `true_pairs` counts the true pairs in each half.
    pub(crate) fn row_of_half(
        &self,
        half: usize,
        setting: &SweepSetting,
        truth: &GroundTruth,
        true_pairs: [u64; 2],
    ) -> SweepRow {
        self.row(Some(half), setting, truth, true_pairs[half])
    }
}

/// Returns the score of two documents. `None` if one has no sketch.
fn score_of(measure: SetMeasure, sketches: &[Option<SketchValue>], a: u32, b: u32) -> Option<f64> {
    let (a, b) = (&sketches[a as usize], &sketches[b as usize]);
    a.as_ref()
        .zip(b.as_ref())
        .map(|(a, b)| score(measure, a, b))
}

/// Returns the score of a judged pair; 0 if one document has no sketch. Every method finds equal texts, so they have the largest score even then.
pub(crate) fn judged_score(
    setting: &SweepSetting,
    sketches: &[Option<SketchValue>],
    pair: &JudgedPair,
) -> f64 {
    match pair.has_equal_texts {
        true => max_score(setting.scheme.sketch),
        false => score_of(setting.measure, sketches, pair.a, pair.b).unwrap_or(0.0),
    }
}

/// Counts the pairs of one setting on existing sketches. Pairs for which `allows` returns false count as not found.
fn tally(
    setting: &SweepSetting,
    sketches: &[Option<SketchValue>],
    truth: &GroundTruth,
    join: SelfJoinLimits,
    allows: Option<&(dyn Fn(u32, u32) -> bool + Sync)>,
    halves: &DocumentHalves,
) -> SettingTally {
    let tally = SettingTally::of_sketches(setting.scheme.sketch, sketches);
    let is_allowed = |a, b| allows.is_none_or(|allows| allows(a, b));
    match truth {
        GroundTruth::Judged(pairs) => {
            let (mut found, mut correct) = (HalvedCounts::default(), HalvedCounts::default());
            let score = |pair: &JudgedPair| match is_allowed(pair.a, pair.b) {
                true => judged_score(setting, sketches, pair),
                false => 0.0,
            };
            let scores: Vec<f64> = pairs.iter().map(score).collect();
            for (&score, pair) in scores.iter().zip(pairs) {
                // A pair whose score is 0, or one without a sketch, is not found at any cut.
                if score > 0.0 {
                    found.add(score, 1, None);
                    correct.add(score, u64::from(pair.is_true), None);
                }
            }
            tally.with_pairs(&found, &correct).with_judged(&scores)
        }
        GroundTruth::Complete { pairs, .. } => {
            let least = min_score(setting, truth);
            // Below the last cut that is shown, pairs are neither listed nor counted.
            let found = score_counts(sketches, least, join, allows, halves);
            // True pairs are few, so compute their scores instead of looking up each pair that is found.
            let mut correct = HalvedCounts::default();
            for &(a, b) in pairs.iter().filter(|pair| is_allowed(pair.0, pair.1)) {
                if let Some(score) = score_of(SetMeasure::Resemblance, sketches, a, b) {
                    correct.add(score, 1, halves.of_pair(a, b));
                }
            }
            tally.with_pairs(&found, &correct)
        }
    }
}

/// Measures one setting on existing sketches.
///
/// # Panics
/// If a pair of the truth names a document without an entry in `sketches`.
#[must_use]
pub fn measure(
    setting: &SweepSetting,
    sketches: &[Option<SketchValue>],
    truth: &GroundTruth,
) -> SweepRow {
    let (join, halves) = (SelfJoinLimits::default(), DocumentHalves::default());
    tally(setting, sketches, truth, join, None, &halves).row_of(setting, truth)
}

/// Measures all settings on `threads` threads. `done` gets the number of finished settings and may end the sweep, which then returns `None`. The
/// result does not depend on the number of threads.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use lookalike::{Scheme, Sketch};
/// use lookalike_eval::{AccuracyTarget, DocumentSet, GroundTruth, SweepSetting, sweep};
///
/// let texts = ["one two three four", "one two three five", "six seven", "eight nine"];
/// let documents = DocumentSet::new(texts.iter().zip(["a", "b", "c", "d"]).map(|(&text, id)| (id, text)))?;
/// let scheme = Scheme::default().shingle("words:1".parse()?);
/// let truth = GroundTruth::exact(&documents, &scheme, 0.6);
/// let settings = [Sketch::None, Sketch::MinHash { functions: 64 }].map(|sketch| SweepSetting::from(scheme.sketch(sketch)));
///
/// let swept = sweep(&documents, &settings, &truth, 2, |_| ControlFlow::Continue(())).expect("nobody ended it");
/// let target = AccuracyTarget { precision: 1.0, recall: 1.0 };
/// // The cheapest first: four words take 8 bytes each, and a signature takes 256.
/// let cheapest = &swept.recommendations(target)[0];
/// assert_eq!((cheapest.row, cheapest.point.f1), (0, 1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If a pair of the truth names a document outside the set, or if the parameters of a sketch are invalid: see [`Sketch::check`].
#[must_use]
pub fn sweep(
    collection: &DocumentSet,
    settings: &[SweepSetting],
    truth: &GroundTruth,
    threads: usize,
    done: impl Fn(usize) -> ControlFlow<()>,
) -> Option<SweepResult> {
    let limits = SweepLimits {
        threads,
        ..SweepLimits::default()
    };
    let mut rows = BTreeMap::new();
    let swept: Result<(), SweepError<Infallible>> =
        for_each_tally(collection, settings, truth, limits, &mut |at, tally| {
            // By position, because settings that share a scheme are measured together, not in their order.
            rows.insert(at, tally.row_of(&settings[at], truth));
            done(rows.len())
        });
    swept.is_ok().then(|| SweepResult {
        documents: collection.len() as u64,
        true_pairs: truth.true_pairs(),
        rows: rows.into_values().collect(),
    })
}

/// Counts the pairs of all settings within `limits`, and calls `visit` with the position and counts of each. `visit` may end the work. The counts do
/// not depend on the limits, but their order may.
///
/// # Errors
/// [`SweepError`] if a reading fails, if sketches other than sets do not fit in memory, or if `visit` ends the work.
pub fn for_each_tally<D: SweptDocuments>(
    documents: &D,
    settings: &[SweepSetting],
    truth: &GroundTruth,
    limits: SweepLimits,
    visit: &mut dyn FnMut(usize, SettingTally) -> ControlFlow<()>,
) -> Result<(), SweepError<D::Error>> {
    let marked = truth.marked(documents);
    let truth = marked.as_ref().unwrap_or(truth);
    let mut run = SweepRun {
        lengths: (0..documents.len() as u32)
            .map(|at| documents.text_bytes(at))
            .collect(),
        halves: match truth {
            GroundTruth::Complete { .. } => {
                DocumentHalves::new((0..documents.len() as u32).map(|at| documents.id(at)))
            }
            GroundTruth::Judged(_) => DocumentHalves::default(),
        },
        documents,
        settings,
        truth,
        // Nine bytes a document: its length and its half.
        limits: limits.minus(truth.bytes() + 9 * documents.len() as u64),
        visit,
    };
    // Settings that differ only in their measures or lengths share the sketches of one scheme.
    let mut schemes: Vec<Scheme> = Vec::new();
    for SweepSetting { scheme, .. } in settings {
        if !schemes.contains(scheme) {
            schemes.push(*scheme);
        }
    }
    let (all, texts) = (documents.len() as u64, text_bytes(documents));
    let mut from = 0;
    while from < schemes.len() {
        // Half of the memory is for sketches, the other half for their joins.
        let (mut end, mut bytes) = (from, 0);
        while let Some(scheme) = schemes.get(end) {
            bytes += expected_bytes(scheme, all, texts);
            // At least one scheme, however large: `measure` compares its sets in parts if they do not fit.
            if end > from && bytes > run.limits.memory / 2 {
                break;
            }
            end += 1;
        }
        run.measure(&schemes, from..end)?;
        from = end;
    }
    Ok(())
}

/// A sweep at work.
struct SweepRun<'a, D> {
    documents: &'a D,
    /// Bytes of each text.
    lengths: Vec<u64>,
    /// Halves of the documents if all true pairs are known; empty for judged pairs.
    halves: DocumentHalves,
    settings: &'a [SweepSetting],
    truth: &'a GroundTruth,
    limits: SweepLimits,
    visit: &'a mut dyn FnMut(usize, SettingTally) -> ControlFlow<()>,
}

impl<D: SweptDocuments> SweepRun<'_, D> {
    /// Measures the settings of these schemes in one reading, or splits the schemes if their sketches do not fit.
    fn measure(
        &mut self,
        schemes: &[Scheme],
        range: Range<usize>,
    ) -> Result<(), SweepError<D::Error>> {
        let own = &schemes[range.clone()];
        let is_whole_set = |scheme: &Scheme| scheme.sketch == Sketch::None && !scheme.needs_terms();
        let is_complete = matches!(self.truth, GroundTruth::Complete { .. });
        let made = match own {
            // These sets can be compared in parts, so they need not all be held.
            [scheme] if is_complete && is_whole_set(scheme) && self.exceeds(scheme) => {
                return self.measure_set(scheme);
            }
            _ => columns(self.documents, own, self.limits),
        };
        match made {
            Ok(made) => self.compare(own, made),
            Err(SweepError::TooLarge { .. }) if range.len() > 1 => {
                // The estimate was too low. Halving reads the documents again, but reaches single schemes after a few steps.
                let middle = range.start + range.len() / 2;
                self.measure(schemes, range.start..middle)?;
                self.measure(schemes, middle..range.end)
            }
            Err(SweepError::TooLarge { .. }) if is_complete && own.iter().all(is_whole_set) => {
                // Only one scheme is left here, and its set was larger than estimated.
                self.measure_set(&own[0])
            }
            // A single sketch that does not fit, or a failed reading: less cannot be held.
            Err(error) => Err(error),
        }
    }

    /// Tells whether the sketches of a scheme leave less than half of the memory for a join.
    fn exceeds(&self, scheme: &Scheme) -> bool {
        let all = self.documents.len() as u64;
        expected_bytes(scheme, all, text_bytes(self.documents)) > self.limits.memory / 2
    }

    fn compare(
        &mut self,
        schemes: &[Scheme],
        made: Vec<SketchColumn>,
    ) -> Result<(), SweepError<D::Error>> {
        let mut made: Vec<Option<SketchColumn>> = made.into_iter().map(Some).collect();
        for (at, scheme) in schemes.iter().enumerate() {
            let join = self
                .limits
                // Columns are dropped once they are compared, so later joins have more memory.
                .with_columns(&made.iter().flatten().collect::<Vec<_>>());
            // Always there: each column is taken once.
            let Some(column) = made[at].take() else {
                continue;
            };
            let (settings, truth) = (self.settings, self.truth);
            let own = settings.iter().enumerate();
            for (position, setting) in own.filter(|(_, setting)| setting.scheme == *scheme) {
                let length = |at: u32| self.lengths[at as usize];
                let close = |a, b| may_match(setting.lengths, length(a), length(b));
                // `None` and not a function that always allows, because fingerprints are then counted without visiting pairs.
                let allows: Option<&(dyn Fn(u32, u32) -> bool + Sync)> = match setting.lengths {
                    Some(_) => Some(&close),
                    None => None,
                };
                let counts = tally(setting, &column, truth, join, allows, &self.halves);
                self.show(position, counts)?;
            }
        }
        Ok(())
    }

    fn show(&mut self, position: usize, counts: SettingTally) -> Result<(), SweepError<D::Error>> {
        match (self.visit)(position, counts) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(SweepError::Ended),
        }
    }

    /// Measures the settings of a scheme whose feature sets do not fit in memory.
    fn measure_set(&mut self, scheme: &Scheme) -> Result<(), SweepError<D::Error>> {
        // `measure` comes here for complete truths only: judged pairs need the two sketches, not a join.
        let GroundTruth::Complete { pairs, .. } = self.truth else {
            return Ok(());
        };
        let features = FeatureScheme::from(*scheme);
        let (mut elements, mut without) = (0, 0);
        let size = |_: usize, features: &Features<'_>| features.set.len() as u64;
        FeatureReader::new(&[features], self.limits.threads).read(
            self.documents,
            false,
            &size,
            |_, _, size| {
                elements += size;
                without += u64::from(size == 0);
            },
        )?;
        let sketches = self.documents.len() as u64 - without;
        let settings = self.settings;
        for (position, setting) in settings.iter().enumerate() {
            if setting.scheme != *scheme {
                continue;
            }
            let (mut found, mut correct) = (HalvedCounts::default(), HalvedCounts::default());
            let least = min_score(setting, self.truth);
            let length = |at: u32| self.lengths[at as usize];
            for_each_similar_pair(self.documents, scheme, least, self.limits, |pair| {
                if may_match(setting.lengths, length(pair.a), length(pair.b)) {
                    let half = self.halves.of_pair(pair.a, pair.b);
                    found.add(pair.score, 1, half);
                    // The scores of true pairs under this setting are not at hand, because its sets are not held.
                    let is_true = pairs.binary_search(&(pair.a, pair.b)).is_ok();
                    correct.add(pair.score, u64::from(is_true), half);
                }
            })?;
            let counts = SettingTally::of_sets(elements, sketches, without);
            self.show(position, counts.with_pairs(&found, &correct))?;
        }
        Ok(())
    }
}

impl SweepResult {
    /// Returns the settings that reach the target, the cheapest first, each with its cut of the largest F1 that does. Equally cheap settings are
    /// ordered by descending F1.
    #[must_use]
    pub fn recommendations(&self, target: AccuracyTarget) -> Vec<Recommendation> {
        let of_row = |(at, row): (usize, &SweepRow)| {
            // The best cut may lie between the points that are shown.
            let points = row.curve.points.iter().chain(&row.curve.best);
            let good = points.filter(|p| target.is_met(p.precision.value, p.recall.value));
            let point = good.max_by(|a, b| a.f1.total_cmp(&b.f1))?.clone();
            Some(Recommendation::new(at, row, point, target))
        };
        let mut all: Vec<Recommendation> =
            self.rows.iter().enumerate().filter_map(of_row).collect();
        all.sort_by(|a, b| {
            let by_cost = a.bytes.total_cmp(&b.bytes);
            by_cost.then(b.point.f1.total_cmp(&a.point.f1))
        });
        all
    }

    /// Returns the setting and cut with the largest F1, whether or not it reaches the target; the first of ties.
    #[must_use]
    pub fn best(&self, target: AccuracyTarget) -> Option<Recommendation> {
        let points = self.rows.iter().enumerate();
        let points = points.filter_map(|(at, row)| Some((at, row, row.curve.best.as_ref()?)));
        // The first of ties stays, of which `max_by` would return the last.
        let best = points.reduce(|best, next| if next.2.f1 > best.2.f1 { next } else { best });
        best.map(|(at, row, point)| Recommendation::new(at, row, point.clone(), target))
    }

    /// Returns, for each sketch and cut (Manku et al. 2007, section 6), the smallest and largest precision and recall over all features and weights.
    /// Sketches with a single setting are left out.
    #[must_use]
    pub fn sensitivity(&self) -> Vec<FeatureSensitivity> {
        let mut all: BTreeMap<(&str, usize), Vec<&CurvePoint>> = BTreeMap::new();
        for row in &self.rows {
            for (at, point) in row.curve.points.iter().enumerate() {
                // Settings with one sketch have the same cuts, so a cut is named by its position.
                all.entry((&row.sketch, at)).or_default().push(point);
            }
        }
        // Starts from the ends of the range of shares the wrong way round, so that the first value replaces both.
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((1.0_f64, 0.0_f64), |(low, high), v| {
                (low.min(v), high.max(v))
            })
        };
        all.into_iter()
            .filter(|(_, points)| points.len() > 1)
            .map(|((sketch, _), points)| FeatureSensitivity {
                sketch: sketch.to_owned(),
                parameter: points[0].parameter.clone(),
                settings: points.len() as u64,
                precision: range(&mut points.iter().map(|p| p.precision.value)),
                recall: range(&mut points.iter().map(|p| p.recall.value)),
            })
            .collect()
    }
}

/// Spread of precision and recall at one cut over the features.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FeatureSensitivity {
    /// The sketch.
    pub sketch: String,
    /// The cut.
    pub parameter: String,
    /// Number of settings with this sketch.
    pub settings: u64,
    /// Smallest and largest precision among them.
    pub precision: (f64, f64),
    /// Smallest and largest recall among them.
    pub recall: (f64, f64),
}
