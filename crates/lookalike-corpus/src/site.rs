//! The URL of a document and the server in it.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::address::url_scheme;
use crate::ascii_host::ascii_host;
use crate::field_path::FieldPath;
use crate::format::Format;
use crate::json::plain_number;
use crate::record::Record;

/// Returns the host of an absolute URL, in lower case, without user, port and final dot, or `None` if there is none.
///
/// Only the parts that name a server are examined, so a malformed path does no harm. A host in another script than Latin has the form in which
/// browsers send it (WHATWG URL, host parsing), so all spellings of it are the same.
///
/// ```
/// use lookalike_corpus::host;
/// assert_eq!(host("https://Example.org:8080/a").as_deref(), Some("example.org"));
/// assert_eq!(host("https://BÜCHER.example").as_deref(), Some("xn--bcher-kva.example"));
/// assert_eq!(host("docs/a.html"), None);
/// ```
pub fn host(url: &str) -> Option<Cow<'_, str>> {
    let url = url.trim_ascii_start();
    let rest = url[url_scheme(url)?.len()..].strip_prefix("://")?;
    // Browsers treat a backslash as a slash, and only the last `@` ends the user name (WHATWG URL, authority state).
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let authority = authority.trim_ascii_end();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match host.rfind(':') {
        // Colons within brackets belong to an IPv6 address.
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    };
    let host = ascii_host(host)?;
    let named = host.strip_suffix('.').unwrap_or(&host);
    let is_host = !named.is_empty()
        && !named
            .contains(|c: char| c.is_whitespace() || c.is_control() || "<>\"%^`{|}".contains(c));
    let is_plain = named.len() == host.len() && !named.bytes().any(|b| b.is_ascii_uppercase());
    match is_plain {
        _ if !is_host => None,
        true => Some(host),
        false => Some(Cow::Owned(named.to_ascii_lowercase())),
    }
}

/// Returns a string or number from the fields of a record, if its format has fields.
pub fn field_of(record: &Record<'_>, path: &FieldPath) -> Option<String> {
    field(record.raw, path)
}

/// Returns the server of a record: the host of its field `url`, otherwise of its id.
pub fn server_of(record: &Record<'_>, format: Format) -> Option<String> {
    // Records of other formats are JSON objects for the parser: lines, and rows of tables and archives, which are written as JSON lines.
    let has_fields = !matches!(format, Format::Text | Format::Html);
    let url = has_fields.then(|| field_of(record, &FieldPath::name("url")));
    let of_field = url
        .flatten()
        .and_then(|url| host(&url).map(Cow::into_owned));
    of_field.or_else(|| host(&record.id).map(Cow::into_owned))
}

/// Returns a string or number from a JSON object.
fn field(raw: &[u8], path: &FieldPath) -> Option<String> {
    // Decoded like texts: an invalid byte in one field does not affect the others.
    let text = String::from_utf8_lossy(raw);
    let mut object = &*text;
    for name in path.names() {
        // Values stay unparsed, except the one at the path.
        let fields: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(object).ok()?;
        object = fields.get(name.as_str())?.get();
    }
    match object.as_bytes().first()? {
        b'"' => serde_json::from_str(object).ok(),
        b'0'..=b'9' | b'-' => Some(plain_number(object).into_owned()),
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
            (" http://example.org", Some("example.org")),
            ("http://example.org ", Some("example.org")),
            // Spellings of one host used to be several servers.
            ("http://bücher.example", Some("xn--bcher-kva.example")),
            ("http://BÜCHER.example.:80/1", Some("xn--bcher-kva.example")),
            (
                "http://b%C3%BCcher.example/1",
                Some("xn--bcher-kva.example"),
            ),
            (
                "http://XN--bcher-kva.example",
                Some("xn--bcher-kva.example"),
            ),
            ("http://ｅｘａ\u{ad}ｍｐｌｅ。org", Some("example.org")),
            ("http://a%20b/", None),
            ("http://a%", None),
            ("http://%FF/", None),
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
        // A float column of a table and an integer column of another used to name two servers.
        for number in ["7.0", "7e0", "70e-1"] {
            let raw = format!(r#"{{"meta":{{"host":{number}}}}}"#);
            assert_eq!(field(raw.as_bytes(), &path).as_deref(), Some("7"));
        }
        assert_eq!(field(b"no json", &path), None);
        // A record with an invalid text used to have no site.
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
