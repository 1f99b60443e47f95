//! The wanted fields, as a tree of names.

use crate::field_path::FieldPath;
use crate::options::InputOptions;

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

pub(super) const RAW_SLOTS: usize = 7;
pub(super) const TEXT_SLOTS: usize = 2;

/// Which fields to pick, as a tree of names.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(super) root: Node,
}

#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) children: Vec<(String, Node)>,
    /// Values that are kept as JSON text: bit i is slot i.
    pub(super) raw: u16,
    /// Values that are decoded as text: bit i is slot `RAW_SLOTS + i`.
    pub(super) text: u16,
    /// All slots here and below.
    pub(super) below: u16,
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
    pub(super) fn child(&mut self, name: &str) -> &mut Node {
        let at = match self.children.iter().position(|(known, _)| known == name) {
            Some(at) => at,
            None => {
                self.children.push((name.to_owned(), Node::default()));
                self.children.len() - 1
            }
        };
        &mut self.children[at].1
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<&Node> {
        let found = self
            .children
            .iter()
            .find(|(known, _)| known.as_bytes() == name);
        found.map(|(_, node)| node)
    }
}
