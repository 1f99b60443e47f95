//! Ids as text, read from JSON values.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::field_value_error::FieldValueError;
use crate::json::kind_of;
use crate::surrogate;

/// An id in JSON: the content of a string, or a number with its digits as written, however many. Can only be deserialized from text in memory.
///
/// ```
/// use lookalike_corpus::JsonId;
///
/// let ids: Vec<JsonId<'_>> = serde_json::from_str(r#"["a", 18446744073709551617, 1e3]"#)?;
/// let ids: Vec<_> = ids.iter().map(|JsonId(id)| id.as_ref()).collect();
/// assert_eq!(ids, ["a", "18446744073709551617", "1e3"]);
/// assert!(serde_json::from_str::<JsonId<'_>>("true").is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonId<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonId<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let written = <&RawValue>::deserialize(json)?;
        let (id, _) = id_text(written.get()).map_err(D::Error::custom)?;
        Ok(Self(id))
    }
}

/// Returns an id as text: the content of a string, or a number as written; and whether lone surrogates were replaced.
pub(crate) fn id_text(json: &str) -> Result<(Cow<'_, str>, bool), FieldValueError> {
    let kind = match json.as_bytes().first() {
        Some(b'"') if json.len() > 1 && json.ends_with('"') => return Ok(string_text(json)),
        Some(b'-' | b'0'..=b'9') => return Ok((Cow::Borrowed(json), false)),
        Some(b'{' | b'[' | b't' | b'f' | b'n') => kind_of(json),
        _ => "no JSON",
    };
    Err(FieldValueError::Id(kind))
}

/// Decodes a JSON string that is known to be well formed, except for lone surrogates. Also returns whether some were replaced.
pub(crate) fn string_text(json: &str) -> (Cow<'_, str>, bool) {
    // True for nearly all ids, which are then borrowed. The JSON was checked, so the quotes are its first and last byte.
    if memchr::memchr(b'\\', json.as_bytes()).is_none() {
        return (Cow::Borrowed(&json[1..json.len() - 1]), false);
    }
    match serde_json::from_str(json) {
        Ok(text) => (Cow::Owned(text), false),
        Err(_) => {
            let mended = surrogate::replace_lone(json);
            let text = serde_json::from_str(&mended).unwrap_or_else(|_| mended.into_owned());
            (Cow::Owned(text), true)
        }
    }
}
