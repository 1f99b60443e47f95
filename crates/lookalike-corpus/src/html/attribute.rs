//! Attributes of a start tag and their values.

use std::borrow::Cow;

use memchr::memchr;

/// An iterator over the attributes of a start tag, in order, with their raw values. In HTML only the first of repeated attributes counts.
pub(crate) struct TagAttributes<'a> {
    rest: &'a str,
}

impl<'a> TagAttributes<'a> {
    /// Creates the iterator from the text between the name of a tag and its end.
    pub(crate) fn new(attributes: &'a str) -> TagAttributes<'a> {
        TagAttributes { rest: attributes }
    }

    /// Removes and returns the first `length` bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Returns the number of bytes before the first for which `ends` is true.
    fn until(&self, ends: impl Fn(u8) -> bool) -> usize {
        let bytes = self.rest.as_bytes();
        bytes
            .iter()
            .position(|byte| ends(*byte))
            .unwrap_or(bytes.len())
    }

    fn skip_blanks(&mut self) {
        self.take(self.until(|byte| !byte.is_ascii_whitespace()));
    }
}

impl<'a> Iterator for TagAttributes<'a> {
    /// Name in lower case, and raw value, which is empty if there is none.
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.take(self.until(|byte| byte != b'/' && !byte.is_ascii_whitespace()));
        // A name may begin with `=`. Such a name takes at least one byte, and so does every other, because its first byte cannot end a name: the
        // iterator always advances.
        let begins = usize::from(*self.rest.as_bytes().first()? == b'=');
        let bytes = &self.rest.as_bytes()[begins..];
        let end = bytes
            .iter()
            .position(|byte| matches!(byte, b'=' | b'/') || byte.is_ascii_whitespace());
        let name = lower_case(self.take(begins + end.unwrap_or(bytes.len())));
        self.skip_blanks();
        let Some(rest) = self.rest.strip_prefix('=') else {
            return Some((name, ""));
        };
        self.rest = rest;
        self.skip_blanks();
        Some((name, self.value()))
    }
}

impl<'a> TagAttributes<'a> {
    fn value(&mut self) -> &'a str {
        if let Some(quote @ (b'"' | b'\'')) = self.rest.as_bytes().first().copied()
            // An unclosed quote does not count as one: the rule that cut the tag at its `>` ignores it too.
            && let Some(length) = memchr(quote, &self.rest.as_bytes()[1..])
        {
            let value = &self.take(length + 2)[1..];
            return &value[..length];
        }
        self.take(self.until(|byte| byte.is_ascii_whitespace()))
    }
}

/// Returns a name in lower case (attribute name state). Nearly all names are, so they are not copied.
fn lower_case(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

/// Returns the value of the first attribute with this (lower-case) name, with character references resolved.
pub(super) fn value<'a>(attributes: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let (_, raw) = TagAttributes::new(attributes).find(|(known, _)| known == name)?;
    Some(htmlize::unescape_attribute(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_as_the_standard_has_them() {
        let cases: [(&str, &[(&str, &str)]); 9] = [
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
            (
                " \u{c9}A=\u{dc}B HREF",
                &[("\u{c9}a", "\u{dc}B"), ("href", "")],
            ),
        ];
        for (written, expected) in cases {
            let found: Vec<_> = TagAttributes::new(written).collect();
            let found: Vec<_> = found
                .iter()
                .map(|(name, value)| (&**name, *value))
                .collect();
            assert_eq!(found, expected, "{written}");
        }
    }

    #[test]
    fn values_are_resolved() {
        let written = " ALT='a &amp; b&eacute;&' alt=c";
        assert_eq!(value(written, "alt").as_deref(), Some("a & b\u{e9}&"));
        assert_eq!(value(written, "href"), None);
    }

    #[test]
    fn a_parameter_that_is_called_like_a_character_stays() {
        let cases = [
            ("?a=1&copy=2", "?a=1&copy=2"),
            ("?a=1&copyright", "?a=1&copyright"),
            ("?a=1&copy;=2", "?a=1\u{a9}=2"),
            ("?a=1&copy", "?a=1\u{a9}"),
            ("?a=1&copy&b=2", "?a=1\u{a9}&b=2"),
            ("&#65=&#66c", "A=Bc"),
        ];
        for (written, expected) in cases {
            assert_eq!(htmlize::unescape_attribute(written), expected, "{written}");
        }
    }
}
