//! Compares a pair by each method.

use lookalike::resemblance::intersection_size;
use lookalike::scheme::{Scheme, Sketch};
use lookalike::sketch::{MinHash, Simhash, SketchValue, binomial_at_most};
use lookalike::{Features, Sketcher};
use serde::Serialize;

use super::MethodFinding;
use crate::error::BatchError;
use crate::explain::detection_probability::{at_least, at_least_buckets};
use crate::settings::{JobSettings, Method};
use crate::settings_error::SettingsError;

/// Comparison of two fingerprints bit by bit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FingerprintComparison {
    /// Number of bits.
    pub bits: u32,
    /// The first fingerprint in hexadecimal digits.
    pub a: String,
    /// The second fingerprint in hexadecimal digits.
    pub b: String,
    /// Number of bits that differ.
    pub distance: u32,
    /// Positions of the differing bits, counted from 0 at the most significant bit.
    pub differing: Vec<u32>,
}

/// Comparison of two signatures place by place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SignatureComparison {
    /// Number of places.
    pub places: usize,
    /// Number of places that agree.
    pub agreeing: usize,
    /// Number of bands. `None` if the settings do not divide the signature.
    pub bands: Option<usize>,
    /// Number of places in a band.
    pub rows: Option<usize>,
    /// Bands whose places all agree, counted from 0.
    pub agreeing_bands: Vec<usize>,
}

/// Comparison of super-shingles one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SuperShingleComparison {
    /// Number of minima in each super-shingle.
    pub rows: u8,
    /// The two hashes of each super-shingle in hexadecimal digits, and whether they are equal.
    pub groups: Vec<(String, String, bool)>,
    /// Number of super-shingles that agree.
    pub agreeing: usize,
}

/// Two documents to compare under some settings.
#[derive(Clone, Copy)]
pub(super) struct ComparedPair<'p> {
    pub(super) a: &'p Features<'p>,
    pub(super) b: &'p Features<'p>,
    pub(super) settings: &'p JobSettings,
}

impl ComparedPair<'_> {
    pub(super) fn fingerprints(self) -> Option<FingerprintComparison> {
        let Self { a, b, settings } = self;
        let bits = match settings.scheme.sketch.fingerprint_bits() {
            // The method uses no fingerprint, but the comparison is shown all the same, at the usual width.
            0 => 64,
            bits => bits,
        };
        let (a, b) = Simhash::wide(a, bits).zip(Simhash::wide(b, bits))?;
        let digits = bits as usize / 4;
        // Bits are counted from the most significant, as digits are written.
        let differs = |bit: &u32| (a.0 ^ b.0) >> (bits - 1 - bit) & 1 == 1;
        Some(FingerprintComparison {
            bits,
            a: format!("{:0digits$x}", a.0),
            b: format!("{:0digits$x}", b.0),
            distance: a.distance(b),
            differing: (0..bits).filter(differs).collect(),
        })
    }

    pub(super) fn places(self) -> Result<Option<SignatureComparison>, BatchError> {
        let settings = self.settings;
        let banding = settings.banding()?;
        let scheme = match settings.scheme.sketch {
            Sketch::MinHash { .. } | Sketch::OnePermutation { .. } | Sketch::BBit { .. } => {
                settings.scheme
            }
            _ => settings
                .scheme
                .sketch(Sketch::MinHash { functions: 128 })
                .terms(None),
        };
        let Some((SketchValue::Signature(a), SketchValue::Signature(b))) =
            self.sketches(&scheme)?
        else {
            return Ok(None);
        };
        let equal: Vec<bool> = a.iter().zip(&b).map(|(a, b)| a == b).collect();
        // Without bands none is taken below; the division only needs a size above 0.
        let rows = banding.map_or(1, |banding| banding.rows);
        let bands = equal
            .chunks_exact(rows)
            .take(banding.map_or(0, |banding| banding.bands));
        let agrees = |(band, rows): (usize, &[bool])| rows.iter().all(|same| *same).then_some(band);
        Ok(Some(SignatureComparison {
            places: equal.len(),
            agreeing: equal.iter().filter(|same| **same).count(),
            bands: banding.map(|banding| banding.bands),
            rows: banding.map(|banding| banding.rows),
            agreeing_bands: bands.enumerate().filter_map(agrees).collect(),
        }))
    }

    pub(super) fn shingles(self) -> Option<SuperShingleComparison> {
        let scheme = &self.settings.scheme;
        let (groups, rows) = match scheme.sketch {
            Sketch::SuperShingle { groups, rows } => (groups, rows),
            // The defaults of the method `super-shingle`.
            _ => (6, 14),
        };
        let minhash = MinHash::new(usize::from(groups) * usize::from(rows), scheme.seed);
        let of = |features: &Features<'_>| {
            let signature = minhash.signature(features.set)?;
            signature.super_shingles(groups.into(), rows.into()).ok()
        };
        let (a, b) = of(self.a).zip(of(self.b))?;
        let hex = |hash: u64| format!("{hash:016x}");
        let pairs = a.values().iter().zip(b.values());
        Some(SuperShingleComparison {
            rows,
            agreeing: a.agreeing(&b),
            groups: pairs.map(|(&a, &b)| (hex(a), hex(b), a == b)).collect(),
        })
    }

    fn sketches(self, scheme: &Scheme) -> Result<Option<(SketchValue, SketchValue)>, BatchError> {
        let terms = self.settings.terms.as_ref();
        let sketcher = Sketcher::new(scheme, terms).map_err(SettingsError::from)?;
        Ok(sketcher.sketch(self.a).zip(sketcher.sketch(self.b)))
    }

    /// Returns the number of keys that both sketches have.
    fn shared_keys(self) -> Result<u32, BatchError> {
        let banding = self.settings.banding()?;
        let Some((a, b)) = self.sketches(&self.settings.scheme)? else {
            return Ok(0);
        };
        // Count as jobs do: a key that occurs in several places of a sketch counts once.
        let keys = |sketch: SketchValue| {
            let mut keys = sketch.keys(banding.as_ref());
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        let (a, b) = (keys(a), keys(b));
        Ok(intersection_size(&a, &b) as u32)
    }

    /// Returns the method's finding about the pair. The caller sets `found`.
    pub(super) fn explain_method(
        self,
        resemblance: f64,
        [site_a, site_b]: [Option<&str>; 2],
    ) -> Result<MethodFinding, BatchError> {
        let settings = self.settings;
        let by_distance = settings.distance_for.counts(site_a, site_b);
        let keys = self.shared_keys()?;
        let distance = self.fingerprints().map(|both| (both.distance, both.bits));
        let within = distance.is_some_and(|(distance, _)| distance <= settings.distance);
        let least = settings.min_equal();
        let apart = || match distance {
            Some((distance, bits)) => format!(
                "{distance} of {bits} bits differ, {} may",
                settings.distance
            ),
            None => "one of them has no fingerprint".to_owned(),
        };
        let shared = |what: &str| format!("they share {keys} {what}, and {least} are needed");
        let (proposed, because) = match settings.method {
            // Equal texts are found before any method proposes a pair; these differ.
            Method::Exact => (false, "it compares whole texts".to_owned()),
            Method::AllPairs => (
                settings.reaches(resemblance),
                "it finds every pair at or above the threshold, and no other".to_owned(),
            ),
            Method::MinHash | Method::Oph | Method::BBit => (
                keys >= 1,
                format!("they agree in {keys} bands, and 1 is needed"),
            ),
            Method::Simhash => (within, apart()),
            Method::Henzinger if !by_distance => (
                keys >= least,
                format!(
                    "{}; their sites differ, so the {} do not count",
                    shared("super-shingles"),
                    apart()
                ),
            ),
            Method::Henzinger => (
                keys >= least && within,
                format!("{}; {}", shared("super-shingles"), apart()),
            ),
            Method::SuperShingle => (keys >= least, shared("super-shingles")),
            Method::ModP => (keys >= least, shared("features that are zero modulo p")),
            Method::Winnow => (keys >= least, shared("features that winnowing selects")),
            Method::IMatch => (keys >= least, shared("lexicon hashes")),
            Method::Buckets => (keys >= least, shared("bucket checksums")),
        };
        let (chance, chance_of) = self.chance(resemblance, by_distance)?;
        Ok(MethodFinding {
            found: false,
            proposed,
            because,
            chance,
            chance_of,
        })
    }

    /// Returns the probability over all seeds, and a description of how it was computed.
    fn chance(
        self,
        resemblance: f64,
        by_distance: bool,
    ) -> Result<(Option<f64>, String), BatchError> {
        let Self { a, b, settings } = self;
        if let Some(chance) = settings.chance(resemblance)? {
            return Ok((Some(chance), format!("at resemblance {resemblance:.4}")));
        }
        let apart = || {
            // A bit of a simhash differs with probability angle / pi (Charikar 2002). Treating bits as independent makes the distance binomial.
            let angle = a.cosine(b).acos() / std::f64::consts::PI;
            let bits = settings
                .scheme
                .sketch
                .fingerprint_bits()
                // Henzinger's combination has a fingerprint of 64 bits in addition to its sketch.
                .max(64 * u32::from(settings.method == Method::Henzinger));
            let chance = binomial_at_most(settings.distance, bits, angle);
            (
                chance,
                format!(
                    "at an angle of {angle:.4} pi between the weighted features, so {:.1} bits expected",
                    angle * f64::from(bits)
                ),
            )
        };
        Ok(match (settings.method, settings.scheme.sketch) {
            (Method::Simhash, _) => {
                let (chance, words) = apart();
                (Some(chance), words)
            }
            (Method::Henzinger, Sketch::SuperShingle { groups, rows }) => {
                // A super-shingle agrees if all its minima do, each with a probability equal to the resemblance; groups are independent.
                let agreeing = resemblance.powi(rows.into());
                let chance = at_least(settings.min_equal(), groups.into(), agreeing);
                match by_distance {
                    true => {
                        let (near, words) = apart();
                        let words = format!("at resemblance {resemblance:.4} and {words}");
                        // The two are taken as independent, although both depend on the same features.
                        (Some(near * chance), words)
                    }
                    false => (Some(chance), format!("at resemblance {resemblance:.4}")),
                }
            }
            (Method::ModP, Sketch::ModP { modulus }) => {
                let shared = intersection_size(a.set, b.set);
                // A shared feature is in both sketches if it is zero modulo p, which has the probability 1 / p.
                let chance = at_least(
                    settings.min_equal(),
                    shared as u32,
                    1.0 / f64::from(modulus),
                );
                (Some(chance), format!("with {shared} shared features"))
            }
            (Method::Buckets, Sketch::Buckets { buckets }) => {
                let shared = intersection_size(a.set, b.set);
                let different = a.set.len() + b.set.len() - 2 * shared;
                let chance =
                    at_least_buckets(settings.min_equal(), buckets.into(), shared, different);
                (
                    Some(chance),
                    format!("with {shared} shared features and {different} different ones"),
                )
            }
            _ => (
                None,
                "no formula: it depends on which features are shared".to_owned(),
            ),
        })
    }
}
