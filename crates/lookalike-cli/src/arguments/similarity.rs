//! Arguments that decide which documents are similar: method, tests, scope.

use std::sync::Arc;

use clap::Args;
use lookalike::Terms;
use lookalike::scheme::{Scheme, Sketch, Weight};
use lookalike_batch::{DistanceFor, JobSettings, Method, PairScope, PairTest};
use lookalike_corpus::{Category, InputOptions};

use super::scheme::SchemeArguments;
use super::values::share;
use crate::console::{self, Console};
use crate::failure::Failure;

/// Method of finding candidates, and limits for near-duplicates.
#[derive(Args)]
#[command(next_help_heading = "Method")]
pub(crate) struct MethodArguments {
    /// Method that finds candidates: allpairs, minhash, simhash, exact, ...
    ///
    /// allpairs finds every pair; exact finds exact copies only. oph, b-bit, minhash, super-shingle, simhash, henzinger, mod-p,
    /// winnow, i-match and buckets may miss pairs; every pair that they propose is verified.
    #[arg(long, value_name = "METHOD", default_value = "allpairs")]
    pub(crate) method: Method,

    /// Minimum resemblance of near-duplicates, above 0 and at most 1
    ///
    /// Methods with --distance or --equal also accept 0: then every candidate counts, whatever its resemblance. So does allpairs with
    /// --and: then all texts with a common shingle are candidates, and the further test decides.
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.8",
        value_parser = share
    )]
    pub(crate) threshold: f64,

    /// simhash, henzinger: maximum Hamming distance of candidates [default: 3 and 5]
    ///
    /// From 0 to a quarter of the bits of a fingerprint.
    #[arg(long, value_name = "BITS")]
    distance: Option<u32>,

    /// henzinger: pairs to which --distance applies: all, or only those within a site (site), the host of the URL
    ///
    /// Pages of one site share a template, so their super-shingles agree more easily. With site, super-shingles alone decide about
    /// pairs across sites.
    #[arg(long, value_name = "WHICH", default_value = "all")]
    pub(crate) distance_for: DistanceFor,

    /// simhash: width of a fingerprint in bits
    #[arg(long, value_name = "BITS", default_value = "64", value_parser = ["32", "64", "128"])]
    bits: String,

    /// super-shingle, henzinger, buckets, mod-p, winnow, i-match: minimum number of equal hashes [default: 2 for the first three,
    /// else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(crate) equal: Option<u32>,

    /// mod-p: keep one shingle in N; winnow: shingles in a window; i-match: number of lexicons; buckets: their number [default: 16, 16, 6, 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) size: Option<u8>,

    /// simhash, henzinger: weights of features: set (each counts once), tf, log-tf, idf, tf-idf, log-tf-idf, tf-length-noun, or
    /// tf-length-noun:N, with λ = N instead of a λ that depends on the length of the text
    #[arg(long, value_name = "WEIGHT", default_value = "set")]
    pub(crate) weight: Weight,

    /// minhash, b-bit: number of hash functions; oph: number of bins, at most 4096
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) functions: u16,

    /// minhash, b-bit, oph: share of the pairs at the threshold that must be found
    ///
    /// For oph, this holds for texts with many features. Of texts with only a few, about one pair in --functions is missed in addition.
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.999",
        value_parser = share
    )]
    pub(crate) recall: f64,
}

/// Tests that a pair must pass in addition to the minimum resemblance.
#[derive(Args)]
#[command(next_help_heading = "Method")]
pub(crate) struct TestArguments {
    /// Further test that a pair must pass: a measure, the features it compares, and the minimum, as in coverage:stops:5:0.4
    ///
    /// Measures are resemblance, containment (shared features over the smaller set) and coverage (over the larger). May be
    /// repeated.
    #[arg(long = "and", value_name = "MEASURE:FEATURES:LEAST")]
    pub(crate) tests: Vec<PairTest>,
}

impl MethodArguments {
    /// Returns the sketch that the method needs.
    pub(crate) fn sketch(&self) -> Sketch {
        let functions = self.functions;
        match (self.method.default_sketch(), self.size) {
            // The method determines the kind of sketch, and the options its dimensions.
            (Sketch::Simhash, _) => match &*self.bits {
                "32" => Sketch::Simhash32,
                "128" => Sketch::Simhash128,
                _ => Sketch::Simhash,
            },
            (Sketch::MinHash { .. }, _) => Sketch::MinHash { functions },
            (Sketch::OnePermutation { .. }, _) => Sketch::OnePermutation { bins: functions },
            (Sketch::BBit { bits, .. }, _) => Sketch::BBit { functions, bits },
            (Sketch::ModP { .. }, Some(size)) => Sketch::ModP {
                modulus: size.into(),
            },
            (Sketch::Winnowing { .. }, Some(size)) => Sketch::Winnowing {
                window: size.into(),
            },
            (Sketch::IMatch { .. }, Some(lexicons)) => Sketch::IMatch { lexicons },
            (Sketch::Buckets { .. }, Some(buckets)) => Sketch::Buckets { buckets },
            // Without `--size`, or if it has no meaning, which `option_uses` has reported.
            (sketch, _) => sketch,
        }
    }

    /// Returns the settings of a job with this method, and defaults for everything else.
    pub(crate) fn settings(
        &self,
        scheme: Scheme,
        terms: Option<Arc<Terms>>,
        tests: &TestArguments,
    ) -> JobSettings {
        JobSettings::default()
            .scheme(scheme)
            .terms(terms)
            .equal(self.equal)
            .method(self.method)
            .threshold(self.threshold)
            .distance(self.distance())
            .distance_for(self.distance_for)
            .recall(self.recall)
            .tests(tests.tests.clone())
    }

    /// Returns the maximum Hamming distance of a candidate.
    pub(crate) fn distance(&self) -> u32 {
        self.distance.unwrap_or(self.method.default_distance())
    }

    /// Returns the category that the method needs of each record.
    pub(crate) fn category(&self) -> Option<Category> {
        // A record has only one category. The job refuses `--within` and `--across` in combination with this.
        (self.distance_for == DistanceFor::Site).then_some(Category::Site)
    }

    /// Refuses numbers without meaning.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        // At the two ends, the number of bands would be zero and infinite.
        if self.recall > 0.0 && self.recall < 1.0 {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "--recall {} must be above 0 and below 1; to find every pair, use --method allpairs",
            self.recall
        )))
    }
}

/// Which pairs count.
#[derive(Args)]
#[command(next_help_heading = "Method")]
pub(crate) struct ScopeArguments {
    /// Compare only documents with the same value in a field, or of the same site
    ///
    /// The site is the host of the URL. Equal texts in different categories are not a pair. Records without a value form a category
    /// of their own.
    #[arg(long, value_name = "FIELD|site", conflicts_with = "across")]
    within: Option<Category>,

    /// Compare only documents with different values in a field, or of different sites
    ///
    /// Documents of one category are never compared with each other, even if they are equal.
    #[arg(long, value_name = "FIELD|site")]
    across: Option<Category>,

    /// Second test: minimum length of the shorter text relative to the longer one, in bytes, above 0 and at most 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) lengths: Option<f64>,
}

impl ScopeArguments {
    pub(crate) fn scope(&self) -> PairScope {
        match (&self.within, &self.across) {
            // clap refuses both together.
            (Some(_), _) => PairScope::Within,
            (_, Some(_)) => PairScope::Across,
            _ => PairScope::Everything,
        }
    }

    /// Returns the category to read of each record: that of the scope, or else the one that the method needs.
    pub(crate) fn category(&self, method: &MethodArguments) -> Option<Category> {
        let scope = self.within.as_ref().or(self.across.as_ref()).cloned();
        scope.or(method.category())
    }
}

/// Options that decide which documents are similar, shared by all commands that compare documents.
#[derive(Args)]
pub(crate) struct SimilarityArguments {
    #[command(flatten)]
    pub(crate) method: MethodArguments,

    /// mod-p, winnow: propose no candidates for features found in more than N different texts [default: no limit]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(2..),
        help_heading = "Method",
        hide_short_help = true
    )]
    stop_features: Option<u32>,

    #[command(flatten)]
    tests: TestArguments,

    #[command(flatten)]
    pub(crate) scope: ScopeArguments,

    #[command(flatten)]
    pub(crate) scheme: SchemeArguments,
}

impl SimilarityArguments {
    /// Returns true if other parts of a record than its text are compared.
    pub(crate) fn reads_fields(&self) -> bool {
        !self.scheme.fields.is_none() || self.method.category().is_some()
    }

    /// Warns of records without a category, with their number.
    pub(crate) fn warn(&self, without: u64, console: &Console) {
        let meaning = match self.scope.scope() {
            // Then the category is only read for `--distance-for site`.
            PairScope::Everything => "--distance applies to all their pairs",
            _ => "such records form a category of their own",
        };
        if let (Some(category), 1..) = (self.scope.category(&self.method), without) {
            let verb = if without == 1 { "has" } else { "have" };
            let records = console::counted(without, "record");
            console.warn(&format!("{records} {verb} no {category}: {meaning}"));
        }
    }

    /// Extends the options for reading inputs with those for documents to compare.
    pub(crate) fn options(&self, input: InputOptions) -> InputOptions {
        input
            .category(self.scope.category(&self.method))
            .fields(self.scheme.fields)
    }

    /// Returns the settings of a job that reads with these options, and defaults for everything else.
    pub(crate) fn settings(&self, read: &InputOptions) -> Result<JobSettings, Failure> {
        let method = &self.method;
        let (scheme, terms) = self.scheme.scheme(method.weight, method.sketch(), read)?;
        Ok(method
            .settings(scheme, terms, &self.tests)
            .stop_features(self.stop_features)
            .scope(self.scope.scope())
            .lengths(self.scope.lengths))
    }
}
