//! The walk through any object, with serde_json.

use std::borrow::Cow;

use super::found::{FoundFields, TextCapture};
use super::parts::{JsonText, for_each_member, kind_of};
use super::selection::{FieldNode, FieldSelection};

/// Finds the wanted fields of any object.
pub(super) fn walk<'de>(
    line: &'de str,
    selection: &FieldSelection,
    found: &mut FoundFields<'de, '_>,
) -> Result<(), serde_json::Error> {
    found.clear(selection.root.below);
    take_members(&selection.root, line, found)
}

/// Takes the wanted fields of an object. Recursion as deep as the field paths, at most 32; each level is scanned once more.
fn take_members<'de>(
    node: &FieldNode,
    object: &'de str,
    found: &mut FoundFields<'de, '_>,
) -> Result<(), serde_json::Error> {
    for_each_member(object, |name, value| match node.find(name.as_bytes()) {
        Some(child) => take(child, value, found),
        None => Ok(()),
    })
}

/// Takes one value for a node: as JSON text, as decoded text, or as an object to descend into.
fn take<'de>(
    node: &FieldNode,
    json: &'de str,
    found: &mut FoundFields<'de, '_>,
) -> Result<(), serde_json::Error> {
    // Of two fields with the same name the last counts, as in JavaScript and Python. Values found below the first one are cleared with it.
    found.clear(node.below);
    found.set_raw(node.raw, Some(json));
    if json.starts_with('{') && !node.children.is_empty() {
        take_members(node, json, found)?;
    }
    if node.text == 0 {
        return Ok(());
    }
    let text = match json.as_bytes().first() {
        Some(b'"') => match serde_json::from_str(json)? {
            JsonText(Cow::Borrowed(text)) => TextCapture::Borrowed(text),
            JsonText(Cow::Owned(text)) => {
                found.set_buffer(node.text, &text);
                return Ok(());
            }
        },
        Some(b'n') => TextCapture::Null,
        _ => TextCapture::WrongType(kind_of(json)),
    };
    found.set_text(node.text, text);
    Ok(())
}
