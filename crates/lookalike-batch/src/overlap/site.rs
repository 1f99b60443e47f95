//! Where a document comes from: its URL and its server.

use std::borrow::Cow;
use std::collections::HashMap;

use lookalike_corpus::{FieldPath, Record};
use serde_json::value::RawValue;

use super::settings::ServerName;

/// The host of an absolute URL, lower-cased, without user, port and a final dot; none if there is none.
///
/// Only the parts that name a server are looked at: what is wrong in a path harms nothing here.
pub(crate) fn host(url: &str) -> Option<Cow<'_, str>> {
    let (scheme, rest) = url.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_host = !host.is_empty()
        && !host
            .contains(|c: char| c.is_whitespace() || c.is_control() || "<>\"%^`{|}".contains(c));
    (is_scheme && is_host).then(|| match host.bytes().any(|b| b.is_ascii_uppercase()) {
        true => Cow::Owned(host.to_ascii_lowercase()),
        false => Cow::Borrowed(host),
    })
}

/// A string or number in a record's JSON object.
fn field(raw: &[u8], path: &FieldPath) -> Option<String> {
    let mut object = std::str::from_utf8(raw).ok()?;
    for name in path.names() {
        let fields: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(object).ok()?;
        object = fields.get(name.as_str())?.get();
    }
    match object.as_bytes().first()? {
        b'"' => serde_json::from_str(object).ok(),
        b'0'..=b'9' | b'-' => Some(object.to_owned()),
        _ => None,
    }
}

/// What is known of a document's place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Site {
    /// The URL, where it is not the id.
    pub(crate) url: Option<String>,
    pub(crate) server: Option<String>,
}

impl Site {
    /// Looks a record's site up. Files that are documents have no fields, only their id; rows of tables and pages of
    /// archives come as the JSON object of their fields.
    pub(crate) fn of(
        record: &Record<'_>,
        has_fields: bool,
        name: &ServerName,
        url_field: &FieldPath,
    ) -> Self {
        let named = |path: &FieldPath| has_fields.then(|| field(record.raw, path)).flatten();
        let id_is_url = host(&record.id).is_some();
        let url = if id_is_url { None } else { named(url_field) };
        let server = match name {
            ServerName::Url => {
                let url = url.as_deref().unwrap_or(&record.id);
                host(url).map(Cow::into_owned)
            }
            ServerName::Field(path) => named(path),
            ServerName::Path(depth) => leading(&record.id, *depth),
        };
        Self { url, server }
    }
}

/// The first components of a path; none if it has no more than these.
fn leading(path: &str, depth: usize) -> Option<String> {
    let mut parts = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".");
    let front: Vec<&str> = parts.by_ref().take(depth).collect();
    (front.len() == depth && parts.next().is_some()).then(|| front.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_urls() {
        for (url, expected) in [
            ("http://Example.ORG/a", Some("example.org")),
            ("https://u:p@example.org.:8080?q", Some("example.org")),
            ("http://[::1]:80/", Some("[::1]")),
            ("http://[::1]/", Some("[::1]")),
            ("ftp://h", Some("h")),
            ("http:///path", None),
            ("example.org/a", None),
            ("http://a b/", None),
            ("://x", None),
            ("1http://x", None),
            ("http://", None),
            ("mailto:a@b", None),
        ] {
            assert_eq!(host(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn paths_and_fields_name_servers() {
        assert_eq!(
            leading("/srv/./docs/a.html", 2).as_deref(),
            Some("srv/docs")
        );
        assert_eq!(leading("docs/a.html", 2), None);
        let path = "meta.host".parse().unwrap();
        assert_eq!(
            field(br#"{"meta":{"host":"h\n"}}"#, &path).as_deref(),
            Some("h\n")
        );
        assert_eq!(
            field(br#"{"meta":{"host":7}}"#, &path).as_deref(),
            Some("7")
        );
        assert_eq!(field(br#"{"meta":{"host":null}}"#, &path), None);
        assert_eq!(field(b"no json", &path), None);
    }
}
