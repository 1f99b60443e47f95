//! Errors about settings that mean nothing or contradict each other, in terms of their fields. The command names the options that set them.

use lookalike::scheme::{Shingle, Sketch};
use lookalike::sketch::SketcherError;
use lookalike::terms::TermsMismatch;

use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::overlap::settings_error::OverlapSettingsError;

/// Settings under which no job can run.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A number outside its range.
    #[error("{setting} {value} is not {}", setting.range())]
    OutOfRange {
        /// The setting.
        setting: BoundedSetting,
        /// The number.
        value: f64,
    },
    /// A distance between fingerprints that have hardly anything in common.
    #[error(
        "distance {distance} is above {most}: fingerprints that differ in more than a quarter of their {bits} bits are hardly related"
    )]
    DistanceTooLarge {
        /// The distance.
        distance: u32,
        /// The largest distance allowed.
        most: u32,
        /// Bits of the fingerprints.
        bits: u32,
    },
    /// A minimum number of equal parts above the number of parts in a sketch.
    #[error("equal {equal} is above {most}: {sketch} has no more, so nothing would be found")]
    MoreThanAll {
        /// The number requested.
        equal: u32,
        /// Number of parts in a sketch.
        most: u32,
        /// The sketch.
        sketch: Sketch,
    },
    /// A scheme without the sketch that the method compares.
    #[error("the method {method} needs a scheme with a sketch such as {needed}, not {sketch}")]
    OtherSketch {
        /// Name of the method.
        method: &'static str,
        /// The sketch that it needs, with default parameters.
        needed: Sketch,
        /// The sketch of the scheme.
        sketch: Sketch,
    },
    /// Signatures that are too short for the recall.
    #[error(
        "{places} min-hash functions cannot find {recall} of the pairs at threshold {threshold}"
    )]
    TooFewFunctions {
        /// Number of places in a signature.
        places: usize,
        /// The recall requested.
        recall: f64,
        /// The threshold.
        threshold: f64,
    },
    /// A setting that has no effect, or no meaning, next to another.
    #[error(transparent)]
    Conflict(#[from] SettingConflict),
    /// Features or a weight that need a table of terms, without one.
    #[error("{needs} needs a table of terms")]
    NoTerms {
        /// The part of the scheme that needs it.
        needs: String,
    },
    /// A further test whose features need a table of terms.
    #[error(
        "the test {test} is of {shingle}, which need a table of terms, and further tests have none: use words:N, chars:N or stops:N"
    )]
    TestNeedsTerms {
        /// The test, as the user wrote it.
        test: String,
        /// Its features.
        shingle: Shingle,
    },
    /// A scheme for which no sketcher can be made.
    #[error(transparent)]
    Sketcher(#[from] SketcherError),
    /// A table of terms that does not fit the scheme.
    #[error(transparent)]
    Terms(#[from] TermsMismatch),
    /// Boilerplate to learn for each site, but no document with a site.
    #[error(
        "no document has a site, and boilerplate is learned for each: a site is the host of a URL in the field `url`, or of an id"
    )]
    NoSite,
    /// A table whose rows cannot be written as Parquet.
    #[error("{source_name}: its rows cannot be written as Parquet with their types: {reason}")]
    NotParquet {
        /// The table.
        source_name: String,
        /// The reason.
        reason: String,
    },
    /// Wrong settings of an overlap.
    #[error(transparent)]
    Overlap(#[from] OverlapSettingsError),
    /// Wrong settings of a job over fingerprints, or files that do not belong together.
    #[error(transparent)]
    Fingerprints(#[from] FingerprintSettingsError),
}

lookalike::words! {
    /// Settings that are numbers in a range.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BoundedSetting {
        /// [`JobSettings::threshold`](crate::JobSettings::threshold).
        Threshold = "threshold",
        /// [`JobSettings::lengths`](crate::JobSettings::lengths).
        Lengths = "lengths",
        /// [`JobSettings::recall`](crate::JobSettings::recall).
        Recall = "recall",
        /// [`JobSettings::equal`](crate::JobSettings::equal).
        Equal = "equal",
        /// [`JobSettings::stop_features`](crate::JobSettings::stop_features).
        StopFeatures = "stop_features",
        /// [`BoilerplateLearner::share`](crate::BoilerplateLearner::share).
        BoilerplateShare = "boilerplate share",
        /// [`OverlapSettings::min_shared`](crate::overlap::OverlapSettings::min_shared).
        MinShared = "min_shared",
        /// [`OverlapSettings::min_containment`](crate::overlap::OverlapSettings::min_containment).
        MinContainment = "min_containment",
        /// [`MirrorSettings::page_share`](crate::overlap::MirrorSettings::page_share).
        PageShare = "page_share",
        /// [`MirrorSettings::server_share`](crate::overlap::MirrorSettings::server_share).
        ServerShare = "server_share",
    }
}

impl BoundedSetting {
    /// Returns the range in words.
    fn range(self) -> &'static str {
        match self {
            Self::Threshold | Self::Lengths | Self::BoilerplateShare => "above 0 and at most 1",
            Self::Recall => "above 0 and below 1",
            Self::StopFeatures => "at least 2",
            Self::Equal | Self::MinShared => "at least 1",
            Self::MinContainment => "a share from 0 to 1",
            Self::PageShare | Self::ServerShare => "a share from 0.5 to 1",
        }
    }

    /// Returns the error for a value of this setting outside its range.
    pub(crate) fn error(self, value: impl Into<f64>) -> SettingsError {
        let value = value.into();
        SettingsError::OutOfRange {
            setting: self,
            value,
        }
    }
}

/// Two settings that do not work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingConflict {
    /// Further tests, but no near-duplicates to test.
    #[error("further tests apply to near-duplicates, and the method exact does not look for any")]
    TestsOfCopies,
    /// A distance for pairs of one site, but a method without super-shingles and a distance.
    #[error(
        "distance_for site applies only to the method henzinger: no other method has super-shingles and a distance"
    )]
    SiteWithoutHenzinger,
    /// A distance for pairs of one site, but a scope that leaves out either those or the others.
    #[error(
        "distance_for site distinguishes pairs within a site from others, and the scopes within and across leave out one kind"
    )]
    SiteBesideScope,
    /// Pairs within or across categories, but no document with a category.
    #[error("the scopes within and across compare categories, and no document has one")]
    ScopeWithoutCategory,
    /// A maximum for common features, but a method that does not propose candidates by features.
    #[error(
        "stop_features applies only to the methods mod-p and winnow: the others do not propose candidates by features"
    )]
    StopFeaturesOfOtherMethods,
    /// A maximum for common features, but a scope that needs them to find equal texts of many categories.
    #[error(
        "stop_features drops features of many texts, which the scopes within and across need to find equal texts of many categories"
    )]
    StopFeaturesBesideScope,
    /// A maximum for common features, but a collection beside the job.
    #[error("stop_features counts the documents of one job, and a collection has others")]
    StopFeaturesBesideCollection,
    /// Rules for survivors that read a field, but other reading options: [`KeepRules::order_field`](crate::KeepRules::order_field) returns what
    /// [`InputOptions::order_field`](lookalike_corpus::InputOptions::order_field) must be.
    #[error("the keep rules need a field that the input options do not read as their order field")]
    KeepFieldNotRead,
    /// A scheme and reading options with different ways to extract text from HTML.
    #[error("the scheme and the input options extract text from HTML in different ways")]
    OtherHtml,
    /// A scheme and reading options with different fields besides the text.
    #[error("the scheme and the input options name different fields besides the text")]
    OtherFields,
}
