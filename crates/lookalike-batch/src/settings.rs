//! Settings of a job: method, threshold, survivor rule, limits.
//!
//! Everything here decides the *result*, except [`JobLimits`], which decides only how much of the machine is used:
//! the same settings give the same bytes under any limits (P5 in ARCHITECTURE.md).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use lookalike::Terms;
use lookalike::scheme::{Scheme, Sketch};
use lookalike_corpus::{OptionError, OrderField, split_at_commas};
use serde::Serialize;

use crate::dedup::pair_test::PairTest;
use crate::error::BatchError;
use crate::losses::LossPolicy;
use crate::setting_words::{ParseSettingError, setting_from_str};
use crate::settings_error::{BoundedSetting, SettingConflict, SettingsError};

lookalike::words! {
    /// Method by which candidates are proposed. Every method's candidates are verified by exact resemblance before they count.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Method: Serialize {
        /// All pairs at or above the threshold, by prefix filtering: a recall of 1 by construction.
        AllPairs = "allpairs",
        /// Bands over a min-hash signature; their number is computed from the threshold and the recall.
        MinHash = "minhash",
        /// Bands over a one-permutation signature.
        Oph = "oph",
        /// Bands over the lowest bits of the minima.
        BBit = "b-bit",
        /// Agreement of super-shingles (Vassilvitskii 2007), by default of at least two.
        SuperShingle = "super-shingle",
        /// Fingerprints of 32, 64 or 128 bits within a Hamming distance (Manku et al. 2007, section 2), computed by Charikar's hash.
        Simhash = "simhash",
        /// Henzinger's combination (SIGIR 2006): agreement of super-shingles, then fingerprints within a distance, either for all pairs or for those of
        /// one site ([`DistanceFor`]).
        Henzinger = "henzinger",
        /// A common shingle among those that are zero modulo p (Manku et al. 2007, section 5.4).
        ModP = "mod-p",
        /// A common shingle among those that winnowing selects (Manku et al. 2007, section 5.4).
        Winnow = "winnow",
        /// A common hash of the terms in a lexicon (Manku et al. 2007, section 5.4).
        IMatch = "i-match",
        /// Agreement of bucket checksums (Manku et al. 2007, section 5.4), by default of at least two.
        Buckets = "buckets",
        /// Exact copies only: equal text, byte for byte.
        Exact = "exact",
    }
}

impl Method {
    /// Returns true if fingerprints are compared by their distance.
    pub fn has_fingerprints(self) -> bool {
        matches!(self, Self::Simhash | Self::Henzinger)
    }

    /// Returns the default minimum number of super-shingles, checksums or selected shingles that candidates share.
    pub fn default_equal(self) -> u32 {
        match self {
            // Two of six: what Henzinger (2006) calls B-similar.
            Self::SuperShingle | Self::Henzinger | Self::Buckets => 2,
            _ => 1,
        }
    }

    /// Returns the default maximum Hamming distance of a candidate, for fingerprints of 64 bits.
    pub fn default_distance(self) -> u32 {
        match self {
            // The share of 355 equal bits of 384 (Henzinger 2006), rounded to bits of 64.
            Self::Henzinger => 5,
            // For billions of pages (Manku et al. 2007, section 4).
            _ => 3,
        }
    }
}

impl Method {
    /// Returns the sketch that a scheme for this method needs, with the default parameters of the command.
    ///
    /// ```
    /// use lookalike::scheme::Sketch;
    /// use lookalike_batch::Method;
    ///
    /// assert_eq!(Method::MinHash.default_sketch(), Sketch::MinHash { functions: 128 });
    /// ```
    pub fn default_sketch(self) -> Sketch {
        match self {
            Self::Exact | Self::AllPairs => Sketch::None,
            Self::MinHash => Sketch::MinHash { functions: 128 },
            Self::Oph => Sketch::OnePermutation { bins: 128 },
            Self::BBit => Sketch::BBit {
                functions: 128,
                bits: 4,
            },
            Self::SuperShingle | Self::Henzinger => Sketch::SuperShingle {
                // 84 minima in six groups, as in Henzinger (2006).
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

    /// Returns true if the method has its own rule for which candidates are pairs, so that a threshold is not required.
    pub fn has_own_rule(self) -> bool {
        self.has_fingerprints()
            || matches!(
                self,
                Self::SuperShingle | Self::ModP | Self::Winnow | Self::IMatch | Self::Buckets
            )
    }
}

setting_from_str!(Method, "method");

/// One rule that decides which document of a cluster is preferred.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeepRule {
    /// The longest text, in bytes.
    Longest,
    /// The shortest text, in bytes.
    Shortest,
    /// The first document in the input.
    First,
    /// The largest number in a field. Under this rule and those below, records without a usable value come last.
    Max(String),
    /// The smallest number in a field.
    Min(String),
    /// The latest date or time in a field.
    Newest(String),
    /// The text in a field that is last in byte order.
    Latest(String),
}

impl KeepRule {
    /// Returns the field that the rule reads.
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
            // A bare comma would begin the next rule.
            Some(field) => write!(f, "{name}:{}", with_escaped_commas(field)),
            None => f.write_str(name),
        }
    }
}

/// Returns a path of a field in which each comma has a backslash before it, and no backslash is alone.
fn with_escaped_commas(path: &str) -> String {
    let (mut escaped, mut chars) = (String::with_capacity(path.len()), path.chars());
    while let Some(c) = chars.next() {
        match c {
            // In a path, a backslash at the end stands for itself; here it would escape the comma before the next rule.
            '\\' => escaped.extend(['\\', chars.next().unwrap_or('\\')]),
            ',' => escaped.push_str("\\,"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The rules as users write them.
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

/// Rules that order the documents of a cluster by preference: the first rule decides, the next one breaks its ties, and so on. Remaining
/// ties go to the smaller id, so that the result never depends on the order of the input (except under [`KeepRule::First`], which asks
/// for that).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeepRules(Vec<KeepRule>);

impl KeepRules {
    /// Returns the rules, the most important first; there is at least one.
    pub fn rules(&self) -> &[KeepRule] {
        &self.0
    }

    /// Returns the rule that reads a field, if there is one.
    pub fn field_rule(&self) -> Option<&KeepRule> {
        self.0.iter().find(|rule| rule.field().is_some())
    }

    /// Returns the field to read for these rules, for [`InputOptions::order_field`](lookalike_corpus::InputOptions::order_field); `None` if no rule
    /// reads one.
    ///
    /// ```
    /// use lookalike_batch::KeepRules;
    /// use lookalike_corpus::InputOptions;
    ///
    /// let keep: KeepRules = "newest:date,longest".parse()?;
    /// let options = InputOptions::default().order_field(keep.order_field()?);
    /// assert_eq!(options.order_field, Some("newest:date".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OptionError`] for a rule whose field is not the path of one.
    pub fn order_field(&self) -> Result<Option<OrderField>, OptionError> {
        // Through its text, because both types have the same syntax.
        let field = self.field_rule().map(|rule| rule.to_string().parse());
        field.transpose()
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
        // Jobs read and keep the values of one field.
        let fields = rules.iter().filter(|rule| rule.field().is_some());
        if fields.count() > 1 {
            let fault = "reads two fields, and only one is allowed: keep the more important one, and add longest, shortest or first";
            return Err(ParseSettingError::malformed(text, fault));
        }
        Ok(Self(rules))
    }
}

/// Pairs that count, by the categories of their documents (Manku et al. 2007, section 6; Vassilvitskii 2007);
/// [`lookalike_corpus::InputOptions::category`] says how a category is read. Equal texts are treated like any other pair here.
/// All documents without a category form one category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PairScope {
    /// All pairs.
    #[default]
    Everything,
    /// Pairs within one category: each category is treated as if it were alone.
    Within,
    /// Pairs of different categories: documents of one category are never compared with each other.
    Across,
}

impl PairScope {
    /// Returns true if a pair counts whose documents are of the same category, or of different ones.
    pub fn allows(self, same_category: bool) -> bool {
        match self {
            Self::Everything => true,
            Self::Within => same_category,
            Self::Across => !same_category,
        }
    }

    /// Returns the value that is combined by exclusive or with the hash of a class.
    ///
    /// Across categories, the documents of a class are not copies of each other, so one old document would keep all of them: new documents
    /// get classes of their own. The salt leaves the upper half of the hash unchanged, because collections look up classes by it.
    pub(crate) fn class_salt(self, is_against: bool) -> u128 {
        match self {
            // Any fixed number does; this is `newdocum` in ASCII.
            Self::Across if !is_against => 0x6e65_7764_6f63_756d,
            _ => 0,
        }
    }
}

lookalike::words! {
    /// Candidates of [`Method::Henzinger`] for which the distance of the fingerprints counts.
    ///
    /// Henzinger found that super-shingles are right for pairs of different sites, but wrong for most pairs of one site, where pages share a
    /// template: a second test helps with those.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum DistanceFor: Serialize {
        /// All candidates.
        #[default]
        All = "all",
        /// Pairs of one site, that is of one host in the URLs, and pairs for which a site is unknown. The others are decided by
        /// super-shingles alone.
        Site = "site",
    }
}

impl DistanceFor {
    /// Returns true if the distance counts for documents of these sites.
    pub fn counts<S: PartialEq>(self, a: Option<S>, b: Option<S>) -> bool {
        // An unknown site may be the same one, so the stricter rule applies.
        self == Self::All || a.is_none() || b.is_none() || a == b
    }
}

setting_from_str!(DistanceFor, "choice");

lookalike::words! {
    /// Order of the records in `kept.jsonl` and `removed.jsonl`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum RecordOrder: Serialize {
        /// By id, in byte order: the same file for any order of the input.
        #[default]
        Id = "id",
        /// In the order of the input.
        Input = "input",
    }
}

setting_from_str!(RecordOrder, "order");

lookalike::words! {
    /// Verified pairs that `dedup` lists in `pairs.jsonl`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum PairList: Serialize {
        /// Each removed document with its survivor: the pairs that the result is based on.
        #[default]
        Deciding = "deciding",
        /// Every pair at or above the threshold: their number is quadratic in the size of a cluster.
        All = "all",
    }
}

setting_from_str!(PairList, "choice");

lookalike::words! {
    /// Rule for records that have the same id.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum RepeatedIds: Serialize {
        /// Rename the second to `ID#2`, the third to `ID#3` and so on, and count them.
        #[default]
        Number = "number",
        /// Stop with an error that names the id.
        Refuse = "refuse",
    }
}

setting_from_str!(RepeatedIds, "choice");

lookalike::settings! {
    /// Limits on the resources of a job, by default one thread and one gibibyte. They never change a result.
    #[derive(Clone, Debug, Serialize)]
    pub struct JobLimits {
        /// Worker threads; 0 counts as 1.
        threads: usize = 1,
        /// Bytes of resident memory for the whole process. Jobs that run at the same time in one process may together take the sum of their limits,
        /// and one may store its temporary tables in the folder of another.
        memory: u64 = 1 << 30,
    }
}

impl JobLimits {
    /// Returns the number of worker threads, at least 1: a job without workers would wait forever.
    pub(crate) fn workers(&self) -> usize {
        self.threads.max(1)
    }
}

lookalike::settings! {
    /// Settings that decide the result of a job.
    #[derive(Clone, Debug)]
    pub struct JobSettings {
        /// Steps from texts to features and sketches. Its HTML extraction and its fields must be those of the
        /// [`InputOptions`](lookalike_corpus::InputOptions).
        scheme: Scheme,
        /// Method by which candidates are proposed.
        method: Method = Method::AllPairs,
        /// Minimum resemblance of a near-duplicate, in (0, 1].
        threshold: f64 = 0.8,
        /// Maximum Hamming distance of a candidate, for [`Method::Simhash`] and [`Method::Henzinger`].
        distance: u32 = Method::AllPairs.default_distance(),
        /// Candidates of [`Method::Henzinger`] for which the distance counts.
        distance_for: DistanceFor,
        /// Minimum number of super-shingles, checksums or selected shingles that candidates share, above 0; `None` for
        /// [`Method::default_equal`].
        equal: Option<u32>,
        /// Maximum number of different texts with a selected shingle that still proposes candidates, for [`Method::ModP`] and [`Method::Winnow`];
        /// `None` for no maximum.
        stop_features: Option<u32>,
        /// The table of terms that the scheme names.
        terms: Option<Arc<Terms>>,
        /// Recall at the threshold that the bands of [`Method::MinHash`] must reach, in (0, 1).
        recall: f64 = 0.999,
        /// Pairs that count.
        scope: PairScope,
        /// Minimum length of the shorter text as a share of the longer one, in bytes (Manku et al. 2007, section 6), in (0, 1]; `None` for
        /// no such test.
        lengths: Option<f64>,
        /// Further tests, all of which a pair must pass.
        tests: Vec<PairTest>,
        /// Rules that choose the survivor of a cluster. Of files, the [`InputOptions`](lookalike_corpus::InputOptions) must read their
        /// [`KeepRules::order_field`].
        keep: KeepRules,
        /// Order of the records in the output.
        order: RecordOrder,
        /// Pairs that `dedup` lists.
        pairs: PairList,
        /// Rule for repeated ids.
        repeated_ids: RepeatedIds,
        /// Policy for records and files that cannot be read.
        losses: LossPolicy,
    }
}

impl JobSettings {
    /// Returns the default settings of a method, with a scheme that has the sketch it needs.
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

    /// Returns the minimum number of super-shingles, checksums or selected shingles that candidates share.
    pub fn min_equal(&self) -> u32 {
        self.equal.unwrap_or(self.method.default_equal())
    }

    /// Returns the number of bits of the fingerprints that are compared; 64 if the scheme has none.
    pub fn fingerprint_bits(&self) -> u32 {
        match self.scheme.sketch.fingerprint_bits() {
            // Sketches that are no fingerprints have 0 bits; 64 is the usual width.
            0 => 64,
            bits => bits,
        }
    }

    /// Returns true if equal texts of different categories or sites are distinguished, so that each pair can be judged by the categories
    /// or sites of its documents.
    pub fn by_category(&self) -> bool {
        self.scope != PairScope::Everything || self.distance_for == DistanceFor::Site
    }

    /// Refuses numbers out of range, settings that contradict each other, and a scheme without its table of terms.
    ///
    /// # Errors
    /// [`BatchError::Settings`], which says what to write instead.
    pub fn check(&self) -> Result<(), BatchError> {
        self.check_threshold()?;
        // At either end the number of bands would be zero or infinite.
        if !(self.recall > 0.0 && self.recall < 1.0) {
            return Err(BoundedSetting::Recall.error(self.recall).into());
        }
        if self.equal == Some(0) {
            return Err(BoundedSetting::Equal.error(0_u32).into());
        }
        self.check_sketch()?;
        self.check_tests()?;
        let most = self.fingerprint_bits() / 4;
        if self.method.has_fingerprints() && self.distance > most {
            return Err(SettingsError::DistanceTooLarge {
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
            // Negated as a whole, so that NaN is refused too.
            .filter(|share| !(*share > 0.0 && *share <= 1.0))
        {
            return Err(BoundedSetting::Lengths.error(share).into());
        }
        Ok(self.check_terms()?)
    }

    /// Returns true if a resemblance reaches the threshold. With [`Method::AllPairs`], texts without a common feature are never a pair.
    pub(crate) fn reaches(&self, resemblance: f64) -> bool {
        resemblance >= self.threshold && (resemblance > 0.0 || self.method != Method::AllPairs)
    }

    /// Returns true if every near-duplicate is verified by exact comparison of feature sets.
    pub(crate) fn verifies(&self) -> bool {
        self.threshold > 0.0 || !self.method.has_own_rule()
    }

    fn check_threshold(&self) -> Result<(), SettingsError> {
        let threshold = self.threshold;
        // A threshold of 0 leaves the decision to the method's own rule, or to further tests.
        let has_other_rule =
            self.method.has_own_rule() || self.method == Method::AllPairs && !self.tests.is_empty();
        if threshold > 0.0 && threshold <= 1.0 || threshold == 0.0 && has_other_rule {
            return Ok(());
        }
        Err(BoundedSetting::Threshold.error(threshold))
    }

    /// Refuses a scheme without the sketch that the method compares.
    fn check_sketch(&self) -> Result<(), SettingsError> {
        let (needed, sketch) = (self.method.default_sketch(), self.scheme.sketch);
        // Compare kinds only: the parameters are the user's choice.
        let is_kind =
            |kind: Sketch| std::mem::discriminant(&kind) == std::mem::discriminant(&sketch);
        let is_fit = match needed {
            // A method without a sketch ignores that of the scheme.
            Sketch::None => true,
            // Fingerprints of any width serve the method.
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
        let (equal, most) = (self.min_equal(), most.into());
        match self.equal {
            Some(_) if equal > most => Err(SettingsError::MoreThanAll {
                equal,
                most,
                sketch,
            }),
            _ => Ok(()),
        }
    }

    /// Refuses further tests that would do nothing, or whose data is missing.
    fn check_tests(&self) -> Result<(), SettingsError> {
        if self.method == Method::Exact && !self.tests.is_empty() {
            return Err(SettingConflict::TestsOfCopies.into());
        }
        self.tests.iter().try_for_each(PairTest::check)
    }

    /// Refuses [`DistanceFor::Site`] with other methods and with scopes.
    fn check_sites(&self) -> Result<(), SettingConflict> {
        match (self.method, self.scope) {
            (Method::Henzinger, PairScope::Everything) => Ok(()),
            (Method::Henzinger, _) => Err(SettingConflict::SiteBesideScope),
            _ => Err(SettingConflict::SiteWithoutHenzinger),
        }
    }

    /// Refuses a maximum for common features where features propose no candidates, or are needed for something else.
    fn check_stop_features(&self) -> Result<(), SettingsError> {
        match (self.stop_features, self.method) {
            (None, _) => Ok(()),
            (Some(_), Method::ModP | Method::Winnow) if self.by_category() => {
                Err(SettingConflict::StopFeaturesBesideScope.into())
            }
            // A pair has two texts, so a maximum below 2 would drop every candidate.
            (Some(most @ (0 | 1)), _) => Err(BoundedSetting::StopFeatures.error(most)),
            (Some(_), Method::ModP | Method::Winnow) => Ok(()),
            (Some(_), _) => Err(SettingConflict::StopFeaturesOfOtherMethods.into()),
        }
    }

    /// Refuses a scheme whose table of terms is missing or does not fit.
    fn check_terms(&self) -> Result<(), SettingsError> {
        let Self { scheme, terms, .. } = self;
        // Made only for its errors: impossible parameters of a sketch fail here, before anything is read.
        lookalike::Sketcher::new(scheme, terms.as_ref())?;
        let missing = |needs: String| Err(SettingsError::NoTerms { needs });
        match terms {
            Some(terms) if scheme.terms.is_some() => Ok(terms.ensure_fits(scheme)?),
            _ if scheme.shingle.needs_terms() => missing(format!("shingle={}", scheme.shingle)),
            _ if scheme.weight.needs_terms() => missing(format!("weight={}", scheme.weight)),
            _ => Ok(()),
        }
    }

    /// Returns all settings as one line; a resumed job must have the same.
    pub fn canonical(&self) -> String {
        // Limits are not part of the line, because they decide no result.
        let tests: Vec<String> = self.tests.iter().map(PairTest::to_string).collect();
        format!(
            "scheme=[{}] method={} threshold={} distance={} equal={} recall={} scope={:?} lengths={:?} keep={} order={:?} pairs={:?} repeated-ids={} strict={} distance-for={:?} stop-features={:?} and=[{}]",
            self.scheme,
            self.method,
            self.threshold,
            self.distance,
            // The number in effect: to state the default is the same job as to leave it out.
            self.min_equal(),
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
    fn a_backslash_in_the_name_of_a_field_hid_or_made_the_end_of_its_rule() {
        for (path, written, read) in [
            // Both paths name the field `a,b`.
            ("a\\,b", "max:a\\,b", "a,b"),
            // Both paths name the field `a\`.
            ("a\\", "max:a\\\\", "a\\\\"),
            // Both paths name the field `a\,b`.
            ("a\\\\,b", "max:a\\\\\\,b", "a\\\\,b"),
        ] {
            let rules = KeepRules::from(KeepRule::Max(path.to_owned()));
            assert_eq!(rules.to_string(), written);
            let before_another: KeepRules = format!("{rules},longest").parse().unwrap();
            let expected = [KeepRule::Max(read.to_owned()), KeepRule::Longest];
            assert_eq!(before_another.rules(), expected);
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
            let needs_none = matches!(method, Method::Exact | Method::AllPairs);
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
                JobSettings::of_method(Method::ModP).equal(Some(0)),
                "equal 0 is not",
            ),
            (
                JobSettings::of_method(Method::Winnow).equal(Some(0)),
                "equal 0 is not",
            ),
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
