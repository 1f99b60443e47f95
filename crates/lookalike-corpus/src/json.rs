//! The few wanted fields out of one JSON object, without building the rest.
//!
//! The object is walked once, by [`flat`] if it is of the common kind, else by serde_json ([`any_line`]). Which names matter is a small tree made from the field
//! paths; everything else is skipped at the price of finding its end. Strings without escapes are
//! borrowed from the line, others are put into buffers that live as long as the parser.

mod any_line;
mod flat;
mod found;
mod selection;
mod unescape;

pub(crate) use found::{FoundFields, TextBuffers, TextCapture};
pub(crate) use selection::{FieldSelection, FieldSlot};

/// Finds the wanted fields of the object that `line` holds, whose own type the caller has checked.
///
/// # Errors
/// When the line is not JSON, or goes on after it.
pub(crate) fn pick<'de, 'b>(
    line: &'de str,
    selection: &FieldSelection,
    buffers: &'b mut TextBuffers,
) -> Result<FoundFields<'de, 'b>, serde_json::Error> {
    let mut found = FoundFields::new(buffers);
    // A line that is given up is read a second time from its beginning, which clears what the first walk has
    // set.
    if flat::pick(line, selection, &mut found).is_none() {
        any_line::walk(line, selection, &mut found)?;
    }
    Ok(found)
}
