//! Anchors and links of a record, which become features in addition to those of the text.

use lookalike::{Anchor, DocumentFields};
use serde::Deserialize;

use crate::field_value_error::FieldValueError;

/// One value or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    List(Vec<T>),
}

impl<T> From<OneOrMany<T>> for Vec<T> {
    fn from(several: OneOrMany<T>) -> Self {
        match several {
            OneOrMany::One(one) => vec![one],
            OneOrMany::List(list) => list,
        }
    }
}

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

/// Parses the values of a field, given as JSON. Returns no values if the field is absent or null.
fn values<'de, T: Deserialize<'de>>(
    json: Option<&'de str>,
    error: FieldValueError,
) -> Result<Vec<T>, FieldValueError> {
    let Some(json) = json else {
        return Ok(Vec::new());
    };
    // Untagged variants are tried in turn, so the message of the last one would mislead; the caller's error is returned instead.
    let several: Result<Option<OneOrMany<T>>, _> = serde_json::from_str(json);
    match several {
        Ok(several) => Ok(several.map_or_else(Vec::new, Vec::from)),
        Err(_) => Err(error),
    }
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
