//! Anchors and links of a record, which become features beside those of the text.

use lookalike::{Anchor, DocumentFields};
use serde::Deserialize;

use crate::json::{FieldSlot, FoundFields};

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

/// An anchor as its text alone, or with what stands around it.
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

/// The values of a field; none when it is absent or null.
fn values<'de, T: Deserialize<'de>>(
    found: &FoundFields<'de, '_>,
    slot: FieldSlot,
    reason: &str,
) -> Result<Vec<T>, String> {
    let json = found.raw(slot).unwrap_or("null");
    // Untagged values are tried one after the other, and the message of the last try would mislead; the reason
    // is the caller's.
    let several: Result<Option<OneOrMany<T>>, _> = serde_json::from_str(json);
    match several {
        Ok(several) => Ok(several.map_or_else(Vec::new, Vec::from)),
        Err(_) => Err(reason.to_owned()),
    }
}

/// The fields of a record that were asked for.
///
/// # Errors
/// The reason when one of them is of another kind.
pub(crate) fn fields_of(found: &FoundFields<'_, '_>) -> Result<DocumentFields, String> {
    let anchors: Vec<AnchorValue> = values(
        found,
        FieldSlot::Anchors,
        "the field anchors must hold texts, or objects with text, before and after",
    )?;
    let links = |slot, name: &str| {
        let reason = format!("the field {name} must hold addresses");
        values(found, slot, &reason)
    };
    Ok(DocumentFields {
        anchors: anchors.into_iter().map(Anchor::from).collect(),
        in_links: links(FieldSlot::InLinks, "in_links")?,
        out_links: links(FieldSlot::OutLinks, "out_links")?,
    })
}
