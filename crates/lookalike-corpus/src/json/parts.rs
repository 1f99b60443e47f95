//! Walks through JSON values one level at a time, without building a tree, which would take up to forty times their bytes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A string, borrowed if it has no escapes.
#[derive(Deserialize)]
pub(crate) struct JsonText<'j>(#[serde(borrow)] pub(crate) Cow<'j, str>);

/// Calls `take` with the name and the value of each member of an object, in order, until it fails.
///
/// # Errors
/// Fails if the text is not a JSON object, and with the error of `take`.
pub(crate) fn for_each_member<'j>(
    json: &'j str,
    mut take: impl FnMut(&str, &'j str) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    let mut taken = Ok(());
    let mut walk = serde_json::Deserializer::from_str(json);
    walk.deserialize_map(JsonParts(&mut |name, value| {
        if taken.is_ok() {
            taken = take(name, value);
        }
    }))?;
    walk.end()?;
    taken
}

/// Calls `take` with each item of a list, in order, until it fails.
///
/// # Errors
/// Fails if the text is not a JSON list, and with the error of `take`.
pub(crate) fn for_each_item<'j>(
    json: &'j str,
    mut take: impl FnMut(&'j str) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    let mut taken = Ok(());
    let mut walk = serde_json::Deserializer::from_str(json);
    walk.deserialize_seq(JsonParts(&mut |_, item| {
        if taken.is_ok() {
            taken = take(item);
        }
    }))?;
    walk.end()?;
    taken
}

/// Returns the type of a JSON value in words, by its first byte.
pub(crate) fn kind_of(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Takes the members of an object, or the items of a list, which have no names. Each is only scanned for its end.
struct JsonParts<'f, 'j>(&'f mut dyn FnMut(&str, &'j str));

impl<'j> Visitor<'j> for JsonParts<'_, 'j> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object or list")
    }

    fn visit_map<A: MapAccess<'j>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some((JsonText(name), value)) = members.next_entry::<_, &'j RawValue>()? {
            (self.0)(&name, value.get());
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'j>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<&'j RawValue>()? {
            (self.0)("", item.get());
        }
        Ok(())
    }
}
