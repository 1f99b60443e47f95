//! Where text goes: white space collapsed, gaps between blocks, character references resolved.

use super::entity;

/// What stands between two pieces of text, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    None,
    Space,
    Line,
    Paragraph,
}

/// The output of one page. A gap is written only when text follows it.
pub(super) struct Sink<'o> {
    out: &'o mut String,
    /// Length of `out` before the page.
    start: usize,
    gap: Gap,
    /// Whether a `br` is part of the gap: a second one makes a blank line.
    broken: bool,
    preformatted: bool,
}

impl<'o> Sink<'o> {
    pub(super) fn new(out: &'o mut String) -> Sink<'o> {
        let start = out.len();
        Sink {
            out,
            start,
            gap: Gap::None,
            broken: false,
            preformatted: false,
        }
    }

    /// No white space at the end.
    pub(super) fn finish(self) {
        let kept = self.out[self.start..].trim_end_matches([' ', '\n']).len();
        self.out.truncate(self.start + kept);
    }

    pub(super) fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    pub(super) fn line_break(&mut self) {
        self.gap(if self.broken {
            Gap::Paragraph
        } else {
            Gap::Line
        });
        self.broken = true;
    }

    pub(super) fn set_preformatted(&mut self, preformatted: bool) {
        self.preformatted = preformatted;
    }

    /// Text with character references, between two tags.
    pub(super) fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at] == b'&' {
                at += self.reference(&text[at..]);
                continue;
            }
            let end = at + memchr::memchr(b'&', &bytes[at..]).unwrap_or(bytes.len() - at);
            self.verbatim(&text[at..end]);
            at = end;
        }
    }

    /// Text in which `&` means itself.
    pub(super) fn verbatim(&mut self, text: &str) {
        if self.preformatted {
            self.kept(text);
        } else {
            self.collapsed(text);
        }
    }

    /// The character reference at the beginning of the text; returns its length.
    fn reference(&mut self, text: &str) -> usize {
        match entity::decode(text) {
            None => {
                self.verbatim("&");
                1
            }
            Some((entity::Value::Char(c), length)) => {
                self.verbatim(c.encode_utf8(&mut [0; 4]));
                length
            }
            Some((entity::Value::Text(value), length)) => {
                self.verbatim(value);
                length
            }
        }
    }

    fn collapsed(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if is_space(bytes[at]) {
                self.gap(Gap::Space);
                at += 1;
                continue;
            }
            let end = run_end(bytes, at);
            self.write_gap();
            self.out.push_str(&text[at..end]);
            at = end;
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
            self.out.push_str(line.strip_suffix('\r').unwrap_or(line));
        }
    }

    fn write_gap(&mut self) {
        if self.gap == Gap::None {
            return;
        }
        let written = &self.out[self.start..];
        if !written.is_empty() {
            let missing = match self.gap {
                Gap::None => "",
                Gap::Space => " ",
                _ if written.ends_with("\n\n") => "",
                Gap::Line if written.ends_with('\n') => "",
                Gap::Line => "\n",
                Gap::Paragraph if written.ends_with('\n') => "\n",
                Gap::Paragraph => "\n\n",
            };
            self.out.push_str(missing);
        }
        self.gap = Gap::None;
        self.broken = false;
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

/// Where the text from `at` on stops being copied as it is: at white space, other than a single
/// space between two words.
fn run_end(bytes: &[u8], mut at: usize) -> usize {
    loop {
        while at < bytes.len() && !is_space(bytes[at]) {
            at += 1;
        }
        let single =
            bytes.get(at) == Some(&b' ') && bytes.get(at + 1).is_some_and(|next| !is_space(*next));
        if !single {
            return at;
        }
        at += 1;
    }
}
