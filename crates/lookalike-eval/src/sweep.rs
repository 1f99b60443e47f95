//! Many settings over one collection: each with its curve, and advice from all of them.
//!
//! Documents are cut into words once for each way of doing that; every setting works on the hashes
//! of the words. The truth is either a list of judged pairs, which alone count, or every pair whose
//! exact resemblance reaches a threshold.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lookalike::sketch::{SketchValue, Sketcher};
use lookalike::{FeatureExtractor, Scheme, Sketch, TermCounts, Terms};
use serde::Serialize;

use crate::curve::{CurvePoint, ScoreCurve};
use crate::document_set::{DocumentSet, EvaluatedDocument, SketchedDocument};
use crate::score::{ScoredPair, SetMeasure, score, scored_pairs};

/// The true pairs.
#[derive(Debug, Clone)]
pub enum GroundTruth {
    /// Only these pairs count: a < b, and whether they are near-duplicates.
    Judged(Vec<(u32, u32, bool)>),
    /// These pairs are the near-duplicates, all others are not; ascending.
    Complete(Vec<(u32, u32)>),
}

impl GroundTruth {
    /// Number of true pairs.
    #[must_use]
    pub fn true_pairs(&self) -> u64 {
        match self {
            Self::Judged(pairs) => pairs.iter().filter(|pair| pair.2).count() as u64,
            Self::Complete(pairs) => pairs.len() as u64,
        }
    }

    /// Every pair whose exact resemblance under `scheme` is at least `threshold`.
    #[must_use]
    pub fn exact(collection: &DocumentSet, scheme: &Scheme, threshold: f64) -> Self {
        let scheme = scheme.features_only();
        let tokens = DocumentTokens::new(collection, &scheme);
        let sketches = tokens.sketches(&scheme);
        let pairs = scored_pairs(&sketches, threshold);
        Self::Complete(pairs.into_iter().map(|pair| (pair.a, pair.b)).collect())
    }
}

/// A scheme and how its sketches are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SweepSetting {
    /// The scheme.
    pub scheme: Scheme,
    /// Measure of sets; other sketches have their own. Only [`GroundTruth::Judged`] can be held against
    /// another one than resemblance.
    pub measure: SetMeasure,
    /// Second test (Manku et al. 2007, section 6): least share of the longer text's bytes that the shorter one has.
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

impl SweepSetting {
    /// Tells whether the lengths of two documents allow them to be a pair.
    pub(crate) fn allows(&self, collection: &DocumentSet, a: u32, b: u32) -> bool {
        let length = |at| collection.text(at).len();
        close_lengths(self.lengths, length(a), length(b))
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

    /// The features, and what else the scheme says about the text.
    pub(crate) fn features_name(&self) -> String {
        let Scheme {
            shingle,
            mask,
            html,
            ..
        } = &self.scheme;
        let mut name = shingle.to_string();
        if *mask != lookalike::Mask::default() {
            name += &format!(" mask={mask}");
        }
        // `main` is what jobs take unless they are told otherwise.
        if html.mode != lookalike::HtmlMode::default() {
            name += &format!(" html={html}");
        }
        name
    }
}

/// One setting, measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepRow {
    /// The features in words: shingle, weight and other differences.
    pub features: String,
    /// The weight of the features.
    pub weight: String,
    /// The sketch.
    pub sketch: String,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Mean bytes of a document's sketch.
    pub bytes: f64,
    /// Documents without a sketch.
    pub without_sketch: u64,
    /// Precision and recall over the cuts.
    pub curve: ScoreCurve,
}

/// The results of all settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepResult {
    /// Documents compared.
    pub documents: u64,
    /// True pairs among them.
    pub true_pairs: u64,
    /// One row a setting, in the order they were given.
    pub rows: Vec<SweepRow>,
}

/// Least precision and recall that the user accepts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AccuracyTarget {
    /// Least precision, in [0, 1].
    pub precision: f64,
    /// Least recall, in [0, 1].
    pub recall: f64,
}

impl AccuracyTarget {
    fn is_met(&self, precision: f64, recall: f64) -> bool {
        precision >= self.precision && recall >= self.recall
    }
}

/// A setting and a cut, chosen on the data that its figures are of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// Position of its row.
    pub row: usize,
    /// The features, their weight and the sketch.
    pub setting: String,
    /// Mean bytes of a document's sketch: the cost.
    pub bytes: f64,
    /// The cut.
    pub point: CurvePoint,
    /// True if the lower confidence limits reach the target as well.
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

/// The words of all documents, as hashes: made once, used by every setting.
pub(crate) struct DocumentTokens<'a> {
    collection: &'a DocumentSet,
    words: Scheme,
    hashes: Vec<Vec<u64>>,
}

impl<'a> DocumentTokens<'a> {
    pub(crate) fn new(collection: &'a DocumentSet, scheme: &Scheme) -> Self {
        let words = scheme
            .features_only()
            .shingle(lookalike::Shingle::words(1).unwrap_or_default());
        let mut extractor = FeatureExtractor::new(&words);
        let hashes = collection
            .texts()
            .map(|text| extractor.features(text).to_vec());
        Self {
            collection,
            words,
            hashes: hashes.collect(),
        }
    }

    /// Tells whether these words are those of the scheme.
    pub(crate) fn fit(&self, scheme: &Scheme) -> bool {
        let own = self.words.shingle(scheme.shingle);
        own == scheme.features_only()
    }

    /// Shows `visit` the features of each document under the scheme of the extractor.
    fn each(
        &self,
        scheme: &Scheme,
        mut extractor: FeatureExtractor,
        mut visit: impl FnMut(&lookalike::Features<'_>),
    ) {
        for (tokens, document) in self.hashes.iter().zip(self.collection.documents()) {
            if !scheme.fields.is_none() {
                visit(&extractor.extract_with(&document.text, &document.fields));
                continue;
            }
            match extractor.extract_tokens(tokens) {
                Some(features) => visit(&features),
                None => visit(&extractor.extract(&document.text)),
            }
        }
    }

    fn terms(&self, scheme: &Scheme) -> Arc<Terms> {
        let mut counts = TermCounts::new(scheme);
        let counted = scheme.counted();
        let extractor = FeatureExtractor::new(&counted);
        self.each(&counted, extractor, |features| counts.add(features.set));
        Arc::new(counts.terms())
    }

    /// The sketches under a scheme, with a table of terms of this collection where it needs one.
    pub(crate) fn sketches(&self, scheme: &Scheme) -> Vec<Option<SketchValue>> {
        let terms = scheme.needs_terms().then(|| self.terms(scheme));
        let (extractor, sketcher) = sketcher_of(scheme, terms);
        let mut sketches = Vec::with_capacity(self.hashes.len());
        self.each(scheme, extractor, |features| {
            sketches.push(sketcher.sketch(features))
        });
        sketches
    }
}

/// The sketches of all documents under a scheme, with a table of terms of this collection where
/// the scheme needs one.
#[must_use]
pub fn sketches_of(collection: &DocumentSet, scheme: &Scheme) -> Vec<Option<SketchValue>> {
    DocumentTokens::new(collection, scheme).sketches(scheme)
}

/// The cuts that a curve is shown at: distances 0 to `most_bits`, numbers of hashes, or shares.
fn cuts(sketch: Sketch, most_bits: u32) -> Vec<f64> {
    match sketch {
        Sketch::Simhash32 | Sketch::Simhash | Sketch::Simhash128 => {
            let bits = sketch.fingerprint_bits();
            (0..=most_bits).map(|k| f64::from(bits - k)).collect()
        }
        Sketch::SuperShingle { groups: hashes, .. }
        | Sketch::Buckets { buckets: hashes }
        | Sketch::IMatch { lexicons: hashes } => (1..=hashes).rev().map(f64::from).collect(),
        _ => (6..=20).rev().map(|step| f64::from(step) / 20.0).collect(),
    }
}

/// True if a score is a number of hashes that agree.
fn counts_hashes(sketch: Sketch) -> bool {
    matches!(
        sketch,
        Sketch::SuperShingle { .. } | Sketch::Buckets { .. } | Sketch::IMatch { .. }
    )
}

/// A cut in the words of the sketch.
#[must_use]
pub fn cut_name(sketch: Sketch, cut: f64) -> String {
    match sketch {
        Sketch::Simhash32 | Sketch::Simhash | Sketch::Simhash128 => {
            format!("k <= {}", f64::from(sketch.fingerprint_bits()) - cut)
        }
        Sketch::SuperShingle { .. } | Sketch::Buckets { .. } | Sketch::IMatch { .. } => {
            format!("agree >= {cut}")
        }
        Sketch::MinHash { .. } | Sketch::OnePermutation { .. } | Sketch::BBit { .. } => {
            format!("agreement >= {cut}")
        }
        _ => format!("resemblance >= {cut}"),
    }
}

/// Mean bytes of the sketches, as they would be stored.
fn mean_bytes(sketches: &[Option<SketchValue>], sketch: Sketch) -> f64 {
    let bytes = |value: &SketchValue| match (value, sketch) {
        (SketchValue::Set(set), _) => 8.0 * set.len() as f64,
        (SketchValue::Bits(_, bits), _) => f64::from(*bits) / 8.0,
        (SketchValue::Signature(places), Sketch::BBit { bits, .. }) => {
            places.len() as f64 * f64::from(bits) / 8.0
        }
        (SketchValue::Signature(places), _) => 4.0 * places.len() as f64,
        (SketchValue::Hashes(hashes), _) => 8.0 * hashes.len() as f64,
    };
    let (count, sum) = sketches
        .iter()
        .flatten()
        .fold((0_u64, 0.0), |(count, sum), value| {
            (count + 1, sum + bytes(value))
        });
    sum / count.max(1) as f64
}

/// Makes sketches of documents one after another, and keeps no text.
pub struct DocumentSketcher {
    extractor: FeatureExtractor,
    sketcher: Sketcher,
}

impl DocumentSketcher {
    /// A sketcher under `scheme`, with the table of terms that it needs.
    ///
    /// # Panics
    /// When the scheme needs a table of terms, and `counts`, of the features of [`Scheme::counted`], are missing.
    #[must_use]
    pub fn new(scheme: &Scheme, counts: Option<TermCounts>) -> Self {
        let terms = counts.map(|mut counts| Arc::new(counts.terms()));
        let (extractor, sketcher) = sketcher_of(scheme, terms);
        Self {
            extractor,
            sketcher,
        }
    }

    /// The document without its text.
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

/// Extractor and sketcher of a scheme with this table of terms.
fn sketcher_of(scheme: &Scheme, terms: Option<Arc<Terms>>) -> (FeatureExtractor, Sketcher) {
    let scheme = scheme.terms(terms.as_ref().map(|terms| terms.id()));
    let extractor = match &terms {
        Some(terms) => {
            FeatureExtractor::with_terms(&scheme, terms).expect("the table was made for the scheme")
        }
        None => FeatureExtractor::new(&scheme),
    };
    let sketcher =
        Sketcher::new(&scheme, terms.as_ref()).expect("the table was made for the scheme");
    (extractor, sketcher)
}

/// Tells whether the shorter of two lengths is at least this share of the longer.
pub(crate) fn close_lengths(least: Option<f64>, a: usize, b: usize) -> bool {
    least.is_none_or(|share| a.min(b) as f64 >= share * a.max(b) as f64)
}

/// The scores that count, each with its truth.
fn judge(
    truth: &GroundTruth,
    sketches: &[Option<SketchValue>],
    measure: SetMeasure,
    least: f64,
    close: impl Fn(u32, u32) -> bool,
) -> Vec<(f64, bool)> {
    match truth {
        GroundTruth::Judged(pairs) => pairs
            .iter()
            .filter(|pair| close(pair.0, pair.1))
            .filter_map(|&(a, b, is_true)| {
                let (a, b) = (&sketches[a as usize], &sketches[b as usize]);
                let (a, b) = a.as_ref().zip(b.as_ref())?;
                Some((score(measure, a, b), is_true)).filter(|pair| pair.0 > 0.0)
            })
            .collect(),
        GroundTruth::Complete(pairs) => {
            let is_true = |pair: &ScoredPair| pairs.binary_search(&(pair.a, pair.b)).is_ok();
            let found = scored_pairs(sketches, least);
            found
                .iter()
                .filter(|pair| close(pair.a, pair.b))
                .map(|pair| (pair.score, is_true(pair)))
                .collect()
        }
    }
}

/// One setting, measured on sketches that are there. Pairs that `allows` is false of are not found.
#[must_use]
pub fn measure(
    setting: &SweepSetting,
    sketches: &[Option<SketchValue>],
    truth: &GroundTruth,
    allows: impl Fn(u32, u32) -> bool,
) -> SweepRow {
    let scheme = &setting.scheme;
    // Judged pairs show what lies far out as well; all pairs of a collection within a large
    // distance would be nearly all pairs.
    let most_bits = match truth {
        GroundTruth::Judged(_) => 24,
        GroundTruth::Complete(_) => 12,
    };
    let cuts = cuts(
        scheme.sketch,
        most_bits * scheme.sketch.fingerprint_bits() / 64,
    );
    let least = cuts.last().copied().unwrap_or(1.0);
    let scores = judge(truth, sketches, setting.measure, least, allows);
    let name = |cut| setting.cut_name(cut);
    let mut curve = ScoreCurve::new(scores, truth.true_pairs(), &cuts, name);
    if counts_hashes(scheme.sketch) {
        curve = curve.with_exact_points(|cut| format!("agree = {cut}"));
    }
    SweepRow {
        features: setting.features_name(),
        weight: scheme.weight.to_string(),
        sketch: setting.sketch_name(),
        scheme: scheme.to_string(),
        bytes: mean_bytes(sketches, scheme.sketch),
        without_sketch: sketches.iter().filter(|sketch| sketch.is_none()).count() as u64,
        curve,
    }
}

fn row(tokens: &DocumentTokens<'_>, setting: &SweepSetting, truth: &GroundTruth) -> SweepRow {
    let sketches = tokens.sketches(&setting.scheme);
    measure(setting, &sketches, truth, |a, b| {
        setting.allows(tokens.collection, a, b)
    })
}

/// Measures all settings on `threads` threads; `done` hears how many are finished, and may end the work: there is no result then.
/// The result does not depend on the threads.
#[must_use]
pub fn sweep(
    collection: &DocumentSet,
    settings: &[SweepSetting],
    truth: &GroundTruth,
    threads: usize,
    done: impl Fn(usize) -> ControlFlow<()> + Sync,
) -> Option<SweepResult> {
    let mut tokens: Vec<DocumentTokens<'_>> = Vec::new();
    for SweepSetting { scheme, .. } in settings {
        if tokens.iter().all(|tokens| !tokens.fit(scheme)) {
            tokens.push(DocumentTokens::new(collection, scheme));
        }
    }
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(BTreeMap::new());
    let is_ended = AtomicBool::new(false);
    let work = || {
        while !is_ended.load(Ordering::Relaxed)
            && let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(setting) = settings.get(at)
        {
            let tokens = tokens.iter().find(|tokens| tokens.fit(&setting.scheme));
            let row = row(tokens.expect("made for every setting"), setting, truth);
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.insert(at, row);
            if done(rows.len()).is_break() {
                is_ended.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        (0..threads.max(1)).for_each(|_| {
            scope.spawn(work);
        });
    });
    let rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    (!is_ended.into_inner()).then(|| SweepResult {
        documents: collection.len() as u64,
        true_pairs: truth.true_pairs(),
        rows: rows.into_values().collect(),
    })
}

impl SweepResult {
    /// Settings that fulfil the wish, the cheapest first: of each row the cut of the largest F1
    /// among those that do. Of equally cheap ones that with the larger F1 comes first.
    #[must_use]
    pub fn recommendations(&self, target: AccuracyTarget) -> Vec<Recommendation> {
        let of_row = |(at, row): (usize, &SweepRow)| {
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

    /// The setting and cut of the largest F1, whatever is wished; the first of equals.
    #[must_use]
    pub fn best(&self, target: AccuracyTarget) -> Option<Recommendation> {
        let points = self.rows.iter().enumerate();
        let points = points.filter_map(|(at, row)| Some((at, row, row.curve.best.as_ref()?)));
        let mut best: Option<(usize, &SweepRow, &CurvePoint)> = None;
        for (at, row, point) in points {
            if best.is_none_or(|(.., best)| point.f1 > best.f1) {
                best = Some((at, row, point));
            }
        }
        best.map(|(at, row, point)| Recommendation::new(at, row, point.clone(), target))
    }

    /// For each sketch and cut (Manku et al. 2007, section 6), the smallest and largest precision and recall over all
    /// features and weights; sketches of one setting have no say.
    #[must_use]
    pub fn sensitivity(&self) -> Vec<FeatureSensitivity> {
        let mut all: BTreeMap<(&str, usize), Vec<&CurvePoint>> = BTreeMap::new();
        for row in &self.rows {
            for (at, point) in row.curve.points.iter().enumerate() {
                all.entry((&row.sketch, at)).or_default().push(point);
            }
        }
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

/// Spread of precision and recall of a cut over the features.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FeatureSensitivity {
    /// The sketch.
    pub sketch: String,
    /// The cut.
    pub parameter: String,
    /// Settings with this sketch.
    pub settings: u64,
    /// Least and largest precision among them.
    pub precision: (f64, f64),
    /// Least and largest recall.
    pub recall: (f64, f64),
}
