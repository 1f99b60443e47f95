//! A warning if a small radius is combined with features that overlap: most pages with a small change are then missed.
//!
//! A changed word changes each shingle that contains it, so longer shingles change more bits of a fingerprint.

use lookalike::scheme::{Scheme, Shingle, Sketch};
use lookalike::sketch::{one_changed_word, simhash_recall};

use crate::console;
use crate::known_schemes::shingle_of;

/// Default maximum number of bits in which the fingerprints of a pair differ.
pub(crate) const DEFAULT_DISTANCE: u32 = 3;
/// Number of words of the pages in the warning.
const WORDS: u32 = 100;
/// Share of found pages below which the warning is printed.
const MIN_FOUND_SHARE: f64 = 0.5;

/// The use of the radius.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RadiusUse {
    /// Fingerprints that are not compared yet: the radius is the default of later commands.
    Fingerprints,
    /// Fingerprints that were joined, or are indexed.
    Files,
    /// A collection of the service.
    Collection,
}

/// Features for which a radius is checked.
#[derive(Clone, Copy)]
pub(crate) struct CheckedFeatures {
    /// Number of words in each feature.
    width: u32,
    /// Bits of a fingerprint.
    bits: u32,
}

impl CheckedFeatures {
    /// Returns the features of a scheme. Returns `None` for other sketches, and for features that are not shingles of words of a single length,
    /// because there is no rule of thumb for them.
    pub(crate) fn of(scheme: &Scheme) -> Option<Self> {
        let width = match scheme.shingle {
            // The rule for short texts does not apply to the pages in the warning, which are longer.
            Shingle::WordsByLength { width, .. } => width.get() as u32,
            shingle => shingle.words_each()?,
        };
        let bits = scheme.sketch.fingerprint_bits();
        (bits > 0).then_some(Self { width, bits })
    }
}

/// Warns if fingerprints with these features would miss most pages with a small change.
pub(crate) fn warn(features: CheckedFeatures, radius: u32, of: RadiusUse) {
    if let Some(text) = warning(features, radius, of) {
        console::warning(&text);
    }
}

/// Works like `warn`, for files whose schemes are known by their ids.
pub(crate) fn warn_of_schemes<'s>(ids: impl IntoIterator<Item = &'s str>, radius: u32) {
    let width = |id: &str| shingle_of(id.parse().ok()?, Sketch::Simhash)?.words_each();
    if let Some(width) = ids.into_iter().find_map(width) {
        let features = CheckedFeatures { width, bits: 64 };
        warn(features, radius, RadiusUse::Files);
    }
}

fn warning(features: CheckedFeatures, radius: u32, of: RadiusUse) -> Option<String> {
    let CheckedFeatures { width, bits } = features;
    // A model, not a measurement: the share of features that one word changes, and the probability that more than the radius of bits change.
    let found = |width| {
        Some(simhash_recall(
            one_changed_word(WORDS, width)?,
            bits,
            radius,
        ))
    };
    let (ours, single) = (found(width)?, found(1)?);
    // There are no shorter features than single words to advise.
    if width < 2 || ours >= MIN_FOUND_SHARE {
        return None;
    }
    let percent = |share: f64| (100.0 * share).round();
    let subject = match of {
        RadiusUse::Fingerprints => format!(
            "within {radius} bits, the default of join, cluster and index, fingerprints of words:{width}"
        ),
        RadiusUse::Files => format!("within {radius} bits fingerprints of words:{width}"),
        RadiusUse::Collection => {
            format!("the collection's radius of {radius} bits and features of words:{width}")
        }
    };
    let remedy = match of {
        RadiusUse::Fingerprints => {
            "use a larger --distance there, make them with --shingle words:1, or compare texts with `lookalike dedup`"
        }
        RadiusUse::Files => {
            "use a larger --distance, make them with --shingle words:1, or compare texts with `lookalike dedup`"
        }
        RadiusUse::Collection => "create it with a larger --radius, or with --shingle words:1",
    };
    Some(format!(
        "{subject} find about {}% of {WORDS}-word pages with one word changed, single words {}%: {remedy}",
        percent(ours),
        percent(single)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_64(width: u32) -> CheckedFeatures {
        CheckedFeatures { width, bits: 64 }
    }

    #[test]
    fn wider_fingerprints_and_a_rule_for_short_texts_were_not_warned_of() {
        let scheme = Scheme::default().sketch(Sketch::Simhash128);
        let short = Shingle::words(5)
            .unwrap()
            .with_short("49:2".parse().unwrap());
        for scheme in [scheme, scheme.shingle(short.unwrap())] {
            let told = warning(
                CheckedFeatures::of(&scheme).unwrap(),
                3,
                RadiusUse::Fingerprints,
            );
            assert!(told.unwrap().contains("words:5"));
        }
    }

    #[test]
    fn only_a_radius_that_finds_less_than_half_is_warned_of() {
        let told = warning(of_64(5), 3, RadiusUse::Files).unwrap();
        assert!(
            told.contains("about 9% of 100-word pages") && told.contains("single words 67%"),
            "{told}"
        );
        for (width, radius) in [(1, 0), (1, 3), (5, 16), (60, 3)] {
            assert_eq!(
                warning(of_64(width), radius, RadiusUse::Files),
                None,
                "{width} {radius}"
            );
        }
    }
}
