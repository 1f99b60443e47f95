//! A complete document in the form of exports: loading it and exporting it again gives the same bytes.

use std::time::Duration;

use lookalike::{Fingerprint, SchemeId};
use lookalike_store::{
    Collection, CollectionSettings, DocumentSketch, MAX_ID_BYTES, PairRule, PairTraits, SketchForm,
    StoredDocument, StoredParagraph, TextHash, UnixMillis,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::fields::{HASH, HEX, HexNumber, check_id, double_option, expiry, metadata_bytes};
use super::hex_words::{FINGERPRINT, HexBits, HexWords};
use super::items::RequestItem;
use super::min_equal::places_name;
use crate::content::{ContentTraits, kept_length};
use crate::paragraph::MAX_PARAGRAPHS;
use crate::problem::ProblemDetails;
use crate::sketch_cache::MINIMA;

/// Pattern of 16 or 32 hexadecimal digits.
const PARAGRAPH: &str = "^([0-9a-fA-F]{16}){1,2}$";

/// A document in an export, which has one on each line.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ExportedDocument {
    /// Id of the document: 1 to 2048 bytes in UTF-8.
    #[schemars(length(min = 1, max = MAX_ID_BYTES))]
    pub(crate) id: String,
    /// Id of the scheme of its sketches: 16 hexadecimal digits. A collection with another scheme refuses the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("pattern" = HEX))]
    scheme_id: Option<HexNumber<SchemeId>>,
    /// Fingerprint: 16 hexadecimal digits, or 8 for 32 bits, or 32 for 128 bits; `null` for a text without features. Present if the
    /// collection holds fingerprints.
    #[serde(
        default,
        deserialize_with = "double_option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>", extend("pattern" = FINGERPRINT))]
    pub(crate) fingerprint: Option<Option<HexBits>>,
    /// Hash of the text: 32 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("pattern" = HASH))]
    pub(crate) text_hash: Option<HexNumber<TextHash>>,
    /// Expiry of the document in milliseconds since 1970; `null` means never. If it is left out, the lifetime of the request or of the
    /// collection applies.
    #[serde(
        default,
        deserialize_with = "expiry",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<u64>")]
    expires_ms: Option<Option<u64>>,
    /// Metadata: at most 1024 bytes of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    metadata: Option<Box<RawValue>>,
    /// Values of a signature, 8 hexadecimal digits each; `null` for a text without features. Present if the collection holds minima.
    #[serde(
        default,
        deserialize_with = "double_option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>")]
    pub(crate) signature: Option<Option<HexWords<8>>>,
    /// Super-shingles, 16 hexadecimal digits each; `null` for a text without features. Present if the collection holds super-shingles.
    #[serde(
        default,
        deserialize_with = "double_option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>")]
    pub(crate) super_shingles: Option<Option<HexWords<16>>>,
    /// Paragraphs in order: 16 hexadecimal digits of the hash, followed by 16 of the fingerprint unless the paragraph is short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", inner(regex(pattern = PARAGRAPH)))]
    pub(crate) paragraphs: Vec<HexParagraph>,
    /// Text of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// Hash of its category, 16 hexadecimal digits; `null` if it has none. Left out if the collection keeps no categories.
    #[serde(
        default,
        deserialize_with = "double_option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>", extend("pattern" = HEX))]
    pub(crate) category_hash: Option<Option<HexNumber<Fingerprint>>>,
    /// Size of its text in bytes, if the collection keeps lengths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<u32>,
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
    /// Creates the exported form of a stored document.
    pub(crate) fn new(document: &StoredDocument, settings: &CollectionSettings) -> Self {
        let (form, pairs) = (settings.sketch_form(), &settings.pairs);
        let fingerprint = document.sketch(form).and_then(HexBits::of);
        let signature = document.signature.as_deref().map(HexWords::from);
        let super_shingles = document.super_shingles.clone().map(HexWords);
        // The collection's sketch is always included, even if the document has none; other values only if it has them.
        let is_minima = matches!(form, SketchForm::Minima(_));
        let is_shingles = matches!(form, SketchForm::SuperShingles(_));
        let PairTraits { category, length } = document.traits;
        // 0 stands for no category.
        let category = (category != 0).then_some(HexNumber(Fingerprint(category)));
        Self {
            id: document.id.clone(),
            scheme_id: Some(HexNumber(settings.scheme.id())),
            fingerprint: form.places().is_none().then_some(fingerprint),
            text_hash: document.text_hash.map(HexNumber),
            expires_ms: Some(document.expires.map(|UnixMillis(end)| end)),
            metadata: crate::verdict::metadata(&document.metadata),
            signature: (is_minima || signature.is_some()).then_some(signature),
            super_shingles: (is_shingles || super_shingles.is_some()).then_some(super_shingles),
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

    /// Converts to a document. Lifetimes start at `from`; a document without an expiry of its own gets `time_to_live`, if there is one.
    pub(crate) fn document(
        self,
        from: UnixMillis,
        time_to_live: Option<Duration>,
        settings: &CollectionSettings,
    ) -> Result<StoredDocument, ProblemDetails> {
        check_id(&self.id)?;
        self.check_sketch(settings.sketch_form())?;
        self.check_parts(settings)?;
        let traits = self.traits(&settings.pairs)?;
        let expires = match self.expires_ms {
            // `null` means never, even if the collection has a lifetime; a `None` would mean that lifetime.
            Some(end) => Some(end.map_or(UnixMillis::NEVER, UnixMillis)),
            None => time_to_live.map(|life| from.after(life)),
        };
        // The collection decides which of the two is kept.
        let sketch = self.fingerprint.flatten().map(|HexBits(sketch)| sketch);
        let (fingerprint, wide_fingerprint) = match sketch {
            Some(DocumentSketch::Fingerprint(code)) => (Some(code), None),
            Some(DocumentSketch::Bits(code, _)) => (None, Some(code)),
            _ => (None, None),
        };
        let super_shingles = self.super_shingles.flatten();
        let paragraphs = self.paragraphs.into_iter();
        Ok(StoredDocument {
            id: self.id,
            fingerprint,
            wide_fingerprint,
            expires,
            text_hash: self.text_hash.map(|HexNumber(hash)| hash),
            signature: self.signature.flatten().map(Vec::from),
            super_shingles: super_shingles.map(|HexWords(words)| words),
            paragraphs: paragraphs
                .map(|HexParagraph(paragraph)| paragraph)
                .collect(),
            metadata: metadata_bytes(self.metadata)?,
            text: self.text,
            traits,
        })
    }

    /// Returns an error if its sketches are of another scheme than those of the collection.
    pub(crate) fn ensure_scheme_of(&self, collection: &Collection) -> Result<(), ProblemDetails> {
        let scheme = self.scheme_id.map(|HexNumber(scheme)| scheme);
        Ok(scheme.map_or(Ok(()), |scheme| collection.ensure_scheme_id(scheme))?)
    }

    /// Returns an error if the document lacks the sketch by which the collection finds it.
    fn check_sketch(&self, form: SketchForm) -> Result<(), ProblemDetails> {
        let shingles = self.super_shingles.as_ref();
        let minima = self.signature.as_ref();
        let found = match form {
            SketchForm::Fingerprint | SketchForm::Bits(_) => {
                let told = self.fingerprint.as_ref();
                // The outer `Option` tells whether the field was sent, the inner counts places, which fingerprints do not have.
                told.filter(|told| {
                    told.as_ref()
                        .is_none_or(|HexBits(sketch)| sketch.form() == form)
                })
                .map(|_| None)
            }
            SketchForm::SuperShingles(_) => shingles.map(|told| told.as_ref().map(HexWords::len)),
            SketchForm::Minima(_) => minima.map(|told| told.as_ref().map(HexWords::len)),
        };
        let refused = |what: String| {
            Err(ProblemDetails::invalid(
                what,
                "insert its text, or load it into a collection of the scheme that the export comes from",
            ))
        };
        let name = places_name(form);
        match (found, form.places()) {
            (None, _) => refused(format!(
                "the collection holds {name}, and the exported document has none"
            )),
            (Some(Some(found)), Some(places)) if found != places => refused(format!(
                "the collection holds {places} {name}, and the exported document has {found}"
            )),
            _ => Ok(()),
        }
    }

    /// Returns an error for parts that no export has: a signature that cannot be compared with others, or too many paragraphs.
    fn check_parts(&self, settings: &CollectionSettings) -> Result<(), ProblemDetails> {
        let is_sketch = matches!(settings.sketch_form(), SketchForm::Minima(_));
        let minima = self.signature.as_ref().and_then(|told| told.as_ref());
        let wrong = minima.map(HexWords::len).filter(|&found| found != MINIMA);
        let (what, remedy) = match (wrong, self.paragraphs.len()) {
            // A signature that is not kept is dropped, so its length does not matter; `check_sketch` has checked one that is the sketch.
            (Some(found), _) if settings.keep.signatures && !is_sketch => (
                format!("signatures have {MINIMA} minima, and the exported document has {found}"),
                "insert its text, or leave out `signature`",
            ),
            (_, paragraphs) if paragraphs > MAX_PARAGRAPHS => (
                format!("the document has {paragraphs} paragraphs, more than {MAX_PARAGRAPHS}"),
                "insert its text in parts, or use a collection that keeps no paragraphs",
            ),
            _ => return Ok(()),
        };
        Err(ProblemDetails::invalid(what, remedy))
    }

    /// Returns category and length, which decide with which other documents it is compared.
    fn traits(&self, pairs: &PairRule) -> Result<PairTraits, ProblemDetails> {
        let missing = |what: &str| {
            ProblemDetails::invalid(
                format!("the collection compares {what}, and the exported document has none"),
                "insert the document itself, or load it into a collection that does not compare them",
            )
        };
        // The site follows from the id, so that exports of collections without categories can be loaded into one that compares sites.
        let of_site = ContentTraits::default().category(pairs, Some(&self.id));
        let category = match (&pairs.category, self.category_hash) {
            (None, _) => 0,
            (_, Some(told)) => told.map_or(0, |HexNumber(Fingerprint(hash))| hash),
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

impl RequestItem for ExportedDocument {}
