//! The canonical text of a scheme: every field, in the order in which they act.

use std::fmt;
use std::str::FromStr;

use super::terms_id::TermsId;
use super::{
    ParseOptionError, ParseSchemeError, Scheme, TokenHash, UNICODE_MAJOR, option, token_hash,
};
use crate::hash::siphash::SipKey;

/// First word of every scheme.
pub(super) const VERSION: &str = "lookalike/1";

/// Value of `terms` in a scheme without a table of terms.
const NO_TERMS: &str = "none";

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `parse_with_key` reads the fields in this order.
        write!(
            f,
            "{VERSION} html={} boilerplate={} mask={} normalize={} fold={} case={}",
            self.html, self.boilerplate, self.mask, self.normalization, self.folding, self.case
        )?;
        write!(
            f,
            " segment={} stop={} stem={} shingle={} hash={} seed={}",
            self.segmentation, self.stop, self.stem, self.shingle, self.hash, self.seed
        )?;
        write!(
            f,
            " weight={} nouns={} fields={} terms=",
            self.weight, self.nouns, self.fields
        )?;
        match self.terms {
            Some(terms) => write!(f, "{terms}")?,
            None => f.write_str(NO_TERMS)?,
        }
        write!(f, " sketch={} unicode={UNICODE_MAJOR}", self.sketch)
    }
}

impl FromStr for Scheme {
    type Err = ParseSchemeError;

    fn from_str(text: &str) -> Result<Self, ParseSchemeError> {
        Self::parse_with_key(text, None)
    }
}

impl Scheme {
    /// Parses a scheme whose token hash may need this secret key.
    ///
    /// # Errors
    /// Returns [`ParseSchemeError`]; of kind `Key` if the key does not have the id in the text.
    pub fn parse_with_key(text: &str, key: Option<SipKey>) -> Result<Self, ParseSchemeError> {
        let mut words = text.split(' ');
        expect_version(words.next())?;
        let mut value = |name| field(words.next(), name);
        // Fields are read in the order of the text, because an initialiser is evaluated from top to bottom.
        let scheme = Self {
            html: canonical(value("html")?)?,
            boilerplate: canonical(value("boilerplate")?)?,
            mask: canonical(value("mask")?)?,
            normalization: canonical(value("normalize")?)?,
            folding: canonical(value("fold")?)?,
            case: canonical(value("case")?)?,
            segmentation: canonical(value("segment")?)?,
            stop: canonical(value("stop")?)?,
            stem: canonical(value("stem")?)?,
            shingle: canonical(value("shingle")?)?,
            hash: parse_hash(value("hash")?, key)?,
            seed: parse_seed(value("seed")?)?,
            weight: canonical(value("weight")?)?,
            nouns: canonical(value("nouns")?)?,
            fields: canonical(value("fields")?)?,
            terms: parse_terms(value("terms")?)?,
            sketch: canonical(value("sketch")?)?,
        };
        expect_unicode(value("unicode")?)?;
        match words.next() {
            None => Ok(scheme),
            Some(word) => Err(ParseSchemeError::Trailing {
                found: word.to_owned(),
            }),
        }
    }
}

/// Parses a value that must be in the one form of a scheme: short forms are for people.
fn canonical<T>(value: &str) -> Result<T, ParseSchemeError>
where
    T: FromStr<Err = ParseOptionError> + fmt::Display,
{
    let parsed: T = value.parse()?;
    // Print and compare: then no parser can accept two texts for one value, and ids of equal schemes are equal.
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
    match (name, key) {
        (token_hash::XXH3, _) => Ok(TokenHash::Xxh3),
        (token_hash::LOOKUP3, _) => Ok(TokenHash::Lookup3),
        // The text has the id of the key, so that a different key is refused.
        (_, Some(key)) if name == TokenHash::SipHash(key).to_string() => {
            Ok(TokenHash::SipHash(key))
        }
        _ if name.starts_with(token_hash::SIPHASH) => Err(ParseSchemeError::Key {
            found: name.to_owned(),
        }),
        _ => {
            let expected = "xxh3-64, lookup3 or siphash-2-4:ID";
            Err(ParseOptionError::new("token hash of this build", expected, name).into())
        }
    }
}

fn parse_terms(value: &str) -> Result<Option<TermsId>, ParseSchemeError> {
    if value == NO_TERMS {
        return Ok(None);
    }
    canonical(value).map(Some)
}

fn parse_seed(value: &str) -> Result<u64, ParseSchemeError> {
    option::parse_number(value).ok_or_else(|| {
        let expected = "a number from 0 to 18446744073709551615";
        ParseOptionError::new("seed", expected, value).into()
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
