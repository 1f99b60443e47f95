//! Presets: features, sketch and distance for collections of one kind, under one name.
//!
//! `bench/results/choosing.md` has the measurements behind them.

use crate::scheme::parse_error::option_from_str;
use crate::scheme::{Scheme, Shingle, Sketch};

crate::words! {
    /// A named choice of features, sketch and distance for collections of one kind.
    ///
    /// ```
    /// use lookalike::{Preset, Scheme};
    ///
    /// let preset: Preset = "one-topic".parse()?;
    /// let scheme = preset.scheme(Scheme::default());
    /// assert_eq!(scheme.shingle.to_string(), "words:3");
    /// assert_eq!(scheme.sketch.to_string(), "simhash:128");
    /// assert_eq!(preset.distance(), 12);
    /// # Ok::<(), lookalike::scheme::ParseOptionError>(())
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Preset {
        /// Pages of one topic, which share words and templates.
        OneTopic = "one-topic",
    }
}

impl Preset {
    /// Returns the text of the features, as an option takes it.
    #[must_use]
    pub const fn shingle_text(self) -> &'static str {
        match self {
            Self::OneTopic => "words:3",
        }
    }

    /// Returns the text of the sketch, which is a fingerprint.
    #[must_use]
    pub const fn sketch_text(self) -> &'static str {
        match self {
            Self::OneTopic => "simhash:128",
        }
    }

    /// Returns the text of the largest distance of a pair, in bits.
    #[must_use]
    pub const fn distance_text(self) -> &'static str {
        match self {
            Self::OneTopic => "12",
        }
    }

    /// Returns the number of bits of the fingerprints.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.scheme(Scheme::default()).sketch.fingerprint_bits()
    }

    /// Returns the largest distance of a pair, in bits.
    #[must_use]
    pub fn distance(self) -> u32 {
        // The texts are constants, and a test parses them.
        self.distance_text().parse().unwrap_or_default()
    }

    /// Returns `base` with the features and the sketch of the preset.
    #[must_use]
    pub fn scheme(self, base: Scheme) -> Scheme {
        let shingle: Shingle = self.shingle_text().parse().unwrap_or_default();
        let sketch: Sketch = self.sketch_text().parse().unwrap_or_default();
        base.shingle(shingle).sketch(sketch)
    }
}

option_from_str!(Preset, "preset", "one-topic");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_a_preset_are_read() {
        for preset in Preset::ALL {
            assert_eq!(preset.name().parse(), Ok(preset));
            let scheme = preset.scheme(Scheme::default());
            assert_eq!(scheme.shingle.to_string(), preset.shingle_text());
            assert_eq!(scheme.sketch.to_string(), preset.sketch_text());
            assert_eq!(preset.distance().to_string(), preset.distance_text());
            assert!(preset.bits() > 0, "{preset}");
        }
        let error = "news".parse::<Preset>().unwrap_err();
        assert!(error.to_string().contains("one-topic"), "{error}");
    }
}
