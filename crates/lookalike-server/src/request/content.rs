//! The fields of bodies.

use std::time::Duration;

use lookalike::Fingerprint;
use lookalike_store::{CollectionSettings, StoredScheme, Time};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::problem::Problem;
use crate::sketch::usable;

/// Longest id in bytes.
const LONGEST_ID: usize = 2048;
/// Most bytes of metadata, as JSON.
const MOST_METADATA: usize = 1024;
/// Longest time to live: a hundred years of 365 days, in seconds.
const LONGEST_LIFE: u64 = 100 * 365 * 24 * 3600;

/// What is compared.
#[derive(Debug)]
pub(crate) enum Content {
    Fingerprint(Fingerprint),
    Text(String),
    Html(String),
}

/// A content to be looked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Probe {
    fingerprint: Option<String>,
    text: Option<String>,
    html: Option<String>,
}

/// A document to be kept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    id: String,
    fingerprint: Option<String>,
    text: Option<String>,
    html: Option<String>,
    ttl_seconds: Option<u64>,
    metadata: Option<Box<RawValue>>,
}

/// What is kept of an [`Entry`] beside its content.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) id: String,
    pub(crate) expires: Option<Time>,
    pub(crate) metadata: Vec<u8>,
}

/// The document that is meant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Id {
    id: String,
}

/// A collection to be made.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewCollection {
    scheme: Option<String>,
    radius: Option<u32>,
    ttl_seconds: Option<u64>,
}

impl Content {
    fn of(
        fingerprint: Option<String>,
        text: Option<String>,
        html: Option<String>,
    ) -> Result<Self, Problem> {
        match (fingerprint, text, html) {
            (Some(digits), None, None) => digits.parse().map(Self::Fingerprint).map_err(|error| {
                Problem::invalid(format!("{error}"), "send 16 hexadecimal digits as a string")
            }),
            (None, Some(text), None) => Ok(Self::Text(text)),
            (None, None, Some(page)) => Ok(Self::Html(page)),
            _ => Err(Problem::invalid(
                "an item has exactly one of fingerprint, text and html",
                "send one of them",
            )),
        }
    }
}

impl Probe {
    pub(crate) fn content(self) -> Result<Content, Problem> {
        Content::of(self.fingerprint, self.text, self.html)
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
            expires: life.map(|life| Time(now.0.saturating_add(life.as_millis() as u64))),
            metadata,
        };
        Ok((Content::of(self.fingerprint, self.text, self.html)?, kept))
    }
}

impl Id {
    pub(crate) fn checked(self) -> Result<String, Problem> {
        check_id(&self.id)?;
        Ok(self.id)
    }
}

impl NewCollection {
    pub(crate) fn settings(self) -> Result<CollectionSettings, Problem> {
        let scheme = match self.scheme {
            Some(text) => usable(&text)?,
            None => lookalike::Scheme {
                sketch: lookalike::Sketch::Simhash,
                ..lookalike::Scheme::default()
            },
        };
        let mut settings = CollectionSettings::new(&scheme);
        settings.scheme = StoredScheme::from(&scheme);
        settings.radius = self.radius.unwrap_or(settings.radius);
        settings.time_to_live = self.ttl_seconds.map(life).transpose()?;
        Ok(settings)
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
