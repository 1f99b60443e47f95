//! The URL of a document and the server in it.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::field_path::FieldPath;
use crate::format::Format;
use crate::record::Record;

/// The host of an absolute URL, lower-cased, without user, port and a final dot; none if there is none.
///
/// Only the parts that name a server are looked at: what is wrong in a path harms nothing here.
///
/// ```
/// use lookalike_corpus::host;
/// assert_eq!(host("https://Example.org:8080/a").as_deref(), Some("example.org"));
/// assert_eq!(host("docs/a.html"), None);
/// ```
pub fn host(url: &str) -> Option<Cow<'_, str>> {
    let (scheme, rest) = url.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    // Browsers take a backslash for a slash, and only the last `@` ends the name of a user (WHATWG URL,
    // authority state).
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match host.rfind(':') {
        // Colons within brackets are those of an IPv6 address.
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

/// Returns true if the records of a format are JSON objects as the parser sees them: lines, and rows of tables
/// and archives, which are written as such.
fn has_fields(format: Format) -> bool {
    !matches!(format, Format::Text | Format::Html)
}

/// A string or number in the fields of a record whose format has some.
pub fn field_of(record: &Record<'_>, path: &FieldPath) -> Option<String> {
    field(record.raw, path)
}

/// The server of a record: the host of its id if that is a URL, else of its field `url`.
pub fn server_of<'r>(record: &'r Record<'_>, format: Format) -> Option<Cow<'r, str>> {
    host(&record.id).or_else(|| {
        let url = has_fields(format).then(|| field_of(record, &FieldPath::name("url")))??;
        host(&url).map(|host| Cow::Owned(host.into_owned()))
    })
}

/// A string or number in a JSON object.
fn field(raw: &[u8], path: &FieldPath) -> Option<String> {
    // As the text is read: a byte that is no UTF-8 in one field costs the others nothing.
    let text = String::from_utf8_lossy(raw);
    let mut object = &*text;
    for name in path.names() {
        // Values stay unparsed, save the one that the path leads to.
        let fields: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(object).ok()?;
        object = fields.get(name.as_str())?.get();
    }
    match object.as_bytes().first()? {
        b'"' => serde_json::from_str(object).ok(),
        b'0'..=b'9' | b'-' => Some(object.to_owned()),
        _ => None,
    }
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
    fn fields_of_objects() {
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
        // A record with a broken text had no site.
        assert_eq!(
            field(
                b"{\"text\":\"caf\xe9\",\"meta\":{\"host\":\"h\xff\"}}",
                &path
            )
            .as_deref(),
            Some("h\u{fffd}")
        );
    }
}
