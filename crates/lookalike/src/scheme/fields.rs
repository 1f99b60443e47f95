//! Fields besides the text that give a document features, and their weights (Manku et al. 2007, section 5.3).

use std::fmt;

use super::option::parse_number;
use super::parse_error::option_from_str;

/// Weights of a document's other fields, relative to one occurrence of a feature of its text; 0 if a field is not used. None by default.
///
/// Made by parsing, so that different values have different texts: a window without anchors, say, would be a second `none`.
///
/// ```
/// use lookalike::scheme::FieldWeights;
/// let fields: FieldWeights = "anchors:3~5,in-links:1".parse().unwrap();
/// assert_eq!((fields.anchors(), fields.window(), fields.in_links(), fields.out_links()), (3, 5, 1, 0));
/// assert_eq!(fields.to_string(), "anchors:3~5,in-links:1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FieldWeights {
    anchors: u8,
    window: u8,
    in_links: u8,
    out_links: u8,
}

/// Maximum window around an anchor text.
const MAX_WINDOW: u8 = 64;

impl FieldWeights {
    /// Returns true if no field is used.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Returns the weight of a word in the text of a link to the document.
    #[must_use]
    pub fn anchors(self) -> u8 {
        self.anchors
    }

    /// Returns the number of words before and after such a text that count as well, less with greater distance; at most 64, and 0 without anchors.
    #[must_use]
    pub fn window(self) -> u8 {
        self.window
    }

    /// Returns the weight of a page that links to the document.
    #[must_use]
    pub fn in_links(self) -> u8 {
        self.in_links
    }

    /// Returns the weight of a page that the document links to.
    #[must_use]
    pub fn out_links(self) -> u8 {
        self.out_links
    }
}

impl fmt::Display for FieldWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        match (self.anchors, self.window) {
            (0, _) => {}
            (weight, 0) => parts.push(format!("anchors:{weight}")),
            (weight, window) => parts.push(format!("anchors:{weight}~{window}")),
        }
        for (name, weight) in [("in-links", self.in_links), ("out-links", self.out_links)] {
            if weight > 0 {
                parts.push(format!("{name}:{weight}"));
            }
        }
        match parts.is_empty() {
            true => f.pad("none"),
            false => f.pad(&parts.join(",")),
        }
    }
}

option_from_str!(
    FieldWeights,
    "list of fields",
    "none, or, in this order and separated by commas, anchors:W or anchors:W~N, in-links:W, out-links:W; weights W from \
     1 to 255, N words of window from 1 to 64",
    |text: &str| {
        // One text for each value: no other order, no repetition, no weight of 0.
        parse(text).filter(|fields| fields.to_string() == text)
    }
);

fn parse(text: &str) -> Option<FieldWeights> {
    let mut fields = FieldWeights::default();
    if text == "none" {
        return Some(fields);
    }
    for part in text.split(',') {
        let (name, weight) = part.split_once(':')?;
        match name {
            "anchors" => {
                let (weight, window) = weight.split_once('~').unwrap_or((weight, "0"));
                fields.anchors = parse_number(weight)?;
                fields.window = parse_number(window).filter(|window| *window <= MAX_WINDOW)?;
            }
            "in-links" => fields.in_links = parse_number(weight)?,
            "out-links" => fields.out_links = parse_number(weight)?,
            _ => return None,
        }
    }
    Some(fields)
}
