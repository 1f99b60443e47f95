//! The wanted fields, as a tree of names.

use crate::field_path::{FieldPath, TextFields};
use crate::options::InputOptions;

/// Values that a record may need, each from its own path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldSlot {
    Id = 0,
    Url = 1,
    OrderKey = 2,
    Category = 3,
    Anchors = 4,
    InLinks = 5,
    OutLinks = 6,
    Text = 7,
    Html = 8,
}

pub(super) const RAW_SLOTS: usize = 7;
pub(super) const TEXT_SLOTS: usize = 2;

/// Fields to pick, as a tree of names.
#[derive(Debug, Default)]
pub(crate) struct FieldSelection {
    pub(super) root: FieldNode,
}

#[derive(Debug, Default)]
pub(super) struct FieldNode {
    pub(super) children: Vec<(String, FieldNode)>,
    /// Slots of the value that are kept as JSON text: bit i is slot i.
    pub(super) raw: u16,
    /// Slots of the value that are decoded as text: bit i is slot `RAW_SLOTS + i`.
    pub(super) text: u16,
    /// All slots here and below.
    pub(super) below: u16,
}

impl FieldSelection {
    pub(crate) fn new(options: &InputOptions) -> FieldSelection {
        let mut selection = FieldSelection::default();
        match &options.id_field {
            Some(path) => selection.add(path, FieldSlot::Id),
            None => {
                selection.add(&FieldPath::name("id"), FieldSlot::Id);
                selection.add(&FieldPath::name("url"), FieldSlot::Url);
            }
        }
        match options.text_field.as_ref().map(TextFields::paths) {
            Some([path]) if path.ends_with("html") => selection.add(path, FieldSlot::Html),
            Some([path]) => selection.add(path, FieldSlot::Text),
            // These are picked one by one, see [`FieldSelection::of_parts`].
            Some(_) => {}
            None => {
                selection.add(&FieldPath::name("text"), FieldSlot::Text);
                selection.add(&FieldPath::name("html"), FieldSlot::Html);
            }
        }
        if let Some(field) = &options.order_field {
            selection.add(field.path(), FieldSlot::OrderKey);
        }
        if let Some(category) = &options.category {
            selection.add(&category.path(), FieldSlot::Category);
        }
        let fields = options.fields;
        for (name, weight, slot) in [
            ("anchors", fields.anchors(), FieldSlot::Anchors),
            ("in_links", fields.in_links(), FieldSlot::InLinks),
            ("out_links", fields.out_links(), FieldSlot::OutLinks),
        ] {
            if weight > 0 {
                selection.add(&FieldPath::name(name), slot);
            }
        }
        selection
    }

    /// Returns the selections of the fields whose values are joined to a text, one for each; none if there is only one.
    pub(crate) fn of_parts(options: &InputOptions) -> Vec<FieldSelection> {
        let fields = options.text_field.as_ref().map(TextFields::paths);
        let paths = fields.filter(|paths| paths.len() > 1).unwrap_or_default();
        let selections = paths.iter().map(|path| {
            let mut selection = FieldSelection::default();
            selection.add(path, FieldSlot::Text);
            selection
        });
        selections.collect()
    }

    fn add(&mut self, path: &FieldPath, slot: FieldSlot) {
        let bit = 1 << slot as u16;
        let mut node = &mut self.root;
        node.below |= bit;
        for name in path.names() {
            node = node.child(name);
            // Set along the whole path: a repeated object at any level hides the contents of the earlier one.
            node.below |= bit;
        }
        if (slot as usize) < RAW_SLOTS {
            node.raw |= bit;
        } else {
            node.text |= bit;
        }
    }
}

impl FieldNode {
    pub(super) fn child(&mut self, name: &str) -> &mut FieldNode {
        let at = match self.children.iter().position(|(known, _)| known == name) {
            Some(at) => at,
            None => {
                self.children.push((name.to_owned(), FieldNode::default()));
                self.children.len() - 1
            }
        };
        &mut self.children[at].1
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<&FieldNode> {
        let found = self
            .children
            .iter()
            // At most a dozen names, mostly of different lengths: comparing lengths, and rarely bytes, costs less than a hash.
            .find(|(known, _)| known.as_bytes() == name);
        found.map(|(_, node)| node)
    }
}
