//! A document as exports have it, whole: what is loaded of one is exported as the same bytes.

use std::time::Duration;

use lookalike::Fingerprint;
use lookalike_store::{
    PairRule, PairTraits, StoredDocument, StoredParagraph, TextHash, UnixMillis,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::fields::{
    HASH, HEX, HexFingerprint, HexTextHash, LONGEST_ID, check_id, metadata_bytes, there,
};
use super::items::RequestItem;
use super::packed::PackedReader;
use crate::content::{ContentPlace, kept_length};
use crate::problem::ProblemDetails;

/// Pattern of 16 or 32 hexadecimal digits.
const PARAGRAPH: &str = "^([0-9a-fA-F]{16}){1,2}$";

/// A document as an export has it, a line each.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportedDocument {
    /// 1 to 2048 bytes in UTF-8.
    #[schemars(length(min = 1, max = LONGEST_ID))]
    pub(crate) id: String,
    /// 16 hexadecimal digits; `null` of a text without features.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schemars(with = "Option<String>", required, extend("pattern" = HEX))]
    fingerprint: Option<HexFingerprint>,
    /// 32 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("pattern" = HASH))]
    pub(crate) text_hash: Option<HexTextHash>,
    /// End of the document in milliseconds since 1970; `null` for never. Without it, the document takes the lifetime of the request or
    /// of the collection.
    #[serde(
        default,
        deserialize_with = "there",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<u64>")]
    expires_ms: Option<Option<u64>>,
    /// At most 1024 bytes of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    metadata: Option<Box<RawValue>>,
    /// Values of a signature, 8 hexadecimal digits each.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) signature: Option<HexWords<8>>,
    /// Super-shingles, 16 hexadecimal digits each.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) super_shingles: Option<HexWords<16>>,
    /// Its paragraphs in order: 16 hexadecimal digits of the hash, and of all but short ones 16 of the fingerprint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", inner(regex(pattern = PARAGRAPH)))]
    pub(crate) paragraphs: Vec<HexParagraph>,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// Hash of its category, 16 hexadecimal digits; `null` where it has none, left out where the collection keeps none.
    #[serde(
        default,
        deserialize_with = "there",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>", extend("pattern" = HEX))]
    pub(crate) category_hash: Option<Option<HexFingerprint>>,
    /// Bytes of its text, where the collection keeps lengths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<u32>,
}

/// Numbers of so many hexadecimal digits each, back to back.
#[derive(Debug)]
pub(crate) struct HexWords<const DIGITS: usize>(Vec<u64>);

impl<const DIGITS: usize> Serialize for HexWords<DIGITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = self.0.iter().map(|word| format!("{word:0DIGITS$x}"));
        serializer.serialize_str(&digits.collect::<String>())
    }
}

impl<'de, const DIGITS: usize> Deserialize<'de> for HexWords<DIGITS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let word = |digits: &[u8]| {
            let text = std::str::from_utf8(digits).ok()?;
            // `from_str_radix` takes a sign, and the last chunk may be shorter.
            let is_whole = text.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit);
            u64::from_str_radix(text, 16).ok().filter(|_| is_whole)
        };
        let words: Option<Vec<u64>> = digits.as_bytes().chunks(DIGITS).map(word).collect();
        let wrong = || format!("expected numbers of {DIGITS} hexadecimal digits each");
        words
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom(wrong()))
    }
}

/// A paragraph in hexadecimal digits.
#[derive(Debug)]
pub(crate) struct HexParagraph(StoredParagraph);

impl Serialize for HexParagraph {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let StoredParagraph { hash, fingerprint } = self.0;
        match fingerprint {
            Some(code) => serializer.collect_str(&format_args!("{hash:016x}{code}")),
            None => serializer.collect_str(&format_args!("{hash:016x}")),
        }
    }
}

impl<'de> Deserialize<'de> for HexParagraph {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = HexWords::<16>::deserialize(deserializer)?;
        let (hash, fingerprint) = match words.0[..] {
            [hash] => (hash, None),
            [hash, code] => (hash, Some(Fingerprint(code))),
            _ => {
                let wrong = "expected 16 or 32 hexadecimal digits";
                return Err(serde::de::Error::custom(wrong));
            }
        };
        Ok(Self(StoredParagraph { hash, fingerprint }))
    }
}

impl ExportedDocument {
    /// A document of a collection in which these pairs count.
    pub(crate) fn new(document: &StoredDocument, pairs: &PairRule) -> Self {
        let signature = document.signature.as_ref();
        let PairTraits { category, length } = document.traits;
        let category = (category != 0).then_some(HexFingerprint(Fingerprint(category)));
        Self {
            id: document.id.clone(),
            fingerprint: document.fingerprint.map(HexFingerprint),
            text_hash: document.text_hash.map(HexTextHash),
            expires_ms: Some(document.expires.map(|UnixMillis(end)| end)),
            metadata: crate::verdict::metadata(&document.metadata),
            signature: signature
                .map(|values| HexWords(values.iter().map(|&value| value.into()).collect())),
            super_shingles: document.super_shingles.clone().map(HexWords),
            paragraphs: document
                .paragraphs
                .iter()
                .map(|&paragraph| HexParagraph(paragraph))
                .collect(),
            text: document.text.clone(),
            category_hash: pairs.category.is_some().then_some(category),
            length: pairs.length_share.map(|_| length),
        }
    }

    /// The document; without an end of its own it gets this lifetime, if there is one.
    pub(crate) fn document(
        self,
        now: UnixMillis,
        time_to_live: Option<Duration>,
        pairs: &PairRule,
    ) -> Result<StoredDocument, ProblemDetails> {
        check_id(&self.id)?;
        let traits = self.traits(pairs)?;
        let expires = match self.expires_ms {
            Some(end) => Some(end.map_or(UnixMillis::NEVER, UnixMillis)),
            None => time_to_live.map(|life| now.after(life)),
        };
        let signature = self.signature.map(|HexWords(words)| {
            // Eight digits are 32 bits.
            words.into_iter().map(|word| word as u32).collect()
        });
        let paragraphs = self.paragraphs.into_iter();
        Ok(StoredDocument {
            id: self.id,
            fingerprint: self.fingerprint.map(|HexFingerprint(code)| code),
            expires,
            text_hash: self
                .text_hash
                .map(|HexTextHash(hash): HexTextHash| -> TextHash { hash }),
            signature,
            super_shingles: self.super_shingles.map(|HexWords(words)| words),
            paragraphs: paragraphs
                .map(|HexParagraph(paragraph)| paragraph)
                .collect(),
            metadata: metadata_bytes(self.metadata)?,
            text: self.text,
            traits,
        })
    }

    /// Category and length, which decide with which documents it is compared.
    fn traits(&self, pairs: &PairRule) -> Result<PairTraits, ProblemDetails> {
        let missing = |what: &str| {
            ProblemDetails::invalid(
                format!("the collection compares {what}, and the exported document has none"),
                "insert the document itself, or load it into a collection that does not compare them",
            )
        };
        // The site is a function of the id, so that exports of collections without categories can be loaded
        // into one that compares sites.
        let of_site = ContentPlace::default().category(pairs, Some(&self.id));
        let category = match (&pairs.category, self.category_hash) {
            (None, _) => 0,
            (_, Some(told)) => told.map_or(0, |HexFingerprint(Fingerprint(hash))| hash),
            (_, None) if of_site != 0 => of_site,
            (_, None) => return Err(missing("categories")),
        };
        let length = match (pairs.length_share, self.length, &self.text) {
            (None, ..) => 0,
            (_, Some(length), _) => length,
            (_, None, Some(text)) => kept_length(text),
            (_, None, None) => return Err(missing("lengths of texts")),
        };
        Ok(PairTraits { category, length })
    }
}

impl RequestItem for ExportedDocument {
    /// Whole documents have no compact form.
    fn unpack(_: &mut PackedReader<'_>) -> Option<Self> {
        None
    }
}
