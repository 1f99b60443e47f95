//! Settings that mean nothing, or contradict each other, in the words of their fields. The command knows the options that set them.

use std::fmt;

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
    HardlyRelated {
        /// The distance.
        distance: u32,
        /// The largest that is allowed.
        most: u32,
        /// Bits of the fingerprints.
        bits: u32,
    },
    /// More parts must be equal than a sketch has.
    #[error("equal {equal} is above {most}: {sketch} has no more, so nothing would be found")]
    MoreThanAll {
        /// The number that was asked for.
        equal: u32,
        /// Parts of a sketch.
        most: u32,
        /// The sketch.
        sketch: Sketch,
    },
    /// A scheme without the sketch that the method looks at.
    #[error("the method {method} needs a scheme with a sketch such as {needed}, not {sketch}")]
    OtherSketch {
        /// Name of the method.
        method: &'static str,
        /// The sketch that it needs, with usual parameters.
        needed: Sketch,
        /// The sketch of the scheme.
        sketch: Sketch,
    },
    /// Signatures too short for the recall.
    #[error(
        "{places} min-hash functions cannot find {recall} of the pairs at threshold {threshold}"
    )]
    TooFewFunctions {
        /// Places of a signature.
        places: usize,
        /// The recall that is asked for.
        recall: f64,
        /// The threshold.
        threshold: f64,
    },
    /// A setting that has nothing to do beside another.
    #[error(transparent)]
    Conflict(#[from] SettingConflict),
    /// Features or a weight that need a table of terms, and none was given.
    #[error("{needs} needs a table of terms")]
    NoTerms {
        /// Part of the scheme that needs it.
        needs: String,
    },
    /// A further test of features that need a table of terms.
    #[error(
        "the test {test} is of {shingle}, which need a table of terms, and further tests have none: use words:N, chars:N or stops:N"
    )]
    TestNeedsTerms {
        /// The test, as it is written.
        test: String,
        /// Its features.
        shingle: Shingle,
    },
    /// A scheme that has no sketcher.
    #[error(transparent)]
    Sketcher(#[from] SketcherError),
    /// A table of terms that does not fit the scheme.
    #[error(transparent)]
    Terms(#[from] TermsMismatch),
    /// Lines that recur on the pages of a site, and no document with a site.
    #[error(
        "no document has a site, and boilerplate is learned for each: a site is the host of a URL in the field `url`, or of an id"
    )]
    NoSite,
    /// Rows of a table that are no rows of Parquet.
    #[error("{source_name}: its rows cannot be written as Parquet with their types: {reason}")]
    NotParquet {
        /// The table.
        source_name: String,
        /// Reason.
        reason: String,
    },
    /// Settings of an overlap.
    #[error(transparent)]
    Overlap(#[from] OverlapSettingsError),
    /// Settings of a job over fingerprints, or files that do not go together.
    #[error(transparent)]
    Fingerprints(#[from] FingerprintSettingsError),
}

/// Settings that are numbers in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundedSetting {
    /// [`JobSettings::threshold`](crate::JobSettings::threshold).
    Threshold,
    /// [`JobSettings::lengths`](crate::JobSettings::lengths).
    Lengths,
    /// [`JobSettings::recall`](crate::JobSettings::recall).
    Recall,
    /// [`JobSettings::equal`](crate::JobSettings::equal).
    Equal,
    /// [`JobSettings::stop_features`](crate::JobSettings::stop_features).
    StopFeatures,
    /// [`BoilerplateLearner::share`](crate::BoilerplateLearner::share).
    BoilerplateShare,
    /// [`OverlapSettings::min_shared`](crate::overlap::OverlapSettings::min_shared).
    MinShared,
    /// [`OverlapSettings::min_containment`](crate::overlap::OverlapSettings::min_containment).
    MinContainment,
    /// [`MirrorSettings::page_share`](crate::overlap::MirrorSettings::page_share).
    PageShare,
    /// [`MirrorSettings::server_share`](crate::overlap::MirrorSettings::server_share).
    ServerShare,
}

impl BoundedSetting {
    /// The range in words.
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

    /// The error of this setting with a number outside its range.
    pub(crate) fn error(self, value: impl Into<f64>) -> SettingsError {
        let value = value.into();
        SettingsError::OutOfRange {
            setting: self,
            value,
        }
    }
}

impl fmt::Display for BoundedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Threshold => "threshold",
            Self::Lengths => "lengths",
            Self::Recall => "recall",
            Self::Equal => "equal",
            Self::StopFeatures => "stop_features",
            Self::BoilerplateShare => "boilerplate share",
            Self::MinShared => "min_shared",
            Self::MinContainment => "min_containment",
            Self::PageShare => "page_share",
            Self::ServerShare => "server_share",
        })
    }
}

/// Two settings of which one leaves nothing to do for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingConflict {
    /// Further tests, and no near-duplicates to test.
    #[error("tests are of near-duplicates, and the method copies does not look for any")]
    TestsOfCopies,
    /// A distance for pairs of one site, and a method without super-shingles and a distance.
    #[error(
        "distance_for site applies only to the method henzinger: no other method has super-shingles and a distance"
    )]
    SiteWithoutHenzinger,
    /// A distance for pairs of one site, and pairs of one kind only.
    #[error(
        "distance_for site distinguishes pairs within a site from others, and the scopes within and across leave out one kind"
    )]
    SiteBesideScope,
    /// Pairs within or across categories, and no document with a category.
    #[error("the scopes within and across compare categories, and no document has one")]
    ScopeWithoutCategory,
    /// A bound on features, and a method that proposes nothing by features.
    #[error(
        "stop_features applies only to the methods mod-p and winnow: the others do not propose candidates by features"
    )]
    StopFeaturesOfOtherMethods,
    /// A bound on features, and equal texts of many categories to find by them.
    #[error(
        "stop_features drops features of many texts, which the scopes within and across need to find equal texts of many categories"
    )]
    StopFeaturesBesideScope,
    /// A bound on features, and a collection beside the job.
    #[error("stop_features counts the documents of one job, and a collection has others")]
    StopFeaturesBesideCollection,
}
