//! What stands in a start tag besides its name: attributes and their values.

use std::borrow::Cow;

use super::entity;

/// The attributes of a start tag, in order, with their values as they are written; a repeated
/// attribute counts once in HTML, the first time.
pub(super) struct Attributes<'a> {
    rest: &'a str,
}

impl<'a> Attributes<'a> {
    /// From what stands between a tag's name and its end.
    pub(super) fn new(attributes: &'a str) -> Attributes<'a> {
        Attributes { rest: attributes }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(BLANKS);
    }
}

const BLANKS: [char; 5] = [' ', '\n', '\t', '\r', '\x0c'];

impl<'a> Iterator for Attributes<'a> {
    /// Name and raw value; the value is empty where there is none.
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.rest = self
            .rest
            .trim_start_matches(|c| c == '/' || BLANKS.contains(&c));
        // A name may begin with `=`.
        let first = self.rest.chars().next()?.len_utf8();
        let ends = |c| matches!(c, '=' | '/') || BLANKS.contains(&c);
        let end = self.rest[first..].find(ends);
        let end = end.map_or(self.rest.len(), |end| first + end);
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.skip_blanks();
        let Some(rest) = self.rest.strip_prefix('=') else {
            return Some((name, ""));
        };
        self.rest = rest;
        self.skip_blanks();
        Some((name, self.value()))
    }
}

impl<'a> Attributes<'a> {
    fn value(&mut self) -> &'a str {
        let quoted = ['"', '\''].into_iter().find_map(|quote| {
            let content = self.rest.strip_prefix(quote)?;
            content.split_once(quote)
        });
        let (value, rest) = quoted.unwrap_or_else(|| {
            let end = self.rest.find(BLANKS).unwrap_or(self.rest.len());
            self.rest.split_at(end)
        });
        self.rest = rest;
        value
    }
}

/// The value of the first attribute of this (lower-case) name, character references resolved.
pub(super) fn value<'a>(attributes: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let (_, raw) =
        Attributes::new(attributes).find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(resolved(raw))
}

/// A value with its character references resolved.
fn resolved(raw: &str) -> Cow<'_, str> {
    let Some(first) = raw.find('&') else {
        return Cow::Borrowed(raw);
    };
    let mut out = raw[..first].to_owned();
    let mut rest = &raw[first..];
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match entity::decode(rest) {
            Some((entity::Value::Char(c), length)) => {
                out.push(c);
                length
            }
            Some((entity::Value::Text(text), length)) => {
                out.push_str(text);
                length
            }
            None => {
                out.push('&');
                1
            }
        };
        rest = &rest[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_as_the_standard_has_them() {
        let cases: [(&str, &[(&str, &str)]); 8] = [
            ("", &[]),
            (" a", &[("a", "")]),
            (
                " a=b c='d e' f=\"g>h\"",
                &[("a", "b"), ("c", "d e"), ("f", "g>h")],
            ),
            (" a = b/c /", &[("a", "b/c")]),
            ("/a/b", &[("a", ""), ("b", "")]),
            (" =a=b", &[("=a", "b")]),
            (" a='b", &[("a", "'b")]),
            (" \u{e9}=\u{fc} x", &[("\u{e9}", "\u{fc}"), ("x", "")]),
        ];
        for (written, expected) in cases {
            let found: Vec<_> = Attributes::new(written).collect();
            assert_eq!(found, expected, "{written}");
        }
    }

    #[test]
    fn values_are_resolved() {
        let written = " ALT='a &amp; b&eacute;&' alt=c";
        assert_eq!(value(written, "alt").as_deref(), Some("a & b\u{e9}&"));
        assert_eq!(value(written, "href"), None);
    }
}
