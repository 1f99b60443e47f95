//! Anchors and links of a document, which are only parsed if the scheme of the collection uses them.

use lookalike::{Anchor, DocumentFields};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::fields_by_name::FieldsByName;
use crate::problem::ProblemDetails;

/// A link to a document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "Anchor")]
pub(crate) struct AnchorItem {
    /// Text of the link.
    text: String,
    /// Text before it.
    #[serde(default)]
    before: String,
    /// Text after it.
    #[serde(default)]
    after: String,
}

/// The fields besides the text, as unparsed JSON: many small strings would take many times the memory of the body.
#[derive(Debug, Default)]
pub(crate) struct SentFields {
    pub(crate) anchors: Option<Box<RawValue>>,
    pub(crate) in_links: Option<Box<RawValue>>,
    pub(crate) out_links: Option<Box<RawValue>>,
}

impl SentFields {
    /// Parses the fields.
    pub(crate) fn read(&self) -> Result<DocumentFields, ProblemDetails> {
        let anchors: Vec<AnchorItem> = list("anchors", self.anchors.as_deref())?;
        let anchor = |item: AnchorItem| Anchor {
            text: item.text,
            before: item.before,
            after: item.after,
        };
        Ok(DocumentFields {
            anchors: anchors.into_iter().map(anchor).collect(),
            in_links: list("in_links", self.in_links.as_deref())?,
            out_links: list("out_links", self.out_links.as_deref())?,
        })
    }
}

/// Parses a list; empty if none was sent.
fn list<T: DeserializeOwned>(
    name: &str,
    json: Option<&RawValue>,
) -> Result<Vec<T>, ProblemDetails> {
    let read = json.map_or(Ok(None), |json| serde_json::from_str(json.get()));
    let read: Result<Option<Vec<FieldsByName<T>>>, _> = read.map_err(|error| {
        let remedy = "see / or /openapi.json of the service for the fields of each operation";
        ProblemDetails::invalid(
            format!("{name} is not what this operation takes: {error}"),
            remedy,
        )
    });
    let items = read?.unwrap_or_default().into_iter();
    Ok(items.map(|FieldsByName(item)| item).collect())
}
