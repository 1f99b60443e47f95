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
mod option;
mod sketch;
mod token_hash;

use std::fmt;
use std::iter::Peekable;
use std::str::FromStr;

use thiserror::Error;

pub use boilerplate::{Boilerplate, BoilerplateScope};
pub use extraction::{Extraction, HtmlMode};
pub use fields::FieldWeights;
pub use folding::Folding;
pub use language::{Nouns, Stemming, StopWords};
pub use mask::Mask;
pub use option::{
    Case, Normalization, ParseOptionError, Segmentation, Shingle, Weight, Width, Widths,
};
pub use sketch::Sketch;
pub use token_hash::TokenHash;

use crate::hash::siphash::SipKey;
use crate::terms::TermsId;

/// The major version of the Unicode tables in this build; part of every scheme, since a new
/// version can move a word boundary and with it a fingerprint.
pub const UNICODE_MAJOR: u8 = char::UNICODE_VERSION.0;

/// Everything that a sketch depends on besides the document's bytes.
///
/// Its text form has one field after another, in this order, all of them up to `unicode`:
///
/// ```
/// use lookalike::Scheme;
/// let text = "lookalike/2 normalize=nfc case=lower segment=unicode shingle=words:5 \
///             weight=set hash=xxh3-64 seed=0 sketch=none unicode=17";
/// assert_eq!(Scheme::default().to_string(), text);
/// assert_eq!(text.parse(), Ok(Scheme::default()));
/// ```
///
/// What is newer follows `unicode` and stands there only when it is not the default, so that
/// nothing that a scheme ever meant changes its text: `html` ([`Extraction`]), `mask` ([`Mask`]),
/// `fold` ([`Folding`]), `stop` ([`StopWords`]), `stem` ([`Stemming`]), `nouns` ([`Nouns`]), `boilerplate` ([`Boilerplate`]),
/// `fields` ([`FieldWeights`]) and `terms`, the id of the table of terms that weights or lexicons come from
/// ([`Terms`](crate::Terms)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Scheme {
    /// The normalisation form.
    pub normalization: Normalization,
    /// Whether case is told apart.
    pub case: Case,
    /// What a word is.
    pub segmentation: Segmentation,
    /// What a feature is made of.
    pub shingle: Shingle,
    /// How often a feature counts in a simhash.
    pub weight: Weight,
    /// How a word becomes a number.
    pub hash: TokenHash,
    /// Seed of the token hash and of the min-hash functions.
    pub seed: u64,
    /// What is made of the features.
    pub sketch: Sketch,
    /// What becomes of HTML.
    pub html: Extraction,
    /// What is made alike before words are cut.
    pub mask: Mask,
    /// Which variants of characters are made alike.
    pub folding: Folding,
    /// Words that are left out.
    pub stop: StopWords,
    /// Whether words are reduced to their stems.
    pub stem: Stemming,
    /// Whether nouns weigh more.
    pub nouns: Nouns,
    /// What became of lines that recur on many pages.
    pub boilerplate: Boilerplate,
    /// What else than the text gives features.
    pub fields: FieldWeights,
    /// The table of terms that weights or lexicons come from.
    pub terms: Option<TermsId>,
}

/// XXH3-64 (seed 0) of a scheme's canonical text: a short name for it to store with data.
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
    "different schemes are never compared; they differ in {}; make both sides with one scheme",
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
        let (left, right) = (fields(&left), fields(&right));
        let only_right = right
            .iter()
            .filter(|field| left.iter().all(|other| other.0 != field.0));
        left.iter()
            .chain(only_right)
            .map(|&(name, _)| (name, value_of(&left, name), value_of(&right, name)))
            .filter(|(_, a, b)| a != b)
            .map(|(name, a, b)| format!("{name} ({a} and {b})"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Names and values of a scheme's fields.
fn fields(scheme: &str) -> Vec<(&str, &str)> {
    scheme
        .split(' ')
        .filter_map(|word| word.split_once('='))
        .collect()
}

fn value_of<'a>(fields: &[(&str, &'a str)], name: &str) -> &'a str {
    let field = fields.iter().find(|field| field.0 == name);
    field.map_or("default", |field| field.1)
}

/// Why a text is no scheme of this build.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseSchemeError {
    /// The text does not begin with the version this build knows.
    #[error("{found:?} is no scheme version of this build: expected \"{VERSION}\"")]
    Version {
        /// The first word of the text.
        found: String,
    },
    /// A field is missing or stands elsewhere.
    #[error("scheme field {expected:?} expected, found {found:?}: fields have a fixed order")]
    Field {
        /// The field that belongs here.
        expected: &'static str,
        /// What stood in its place; empty at the end of the text.
        found: String,
    },
    /// A field has a value that means nothing.
    #[error(transparent)]
    Value(#[from] ParseOptionError),
    /// A value in a form that is not that of a scheme.
    #[error("{found:?} stands in no scheme: write {expected:?}, which names the data as well")]
    Short {
        /// What stood there.
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
    #[error("{found:?} is no id of a table of terms: use 16 hexadecimal digits")]
    Terms {
        /// What stood there.
        found: String,
    },
    /// The seed is no number from 0 to 2^64 - 1.
    #[error("{found:?} is no seed: use a number from 0 to 18446744073709551615")]
    Seed {
        /// What stood there.
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

const VERSION: &str = "lookalike/2";

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{VERSION} normalize={} case={} segment={} shingle={} weight={} hash={} \
             seed={} sketch={} unicode={UNICODE_MAJOR}",
            self.normalization,
            self.case,
            self.segmentation,
            self.shingle,
            self.weight,
            self.hash,
            self.seed,
            self.sketch
        )?;
        if self.html != Extraction::default() {
            write!(f, " html={}", self.html)?;
        }
        if self.mask != Mask::default() {
            write!(f, " mask={}", self.mask)?;
        }
        if !self.folding.is_none() {
            write!(f, " fold={}", self.folding)?;
        }
        if self.stop != StopWords::NONE {
            write!(f, " stop={}", self.stop)?;
        }
        if self.stem != Stemming::NONE {
            write!(f, " stem={}", self.stem)?;
        }
        if self.nouns != Nouns::NONE {
            write!(f, " nouns={}", self.nouns)?;
        }
        if self.boilerplate != Boilerplate::Kept {
            write!(f, " boilerplate={}", self.boilerplate)?;
        }
        if !self.fields.is_none() {
            write!(f, " fields={}", self.fields)?;
        }
        match self.terms {
            Some(terms) => write!(f, " terms={terms}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Scheme {
    type Err = ParseSchemeError;

    fn from_str(text: &str) -> Result<Self, ParseSchemeError> {
        Self::parse_with_key(text, None)
    }
}

impl Scheme {
    /// The scheme of a text whose token hash may need this secret key.
    ///
    /// # Errors
    /// [`ParseSchemeError`]; of kind `Key` when the key is not the one with the id in the text.
    pub fn parse_with_key(text: &str, key: Option<SipKey>) -> Result<Self, ParseSchemeError> {
        let mut words = text.split(' ').peekable();
        expect_version(words.next())?;
        let mut field = |name| field(words.next(), name);
        let normalization = field("normalize")?.parse()?;
        let case = field("case")?.parse()?;
        let segmentation = canonical(field("segment")?)?;
        let shingle = field("shingle")?.parse()?;
        let weight = field("weight")?.parse()?;
        let hash = parse_hash(field("hash")?, key)?;
        let seed = parse_seed(field("seed")?)?;
        let sketch = field("sketch")?.parse()?;
        expect_unicode(field("unicode")?)?;
        let html = newer(&mut words, "html")?;
        let mask = newer(&mut words, "mask")?;
        let folding = newer(&mut words, "fold")?;
        let stop = newer(&mut words, "stop")?;
        let stem = newer(&mut words, "stem")?;
        let nouns = newer(&mut words, "nouns")?;
        let boilerplate = newer(&mut words, "boilerplate")?;
        let fields = newer(&mut words, "fields")?;
        let mut next = words.next();
        let terms = parse_terms(&mut next)?;
        match next.or_else(|| words.next()) {
            Some(word) => Err(ParseSchemeError::Trailing {
                found: word.to_owned(),
            }),
            None => Ok(Self {
                normalization,
                case,
                segmentation,
                shingle,
                weight,
                hash,
                seed,
                sketch,
                html,
                mask,
                folding,
                stop,
                stem,
                nouns,
                boilerplate,
                fields,
                terms,
            }),
        }
    }
}

/// The value of a field that stands in a scheme only when it is not the default.
fn newer<'a, T>(
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
    name: &'static str,
) -> Result<T, ParseSchemeError>
where
    T: FromStr<Err = ParseOptionError> + fmt::Display + Default + PartialEq,
{
    let is_it = |word: &&str| word.split_once('=').is_some_and(|field| field.0 == name);
    let Some((_, value)) = words.next_if(is_it).and_then(|word| word.split_once('=')) else {
        return Ok(T::default());
    };
    let parsed: T = canonical(value)?;
    if parsed == T::default() {
        return Err(ParseSchemeError::Trailing {
            found: format!("{name}={value}"),
        });
    }
    Ok(parsed)
}

/// A value in the one form that a scheme has for it: short forms are for people.
fn canonical<T>(value: &str) -> Result<T, ParseSchemeError>
where
    T: FromStr<Err = ParseOptionError> + fmt::Display,
{
    let parsed: T = value.parse()?;
    let text = parsed.to_string();
    if text == value {
        Ok(parsed)
    } else {
        Err(ParseSchemeError::Short {
            found: value.to_owned(),
            expected: text,
        })
    }
}

fn expect_version(word: Option<&str>) -> Result<(), ParseSchemeError> {
    match word {
        Some(VERSION) => Ok(()),
        other => Err(ParseSchemeError::Version {
            found: other.unwrap_or_default().to_owned(),
        }),
    }
}

fn field<'a>(word: Option<&'a str>, name: &'static str) -> Result<&'a str, ParseSchemeError> {
    let word = word.unwrap_or_default();
    match word.split_once('=') {
        Some((found, value)) if found == name => Ok(value),
        _ => Err(ParseSchemeError::Field {
            expected: name,
            found: word.to_owned(),
        }),
    }
}

fn parse_hash(name: &str, key: Option<SipKey>) -> Result<TokenHash, ParseSchemeError> {
    let found = || name.to_owned();
    match (name, key) {
        (token_hash::XXH3, _) => Ok(TokenHash::Xxh3),
        (token_hash::LOOKUP3, _) => Ok(TokenHash::Lookup3),
        (_, Some(key)) if name == TokenHash::SipHash(key).to_string() => {
            Ok(TokenHash::SipHash(key))
        }
        _ if name.starts_with(token_hash::SIPHASH) => Err(ParseSchemeError::Key { found: found() }),
        _ => Err(ParseSchemeError::Hash { found: found() }),
    }
}

/// The value of `terms` when that is what `word` holds, which is then taken.
fn parse_terms(word: &mut Option<&str>) -> Result<Option<TermsId>, ParseSchemeError> {
    let Some(value) = word.and_then(|word| word.strip_prefix("terms=")) else {
        return Ok(None);
    };
    *word = None;
    value
        .parse()
        .map(Some)
        .map_err(|_| ParseSchemeError::Terms {
            found: value.to_owned(),
        })
}

fn parse_seed(value: &str) -> Result<u64, ParseSchemeError> {
    option::parse_number(value).ok_or_else(|| ParseSchemeError::Seed {
        found: value.to_owned(),
    })
}

fn expect_unicode(value: &str) -> Result<(), ParseSchemeError> {
    match option::parse_number::<u8>(value) {
        Some(UNICODE_MAJOR) => Ok(()),
        _ => Err(ParseSchemeError::Unicode {
            found: value.to_owned(),
        }),
    }
}

impl Scheme {
    /// Whether features, weights or sketch come from a table of terms.
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
