//! The scheme: everything that can change a sketch, with one canonical text and an id.
//!
//! A scheme goes before everything else in the way of the data: extractors and sketches are made
//! from it, and its id is stored with whatever they produce. Sketches of different schemes are
//! never compared ([`Scheme::ensure_same`]). What the text means to the last bit stands in
//! [`crate::text`], [`crate::feature`] and [`crate::sketch`]; published values for it in
//! `docs/vectors`.

mod boilerplate;
mod extraction;
mod fields;
mod folding;
mod language;
mod mask;
pub(crate) mod option;
mod parse_error;
mod sketch;
mod terms_id;
mod text_form;
mod token_hash;
mod weight;

use std::fmt;

use thiserror::Error;

pub use boilerplate::{Boilerplate, BoilerplateScope};
pub use extraction::{Extraction, HtmlMode};
pub use fields::FieldWeights;
pub use folding::Folding;
pub use language::{Nouns, Stemming, StopWords};
pub use mask::Mask;
pub use option::{Case, Normalization, Segmentation, Shingle, ShortTexts, Width, Widths};
pub use parse_error::ParseOptionError;
pub use sketch::Sketch;
pub use terms_id::{ParseTermsIdError, TermsId};
pub use token_hash::TokenHash;
pub use weight::{Lambda, Weight};

/// The major version of the Unicode tables in this build; part of every scheme, since a new
/// version can move a word boundary and with it a fingerprint.
pub const UNICODE_MAJOR: u8 = char::UNICODE_VERSION.0;

/// Everything that a sketch depends on besides the document's bytes.
///
/// Its text form has every field, in the order in which they act:
///
/// ```
/// use lookalike::Scheme;
/// let text = "lookalike/1 html=main/1 boilerplate=kept mask=none normalize=nfc fold=none case=lower \
///             segment=unicode stop=none stem=none shingle=words:5 hash=xxh3-64 seed=0 weight=set \
///             nouns=none fields=none terms=none sketch=none unicode=17";
/// assert_eq!(Scheme::default().to_string(), text);
/// assert_eq!(text.parse(), Ok(Scheme::default()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Scheme {
    /// The text of an HTML page that counts.
    pub html: Extraction,
    /// Lines that recur on many pages, kept or removed.
    pub boilerplate: Boilerplate,
    /// Numbers and dates that are replaced before words are cut.
    pub mask: Mask,
    /// The normalisation form.
    pub normalization: Normalization,
    /// Variants of characters that count as one.
    pub folding: Folding,
    /// The treatment of upper and lower case.
    pub case: Case,
    /// The definition of a word.
    pub segmentation: Segmentation,
    /// Words that are left out.
    pub stop: StopWords,
    /// The reduction of words to their stems.
    pub stem: Stemming,
    /// The words or characters that make a feature.
    pub shingle: Shingle,
    /// The hash of a word.
    pub hash: TokenHash,
    /// Seed of the token hash and of the min-hash functions.
    pub seed: u64,
    /// Number of times that a feature counts in a simhash.
    pub weight: Weight,
    /// Additional weight of nouns.
    pub nouns: Nouns,
    /// Record fields besides the text that give features.
    pub fields: FieldWeights,
    /// The table of terms that weights or lexicons come from.
    pub terms: Option<TermsId>,
    /// The sketch that is made of the features.
    pub sketch: Sketch,
}

crate::setters! {
    Scheme {
        html: Extraction,
        boilerplate: Boilerplate,
        mask: Mask,
        normalization: Normalization,
        folding: Folding,
        case: Case,
        segmentation: Segmentation,
        stop: StopWords,
        stem: Stemming,
        shingle: Shingle,
        hash: TokenHash,
        seed: u64,
        weight: Weight,
        nouns: Nouns,
        fields: FieldWeights,
        terms: Option<TermsId>,
        sketch: Sketch,
    }
}

/// XXH3-64 (seed 0) of a scheme's canonical text: a short name for it to store with data.
///
/// ```
/// use lookalike::{Scheme, Sketch};
///
/// let stored = Scheme::default().sketch(Sketch::Simhash);
/// let other = stored.shingle("chars:9".parse()?);
/// assert_ne!(stored.id(), other.id());
/// let refused = stored.ensure_same(&other).unwrap_err();
/// assert_eq!(refused.differences(), "shingle (words:5 and chars:9)");
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemeId(pub u64);

impl fmt::Display for SchemeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Two schemes that were to be compared and differ.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "different schemes are never compared; they differ in {}; make both sides with the same scheme",
    self.differences()
)]
pub struct SchemeMismatch {
    /// The scheme of the one side.
    pub left: Box<Scheme>,
    /// The scheme of the other side.
    pub right: Box<Scheme>,
}

impl SchemeMismatch {
    /// The fields that differ, such as `shingle (words:5 and chars:9)`.
    #[must_use]
    pub fn differences(&self) -> String {
        let (left, right) = (self.left.to_string(), self.right.to_string());
        // Every scheme writes all fields in one order.
        // No value has a space in it: options that take names refuse them.
        let fields = left.split(' ').zip(right.split(' '));
        let differing = fields.filter_map(|(left, right)| {
            let ((name, left), (_, right)) = (left.split_once('=')?, right.split_once('=')?);
            (left != right).then(|| format!("{name} ({left} and {right})"))
        });
        differing.collect::<Vec<_>>().join(", ")
    }
}

/// Reason why a text is no scheme of this build.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseSchemeError {
    /// The text does not begin with the version this build knows.
    #[error(
        "{found:?} is not a scheme version of this build: expected \"{}\"",
        text_form::VERSION
    )]
    Version {
        /// The first word of the text.
        found: String,
    },
    /// A field is missing or stands elsewhere.
    #[error("scheme field {expected:?} expected, found {found:?}: fields have a fixed order")]
    Field {
        /// The field that belongs here.
        expected: &'static str,
        /// Text that stood in its place; empty at the end of the text.
        found: String,
    },
    /// A field has a value that means nothing.
    #[error(transparent)]
    Value(#[from] ParseOptionError),
    /// A value in a form that is not that of a scheme.
    #[error(
        "{found:?} is not the form used in a scheme: write {expected:?}, which also names the data"
    )]
    Short {
        /// Text that stood there.
        found: String,
        /// The same as a scheme says it.
        expected: String,
    },
    /// The token hash is none of this build.
    #[error(
        "token hash {found:?} is unknown to this build: expected xxh3-64, lookup3 or siphash-2-4:ID"
    )]
    Hash {
        /// The name that stood there.
        found: String,
    },
    /// The token hash has a secret key, and it was not given, or another one.
    #[error("the token hash {found:?} has a secret key: give the key with this id")]
    Key {
        /// The hash with the id of its key.
        found: String,
    },
    /// The terms are no id of a table.
    #[error("{found:?} is not the id of a table of terms: use none or 16 hexadecimal digits")]
    Terms {
        /// Text that stood there.
        found: String,
    },
    /// The seed is no number from 0 to 2^64 - 1.
    #[error("{found:?} is not a seed: use a number from 0 to 18446744073709551615")]
    Seed {
        /// Text that stood there.
        found: String,
    },
    /// Made with the tables of another version of Unicode.
    #[error(
        "the scheme was made with Unicode {found}, this build has Unicode {UNICODE_MAJOR}: \
         make the sketches again, or use a build with Unicode {found}"
    )]
    Unicode {
        /// The version that stood there.
        found: String,
    },
    /// Something follows the last field.
    #[error("{found:?} after the last field of the scheme")]
    Trailing {
        /// The first word too many.
        found: String,
    },
}

impl Scheme {
    /// True if features, weights or sketch come from a table of terms.
    #[must_use]
    pub const fn needs_terms(&self) -> bool {
        self.shingle.needs_terms() || self.weight.needs_terms() || self.sketch.needs_terms()
    }

    /// The scheme whose features a table of terms for this one counts: its own features, or of
    /// phrases the words and the pairs of words in a row.
    #[must_use]
    pub fn counted(&self) -> Self {
        const ONE: Width = Width::new(1).expect("1 lies between 1 and 64");
        const TWO: Width = Width::new(2).expect("2 lies between 1 and 64");
        let own = Self {
            fields: FieldWeights::default(),
            ..self.features_only()
        };
        match (self.shingle, Widths::new(&[ONE, TWO])) {
            // Phrases are told by the counts of two words and of their pair.
            (Shingle::Phrases(_), Some(sizes)) => Self {
                shingle: Shingle::WordSizes(sizes),
                ..own
            },
            _ => own,
        }
    }

    /// The same features, not weighted, without a sketch.
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

    /// The part of the canonical text that says what the words and characters of a text are.
    #[must_use]
    pub fn token_rules(&self) -> String {
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

    /// Bytes of dictionaries that are held in memory, once for all threads, when texts are made to
    /// features under this scheme; 0 for most.
    #[must_use]
    pub fn dictionary_bytes(&self) -> u64 {
        match self.segmentation {
            #[cfg(feature = "languages")]
            Segmentation::Languages => crate::language::dictionary::CHINESE_BYTES,
            #[cfg(feature = "languages")]
            _ if self.nouns.are_tagged() => crate::language::dictionary::CHINESE_BYTES,
            _ => 0,
        }
    }

    /// The id: XXH3-64 of the canonical text.
    #[must_use]
    pub fn id(&self) -> SchemeId {
        SchemeId(crate::hash::xxh3_64(self.to_string().as_bytes(), 0))
    }

    /// Refuses to go on when `other` is not the same scheme.
    ///
    /// # Errors
    /// [`SchemeMismatch`], which names the fields that differ.
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
