//! The elements that the reading view distinguishes, and their common properties.

use super::tag::{self, TagLayout, TagName};

/// Properties of elements, one bit each.
pub(super) mod group {
    /// An element without content and end tag.
    pub(in super::super) const VOID: u16 = 1;
    /// Ends an open paragraph where it begins.
    pub(in super::super) const ENDS_P: u16 = 1 << 1;
    /// A block-level element: end tags inside it do not close elements outside of it ("special" in the HTML standard).
    pub(in super::super) const SPECIAL: u16 = 1 << 2;
    /// End tags of other blocks inside it do not close elements outside of it ("scope" in the HTML standard).
    pub(in super::super) const SCOPE: u16 = 1 << 3;
    /// A `div` that contains one of these is not a paragraph.
    pub(in super::super) const BLOCK: u16 = 1 << 4;
    /// May be part of a paragraph.
    pub(in super::super) const PHRASING: u16 = 1 << 5;
    /// Its text gives points to the elements around it.
    pub(in super::super) const SCORED: u16 = 1 << 6;
    /// Dropped if it has no content.
    pub(in super::super) const HOLDER: u16 = 1 << 7;
    /// Its text is more than a label.
    pub(in super::super) const TEXT_LIKE: u16 = 1 << 8;
    /// Never part of an article.
    pub(in super::super) const JUNK: u16 = 1 << 9;
    /// Part of a data table.
    pub(in super::super) const MEMBER: u16 = 1 << 10;
    /// `h1` to `h6`.
    pub(in super::super) const HEADING: u16 = 1 << 11;
    /// Never in the tree: it has no readable content, or is implied whether it is written or not.
    pub(in super::super) const ABSENT: u16 = 1 << 12;
}

use group::{
    ABSENT, BLOCK, ENDS_P, HEADING, HOLDER, JUNK, MEMBER, PHRASING, SCOPE, SCORED, SPECIAL,
    TEXT_LIKE, VOID,
};

/// Groups to which every block belongs.
const FLOW: u16 = ENDS_P | SPECIAL;

macro_rules! elements {
    ($($variant:ident $name:literal $groups:expr;)+) => {
        /// An element, identified by its name, or a piece of text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[repr(u8)]
        pub(super) enum HtmlElement {
            $($variant,)+
            /// An element with another name.
            #[default]
            Other,
            /// A piece of text.
            Text,
        }

        const GROUPS: &[u16] = &[$($groups,)+ 0, PHRASING];

        const NAMES: &[TagName] = &[$(TagName::new($name),)+ TagName::UNKNOWN, TagName::UNKNOWN];

        const KINDS: &[TagLayout] = &[$(tag::kind_of($name),)+ TagLayout::Inline, TagLayout::Inline];

        impl HtmlElement {
            /// Returns the element with this name.
            pub(super) fn of(name: TagName) -> HtmlElement {
                // Names are numbers, so the compiler turns this chain into a tree of comparisons.
                $(if name == const { TagName::new($name) } {
                    return HtmlElement::$variant;
                })+
                HtmlElement::Other
            }
        }
    };
}

elements! {
    A "a" 0;
    Abbr "abbr" PHRASING;
    Address "address" FLOW;
    Area "area" VOID;
    Article "article" FLOW;
    Aside "aside" FLOW | JUNK;
    Audio "audio" PHRASING;
    B "b" PHRASING;
    Base "base" ABSENT;
    Bdo "bdo" PHRASING;
    Blockquote "blockquote" FLOW | BLOCK | TEXT_LIKE;
    Body "body" ABSENT;
    Br "br" VOID | PHRASING;
    Button "button" PHRASING | JUNK | SPECIAL;
    Caption "caption" SPECIAL | SCOPE | MEMBER;
    Center "center" FLOW;
    Cite "cite" PHRASING;
    Code "code" PHRASING;
    Col "col" VOID | MEMBER;
    Colgroup "colgroup" MEMBER;
    Data "data" PHRASING;
    Datalist "datalist" PHRASING;
    Dd "dd" FLOW;
    Del "del" 0;
    Details "details" FLOW;
    Dfn "dfn" PHRASING;
    Dialog "dialog" FLOW;
    Dir "dir" FLOW;
    Div "div" FLOW | BLOCK | HOLDER | TEXT_LIKE;
    Dl "dl" FLOW | BLOCK | TEXT_LIKE;
    Dt "dt" FLOW;
    Em "em" PHRASING;
    Embed "embed" VOID | PHRASING | JUNK;
    Fieldset "fieldset" FLOW;
    Figcaption "figcaption" FLOW;
    Figure "figure" FLOW;
    Font "font" PHRASING | TEXT_LIKE;
    Footer "footer" FLOW | JUNK;
    Form "form" FLOW;
    H1 "h1" FLOW | HOLDER | HEADING;
    H2 "h2" FLOW | HOLDER | HEADING | SCORED;
    H3 "h3" FLOW | HOLDER | HEADING | SCORED;
    H4 "h4" FLOW | HOLDER | HEADING | SCORED;
    H5 "h5" FLOW | HOLDER | HEADING | SCORED;
    H6 "h6" FLOW | HOLDER | HEADING | SCORED;
    Head "head" ABSENT;
    Header "header" FLOW | HOLDER;
    Hgroup "hgroup" FLOW;
    Hr "hr" VOID | ENDS_P;
    Html "html" ABSENT;
    I "i" PHRASING;
    // The walk skips its content, so it has none.
    Iframe "iframe" VOID | JUNK;
    Img "img" VOID | PHRASING | BLOCK | TEXT_LIKE;
    Input "input" VOID | PHRASING | JUNK;
    Ins "ins" 0;
    Kbd "kbd" PHRASING;
    Label "label" PHRASING;
    Legend "legend" 0;
    Li "li" FLOW | TEXT_LIKE;
    Link "link" ABSENT;
    Listing "listing" FLOW;
    Main "main" FLOW;
    Mark "mark" PHRASING;
    Math "math" PHRASING;
    Menu "menu" FLOW;
    Meta "meta" ABSENT;
    Meter "meter" PHRASING;
    Nav "nav" FLOW;
    Noembed "noembed" ABSENT;
    Noframes "noframes" ABSENT;
    Noscript "noscript" ABSENT;
    Object "object" PHRASING | JUNK | SPECIAL | SCOPE;
    Ol "ol" FLOW | BLOCK | TEXT_LIKE;
    Optgroup "optgroup" 0;
    Option "option" 0;
    Output "output" PHRASING;
    P "p" FLOW | BLOCK | SCORED | TEXT_LIKE;
    Param "param" ABSENT;
    Picture "picture" 0;
    Plaintext "plaintext" FLOW;
    Pre "pre" FLOW | BLOCK | SCORED | TEXT_LIKE;
    Progress "progress" PHRASING;
    Q "q" PHRASING;
    Ruby "ruby" PHRASING;
    S "s" 0;
    Samp "samp" PHRASING;
    Script "script" ABSENT;
    Search "search" FLOW;
    Section "section" FLOW | HOLDER | SCORED;
    Select "select" PHRASING | JUNK | SPECIAL;
    Small "small" PHRASING;
    Source "source" ABSENT;
    Span "span" PHRASING | TEXT_LIKE;
    Strong "strong" PHRASING;
    Style "style" ABSENT;
    Sub "sub" PHRASING;
    Summary "summary" FLOW;
    Sup "sup" PHRASING;
    Svg "svg" 0;
    Table "table" FLOW | SCOPE | BLOCK | TEXT_LIKE;
    Tbody "tbody" SPECIAL;
    Td "td" SPECIAL | SCOPE | SCORED | TEXT_LIKE;
    Template "template" ABSENT;
    Textarea "textarea" PHRASING | JUNK | SPECIAL;
    Tfoot "tfoot" SPECIAL | MEMBER;
    Th "th" SPECIAL | SCOPE | MEMBER;
    Thead "thead" SPECIAL | MEMBER;
    Time "time" PHRASING;
    Title "title" ABSENT;
    Tr "tr" SPECIAL;
    Track "track" ABSENT;
    U "u" 0;
    Ul "ul" FLOW | BLOCK | TEXT_LIKE;
    Var "var" PHRASING;
    Video "video" 0;
    Wbr "wbr" VOID | PHRASING;
    Xmp "xmp" FLOW;
}

impl HtmlElement {
    /// Returns true if it belongs to one of the given groups.
    pub(super) fn is(self, group: u16) -> bool {
        // One load and one `and`, whereas the standard lists dozens of names in each of its rules.
        GROUPS[self as usize] & group != 0
    }

    /// Returns its name, or `UNKNOWN` if the element is not distinguished.
    pub(super) fn name(self) -> TagName {
        NAMES[self as usize]
    }

    /// Returns its effect on the layout of text.
    pub(super) fn kind(self) -> TagLayout {
        KINDS[self as usize]
    }

    /// Returns true for `h1` and `h2`, one of which may repeat the title.
    pub(super) fn is_title(self) -> bool {
        matches!(self, HtmlElement::H1 | HtmlElement::H2)
    }

    /// Returns true for a link, or text that was edited. They can be part of a paragraph if all their content can.
    pub(super) fn is_transparent(self) -> bool {
        matches!(self, HtmlElement::A | HtmlElement::Del | HtmlElement::Ins)
    }

    /// Returns true for `ul` and `ol`.
    pub(super) fn is_list(self) -> bool {
        matches!(self, HtmlElement::Ul | HtmlElement::Ol)
    }

    /// Returns true for `object`, `embed` and `iframe`.
    pub(super) fn is_embed(self) -> bool {
        matches!(
            self,
            HtmlElement::Object | HtmlElement::Embed | HtmlElement::Iframe
        )
    }

    /// Returns true for `thead`, `tbody` and `tfoot`.
    pub(super) fn is_row_group(self) -> bool {
        matches!(
            self,
            HtmlElement::Thead | HtmlElement::Tbody | HtmlElement::Tfoot
        )
    }

    /// Returns true for `td` and `th`.
    pub(super) fn is_cell(self) -> bool {
        matches!(self, HtmlElement::Td | HtmlElement::Th)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_known_by_their_names() {
        assert_eq!(
            HtmlElement::of(TagName::new("blockquote")),
            HtmlElement::Blockquote
        );
        assert_eq!(HtmlElement::of(TagName::new("custom")), HtmlElement::Other);
        assert_eq!(HtmlElement::of(TagName::UNKNOWN), HtmlElement::Other);
        let known = NAMES.iter().filter(|name| **name != TagName::UNKNOWN);
        for (at, name) in known.enumerate() {
            assert_eq!(HtmlElement::of(*name) as usize, at);
        }
        assert_eq!(HtmlElement::Td.kind(), TagLayout::Cell);
        assert!(HtmlElement::H3.is(HEADING) && !HtmlElement::Div.is(HEADING));
    }
}
