//! Extraction of the few wanted fields from one JSON object, without building the rest.
//!
//! The object is walked once, by [`flat`] if it is of the common kind, otherwise by serde_json ([`any_line`]). The field paths form a small tree of
//! wanted names; of all other values only the end is searched. Strings without escapes are borrowed from the line, others are written to buffers that
//! live as long as the parser.

use std::borrow::Cow;

mod any_line;
mod flat;
mod found;
mod parts;
mod selection;
mod unescape;

pub(crate) use found::{FoundFields, TextBuffers, TextCapture};
#[cfg(feature = "parquet")]
pub(crate) use parts::JsonText;
pub(crate) use parts::{for_each_item, for_each_member, kind_of};
pub(crate) use selection::{FieldSelection, FieldSlot};

/// Finds the wanted fields of the object in `line`. The caller has checked that the line holds an object.
///
/// # Errors
/// Fails if the line is not JSON, or continues after the object.
pub(crate) fn pick<'de, 'b>(
    line: &'de str,
    selection: &FieldSelection,
    buffers: &'b mut TextBuffers,
) -> Result<FoundFields<'de, 'b>, serde_json::Error> {
    let mut found = FoundFields::new(buffers);
    // If the first walk gives up, the line is read again from its start, which clears the fields that were set.
    if flat::pick(line, selection, &mut found).is_none() {
        any_line::walk(line, selection, &mut found)?;
    }
    Ok(found)
}
/// Returns a number as the name of a category or server: 1, 1.0 and 1e0 are the same, as in a column of a table.
pub(crate) fn plain_number(json: &str) -> Cow<'_, str> {
    if json.bytes().all(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(json);
    }
    match json.parse::<f64>() {
        Ok(0.0) => Cow::Borrowed("0"),
        // Rust formats the shortest digits of this number, without an exponent.
        Ok(number) if number.is_finite() && !is_long_integer(json) => number.to_string().into(),
        _ => Cow::Borrowed(json),
    }
}

/// Returns true for an integer that a double may not represent.
fn is_long_integer(json: &str) -> bool {
    let digits = json.trim_start_matches('-');
    // A double represents every integer of 15 digits.
    digits.len() > 15 && digits.bytes().all(|byte| byte.is_ascii_digit())
}
