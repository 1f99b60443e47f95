//! The definition of a line, shared by the chunk reader, which counts lines, and by the parser and the raw reader, so that a record has the same
//! number everywhere.

use memchr::memchr;

/// A line and its terminator: `\n`, `\r\n`, or nothing for an unterminated last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodedLine<'a> {
    /// Offset of the line in the iterated bytes.
    pub(crate) start: usize,
    /// The line without its terminator.
    pub(crate) content: &'a [u8],
    /// The terminator.
    pub(crate) end: &'static [u8],
}

impl DecodedLine<'_> {
    /// Returns true if the line counts as a record. Blank lines do not, unless they are too long, because an over-long line is recognized before its
    /// end is seen.
    pub(crate) fn is_record(&self, max_bytes: usize) -> bool {
        self.content.len() > max_bytes || !is_blank(self.content)
    }
}

/// An iterator over the lines of some bytes.
pub(crate) struct TextLines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> TextLines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        TextLines { bytes, at: 0 }
    }
}

impl<'a> Iterator for TextLines<'a> {
    type Item = DecodedLine<'a>;

    fn next(&mut self) -> Option<DecodedLine<'a>> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return None;
        }
        let start = self.at;
        let length = memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
        self.at += length;
        let (content, end) = split_terminator(&rest[..length]);
        Some(DecodedLine {
            start,
            content,
            end,
        })
    }
}

/// Splits a line from its terminator. A carriage return counts only before a line feed.
pub(crate) fn split_terminator(line: &[u8]) -> (&[u8], &'static [u8]) {
    match line {
        [content @ .., b'\r', b'\n'] => (content, b"\r\n"),
        [content @ .., b'\n'] => (content, b"\n"),
        content => (content, b""),
    }
}

/// Returns true if the line contains only JSON white space.
fn is_blank(content: &[u8]) -> bool {
    content
        .iter()
        // Ends at the first byte of nearly every line.
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Counts of lines at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LineCount {
    pub(crate) lines: u64,
    pub(crate) records: u64,
    /// Offset after these lines.
    pub(crate) end: usize,
}

/// Counts up to `most` lines at the start of the bytes, and the records among them.
pub(crate) fn count(bytes: &[u8], most: usize, max_bytes: usize) -> LineCount {
    let mut walk = TextLines::new(bytes);
    let (mut lines, mut records) = (0, 0);
    for line in walk.by_ref().take(most) {
        lines += 1;
        records += u64::from(line.is_record(max_bytes));
    }
    LineCount {
        lines,
        records,
        end: walk.at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
        TextLines::new(bytes)
            .map(|line| (line.content, line.end))
            .collect()
    }

    #[test]
    fn terminators_are_kept_apart() {
        assert_eq!(
            contents(b"a\r\nb\n\nc\rd"),
            [
                (&b"a"[..], &b"\r\n"[..]),
                (b"b", b"\n"),
                (b"", b"\n"),
                (b"c\rd", b"")
            ]
        );
        assert_eq!(contents(b""), []);
    }

    #[test]
    fn blank_lines_are_no_records_unless_too_long() {
        let counted = |bytes, most, max_bytes| {
            let LineCount {
                lines,
                records,
                end,
            } = count(bytes, most, max_bytes);
            (lines, records, end)
        };
        assert_eq!(counted(b"{}\n \t\r\n\nx", 9, 10), (4, 2, 9));
        assert_eq!(counted(b"{}\n \t\r\n\nx", 2, 10), (2, 1, 7));
        assert_eq!(counted(b"          \n", 9, 9), (1, 1, 11));
    }
}
