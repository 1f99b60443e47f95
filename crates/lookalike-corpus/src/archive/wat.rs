//! Pages of WAT records: the title, description and links that their `metadata` records hold as JSON.
//!
//! The layout is that of `ia-web-commons`, which Common Crawl and the Internet Archive write:
//! `Envelope.Payload-Metadata.HTTP-Response-Metadata.HTML-Metadata`. Metadata of other records (requests, images) is no page.

use serde_json::Value;

/// A page as its metadata describes it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WatRecord {
    pub(super) date: Option<String>,
    pub(super) record_id: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) mime: Option<String>,
    pub(super) title: String,
    pub(super) description: String,
    /// The address that links are resolved against, if the page names one.
    pub(super) base: Option<String>,
    /// Texts of the page's own links, one for each of `out_links`, some empty. They describe the pages that they lead to, as anchors do, and not
    /// this one.
    pub(super) link_texts: Vec<String>,
    /// Targets of links as they are written.
    pub(super) out_links: Vec<String>,
}

impl WatRecord {
    /// The page that a block describes; none if it describes something else.
    ///
    /// # Errors
    /// The reason when it is no JSON.
    pub(super) fn parse(block: &[u8]) -> Result<Option<WatRecord>, String> {
        let json: Value = serde_json::from_slice(block).map_err(|error| error.to_string())?;
        let envelope = &json["Envelope"];
        let response = &envelope["Payload-Metadata"]["HTTP-Response-Metadata"];
        let html = &response["HTML-Metadata"];
        // `Value` gives null for what is missing, at any depth, so nothing above needs to be there.
        if !html.is_object() {
            return Ok(None);
        }
        let head = &envelope["WARC-Header-Metadata"];
        let mut wat = WatRecord {
            date: text(&head["WARC-Date"]).map(str::to_owned),
            record_id: text(&head["WARC-Record-ID"]).map(|id| unbracketed(id).to_owned()),
            status: number(&response["Response-Message"]["Status"]),
            mime: header(&response["Headers"], "content-type").map(str::to_owned),
            title: text(&html["Head"]["Title"]).map(joined).unwrap_or_default(),
            description: description(&html["Head"]["Metas"]),
            base: text(&html["Head"]["Base"]).map(str::to_owned),
            ..WatRecord::default()
        };
        for link in list(&html["Links"]) {
            wat.link(link);
        }
        Ok(Some(wat))
    }

    /// Takes a link if a reader can follow it: images and forms are listed too.
    fn link(&mut self, link: &Value) {
        // `ia-web-commons` names element and attribute: `A@/href`, `IMG@/src`, `FORM@/action`.
        let is_anchor = text(&link["path"]).is_some_and(|path| path.starts_with("A@"));
        let Some(url) = text(&link["url"]).filter(|_| is_anchor) else {
            return;
        };
        self.out_links.push(url.to_owned());
        // Pushed even if empty: the two lists are read side by side.
        let words = text(&link["text"]).map(joined);
        self.link_texts.push(words.unwrap_or_default());
    }

    /// All words: title, description, and each link's text a line.
    pub(super) fn text(&self) -> String {
        let texts = self.link_texts.iter().map(String::as_str);
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        let links = texts.join("\n");
        let parts = [self.title.as_str(), self.description.as_str(), &links];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Numbers are written as text.
fn number(value: &Value) -> Option<u16> {
    match value {
        Value::String(digits) => digits.parse().ok(),
        other => other.as_u64().and_then(|number| number.try_into().ok()),
    }
}

fn header<'v>(headers: &'v Value, wanted: &str) -> Option<&'v str> {
    let headers = headers.as_object()?;
    let found = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    text(found?.1)
}

fn description(metas: &Value) -> String {
    let is_description =
        |meta: &&Value| text(&meta["name"]).is_some_and(|n| n.eq_ignore_ascii_case("description"));
    let meta = list(metas).iter().find(is_description);
    meta.and_then(|meta| text(&meta["content"]))
        .map(joined)
        .unwrap_or_default()
}

/// In one line.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn unbracketed(id: &str) -> &str {
    id.trim_start_matches('<').trim_end_matches('>')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_metadata_tells_of_a_page() {
        let block = br#"{"Envelope":{"WARC-Header-Metadata":{"WARC-Date":"2024-05-18T01:58:10Z","WARC-Record-ID":"<urn:uuid:1>"},
            "Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"Headers":{"content-type":"text/html"},
            "HTML-Metadata":{"Head":{"Base":"/b/","Title":" The\n ferry ","Metas":[{"property":"og:x"},{"name":"Description","content":"It left."}]},
            "Links":[{"path":"IMG@/src","url":"a.png","alt":"x"},{"path":"A@/href","url":"/1","text":"the  tide"},{"path":"A@/href","url":"/2"},7]}}}}}"#;
        let wat = WatRecord::parse(block).unwrap().unwrap();
        assert_eq!(
            (wat.status, wat.mime.as_deref()),
            (Some(200), Some("text/html"))
        );
        assert_eq!(wat.record_id.as_deref(), Some("urn:uuid:1"));
        assert_eq!(wat.out_links, ["/1", "/2"]);
        assert_eq!(wat.link_texts, ["the tide", ""]);
        assert_eq!(wat.base.as_deref(), Some("/b/"));
        assert_eq!(wat.text(), "The ferry\n\nIt left.\n\nthe tide");
    }

    #[test]
    fn other_metadata_is_no_page() {
        for other in ["{}", "[]", "7", r#"{"Envelope":[{"Payload-Metadata":1}]}"#] {
            assert_eq!(WatRecord::parse(other.as_bytes()), Ok(None), "{other}");
        }
        assert!(WatRecord::parse(b"fetchTimeMs: 7").is_err());
    }
}
