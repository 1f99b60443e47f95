//! Pages described by WAT files: the title, description and links that `metadata` records hold as JSON.
//!
//! The layout is that of `ia-web-commons`, which Common Crawl and the Internet Archive write:
//! `Envelope.Payload-Metadata.HTTP-Response-Metadata.HTML-Metadata`. Metadata of other records (requests, images) does not describe a page.

use serde_json::value::RawValue;

use super::head::unbracketed;
use crate::json::{for_each_item, for_each_member};

/// A page as its metadata describes it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WatRecord {
    pub(super) date: Option<String>,
    pub(super) record_id: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) mime: Option<String>,
    pub(super) title: String,
    pub(super) description: String,
    /// The address against which links are resolved, if the page declares one.
    pub(super) base: Option<String>,
    /// Texts of the links of the page, one for each of `out_links`, possibly empty. Like anchors, they describe the pages that they lead to, not this
    /// one.
    pub(super) link_texts: Vec<String>,
    /// Link targets as written.
    pub(super) out_links: Vec<String>,
}

impl WatRecord {
    /// Parses the page that a block describes. Returns `None` if it describes something else.
    ///
    /// # Errors
    /// Fails with a reason if the block is not JSON.
    pub(super) fn parse(block: &[u8]) -> Result<Option<WatRecord>, String> {
        let block: &RawValue = serde_json::from_slice(block).map_err(|error| error.to_string())?;
        let [envelope] = JsonPart(Some(block.get())).members(["Envelope"]);
        let [head, payload] = envelope.members(["WARC-Header-Metadata", "Payload-Metadata"]);
        let [response] = payload.members(["HTTP-Response-Metadata"]);
        let [message, headers, html] =
            response.members(["Response-Message", "Headers", "HTML-Metadata"]);
        // A missing value has no members, at any depth, so the parts above need no check.
        if !html.is_object() {
            return Ok(None);
        }
        let [date, record_id] = head.members(["WARC-Date", "WARC-Record-ID"]);
        let [status] = message.members(["Status"]);
        let [mime] = headers.members_at(|name| {
            let is_type = name.eq_ignore_ascii_case("content-type");
            is_type.then_some(0)
        });
        let [page, links] = html.members(["Head", "Links"]);
        let [title, metas, base] = page.members(["Title", "Metas", "Base"]);
        let mut wat = WatRecord {
            date: date.text(),
            record_id: record_id.text().map(|id| unbracketed(&id).to_owned()),
            status: status.number(),
            mime: mime.text(),
            title: title.words(),
            description: description(metas),
            base: base.text(),
            ..WatRecord::default()
        };
        links.for_each(|link| wat.link(link));
        Ok(Some(wat))
    }

    /// Adds a link if a reader can follow it: images and forms are listed too.
    fn link(&mut self, link: JsonPart<'_>) {
        let [path, url, text, alt] = link.members(["path", "url", "text", "alt"]);
        // `ia-web-commons` names the element and the attribute: `A@/href`, `IMG@/src`, `FORM@/action`.
        let path = path.text().unwrap_or_default();
        let text = match path.split_once('@') {
            Some(("A", _)) => text,
            // The text of an area of an image map is that which replaces the image.
            Some(("AREA", _)) => alt,
            _ => return,
        };
        let Some(url) = url.text() else {
            return;
        };
        self.out_links.push(url);
        // Pushed even if empty: the two lists run in parallel.
        self.link_texts.push(text.words());
    }

    /// Joins all words: the title, the description, and the text of each link on its own line.
    pub(super) fn text(&self) -> String {
        let texts = self.link_texts.iter().map(String::as_str);
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        let links = texts.join("\n");
        let parts = [self.title.as_str(), self.description.as_str(), &links];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }
}

/// A JSON value that is only scanned. `None` if the value is missing.
#[derive(Clone, Copy)]
struct JsonPart<'j>(Option<&'j str>);

impl<'j> JsonPart<'j> {
    fn is_object(self) -> bool {
        self.0.is_some_and(|json| json.starts_with('{'))
    }

    /// Returns the members with these names, found in one pass. If a name occurs several times, the last one counts.
    fn members<const N: usize>(self, names: [&str; N]) -> [JsonPart<'j>; N] {
        self.members_at(|name| names.iter().position(|wanted| *wanted == name))
    }

    /// Returns the members whose names `index` maps to a number.
    fn members_at<const N: usize>(
        self,
        index: impl Fn(&str) -> Option<usize>,
    ) -> [JsonPart<'j>; N] {
        let mut found = [JsonPart(None); N];
        // Fails if the value is not an object, which then has no members.
        let _ = for_each_member(self.0.unwrap_or_default(), |name, member| {
            if let Some(index) = index(name) {
                found[index] = JsonPart(Some(member));
            }
            Ok(())
        });
        found
    }

    /// Calls `take` with each item of a list.
    fn for_each(self, mut take: impl FnMut(JsonPart<'j>)) {
        // Fails if the value is not a list, which then has no items.
        let _ = for_each_item(self.0.unwrap_or_default(), |item| {
            take(JsonPart(Some(item)));
            Ok(())
        });
    }

    fn text(self) -> Option<String> {
        serde_json::from_str(self.0?).ok()
    }

    /// Returns the words of a string joined by blanks, or an empty string if the value is not a string.
    fn words(self) -> String {
        let text = self.text().unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Reads a number, which may be written as a string.
    fn number(self) -> Option<u16> {
        let written = self.text();
        written.as_deref().unwrap_or(self.0?).parse().ok()
    }
}

fn description(metas: JsonPart<'_>) -> String {
    let mut found: Option<String> = None;
    metas.for_each(|meta| {
        if found.is_none() {
            let [name, content] = meta.members(["name", "content"]);
            let is_description = |name: String| name.eq_ignore_ascii_case("description");
            if name.text().is_some_and(is_description) {
                found = Some(content.words());
            }
        }
    });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_metadata_tells_of_a_page() {
        let block = br#"{"Envelope":{"WARC-Header-Metadata":{"WARC-Date":"2024-05-18T01:58:10Z","WARC-Record-ID":"<urn:uuid:1>"},
            "Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"Headers":{"content-type":"text/html"},
            "HTML-Metadata":{"Head":{"Base":"/b/","Title":" The\n ferry ","Metas":[{"property":"og:x"},{"name":"Description","content":"It left."}]},
            "Links":[{"path":"IMG@/src","url":"a.png","alt":"x"},{"path":"A@/href","url":"/1","text":"the  tide"},{"path":"A@/href","url":"/2"},{"path":"AREA@/href","url":"/3","alt":"the map"},7]}}}}}"#;
        let wat = WatRecord::parse(block).unwrap().unwrap();
        assert_eq!(
            (wat.status, wat.mime.as_deref()),
            (Some(200), Some("text/html"))
        );
        assert_eq!(wat.record_id.as_deref(), Some("urn:uuid:1"));
        assert_eq!(wat.out_links, ["/1", "/2", "/3"]);
        assert_eq!(wat.link_texts, ["the tide", "", "the map"]);
        assert_eq!(wat.base.as_deref(), Some("/b/"));
        assert_eq!(wat.text(), "The ferry\n\nIt left.\n\nthe tide\nthe map");
    }

    #[test]
    fn a_block_of_a_million_lists_became_a_tree_of_them() {
        // Nested deeper than a tree may be, so parsing it as a tree would fail.
        let lists = "[".repeat(100_000) + &"]".repeat(100_000);
        let html = r#"{"Head":{"Title":"T","Title":7,"Metas":{}},"Links":[[],{"path":"A@/href","url":"/"}]}"#;
        let block = format!(
            r#"{{"Other":{lists},"Envelope":{{"Payload-Metadata":{{"HTTP-Response-Metadata":{{"HTML-Metadata":{html}}}}}}}}}"#
        );
        let wat = WatRecord::parse(block.as_bytes()).unwrap().unwrap();
        assert_eq!((wat.title.as_str(), wat.status), ("", None));
        assert_eq!(
            (wat.out_links, wat.link_texts),
            (vec!["/".to_owned()], vec![String::new()])
        );
    }

    #[test]
    fn other_metadata_is_no_page() {
        for other in ["{}", "[]", "7", r#"{"Envelope":[{"Payload-Metadata":1}]}"#] {
            assert_eq!(WatRecord::parse(other.as_bytes()), Ok(None), "{other}");
        }
        assert!(WatRecord::parse(b"fetchTimeMs: 7").is_err());
    }
}
