//! The server that a URL names.

use std::borrow::Cow;

/// The host of an absolute URL, lower-cased, without user, port and a final dot; none if there is none.
///
/// Only the parts that name a server are looked at: what is wrong in a path harms nothing here.
pub fn host(url: &str) -> Option<Cow<'_, str>> {
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
}
