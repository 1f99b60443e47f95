//! A page as a sequence of blocks: pieces of text between two line breaks, with evidence for and against each being main content.
//!
//! This is the second output of the walk, besides the visible text. [`super::fast`] judges the blocks.

use memchr::memchr2_iter;

use super::attribute::{self, TagAttributes};
use super::marks::{is_streamed, is_undisplayed};
use super::sink::TextSink;
use super::tag::{TagName, tag_set};
use super::target::{PageEvent, PageTarget, StartTag, TextGap};

/// A piece of text in the buffer of its [`TextBlocks`].
#[derive(Debug, Clone, Copy)]
pub(super) struct TextBlock {
    /// Range of the text, including the gap before it.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Gap between this block and the one before.
    pub(super) gap: TextGap,
    pub(super) words: u32,
    /// The number of these words that are in links.
    pub(super) linked: u32,
    /// Its place on the page.
    pub(super) place: BlockContext,
}

/// Position of a block, by the elements around it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BlockContext {
    /// True within `nav`, `footer`, `aside` and the like, or in hidden elements.
    pub(super) chrome: bool,
    /// True within `article`.
    pub(super) article: bool,
    /// True within `main`.
    pub(super) main: bool,
    /// True within `dl`.
    pub(super) definitions: bool,
    /// True within `dt`.
    pub(super) term: bool,
}

/// Collects the blocks of one page.
pub(super) struct TextBlocks<'b> {
    sink: TextSink<'b>,
    blocks: &'b mut Vec<TextBlock>,
    start: usize,
    /// Gap before the current block.
    gap: TextGap,
    /// Start of the open link, or of its part in the current block; links do not nest.
    link: Option<usize>,
    linked: Vec<(usize, usize)>,
    chrome: OpenRegion,
    article: OpenRegion,
    main: OpenRegion,
    definitions: OpenRegion,
    term: OpenRegion,
}

/// Tracks one open element of some kind: its name, and the number of open elements with that name within it.
#[derive(Debug, Default)]
pub(super) struct OpenRegion {
    open: Option<(TagName, u32)>,
}

impl OpenRegion {
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn opened(&mut self, name: TagName, begins: impl FnOnce() -> bool) {
        match &mut self.open {
            // Elements with other names are not counted: pages close them in any order, and only an end tag of the same name can end the region.
            Some((known, depth)) if *known == name => *depth += 1,
            Some(_) => {}
            None if begins() => self.open = Some((name, 1)),
            None => {}
        }
    }

    pub(super) fn closed(&mut self, name: TagName) {
        if let Some((known, depth)) = &mut self.open
            && *known == name
        {
            *depth -= 1;
            if *depth == 0 {
                self.open = None;
            }
        }
    }
}

tag_set!(is_chrome: "nav" "footer" "aside" "button" "select" "menu" "dialog");
tag_set!(is_container: "div" "section" "article" "main" "ul" "ol" "li" "table" "header" "form");
tag_set!(is_definition: "dl" "dt" "dd");
tag_set!(is_cell: "td" "th");

const ARTICLE: TagName = TagName::new("article");
const MAIN: TagName = TagName::new("main");
const DEFINITIONS: TagName = TagName::new("dl");
const TERM: TagName = TagName::new("dt");

/// Returns true if a start tag hides its element: `hidden`, `aria-hidden=true`,
/// `style="display: none"`.
fn is_hidden(attributes: &str) -> bool {
    let bytes = attributes.as_bytes();
    // Nearly all tags end here, without examining each attribute.
    if !contains(bytes, b"hidden", 2) && !contains(bytes, b"style", 2) {
        return false;
    }
    TagAttributes::new(attributes).any(|(name, value)| match &*name {
        "hidden" => !attribute::value(attributes, "id").is_some_and(|id| is_streamed(&id)),
        "aria-hidden" => value == "true",
        // Not `visibility: hidden`: on real pages that is mostly text which a click unfolds.
        "style" => is_undisplayed(value),
        _ => false,
    })
}

/// Returns true if the bytes contain a word in any case. Searches for the letter at `rarest`, which should be rare in attributes.
fn contains(bytes: &[u8], word: &[u8], rarest: usize) -> bool {
    let letter = word[rarest];
    memchr2_iter(letter, letter.to_ascii_uppercase(), bytes).any(|at| {
        let start = at.checked_sub(rarest);
        let found = start.and_then(|start| bytes.get(start..start + word.len()));
        found.is_some_and(|found| found.eq_ignore_ascii_case(word))
    })
}

impl<'b> TextBlocks<'b> {
    /// Creates a collector that fills `text` and `blocks`, clearing them first.
    pub(super) fn new(text: &'b mut String, blocks: &'b mut Vec<TextBlock>) -> TextBlocks<'b> {
        text.clear();
        blocks.clear();
        TextBlocks {
            sink: TextSink::new(text),
            blocks,
            start: 0,
            gap: TextGap::None,
            link: None,
            linked: Vec::new(),
            chrome: OpenRegion::default(),
            article: OpenRegion::default(),
            main: OpenRegion::default(),
            definitions: OpenRegion::default(),
            term: OpenRegion::default(),
        }
    }

    /// Ends the last block.
    pub(super) fn finish(mut self) {
        self.end_block(TextGap::None);
    }

    /// Ends the current block, if it contains any text.
    fn end_block(&mut self, gap: TextGap) {
        let end = self.sink.len();
        if end == self.start {
            // Nothing was written since the last gap: of several gaps in a row, the strongest counts.
            self.gap = self.gap.max(gap);
            return;
        }
        if let Some(from) = self.link {
            // A link that continues counts in the next block from its start.
            self.linked.push((from, end));
            self.link = Some(end);
        }
        let text = self.sink.written();
        let linked = self
            .linked
            .drain(..)
            // This scans text that is already written, so each byte is counted once as text and at most once as a link.
            .map(|(from, to)| words(&text.as_bytes()[from..to]));
        let linked = linked.sum();
        self.blocks.push(TextBlock {
            start: self.start,
            end,
            gap: self.gap,
            words: words(&text.as_bytes()[self.start..end]),
            linked,
            place: BlockContext {
                chrome: self.chrome.open.is_some(),
                article: self.article.open.is_some(),
                main: self.main.open.is_some(),
                definitions: self.definitions.open.is_some(),
                term: self.term.open.is_some(),
            },
        });
        self.start = end;
        self.gap = gap;
    }
}

impl PageTarget for TextBlocks<'_> {
    fn receive(&mut self, event: PageEvent<'_>) {
        match event {
            PageEvent::Gap(gap) if gap >= TextGap::Line => self.end_block(gap),
            PageEvent::Open(tag) => self.open(tag),
            PageEvent::Close(name) => self.close(name),
            _ => {}
        }
        self.sink.receive(event);
    }
}

impl TextBlocks<'_> {
    fn open(&mut self, tag: StartTag<'_>) {
        let name = tag.name;
        if name == TagName::LINK {
            self.end_link();
            self.link = Some(self.sink.len());
        } else if is_cell(name) {
            // Cells end blocks, although they share a line: a row of a layout table may hold a menu beside an article.
            self.end_block(TextGap::Space);
        } else if !tag.self_closing && (is_chrome(name) || is_container(name)) {
            self.end_block(TextGap::None);
            let begins = || is_chrome(name) || is_hidden(tag.attributes);
            self.chrome.opened(name, begins);
            self.article.opened(name, || name == ARTICLE);
            self.main.opened(name, || name == MAIN);
        } else if is_definition(name) {
            self.end_block(TextGap::None);
            // Most pages leave out the end tags.
            self.term.closed(TERM);
            self.definitions.opened(name, || name == DEFINITIONS);
            self.term.opened(name, || name == TERM);
        }
    }

    fn close(&mut self, name: TagName) {
        if name == TagName::LINK {
            self.end_link();
        } else if is_chrome(name) || is_container(name) {
            self.end_block(TextGap::None);
            self.chrome.closed(name);
            self.article.closed(name);
            self.main.closed(name);
        } else if is_definition(name) {
            self.end_block(TextGap::None);
            self.definitions.closed(name);
            self.term.closed(TERM);
        }
    }

    fn end_link(&mut self) {
        // A link without text, or whose text ended with the last block, adds nothing.
        if let Some(from) = self.link.take()
            && from < self.sink.len()
        {
            self.linked.push((from, self.sink.len()));
        }
    }
}

/// Counts the words in a text: runs without white space. In scripts without spaces (Han and Kana, recognized by their first byte in UTF-8), every
/// second character counts as a word; in Thai, Lao, Tibetan, Burmese and Khmer, every fourth.
pub(super) fn words(text: &[u8]) -> u32 {
    let Some(first) = text.first() else { return 0 };
    let mut words = u32::from(*first > b' ');
    let (mut ideographs, mut letters) = (u32::from(is_ideograph(*first)), 0);
    // Counted in bytes, so that a register holds 16 counts or more; this loop runs over every byte of every page.
    let pairs = text[..text.len() - 1].chunks(COUNTED);
    for (befores, bytes) in pairs.zip(text[1..].chunks(COUNTED)) {
        let counts = befores
            .iter()
            .zip(bytes)
            .fold([0u8; 3], |[w, i, l], (&before, &byte)| {
                [
                    w + u8::from((byte > b' ') & (before <= b' ')),
                    i + u8::from(is_ideograph(byte)),
                    l + u8::from(is_letter(before, byte)),
                ]
            });
        let [begun, found, ended] = counts.map(u32::from);
        words += begun;
        ideographs += found;
        letters += ended;
    }
    words + ideographs / 2 + letters / 4
}

/// Number of bytes whose count fits in a byte.
const COUNTED: usize = u8::MAX as usize;

/// Returns true for the lead bytes of Kana and of Han up to U+9FFF. No script tables and no decoding, and no branches.
fn is_ideograph(byte: u8) -> bool {
    byte.wrapping_sub(0xe3) <= 0xe9 - 0xe3
}

/// Returns true for the first two bytes of a letter of Thai, Lao and Tibetan, or of Burmese and Khmer.
fn is_letter(before: u8, byte: u8) -> bool {
    let is_thai = (before == 0xe0) & (byte.wrapping_sub(0xb8) <= 0xbf - 0xb8);
    let is_burmese = (byte.wrapping_sub(0x80) <= 0x82 - 0x80) | (byte & 0xfe == 0x9e);
    is_thai | (before == 0xe1) & is_burmese
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts words byte by byte.
    fn plain(text: &[u8]) -> u32 {
        let before = |at: usize| at.checked_sub(1).map_or(b' ', |before| text[before]);
        let count = |is: &dyn Fn(u8, u8) -> bool| {
            (0..text.len())
                .filter(|at| is(before(*at), text[*at]))
                .count() as u32
        };
        let letters = count(
            &|before, byte| matches!((before, byte), (0xe0, 0xb8..=0xbf) | (0xe1, 0x80..=0x82 | 0x9e..=0x9f)),
        );
        count(&|before, byte| byte > b' ' && before <= b' ')
            + count(&|_, byte| matches!(byte, 0xe3..=0xe9)) / 2
            + letters / 4
    }

    proptest! {
        #[test]
        fn words_are_counted_as_byte_by_byte(
            text in "([a-c \n]|[\u{e00}-\u{10ff}]|[\u{1780}-\u{17ff}]|[\u{3000}-\u{9fff}]){0,600}",
            same in 0usize..700,
        ) {
            prop_assert_eq!(words(text.as_bytes()), plain(text.as_bytes()));
            for text in ["a ", "字", "ก"] {
                let text = text.repeat(same);
                prop_assert_eq!(words(text.as_bytes()), plain(text.as_bytes()));
            }
        }
    }
}
