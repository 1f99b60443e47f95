//! The walk through any object, with serde_json.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::found::{FoundFields, TextCapture};
use super::selection::{FieldNode, FieldSelection};

/// Finds the wanted fields of any object.
pub(super) fn walk<'de>(
    line: &'de str,
    selection: &FieldSelection,
    found: &mut FoundFields<'de, '_>,
) -> Result<(), serde_json::Error> {
    found.clear(selection.root.below);
    let mut json = serde_json::Deserializer::from_str(line);
    // Recursion as deep as the field paths, at most 32; below that, `IgnoredAny` and serde_json's own limit of 128 apply.
    json.deserialize_any(Value {
        node: &selection.root,
        found,
    })?;
    json.end()
}

/// Takes one value for a node: as JSON text, as decoded text, or as an object to descend into.
struct Value<'n, 'f, 'de, 'b> {
    node: &'n FieldNode,
    found: &'f mut FoundFields<'de, 'b>,
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_, 'de, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        // Of two fields with the same name the last counts, as in JavaScript and Python. Values found below the first one are cleared with it.
        self.found.clear(self.node.below);
        if self.node.raw == 0 {
            return json.deserialize_any(self);
        }
        let raw: &'de RawValue = de::Deserialize::deserialize(json)?;
        self.found.set_raw(self.node.raw, raw.get());
        if self.node.text == 0 && self.node.children.is_empty() {
            return Ok(());
        }
        // A value that is wanted both as JSON and as text, or that contains wanted fields, is read twice. That is rare, and at most twice per level.
        let mut again = serde_json::Deserializer::from_str(raw.get());
        again.deserialize_any(self).map_err(de::Error::custom)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_, 'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<(), E> {
        self.found
            .set_text(self.node.text, TextCapture::Borrowed(text));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.found.set_buffer(self.node.text, text);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.found.set_text(self.node.text, TextCapture::Null);
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.wrong("a boolean")
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.wrong("a number")
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.wrong("a number")
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.wrong("a number")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        // The parser wants every item to be read.
        while items.next_element::<IgnoredAny>()?.is_some() {}
        self.wrong("an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(child) = map.next_key_seed(FieldNameSeed(self.node))? {
            match child {
                Some(node) => map.next_value_seed(Value {
                    node,
                    found: &mut *self.found,
                })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        self.wrong("an object")
    }
}

impl Value<'_, '_, '_, '_> {
    fn wrong<E>(self, kind: &'static str) -> Result<(), E> {
        self.found
            .set_text(self.node.text, TextCapture::WrongType(kind));
        Ok(())
    }
}

/// Looks a name up among the children of a node.
struct FieldNameSeed<'n>(&'n FieldNode);

impl<'de, 'n> DeserializeSeed<'de> for FieldNameSeed<'n> {
    type Value = Option<&'n FieldNode>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'n> Visitor<'_> for FieldNameSeed<'n> {
    type Value = Option<&'n FieldNode>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.find(name.as_bytes()))
    }
}
