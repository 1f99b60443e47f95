//! The writer of text: white space collapsed, gaps between blocks, character references resolved.

use super::entity;
use super::target::{PageTarget, TextGap};
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

    /// Bytes of text so far, a gap that no text followed not counted.
    pub(super) fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// The text so far.
    pub(super) fn written(&self) -> &str {
        &self.out[self.start..]
    }

    /// No white space at the end.
    pub(super) fn finish(self) {
        let kept = self.out[self.start..].trim_end_matches([' ', '\n']).len();
        self.out.truncate(self.start + kept);
    }

    /// Copies text up to what must be looked at; returns how much that was.
    fn run(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        if self.preformatted {
            // At least 1: a text that begins with `&` is taken by `reference` before.
            let length = memchr::memchr(b'&', bytes).unwrap_or(bytes.len());
            self.kept(&text[..length]);
            return length;
        }
        // The caller has looked at the first byte. It is taken in any case, so that every run moves on.
        let length = run_end(bytes, 1);
        self.write_gap();
        self.out.push_str(&text[..length]);
        length
    }

    /// The character reference at the beginning of the text; returns its length.
    fn reference(&mut self, text: &str) -> usize {
        match entity::decode(text) {
            None => {
                self.verbatim("&");
                1
            }
            Some((entity::EntityValue::Char(c), length)) => {
                self.verbatim(c.encode_utf8(&mut [0; 4]));
                length
            }
            Some((entity::EntityValue::Text(value), length)) => {
                self.verbatim(value);
                length
            }
        }
    }

    fn collapsed(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                byte if is_space(byte) => {
                    self.gap(TextGap::Space);
                    at += 1;
                }
                // It means itself here, but ends a run.
                b'&' => {
                    self.write_gap();
                    self.out.push('&');
                    at += 1;
                }
                _ => at += self.run(&text[at..]),
            }
        }
    }

    /// Preformatted text: only line ends are made alike.
    fn kept(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.write_gap();
        for (i, line) in text.split('\n').enumerate() {
            if i > 0 {
                self.out.push('\n');
            }
            // CRLF becomes LF, so that one page saved by two systems has one text.
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
                // Preformatted text may end with line feeds of its own; they count as a part of the gap.
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

impl PageTarget for TextSink<'_> {
    fn gap(&mut self, gap: TextGap) {
        self.gap = self.gap.max(gap);
    }

    fn line_break(&mut self) {
        self.gap(if self.broken {
            TextGap::Paragraph
        } else {
            TextGap::Line
        });
        self.broken = true;
    }

    fn set_preformatted(&mut self, preformatted: bool) {
        self.preformatted = preformatted;
    }

    fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'&' => at += self.reference(&text[at..]),
                byte if !self.preformatted && is_space(byte) => {
                    self.gap(TextGap::Space);
                    at += 1;
                }
                _ => at += self.run(&text[at..]),
            }
        }
    }

    fn verbatim(&mut self, text: &str) {
        if self.preformatted {
            self.kept(text);
        } else {
            self.collapsed(text);
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

/// Finds the end of the text from `at` on that is copied as it is: at `&` and at white space, other than a
/// single space between two words.
fn run_end(bytes: &[u8], mut at: usize) -> usize {
    // Less than, not at most: the byte behind the block must be there, since a space at its end depends on it.
    while at + BLOCK < bytes.len() {
        let Some(block) = bytes[at..].first_chunk() else {
            break;
        };
        let ends = ends_mask(ByteBlock::new(block), bytes[at + BLOCK]);
        // The bit above the block is always set, so a block without an end moves on by 16: no branch on an
        // empty mask.
        at += ends.trailing_zeros() as usize;
        if ends & FULL != 0 {
            return at;
        }
    }
    while at < bytes.len() {
        // At the end of a text a space ends the run: what the next text begins with is not known yet.
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        if ends_run(bytes[at], next) {
            break;
        }
        at += 1;
    }
    at
}

const FULL: u32 = (1 << BLOCK) - 1;

/// Mask of the bytes of a block that end a run, before `next`; and the bit above the block.
fn ends_mask(block: ByteBlock, next: u8) -> u32 {
    let amp = block.equal(b'&');
    let stops_space = block.at_most(b' ') | amp;
    let next = u32::from(next <= b' ' || next == b'&') << (BLOCK - 1);
    // A space ends a run only before what stops it: the byte behind each is one bit further up.
    let spaces = block.equal(b' ') & (stops_space >> 1 | next);
    // Six vector operations and four `pmovmskb` for 16 bytes. Each of the four takes about three cycles to an
    // integer register, but none waits for another.
    block.at_most(b' ' - 1) | amp | spaces | 1 << BLOCK
}

/// Returns true if a byte ends a run before `next`. Controls that are no white space do, too: they begin a
/// run of their own.
fn ends_run(byte: u8, next: u8) -> bool {
    let stops_space = next <= b' ' || next == b'&';
    byte < b' ' || byte == b'&' || (byte == b' ' && stops_space)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_end_where_byte_by_byte_says(text in "[a-c &\n\u{1}]{1,60}", from in 0usize..40) {
            let bytes = text.as_bytes();
            let from = from.min(bytes.len());
            let next = |at: usize| bytes.get(at + 1).copied().unwrap_or(b' ');
            let plain = (from..bytes.len()).find(|at| ends_run(bytes[*at], next(*at)));
            prop_assert_eq!(run_end(bytes, from), plain.unwrap_or(bytes.len()));
        }
    }
}
