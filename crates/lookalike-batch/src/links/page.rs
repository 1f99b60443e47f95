//! Reads a record as a page: its address, its links, and its line in the results.

use std::fmt;

use lookalike::Anchor;
use lookalike_corpus::{
    Format, HtmlLinks, Record, TextState, charset, linked_address, page_address, replace_lone,
};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Fields that results replace in records that already have them. `link_texts` belongs to the old `out_links`, so it goes too.
const REPLACED: [&str; 4] = ["anchors", "in_links", "out_links", "link_texts"];

/// A link to another page.
pub(super) struct ResolvedLink {
    /// The absolute address that it leads to.
    pub(super) address: String,
    pub(super) anchor: Option<Anchor>,
}

/// Fields that the job adds to a page.
#[derive(Default, Serialize)]
pub(super) struct LinkFields {
    pub(super) anchors: Vec<AnchorField>,
    pub(super) in_links: Vec<String>,
    pub(super) out_links: Vec<String>,
}

/// An anchor in the form that the field holds.
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

/// Fields of a JSON record in their order; of those with the same name the last counts.
#[derive(Default)]
struct RecordFields<'r>(Vec<(String, &'r RawValue)>);

/// Tells whether a record of this format is a whole file rather than a JSON object.
fn is_file(format: Format) -> bool {
    matches!(
        format,
        Format::Text | Format::Html | Format::Pdf | Format::Converted
    )
}

/// Passes the JSON of a record and its fields to `show`.
fn with_fields<R>(record: &Record<'_>, show: impl FnOnce(&str, RecordFields<'_>) -> R) -> R {
    let line = String::from_utf8_lossy(record.raw);
    match serde_json::from_str(&line) {
        Ok(fields) => show(&line, fields),
        Err(_) => {
            // Many parsers refuse lone surrogates, even in the name of a field that is not read.
            let line = replace_lone(&line);
            show(&line, serde_json::from_str(&line).unwrap_or_default())
        }
    }
}

/// Reads a JSON string, with lone surrogates replaced.
fn json_text(json: &str) -> Option<String> {
    let mended = || serde_json::from_str(&replace_lone(json)).ok();
    serde_json::from_str(json).ok().or_else(mended)
}

impl RecordFields<'_> {
    /// Returns the JSON of a field.
    fn get(&self, name: &str) -> Option<&str> {
        let mut last_first = self.0.iter().rev();
        let (_, value) = last_first.find(|(own, _)| own == name)?;
        Some(value.get())
    }

    fn text(&self, name: &str) -> Option<String> {
        json_text(self.get(name)?)
    }

    /// Returns the texts of a field, which may also be a single text. An entry that is `null` is `None`.
    fn texts(&self, name: &'static str, wrong: &mut Option<String>) -> Vec<Option<String>> {
        // A missing field lists as little as `null`.
        let json = self.get(name).unwrap_or("null");
        if json == "null" {
            return Vec::new();
        }
        if json.starts_with('"') {
            return vec![json_text(json)];
        }
        let Ok(values) = serde_json::from_str::<Vec<&RawValue>>(json) else {
            *wrong = Some(format!("the field {name} must hold texts"));
            return Vec::new();
        };
        let texts = values.into_iter().map(|value| {
            let text = json_text(value.get());
            if text.is_none() && value.get() != "null" {
                *wrong = Some(format!("the field {name} must hold texts"));
            }
            text
        });
        texts.collect()
    }

    /// Returns the links of the `html` field or, without one, the links listed in the fields, as in page metadata.
    fn links(&self, window: usize, wrong: &mut Option<String>) -> HtmlLinks {
        if let Some(html) = self.text("html") {
            return HtmlLinks::read(&html, window);
        }
        let mut texts = self.texts("link_texts", wrong);
        let targets = self.texts("out_links", wrong);
        let are_paired = texts.len() == targets.len();
        // Links without any texts are normal. With another number of texts it is unknown which text belongs to which link.
        if !texts.is_empty() && !are_paired && wrong.is_none() {
            *wrong = Some(format!(
                "the field link_texts has {} text{} for {} link{} in out_links, so they are left out: give one for each link",
                texts.len(),
                plural_end(texts.len()),
                targets.len(),
                plural_end(targets.len())
            ));
        }
        let link = |(at, target): (usize, Option<String>)| {
            let text = are_paired.then(|| texts[at].take()).flatten();
            let text = text.filter(|text| !text.is_empty());
            Some(lookalike_corpus::HtmlLink {
                target: target?,
                anchor: text.map(|text| Anchor {
                    text,
                    ..Anchor::default()
                }),
            })
        };
        HtmlLinks {
            base: self.text("base"),
            links: targets.into_iter().enumerate().filter_map(link).collect(),
        }
    }
}

fn plural_end(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Returns the address of a record: its URL or, without one, its id, which is the path of a file.
pub(super) fn address(record: &Record<'_>, format: Format) -> Option<String> {
    let url = match is_file(format) {
        true => None,
        false => with_fields(record, |_, fields| fields.text("url")),
    };
    page_address(url.as_deref().unwrap_or(&record.id))
}

/// Passes the links of a page to other pages to `show`. Returns a message if the link fields are invalid.
pub(super) fn for_each_link(
    record: &Record<'_>,
    format: Format,
    address: &str,
    window: usize,
    show: &mut dyn FnMut(ResolvedLink),
) -> Option<String> {
    let mut wrong = None;
    let written = match format {
        Format::Html => HtmlLinks::read(&charset::decode(record.raw, true).text, window),
        // Of other files only the text is read.
        _ if is_file(format) => HtmlLinks::default(),
        _ => with_fields(record, |_, fields| fields.links(window, &mut wrong)),
    };
    // A base may itself be relative to the address of the page.
    let base = written.base.and_then(|base| linked_address(address, &base));
    let base = base.as_deref().unwrap_or(address);
    // Resolve links one by one: with a long base address, all of them at once would take the square of the page's size.
    for link in written.links {
        // A link of a page to itself says nothing about it.
        if let Some(target) = linked_address(base, &link.target).filter(|target| target != address)
        {
            show(ResolvedLink {
                address: target,
                anchor: link.anchor,
            });
        }
    }
    wrong
}

/// Returns the JSON object of a record, without its closing brace and without the fields that results replace.
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
    let has_text = with_fields(record, |raw, fields| {
        let has = |name: &&str| fields.get(name).is_some();
        let has_text = ["text", "html"].iter().any(has);
        match REPLACED.iter().any(has) {
            true => line = without_replaced(raw, fields),
            false => {
                let object = raw.trim_end();
                // `end_line` closes the object after the added fields.
                line.extend(object.strip_suffix('}').unwrap_or(object).as_bytes());
            }
        }
        has_text
    });
    // The text of a PDF in an archive is not in a field of the record.
    if !has_text && record.text_state == TextState::Present {
        write_text(record, &mut line);
    }
    line
}

fn write_text(record: &Record<'_>, line: &mut Vec<u8>) {
    line.extend(b",\"text\":");
    write_json(&record.text, line);
}

/// Returns the object without its closing brace and without the fields that results replace. Everything else stays byte for byte, also a name that
/// occurs twice.
fn without_replaced(object: &str, fields: RecordFields<'_>) -> Vec<u8> {
    let mut behind = object.find('{').map_or(object.len(), |brace| brace + 1);
    let mut line = object.as_bytes()[..behind].to_vec();
    let mut is_first = true;
    for (name, value) in fields.0 {
        // A value borrows from the object, so its address tells where it ends.
        let end = value.get().as_ptr().addr() - object.as_ptr().addr() + value.get().len();
        // With the comma before it, unless it is the first of all.
        let field = &object[behind..end];
        behind = end;
        if REPLACED.contains(&name.as_str()) {
            continue;
        }
        let after_comma = field.trim_start().strip_prefix(',');
        let kept = after_comma.filter(|_| is_first).unwrap_or(field);
        line.extend(kept.as_bytes());
        is_first = false;
    }
    line
}

impl<'de> Deserialize<'de> for RecordFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RecordFieldsVisitor)
    }
}

struct RecordFieldsVisitor;

impl<'de> Visitor<'de> for RecordFieldsVisitor {
    type Value = RecordFields<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RecordFields<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(RecordFields(fields))
    }
}

/// Ends a record's line with its link fields, given as a JSON object.
pub(super) fn end_line(fields: &[u8], line: &mut Vec<u8>) {
    // A record may be an empty object.
    let is_empty = line.trim_ascii() == b"{";
    line.extend((!is_empty).then_some(b','));
    // Skip the opening brace of the fields.
    line.extend(&fields[1..]);
    line.push(b'\n');
}

pub(super) fn write_json<T: Serialize + ?Sized>(value: &T, line: &mut Vec<u8>) {
    serde_json::to_writer(line, value).expect("a vector takes every byte");
}
