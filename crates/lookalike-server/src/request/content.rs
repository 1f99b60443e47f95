//! The fields of bodies.

use std::time::Duration;

use lookalike::Fingerprint;
use lookalike_store::{CollectionSettings, Keep, LARGEST_RADIUS, StoredScheme, Time};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::items::Item;
use super::packed::Unpacker;
use crate::problem::Problem;
use crate::sketch::{default_scheme, usable};

/// Longest id in bytes.
const LONGEST_ID: usize = 2048;
/// Most bytes of metadata, as JSON.
const MOST_METADATA: usize = 1024;
/// Longest time to live: a hundred years of 365 days, in seconds.
const LONGEST_LIFE: u64 = 100 * 365 * 24 * 3600;

/// Most hashes of paragraphs that are asked for at once.
pub(crate) const HASHES: usize = 10_000;
/// What matches 16 hexadecimal digits.
pub(crate) const HEX: &str = "^[0-9a-fA-F]{16}$";
/// What matches names of collections and snapshots.
pub(crate) const NAME: &str = "^[a-z0-9_-]{1,64}$";

/// Adds to the schema of an object that it has exactly one of some fields; `null` is as good as none.
fn exactly_one_of(schema: &mut Schema, fields: [(&str, &str); 3]) {
    let has = |(name, kind): (&str, &str)| json!({"required": [name], "properties": {name: {"type": kind}}});
    let [a, b, c] = fields.map(has);
    let none = json!({"not": {"anyOf": [a, b, c]}});
    let two = [[&a, &b], [&a, &c], [&b, &c]].map(|two| json!({"allOf": two}));
    let [ab, ac, bc] = two;
    schema.insert("not".to_owned(), json!({"anyOf": [none, ab, ac, bc]}));
}

fn exactly_one_content(schema: &mut Schema) {
    let fields = ["fingerprint", "text", "html"].map(|name| (name, "string"));
    exactly_one_of(schema, fields);
}

fn exactly_one_part(schema: &mut Schema) {
    let fields = [("text", "string"), ("html", "string"), ("hashes", "array")];
    exactly_one_of(schema, fields);
}

/// A fingerprint as bodies have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digits(Fingerprint);

impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Digits;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("16 hexadecimal digits as a string")
            }

            fn visit_str<E: serde::de::Error>(self, digits: &str) -> Result<Digits, E> {
                digits.parse().map(Digits).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// What is compared.
#[derive(Debug)]
pub(crate) enum Content {
    Fingerprint(Fingerprint),
    Text(String),
    Html(String),
}

/// A content to be looked for: exactly one of the three.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Content", transform = exactly_one_content)]
pub(crate) struct Probe {
    /// 16 hexadecimal digits.
    #[schemars(with = "Option<String>", extend("pattern" = HEX))]
    fingerprint: Option<Digits>,
    /// A text.
    text: Option<String>,
    /// A page, of which the text is extracted.
    html: Option<String>,
}

/// A document to be kept: an id and exactly one of fingerprint, text and html.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewDocument", transform = exactly_one_content)]
pub(crate) struct Entry {
    /// 1 to 2048 bytes in UTF-8.
    #[schemars(length(min = 1, max = LONGEST_ID))]
    id: String,
    /// 16 hexadecimal digits.
    #[schemars(with = "Option<String>", extend("pattern" = HEX))]
    fingerprint: Option<Digits>,
    /// A text.
    text: Option<String>,
    /// A page, of which the text is extracted.
    html: Option<String>,
    /// How long it lives: 1 second to a hundred years; else as long as the collection says.
    #[schemars(range(min = 1, max = LONGEST_LIFE))]
    ttl_seconds: Option<u64>,
    /// Anything, at most 1024 bytes of JSON; given back with neighbours.
    #[schemars(with = "Option<serde_json::Value>")]
    metadata: Option<Box<RawValue>>,
}

/// A page to be looked at paragraph by paragraph: a text or a page, or ready hashes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = exactly_one_part)]
pub(crate) struct Page {
    /// Documents of this id are left out: a page that is crawled again is not told of itself.
    #[schemars(length(min = 1, max = LONGEST_ID))]
    pub(crate) id: Option<String>,
    text: Option<String>,
    html: Option<String>,
    /// Hashes that an earlier answer gave, 16 hexadecimal digits each; at most 10,000 in a request.
    #[schemars(with = "Option<Vec<String>>", length(max = HASHES), inner(regex(pattern = HEX)))]
    hashes: Option<Vec<Digits>>,
}

/// What is kept of an [`Entry`] beside its content.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) id: String,
    pub(crate) expires: Option<Time>,
    pub(crate) metadata: Vec<u8>,
}

/// The document that is meant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DocumentId")]
pub(crate) struct Id {
    /// 1 to 2048 bytes in UTF-8.
    #[schemars(length(min = 1, max = LONGEST_ID))]
    id: String,
}

/// A collection to be made.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewCollection {
    /// Whole text of a scheme; the default is that of `lookalike fingerprint`.
    scheme: Option<String>,
    /// Largest distance of a query: 0 to 16, 3 unless told otherwise.
    #[schemars(range(max = LARGEST_RADIUS))]
    radius: Option<u32>,
    /// How long documents live that are inserted without a time of their own; for ever, without it.
    #[schemars(range(min = 1, max = LONGEST_LIFE))]
    ttl_seconds: Option<u64>,
    /// What is kept of documents, beside id, fingerprint, end and metadata; nothing, without it.
    keep: Option<KeptParts>,
}

/// Which parts of documents are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KeptParts {
    /// Texts: neighbours can be verified exactly, and shown with their differences.
    pub(crate) texts: bool,
    /// Signatures of 128 minima: the resemblance of neighbours can be estimated, at 512 bytes a document.
    pub(crate) signatures: bool,
    /// Hashes of paragraphs: each can be asked for.
    pub(crate) paragraphs: bool,
}

/// What is to be changed of a collection.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangedCollection {
    /// How long documents live that are inserted from now on without a time of their own; `null`: for ever.
    #[serde(deserialize_with = "there")]
    #[schemars(with = "Option<u64>", required, range(min = 1, max = LONGEST_LIFE))]
    ttl_seconds: Option<Option<u64>>,
}

/// A field that is there, `null` or not.
fn there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A snapshot to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSnapshot {
    /// A new name: 1 to 64 of a-z, 0-9, - and _.
    #[schemars(extend("pattern" = NAME))]
    pub(crate) name: String,
}

impl Content {
    /// Bytes of its text or page.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fingerprint(_) => 0,
            Self::Text(text) | Self::Html(text) => text.len(),
        }
    }

    fn of(
        fingerprint: Option<Digits>,
        text: Option<String>,
        html: Option<String>,
    ) -> Result<Self, Problem> {
        match (fingerprint, text, html) {
            (Some(Digits(code)), None, None) => Ok(Self::Fingerprint(code)),
            (None, Some(text), None) => Ok(Self::Text(text)),
            (None, None, Some(page)) => Ok(Self::Html(page)),
            _ => Err(Problem::invalid(
                "an item has exactly one of fingerprint, text and html",
                "send one of them",
            )),
        }
    }
}

impl Item for Probe {
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        let fingerprint = Some(Digits(from.fingerprint()?));
        let (text, html) = (None, None);
        Some(Self {
            fingerprint,
            text,
            html,
        })
    }
}

impl Probe {
    pub(crate) fn content(self) -> Result<Content, Problem> {
        Content::of(self.fingerprint, self.text, self.html)
    }
}

impl Item for Entry {
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        let fingerprint = Some(Digits(from.fingerprint()?));
        Some(Self {
            id: from.id()?,
            fingerprint,
            text: None,
            html: None,
            ttl_seconds: None,
            metadata: None,
        })
    }
}

impl Entry {
    /// What is compared, and what else is kept.
    pub(crate) fn parts(self, now: Time) -> Result<(Content, Kept), Problem> {
        check_id(&self.id)?;
        let life = self.ttl_seconds.map(life).transpose()?;
        let metadata = self
            .metadata
            .map_or(Vec::new(), |value| value.get().as_bytes().to_vec());
        if metadata.len() > MOST_METADATA {
            let bytes = metadata.len();
            return Err(Problem::invalid(
                format!("the metadata have {bytes} bytes; the most are {MOST_METADATA}"),
                "keep them elsewhere under the document's id",
            ));
        }
        let kept = Kept {
            id: self.id,
            expires: life.map(|life| now.after(life)),
            metadata,
        };
        Ok((Content::of(self.fingerprint, self.text, self.html)?, kept))
    }
}

/// What is looked for, paragraph by paragraph.
#[derive(Debug)]
pub(crate) enum Paragraphs {
    Of(Content),
    Hashes(Vec<u64>),
}

impl Page {
    pub(crate) fn paragraphs(&mut self) -> Result<Paragraphs, Problem> {
        if let Some(id) = &self.id {
            check_id(id)?;
        }
        match (self.text.take(), self.html.take(), self.hashes.take()) {
            (Some(text), None, None) => Ok(Paragraphs::Of(Content::Text(text))),
            (None, Some(page), None) => Ok(Paragraphs::Of(Content::Html(page))),
            (None, None, Some(hashes)) => {
                let hashes = hashes.into_iter().map(|Digits(Fingerprint(hash))| hash);
                Ok(Paragraphs::Hashes(hashes.collect()))
            }
            _ => Err(Problem::invalid(
                "an item has exactly one of text, html and hashes",
                "send one of them",
            )),
        }
    }
}

impl Item for Page {
    /// Pages have no compact form.
    fn unpack(_: &mut Unpacker<'_>) -> Option<Self> {
        None
    }
}

impl Item for Id {
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        Some(Self { id: from.id()? })
    }
}

impl Id {
    pub(crate) fn checked(self) -> Result<String, Problem> {
        check_id(&self.id)?;
        Ok(self.id)
    }
}

impl From<Keep> for KeptParts {
    fn from(keep: Keep) -> Self {
        let Keep {
            signatures,
            paragraphs,
            texts,
        } = keep;
        Self {
            texts,
            signatures,
            paragraphs,
        }
    }
}

impl NewCollection {
    pub(crate) fn settings(self) -> Result<CollectionSettings, Problem> {
        let scheme = match self.scheme {
            Some(text) => usable(&text)?,
            None => default_scheme(),
        };
        let mut settings = CollectionSettings::new(&scheme);
        settings.scheme = StoredScheme::from(&scheme);
        settings.radius = self.radius.unwrap_or(settings.radius);
        settings.time_to_live = self.ttl_seconds.map(life).transpose()?;
        let KeptParts {
            texts,
            signatures,
            paragraphs,
        } = self.keep.unwrap_or_default();
        settings.keep = Keep {
            signatures,
            paragraphs,
            texts,
        };
        Ok(settings)
    }
}

impl ChangedCollection {
    pub(crate) fn time_to_live(self) -> Result<Option<Duration>, Problem> {
        self.ttl_seconds.flatten().map(life).transpose()
    }
}

fn check_id(id: &str) -> Result<(), Problem> {
    if (1..=LONGEST_ID).contains(&id.len()) {
        return Ok(());
    }
    let bytes = id.len();
    Err(Problem::invalid(
        format!("an id has 1 to {LONGEST_ID} bytes, not {bytes}"),
        "use another id, such as a hash of a long one",
    ))
}

fn life(seconds: u64) -> Result<Duration, Problem> {
    if (1..=LONGEST_LIFE).contains(&seconds) {
        return Ok(Duration::from_secs(seconds));
    }
    Err(Problem::invalid(
        format!("ttl_seconds is {seconds}, not 1 to {LONGEST_LIFE}"),
        "leave it out for a document that lives as the collection says; use delete for one that is to go at once",
    ))
}
