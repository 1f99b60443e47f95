//! Settings of a job: method, threshold, survivor rule, limits.
//!
//! Everything here decides *what* comes out, except [`JobLimits`], which decides only how much of the machine is used:
//! the same settings give the same bytes under any limits (P5 in ARCHITECTURE.md).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use lookalike::Terms;
use lookalike::scheme::{Scheme, Sketch};
use serde::Serialize;

use crate::dedup::pair_test::PairTest;
use crate::error::BatchError;
use crate::losses::LossPolicy;
use crate::setting_words::{ParseSettingError, setting_words};
use crate::settings_error::{BoundedSetting, SettingConflict, SettingsError};

/// Method by which candidates are proposed. Every method's candidates are verified by exact resemblance before they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Exact copies only: equal text, byte for byte.
    Copies,
    /// All pairs at or above the threshold, by prefix filtering: recall 1 by construction.
    #[serde(rename = "allpairs")]
    AllPairs,
    /// Bands over a min-hash signature; recall computed from the threshold.
    #[serde(rename = "minhash")]
    MinHash,
    /// The same over a one-permutation signature.
    Oph,
    /// The same over the lowest bits of minima.
    BBit,
    /// Agreement of super-shingles (Vassilvitskii 2007), of at least two unless told otherwise.
    #[serde(rename = "supershingle")]
    SuperShingle,
    /// Fingerprints of 32, 64 or 128 bits within a Hamming distance (Manku et al. 2007, section 2), made by Charikar's hash.
    Simhash,
    /// Henzinger's combination (SIGIR 2006): agreement of super-shingles, then fingerprints within
    /// a distance, of all pairs or of those of one site ([`DistanceFor`]).
    Henzinger,
    /// A common shingle among those that are zero modulo p (Manku et al. 2007, section 5.4).
    ModP,
    /// A common shingle among those that winnowing selects (Manku et al. 2007, section 5.4).
    Winnow,
    /// A common hash of the terms in a lexicon (Manku et al. 2007, section 5.4).
    IMatch,
    /// Agreement of bucket checksums (Manku et al. 2007, section 5.4), of at least two unless told otherwise.
    Buckets,
}

impl Method {
    /// Every method, in the order the documentation lists them.
    pub const ALL: [Self; 12] = [
        Self::AllPairs,
        Self::MinHash,
        Self::Oph,
        Self::BBit,
        Self::SuperShingle,
        Self::Simhash,
        Self::Henzinger,
        Self::ModP,
        Self::Winnow,
        Self::IMatch,
        Self::Buckets,
        Self::Copies,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copies => "copies",
            Self::AllPairs => "allpairs",
            Self::MinHash => "minhash",
            Self::SuperShingle => "supershingle",
            Self::Simhash => "simhash",
            Self::Oph => "oph",
            Self::BBit => "b-bit",
            Self::Henzinger => "henzinger",
            Self::ModP => "mod-p",
            Self::Winnow => "winnow",
            Self::IMatch => "i-match",
            Self::Buckets => "buckets",
        }
    }

    /// True if fingerprints are compared by their distance.
    pub fn has_fingerprints(self) -> bool {
        matches!(self, Self::Simhash | Self::Henzinger)
    }

    /// Number of super-shingles, checksums or selected shingles that candidates share, unless told
    /// otherwise.
    pub fn default_equal(self) -> u32 {
        match self {
            // Two of six: what Henzinger (2006) calls B-similar.
            Self::SuperShingle | Self::Henzinger | Self::Buckets => 2,
            _ => 1,
        }
    }

    /// Largest Hamming distance of a candidate, in bits of 64, unless told otherwise.
    pub fn default_distance(self) -> u32 {
        match self {
            // 355 of 384 bits are equal (Henzinger 2006).
            Self::Henzinger => 5,
            // For billions of pages (Manku et al. 2007, section 4).
            _ => 3,
        }
    }
}

impl Method {
    /// The sketch that it needs of a scheme, with the parameters that the command takes unless told otherwise.
    ///
    /// ```
    /// use lookalike::scheme::Sketch;
    /// use lookalike_batch::Method;
    ///
    /// assert_eq!(Method::MinHash.default_sketch(), Sketch::MinHash { functions: 128 });
    /// ```
    pub fn default_sketch(self) -> Sketch {
        match self {
            Self::Copies | Self::AllPairs => Sketch::None,
            Self::MinHash => Sketch::MinHash { functions: 128 },
            Self::Oph => Sketch::OnePermutation { bins: 128 },
            Self::BBit => Sketch::BBit {
                functions: 128,
                bits: 4,
            },
            Self::SuperShingle | Self::Henzinger => Sketch::SuperShingle {
                // 84 minima in six groups, as Henzinger (2006) has them.
                groups: 6,
                rows: 14,
            },
            Self::Simhash => Sketch::Simhash,
            Self::ModP => Sketch::ModP { modulus: 16 },
            Self::Winnow => Sketch::Winnowing { window: 16 },
            Self::IMatch => Sketch::IMatch { lexicons: 6 },
            Self::Buckets => Sketch::Buckets { buckets: 8 },
        }
    }

    /// True if its candidates are pairs by a rule of their own, so that no least resemblance need be asked for.
    pub fn decides_alone(self) -> bool {
        self.has_fingerprints()
            || matches!(
                self,
                Self::SuperShingle | Self::ModP | Self::Winnow | Self::IMatch | Self::Buckets
            )
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = ParseSettingError;

    fn from_str(name: &str) -> Result<Self, ParseSettingError> {
        let found = Self::ALL.into_iter().find(|method| method.name() == name);
        found.ok_or_else(|| {
            ParseSettingError::unknown("method", name, &Self::ALL.map(Self::name), "")
        })
    }
}

/// One rule for which document of a cluster is wanted more than another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeepRule {
    /// The longest text, in bytes.
    Longest,
    /// The shortest text, in bytes.
    Shortest,
    /// The first in the input.
    First,
    /// The largest number in a field. Records without a usable value come last, by this rule and those below.
    Max(String),
    /// The smallest number in a field.
    Min(String),
    /// The latest date or time in a field.
    Newest(String),
    /// The text in a field that is last in the order of bytes.
    Latest(String),
}

impl KeepRule {
    /// The field that it reads.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Longest | Self::Shortest | Self::First => None,
            Self::Max(field) | Self::Min(field) | Self::Newest(field) | Self::Latest(field) => {
                Some(field)
            }
        }
    }
}

impl fmt::Display for KeepRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Longest => "longest",
            Self::Shortest => "shortest",
            Self::First => "first",
            Self::Max(_) => "max",
            Self::Min(_) => "min",
            Self::Newest(_) => "newest",
            Self::Latest(_) => "latest",
        };
        match self.field() {
            Some(field) => write!(f, "{name}:{}", field.replace(',', "\\,")),
            None => f.write_str(name),
        }
    }
}

/// Rules as they are written.
const KEEP_RULES: [&str; 7] = [
    "longest",
    "shortest",
    "first",
    "max:FIELD",
    "min:FIELD",
    "newest:FIELD",
    "latest:FIELD",
];

impl FromStr for KeepRule {
    type Err = ParseSettingError;

    fn from_str(text: &str) -> Result<Self, ParseSettingError> {
        let field = |field: &str| field.replace("\\,", ",");
        match text.split_once(':') {
            Some((_, "")) => {
                let fault = "names no field: write for example max:score";
                Err(ParseSettingError::malformed(text, fault))
            }
            Some(("max", name)) => Ok(Self::Max(field(name))),
            Some(("min", name)) => Ok(Self::Min(field(name))),
            Some(("newest", name)) => Ok(Self::Newest(field(name))),
            Some(("latest", name)) => Ok(Self::Latest(field(name))),
            None if text == "longest" => Ok(Self::Longest),
            None if text == "shortest" => Ok(Self::Shortest),
            None if text == "first" => Ok(Self::First),
            _ => Err(ParseSettingError::unknown(
                "rule",
                text,
                &KEEP_RULES,
                "; a comma in the name of a field is written \\,",
            )),
        }
    }
}

/// Order in which documents of a cluster are wanted: by the first rule, where it makes no difference by the next, and so on. Last
/// ties go to the smaller id, so that the answer never depends on the order of the input (but for [`KeepRule::First`], which asks
/// for it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeepRules(Vec<KeepRule>);

impl KeepRules {
    /// The rules, the most important first; at least one.
    pub fn rules(&self) -> &[KeepRule] {
        &self.0
    }

    /// The one rule that reads a field, if there is one.
    pub fn field_rule(&self) -> Option<&KeepRule> {
        self.0.iter().find(|rule| rule.field().is_some())
    }
}

impl Default for KeepRules {
    fn default() -> Self {
        KeepRule::Longest.into()
    }
}

impl From<KeepRule> for KeepRules {
    fn from(rule: KeepRule) -> Self {
        Self(vec![rule])
    }
}

impl fmt::Display for KeepRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, rule) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{rule}")?;
        }
        Ok(())
    }
}

impl FromStr for KeepRules {
    type Err = ParseSettingError;

    fn from_str(text: &str) -> Result<Self, ParseSettingError> {
        let rules = split_at_commas(text).into_iter().map(str::parse);
        let rules: Vec<KeepRule> = rules.collect::<Result<_, _>>()?;
        let fields = rules.iter().filter(|rule| rule.field().is_some());
        if fields.count() > 1 {
            let fault = "reads two fields, and only one is allowed: keep the more important one, and add longest, shortest or first";
            return Err(ParseSettingError::malformed(text, fault));
        }
        Ok(Self(rules))
    }
}

/// The parts between commas that stand behind no backslash.
fn split_at_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut is_escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if c == ',' && !is_escaped {
            parts.push(&text[start..at]);
            start = at + 1;
        }
        // A backslash behind a backslash escapes nothing.
        is_escaped = c == '\\' && !is_escaped;
    }
    parts.push(&text[start..]);
    parts
}

/// Pairs that count, by the categories of their documents (Manku et al. 2007, section 6; Vassilvitskii 2007); what a category is stands in
/// [`lookalike_corpus::InputOptions::category`]. Equal texts are pairs like any others here.
/// Documents without a category form one of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PairScope {
    /// All pairs.
    #[default]
    Everything,
    /// Pairs of one category: each is treated as if it were alone.
    Within,
    /// Pairs of different categories: documents of one are never compared with each other.
    Across,
}

impl PairScope {
    /// True if a pair of two categories, or of one, counts.
    pub fn allows(self, same_category: bool) -> bool {
        match self {
            Self::Everything => true,
            Self::Within => same_category,
            Self::Across => !same_category,
        }
    }

    /// Returns the salt of a class's hash, combined with it by exclusive or.
    ///
    /// Across categories the documents of a class are no copies of each other, so one old document would keep all of them: new documents
    /// have classes of their own. The salt leaves the upper half of the hash as it is, by which collections look up classes.
    pub(crate) fn class_salt(self, is_against: bool) -> u128 {
        match self {
            Self::Across if !is_against => 0x6e65_7764_6f63_756d,
            _ => 0,
        }
    }
}

/// For which candidates [`Method::Henzinger`] looks at the distance of the fingerprints.
///
/// Henzinger found super-shingles right for pairs of different sites and wrong for most of one site, where pages share a
/// template: those are the ones that a second opinion helps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DistanceFor {
    /// All of them.
    #[default]
    All,
    /// Pairs of one site, the host of the URL, and pairs of which one site is not known. Super-shingles alone decide
    /// about the others.
    Site,
}

impl DistanceFor {
    /// True if the distance counts for documents of these sites.
    pub fn counts<S: PartialEq>(self, a: Option<S>, b: Option<S>) -> bool {
        self == Self::All || a.is_none() || b.is_none() || a == b
    }
}

setting_words!(DistanceFor, "choice", All = "all", Site = "site");

/// The order of the records in `kept.jsonl` and `removed.jsonl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordOrder {
    /// By id, byte by byte: the same file for any order of the input.
    #[default]
    Id,
    /// As they came in.
    Input,
}

setting_words!(RecordOrder, "order", Id = "id", Input = "input");

/// Verified pairs that `dedup` lists in `pairs.jsonl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PairList {
    /// Each removed document with its survivor: the pairs that the result rests on.
    #[default]
    Deciding,
    /// Every pair at or above the threshold: quadratic in the size of a family.
    All,
}

setting_words!(PairList, "choice", Deciding = "deciding", All = "all");

/// Rule for two records of one id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RepeatedIds {
    /// Call the second `ID#2`, the third `ID#3` and so on, and count them.
    #[default]
    Number,
    /// Stop with an error that names the id.
    Refuse,
}

setting_words!(RepeatedIds, "choice", Number = "number", Refuse = "refuse");

/// Limits on the resources of a job. Never changes a result.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct JobLimits {
    /// Worker threads; 0 counts as 1.
    pub threads: usize,
    /// Bytes of resident memory for the whole process. Jobs at work at once in one process may take the sum of their limits, and the
    /// temporary tables of one may lie in the folder of another.
    pub memory: u64,
}

lookalike::setters! {
    JobLimits {
        threads: usize,
        memory: u64,
    }
}

impl JobLimits {
    /// Worker threads of a job, at least 1: one without workers would wait for them for ever.
    pub(crate) fn workers(&self) -> usize {
        self.threads.max(1)
    }
}

impl Default for JobLimits {
    /// One thread, and a gibibyte.
    fn default() -> Self {
        Self {
            threads: 1,
            memory: 1 << 30,
        }
    }
}

/// Settings that decide the result of a job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobSettings {
    /// Steps from texts to features and sketches.
    pub scheme: Scheme,
    /// Method by which candidates are proposed.
    pub method: Method,
    /// Least resemblance of a near-duplicate, in (0, 1].
    pub threshold: f64,
    /// Largest Hamming distance of a candidate, for [`Method::Simhash`] and [`Method::Henzinger`].
    pub distance: u32,
    /// For which candidates of [`Method::Henzinger`] the distance counts.
    pub distance_for: DistanceFor,
    /// Least number of super-shingles, checksums or selected shingles that candidates share, above 0; `None` for
    /// [`Method::default_equal`].
    pub equal: Option<u32>,
    /// Most different texts with a selected shingle that still proposes candidates, for [`Method::ModP`] and [`Method::Winnow`].
    pub stop_features: Option<u32>,
    /// The table of terms that the scheme names.
    pub terms: Option<Arc<Terms>>,
    /// Recall at the threshold that the bands of [`Method::MinHash`] must reach, in (0, 1).
    pub recall: f64,
    /// Pairs that count.
    pub scope: PairScope,
    /// Least share of the longer text's bytes that the shorter one has (Manku et al. 2007, section 6), in (0, 1]; `None` for
    /// no such test.
    pub lengths: Option<f64>,
    /// Further tests that a pair must pass, all of them.
    pub tests: Vec<PairTest>,
    /// Document of a cluster that survives.
    pub keep: KeepRules,
    /// Order of the records in the output.
    pub order: RecordOrder,
    /// Pairs that `dedup` lists.
    pub pairs: PairList,
    /// Rule for repeated ids.
    pub repeated_ids: RepeatedIds,
    /// Policy for records and files that cannot be read.
    pub losses: LossPolicy,
}

lookalike::setters! {
    JobSettings {
        scheme: Scheme,
        method: Method,
        threshold: f64,
        distance: u32,
        distance_for: DistanceFor,
        equal: Option<u32>,
        stop_features: Option<u32>,
        terms: Option<Arc<Terms>>,
        recall: f64,
        scope: PairScope,
        lengths: Option<f64>,
        tests: Vec<PairTest>,
        keep: KeepRules,
        order: RecordOrder,
        pairs: PairList,
        repeated_ids: RepeatedIds,
        losses: LossPolicy,
    }
}

impl Default for JobSettings {
    fn default() -> Self {
        Self {
            scheme: Scheme::default(),
            method: Method::AllPairs,
            threshold: 0.8,
            distance: Method::AllPairs.default_distance(),
            distance_for: DistanceFor::default(),
            equal: None,
            stop_features: None,
            terms: None,
            recall: 0.999,
            scope: PairScope::default(),
            lengths: None,
            tests: Vec::new(),
            keep: KeepRules::default(),
            order: RecordOrder::default(),
            pairs: PairList::default(),
            repeated_ids: RepeatedIds::default(),
            losses: LossPolicy::default(),
        }
    }
}

impl JobSettings {
    /// Default settings of a method, with a scheme that has the sketch it needs.
    ///
    /// ```
    /// use lookalike_batch::{JobSettings, Method};
    ///
    /// let settings = JobSettings::of_method(Method::MinHash).threshold(0.7);
    /// assert!(settings.check().is_ok());
    /// ```
    pub fn of_method(method: Method) -> Self {
        let scheme = Scheme::default().sketch(method.default_sketch());
        Self {
            scheme,
            method,
            distance: method.default_distance(),
            ..Self::default()
        }
    }

    /// Least number of super-shingles, checksums or selected shingles that candidates share.
    pub fn least_equal(&self) -> u32 {
        self.equal.unwrap_or(self.method.default_equal())
    }

    /// Bits of the fingerprints that are compared, whatever the method.
    pub fn fingerprint_bits(&self) -> u32 {
        match self.scheme.sketch.fingerprint_bits() {
            0 => 64,
            bits => bits,
        }
    }

    /// True if equal texts of different categories are told apart, so that each pair can be judged by where its
    /// documents stand.
    pub fn by_category(&self) -> bool {
        self.scope != PairScope::Everything || self.distance_for == DistanceFor::Site
    }

    /// Refuses numbers that mean nothing, and a scheme without its table of terms.
    ///
    /// # Errors
    /// [`BatchError::Settings`], which says what to write instead.
    pub fn check(&self) -> Result<(), BatchError> {
        self.check_threshold()?;
        // Of both ends the numbers of bands would be none and infinitely many.
        if !(self.recall > 0.0 && self.recall < 1.0) {
            return Err(BoundedSetting::Recall.error(self.recall).into());
        }
        self.check_sketch()?;
        self.check_tests()?;
        let most = self.fingerprint_bits() / 4;
        if self.method.has_fingerprints() && self.distance > most {
            return Err(SettingsError::HardlyRelated {
                distance: self.distance,
                most,
                bits: self.fingerprint_bits(),
            }
            .into());
        }
        if self.distance_for == DistanceFor::Site {
            self.check_sites().map_err(SettingsError::from)?;
        }
        self.check_stop_features()?;
        if let Some(share) = self
            .lengths
            .filter(|share| !(*share > 0.0 && *share <= 1.0))
        {
            return Err(BoundedSetting::Lengths.error(share).into());
        }
        Ok(self.check_terms()?)
    }

    fn check_threshold(&self) -> Result<(), SettingsError> {
        let threshold = self.threshold;
        if threshold > 0.0 && threshold <= 1.0 || threshold == 0.0 && self.method.decides_alone() {
            return Ok(());
        }
        Err(BoundedSetting::Threshold.error(threshold))
    }

    /// Refuses a scheme without the sketch that the method looks at.
    fn check_sketch(&self) -> Result<(), SettingsError> {
        let (needed, sketch) = (self.method.default_sketch(), self.scheme.sketch);
        // By kind: parameters are the user's choice.
        let is_kind =
            |kind: Sketch| std::mem::discriminant(&kind) == std::mem::discriminant(&sketch);
        let is_fit = match needed {
            Sketch::None => true,
            Sketch::Simhash => sketch.fingerprint_bits() > 0,
            _ => is_kind(needed),
        };
        if !is_fit {
            return Err(SettingsError::OtherSketch {
                method: self.method.name(),
                needed,
                sketch,
            });
        }
        let most = match sketch {
            Sketch::SuperShingle { groups, .. } => groups,
            Sketch::Buckets { buckets } => buckets,
            Sketch::IMatch { lexicons } => lexicons,
            _ => return Ok(()),
        };
        let (equal, most) = (self.least_equal(), most.into());
        match self.equal {
            Some(0) => Err(BoundedSetting::Equal.error(equal)),
            Some(_) if equal > most => Err(SettingsError::MoreThanAll {
                equal,
                most,
                sketch,
            }),
            _ => Ok(()),
        }
    }

    /// Refuses further tests that would do nothing, or need what is not there.
    fn check_tests(&self) -> Result<(), SettingsError> {
        if self.method == Method::Copies && !self.tests.is_empty() {
            return Err(SettingConflict::TestsOfCopies.into());
        }
        self.tests.iter().try_for_each(PairTest::check)
    }

    /// Refuses what has no meaning where the distance counts for pairs of one site only.
    fn check_sites(&self) -> Result<(), SettingConflict> {
        match (self.method, self.scope) {
            (Method::Henzinger, PairScope::Everything) => Ok(()),
            (Method::Henzinger, _) => Err(SettingConflict::SiteBesideScope),
            _ => Err(SettingConflict::SiteWithoutHenzinger),
        }
    }

    /// Refuses a bound on common features where they propose nothing, or something else besides.
    fn check_stop_features(&self) -> Result<(), SettingsError> {
        match (self.stop_features, self.method) {
            (None, _) => Ok(()),
            (Some(_), Method::ModP | Method::Winnow) if self.by_category() => {
                Err(SettingConflict::StopFeaturesBesideScope.into())
            }
            // A pair is two texts.
            (Some(most @ (0 | 1)), _) => Err(BoundedSetting::StopFeatures.error(most)),
            (Some(_), Method::ModP | Method::Winnow) => Ok(()),
            (Some(_), _) => Err(SettingConflict::StopFeaturesOfOtherMethods.into()),
        }
    }

    /// Refuses a scheme whose table of terms is missing or another one.
    fn check_terms(&self) -> Result<(), SettingsError> {
        let Self { scheme, terms, .. } = self;
        lookalike::Sketcher::new(scheme, terms.as_ref())?;
        let missing = |needs: String| Err(SettingsError::NoTerms { needs });
        match terms {
            Some(terms) if scheme.terms.is_some() => Ok(terms.ensure_fits(scheme)?),
            _ if scheme.shingle.needs_terms() => missing(format!("shingle={}", scheme.shingle)),
            _ if scheme.weight.needs_terms() => missing(format!("weight={}", scheme.weight)),
            _ => Ok(()),
        }
    }

    /// The settings in one line: what a resumed job must agree on.
    pub fn canonical(&self) -> String {
        let tests: Vec<String> = self.tests.iter().map(PairTest::to_string).collect();
        format!(
            "scheme=[{}] method={} threshold={} distance={} equal={} recall={} scope={:?} lengths={:?} keep={} order={:?} pairs={:?} repeated-ids={} strict={} distance-for={:?} stop-features={:?} and=[{}]",
            self.scheme,
            self.method,
            self.threshold,
            self.distance,
            self.least_equal(),
            self.recall,
            self.scope,
            self.lengths,
            self.keep,
            self.order,
            self.pairs,
            self.repeated_ids,
            self.losses.is_strict(),
            self.distance_for,
            self.stop_features,
            tests.join(" "),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for method in Method::ALL {
            assert_eq!(method.name().parse::<Method>(), Ok(method));
        }
        for keep in [
            "longest",
            "shortest",
            "first",
            "max:score",
            "min:a.b",
            "newest:date",
            "latest:version",
            "max:score,longest",
            "shortest,min:a\\,b,first",
        ] {
            assert_eq!(keep.parse::<KeepRules>().unwrap().to_string(), keep);
        }
    }

    #[test]
    fn a_method_needs_its_sketch() {
        for method in Method::ALL {
            let settings = JobSettings::of_method(method);
            let refused = settings.check().err().map(|error| error.to_string());
            assert!(
                refused.is_none_or(|error| error.contains("terms")),
                "{method}"
            );
            let settings = JobSettings {
                method,
                ..JobSettings::default()
            };
            let needs_none = matches!(method, Method::Copies | Method::AllPairs);
            assert_eq!(settings.check().is_ok(), needs_none, "{method}");
        }
    }

    #[test]
    fn a_resumed_job_must_have_the_same_tests() {
        let with = |tests: &[&str]| JobSettings {
            tests: tests.iter().map(|test| test.parse().unwrap()).collect(),
            ..JobSettings::default()
        };
        let one = with(&["coverage:stops:5:0.4"]).canonical();
        assert!(one.ends_with(" and=[coverage:stops:5:0.4]"), "{one}");
        assert_ne!(one, with(&[]).canonical());
        assert_ne!(one, with(&["coverage:stops:5:0.41"]).canonical());
    }

    #[test]
    fn wrong_names_say_what_exists() {
        assert!(
            "jaccard"
                .parse::<Method>()
                .unwrap_err()
                .to_string()
                .contains("allpairs")
        );
        assert!(
            "max:"
                .parse::<KeepRules>()
                .unwrap_err()
                .to_string()
                .contains("names no field")
        );
        for (wrong, said) in [
            ("newest", "newest:FIELD"),
            ("max:q,longestt", "\"longestt\""),
            ("max:q,", "\"\""),
            ("max:q,min:r", "two fields"),
        ] {
            let refused = wrong.parse::<KeepRules>().unwrap_err().to_string();
            assert!(refused.contains(said), "{refused}");
        }
    }

    #[test]
    fn numbers_outside_their_ranges_were_taken_or_called_something_else() {
        let minhash = || JobSettings::of_method(Method::MinHash);
        let shingles = || JobSettings::of_method(Method::SuperShingle);
        let sketch = |sketch| shingles().scheme(Scheme::default().sketch(sketch));
        for (settings, said) in [
            (minhash().recall(1.0), "recall 1 is not"),
            (minhash().recall(0.0), "recall 0 is not"),
            (minhash().recall(f64::NAN), "recall NaN is not"),
            (shingles().equal(Some(0)), "equal 0 is not"),
            (
                sketch(Sketch::SuperShingle { groups: 3, rows: 0 }),
                "super-shingle:3x0",
            ),
        ] {
            let refused = settings.check().unwrap_err().to_string();
            assert!(refused.contains(said), "{refused}");
        }
    }
}
