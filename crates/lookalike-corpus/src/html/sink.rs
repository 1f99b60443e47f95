//! The writer of text: collapses white space, writes gaps between blocks, and resolves character references.

use super::target::{PageEvent, PageTarget, TextGap};
use crate::block::{BLOCK, ByteBlock};

/// The output of one page. A gap is written only when text follows it.
pub(super) struct TextSink<'o> {
    out: &'o mut String,
    /// Length of `out` before the page.
    start: usize,
    gap: TextGap,
    /// True if a `br` is part of the gap: a second one makes a blank line.
    broken: bool,
    preformatted: bool,
}

impl<'o> TextSink<'o> {
    pub(super) fn new(out: &'o mut String) -> TextSink<'o> {
        let start = out.len();
        TextSink {
            out,
            start,
            gap: TextGap::None,
            broken: false,
            preformatted: false,
        }
    }

    /// Returns the number of bytes of text so far, without a gap that no text follows yet.
    pub(super) fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Returns the text so far.
    pub(super) fn written(&self) -> &str {
        &self.out[self.start..]
    }

    /// Writes text with character references.
    pub(super) fn text(&mut self, text: &str) {
        self.verbatim(&htmlize::unescape(text));
    }

    /// Writes text in which `&` means itself.
    pub(super) fn verbatim(&mut self, text: &str) {
        match self.preformatted {
            true => self.preformatted(text),
            false => self.collapsed(text),
        }
    }

    /// Removes white space at the end.
    pub(super) fn finish(self) {
        let kept = self.out[self.start..].trim_end_matches([' ', '\n']).len();
        self.out.truncate(self.start + kept);
    }

    /// Writes text in which white space collapses.
    fn collapsed(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at].is_ascii_whitespace() {
                self.gap = self.gap.max(TextGap::Space);
                at += 1;
                continue;
            }
            // The first byte is copied in any case, so that every run advances.
            let end = run_end(bytes, at + 1);
            self.write_gap();
            self.out.push_str(&text[at..end]);
            at = end;
        }
    }

    /// Writes preformatted text, normalizing only line ends.
    fn preformatted(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.write_gap();
        for (i, line) in text.split('\n').enumerate() {
            if i > 0 {
                self.out.push('\n');
            }
            // CRLF becomes LF, so that a page saved by two systems has one text.
            self.out.push_str(line.strip_suffix('\r').unwrap_or(line));
        }
    }

    fn write_gap(&mut self) {
        if self.gap == TextGap::None {
            return;
        }
        let written = &self.out[self.start..];
        if !written.is_empty() {
            let missing = match self.gap {
                TextGap::None => "",
                TextGap::Space => " ",
                _ if written.ends_with("\n\n") => "",
                // Preformatted text may end with its own line feeds; they count as part of the gap.
                TextGap::Line if written.ends_with('\n') => "",
                TextGap::Line => "\n",
                TextGap::Paragraph if written.ends_with('\n') => "\n",
                TextGap::Paragraph => "\n\n",
            };
            self.out.push_str(missing);
        }
        self.gap = TextGap::None;
        self.broken = false;
    }
}

/// Returns text with character references as a text of its own, such as a title.
pub(super) fn text_of(text: &str) -> String {
    let mut out = String::new();
    let mut sink = TextSink::new(&mut out);
    sink.text(text);
    sink.finish();
    out
}

impl PageTarget for TextSink<'_> {
    fn receive(&mut self, event: PageEvent<'_>) {
        match event {
            PageEvent::Text(text) => self.text(text),
            PageEvent::Verbatim(text) => self.verbatim(text),
            PageEvent::Gap(gap) => self.gap = self.gap.max(gap),
            PageEvent::LineBreak => {
                let gap = match self.broken {
                    true => TextGap::Paragraph,
                    false => TextGap::Line,
                };
                self.gap = self.gap.max(gap);
                self.broken = true;
            }
            PageEvent::Preformatted(preformatted) => self.preformatted = preformatted,
            PageEvent::Title(_) | PageEvent::Open(_) | PageEvent::Close(_) => {}
        }
    }
}

/// Finds the end of the text from `at` on that can be copied unchanged: at white space other than a single space between two words.
fn run_end(bytes: &[u8], mut at: usize) -> usize {
    // Less than, not at most: the byte after the block must exist, because a space at the end of the block depends on it.
    while at + BLOCK < bytes.len() {
        let Some(block) = bytes[at..].first_chunk() else {
            break;
        };
        let ends = ends_mask(ByteBlock::new(block), bytes[at + BLOCK]);
        // The bit above the block is always set, so a block without an end advances by 16, without a branch on an empty mask.
        at += ends.trailing_zeros() as usize;
        if ends & FULL != 0 {
            return at;
        }
    }
    while at < bytes.len() {
        // At the end of a text a space ends the run, because the start of the next text is not known yet.
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        if ends_run(bytes[at], next) {
            break;
        }
        at += 1;
    }
    at
}

const FULL: u32 = (1 << BLOCK) - 1;

/// Returns a mask of the bytes of a block that end a run, given the byte `next` after the block. The bit above the block is set, too.
fn ends_mask(block: ByteBlock, next: u8) -> u32 {
    let stops_space = block.at_most(b' ');
    let next = u32::from(next <= b' ') << (BLOCK - 1);
    // A space ends a run only before a byte that stops it; the next byte of each is one bit higher.
    let spaces = block.equal(b' ') & (stops_space >> 1 | next);
    block.at_most(b' ' - 1) | spaces | 1 << BLOCK
}

/// Returns true if a byte ends a run before `next`. Controls other than white space do, too: they begin a new run.
fn ends_run(byte: u8, next: u8) -> bool {
    byte < b' ' || (byte == b' ' && next <= b' ')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn references_as_the_standard_has_them() {
        let cases = [
            ("&amp;x", "&x"),
            ("&eacute!", "\u{e9}!"),
            ("&notit;", "\u{ac}it;"),
            ("&notin;", "\u{2209}"),
            ("&CounterClockwiseContourIntegral;", "\u{2233}"),
            ("&NotEqualTilde;", "\u{2242}\u{338}"),
            ("&hellip", "&hellip"),
            ("&#233;", "\u{e9}"),
            ("&#xE9 x", "\u{e9} x"),
            ("&#150;", "\u{2013}"),
            ("&#129;", "\u{81}"),
            ("&#0;", "\u{fffd}"),
            ("&#xd800;", "\u{fffd}"),
            ("&#99999999999;", "\u{fffd}"),
            ("a&#32;&#10; b", "a b"),
            ("&#;&#x;&& x&nosuch;", "&#;&#x;&& x&nosuch;"),
        ];
        for (reference, expected) in cases {
            let mut text = String::new();
            TextSink::new(&mut text).text(reference);
            assert_eq!(text, expected, "{reference}");
        }
    }

    proptest! {
        #[test]
        fn runs_end_where_byte_by_byte_says(text in "[a-c \n\u{1}]{1,60}", from in 0usize..40) {
            let bytes = text.as_bytes();
            let from = from.min(bytes.len());
            let next = |at: usize| bytes.get(at + 1).copied().unwrap_or(b' ');
            let plain = (from..bytes.len()).find(|at| ends_run(bytes[*at], next(*at)));
            prop_assert_eq!(run_end(bytes, from), plain.unwrap_or(bytes.len()));
        }
    }
}
