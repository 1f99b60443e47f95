//! Further tests that a pair must pass to count, each on its own features.
//!
//! Measures on different features err on different pairs: pages of one template share runs of words, but not runs of
//! function words. A further test is verified like the first, on the exact sets of both documents.

use std::fmt;
use std::io;
use std::str::FromStr;

use lookalike::resemblance::{SetMeasure, intersection_size};
use lookalike::scheme::{Nouns, Shingle, Sketch, Weight};
use lookalike::{DocumentFields, FeatureExtractor, Scheme};

use crate::dedup::class_id::{ClassId, put};
use crate::setting_words::ParseSettingError;
use crate::settings_error::SettingsError;
use crate::spill::feature_sets::{SetPosition, SetStore};
use crate::spill::table_column::TableColumn;

/// A further test. For example, `coverage:stops:5:0.478` requires that the smaller set of runs of five function words covers at least
/// .478 of the larger one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairTest {
    /// The measure.
    pub measure: SetMeasure,
    /// The kind of features. The rest of the scheme is that of the job.
    pub shingle: Shingle,
    /// Minimum value that passes, above 0 and at most 1.
    pub least: f64,
}

impl PairTest {
    /// Returns the scheme of its features, for a job with this scheme.
    pub(crate) fn scheme(&self, job: &Scheme) -> Scheme {
        // Only the sets are compared, so nothing is needed that serves weights or sketches.
        job.shingle(self.shingle)
            .weight(Weight::Set)
            .sketch(Sketch::None)
            .nouns(Nouns::NONE)
            .terms(None)
    }

    /// Returns an extractor of its features.
    pub(crate) fn extractor(&self, job: &Scheme) -> FeatureExtractor {
        FeatureExtractor::new(&self.scheme(job))
    }

    /// Refuses features that need a table of terms.
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        if self.shingle.needs_terms() {
            return Err(SettingsError::TestNeedsTerms {
                test: self.to_string(),
                shingle: self.shingle,
            });
        }
        Ok(())
    }

    fn value(&self, a: &[u64], b: &[u64]) -> f64 {
        self.measure.of(intersection_size(a, b), a.len(), b.len())
    }
}

impl fmt::Display for PairTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.measure, self.shingle, self.least)
    }
}

impl FromStr for PairTest {
    type Err = ParseSettingError;

    fn from_str(text: &str) -> Result<Self, ParseSettingError> {
        // The features in the middle contain colons too.
        let parts = text.split_once(':').zip(text.rsplit_once(':'));
        let Some(((measure, rest), (_, least))) = parts else {
            let fault = "is not a test: write MEASURE:FEATURES:LEAST, such as coverage:stops:5:0.4";
            return Err(ParseSettingError::malformed(text, fault));
        };
        if rest.parse::<Shingle>().is_ok() {
            let fault = "lacks the minimum at its end: write MEASURE:FEATURES:LEAST, such as coverage:stops:5:0.4";
            return Err(ParseSettingError::malformed(text, fault));
        }
        let shingle = rest.rsplit_once(':').map_or("", |(shingle, _)| shingle);
        // A NaN fails both comparisons.
        let share = |least: &f64| *least > 0.0 && *least <= 1.0;
        Ok(Self {
            measure: measure.parse().map_err(ParseSettingError::part)?,
            shingle: shingle.parse().map_err(ParseSettingError::part)?,
            least: least.parse().ok().filter(share).ok_or_else(|| {
                let fault = format!(
                    "is not a share above 0 and at most 1: it is the minimum {measure} that passes"
                );
                ParseSettingError::malformed(least, fault)
            })?,
        })
    }
}

/// Result of a further test on two texts, for `explain`.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct TestOutcome {
    /// The test, as users write it.
    pub test: String,
    /// The value of the measure.
    pub value: f64,
    /// True if the value is at least the minimum.
    pub passes: bool,
}

impl TestOutcome {
    pub(crate) fn new(test: &PairTest, job: &Scheme, [a, b]: [(&str, &DocumentFields); 2]) -> Self {
        let set = |(text, fields): (&str, &DocumentFields)| {
            test.extractor(job).extract_with(text, fields).set.to_vec()
        };
        let value = test.value(&set(a), &set(b));
        Self {
            test: test.to_string(),
            value,
            passes: value >= test.least,
        }
    }
}

/// The feature sets for a further test, by class.
///
/// Memory: 12 bytes per class, and the sets up to a budget; see [`SetStore`].
pub(crate) struct TestSets {
    pub(crate) sets: SetStore,
    pub(crate) places: TableColumn<SetPosition>,
    pub(crate) sizes: TableColumn<u32>,
}

impl TestSets {
    pub(crate) fn new(budget: u64) -> Self {
        Self {
            sets: SetStore::new(budget),
            places: TableColumn::new(),
            sizes: TableColumn::new(),
        }
    }

    pub(crate) fn set(&mut self, class: ClassId, place: SetPosition, size: u32) {
        put(&mut self.places, class, place);
        put(&mut self.sizes, class, size);
    }

    /// Returns the place and size of the set of a class.
    pub(crate) fn set_of(&self, class: usize) -> (SetPosition, u32) {
        (self.places[class], self.sizes[class])
    }

    /// Returns the number of bytes of the tables, without unused capacity, as in `DocumentTable::bytes`.
    pub(crate) fn bytes(&self) -> u64 {
        (self.places.len() * 8 + self.sizes.len() * 4) as u64
    }
}

/// Buffers for two sets.
#[derive(Default)]
pub(crate) struct TestBuffers([Vec<u64>; 2]);

/// A further test with the sets of all classes.
#[derive(Clone, Copy)]
pub(crate) struct LoadedTest<'a> {
    pub(crate) test: PairTest,
    pub(crate) sets: &'a TestSets,
}

impl LoadedTest<'_> {
    /// Returns true if two classes pass the test.
    pub(crate) fn passes(&self, a: u32, b: u32, buffers: &mut TestBuffers) -> io::Result<bool> {
        let ((place_a, len_a), (place_b, len_b)) =
            (self.sets.set_of(a as usize), self.sets.set_of(b as usize));
        let (len_a, len_b) = (len_a as usize, len_b as usize);
        let PairTest { measure, least, .. } = self.test;
        // The sets cannot share more features than the smaller one has.
        if measure.of(len_a.min(len_b), len_a, len_b) < least {
            return Ok(false);
        }
        let [own, other] = &mut buffers.0;
        let sets = &self.sets.sets;
        let own = sets.get(a, place_a, len_a, own)?;
        let other = sets.get(b, place_b, len_b, other)?;
        Ok(self.test.value(own, other) >= least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_round_trip() {
        for text in [
            "coverage:stops:5:0.4778761061946903",
            "resemblance:words:3+5:1",
        ] {
            assert_eq!(text.parse::<PairTest>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn wrong_tests_say_what_to_write() {
        for (text, part) in [
            ("coverage", "MEASURE:FEATURES:LEAST"),
            ("coverage:0.4", "words:N or chars:N"),
            (
                "jaccard:words:2:0.4",
                "resemblance, containment or coverage",
            ),
            ("coverage:words:2:40", "above 0 and at most 1"),
            ("coverage:words:2", "lacks the minimum"),
        ] {
            let refused = text.parse::<PairTest>().unwrap_err().to_string();
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }
}
