//! Texts to paragraphs: the parts of a document that are compared one by one (Yu, Hu and Zhang: similarity on full text and
//! paragraphs).
//!
//! Extraction separates the blocks of a page by blank lines, and so do most authors of plain text. Laws, lists and database exports have one
//! paragraph per line and no blank lines; as a single paragraph, such a text could only be recognised as a whole.

use crate::scheme::parse_error::option_from_str;

crate::words! {
    /// Rule for the end of a paragraph. Parsed from and printed as `auto`, `blank`, `lines`.
    ///
    /// ```
    /// use lookalike::ParagraphRule;
    ///
    /// let wrapped = "One thing\nleads.\n\nAnother follows.";
    /// let paragraphs: Vec<&str> = ParagraphRule::Auto.split(wrapped).collect();
    /// assert_eq!(paragraphs, ["One thing\nleads.\n", "Another follows."]);
    /// assert_eq!(ParagraphRule::Auto.split("Article 1\nArticle 2\n").count(), 2);
    /// assert_eq!(ParagraphRule::Lines.split(wrapped).count(), 3);
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum ParagraphRule {
        /// A blank line if the text has one between two other lines, else the end of each line.
        #[default]
        Auto = "auto",
        /// A blank line.
        Blank = "blank",
        /// The end of the line.
        Lines = "lines",
    }
}

impl ParagraphRule {
    /// Returns the paragraphs of a text in order, without blank ones. Linear in the text.
    pub fn split(self, text: &str) -> impl Iterator<Item = &str> {
        let by_line = match self {
            Self::Auto => !has_blank_line(text),
            Self::Blank => false,
            Self::Lines => true,
        };
        let mut rest = text;
        let parts = std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = if by_line { 0 } else { end_of_block(rest) };
            let line = rest[end..].find('\n').map_or(rest.len(), |at| end + at + 1);
            // The line that ends a block is blank and belongs to no paragraph.
            let part = &rest[..if by_line { line } else { end }];
            rest = &rest[line..];
            Some(part)
        });
        parts.filter(|part| !part.trim().is_empty())
    }
}

/// Returns the byte offset of the first blank line, or the length of the text.
fn end_of_block(text: &str) -> usize {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if line.trim().is_empty() {
            break;
        }
        end += line.len();
    }
    end
}

/// Returns true if a blank line stands between two others that are not blank.
fn has_blank_line(text: &str) -> bool {
    // Blank lines at the start and end of a text separate nothing. The whole text decides: a list with one blank line is cut there, and nowhere else.
    text.trim().lines().any(|line| line.trim().is_empty())
}

option_from_str!(ParagraphRule, "rule for paragraphs", "auto, blank or lines");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: [ParagraphRule; 3] = [
        ParagraphRule::Auto,
        ParagraphRule::Blank,
        ParagraphRule::Lines,
    ];

    fn trimmed(rule: ParagraphRule, text: &str) -> Vec<String> {
        let parts = rule.split(text);
        parts.map(|part| part.trim().to_owned()).collect()
    }

    /// The slow twin: splits the text into lines first, then groups them into blocks.
    fn by_lines(rule: ParagraphRule, text: &str) -> Vec<String> {
        let lines: Vec<&str> = text.split('\n').collect();
        let is_blank = |line: &&str| line.trim().is_empty();
        let first = lines.iter().position(|line| !is_blank(line));
        let last = lines.iter().rposition(|line| !is_blank(line));
        let (Some(first), Some(last)) = (first, last) else {
            return Vec::new();
        };
        let has_gap = lines[first..=last].iter().any(is_blank);
        let kept = |text: &String| !text.is_empty();
        if rule == ParagraphRule::Lines || rule == ParagraphRule::Auto && !has_gap {
            let all = lines.iter().map(|line| line.trim().to_owned());
            return all.filter(kept).collect();
        }
        let blocks = lines.split(is_blank);
        let all = blocks.map(|block| block.join("\n").trim().to_owned());
        all.filter(kept).collect()
    }

    proptest! {
        #[test]
        fn any_text_is_divided_as_line_by_line(text in "[a \n\r\u{3000}第]{0,40}") {
            for rule in RULES {
                prop_assert_eq!(trimmed(rule, &text), by_lines(rule, &text));
            }
        }
    }

    #[test]
    fn a_line_is_a_paragraph_where_no_blank_line_says_otherwise() {
        let law = "\n\n第一条 为了\n第二条 本法\n\n";
        assert_eq!(trimmed(ParagraphRule::Auto, law).len(), 2);
        assert_eq!(trimmed(ParagraphRule::Blank, law).len(), 1);
        let page = "One\ntwo\r\n \t\r\n\nThree";
        assert_eq!(trimmed(ParagraphRule::Auto, page), ["One\ntwo", "Three"]);
        assert_eq!(trimmed(ParagraphRule::Lines, page), ["One", "two", "Three"]);
    }

    #[test]
    fn a_rule_is_read_as_it_is_shown() {
        for rule in RULES {
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        let error = "sentences".parse::<ParagraphRule>().expect_err("no rule");
        assert!(error.to_string().contains("blank or lines"), "{error}");
    }
}
