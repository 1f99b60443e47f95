//! Presets: features and distance for collections of one kind, under one name.
//!
//! `docs/how-to/choosing.md` has the measurements behind them.

use clap::builder::OsStr;
use clap::{Arg, ValueEnum};
use lookalike::scheme::{Scheme, Shingle, Sketch};
use lookalike_batch::fingerprints::files::FingerprintSource;

use super::input::known_bits;
use crate::failure::Failure;

/// A kind of collections that others chose features and a distance for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// Pages of one topic, which share words and templates
    OneTopic,
}

/// Name, features, sketch and distance of [`Preset::OneTopic`], as options have them.
const NAME: &str = "one-topic";
const SHINGLE: &str = "words:3";
const SKETCH: &str = "simhash:128";
const DISTANCE_OPTION: &str = "12";
/// Bits of its fingerprints, and its distance.
const BITS: u32 = 128;
const DISTANCE: u32 = 12;

/// An option that has this value under the preset unless it is given.
fn preset_value(argument: Arg, value: &'static str) -> Arg {
    argument.default_value_if("preset", OsStr::from(NAME), value)
}

/// For `mut_arg`: `--shingle` beside `--preset`.
pub(crate) fn preset_shingle(argument: Arg) -> Arg {
    preset_value(argument, SHINGLE)
}

/// For `mut_arg`: `--sketch` beside `--preset`.
pub(crate) fn preset_sketch(argument: Arg) -> Arg {
    preset_value(argument, SKETCH)
}

/// For `mut_arg`: `--distance` or `--radius` beside `--preset`.
pub(crate) fn preset_distance(argument: Arg) -> Arg {
    preset_value(argument, DISTANCE_OPTION)
}

impl Preset {
    /// Largest distance of a pair.
    pub(crate) fn distance(self) -> u32 {
        match self {
            Self::OneTopic => DISTANCE,
        }
    }

    /// The scheme with the features and the sketch of the preset.
    pub(crate) fn scheme(self, scheme: Scheme) -> Scheme {
        let (shingle, sketch): (Option<Shingle>, Option<Sketch>) =
            (SHINGLE.parse().ok(), SKETCH.parse().ok());
        scheme
            .shingle(shingle.unwrap_or_default())
            .sketch(sketch.unwrap_or_default())
    }

    /// Refuses files and indexes of fingerprints of another width, as far as they tell it before they are read.
    pub(crate) fn ensure_fits<'s>(
        self,
        sources: impl IntoIterator<Item = &'s FingerprintSource>,
    ) -> Result<(), Failure> {
        for source in sources {
            let bits = known_bits(source)?;
            if let Some(bits) = bits.filter(|bits| *bits != BITS) {
                return Err(Failure::Failed(format!(
                    "{}: fingerprints of {bits} bits, and --preset {} is for {BITS}: make them with `lookalike fingerprint --preset {}`, or \
                     name a --distance instead",
                    source.name(),
                    NAME,
                    NAME
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preset_is_a_scheme_of_its_own() {
        let scheme = Preset::OneTopic.scheme(Scheme::default());
        assert_eq!(scheme.shingle, Shingle::words(3).unwrap());
        assert_eq!(scheme.sketch.fingerprint_bits(), BITS);
        let name = Preset::OneTopic.to_possible_value().unwrap();
        assert_eq!(name.get_name(), NAME);
        assert_eq!(DISTANCE_OPTION, DISTANCE.to_string());
    }
}
