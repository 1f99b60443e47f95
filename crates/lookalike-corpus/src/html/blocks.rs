//! A page as a row of blocks: pieces of text between two line breaks, with what speaks for and
//! against them being what the page is about.
//!
//! The second target of the walk, beside the visible text. [`super::fast`] judges the blocks.

use memchr::memmem;

use super::attribute::Attributes;
use super::sink::Sink;
use super::tag::Name;
use super::target::{Gap, Target};

/// A piece of text in the buffer of its [`Blocks`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// Range of the text, the gap before it included.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Gap between it and the block before.
    pub(super) gap: Gap,
    pub(super) words: u32,
    /// Of these, in links.
    pub(super) linked: u32,
    /// Its place on the page.
    pub(super) place: Place,
}

/// The place of a block, by the elements around it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// In `nav`, `footer`, `aside` and the like, or in what is hidden.
    pub(super) furniture: bool,
    /// In `article`.
    pub(super) article: bool,
    /// In `main`.
    pub(super) main: bool,
}

/// Collects the blocks of one page.
pub(super) struct Blocks<'b> {
    sink: Sink<'b>,
    blocks: &'b mut Vec<Block>,
    start: usize,
    /// Gap before the block at hand.
    gap: Gap,
    /// Start of the open link, or of the current block in it; links do not nest.
    link: Option<usize>,
    linked: Vec<(usize, usize)>,
    furniture: Region,
    article: Region,
    main: Region,
}

/// Tracks one open element of some kind: its name, and how many of that name are open in it.
#[derive(Debug, Default)]
pub(super) struct Region {
    open: Option<(Name, u32)>,
}

impl Region {
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn opened(&mut self, name: Name, begins: impl FnOnce() -> bool) {
        match &mut self.open {
            Some((known, depth)) if *known == name => *depth += 1,
            Some(_) => {}
            None if begins() => self.open = Some((name, 1)),
            None => {}
        }
    }

    pub(super) fn closed(&mut self, name: Name) {
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

/// A set of tag names.
macro_rules! names {
    ($function:ident: $($name:literal)+) => {
        fn $function(name: Name) -> bool {
            $(if name == const { Name::new($name) } {
                return true;
            })+
            false
        }
    };
}

names!(is_furniture: "nav" "footer" "aside" "button" "select" "menu" "dialog");
names!(is_container: "div" "section" "article" "main" "ul" "ol" "li" "table" "header" "form");
names!(is_cell: "td" "th");

const LINK: Name = Name::new("a");
const ARTICLE: Name = Name::new("article");
const MAIN: Name = Name::new("main");

/// Returns true if a start tag hides its element: `hidden`, `aria-hidden=true`,
/// `style="display: none"`.
fn is_hidden(attributes: &str) -> bool {
    let bytes = attributes.as_bytes();
    if memmem::find(bytes, b"hidden").is_none() && memmem::find(bytes, b"none").is_none() {
        return false;
    }
    Attributes::new(attributes).any(|(name, value)| match name {
        "hidden" => true,
        "aria-hidden" => value == "true",
        "style" => value.contains("display:none") || value.contains("display: none"),
        _ => false,
    })
}

impl<'b> Blocks<'b> {
    /// Collects into `text` and `blocks`, which are emptied.
    pub(super) fn new(text: &'b mut String, blocks: &'b mut Vec<Block>) -> Blocks<'b> {
        text.clear();
        blocks.clear();
        Blocks {
            sink: Sink::new(text),
            blocks,
            start: 0,
            gap: Gap::None,
            link: None,
            linked: Vec::new(),
            furniture: Region::default(),
            article: Region::default(),
            main: Region::default(),
        }
    }

    /// Ends the last block.
    pub(super) fn finish(mut self) {
        self.end_block(Gap::None);
    }

    /// Ends the block at hand, if there is any text in it.
    fn end_block(&mut self, gap: Gap) {
        let end = self.sink.len();
        if end == self.start {
            self.gap = self.gap.max(gap);
            return;
        }
        if let Some(from) = self.link {
            self.linked.push((from, end));
            self.link = Some(end);
        }
        let text = self.sink.written();
        let linked = self
            .linked
            .drain(..)
            .map(|(from, to)| words(&text.as_bytes()[from..to]));
        let linked = linked.sum();
        self.blocks.push(Block {
            start: self.start,
            end,
            gap: self.gap,
            words: words(&text.as_bytes()[self.start..end]),
            linked,
            place: Place {
                furniture: self.furniture.open.is_some(),
                article: self.article.open.is_some(),
                main: self.main.open.is_some(),
            },
        });
        self.start = end;
        self.gap = gap;
    }
}

impl Target for Blocks<'_> {
    fn text(&mut self, text: &str) {
        self.sink.text(text);
    }

    fn verbatim(&mut self, text: &str) {
        self.sink.verbatim(text);
    }

    fn gap(&mut self, gap: Gap) {
        if gap >= Gap::Line {
            self.end_block(gap);
        }
        self.sink.gap(gap);
    }

    fn line_break(&mut self) {
        self.sink.line_break();
    }

    fn set_preformatted(&mut self, preformatted: bool) {
        self.sink.set_preformatted(preformatted);
    }

    fn open(&mut self, name: Name, attributes: &str, self_closing: bool) {
        if name == LINK {
            self.end_link();
            self.link = Some(self.sink.len());
        } else if is_cell(name) {
            self.end_block(Gap::Space);
        } else if !self_closing && (is_furniture(name) || is_container(name)) {
            self.end_block(Gap::None);
            let begins = || is_furniture(name) || is_hidden(attributes);
            self.furniture.opened(name, begins);
            self.article.opened(name, || name == ARTICLE);
            self.main.opened(name, || name == MAIN);
        }
    }

    fn close(&mut self, name: Name) {
        if name == LINK {
            self.end_link();
        } else if is_furniture(name) || is_container(name) {
            self.end_block(Gap::None);
            self.furniture.closed(name);
            self.article.closed(name);
            self.main.closed(name);
        }
    }
}

impl Blocks<'_> {
    fn end_link(&mut self) {
        if let Some(from) = self.link.take()
            && from < self.sink.len()
        {
            self.linked.push((from, self.sink.len()));
        }
    }
}

/// Words in a text: runs without white space; where a script has no spaces, every second character
/// counts as one (Han, Kana, Thai and their neighbours, seen by their first byte in UTF-8).
pub(super) fn words(text: &[u8]) -> u32 {
    let (mut words, mut spaceless, mut before) = (0, 0, b' ');
    for &byte in text {
        words += u32::from(byte > b' ' && before <= b' ');
        spaceless += u32::from(matches!(byte, 0xe3..=0xe9));
        before = byte;
    }
    words + spaceless / 2
}
