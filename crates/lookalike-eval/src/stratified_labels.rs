//! Computes precision and recall from labels of pairs drawn by bands (Manku et al. 2007, section 4.1, figure 1).
//!
//! Each band gives equally many pairs to judge, however many it has, so its labels are weighted by its number of pairs in the collection. Unknown
//! labels stay visible: the precision is also given as if all of them were false, and as if all were true.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use crate::interval::{ShareEstimate, f1};
use crate::stratified_sample::PairStratum;

/// Labels of one band.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LabelledBand {
    /// The band.
    pub stratum: PairStratum,
    /// Pairs labelled true.
    pub trues: u64,
    /// Pairs labelled false.
    pub falses: u64,
    /// Pairs labelled unknown.
    pub unknown: u64,
}

/// The labels of all bands that have any, the most similar band first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct StratifiedLabels {
    bands: Vec<LabelledBand>,
}

/// Error: labels that were not drawn in one sample.
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

/// Precision and recall of a cut after one band, estimated for the whole collection.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BandPoint {
    /// The last band that counts as found.
    pub band: String,
    /// Pairs of the collection that the cut finds.
    pub found: u64,
    /// Share of true ones among the band's own labels.
    pub own: ShareEstimate,
    /// Share of the found pairs that are true.
    pub precision: ShareEstimate,
    /// Precision if all unknown labels were false, and if they were all true.
    pub precision_with_unknown: (f64, f64),
    /// Share of the true pairs *in all bands* that are found.
    pub recall: ShareEstimate,
    /// Harmonic mean of precision and recall.
    pub f1: f64,
}

/// Weighted sum of independent shares. Its limits are recovered from the variances of the parts (Zou and Donner, Statistics in Medicine 27, 2008).
#[derive(Clone, Copy, Default)]
struct WeightedSum {
    weight: f64,
    value: f64,
    below: f64,
    above: f64,
}

impl WeightedSum {
    /// Adds a band, unless all of its labels are unknown, which say nothing about its share.
    fn add(&mut self, band: &LabelledBand) {
        if band.known() == 0 {
            return;
        }
        let (weight, share) = (band.weight(), band.share());
        self.weight += weight;
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
    /// Collects labels, each with its band; `None` is unknown.
    ///
    /// # Errors
    /// [`MixedStrata`] if a band has two different descriptions.
    pub fn new<'a>(
        labels: impl IntoIterator<Item = (&'a PairStratum, Option<bool>)>,
    ) -> Result<Self, MixedStrata> {
        let mut bands: BTreeMap<u32, LabelledBand> = BTreeMap::new();
        for (stratum, label) in labels {
            let band = bands.entry(stratum.number).or_insert_with(|| LabelledBand {
                stratum: stratum.clone(),
                trues: 0,
                falses: 0,
                unknown: 0,
            });
            if band.stratum != *stratum {
                return Err(MixedStrata {
                    number: stratum.number,
                    first: band.stratum.name.clone(),
                    first_pairs: band.stratum.pairs,
                    second: stratum.name.clone(),
                    second_pairs: stratum.pairs,
                });
            }
            match label {
                Some(true) => band.trues += 1,
                Some(false) => band.falses += 1,
                None => band.unknown += 1,
            }
        }
        let bands = bands.into_values().collect();
        Ok(Self { bands })
    }

    /// Returns the bands with labels.
    #[must_use]
    pub fn bands(&self) -> &[LabelledBand] {
        &self.bands
    }

    /// Tells whether there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bands.is_empty()
    }

    /// Returns the number of bands of the sample without any label. The curve says nothing about their pairs.
    #[must_use]
    pub fn untouched(&self) -> u64 {
        let of = self.bands.first().map_or(0, |band| band.stratum.of);
        u64::from(of).saturating_sub(self.bands.len() as u64)
    }

    /// Returns the number of pairs drawn in the labelled bands that have no label yet.
    #[must_use]
    pub fn unlabelled(&self) -> u64 {
        let left = |band: &LabelledBand| band.stratum.drawn.saturating_sub(band.all());
        self.bands.iter().map(left).sum()
    }

    /// Returns a point for each band: the precision and recall of a cut after it. Bands of unknown labels alone count in neither.
    #[must_use]
    pub fn curve(&self) -> Vec<BandPoint> {
        let (mut found, mut pairs, mut unsure) = (WeightedSum::default(), 0, (0.0, 0.0));
        let mut points = Vec::new();
        for (at, band) in self.bands.iter().enumerate() {
            found.add(band);
            pairs += band.stratum.pairs;
            let known = band.share_with_unknown();
            unsure.0 += band.weight() * known.0;
            unsure.1 += band.weight() * known.1;
            // Computed anew for each cut, since there are a few dozen bands at most.
            let mut missed = WeightedSum::default();
            for later in &self.bands[at + 1..] {
                missed.add(later);
            }
            let all = pairs as f64;
            let share = |found: f64, missed: f64| match found + missed > 0.0 {
                true => found / (found + missed),
                false => 0.0,
            };
            let (precision, recall) = match found.weight > 0.0 {
                true => (
                    ShareEstimate {
                        value: found.value / found.weight,
                        low: found.low() / found.weight,
                        // Limits added in quadrature may exceed 1.
                        high: (found.high() / found.weight).min(1.0),
                    },
                    ShareEstimate {
                        value: share(found.value, missed.value),
                        // The fewest found with the most missed, and the reverse. This is wider than 95 %, never narrower.
                        low: share(found.low(), missed.high()),
                        high: share(found.high(), missed.low()),
                    },
                ),
                // Of unknown labels alone, both may be anything.
                false => (ShareEstimate::of(0, 0), ShareEstimate::of(0, 0)),
            };
            points.push(BandPoint {
                band: band.stratum.name.clone(),
                found: pairs,
                own: band.share(),
                f1: f1(precision.value, recall.value),
                precision,
                precision_with_unknown: (unsure.0 / all, unsure.1 / all),
                recall,
            });
        }
        points
    }
}

impl LabelledBand {
    fn weight(&self) -> f64 {
        self.stratum.pairs as f64
    }

    /// Returns the number of the band's labels, unknown ones included.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.known() + self.unknown
    }

    /// Returns the number of the band's labels that are true or false.
    #[must_use]
    pub fn known(&self) -> u64 {
        self.trues + self.falses
    }

    /// Returns the share of true ones among the known labels. If every pair of the band has a known label, the share is exact.
    #[must_use]
    pub fn share(&self) -> ShareEstimate {
        let estimate = ShareEstimate::of(self.trues, self.known());
        match self.known() >= self.stratum.pairs {
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
