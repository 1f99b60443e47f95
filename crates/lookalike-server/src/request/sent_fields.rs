//! Anchors and links of a document, read only where the scheme of the collection looks at them.

use lookalike::{Anchor, DocumentFields};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::problem::ProblemDetails;

/// A link to a document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Anchor")]
pub(crate) struct AnchorItem {
    /// Text of the link.
    text: String,
    /// Text before it.
    #[serde(default)]
    before: String,
    /// Text behind it.
    #[serde(default)]
    after: String,
}

/// The fields beside the text, as JSON: a body of many small strings would take many times its bytes.
#[derive(Debug, Default)]
pub(crate) struct SentFields {
    pub(crate) anchors: Option<Box<RawValue>>,
    pub(crate) in_links: Option<Box<RawValue>>,
    pub(crate) out_links: Option<Box<RawValue>>,
}

impl SentFields {
    /// Reads them.
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

/// A list that was sent; empty where none was.
fn list<T: DeserializeOwned>(
    name: &str,
    json: Option<&RawValue>,
) -> Result<Vec<T>, ProblemDetails> {
    let read = json.map_or(Ok(None), |json| serde_json::from_str(json.get()));
    let read = read.map_err(|error| {
        let remedy = "see / or /openapi.json of the service for the fields of each operation";
        ProblemDetails::invalid(
            format!("{name} is not what this operation takes: {error}"),
            remedy,
        )
    });
    Ok(read?.unwrap_or_default())
}
