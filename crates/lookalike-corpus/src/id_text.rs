//! JSON values as the texts that documents are named by.

use std::borrow::Cow;

use crate::field_value_error::FieldValueError;
use crate::surrogate;

/// An id as text: a string's content, a number as it is written.
pub(crate) fn id_text(json: &str) -> Result<(Cow<'_, str>, bool), FieldValueError> {
    let kind = match json.as_bytes().first() {
        Some(b'"') => return Ok(string_text(json)),
        Some(b'-' | b'0'..=b'9') => return Ok((Cow::Borrowed(json), false)),
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        _ => "a boolean",
    };
    Err(FieldValueError::Id(kind))
}

/// Decodes a JSON string that is known to be well formed, save for lone surrogates.
pub(crate) fn string_text(json: &str) -> (Cow<'_, str>, bool) {
    // Nearly all ids, which are borrowed then. The JSON was checked, so the quotes are its first and last byte.
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
