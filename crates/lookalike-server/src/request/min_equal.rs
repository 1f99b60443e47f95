//! The rule for near-duplicates: a radius in bits of fingerprints, or a minimum number of equal super-shingles or minima.

use lookalike_store::SketchForm;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::problem::ProblemDetails;

/// Tolerance for shares such as 0.07 of 100, which is slightly above 7 in floating point.
const ROUNDING: f64 = 1e-9;

/// The minimum number of places that near-duplicates have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MinEqualOption {
    /// This number of places.
    Places(u64),
    /// This share of all places, rounded up.
    Share(f64),
}

impl MinEqualOption {
    /// Parses a number as in options and in `lookalike join --equal`.
    fn parse(text: &str) -> Option<Self> {
        // The point decides: `1` is one place, `1.0` is all of them.
        match text.contains('.') {
            true => text.parse().ok().map(Self::Share),
            false => text.parse().ok().map(Self::Places),
        }
    }

    /// Returns the minimum number of equal places for sketches of `places` places, or `None` if it is out of range.
    fn of(self, places: usize) -> Option<u64> {
        let least = match self {
            Self::Places(least) => least,
            Self::Share(share) if share > 0.0 && share <= 1.0 => {
                (share * places as f64 - ROUNDING).ceil().max(1.0) as u64
            }
            Self::Share(_) => return None,
        };
        (1..=places as u64).contains(&least).then_some(least)
    }
}

impl<'de> Deserialize<'de> for MinEqualOption {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MinEqualVisitor;
        impl serde::de::Visitor<'_> for MinEqualVisitor {
            type Value = MinEqualOption;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a whole number such as 2, or a share with a point such as 0.8")
            }

            fn visit_u64<E>(self, places: u64) -> Result<MinEqualOption, E> {
                Ok(MinEqualOption::Places(places))
            }

            fn visit_f64<E>(self, share: f64) -> Result<MinEqualOption, E> {
                Ok(MinEqualOption::Share(share))
            }

            // Options after the `?` are texts.
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<MinEqualOption, E> {
                let unexpected = serde::de::Unexpected::Str(text);
                MinEqualOption::parse(text).ok_or_else(|| E::invalid_value(unexpected, &self))
            }
        }
        deserializer.deserialize_any(MinEqualVisitor)
    }
}

impl JsonSchema for MinEqualOption {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MinEqual".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "exclusiveMinimum": 0})
    }
}

/// Returns the name of the places of sketches.
pub(crate) fn places_name(form: SketchForm) -> &'static str {
    match form {
        SketchForm::Fingerprint => "fingerprints",
        SketchForm::Bits(32) => "fingerprints of 32 bits",
        SketchForm::Bits(_) => "fingerprints of 128 bits",
        SketchForm::SuperShingles(_) => "super-shingles",
        SketchForm::Minima(_) => "minima",
    }
}

/// A radius as it is shown: the radius itself for fingerprints, the number of equal places for longer sketches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownRadius {
    pub(crate) radius: Option<u32>,
    pub(crate) equal: Option<u32>,
}

impl ShownRadius {
    pub(crate) fn of(form: SketchForm, radius: u32) -> Self {
        let places = form.places().map(|places| places as u32);
        Self {
            radius: places.is_none().then_some(radius),
            equal: places.map(|places| places.saturating_sub(radius)),
        }
    }
}

/// Returns the distance that a radius or a number of equal places means for sketches of a form; `None` if neither is given.
pub(crate) fn requested_distance(
    form: SketchForm,
    radius: Option<u32>,
    equal: Option<MinEqualOption>,
) -> Result<Option<u32>, ProblemDetails> {
    let Some(places) = form.places() else {
        if equal.is_some() {
            return Err(ProblemDetails::invalid(
                "`equal` counts super-shingles or minima, and the collection holds fingerprints",
                "use `radius`, the bits in which near-duplicates may differ",
            ));
        }
        return Ok(radius);
    };
    let name = places_name(form);
    if radius.is_some() {
        return Err(ProblemDetails::invalid(
            format!(
                "`radius` counts bits of fingerprints, and the collection holds {places} {name}"
            ),
            "use `equal`, how many of them near-duplicates have in common at least",
        ));
    }
    let Some(equal) = equal else {
        return Ok(None);
    };
    // With fewer equal places, the index would have no band to search by: see `SketchForm::largest_radius`.
    let fewest = places - form.largest_radius() as usize;
    let least = equal.of(places).filter(|&least| least >= fewest as u64);
    let least = least.ok_or_else(|| {
        ProblemDetails::invalid(
            format!("`equal` is out of range for {places} {name}"),
            format!("use a whole number from {fewest} to {places}, or such a share of them with a point, such as 0.8"),
        )
    })?;
    Ok(Some((places as u64 - least) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_shares_say_how_many_places_may_differ() {
        let of = |places, json: &str| {
            let equal = serde_json::from_str(json).expect("a number");
            requested_distance(SketchForm::Minima(places), None, Some(equal))
        };
        for (places, json, distance) in [
            (6, "2", 4),
            (6, "6", 0),
            (6, "\"2\"", 4),
            (128, "0.8", 25),
            (100, "0.07", 93),
            (100, "1.0", 0),
            (100, "\"0.8\"", 20),
        ] {
            assert_eq!(
                of(places, json).expect("it is allowed"),
                Some(distance),
                "{json}"
            );
        }
        for (places, json) in [
            (6, "7"),
            (6, "0"),
            (6, "0.0"),
            (6, "1.5"),
            (200, "71"),
            (200, "0.1"),
        ] {
            assert!(of(places, json).is_err(), "{json}");
        }
        for json in ["-1", "\"two\"", "\"\"", "\"-0x2\"", "[2]", "true"] {
            assert!(
                serde_json::from_str::<MinEqualOption>(json).is_err(),
                "{json}"
            );
        }
    }
}
