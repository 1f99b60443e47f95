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

/// Shows the JSON of a record and its fields.
fn with_fields<R>(record: &Record<'_>, show: impl FnOnce(&str, RecordFields<'_>) -> R) -> R {
    let line = String::from_utf8_lossy(record.raw);
    match serde_json::from_str(&line) {
        Ok(fields) => show(&line, RecordFields(fields)),
        Err(_) => {
            // Lone surrogates are no JSON to everybody, not even in the name of a field that nobody looks at.
            let line = replace_lone(&line);
            let fields = serde_json::from_str(&line).unwrap_or_default();
            show(&line, RecordFields(fields))
        }
    }
}

/// A text in JSON, lone surrogates replaced.
fn json_text(json: &str) -> Option<String> {
    let mended = || serde_json::from_str(&replace_lone(json)).ok();
    serde_json::from_str(json).ok().or_else(mended)
}

impl RecordFields<'_> {
    fn text(&self, name: &str) -> Option<String> {
        json_text(self.0.get(name)?.get())
    }

    /// The texts of a field, or its only one; none where one is `null`.
    fn texts(&self, name: &'static str, wrong: &mut Option<String>) -> Vec<Option<String>> {
        let json = self.0.get(name).map_or("null", |value| value.get());
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

    /// Links of HTML, else those that the fields tell: of page metadata.
    fn links(&self, window: usize, wrong: &mut Option<String>) -> HtmlLinks {
        if let Some(html) = self.text("html") {
            return HtmlLinks::read(&html, window);
        }
        let mut texts = self.texts("link_texts", wrong);
        let targets = self.texts("out_links", wrong);
        let are_paired = texts.len() == targets.len();
        // Without any the links are read all the same. Which text belongs to which link, nobody knows otherwise.
        if !texts.is_empty() && !are_paired && wrong.is_none() {
            *wrong = Some(format!(
                "the field link_texts has {} texts for {} out_links, so they are left out: give one for each link",
                texts.len(),
                targets.len()
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

/// The address of a record: of its URL, else of its id, which for a file is its path.
pub(super) fn address(record: &Record<'_>, format: Format) -> Option<String> {
    let url = match is_file(format) {
        true => None,
        false => with_fields(record, |_, fields| fields.text("url")),
    };
    page_address(url.as_deref().unwrap_or(&record.id))
}

/// Shows the links of a page to other pages. Returns what is wrong with the fields that tell them, if anything is.
pub(super) fn each_link(
    record: &Record<'_>,
    format: Format,
    address: &str,
    window: usize,
    show: &mut dyn FnMut(ResolvedLink),
) -> Option<String> {
    let mut wrong = None;
    let written = match format {
        Format::Html => HtmlLinks::read(&charset::decode(record.raw, true).text, window),
        _ if is_file(format) => HtmlLinks::default(),
        _ => with_fields(record, |_, fields| fields.links(window, &mut wrong)),
    };
    let base = written.base.and_then(|base| linked_address(address, &base));
    let base = base.as_deref().unwrap_or(address);
    // One by one: all of them with a long base would take the square of the page.
    for link in written.links {
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
    let has_text = with_fields(record, |raw, fields| {
        match REPLACED.iter().any(|name| fields.0.contains_key(*name)) {
            true => line = without_replaced(&fields),
            false => {
                let object = raw.trim_end();
                line.extend(object.strip_suffix('}').unwrap_or(object).as_bytes());
            }
        }
        ["text", "html"]
            .iter()
            .any(|name| fields.0.contains_key(*name))
    });
    // The text of a PDF in an archive stands in no field.
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
