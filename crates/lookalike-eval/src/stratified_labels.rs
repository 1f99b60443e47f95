//! Precision and recall from labels of pairs that were drawn by bands (Manku et al. 2007, section 4.1, figure 1).
//!
//! Bands give equally many pairs however many they have, so each is weighted by its pairs in the
//! collection. A label that nobody could give stays visible: it widens the figures to what they
//! would be if it were true, or false.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use crate::interval::{ShareEstimate, f1};
use crate::stratified_sample::PairStratum;

/// Labels of one band.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BandTags {
    /// The band.
    pub stratum: PairStratum,
    /// Pairs labelled true.
    pub trues: u64,
    /// Pairs labelled false.
    pub falses: u64,
    /// Pairs of which nobody could tell.
    pub unknown: u64,
}

/// The labels of all bands that have some, the most alike first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct StratifiedLabels {
    bands: Vec<BandTags>,
}

/// Labels that were not drawn together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "labels of two samples are mixed: band {number} is {first:?} with {first_pairs} pairs and \
     {second:?} with {second_pairs}; keep the labels of one sample in a file"
)]
pub struct MixedStrata {
    number: u32,
    first: String,
    first_pairs: u64,
    second: String,
    second_pairs: u64,
}

/// Precision and recall of a cut behind one band, estimated for the whole collection.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BandPoint {
    /// The last band that counts as found.
    pub band: String,
    /// Pairs of the collection that the cut finds.
    pub found: u64,
    /// True ones among the band's own labels.
    pub own: ShareEstimate,
    /// Share of the found pairs that are true.
    pub precision: ShareEstimate,
    /// The same if all unknown labels were false, and if they were true.
    pub precision_with_unknown: (f64, f64),
    /// Share of the true pairs *in all bands* that are found.
    pub recall: ShareEstimate,
    /// The harmonic mean of both.
    pub f1: f64,
}

/// A weighted sum of independent shares, with limits by the recovery of variances from those of
/// the parts (Zou and Donner, Statistics in Medicine 27, 2008).
#[derive(Clone, Copy, Default)]
struct WeightedSum {
    value: f64,
    below: f64,
    above: f64,
}

impl WeightedSum {
    fn add(&mut self, weight: f64, share: ShareEstimate) {
        self.value += weight * share.value;
        self.below += (weight * (share.value - share.low)).powi(2);
        self.above += (weight * (share.high - share.value)).powi(2);
    }

    fn low(self) -> f64 {
        (self.value - self.below.sqrt()).max(0.0)
    }

    fn high(self) -> f64 {
        self.value + self.above.sqrt()
    }
}

impl StratifiedLabels {
    /// Collects labels: the band of each, and `None` for unknown.
    ///
    /// # Errors
    /// [`MixedStrata`] when one band has two descriptions.
    pub fn new<'a>(
        labels: impl IntoIterator<Item = (&'a PairStratum, Option<bool>)>,
    ) -> Result<Self, MixedStrata> {
        let mut bands: BTreeMap<u32, BandTags> = BTreeMap::new();
        for (stratum, label) in labels {
            let tags = bands.entry(stratum.number).or_insert_with(|| BandTags {
                stratum: stratum.clone(),
                trues: 0,
                falses: 0,
                unknown: 0,
            });
            if tags.stratum != *stratum {
                return Err(MixedStrata {
                    number: stratum.number,
                    first: tags.stratum.name.clone(),
                    first_pairs: tags.stratum.pairs,
                    second: stratum.name.clone(),
                    second_pairs: stratum.pairs,
                });
            }
            match label {
                Some(true) => tags.trues += 1,
                Some(false) => tags.falses += 1,
                None => tags.unknown += 1,
            }
        }
        let bands = bands.into_values().collect();
        Ok(Self { bands })
    }

    /// The bands with labels.
    #[must_use]
    pub fn bands(&self) -> &[BandTags] {
        &self.bands
    }

    /// Tells whether there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bands.is_empty()
    }

    /// Bands of the sample without a single label: the curve says nothing of their pairs.
    #[must_use]
    pub fn untouched(&self) -> u64 {
        let of = self.bands.first().map_or(0, |tags| tags.stratum.of);
        u64::from(of).saturating_sub(self.bands.len() as u64)
    }

    /// Pairs that were drawn in the bands at hand and have no label yet.
    #[must_use]
    pub fn unlabelled(&self) -> u64 {
        let left = |tags: &BandTags| tags.stratum.drawn.saturating_sub(tags.all());
        self.bands.iter().map(left).sum()
    }

    /// A point for every band: what a cut behind it finds.
    #[must_use]
    pub fn curve(&self) -> Vec<BandPoint> {
        let (mut found, mut pairs, mut unsure) = (WeightedSum::default(), 0, (0.0, 0.0));
        let mut points = Vec::new();
        for (at, tags) in self.bands.iter().enumerate() {
            found.add(tags.weight(), tags.share());
            pairs += tags.stratum.pairs;
            let known = tags.share_with_unknown();
            unsure.0 += tags.weight() * known.0;
            unsure.1 += tags.weight() * known.1;
            // Anew for each cut: bands are a few dozen at most.
            let mut missed = WeightedSum::default();
            for later in &self.bands[at + 1..] {
                missed.add(later.weight(), later.share());
            }
            let all = pairs as f64;
            let precision = ShareEstimate {
                value: found.value / all,
                low: found.low() / all,
                // Limits that are added in quadrature know no end of a share.
                high: (found.high() / all).min(1.0),
            };
            let share = |found: f64, missed: f64| match found + missed > 0.0 {
                true => found / (found + missed),
                false => 0.0,
            };
            let recall = ShareEstimate {
                value: share(found.value, missed.value),
                // The least found with the most missed, and the reverse: wider than 95 %, never narrower.
                low: share(found.low(), missed.high()),
                high: share(found.high(), missed.low()),
            };
            points.push(BandPoint {
                band: tags.stratum.name.clone(),
                found: pairs,
                own: tags.share(),
                f1: f1(precision.value, recall.value),
                precision,
                precision_with_unknown: (unsure.0 / all, unsure.1 / all),
                recall,
            });
        }
        points
    }
}

impl BandTags {
    fn weight(&self) -> f64 {
        self.stratum.pairs as f64
    }

    /// Labels of the band, unknown ones included.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.trues + self.falses + self.unknown
    }

    /// Share of true ones among the known labels. A band whose every pair has a known label is
    /// known to the last pair.
    #[must_use]
    pub fn share(&self) -> ShareEstimate {
        let known = self.trues + self.falses;
        let estimate = ShareEstimate::of(self.trues, known);
        match known >= self.stratum.pairs {
            true => ShareEstimate {
                low: estimate.value,
                high: estimate.value,
                ..estimate
            },
            false => estimate,
        }
    }

    fn share_with_unknown(&self) -> (f64, f64) {
        let all = self.all().max(1) as f64;
        let (least, most) = (self.trues, self.trues + self.unknown);
        (least as f64 / all, most as f64 / all)
    }
}
