//! Computes the probability that a method finds a pair, from the pair's resemblance and the settings.

use lookalike::band::Banding;
use lookalike::scheme::Sketch;
use lookalike::sketch::binomial_at_most;

use crate::error::BatchError;
use crate::settings::{JobSettings, Method};
use crate::settings_error::SettingsError;

impl JobSettings {
    /// Returns the bands of the signatures. `None` for methods without bands.
    ///
    /// # Errors
    /// If no division of the signature into bands reaches the requested recall at the threshold.
    pub fn banding(&self) -> Result<Option<Banding>, BatchError> {
        let (threshold, recall) = (self.threshold, self.recall);
        let Some((places, agreement)) = self.places(threshold) else {
            return Ok(None);
        };
        Banding::for_threshold(places, agreement, recall)
            .map(Some)
            .ok_or_else(|| {
                let too_few = SettingsError::TooFewFunctions {
                    places,
                    recall,
                    threshold,
                };
                too_few.into()
            })
    }

    /// Returns the number of places of a banded signature, and the expected share of places in which texts of this resemblance agree.
    fn places(&self, resemblance: f64) -> Option<(usize, f64)> {
        match (self.method, self.scheme.sketch) {
            (Method::MinHash, Sketch::MinHash { functions }) => {
                Some((functions.into(), resemblance))
            }
            (Method::Oph, Sketch::OnePermutation { bins }) => Some((bins.into(), resemblance)),
            (Method::BBit, Sketch::BBit { functions, bits }) => {
                // Different minima still agree in their lowest bits by chance.
                let by_chance = 0.5_f64.powi(bits.into());
                Some((
                    functions.into(),
                    resemblance + (1.0 - resemblance) * by_chance,
                ))
            }
            _ => None,
        }
    }

    /// Returns the probability, over random hash functions, that the method proposes a pair of this resemblance. `None` if it depends on more than
    /// the resemblance. `allpairs` proposes exactly the pairs at or above the threshold.
    ///
    /// # Errors
    /// The same as for [`JobSettings::banding`].
    pub fn chance(&self, resemblance: f64) -> Result<Option<f64>, BatchError> {
        Ok(match (self.method, self.scheme.sketch) {
            (Method::AllPairs, _) => Some(f64::from(u8::from(self.reaches(resemblance)))),
            (Method::Exact, _) => Some(f64::from(u8::from(resemblance >= 1.0))),
            (Method::MinHash | Method::Oph | Method::BBit, _) => {
                let agreement = self.places(resemblance).map(|places| places.1);
                self.banding()?
                    .zip(agreement)
                    .map(|(banding, agreement)| banding.recall(agreement))
            }
            (Method::SuperShingle, Sketch::SuperShingle { groups, rows }) => {
                // A super-shingle agrees if all its minima do, each with a probability equal to the resemblance.
                let agreeing = resemblance.powi(i32::from(rows));
                Some(at_least(self.min_equal(), groups.into(), agreeing))
            }
            _ => None,
        })
    }

    /// Returns the share of the pairs exactly at the threshold that the method proposes. `None` if it cannot be computed.
    ///
    /// # Errors
    /// The same as for [`JobSettings::banding`].
    pub fn stated_recall(&self) -> Result<Option<f64>, BatchError> {
        match self.method {
            // All exact copies are found, and no other pairs are sought.
            Method::Exact => Ok(Some(1.0)),
            _ => self.chance(self.threshold),
        }
    }
}

/// Returns the probability that at least `least` of `all` agree if each agrees with probability `chance`.
pub(crate) fn at_least(least: u32, all: u32, chance: f64) -> f64 {
    match least.checked_sub(1) {
        Some(below) => 1.0 - binomial_at_most(below, all, chance),
        None => 1.0,
    }
}

/// Returns the probability that at least `least` of `buckets` buckets get one of the `shared` features and none of the `different` ones, each of which
/// goes to any bucket with the same probability. An empty bucket has no checksum, so it agrees with none.
pub(crate) fn at_least_buckets(least: u32, buckets: u32, shared: usize, different: usize) -> f64 {
    let buckets = buckets as usize;
    let share = |number: usize| number as f64 / buckets as f64;
    // The probability of each number of agreeing buckets: a shared feature may add one, and a different feature may then take one away.
    let mut agreeing = vec![0.0; buckets + 2];
    agreeing[0] = 1.0;
    for _ in 0..shared {
        for number in (0..=buckets).rev() {
            let added = match number {
                0 => 0.0,
                _ => agreeing[number - 1] * share(buckets + 1 - number),
            };
            agreeing[number] = agreeing[number] * share(number) + added;
        }
    }
    for _ in 0..different {
        for number in 0..=buckets {
            let taken = agreeing[number + 1] * share(number + 1);
            agreeing[number] = agreeing[number] * share(buckets - number) + taken;
        }
    }
    agreeing.iter().skip(least as usize).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn more_are_never_likelier(all in 1..65_u32, part in 0.0..1.0_f64, chance in 0.0..=1.0_f64) {
            let least = 1 + (f64::from(all) * part) as u32;
            prop_assert!(at_least(least, all, chance) <= at_least(least - 1, all, chance) + 1e-12);
        }

        #[test]
        fn chances_are_sums_over_all_outcomes(all in 1..11_u32, least in 0..11_u32, chance in 0.0..=1.0_f64) {
            let outcomes = 0..1_u32 << all;
            let weight = |outcome: u32| {
                let happened = outcome.count_ones() as i32;
                chance.powi(happened) * (1.0 - chance).powi(all as i32 - happened)
            };
            let expected: f64 = outcomes.filter(|outcome| outcome.count_ones() >= least).map(weight).sum();
            prop_assert!((at_least(least, all, chance) - expected).abs() < 1e-9);
        }
    }

    /// Tries every way to put the features into the buckets.
    fn buckets_by_trial(least: u32, buckets: u32, shared: u32, different: u32) -> f64 {
        let ways = buckets.pow(shared + different);
        let agrees = |way: &u32| {
            let places = (0..shared + different).map(|at| way / buckets.pow(at) % buckets);
            let places: Vec<u32> = places.collect();
            let (shared, different) = places.split_at(shared as usize);
            let own = |bucket: &u32| shared.contains(bucket) && !different.contains(bucket);
            (0..buckets).filter(own).count() >= least as usize
        };
        f64::from((0..ways).filter(agrees).count() as u32) / f64::from(ways)
    }

    #[test]
    fn buckets_without_features_counted_as_equal() {
        for (buckets, shared, different) in [(4, 3, 2), (4, 0, 1), (3, 5, 0), (2, 4, 4), (1, 1, 0)]
        {
            for least in 0..=buckets + 1 {
                let expected = buckets_by_trial(least, buckets, shared, different);
                let found = at_least_buckets(least, buckets, shared as usize, different as usize);
                let case = format!("{least} of {buckets} with {shared} and {different}");
                assert!(
                    (found - expected).abs() < 1e-12,
                    "{case}: {found} {expected}"
                );
            }
        }
        // Simulated: 40 shared features and 10 different ones in 64 buckets.
        assert!((at_least_buckets(30, 64, 40, 10) - 0.042).abs() < 0.003);
    }

    #[test]
    fn binomials_by_hand() {
        assert!((at_least(2, 6, 0.5) - 57.0 / 64.0).abs() < 1e-12);
        assert!((binomial_at_most(1, 6, 0.5) - 7.0 / 64.0).abs() < 1e-12);
        assert!(
            (at_least(0, 6, 0.3) - 1.0).abs() < 1e-12
                && (binomial_at_most(6, 6, 0.3) - 1.0).abs() < 1e-12
        );
        assert_eq!(
            (at_least(1, 6, 0.0), binomial_at_most(0, 64, 0.0)),
            (0.0, 1.0)
        );
        assert!(at_least(7, 6, 0.9) < 1e-12);
    }
}
