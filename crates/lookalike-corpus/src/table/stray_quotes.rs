//! Detection of quotes that swallow rows: one that begins a value by chance, as in `"Hello," she said`, extends its field over all lines up to the
//! next quote. Readers of CSV allow text after that quote, but no writer produces it. If that quote ends a value, the lines in between tell.

use memchr::memchr;

/// Tracks the quotes of the rows of a table, a few bytes at a time. Only quotes take time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StrayQuotes {
    delimiter: u8,
    place: QuoteState,
    /// True if the current quoted field contains a line feed.
    spans_lines: bool,
    /// True if a field with a line feed was closed by a quote that is followed by neither a delimiter nor a line end.
    found: bool,
}

/// The position of the next byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum QuoteState {
    /// At the start of a field, where a quote opens it.
    #[default]
    FieldStart,
    /// Within an unquoted field, or after the quotes of a quoted one.
    Unquoted,
    /// Within quotes.
    Quoted,
    /// After a quote within quotes, which closes them unless another follows.
    AfterQuote,
}

impl StrayQuotes {
    pub(super) fn new(delimiter: u8) -> Self {
        Self {
            delimiter,
            ..Self::default()
        }
    }

    /// Returns true if each line of a value reads like a row of a table with this many columns, together with the values around it in the row:
    /// `before` of them come before it. Prose in CSV does not, because a space follows its commas.
    pub(super) fn reads_like_rows(self, value: &[u8], before: usize, columns: usize) -> bool {
        let last = value.iter().filter(|byte| **byte == b'\n').count();
        let after = columns - before - 1;
        let mut lines = value.split(|byte| *byte == b'\n').enumerate();
        columns > 1
            && last > 0
            && lines.all(|(number, line)| {
                let mut values = line.split(|byte| *byte == self.delimiter).skip(1);
                let around = [(number == 0, before), (number == last, after)];
                let around = around.iter().filter(|(is_here, _)| *is_here);
                let around: usize = around.map(|(_, values)| values).sum();
                let delimiters = values.clone().count();
                around + delimiters + 1 == columns && !values.any(|value| value.starts_with(b" "))
            })
    }

    /// Processes more bytes of a row.
    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        while let Some(&first) = bytes.first() {
            let read = match self.place {
                QuoteState::FieldStart | QuoteState::Unquoted => self.read_unquoted(bytes),
                QuoteState::Quoted => self.read_quoted(bytes),
                QuoteState::AfterQuote => {
                    self.place = match first {
                        b'"' => QuoteState::Quoted,
                        _ if self.ends_field(first) => QuoteState::FieldStart,
                        _ => QuoteState::Unquoted,
                    };
                    self.found |= self.spans_lines && self.place == QuoteState::Unquoted;
                    1
                }
            };
            bytes = &bytes[read..];
        }
    }

    /// Ends a row. Returns true if it contained a stray quote.
    pub(super) fn end_row(&mut self) -> bool {
        let found = self.found;
        *self = Self::new(self.delimiter);
        found
    }

    fn ends_field(&self, byte: u8) -> bool {
        byte == self.delimiter || byte == b'\n' || byte == b'\r'
    }

    /// Skips to the next quote. Returns the number of bytes up to and including it.
    fn read_unquoted(&mut self, bytes: &[u8]) -> usize {
        let quote = memchr(b'"', bytes);
        let before = &bytes[..quote.unwrap_or(bytes.len())];
        if let Some(&last) = before.last() {
            self.place = match self.ends_field(last) {
                true => QuoteState::FieldStart,
                false => QuoteState::Unquoted,
            };
        }
        if quote.is_some() && self.place == QuoteState::FieldStart {
            self.place = QuoteState::Quoted;
            self.spans_lines = false;
        }
        before.len() + usize::from(quote.is_some())
    }

    fn read_quoted(&mut self, bytes: &[u8]) -> usize {
        let quote = memchr(b'"', bytes);
        let before = &bytes[..quote.unwrap_or(bytes.len())];
        self.spans_lines |= memchr(b'\n', before).is_some();
        if quote.is_some() {
            self.place = QuoteState::AfterQuote;
        }
        before.len() + usize::from(quote.is_some())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a row in pieces of this many bytes. Returns true if a stray quote is found.
    fn found(row: &[u8], piece: usize) -> bool {
        let mut quotes = StrayQuotes::new(b',');
        row.chunks(piece).for_each(|bytes| quotes.read(bytes));
        quotes.end_row()
    }

    #[test]
    fn a_quote_that_swallows_rows_is_found_and_none_that_a_writer_makes() {
        let cases: [(&[u8], bool); 9] = [
            (b"1,\"a\n2,b\n3,\"c\n", true),
            (b"\"a\nb\"c,d\n", true),
            (b"1,\"a\nb\"\n", false),
            (b"1,\"a\nb\",\"c\"\r\n", false),
            (b"1,\"a \"\"b\"\"\nc\"\n", false),
            // A stray quote within one line swallows no others.
            (b"1,\"a\" b\n", false),
            (b"1,a \"b\n", false),
            (b"\n1,a \"b\" c\n", false),
            (b"1,\"\nb", false),
        ];
        for (row, stray) in cases {
            for piece in 1..=row.len() {
                assert_eq!(found(row, piece), stray, "{}", row.escape_ascii());
            }
        }
    }

    #[test]
    fn lines_of_a_value_that_read_like_rows_are_told_from_prose() {
        let reads = |value: &str, before, columns| {
            StrayQuotes::new(b',').reads_like_rows(value.as_bytes(), before, columns)
        };
        assert!(reads("I went.\n2,Then I slept.", 1, 2));
        assert!(reads("I went.\r\n2,Then I slept.\r\n3,And woke.", 1, 2));
        assert!(reads("I went.,en\n2,Then I slept.", 1, 3));
        for prose in [
            "one line,2",
            "Dear Sir,\nHello",
            "Hello.\nDear Sir, bye.",
            "a\n\nb,c",
            "a\n",
        ] {
            assert!(!reads(prose, 1, 2), "{prose}");
        }
        // A table of one column has no delimiters that tell.
        assert!(!reads("a\nb", 0, 1));
    }

    proptest! {
        #[test]
        fn tables_that_a_writer_makes_have_none(fields in prop::collection::vec("[a\",\r\n]{0,6}", 1..6)) {
            let row: Vec<String> = fields.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
            let row = row.join(",") + "\n";
            prop_assert!(!found(row.as_bytes(), 3), "{row}");
        }
    }
}
