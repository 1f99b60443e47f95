//! Anchors and links of a record, which become features in addition to those of the text.

use lookalike::{Anchor, DocumentFields};
use serde::Deserialize;

use crate::field_value_error::FieldValueError;

/// An anchor: its text alone, or with the words around it.
#[derive(Deserialize)]
#[serde(untagged)]
enum AnchorValue {
    Text(String),
    Around {
        text: String,
        #[serde(default)]
        before: String,
        #[serde(default)]
        after: String,
    },
}

impl From<AnchorValue> for Anchor {
    fn from(value: AnchorValue) -> Self {
        match value {
            AnchorValue::Text(text) => Self {
                text,
                ..Self::default()
            },
            AnchorValue::Around {
                text,
                before,
                after,
            } => Self {
                text,
                before,
                after,
            },
        }
    }
}

/// Parses the values of a field, given as JSON: a list or a single one. Returns no values if the field is absent or null.
fn values<'de, T: Deserialize<'de>>(
    json: Option<&'de str>,
    error: FieldValueError,
) -> Result<Vec<T>, FieldValueError> {
    let Some(json) = json else {
        return Ok(Vec::new());
    };
    let several = match json.trim_start().starts_with('[') {
        true => serde_json::from_str(json),
        false => serde_json::from_str::<Option<T>>(json).map(Vec::from_iter),
    };
    // The variants of an anchor are tried in turn, so the message of the last one would mislead; the caller's error is returned instead.
    several.map_err(|_| error)
}

/// Parses anchors, `in_links` and `out_links` as from the fields of a record, each given as JSON, or `None`.
///
/// # Errors
/// Returns a [`FieldValueError`] if one of them has the wrong type.
pub fn parse_document_fields(
    anchors: Option<&str>,
    in_links: Option<&str>,
    out_links: Option<&str>,
) -> Result<DocumentFields, FieldValueError> {
    let anchors: Vec<AnchorValue> = values(anchors, FieldValueError::Anchors)?;
    let links = |json, name| values(json, FieldValueError::Links(name));
    Ok(DocumentFields {
        anchors: anchors.into_iter().map(Anchor::from).collect(),
        in_links: links(in_links, "in_links")?,
        out_links: links(out_links, "out_links")?,
    })
}
