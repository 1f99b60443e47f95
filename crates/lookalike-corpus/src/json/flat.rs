//! The fast walk through a common line: an object whose wanted fields are at its top level.
//!
//! Strings are skipped by vector search for `"` and `\`; for all other values serde_json finds the end. For input that it does not handle (control characters,
//! escaped names, objects to descend into, lone surrogates, errors of any kind) this walk gives up, and [`super::pick`] decides. So this walk never
//! accepts a line that the other one refuses, nor reads it differently; the tests compare the two.

use serde::de::IgnoredAny;

use super::found::{FoundFields, TextCapture};
use super::parts::kind_of;
use super::selection::{FieldNode, FieldSelection, FieldSlot};
use super::unescape::{next_special, string_end};

/// Walks the line. Returns `None` if it is not of the common kind; `found` is then meaningless.
pub(super) fn pick<'de>(
    line: &'de str,
    selection: &FieldSelection,
    found: &mut FoundFields<'de, '_>,
) -> Option<()> {
    // No early exit, so that the compiler uses vectors.
    if line.bytes().fold(false, |any, byte| any | (byte < b' ')) {
        return None;
    }
    let mut walk = FlatWalk { line, at: 0, found };
    walk.object(&selection.root)
}

struct FlatWalk<'de, 'f, 'b> {
    line: &'de str,
    at: usize,
    found: &'f mut FoundFields<'de, 'b>,
}

impl<'de> FlatWalk<'de, '_, '_> {
    fn object(&mut self, root: &FieldNode) -> Option<()> {
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            return self.end();
        }
        loop {
            let name = self.name()?;
            self.expect(b':')?;
            match root.find(name) {
                Some(node) => self.read_selected(node)?,
                None => self.skip_value()?,
            }
            if self.peek()? == b'}' {
                return self.end();
            }
            self.expect(b',')?;
        }
    }

    /// Skips blanks and returns the next byte, without consuming it.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.line.as_bytes();
        // Spaces only: a line with other white space was given up before the walk.
        while *bytes.get(self.at)? == b' ' {
            self.at += 1;
        }
        Some(bytes[self.at])
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Checks for the closing brace with nothing after it.
    fn end(&mut self) -> Option<()> {
        self.expect(b'}')?;
        self.peek().is_none().then_some(())
    }

    /// Reads a name without escapes.
    fn name(&mut self) -> Option<&'de [u8]> {
        self.expect(b'"')?;
        let bytes = self.line.as_bytes();
        let start = self.at;
        let end = next_special(bytes, start)?;
        self.at = end + 1;
        (bytes[end] == b'"').then_some(&bytes[start..end])
    }

    fn skip_value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.skip_string(),
            _ => self.skip_other(),
        }
    }

    fn read_selected(&mut self, node: &FieldNode) -> Option<()> {
        self.found.clear(node.below);
        let first = self.peek()?;
        let start = self.at;
        if first != b'"' {
            return self.read_selected_other(node, first);
        }
        if node.raw != 0 {
            self.skip_string()?;
            let json = &self.line[start..self.at];
            self.found.set_raw(node.raw, Some(json));
        }
        if node.text != 0 {
            self.at = start;
            self.text(node.text)?;
        } else if node.raw == 0 {
            self.skip_string()?;
        }
        Some(())
    }

    fn read_selected_other(&mut self, node: &FieldNode, first: u8) -> Option<()> {
        // This value needs descending into, which is left to the other walk.
        if first == b'{' && !node.children.is_empty() {
            return None;
        }
        let start = self.at;
        self.skip_other()?;
        let json = &self.line[start..self.at];
        self.found.set_raw(node.raw, Some(json));
        let text = match first {
            b'n' => TextCapture::Null,
            _ => TextCapture::WrongType(kind_of(json)),
        };
        self.found.set_text(node.text, text);
        Some(())
    }

    /// Skips a value that is not a string.
    fn skip_other(&mut self) -> Option<()> {
        let rest = serde_json::Deserializer::from_str(&self.line[self.at..]);
        let mut values = rest.into_iter::<IgnoredAny>();
        // serde_json checks numbers, nesting and escapes here, so that this walk accepts only valid JSON.
        values.next()?.ok()?;
        // For numbers the offset is after the last digit; the caller checks the next byte.
        self.at += values.byte_offset();
        Some(())
    }

    fn skip_string(&mut self) -> Option<()> {
        self.at = string_end(self.line.as_bytes(), self.at + 1)? + 1;
        Some(())
    }

    /// Reads a string that is wanted as text: borrowed if possible, otherwise unescaped.
    fn text(&mut self, slots: u16) -> Option<()> {
        let bytes = self.line.as_bytes();
        let start = self.at + 1;
        let first = next_special(bytes, start)?;
        if bytes[first] == b'"' {
            self.at = first + 1;
            let text = TextCapture::Borrowed(&self.line[start..first]);
            self.found.set_text(slots, text);
            return Some(());
        }
        // The HTML is rarely needed if there is a text.
        if slots == 1 << FieldSlot::Html as u16 {
            let end = string_end(bytes, first)?;
            self.at = end + 1;
            let text = TextCapture::Escaped(&self.line[start..=end]);
            self.found.set_text(slots, text);
            return Some(());
        }
        // Uses the buffer of the text slot. Unescaping also checks the escapes, so no second pass is needed.
        let end = self.found.buffers.0[0].unescape(bytes, start)?;
        self.at = end + 1;
        self.found.set_text(slots, TextCapture::Buffered);
        // Two text fields with the same path would need a buffer each. Giving up this late is fine: the other walk sets everything anew.
        (slots == 1 << FieldSlot::Text as u16).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::any_line::walk;
    use super::super::found::TextBuffers;
    use super::*;
    use crate::options::InputOptions;

    /// Formats the fields so that they can be compared.
    fn told(found: &mut FoundFields<'_, '_>) -> Vec<String> {
        let raw = [
            FieldSlot::Id,
            FieldSlot::Url,
            FieldSlot::OrderKey,
            FieldSlot::Category,
        ]
        .map(|slot| format!("{:?}", found.raw(slot)));
        found.settle(FieldSlot::Html);
        let text = [FieldSlot::Text, FieldSlot::Html].map(|slot| match found.text(slot) {
            TextCapture::Borrowed(text) => text.to_owned(),
            TextCapture::Buffered => found.buffered(slot).to_owned(),
            other => format!("{other:?}"),
        });
        raw.into_iter().chain(text).collect()
    }

    /// Runs both walks on one line: the fast one may give up, but must not differ. Returns true if it succeeded.
    fn compare(line: &str) -> bool {
        let options = InputOptions {
            order_field: Some("max:meta.n".parse().unwrap()),
            category: Some("url".parse().unwrap()),
            ..InputOptions::default()
        };
        let selection = FieldSelection::new(&options);
        let mut buffers = [TextBuffers::default(), TextBuffers::default()];
        let [mut quick, mut slow] = buffers.each_mut().map(FoundFields::new);
        if pick(line, &selection, &mut quick).is_none() {
            return false;
        }
        walk(line, &selection, &mut slow).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(told(&mut quick), told(&mut slow), "{line}");
        true
    }

    #[test]
    fn common_lines_are_taken() {
        for line in [
            r#"{}"#,
            r#"{"text":"plain"}"#,
            r#" { "id" : 12 , "text" : "a\n\"b\" \\ \/ \u00e9 \ud83d\ude00" , "x" : [1,{"y":"}"}] } "#,
            r#"{"id":"a\tb","url":null,"html":true,"text":[],"meta":1.5e3}"#,
            r#"{"text":"a\nb","text":"c"}"#,
            r#"{"text":"a\nb","text":null}"#,
            r#"{"html":"a\nb","text":"c\nd"}"#,
            r#"{"html":"a\nb","html":"\u00e9","text":null}"#,
        ] {
            assert!(compare(line), "{line}");
        }
    }

    #[test]
    fn others_are_left_alone() {
        for line in [
            "{\"text\":\"a\tb\"}",
            "{\t\"text\":\"a\"}",
            r#"{"te\u0078t":"a"}"#,
            r#"{"text":"\ud800"}"#,
            r#"{"text":"\ud800\u0041"}"#,
            r#"{"text":"\x"}"#,
            r#"{"skipped":"\ud800"}"#,
            r#"{"meta":{"n":1}}"#,
            r#"{"text":"a"} {"#,
            r#"{"text":"a",}"#,
            r#"{"text":"a" "id":1}"#,
            r#"{"n":01}"#,
            r#"{"n":1x}"#,
            r#"{"n":}"#,
            r#"{"text":"a"#,
            r#"{"text""#,
            "{",
            "",
            "7",
        ] {
            assert!(!compare(line), "{line}");
        }
    }

    proptest! {
        #[test]
        fn the_quick_walk_agrees_with_the_thorough_one(
            pieces in proptest::collection::vec(prop_oneof![
                "[{}\\[\\],:\" ]",
                "\"(text|id|url|html|meta|n)\":",
                "\"[a-z\\\\nu0-9]{0,6}\"",
                "\\\\(n|u[0-9a-f]{4}|ud8[0-9]{2}\\\\udc[0-9]{2})",
                "-?[0-9]{1,3}(\\.[0-9])?",
                "null|true",
            ], 0..12),
        ) {
            compare(&pieces.concat());
            compare(&format!("{{\"text\":\"{}\"}}", pieces.concat()));
            compare(&format!("{{\"id\":{}}}", pieces.concat()));
        }
    }
}
