//! The scheme: everything that can change a sketch, with one canonical text and an id.
//!
//! A scheme is the first thing that is needed: extractors and sketches are made from it, and its id is stored with everything they produce. Sketches
//! of different schemes are never compared ([`Scheme::ensure_same`]). The exact meaning of each field is defined in [`crate::text`],
//! [`crate::feature`] and [`crate::sketch`]; the folder `vectors` of this package has published test values.

mod boilerplate;
mod extraction;
mod fields;
mod folding;
mod language;
mod mask;
pub(crate) mod option;
pub(crate) mod parse_error;
mod sketch;
mod terms_id;
mod text_form;
mod token_hash;
mod weight;

use thiserror::Error;

use parse_error::hexadecimal;

pub use boilerplate::{Boilerplate, BoilerplateScope};
pub use extraction::{Extraction, HtmlMode};
pub use fields::FieldWeights;
pub use folding::Folding;
pub use language::{Nouns, Stemming, StopWords};
pub use mask::Mask;
pub use option::{Case, Normalization, Segmentation, Shingle, ShortTexts, Width, Widths};
pub use parse_error::ParseOptionError;
pub use sketch::Sketch;
pub use terms_id::TermsId;
pub use token_hash::TokenHash;
pub use weight::{Lambda, Weight};

/// The major version of the Unicode tables in this build. It is part of every scheme, because a new version can move a word boundary and so change a
/// fingerprint.
pub const UNICODE_MAJOR: u8 = char::UNICODE_VERSION.0;

crate::settings! {
    /// Everything that a sketch depends on besides the document's bytes.
    ///
    /// The text form has every field, in the order in which the fields act:
    ///
    /// ```
    /// use lookalike::Scheme;
    /// let text = "lookalike/1 html=main/1 boilerplate=kept mask=none normalize=nfc fold=none case=lower \
    ///             segment=unicode stop=none stem=none shingle=words:5 hash=xxh3-64 seed=0 weight=set \
    ///             nouns=none fields=none terms=none sketch=none unicode=17";
    /// assert_eq!(Scheme::default().to_string(), text);
    /// assert_eq!(text.parse(), Ok(Scheme::default()));
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Scheme {
        /// The part of an HTML page's text that is compared.
        html: Extraction,
        /// The treatment of lines that recur on many pages.
        boilerplate: Boilerplate,
        /// Numbers and dates that are replaced before words are cut.
        mask: Mask,
        /// The normalisation form.
        normalization: Normalization,
        /// Variants of characters that are treated as the same.
        folding: Folding,
        /// The treatment of upper and lower case.
        case: Case,
        /// The definition of a word.
        segmentation: Segmentation,
        /// Words that are left out.
        stop: StopWords,
        /// The reduction of words to their stems.
        stem: Stemming,
        /// The words or characters that make a feature.
        shingle: Shingle,
        /// The hash of a word.
        hash: TokenHash,
        /// Seed of the token hash and of the min-hash functions.
        seed: u64,
        /// Weight of a feature in a simhash.
        weight: Weight,
        /// Additional weight of nouns.
        nouns: Nouns,
        /// Fields of a record, besides the text, that give features.
        fields: FieldWeights,
        /// The table of terms from which weights or lexicons come.
        terms: Option<TermsId>,
        /// The sketch that is computed from the features.
        sketch: Sketch,
    }
}

/// Id of a scheme: XXH3-64 (seed 0) of its canonical text, short enough to store with data.
///
/// ```
/// use lookalike::{Scheme, SchemeId, Sketch};
///
/// let stored = Scheme::default().sketch(Sketch::Simhash);
/// let other = stored.shingle("chars:9".parse()?);
/// assert_ne!(stored.id(), other.id());
/// assert_eq!(stored.id().to_string().parse(), Ok(stored.id()));
/// assert!("+23456789abcdef0".parse::<SchemeId>().is_err());
/// let refused = stored.ensure_same(&other).unwrap_err();
/// assert_eq!(refused.differences(), "shingle (words:5 and chars:9)");
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemeId(pub u64);

hexadecimal!(SchemeId(u64), 16, "scheme id");

/// Error for data of two different schemes that were to be compared.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "different schemes are never compared; they differ in {}; make both sides with the same scheme",
    self.differences()
)]
pub struct SchemeMismatch {
    /// The scheme of one side.
    pub left: Box<Scheme>,
    /// The scheme of the other side.
    pub right: Box<Scheme>,
}

impl SchemeMismatch {
    /// Lists the fields that differ, such as `shingle (words:5 and chars:9)`.
    #[must_use]
    pub fn differences(&self) -> String {
        let (left, right) = (self.left.to_string(), self.right.to_string());
        // Every scheme writes all fields in the same order. No value contains a space, because options that take names refuse spaces.
        let fields = left.split(' ').zip(right.split(' '));
        let differing = fields.filter_map(|(left, right)| {
            let ((name, left), (_, right)) = (left.split_once('=')?, right.split_once('=')?);
            (left != right).then(|| format!("{name} ({left} and {right})"))
        });
        differing.collect::<Vec<_>>().join(", ")
    }
}

/// Error for a text that is not a scheme of this build.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseSchemeError {
    /// The text does not begin with the version that this build knows.
    #[error(
        "{found:?} is not a scheme version of this build: expected \"{}\"",
        text_form::VERSION
    )]
    Version {
        /// The first word of the text.
        found: String,
    },
    /// A field is missing or out of order.
    #[error("scheme field {expected:?} expected, found {found:?}: fields have a fixed order")]
    Field {
        /// The field that was expected here.
        expected: &'static str,
        /// The text found in its place; empty at the end of the text.
        found: String,
    },
    /// A field has an invalid value.
    #[error(transparent)]
    Value(#[from] ParseOptionError),
    /// A value is written in a short form, which a scheme does not accept.
    #[error(
        "{found:?} is not the form used in a scheme: write {expected:?}, which also names the data"
    )]
    Short {
        /// The text found.
        found: String,
        /// The same value in the form that a scheme uses.
        expected: String,
    },
    /// The token hash has a secret key, and no key or a different one was given.
    #[error("the token hash {found:?} has a secret key: give the key with this id")]
    Key {
        /// The hash with the id of its key.
        found: String,
    },
    /// The scheme was made with the tables of another Unicode version.
    #[error(
        "the scheme was made with Unicode {found}, this build has Unicode {UNICODE_MAJOR}: \
         make the sketches again, or use a build with Unicode {found}"
    )]
    Unicode {
        /// The version found.
        found: String,
    },
    /// Text follows the last field.
    #[error("{found:?} after the last field of the scheme")]
    Trailing {
        /// The first surplus word.
        found: String,
    },
}

impl Scheme {
    /// Returns true if the features, weights or sketch need a table of terms.
    #[must_use]
    pub const fn needs_terms(&self) -> bool {
        self.shingle.needs_terms() || self.weight.needs_terms() || self.sketch.needs_terms()
    }

    /// Returns the scheme whose features a table of terms for this scheme counts: the same features or, for phrases, the single words and the pairs
    /// of adjacent words.
    #[must_use]
    pub fn counted(&self) -> Self {
        const ONE: Width = Width::new(1).expect("1 lies between 1 and 64");
        const TWO: Width = Width::new(2).expect("2 lies between 1 and 64");
        let own = Self {
            fields: FieldWeights::default(),
            ..self.features_only()
        };
        match (self.shingle, Widths::new(&[ONE, TWO])) {
            // Phrases are found from the counts of two words and of their pair.
            (Shingle::Phrases(_), Some(sizes)) => Self {
                shingle: Shingle::WordSizes(sizes),
                ..own
            },
            _ => own,
        }
    }

    /// Returns the scheme of the same features, unweighted and without a sketch.
    #[must_use]
    pub fn features_only(&self) -> Self {
        Self {
            weight: Weight::Set,
            sketch: Sketch::None,
            nouns: Nouns::NONE,
            terms: None,
            ..*self
        }
    }

    /// Returns the part of the canonical text that defines the words and characters of a text.
    #[must_use]
    pub fn token_rules(&self) -> String {
        // Extraction and boilerplate act before there is a text, and shingles are made of its words.
        const RULES: [&str; 8] = [
            "mask",
            "normalize",
            "fold",
            "case",
            "segment",
            "stop",
            "stem",
            "unicode",
        ];
        let text = self.to_string();
        let fields = text.split(' ').filter(|field| {
            let name = field.split_once('=').map(|(name, _)| name);
            name.is_some_and(|name| RULES.contains(&name))
        });
        fields.collect::<Vec<_>>().join(" ")
    }

    /// Returns the bytes of dictionaries that are held in memory, once for all threads, while features are extracted under this scheme; 0 for most
    /// schemes.
    #[must_use]
    pub fn dictionary_bytes(&self) -> u64 {
        match self.segmentation {
            #[cfg(feature = "languages")]
            Segmentation::Languages => crate::language::dictionary::CHINESE_BYTES,
            // Chinese nouns are tagged with the same dictionary.
            #[cfg(feature = "languages")]
            _ if self.nouns.are_tagged() => crate::language::dictionary::CHINESE_BYTES,
            _ => 0,
        }
    }

    /// Returns the id: XXH3-64 of the canonical text.
    #[must_use]
    pub fn id(&self) -> SchemeId {
        SchemeId(crate::hash::xxh3_64(self.to_string().as_bytes(), 0))
    }

    /// Checks that `other` is the same scheme.
    ///
    /// # Errors
    /// Returns [`SchemeMismatch`], which names the fields that differ, if it is not.
    pub fn ensure_same(&self, other: &Self) -> Result<(), SchemeMismatch> {
        if self == other {
            Ok(())
        } else {
            Err(SchemeMismatch {
                left: Box::new(*self),
                right: Box::new(*other),
            })
        }
    }
}
