//! Explains why two documents match or do not: what they share, how each method compares them, and the probability that the given settings find the
//! pair.
//!
//! Used by `lookalike explain`. The sketches come from the code that jobs use, so the explanation is true of jobs.

pub(crate) mod detection_probability;
mod methods;

use hashbrown::HashMap;
use lookalike::resemblance::{close_lengths, containment, intersection_size, resemblance};
use lookalike::{DocumentFields, FeatureExtractor, Features};
use lookalike_corpus::{Record, VisibleText};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::dedup::pages::PagePair;
use crate::dedup::pair_test::TestOutcome;
use crate::error::BatchError;
use crate::kernel::placed_text::{PlacedText, category_hash};
use crate::settings::{JobSettings, Method, PairScope};
use crate::settings_error::SettingsError;
use methods::ComparedPair;
pub use methods::{FingerprintComparison, SignatureComparison, SuperShingleComparison};

/// Default number of features listed of each kind.
pub const LISTED: usize = 10;

/// Everything that can be said about two texts under some settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Name of the first document.
    pub a: String,
    /// Name of the second document.
    pub b: String,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Name of the method.
    pub method: String,
    /// True if all text that a reader sees is equal byte for byte, and so are the fields that the scheme reads.
    pub equal_text: bool,
    /// True if both texts are empty. Empty texts are never duplicates.
    pub empty_texts: bool,
    /// True if the main texts are equal byte for byte although the visible texts differ.
    pub equal_main_text: bool,
    /// Resemblance of all visible text. `None` if all of it was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visible_resemblance: Option<f64>,
    /// True if the main texts resemble each other enough, but the pages differ too much in the rest to be near-duplicates.
    pub pages_differ: bool,
    /// Number of distinct features of the first document.
    pub features_a: usize,
    /// Number of distinct features of the second document.
    pub features_b: usize,
    /// Number of distinct features that both have.
    pub shared: usize,
    /// Shared features divided by all features of both.
    pub resemblance: f64,
    /// Share of the first document's features that the second has.
    pub containment_of_a: f64,
    /// Share of the second document's features that the first has.
    pub containment_of_b: f64,
    /// Minimum resemblance of near-duplicates.
    pub threshold: f64,
    /// Results of the further tests of the pair.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<TestOutcome>,
    /// True if the pair reaches the threshold, also as whole pages, and passes all further tests. False for a method that finds only equal texts.
    pub near_duplicates: bool,
    /// Reason why a job with these settings does not compare the pair: its categories or lengths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded: Option<String>,
    /// Finding of the method about the pair.
    pub found: MethodFinding,
    /// Simhash comparison, of 64 bits unless the scheme has another width.
    pub simhash: Option<FingerprintComparison>,
    /// Min-hash comparison by the scheme's signature, or else by 128 functions.
    pub minhash: Option<SignatureComparison>,
    /// Super-shingle comparison by the scheme's groups, or else by 6 groups of 14 minima.
    pub super_shingles: Option<SuperShingleComparison>,
    /// Features that both have, in the order of the first text.
    pub shared_features: FeatureListing,
    /// Features that only the first document has.
    pub only_a: FeatureListing,
    /// Features that only the second document has.
    pub only_b: FeatureListing,
}

/// Finding of a method about a pair, with its probability.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MethodFinding {
    /// True if a job with these settings and this seed finds the pair: the texts are equal, or the method proposes the pair and it is a
    /// near-duplicate.
    pub found: bool,
    /// True if the method proposes the pair.
    pub proposed: bool,
    /// Description of what the method compared, or of why every method finds the pair.
    pub because: String,
    /// Probability, over all seeds, that the method proposes a pair like this one. `None` if there is no formula.
    pub chance: Option<f64>,
    /// Description of what the probability was computed from.
    pub chance_of: String,
}

/// The first features of one kind, with the number of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FeatureListing {
    /// Number of all features of this kind.
    pub count: usize,
    /// The first of them.
    pub listed: Vec<ListedFeature>,
}

/// A feature in readable form.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ListedFeature {
    /// The normalised words or characters that it was made of.
    pub text: String,
    /// The feature in 16 hexadecimal digits.
    pub feature: String,
    /// Number of times that it occurs in the first text.
    pub times_a: usize,
    /// Number of times that it occurs in the second text.
    pub times_b: usize,
}

/// Rank of a record among those with the same id. Jobs number such records in this order, whatever the order of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentRank {
    class_hash: Option<u128>,
    record_hash: u64,
}

impl ContentRank {
    /// Returns the rank of a record in jobs with these settings.
    pub fn new(record: &Record<'_>, settings: &JobSettings) -> Self {
        let category = record.category.as_deref();
        let category = category.filter(|_| settings.by_category());
        let category = category.map_or(0, category_hash);
        let placed = PlacedText::of_record(record, &settings.scheme, category);
        let hash = placed.class_hash(settings.by_category());
        Self {
            class_hash: (!placed.is_empty()).then_some(hash ^ settings.scope.class_salt(false)),
            // Decides among records with equal texts.
            record_hash: xxh3_64(record.raw),
        }
    }
}

/// One of the two documents to explain.
#[derive(Clone, Copy, Debug)]
pub struct ExplainedDocument<'d> {
    /// Name of the document.
    pub name: &'d str,
    /// Its text.
    pub text: &'d str,
    /// All text that a reader sees. `None` if `text` is all of it.
    pub visible: Option<&'d VisibleText<'d>>,
    /// Its anchors and links, for schemes that read them.
    pub fields: &'d DocumentFields,
    /// Its category, if the settings use one and it is known.
    pub category: Option<&'d str>,
}

/// Explains two documents and lists at most `listed` features of each kind.
///
/// # Errors
/// [`BatchError::Settings`] if the settings name a table of terms that they do not have, or if their bands are impossible.
pub fn explain(
    [a, b]: [ExplainedDocument<'_>; 2],
    settings: &JobSettings,
    listed: usize,
) -> Result<Explanation, BatchError> {
    let scheme = &settings.scheme;
    let terms = settings.terms.as_ref().filter(|_| scheme.terms.is_some());
    let extractor = || FeatureExtractor::with_terms(scheme, terms).map_err(SettingsError::from);
    // One extractor for each text, because features borrow from it and both are needed at once.
    let (mut own, mut other) = (extractor()?, extractor()?);
    // Before the features, because these keep the extractors borrowed.
    let spelling = [
        own.spelling_with(a.text, a.fields),
        other.spelling_with(b.text, b.fields),
    ];
    let (own, other) = (
        own.extract_with(a.text, a.fields),
        other.extract_with(b.text, b.fields),
    );
    let similarity = resemblance(own.set, other.set);
    let looks = !scheme.fields.is_none();
    // Fields are part of what is compared only if the scheme reads them.
    let differ = looks && a.fields != b.fields;
    // As in a job, empty texts are equal to nothing.
    let is_empty = |text: &str| text.trim().is_empty();
    let equal = |a: &str, b: &str| a == b && !is_empty(a) && !differ;
    let empty_texts = is_empty(seen(&a)) && is_empty(seen(&b));
    let equal_text = equal(seen(&a), seen(&b));
    // Equal pages have equal main texts anyway, so this is told only of pages that differ elsewhere.
    let equal_main_text = equal(a.text, b.text) && !equal_text;
    let shared = intersection_size(own.set, other.set);
    let pages = match a.visible.is_some() || b.visible.is_some() {
        true => Some(compare_pages(
            [&a, &b],
            [own.set, other.set],
            shared,
            settings,
            &mut extractor()?,
        )),
        false => None,
    };
    let resemble = settings.reaches(similarity);
    let pages_differ = resemble && !equal_text && pages.is_some_and(|(_, alike)| !alike);
    let sides = [(a.text, a.fields), (b.text, b.fields)];
    let tests: Vec<TestOutcome> = settings
        .tests
        .iter()
        .map(|test| TestOutcome::new(test, scheme, sides))
        .collect();
    let is_near = resemble && !pages_differ && tests.iter().all(|test| test.passes);
    let near_duplicates = is_near && settings.method != Method::Exact;
    let pair = ComparedPair {
        a: &own,
        b: &other,
        settings,
    };
    let mut found = pair.explain_method(similarity, [a.category, b.category])?;
    let excluded = excluded([&a, &b], settings, equal_text);
    // Every job finds equal texts before its method proposes pairs.
    found.found = excluded.is_none() && (equal_text || found.proposed && near_duplicates);
    if equal_text {
        found.because = "every method finds equal texts".to_owned();
        (found.chance, found.chance_of) = (Some(1.0), "as the texts are equal".to_owned());
    }
    let times = [times(&own), times(&other)];
    let list = |features: &Features<'_>, side: usize, wanted: &dyn Fn(u64) -> bool| {
        // List each feature once, where it occurs first.
        let mut seen = hashbrown::HashSet::new();
        let mut listing = FeatureListing {
            count: 0,
            listed: Vec::new(),
        };
        for (place, &feature) in features.in_order.iter().enumerate() {
            if !wanted(feature) || !seen.insert(feature) {
                continue;
            }
            listing.count += 1;
            if listing.listed.len() < listed {
                let count = |side: usize| times[side].get(&feature).copied().unwrap_or(0);
                listing.listed.push(ListedFeature {
                    text: spelling[side].name(place).to_owned(),
                    // As digits: many readers of JSON round numbers above 53 bits.
                    feature: format!("{feature:016x}"),
                    times_a: count(0),
                    times_b: count(1),
                });
            }
        }
        listing
    };
    let in_own = |feature: u64| own.set.binary_search(&feature).is_ok();
    let in_other = |feature: u64| other.set.binary_search(&feature).is_ok();
    Ok(Explanation {
        a: a.name.to_owned(),
        b: b.name.to_owned(),
        scheme: scheme.to_string(),
        method: settings.method.to_string(),
        equal_text,
        empty_texts,
        equal_main_text,
        visible_resemblance: pages.map(|(resemblance, _)| resemblance),
        pages_differ,
        features_a: own.set.len(),
        features_b: other.set.len(),
        shared,
        resemblance: similarity,
        containment_of_a: containment(own.set, other.set),
        containment_of_b: containment(other.set, own.set),
        threshold: settings.threshold,
        tests,
        near_duplicates,
        excluded,
        found,
        simhash: pair.fingerprints(),
        minhash: pair.places()?,
        super_shingles: pair.shingles(),
        // Shared features are in the order of the first text, since only one order can be shown.
        shared_features: list(&own, 0, &in_other),
        only_a: list(&own, 0, &|feature| !in_other(feature)),
        only_b: list(&other, 1, &|feature| !in_own(feature)),
    })
}

/// Returns the reason why a job does not compare two documents, if there is one.
fn excluded(
    [a, b]: [&ExplainedDocument<'_>; 2],
    settings: &JobSettings,
    equal_text: bool,
) -> Option<String> {
    let is_same = a.category == b.category;
    if settings.scope != PairScope::Everything && !settings.scope.allows(is_same) {
        let name =
            |category: Option<&str>| category.map_or("none".to_owned(), |name| format!("{name:?}"));
        return Some(match is_same {
            true => format!("both are of the category {}", name(a.category)),
            false => format!(
                "their categories are {} and {}",
                name(a.category),
                name(b.category)
            ),
        });
    }
    let [x, y] = [a, b].map(|document| document.text.len() as u64);
    let share = settings
        .lengths
        .filter(|&share| !equal_text && !close_lengths(x, y, share))?;
    Some(format!(
        "their lengths are {x} and {y} bytes, and the shorter one needs {share} of the longer"
    ))
}

/// Returns the text that a reader sees of a document.
fn seen<'d>(document: &ExplainedDocument<'d>) -> &'d str {
    document
        .visible
        .map_or(document.text, |visible| &visible.whole)
}

/// Returns the resemblance of the visible texts, and whether the documents are near-duplicates as pages, provided that their main texts are. `texts`
/// are the features of the main texts, of which they share `shared_main`.
fn compare_pages(
    documents: [&ExplainedDocument<'_>; 2],
    texts: [&[u64]; 2],
    shared_main: usize,
    settings: &JobSettings,
    extractor: &mut FeatureExtractor,
) -> (f64, bool) {
    let mut set = |document: &ExplainedDocument<'_>, text: &[u64]| match document.visible {
        Some(visible) if visible.page.is_some() => extractor
            .extract_with(visible.own(), document.fields)
            .set
            .to_vec(),
        // Only pages have visible text beside their main text.
        _ => text.to_vec(),
    };
    let [a, b] = [0, 1].map(|side| set(documents[side], texts[side]));
    let identities = documents.map(|document| document.visible.and_then(|visible| visible.page));
    let pair = PagePair {
        identities,
        main: texts.map(<[u64]>::len),
        visible: [a.len(), b.len()],
        shared_main,
        threshold: settings.threshold,
    };
    // Two plain texts were compared as a whole already.
    let alike = identities == [None, None] || pair.accepts(intersection_size(&a, &b));
    (resemblance(&a, &b), alike)
}

/// Counts the occurrences of each feature of a text.
fn times(features: &Features<'_>) -> HashMap<u64, usize> {
    let mut times = HashMap::new();
    for &feature in features.in_order {
        *times.entry(feature).or_insert(0) += 1;
    }
    times
}

impl Explanation {
    /// Returns the verdict in one sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        if self.equal_text {
            return "exact copies: the texts are equal byte for byte".to_owned();
        }
        if self.features_a == 0 || self.features_b == 0 {
            let why = match self.empty_texts {
                true => "both texts are empty, and an empty text is never a duplicate",
                false => "a text without words can only be an exact copy",
            };
            return format!("not comparable: {why}");
        }
        if self.method == Method::Exact.to_string() {
            return format!(
                "not exact copies: the texts differ (resemblance {:.4})",
                self.resemblance
            );
        }
        if let (true, Some(visible)) = (self.pages_differ, self.visible_resemblance) {
            return format!(
                "not near-duplicates: the main texts have a resemblance of {:.4}, but the pages differ in the rest (all that is \
                 visible: {visible:.4}) by more than the rules for pages allow",
                self.resemblance
            );
        }
        let of = match self.visible_resemblance {
            Some(visible) => format!(" of the main texts (of all that is visible: {visible:.4})"),
            None => String::new(),
        };
        let verb = match self.near_duplicates {
            true => "near-duplicates",
            false => "not near-duplicates",
        };
        if self.shared == 0 && self.threshold == 0.0 && !self.near_duplicates {
            return format!("{verb}: the texts have no feature in common");
        }
        let relation = match self.resemblance >= self.threshold {
            true => "at or above",
            false => "below",
        };
        let mut verdict = format!(
            "{verb}: resemblance {:.4}{of} is {relation} the threshold {}",
            self.resemblance, self.threshold
        );
        for outcome in &self.tests {
            let passes = if outcome.passes { "passes" } else { "fails" };
            verdict += &format!("; {:.4} {passes} the test {}", outcome.value, outcome.test);
        }
        verdict
    }

    /// Returns the method's finding in one sentence.
    #[must_use]
    pub fn found_sentence(&self) -> String {
        let (method, because) = (&self.method, &self.found.because);
        if let Some(excluded) = &self.excluded {
            return format!("{method} does not compare the pair: {excluded}");
        }
        if self.found.found {
            return format!("{method} finds the pair: {because}");
        }
        if !self.found.proposed {
            return format!("{method} does not find the pair: {because}");
        }
        let refused = match (self.resemblance >= self.threshold, self.pages_differ) {
            (false, _) => "its resemblance is below the threshold",
            (true, true) => "the pages differ in the rest",
            (true, false) => "it fails a further test",
        };
        format!("{method} proposes the pair ({because}), but {refused}")
    }
}
