//! The fields of request bodies.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use lookalike::{Fingerprint, ParagraphRule};
use lookalike_corpus::Category;
use lookalike_store::{
    CollectionSettings, DocumentSketch, MAX_ID_BYTES, MAX_RADIUS, PairRule, RebuildTarget,
    RetainedParts, SchemePart, SketchForm, StoredScheme, TextHash, UnixMillis,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::fields_by_name;
use super::hex_words::{FINGERPRINT, HexBits, HexWords};
use super::items::RequestItem;
use super::min_equal::{MinEqualOption, places_name, requested_distance};
use super::packed::PackedReader;
use super::sent_fields::{AnchorItem, SentFields};
use crate::content::{ContentSource, ContentTraits, RequestContent};
use crate::problem::{ProblemDetails, SettingField};
use crate::scheme::{default_scheme, usable_scheme};
use crate::scheme_state::{sent_boilerplate, sent_terms};

/// Maximum size of metadata as JSON, in bytes.
pub const MAX_METADATA_BYTES: usize = 1024;
/// Maximum depth of arrays and objects in metadata: half of what common parsers accept.
const DEEPEST_METADATA: usize = 64;
/// Maximum time to live in seconds: a hundred years of 365 days.
pub(crate) const MAX_TTL_SECONDS: u64 = 100 * 365 * 24 * 3600;

/// Default radius of fingerprints.
const RADIUS: u32 = 3;

/// Maximum number of paragraph hashes in a request.
pub(crate) const HASHES: usize = 10_000;
/// Pattern of 16 hexadecimal digits.
pub(crate) const HEX: &str = "^[0-9a-fA-F]{16}$";
/// Pattern of 32 hexadecimal digits.
pub(crate) const HASH: &str = "^[0-9a-fA-F]{32}$";
/// Pattern of the names of collections and snapshots.
pub(crate) const NAME: &str = "^[a-z0-9_-]{1,64}$";

/// Adds to the schema of an object that it must have exactly one of some fields. A field that is `null` counts as absent.
fn exactly_one_of(schema: &mut Schema, fields: &[(&str, &str)]) {
    let has = |(name, kind): (&str, &str)| json!({"required": [name], "properties": {name: {"type": kind}}});
    let all: Vec<_> = fields.iter().copied().map(has).collect();
    // Not a plain `anyOf`, for the reason given in `one_document`.
    let mut wrong = vec![json!({"not": {"anyOf": all}})];
    for (at, one) in all.iter().enumerate() {
        let others = &all[at + 1..];
        wrong.extend(others.iter().map(|other| json!({"allOf": [one, other]})));
    }
    schema.insert("not".to_owned(), json!({"anyOf": wrong}));
}

fn exactly_one_content(schema: &mut Schema) {
    let fields = ["fingerprint", "text", "html", "super_shingles", "signature"];
    exactly_one_of(schema, &fields.map(|name| (name, "string")));
}

fn exactly_one_part(schema: &mut Schema) {
    let fields = [("text", "string"), ("html", "string"), ("hashes", "array")];
    exactly_one_of(schema, &fields);
}

/// Adds to the schema of an object that it must have an id, a text or a page, but not both a text and a page. A field that is `null` counts
/// as absent.
fn one_document(schema: &mut Schema) {
    let has = |name: &str| json!({"required": [name], "properties": {name: {"type": "string"}}});
    // Generators of clients recognise this form as one object, but would turn a plain `anyOf` into several.
    let [id, text, html] = ["id", "text", "html"].map(has);
    let none = json!({"not": {"anyOf": [id, text, html]}});
    let both = json!({"allOf": [text, html]});
    schema.insert("not".to_owned(), json!({"anyOf": [none, both]}));
}

/// A number in hexadecimal digits, as in bodies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HexNumber<T>(pub(crate) T);

impl<T: fmt::Display> Serialize for HexNumber<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for HexNumber<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DigitsVisitor<T>(PhantomData<T>);
        impl<T: FromStr<Err: fmt::Display>> serde::de::Visitor<'_> for DigitsVisitor<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("hexadecimal digits as a string")
            }

            fn visit_str<E: serde::de::Error>(self, digits: &str) -> Result<T, E> {
                digits.parse().map_err(E::custom)
            }
        }
        let number = deserializer.deserialize_str(DigitsVisitor(PhantomData));
        number.map(Self)
    }
}

/// Deserializes a field that is present, as `Some(None)` if it is `null`.
pub(super) fn double_option<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    // On its own, serde would map `null` to the outer `None`. This function is not called for a field that is left out.
    Option::deserialize(deserializer).map(Some)
}

/// Deserializes a time of expiry, as `Some(None)` if it is `null`.
pub(super) fn expiry<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<u64>>, D::Error> {
    let told: Option<u64> = Option::deserialize(deserializer)?;
    // The store has this number for documents that never expire, so it would be read back as `null`.
    if told == Some(UnixMillis::NEVER.0) {
        let wrong = "the time of expiry is too large: null means never";
        return Err(serde::de::Error::custom(wrong));
    }
    Ok(Some(told))
}

/// Defines an item with exactly one content and the facts used in comparisons; other fields of the item come before and after these.
/// serde's `flatten` would accept unknown fields.
macro_rules! content_item {
    (
        $(#[$about:meta])*
        $name:ident {
            $($(#[$first:meta])* $before:ident: $first_type:ty,)*
            ..
            $(#[$of_category:meta])*
            category,
            $($(#[$last:meta])* $behind:ident: $last_type:ty,)*
        }
    ) => {
        #[derive(Debug, Default, Deserialize, JsonSchema)]
        // Without `expecting`, messages to clients would name the Rust struct.
        #[serde(deny_unknown_fields, expecting = "an object")]
        $(#[$about])*
        pub(crate) struct $name {
            $($(#[$first])* $before: $first_type,)*
            /// Fingerprint, if the collection holds fingerprints: 16 hexadecimal digits, or 8 for 32 bits, or 32 for 128 bits.
            #[schemars(with = "Option<String>", extend("pattern" = FINGERPRINT))]
            fingerprint: Option<HexBits>,
            /// A text.
            text: Option<String>,
            /// An HTML page, whose text is extracted.
            html: Option<String>,
            /// Super-shingles, 16 hexadecimal digits each, if the collection holds super-shingles.
            #[schemars(with = "Option<String>")]
            super_shingles: Option<HexWords<16>>,
            /// Minima of a signature, 8 hexadecimal digits each, if the collection holds minima.
            #[schemars(with = "Option<String>")]
            signature: Option<HexWords<8>>,
            /// First 32 hexadecimal digits of the BLAKE3 hash of the text, by which equal texts are recognised; only needed with a sketch.
            #[schemars(with = "Option<String>", extend("pattern" = HASH))]
            text_hash: Option<HexNumber<TextHash>>,
            $(#[$of_category])*
            category: Option<String>,
            /// URL of the document, from which the site is taken if the collection compares sites.
            url: Option<String>,
            /// Size of the text in bytes; only needed with a sketch, if the collection compares lengths.
            length: Option<u32>,
            /// Links to the document, if the scheme of the collection uses them.
            #[schemars(with = "Option<Vec<AnchorItem>>")]
            anchors: Option<Box<RawValue>>,
            /// Addresses of pages that link to the document, if the scheme uses them.
            #[schemars(with = "Option<Vec<String>>")]
            in_links: Option<Box<RawValue>>,
            /// Addresses of pages that the document links to, if the scheme uses them.
            #[schemars(with = "Option<Vec<String>>")]
            out_links: Option<Box<RawValue>>,
            $($(#[$last])* $behind: $last_type,)*
        }

        impl $name {
            /// Takes the content out of the item. `id` is the id of its document, if it has one.
            fn take_content(&mut self, id: Option<String>) -> Result<RequestContent, ProblemDetails> {
                let sketches = [
                    self.fingerprint.take().map(|HexBits(code)| code),
                    self.super_shingles.take().map(|HexWords(words)| DocumentSketch::SuperShingles(words)),
                    self.signature.take().map(|words| DocumentSketch::Minima(words.into())),
                ];
                let texts = [
                    self.text.take().map(ContentSource::Text),
                    self.html.take().map(ContentSource::Html),
                ];
                Ok(RequestContent {
                    source: only_source(sketches, texts)?,
                    text_hash: self.text_hash.map(|HexNumber(hash)| hash),
                    place: ContentTraits {
                        id,
                        category: self.category.take(),
                        url: self.url.take(),
                        length: self.length,
                        fields: SentFields {
                            anchors: self.anchors.take(),
                            in_links: self.in_links.take(),
                            out_links: self.out_links.take(),
                        },
                    },
                })
            }
        }
    };
}

content_item! {
    /// A content to search for: a text, a page or a sketch.
    #[schemars(rename = "Content", transform = exactly_one_content)]
    ContentItem {
        ..
        /// Category, if the collection compares categories. If these are sites, the default is the site of `url`.
        category,
    }
}

content_item! {
    /// A document to insert: an id, and a text, a page or a sketch.
    #[schemars(rename = "NewDocument", transform = exactly_one_content)]
    NewDocument {
        /// Id of the document: 1 to 2048 bytes in UTF-8.
        #[schemars(length(min = 1, max = MAX_ID_BYTES))]
        id: String,
        ..
        /// Category, if the collection compares categories. If these are sites, the default is the site of `url` or otherwise of `id`.
        category,
        /// Lifetime of the document, from 1 second to a hundred years; the default is the collection's.
        #[schemars(range(min = 1, max = MAX_TTL_SECONDS))]
        ttl_seconds: Option<u64>,
        /// Time of expiry in milliseconds since 1970, or `null` for never. Overrides the lifetime.
        #[serde(default, deserialize_with = "expiry")]
        #[schemars(with = "Option<u64>")]
        expires_ms: Option<Option<u64>>,
        /// Any JSON of at most 1024 bytes and 64 levels of arrays and objects; returned with neighbours.
        #[schemars(with = "Option<serde_json::Value>")]
        metadata: Option<Box<RawValue>>,
    }
}

/// A page to look up paragraph by paragraph: a text or an HTML page, or hashes of paragraphs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "Page", transform = exactly_one_part)]
pub(crate) struct PageItem {
    /// Id of the page. The document with this id is left out, so that a page that is crawled again does not match itself.
    #[schemars(length(min = 1, max = MAX_ID_BYTES))]
    pub(crate) id: Option<String>,
    text: Option<String>,
    html: Option<String>,
    /// URL of the page, if lines learned from sites are removed.
    url: Option<String>,
    /// Hashes from earlier answers, 16 hexadecimal digits each, at most 10,000 in a request. They only find identical paragraphs.
    #[schemars(with = "Option<Vec<String>>", length(max = HASHES), inner(regex(pattern = HEX)))]
    hashes: Option<Vec<HexNumber<Fingerprint>>>,
}

/// A document whose chunks are compared: the stored one with an id, or a text or page that is sent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "ChunkedDocument", transform = one_document)]
pub(crate) struct ChunkedItem {
    /// Id of the document. Its stored text is compared, unless a text or page is sent.
    #[schemars(length(min = 1, max = MAX_ID_BYTES))]
    id: Option<String>,
    /// A text.
    text: Option<String>,
    /// An HTML page, whose text is extracted.
    html: Option<String>,
    /// URL of the page, if lines learned from sites are removed.
    url: Option<String>,
}

/// A checked [`ChunkedItem`], which has a content or an id.
#[derive(Debug)]
pub(crate) struct ChunkedDocument {
    pub(crate) id: Option<String>,
    pub(crate) content: Option<RequestContent>,
}

/// Fields of a [`NewDocument`] besides its content.
#[derive(Debug)]
pub(crate) struct DocumentMeta {
    pub(crate) id: String,
    pub(crate) expires: Option<UnixMillis>,
    pub(crate) metadata: Vec<u8>,
}

/// The id of a document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "DocumentId")]
pub(crate) struct DocumentId {
    /// Id of the document: 1 to 2048 bytes in UTF-8.
    #[schemars(length(min = 1, max = MAX_ID_BYTES))]
    id: String,
}

/// A document whose expiry changes: has exactly one of lifetime and time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "ExpiringDocument")]
pub(crate) struct ExpiringDocument {
    /// Id of the document: 1 to 2048 bytes in UTF-8.
    #[schemars(length(min = 1, max = MAX_ID_BYTES))]
    id: String,
    /// New lifetime from now on, from 1 second to a hundred years.
    #[schemars(range(min = 1, max = MAX_TTL_SECONDS))]
    ttl_seconds: Option<u64>,
    /// New time of expiry in milliseconds since 1970; `null` means never. A time in the past takes effect at once.
    #[serde(default, deserialize_with = "expiry")]
    #[schemars(with = "Option<u64>")]
    expires_ms: Option<Option<u64>>,
}

impl ExpiringDocument {
    /// Returns the id and the new expiry; a lifetime starts at `from`.
    pub(crate) fn checked(
        self,
        from: UnixMillis,
    ) -> Result<(String, Option<UnixMillis>), ProblemDetails> {
        check_id(&self.id)?;
        match (self.ttl_seconds, self.expires_ms) {
            (Some(seconds), None) => {
                let remedy = "use delete to remove a document at once";
                Ok((self.id, Some(from.after(life(seconds, remedy)?))))
            }
            // In a write of this kind `None` means never. In a document that is inserted it would mean the lifetime of the collection.
            (None, Some(end)) => Ok((self.id, end.map(UnixMillis))),
            _ => Err(ProblemDetails::invalid(
                "an item has exactly one of ttl_seconds and expires_ms",
                "send one of them",
            )),
        }
    }
}

impl RequestItem for ExpiringDocument {}

/// A collection to create.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct NewCollection {
    /// Full text of a scheme; the default is the scheme of `lookalike fingerprint`.
    scheme: Option<String>,
    /// Largest distance of a query in bits of fingerprints: 0 to 16; default 3.
    #[schemars(range(max = MAX_RADIUS))]
    radius: Option<u32>,
    /// Minimum number of super-shingles or minima that near-duplicates have in common, if the scheme makes these: a whole number, or a
    /// share of all with a decimal point, such as 0.8, rounded up.
    equal: Option<MinEqualOption>,
    /// Table of terms that the scheme names, if it needs one: the file that `lookalike terms` wrote, in base64.
    terms: Option<String>,
    /// Learned lines that the scheme names, if it removes any: the file that --boilerplate-lines wrote, in base64.
    boilerplate: Option<String>,
    /// Lifetime of documents without one of their own; forever by default.
    #[schemars(range(min = 1, max = MAX_TTL_SECONDS))]
    ttl_seconds: Option<u64>,
    /// Optional parts of documents to keep; by default only hashes of texts.
    #[serde(default, deserialize_with = "fields_by_name::optional")]
    #[schemars(with = "Option<KeptParts>")]
    keep: Option<KeptParts>,
    /// Rule for the ends of paragraphs, if they are kept: `blank` lines, the ends of `lines`, or `auto` (the default): blank lines if a text
    /// has any between others, otherwise the ends of lines.
    paragraphs: Option<ParagraphRuleOption>,
    /// Compare only documents with the same value in this field, or of the same `site`, the host of the URL. Documents without a value form
    /// a category of their own.
    within: Option<String>,
    /// Compare only documents with different values in this field, or of different sites.
    across: Option<String>,
    /// Compare only documents whose shorter text has at least this share of the longer one's bytes, above 0 and at most 1.
    #[schemars(range(min = 0, max = 1))]
    lengths: Option<f64>,
}

/// The rule that decides where paragraphs end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ParagraphRule")]
pub(crate) enum ParagraphRuleOption {
    Auto,
    Blank,
    Lines,
}

impl From<ParagraphRuleOption> for ParagraphRule {
    fn from(rule: ParagraphRuleOption) -> Self {
        match rule {
            ParagraphRuleOption::Auto => Self::Auto,
            ParagraphRuleOption::Blank => Self::Blank,
            ParagraphRuleOption::Lines => Self::Lines,
        }
    }
}

impl From<ParagraphRule> for ParagraphRuleOption {
    fn from(rule: ParagraphRule) -> Self {
        match rule {
            ParagraphRule::Auto => Self::Auto,
            ParagraphRule::Blank => Self::Blank,
            ParagraphRule::Lines => Self::Lines,
        }
    }
}

/// The optional parts of documents that a collection keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct KeptParts {
    /// Hashes of texts, 16 bytes a document, which tell equal texts from equal fingerprints. Kept by default.
    pub(crate) text_hashes: bool,
    /// Texts, with which neighbours can be verified exactly and shown with their differences.
    pub(crate) texts: bool,
    /// Signatures of 128 minima, 512 bytes a document, with which the resemblance of neighbours can be estimated. If the sketches are
    /// minima, they are the signature.
    pub(crate) signatures: bool,
    /// Hashes and fingerprints of paragraphs, with which identical and similar ones are found.
    pub(crate) paragraphs: bool,
}

impl Default for KeptParts {
    fn default() -> Self {
        RetainedParts::default().into()
    }
}

/// Returns the schema of a lifetime or `null`: a required field of type `Option` would lose its `null`.
fn lifetime_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["integer", "null"], "minimum": 1, "maximum": MAX_TTL_SECONDS})
}

/// Changes to the settings of a collection.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ChangedCollection {
    /// Lifetime of documents inserted from now on without one of their own; `null` means forever.
    #[serde(deserialize_with = "double_option")]
    #[schemars(schema_with = "lifetime_or_null")]
    ttl_seconds: Option<Option<u64>>,
}

/// The settings that change when a collection is sketched again; those that are left out stay.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ResketchedCollection {
    /// Full text of the new scheme.
    scheme: Option<String>,
    /// Largest distance of a query in bits of fingerprints: 0 to 16.
    #[schemars(range(max = MAX_RADIUS))]
    radius: Option<u32>,
    /// Minimum number of super-shingles or minima that near-duplicates have in common, if the sketches consist of these.
    equal: Option<MinEqualOption>,
    /// Table of terms that the scheme names, if it needs one: the file that `lookalike terms` wrote, in base64.
    terms: Option<String>,
}

impl ResketchedCollection {
    /// Returns the new scheme, table of terms and radius for a collection with these settings.
    pub(crate) fn target(
        self,
        settings: &CollectionSettings,
    ) -> Result<RebuildTarget, ProblemDetails> {
        let (told, equal) = (self.radius, self.equal);
        let radius = |form: SketchForm| {
            // A radius that is left out stays if it has the same meaning under the new scheme.
            let stays = (form == settings.sketch_form()).then_some(settings.radius);
            let radius = requested_distance(form, told, equal)?.or(stays);
            checked_distance(form, radius)
        };
        let Some(text) = self.scheme else {
            if self.terms.is_some() {
                return Err(ProblemDetails::invalid(
                    "a table of terms comes with the scheme that names it",
                    "send `scheme`, too",
                )
                .of_field(SettingField::Scheme));
            }
            let radius = radius(settings.sketch_form())?;
            return Ok(RebuildTarget::new(settings.scheme.clone(), radius));
        };
        let scheme = usable_scheme(&text)?;
        let terms = sent_terms(&scheme, self.terms.as_deref())?;
        let radius = radius(scheme.sketch.into())?;
        let target = RebuildTarget::new(StoredScheme::from(&scheme), radius);
        Ok(target.parts(terms.into_iter().collect()))
    }
}

/// Returns the radius for sketches of a form: the one given, or the default of the form. Returns an error if it is too large.
fn checked_distance(form: SketchForm, told: Option<u32>) -> Result<u32, ProblemDetails> {
    match (told, form.places()) {
        (Some(radius), _) if radius > form.largest_radius() => Err(ProblemDetails::invalid(
            format!("radius {radius} is larger than {}", form.largest_radius()),
            "use a smaller radius",
        )),
        (Some(radius), _) => Ok(radius),
        (None, None) => Ok(RADIUS),
        // No number of places suits every scheme, so it has no default.
        (None, Some(places)) => Err(ProblemDetails::invalid(
            format!(
                "`equal` is missing: say how many of the {places} {} near-duplicates must share",
                places_name(form)
            ),
            "send `equal`, a number of them or a share with a point, such as 2 of 6 super-shingles, or 0.8 of the minima",
        )
        .of_field(SettingField::Equal)),
    }
}

fn unreadable_metadata(what: impl fmt::Display) -> ProblemDetails {
    ProblemDetails::invalid(
        format!("common JSON parsers cannot read the metadata: {what}"),
        "send it as a string",
    )
}

/// Returns the depth of arrays and objects.
fn depth(value: &Value) -> usize {
    // The recursion is shallow, because serde_json refuses more than 128 levels.
    let below = match value {
        Value::Array(values) => values.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + below.unwrap_or_default()
}

/// Returns metadata as it is stored: on a single line, so that it fits in the lines of exports.
pub(crate) fn metadata_bytes(value: Option<Box<RawValue>>) -> Result<Vec<u8>, ProblemDetails> {
    let mut metadata = value.map_or(Vec::new(), |value| value.get().as_bytes().to_vec());
    if metadata.len() > MAX_METADATA_BYTES {
        let bytes = metadata.len();
        return Err(ProblemDetails::invalid(
            format!("the metadata has {bytes} bytes, more than the limit of {MAX_METADATA_BYTES}"),
            "store it elsewhere under the id of the document",
        ));
    }
    // Metadata must be what common JSON parsers accept, also when nested in an answer: otherwise one document could make every answer that
    // shows it unreadable.
    let value: Option<Value> = match metadata.is_empty() {
        true => None,
        false => serde_json::from_slice(&metadata).map_err(unreadable_metadata)?,
    };
    if value.is_some_and(|value| depth(&value) > DEEPEST_METADATA) {
        return Err(unreadable_metadata(format_args!(
            "more than {DEEPEST_METADATA} levels of arrays and objects"
        )));
    }
    // Line ends in JSON strings are escaped, so these are between values.
    let ends = metadata
        .iter_mut()
        .filter(|byte| matches!(**byte, b'\n' | b'\r'));
    ends.for_each(|byte| *byte = b' ');
    Ok(metadata)
}

/// A snapshot to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct NewSnapshot {
    /// Name of the new snapshot: 1 to 64 characters of a-z, 0-9, - and _.
    #[schemars(extend("pattern" = NAME))]
    pub(crate) name: String,
}

/// Returns the one source that was sent, or an error if there are none or several.
fn only_source(
    sketches: [Option<DocumentSketch>; 3],
    texts: [Option<ContentSource>; 2],
) -> Result<ContentSource, ProblemDetails> {
    let sketches = sketches.into_iter().flatten().map(ContentSource::Sketch);
    let mut sources = sketches.chain(texts.into_iter().flatten());
    match (sources.next(), sources.next()) {
        (Some(source), None) => Ok(source),
        _ => Err(ProblemDetails::invalid(
            "an item has exactly one of text, html, fingerprint, super_shingles and signature",
            "send one of them",
        )),
    }
}

impl RequestItem for ContentItem {
    const UNPACK: Option<fn(&mut PackedReader<'_>) -> Option<Self>> = Some(|from| {
        Some(Self {
            fingerprint: Some(HexBits(from.fingerprint()?.into())),
            ..Self::default()
        })
    });
}

impl ContentItem {
    pub(crate) fn content(mut self) -> Result<RequestContent, ProblemDetails> {
        self.take_content(None)
    }
}

impl RequestItem for NewDocument {
    const UNPACK: Option<fn(&mut PackedReader<'_>) -> Option<Self>> = Some(|from| {
        Some(Self {
            fingerprint: Some(HexBits(from.fingerprint()?.into())),
            id: from.id()?,
            ..Self::default()
        })
    });
}

impl NewDocument {
    /// Returns the content to compare, and the other fields. Lifetimes start at `from`; a document without an expiry of its own gets
    /// `time_to_live`, if there is one.
    pub(crate) fn parts(
        mut self,
        from: UnixMillis,
        time_to_live: Option<Duration>,
    ) -> Result<(RequestContent, DocumentMeta), ProblemDetails> {
        check_id(&self.id)?;
        let own = self
            .ttl_seconds
            .map(|seconds| life(seconds, DOCUMENT_TTL_REMEDY));
        let own = own.transpose()?;
        let expires = match (own, self.expires_ms) {
            (Some(_), Some(_)) => {
                return Err(ProblemDetails::invalid(
                    "an item has at most one of ttl_seconds and expires_ms",
                    "send one of them",
                ));
            }
            // `null` means never; `None` would mean the lifetime of the collection.
            (None, Some(end)) => Some(end.map_or(UnixMillis::NEVER, UnixMillis)),
            (own, None) => own.or(time_to_live).map(|life| from.after(life)),
        };
        // With the id, because it may be a URL that names the server of the document.
        let content = self.take_content(Some(self.id.clone()))?;
        let kept = DocumentMeta {
            id: self.id,
            expires,
            metadata: metadata_bytes(self.metadata)?,
        };
        Ok((content, kept))
    }
}

impl ChunkedItem {
    pub(crate) fn checked(self) -> Result<ChunkedDocument, ProblemDetails> {
        if let Some(id) = &self.id {
            check_id(id)?;
        }
        let content = match (self.text, self.html) {
            (Some(text), None) => Some(ContentSource::Text(text)),
            (None, Some(page)) => Some(ContentSource::Html(page)),
            (None, None) if self.id.is_some() => None,
            _ => {
                return Err(ProblemDetails::invalid(
                    "an item has an id, a text or html, and not both of the latter",
                    "send one of them",
                ));
            }
        };
        let id = self.id;
        let content = content.map(|source| RequestContent::of(source, id.clone(), self.url));
        Ok(ChunkedDocument { id, content })
    }
}

impl RequestItem for ChunkedItem {}

/// Paragraphs to look up.
#[derive(Debug)]
pub(crate) enum ParagraphQuery {
    Of(RequestContent),
    Hashes(Vec<u64>),
}

impl PageItem {
    fn of(&mut self, source: ContentSource) -> ParagraphQuery {
        ParagraphQuery::Of(RequestContent::of(source, self.id.clone(), self.url.take()))
    }

    pub(crate) fn paragraphs(&mut self) -> Result<ParagraphQuery, ProblemDetails> {
        if let Some(id) = &self.id {
            check_id(id)?;
        }
        match (self.text.take(), self.html.take(), self.hashes.take()) {
            (Some(text), None, None) => Ok(self.of(ContentSource::Text(text))),
            (None, Some(page), None) => Ok(self.of(ContentSource::Html(page))),
            (None, None, Some(hashes)) => {
                let hashes = hashes.into_iter().map(|HexNumber(Fingerprint(hash))| hash);
                Ok(ParagraphQuery::Hashes(hashes.collect()))
            }
            _ => Err(ProblemDetails::invalid(
                "an item has exactly one of text, html and hashes",
                "send one of them",
            )),
        }
    }
}

impl RequestItem for PageItem {}

impl RequestItem for DocumentId {
    const UNPACK: Option<fn(&mut PackedReader<'_>) -> Option<Self>> =
        Some(|from| Some(Self { id: from.id()? }));
}

impl DocumentId {
    pub(crate) fn checked(self) -> Result<String, ProblemDetails> {
        check_id(&self.id)?;
        Ok(self.id)
    }
}

impl From<RetainedParts> for KeptParts {
    fn from(keep: RetainedParts) -> Self {
        Self {
            text_hashes: keep.text_hashes,
            texts: keep.texts,
            signatures: keep.signatures,
            paragraphs: keep.paragraphs,
        }
    }
}

impl NewCollection {
    /// Returns the settings, and the parts of the scheme, data that its text only names.
    pub(crate) fn settings(self) -> Result<(CollectionSettings, Vec<SchemePart>), ProblemDetails> {
        let scheme = match self.scheme {
            Some(text) => usable_scheme(&text)?,
            None => default_scheme(),
        };
        let terms = sent_terms(&scheme, self.terms.as_deref())?;
        let lines = sent_boilerplate(&scheme, self.boilerplate.as_deref())?;
        let parts = terms.into_iter().chain(lines).collect();
        let mut settings = CollectionSettings::new(&scheme);
        let form = settings.sketch_form();
        settings.radius =
            checked_distance(form, requested_distance(form, self.radius, self.equal)?)?;
        settings.time_to_live = collection_life(self.ttl_seconds)?;
        settings.pairs = pair_rule(self.within, self.across, self.lengths)?;
        let KeptParts {
            text_hashes,
            texts,
            signatures,
            paragraphs,
        } = self.keep.unwrap_or_default();
        settings.keep = RetainedParts::default()
            .text_hashes(text_hashes)
            .signatures(signatures)
            .paragraphs(paragraphs)
            .texts(texts);
        match self.paragraphs {
            Some(_) if !paragraphs => Err(ProblemDetails::invalid(
                "the collection keeps no paragraphs, but names what ends one",
                "set `keep.paragraphs`, or leave `paragraphs` out",
            )),
            Some(rule) => Ok((settings.paragraphs(rule.into()), parts)),
            None => Ok((settings, parts)),
        }
    }
}

/// Returns the rule for the pairs that a collection compares.
fn pair_rule(
    within: Option<String>,
    across: Option<String>,
    lengths: Option<f64>,
) -> Result<PairRule, ProblemDetails> {
    let named = within.as_ref().or(across.as_ref());
    if let Some(Err(error)) = named.map(|name| name.parse::<Category>()) {
        let remedy = "name a field of records, or `site`";
        return Err(ProblemDetails::invalid(error.to_string(), remedy));
    }
    // 0 would compare everything, which leaving it out says too.
    if let Some(share) = lengths.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
        return Err(ProblemDetails::invalid(
            format!("lengths is {share}, not above 0 and at most 1"),
            "name the share of the longer text's bytes that the shorter one must have, or leave it out",
        ));
    }
    let rule = PairRule::default().length_share(lengths);
    match (within, across) {
        (None, None) => Ok(rule),
        (Some(category), None) => Ok(rule.within(category)),
        (None, Some(category)) => Ok(rule.across(category)),
        (Some(_), Some(_)) => Err(ProblemDetails::invalid(
            "a collection compares within categories or across them, not both",
            "leave out within or across; a search can ask for either with `pairs`",
        )),
    }
}

impl ChangedCollection {
    pub(crate) fn time_to_live(self) -> Result<Option<Duration>, ProblemDetails> {
        collection_life(self.ttl_seconds.flatten())
    }
}

fn collection_life(seconds: Option<u64>) -> Result<Option<Duration>, ProblemDetails> {
    let life = |seconds| life(seconds, COLLECTION_TTL_REMEDY);
    seconds.map(life).transpose()
}

pub(crate) fn check_id(id: &str) -> Result<(), ProblemDetails> {
    lookalike_store::check_id(id).map_err(|error| {
        let remedy = "use another id, such as a hash of a long one";
        ProblemDetails::invalid(error.to_string(), remedy)
    })
}

/// Remedies for an invalid lifetime: first of a document to insert, then of a collection.
pub(crate) const DOCUMENT_TTL_REMEDY: &str =
    "leave it out to use the lifetime of the collection; use delete to remove a document at once";
const COLLECTION_TTL_REMEDY: &str = "send null for documents that never expire";

/// Returns a lifetime of `seconds`, or an error if it is out of range.
pub(crate) fn life(seconds: u64, remedy: &'static str) -> Result<Duration, ProblemDetails> {
    if (1..=MAX_TTL_SECONDS).contains(&seconds) {
        return Ok(Duration::from_secs(seconds));
    }
    Err(ProblemDetails::invalid(
        format!("ttl_seconds is {seconds}, not 1 to {MAX_TTL_SECONDS}"),
        remedy,
    ))
}
