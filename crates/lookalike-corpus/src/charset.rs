//! Detection of the character set of a file, and decoding: byte order mark, declaration, UTF-8, guess.
//!
//! The order is that of the WHATWG "encoding sniffing" algorithm, save that bytes which speak against
//! a declaration win:
//!
//! 1. a byte order mark (UTF-8, UTF-16);
//! 2. the `Content-Type` header of the HTTP response, where there is one, else for HTML
//!    `<meta charset>` or `http-equiv` within the first 1024 bytes; unless it is a wrong one: another
//!    set than UTF-8 for what is UTF-8 beyond ASCII, or UTF-8 for what is nowhere near;
//! 3. UTF-8 if the bytes are valid, or nearly: at least four well-formed sequences beyond ASCII
//!    for each broken one;
//! 4. what chardetng makes of the first 64 KiB.
//!
//! Rows of CSV have steps 3 and 4, lines of JSON step 3 and windows-1252: short lines are guessed too badly.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use memchr::memchr;

/// Bytes of a file that are searched for a declaration.
const PRESCAN_BYTES: usize = 1024;

/// Bytes of a file that the detector sees.
const GUESS_BYTES: usize = 64 << 10;

/// Well-formed sequences beyond ASCII for each broken one that make text "nearly UTF-8".
const UTF8_BENEFIT: usize = 4;

/// A decoded file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodedText<'a> {
    /// The text without byte order mark; borrowed when it was UTF-8 all along.
    pub text: Cow<'a, str>,
    /// The WHATWG name of the character set.
    pub charset: &'static str,
    /// True if something could not be decoded and became U+FFFD.
    pub replaced: bool,
    /// True if a header or the page declared another character set than the bytes are in.
    pub wrong_declaration: bool,
}

/// Finds the character set of a file and decodes it. Never fails; linear in the length.
pub fn decode(bytes: &[u8], html: bool) -> DecodedText<'_> {
    decode_declared(bytes, html, None)
}

/// As [`decode`], with the character set that an HTTP header declares.
pub fn decode_declared<'a>(
    bytes: &'a [u8],
    html: bool,
    header: Option<&'static Encoding>,
) -> DecodedText<'a> {
    // Above every declaration, as in browsers (WHATWG Encoding, section 6, "decode").
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return decode_as(encoding, &bytes[mark..]);
    }
    let declared = header.or_else(|| html.then(|| declared(bytes)).flatten());
    let wrong = declared.is_some_and(|encoding| is_wrong(encoding, bytes));
    if let Some(encoding) = declared.filter(|_| !wrong) {
        return decode_as(encoding, bytes);
    }
    let decoded = match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => DecodedText {
            text: Cow::Borrowed(text),
            charset: UTF_8.name(),
            replaced: false,
            wrong_declaration: false,
        },
        Err(_) if is_nearly_utf8(bytes) => decode_as(UTF_8, bytes),
        // Only now, since the detector never says UTF-8 here (`Utf8Detection::Deny`): valid and nearly valid
        // bytes do not get to it.
        Err(_) => decode_as(guess(bytes, html), bytes),
    };
    DecodedText {
        wrong_declaration: wrong,
        ..decoded
    }
}

/// Decodes a line of JSON or a value of a table, which nothing declares: UTF-8, and what is far from it as windows-1252, which has a character
/// for each byte. Borrowed when it was UTF-8 all along. Linear in the length.
///
/// Not U+FFFD for each byte: all words of as many letters would be equal, and texts that are different copies of each other. No guess
/// either: lines are short, and one that is guessed otherwise than its neighbour would be no copy of it.
pub(crate) fn decode_line(bytes: &[u8]) -> Cow<'_, str> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => TableCharset::default().of_row(bytes).decode(bytes),
    }
}

/// The character set of rows that are far from UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableCharset(&'static Encoding);

impl Default for TableCharset {
    fn default() -> Self {
        Self(WINDOWS_1252)
    }
}

impl TableCharset {
    /// The one that the beginning of a table suggests.
    pub(crate) fn of_table(bytes: &[u8]) -> Self {
        let head = &bytes[..bytes.len().min(GUESS_BYTES)];
        match simdutf8::basic::from_utf8(head).is_ok() || is_nearly_utf8(head) {
            true => Self::default(),
            false => Self(guess(head, true)),
        }
    }

    /// The one of a row: UTF-8 if it is nearly that, or windows-1252 if the set of the table does not fit.
    pub(crate) fn of_row(self, bytes: &[u8]) -> Self {
        if simdutf8::basic::from_utf8(bytes).is_ok() || is_nearly_utf8(bytes) {
            return Self(UTF_8);
        }
        match self
            .0
            .decode_without_bom_handling_and_without_replacement(bytes)
        {
            Some(_) => self,
            None => Self::default(),
        }
    }

    /// Decodes a part of the row.
    pub(crate) fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        self.0.decode_without_bom_handling(bytes).0
    }
}

/// Returns true if the bytes contradict the declaration: UTF-8 beyond ASCII hardly comes about by
/// chance, and what is far from UTF-8 is something else.
fn is_wrong(declared: &'static Encoding, bytes: &[u8]) -> bool {
    if declared == UTF_8 {
        return simdutf8::basic::from_utf8(bytes).is_err() && !is_nearly_utf8(bytes);
    }
    if declared == encoding_rs::ISO_2022_JP {
        // It is ASCII with escapes, and decoding makes nothing of other bytes.
        return memchr(0x1b, bytes).is_none() && !bytes.is_ascii();
    }
    if declared == UTF_16LE || declared == UTF_16BE {
        // A page has tags, or blanks.
        return memchr(0, bytes).is_none() && simdutf8::basic::from_utf8(bytes).is_ok();
    }
    // Four sequences: one or two may be a word of another set that is UTF-8 by chance.
    bytes
        .iter()
        // Bytes from 0xC0 on begin a sequence; the rest of it is below. So sequences are counted, not
        // bytes. The count comes first: it ends soon, or leaves nothing to validate.
        .filter(|byte| **byte >= 0xc0)
        .take(UTF8_BENEFIT)
        .count()
        == UTF8_BENEFIT
        && simdutf8::basic::from_utf8(bytes).is_ok()
}

/// The character set that the value of a `Content-Type` header names.
pub fn in_content_type(value: &str) -> Option<&'static Encoding> {
    // A header stands beside the bytes, and may well say UTF-16.
    charset_in(value.as_bytes(), decodable)
}

fn decode_as<'a>(encoding: &'static Encoding, bytes: &'a [u8]) -> DecodedText<'a> {
    let (text, replaced) = encoding.decode_without_bom_handling(bytes);
    DecodedText {
        text,
        charset: encoding.name(),
        replaced,
        wrong_declaration: false,
    }
}

fn is_nearly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut broken) = (0, 0);
    for piece in bytes.utf8_chunks() {
        // `utf8_chunks` ends a piece at each broken sequence, which makes it one break for each replacement
        // character that decoding puts there.
        good += piece.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        broken += usize::from(!piece.invalid().is_empty());
    }
    good >= broken * UTF8_BENEFIT
}

fn guess(bytes: &[u8], html: bool) -> &'static Encoding {
    let iso_2022_jp = if html {
        // An escape sequence in a page could hide markup from whoever reads it as ASCII; chardetng asks not to
        // guess it for what comes from the web.
        Iso2022JpDetection::Deny
    } else {
        Iso2022JpDetection::Allow
    };
    let mut detector = EncodingDetector::new(iso_2022_jp);
    detector.feed(&bytes[..bytes.len().min(GUESS_BYTES)], true);
    detector.guess(None, Utf8Detection::Deny)
}

/// The character set that a page declares of itself in its first 1024 bytes.
///
/// The WHATWG prescan: comments are passed over; in the first `meta` that has one, `charset` or,
/// with `http-equiv=content-type`, the charset within `content` counts, else that of an XML declaration. UTF-16 means UTF-8 there.
pub fn declared(html: &[u8]) -> Option<&'static Encoding> {
    let head = &html[..html.len().min(PRESCAN_BYTES)];
    let mut at = 0;
    while let Some(found) = memchr(b'<', &head[at..]) {
        at += found;
        let rest = &head[at..];
        if rest.starts_with(b"<!--") {
            // The two hyphens may be those that begin the comment (WHATWG HTML, "prescan a byte stream").
            // 2 bytes that were passed over, and 3 of the end itself. A comment without an end hides what
            // follows.
            at += memchr::memmem::find(&rest[2..], b"-->")? + 5;
        } else if starts_with_word(&rest[1..], b"meta") {
            let (encoding, length) = meta(&rest[5..]);
            if encoding.is_some() {
                return encoding;
            }
            at += 5 + length;
        } else {
            at += 1;
        }
    }
    in_xml_declaration(head)
}

/// The character set of an XML declaration (XML 1.0, section 4.3.3) at the start.
fn in_xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = head.strip_prefix(b"<?xml")?;
    let end = memchr(b'>', declaration)?;
    let after = memchr::memmem::find(&declaration[..end], b"encoding")? + b"encoding".len();
    let rest = declaration[after..end].trim_ascii_start();
    let rest = rest.strip_prefix(b"=")?.trim_ascii_start();
    let quote = rest.first().filter(|byte| matches!(byte, b'"' | b'\''))?;
    label(rest[1..].split(|byte| byte == quote).next()?)
}

fn starts_with_word(bytes: &[u8], word: &[u8]) -> bool {
    // Strictly more: a byte must follow, or `<meta` may go on to `<metadata`.
    bytes.len() > word.len()
        && bytes[..word.len()].eq_ignore_ascii_case(word)
        && matches!(
            bytes[word.len()],
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c | b'/'
        )
}

/// Reads the attributes of a `meta` tag; says how long they are.
fn meta(tag: &[u8]) -> (Option<&'static Encoding>, usize) {
    let mut attributes = MetaAttributes { tag, at: 0 };
    let (mut charset, mut pragma, mut content) = (None, false, None);
    while let Some((name, value)) = attributes.next() {
        if name.eq_ignore_ascii_case(b"charset") {
            charset = charset.or_else(|| label(value));
        } else if name.eq_ignore_ascii_case(b"http-equiv") {
            pragma |= value.eq_ignore_ascii_case(b"content-type");
        } else if name.eq_ignore_ascii_case(b"content") {
            content = content.or_else(|| charset_in(value, label));
        }
    }
    // `charset` wins over the pragma, whatever their order in the tag.
    let encoding = charset.or(content.filter(|_| pragma));
    (encoding, attributes.at)
}

/// The character set of a label, but for those of which decoders make one replacement character, whatever the text.
fn decodable(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label(label).filter(|encoding| *encoding != encoding_rs::REPLACEMENT)
}

fn label(name: &[u8]) -> Option<&'static Encoding> {
    let encoding = decodable(name)?;
    // A declaration that could be read byte by byte is not in UTF-16 (WHATWG HTML, "prescan a byte stream").
    let is_utf16 = encoding == UTF_16LE || encoding == UTF_16BE;
    Some(if is_utf16 { UTF_8 } else { encoding })
}

/// The character set of the label after `charset=` in the value of a `content` attribute.
fn charset_in(
    content: &[u8],
    of_label: fn(&[u8]) -> Option<&'static Encoding>,
) -> Option<&'static Encoding> {
    let lower = content.to_ascii_lowercase();
    let after = memchr::memmem::find(&lower, b"charset")? + b"charset".len();
    let rest = lower[after..]
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let name = match rest.first()? {
        quote @ (b'"' | b'\'') => rest[1..].split(|byte| byte == quote).next()?,
        _ => rest
            .split(|byte| byte.is_ascii_whitespace() || *byte == b';')
            .next()?,
    };
    of_label(name)
}

/// Attributes of a tag up to its `>`.
struct MetaAttributes<'a> {
    tag: &'a [u8],
    at: usize,
}

impl<'a> MetaAttributes<'a> {
    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        self.skip(|byte| byte.is_ascii_whitespace() || byte == b'/');
        if matches!(self.tag.get(self.at), None | Some(b'>')) {
            return None;
        }
        let start = self.at;
        // The first byte of a name may be `=` (WHATWG HTML, "get an attribute"). Taking it unseen also makes
        // the loop move on in any case.
        self.at += 1;
        self.skip(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'>' | b'='));
        let name = &self.tag[start..self.at];
        self.skip(|byte| byte.is_ascii_whitespace());
        if self.tag.get(self.at) != Some(&b'=') {
            return Some((name, b""));
        }
        self.at += 1;
        self.skip(|byte| byte.is_ascii_whitespace());
        Some((name, self.value()))
    }

    fn value(&mut self) -> &'a [u8] {
        let Some(&first) = self.tag.get(self.at) else {
            return b"";
        };
        if matches!(first, b'"' | b'\'') {
            let start = self.at + 1;
            self.at = start;
            self.skip(|byte| byte != first);
            let value = &self.tag[start..self.at];
            // A quote that is not closed runs to the end of the 1024 bytes.
            self.at = (self.at + 1).min(self.tag.len());
            return value;
        }
        let start = self.at;
        self.skip(|byte| !byte.is_ascii_whitespace() && byte != b'>');
        &self.tag[start..self.at]
    }

    fn skip(&mut self, belongs: impl Fn(u8) -> bool) {
        while self.tag.get(self.at).is_some_and(|byte| belongs(*byte)) {
            self.at += 1;
        }
    }
}
