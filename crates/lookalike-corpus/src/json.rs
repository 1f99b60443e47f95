//! The few wanted fields out of one JSON object, without building the rest.
//!
//! The object is walked once, by [`flat`] if it is of the common kind, else by serde_json. Which names matter is a small tree made from the field
//! paths; everything else is skipped at the price of finding its end. Strings without escapes are
//! borrowed from the line, others are put into buffers that live as long as the parser.

mod flat;
mod unescape;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

use crate::options::{FieldPath, InputOptions};
use unescape::Buffer;

/// Values that a record may need, each from a path of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Id = 0,
    Url = 1,
    Rank = 2,
    Category = 3,
    Anchors = 4,
    InLinks = 5,
    OutLinks = 6,
    Text = 7,
    Html = 8,
}

const RAW_SLOTS: usize = 7;
const TEXT_SLOTS: usize = 2;

/// Which fields to pick, as a tree of names.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    children: Vec<(String, Node)>,
    /// Values that are kept as JSON text: bit i is slot i.
    raw: u16,
    /// Values that are decoded as text: bit i is slot `RAW_SLOTS + i`.
    text: u16,
    /// All slots here and below.
    below: u16,
}

impl Selection {
    pub(crate) fn new(options: &InputOptions) -> Selection {
        let mut selection = Selection::default();
        match &options.id_field {
            Some(path) => selection.add(path, Slot::Id),
            None => {
                selection.add(&FieldPath::name("id"), Slot::Id);
                selection.add(&FieldPath::name("url"), Slot::Url);
            }
        }
        match &options.text_field {
            Some(path) if path.ends_with("html") => selection.add(path, Slot::Html),
            Some(path) => selection.add(path, Slot::Text),
            None => {
                selection.add(&FieldPath::name("text"), Slot::Text);
                selection.add(&FieldPath::name("html"), Slot::Html);
            }
        }
        if let Some(rank) = &options.rank_field {
            selection.add(rank.path(), Slot::Rank);
        }
        if let Some(category) = &options.category {
            selection.add(&category.path(), Slot::Category);
        }
        let fields = options.fields;
        for (name, weight, slot) in [
            ("anchors", fields.anchors, Slot::Anchors),
            ("in_links", fields.in_links, Slot::InLinks),
            ("out_links", fields.out_links, Slot::OutLinks),
        ] {
            if weight > 0 {
                selection.add(&FieldPath::name(name), slot);
            }
        }
        selection
    }

    fn add(&mut self, path: &FieldPath, slot: Slot) {
        let bit = 1 << slot as u16;
        let mut node = &mut self.root;
        node.below |= bit;
        for name in path.names() {
            node = node.child(name);
            node.below |= bit;
        }
        if (slot as usize) < RAW_SLOTS {
            node.raw |= bit;
        } else {
            node.text |= bit;
        }
    }
}

impl Node {
    fn child(&mut self, name: &str) -> &mut Node {
        let at = match self.children.iter().position(|(known, _)| known == name) {
            Some(at) => at,
            None => {
                self.children.push((name.to_owned(), Node::default()));
                self.children.len() - 1
            }
        };
        &mut self.children[at].1
    }

    fn find(&self, name: &[u8]) -> Option<&Node> {
        let found = self
            .children
            .iter()
            .find(|(known, _)| known.as_bytes() == name);
        found.map(|(_, node)| node)
    }
}

/// What was found of a text field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Capture<'de> {
    #[default]
    Absent,
    Null,
    /// Without escapes, in the line itself.
    Borrowed(&'de str),
    /// With good escapes, in the line, up to and with the closing quote; see [`Found::settle`].
    Escaped(&'de str),
    /// Had escapes, and is now in the buffer of its slot.
    Buffered,
    /// Something else, of this type.
    Wrong(&'static str),
}

/// The fields of one object.
#[derive(Debug)]
pub(crate) struct Found<'de, 'b> {
    raw: [Option<&'de str>; RAW_SLOTS],
    text: [Capture<'de>; TEXT_SLOTS],
    buffers: &'b mut Buffers,
}

/// Room for unescaped strings, one for each text slot.
#[derive(Debug, Default)]
pub(crate) struct Buffers([Buffer; TEXT_SLOTS]);

impl<'de, 'b> Found<'de, 'b> {
    fn new(buffers: &'b mut Buffers) -> Found<'de, 'b> {
        Found {
            raw: [None; RAW_SLOTS],
            text: [Capture::Absent; TEXT_SLOTS],
            buffers,
        }
    }

    /// The JSON text of a value; none if absent.
    pub(crate) fn raw(&self, slot: Slot) -> Option<&'de str> {
        self.raw[slot as usize]
    }

    pub(crate) fn text(&self, slot: Slot) -> Capture<'de> {
        self.text[slot as usize - RAW_SLOTS]
    }

    /// Whether a text is absent or null.
    pub(crate) fn is_missing(&self, slot: Slot) -> bool {
        matches!(self.text(slot), Capture::Absent | Capture::Null)
    }

    /// The content of a slot whose capture is `Buffered`.
    pub(crate) fn buffered(&self, slot: Slot) -> &str {
        self.buffers.0[slot as usize - RAW_SLOTS].text()
    }

    /// Unescapes the text of a slot if that was put off.
    pub(crate) fn settle(&mut self, slot: Slot) {
        if let Capture::Escaped(text) = self.text(slot) {
            let at = slot as usize - RAW_SLOTS;
            let end = self.buffers.0[at].unescape(text.as_bytes(), 0);
            debug_assert_eq!(end, Some(text.len() - 1));
            self.text[at] = Capture::Buffered;
        }
    }

    /// Forgets an earlier value of the same name: the last one wins.
    fn clear(&mut self, slots: u16) {
        for (i, raw) in self.raw.iter_mut().enumerate() {
            if slots >> i & 1 == 1 {
                *raw = None;
            }
        }
        self.set_text(slots, Capture::Absent);
    }

    fn set_raw(&mut self, slots: u16, value: &'de str) {
        for (i, raw) in self.raw.iter_mut().enumerate() {
            if slots >> i & 1 == 1 {
                *raw = Some(value);
            }
        }
    }

    fn set_text(&mut self, slots: u16, value: Capture<'de>) {
        for (i, text) in self.text.iter_mut().enumerate() {
            if slots >> (RAW_SLOTS + i) & 1 == 1 {
                *text = value;
            }
        }
    }

    fn set_buffer(&mut self, slots: u16, value: &str) {
        for (i, buffer) in self.buffers.0.iter_mut().enumerate() {
            if slots >> (RAW_SLOTS + i) & 1 == 1 {
                buffer.set(value);
                self.text[i] = Capture::Buffered;
            }
        }
    }
}

/// Finds the wanted fields of the object that `line` holds, whose own type the caller has checked.
///
/// # Errors
/// When the line is not JSON, or goes on after it.
pub(crate) fn pick<'de, 'b>(
    line: &'de str,
    selection: &Selection,
    buffers: &'b mut Buffers,
) -> Result<Found<'de, 'b>, serde_json::Error> {
    let mut found = Found::new(buffers);
    if flat::pick(line, selection, &mut found).is_none() {
        walk(line, selection, &mut found)?;
    }
    Ok(found)
}

/// As [`pick`], for any line.
fn walk<'de>(
    line: &'de str,
    selection: &Selection,
    found: &mut Found<'de, '_>,
) -> Result<(), serde_json::Error> {
    found.clear(selection.root.below);
    let mut json = serde_json::Deserializer::from_str(line);
    json.deserialize_any(Value {
        node: &selection.root,
        found,
    })?;
    json.end()
}

/// Takes one value for a node: as JSON text, as text, or as an object to descend into.
struct Value<'n, 'f, 'de, 'b> {
    node: &'n Node,
    found: &'f mut Found<'de, 'b>,
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_, 'de, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        self.found.clear(self.node.below);
        if self.node.raw == 0 {
            return json.deserialize_any(self);
        }
        let raw: &'de RawValue = de::Deserialize::deserialize(json)?;
        self.found.set_raw(self.node.raw, raw.get());
        if self.node.text == 0 && self.node.children.is_empty() {
            return Ok(());
        }
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
        self.found.set_text(self.node.text, Capture::Borrowed(text));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.found.set_buffer(self.node.text, text);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.found.set_text(self.node.text, Capture::Null);
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
        while items.next_element::<IgnoredAny>()?.is_some() {}
        self.wrong("an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(child) = map.next_key_seed(Name(self.node))? {
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
        self.found.set_text(self.node.text, Capture::Wrong(kind));
        Ok(())
    }
}

/// Looks a name up among the children of a node.
struct Name<'n>(&'n Node);

impl<'de, 'n> DeserializeSeed<'de> for Name<'n> {
    type Value = Option<&'n Node>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'n> Visitor<'_> for Name<'n> {
    type Value = Option<&'n Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.find(name.as_bytes()))
    }
}
