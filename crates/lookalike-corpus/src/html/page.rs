//! The walk through a page: reports its texts and tags in order.
//!
//! No tree is built. The tokeniser follows those states of the HTML standard (13.2.5) that determine where text begins and ends: comments, CDATA in
//! foreign content, raw text elements, quoted attributes, character references. Time is linear in the page, whatever the nesting. The results go to a
//! [`PageTarget`]: the visible text ([`super::sink`]), the blocks of the fast mode, or a count.
//!
//! XML differs in a few places ([`PageSyntax`]).

use memchr::memchr;
use memchr::memmem;

use super::attribute::TagAttributes;
use super::syntax::PageSyntax;
use super::tag::{self, RawText, TagLayout, TagName, tag_set};
use super::target::{PageEvent, PageTarget, StartTag, TextGap};

/// Walks through a page and calls `target` with its parts. Never fails; O(length of the page).
pub(super) fn walk(html: &str, target: &mut dyn PageTarget) {
    walk_as(PageSyntax::of(html), html, target);
}

fn walk_as(syntax: PageSyntax, html: &str, target: &mut dyn PageTarget) {
    let mut page = PageWalk {
        html,
        syntax,
        target,
        hidden: 0,
        foreign: 0,
        is_unclosed: false,
    };
    page.run();
}

tag_set! { is_formatting:
    "a" "abbr" "b" "bdi" "bdo" "big" "cite" "code" "del" "dfn" "em" "font" "i" "ins" "kbd" "mark"
    "q" "s" "samp" "small" "span" "strike" "strong" "sub" "sup" "tt" "u" "var"
}

/// The state of a walk.
struct PageWalk<'h, 't> {
    html: &'h str,
    syntax: PageSyntax,
    target: &'t mut dyn PageTarget,
    /// Number of open `template` elements.
    hidden: u32,
    /// Number of open `svg` and `math` elements.
    foreign: u32,
    /// True if an element that is never shown has no end tag.
    is_unclosed: bool,
}

impl PageWalk<'_, '_> {
    fn run(&mut self) {
        let bytes = self.html.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let next = memchr(b'<', &bytes[at..]).map_or(bytes.len(), |found| at + found);
            self.text(at, next);
            at = next;
            // `markup` always returns more than `at`, so the walk ends.
            if at < bytes.len() {
                at = self.markup(at);
            }
        }
    }

    fn text(&mut self, from: usize, to: usize) {
        if from < to && self.hidden == 0 {
            self.target.receive(PageEvent::Text(&self.html[from..to]));
        }
    }

    /// Reads the markup that begins with the `<` at `at`. Returns its end.
    fn markup(&mut self, at: usize) -> usize {
        let bytes = self.html.as_bytes();
        match bytes.get(at + 1) {
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.start_tag(at),
            Some(b'/') => match bytes.get(at + 2) {
                Some(b'a'..=b'z' | b'A'..=b'Z') => self.end_tag(at),
                // A bogus comment; `</>` leaves nothing (HTML, end tag open state).
                Some(_) => after_greater_than(bytes, at + 2),
                // HTML, end tag open state: at the end of the page, the two characters are text.
                None => self.literal(at, at + 2),
            },
            Some(b'!') => self.declaration(at),
            // A processing instruction is a bogus comment in HTML.
            Some(b'?') => after_greater_than(bytes, at + 2),
            // XML, production 4.
            Some(b'_' | b':' | 0x80..) if self.syntax == PageSyntax::Xml => self.start_tag(at),
            _ => self.literal(at, at + 1),
        }
    }

    /// Treats a `<` that begins no markup as text.
    fn literal(&mut self, from: usize, to: usize) -> usize {
        self.text(from, to);
        to
    }

    fn declaration(&mut self, at: usize) -> usize {
        let bytes = self.html.as_bytes();
        let rest = &bytes[at + 2..];
        if rest.starts_with(b"--") {
            // An unclosed comment extends to the end of the page. The rest is searched only once, since the walk then ends.
            return tag::comment_end(bytes, at);
        }
        // In HTML, this is a bogus comment outside of SVG and MathML (markup declaration open state).
        if (self.foreign > 0 || self.syntax != PageSyntax::Html) && rest.starts_with(b"[CDATA[") {
            let start = at + b"<![CDATA[".len();
            // The same holds here: a search without a result ends the walk, so the total time stays linear.
            let end = memmem::find(&bytes[start..], b"]]>").map(|found| start + found);
            self.cdata(start, end.unwrap_or(bytes.len()));
            return end.map_or(bytes.len(), |end| end + 3);
        }
        after_greater_than(bytes, at + 2)
    }

    /// Reports the content of a CDATA section. Feeds hold their articles in such sections, as HTML.
    fn cdata(&mut self, from: usize, to: usize) {
        let content = &self.html[from..to];
        let is_article = ["</", "/>", "<br"]
            .iter()
            .any(|markup| memmem::find(content.as_bytes(), markup.as_bytes()).is_some());
        if self.syntax == PageSyntax::Xml && is_article {
            walk_as(PageSyntax::Html, content, self.target);
            // It may end within a `pre`.
            self.target.receive(PageEvent::Preformatted(false));
        } else {
            self.verbatim(from, to);
        }
    }

    /// Returns the effect of an element, which in HTML is that of its name.
    fn layout_of(&self, kind: TagLayout, name: TagName) -> TagLayout {
        match self.syntax {
            PageSyntax::Xml if is_formatting(name) => TagLayout::Inline,
            PageSyntax::Xml => TagLayout::Line,
            _ => kind,
        }
    }

    fn gap(&mut self, gap: TextGap) {
        self.target.receive(PageEvent::Gap(gap));
    }

    fn verbatim(&mut self, from: usize, to: usize) {
        if self.hidden == 0 {
            self.target
                .receive(PageEvent::Verbatim(&self.html[from..to]));
        }
    }

    fn start_tag(&mut self, at: usize) -> usize {
        let bytes = self.html.as_bytes();
        let (kind, name, name_end) = tag::name(bytes, at + 1);
        let Some((end, self_closing)) = tag::attributes_end(bytes, name_end) else {
            // HTML, tag open state: a tag without `>` is dropped with everything after it.
            return bytes.len();
        };
        if self.hidden == 0 {
            self.target.receive(PageEvent::Open(StartTag {
                name,
                attributes: &self.html[name_end..end - 1],
                self_closing,
            }));
        }
        match self.layout_of(kind, name) {
            TagLayout::Raw(_) | TagLayout::Template
                if self_closing && self.syntax == PageSyntax::Xhtml =>
            {
                end
            }
            TagLayout::Inline => end,
            TagLayout::Foreign => {
                self.foreign += u32::from(!self_closing);
                end
            }
            TagLayout::Template => {
                // Browsers show a shadow root in its place.
                let is_shown = self.hidden == 0 && is_shadow_root(&self.html[name_end..end - 1]);
                self.hidden += u32::from(!is_shown);
                end
            }
            TagLayout::Raw(raw) => self.raw(raw, &bytes[at + 1..name_end], end, self_closing),
            kind => self.layout(kind, true, end),
        }
    }

    fn end_tag(&mut self, at: usize) -> usize {
        let bytes = self.html.as_bytes();
        let (kind, name, name_end) = tag::name(bytes, at + 2);
        let Some((end, _)) = tag::attributes_end(bytes, name_end) else {
            return bytes.len();
        };
        let end = match self.layout_of(kind, name) {
            TagLayout::Inline | TagLayout::Raw(_) => end,
            TagLayout::Foreign => {
                self.foreign = self.foreign.saturating_sub(1);
                end
            }
            TagLayout::Template => {
                // End tags without a start tag are ignored, as by a parser.
                self.hidden = self.hidden.saturating_sub(1);
                end
            }
            kind => self.layout(kind, false, end),
        };
        if self.hidden == 0 {
            self.target.receive(PageEvent::Close(name));
        }
        end
    }

    /// Handles a tag that affects the layout of the text after it.
    fn layout(&mut self, kind: TagLayout, opens: bool, end: usize) -> usize {
        if kind == TagLayout::Pre {
            return self.pre(opens, end);
        }
        emit_layout_gap(self.target, kind, opens);
        if opens && kind != TagLayout::Break {
            // Blocks are not allowed in SVG and MathML: they end it, whether it is closed or not.
            self.foreign = 0;
        }
        end
    }

    /// Handles `pre`, which keeps its white space, except for a line break at its start.
    fn pre(&mut self, opens: bool, end: usize) -> usize {
        emit_layout_gap(self.target, TagLayout::Pre, opens);
        let rest = &self.html.as_bytes()[end..];
        match rest {
            [b'\r', b'\n', ..] if opens => end + 2,
            [b'\n', ..] if opens => end + 1,
            _ => end,
        }
    }

    /// Skips the content of an element that is never shown. It is markup, so without its end tag nobody knows where it ends, and it is not skipped.
    fn unseen(&mut self, name: &[u8], from: usize) -> usize {
        if self.is_unclosed {
            return from;
        }
        let end = tag::raw_end(self.html.as_bytes(), from, name);
        // Searched in vain only once, so that the time stays linear.
        self.is_unclosed = end == self.html.len();
        if self.is_unclosed { from } else { end }
    }

    /// Skips or reports the raw content of an element, which is not parsed as markup. Returns the start of its end tag.
    fn raw(&mut self, raw: tag::RawText, name: &[u8], from: usize, self_closing: bool) -> usize {
        let bytes = self.html.as_bytes();
        match raw {
            RawText::Unseen => return self.unseen(name, from),
            RawText::UnseenForeign if self.foreign > 0 && !self_closing => {
                return self.unseen(name, from);
            }
            RawText::UnseenForeign => return from,
            _ => {}
        }
        if self.foreign > 0 && raw != tag::RawText::Script {
            // In SVG and MathML, the names of HTML's raw elements mean nothing special (HTML, 13.2.6.5), except for `script`.
            return if self_closing {
                from
            } else {
                next_end_tag(bytes, from)
            };
        }
        if self.foreign > 0 && self_closing {
            return from;
        }
        let to = match raw {
            tag::RawText::Script => tag::script_end(bytes, from),
            tag::RawText::Plaintext => bytes.len(),
            _ => tag::raw_end(bytes, from, name),
        };
        match raw {
            tag::RawText::Textarea => {
                self.gap(TextGap::Space);
                self.text(from, to);
                self.gap(TextGap::Space);
            }
            tag::RawText::Xmp | tag::RawText::Plaintext => {
                self.gap(TextGap::Paragraph);
                self.verbatim(from, to);
                self.gap(TextGap::Paragraph);
            }
            tag::RawText::Title if self.hidden == 0 => {
                self.target.receive(PageEvent::Title(&self.html[from..to]));
            }
            _ => {}
        }
        to
    }
}

/// Calls `target` with the gap that the start or end of an element of this kind causes.
pub(super) fn emit_layout_gap(target: &mut dyn PageTarget, kind: TagLayout, opens: bool) {
    target.receive(match kind {
        TagLayout::Cell => PageEvent::Gap(TextGap::Space),
        TagLayout::Break => PageEvent::LineBreak,
        TagLayout::Line => PageEvent::Gap(TextGap::Line),
        TagLayout::Paragraph
        | TagLayout::Pre
        | TagLayout::Raw(RawText::Xmp | RawText::Plaintext) => PageEvent::Gap(TextGap::Paragraph),
        TagLayout::Inline | TagLayout::Foreign | TagLayout::Template | TagLayout::Raw(_) => return,
    });
    if kind == TagLayout::Pre {
        target.receive(PageEvent::Preformatted(opens));
    }
}

/// Returns true for the attributes of a `template` that is a declarative shadow root (HTML, 13.2.6.4.4).
fn is_shadow_root(attributes: &str) -> bool {
    let mode = TagAttributes::new(attributes).find(|(name, _)| name == "shadowrootmode");
    mode.is_some_and(|(_, mode)| {
        ["open", "closed"]
            .iter()
            .any(|known| mode.eq_ignore_ascii_case(known))
    })
}

/// Returns the offset just after the next `>`.
fn after_greater_than(bytes: &[u8], from: usize) -> usize {
    memchr(b'>', &bytes[from..]).map_or(bytes.len(), |found| from + found + 1)
}

/// Finds the next end tag: in SVG, `title` and `style` contain no raw text, and any end tag closes them.
fn next_end_tag(bytes: &[u8], from: usize) -> usize {
    memmem::find(&bytes[from..], b"</").map_or(bytes.len(), |found| from + found)
}
