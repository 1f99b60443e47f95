//! A record as a page: its address, its links, and its line in the results.

use std::borrow::Cow;
use std::collections::HashMap;

use lookalike::Anchor;
use lookalike_corpus::{
    Format, HtmlLinks, Record, TextState, charset, linked_address, page_address, replace_lone,
};
use serde::Serialize;
use serde_json::value::RawValue;

/// Fields that results have, in the place of those that a record has already, and the texts that go with the `out_links` that stood there.
const REPLACED: [&str; 4] = ["anchors", "in_links", "out_links", "link_texts"];

/// A link to another page.
pub(super) struct ResolvedLink {
    /// The address that it leads to.
    pub(super) address: String,
    pub(super) anchor: Option<Anchor>,
}

/// Fields that a page gets.
#[derive(Default, Serialize)]
pub(super) struct LinkFields {
    pub(super) anchors: Vec<AnchorField>,
    pub(super) in_links: Vec<String>,
    pub(super) out_links: Vec<String>,
}

/// An anchor as a field holds it.
#[derive(Serialize)]
pub(super) struct AnchorField {
    pub(super) text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) before: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) after: String,
}

impl From<Anchor> for AnchorField {
    fn from(anchor: Anchor) -> Self {
        Self {
            text: anchor.text,
            before: anchor.before,
            after: anchor.after,
        }
    }
}

/// Fields of a JSON record; of equal names the last.
struct RecordFields<'r>(HashMap<Cow<'r, str>, &'r RawValue>);

/// True if a record of this format is a whole file, and no JSON object.
fn is_file(format: Format) -> bool {
    matches!(
        format,
        Format::Text | Format::Html | Format::Pdf | Format::Converted
    )
}

impl<'r> RecordFields<'r> {
    fn read(line: &'r str) -> Self {
        Self(serde_json::from_str(line).unwrap_or_default())
    }

    fn text(&self, name: &str) -> Option<String> {
        let json = self.0.get(name)?.get();
        // Lone surrogates are no JSON to everybody.
        let mended = || serde_json::from_str(&replace_lone(json)).ok();
        serde_json::from_str(json).ok().or_else(mended)
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let json = self.0.get(name).map_or("[]", |value| value.get());
        serde_json::from_str(json).unwrap_or_default()
    }

    /// Links of HTML, else those that the fields tell: of page metadata.
    fn links(&self, window: usize) -> HtmlLinks {
        if let Some(html) = self.text("html") {
            return HtmlLinks::read(&html, window);
        }
        let texts = self.texts("link_texts");
        let targets = self.texts("out_links");
        let are_paired = texts.len() == targets.len();
        let link = |(at, target): (usize, String)| lookalike_corpus::HtmlLink {
            target,
            anchor: (are_paired && !texts[at].is_empty()).then(|| Anchor {
                text: texts[at].clone(),
                ..Anchor::default()
            }),
        };
        HtmlLinks {
            base: self.text("base"),
            links: targets.into_iter().enumerate().map(link).collect(),
        }
    }
}

/// The address of a record: of its URL, else of its id, which for a file is its path.
pub(super) fn address(record: &Record<'_>, format: Format) -> Option<String> {
    let line = String::from_utf8_lossy(record.raw);
    let url = match is_file(format) {
        true => None,
        false => RecordFields::read(&line).text("url"),
    };
    page_address(url.as_deref().unwrap_or(&record.id))
}

/// The links of a page to other pages.
pub(super) fn links(
    record: &Record<'_>,
    format: Format,
    address: &str,
    window: usize,
) -> Vec<ResolvedLink> {
    let written = match format {
        Format::Html => HtmlLinks::read(&charset::decode(record.raw, true).text, window),
        _ if is_file(format) => HtmlLinks::default(),
        _ => RecordFields::read(&String::from_utf8_lossy(record.raw)).links(window),
    };
    let base = written.base.and_then(|base| linked_address(address, &base));
    let base = base.as_deref().unwrap_or(address);
    let links = written.links.into_iter();
    let resolved = links.filter_map(|link| {
        Some(ResolvedLink {
            address: linked_address(base, &link.target)?,
            anchor: link.anchor,
        })
    });
    resolved.filter(|link| link.address != address).collect()
}

/// The JSON object of a record, without its closing brace and without fields that results have.
pub(super) fn begin_line(record: &Record<'_>, format: Format) -> Vec<u8> {
    let mut line = Vec::new();
    if is_file(format) {
        line.extend(b"{\"id\":");
        write_json(&record.id, &mut line);
        match format {
            Format::Html => {
                line.extend(b",\"html\":");
                write_json(&charset::decode(record.raw, true).text, &mut line);
            }
            _ => write_text(record, &mut line),
        }
        return line;
    }
    let raw = String::from_utf8_lossy(record.raw);
    let fields = RecordFields::read(&raw);
    match REPLACED.iter().any(|name| fields.0.contains_key(*name)) {
        true => line = without_replaced(&fields),
        false => {
            let object = raw.trim_end();
            line.extend(object.strip_suffix('}').unwrap_or(object).as_bytes());
        }
    }
    // The text of a PDF in an archive stands in no field.
    let has_text = ["text", "html"]
        .iter()
        .any(|name| fields.0.contains_key(*name));
    if !has_text && record.text_state == TextState::Present {
        write_text(record, &mut line);
    }
    line
}

fn write_text(record: &Record<'_>, line: &mut Vec<u8>) {
    line.extend(b",\"text\":");
    write_json(&record.text, line);
}

/// The object again, its fields by name.
fn without_replaced(fields: &RecordFields<'_>) -> Vec<u8> {
    let mut kept: Vec<_> = fields.0.iter().collect();
    kept.retain(|(name, _)| !REPLACED.contains(&name.as_ref()));
    // As they stood: values borrow from the line.
    kept.sort_by_key(|(_, value)| value.get().as_ptr().addr());
    let mut line = vec![b'{'];
    for (number, (name, value)) in kept.into_iter().enumerate() {
        line.extend((number > 0).then_some(b','));
        write_json(name, &mut line);
        line.push(b':');
        line.extend(value.get().as_bytes());
    }
    line
}

/// Ends the line of a record with its fields as JSON.
pub(super) fn end_line(fields: &[u8], line: &mut Vec<u8>) {
    let is_empty = line.trim_ascii() == b"{";
    line.extend((!is_empty).then_some(b','));
    // Without the brace that the fields begin with.
    line.extend(&fields[1..]);
    line.push(b'\n');
}

pub(super) fn write_json<T: Serialize + ?Sized>(value: &T, line: &mut Vec<u8>) {
    serde_json::to_writer(line, value).expect("a vector takes every byte");
}
