//! Detection of the character set of a file, and decoding: byte order mark, declaration, UTF-8, guess.
//!
//! The order is that of the WHATWG "encoding sniffing" algorithm, except that bytes that contradict a declaration win:
//!
//! 1. a byte order mark (UTF-8, UTF-16), or zeros as in UTF-16 without one;
//! 2. the `Content-Type` header of the HTTP response, then the page's own declaration, for HTML `<meta charset>` or `http-equiv` in its head,
//!    within the first 64 KiB, else that of XML; unless the bytes contradict it: another set than UTF-8 for valid non-ASCII UTF-8, or UTF-8 for text
//!    that is far from it;
//! 3. for texts, ISO-2022-JP if its escape sequences lead to Japanese; UTF-8 if the bytes are valid, or nearly: at least four well-formed non-ASCII
//!    sequences for each broken one, except one that is cut off at the end;
//! 4. windows-1252 if all else is ASCII, or the guess of chardetng from 64 KiB that begin before the first letter that is not ASCII.
//!
//! For rows of CSV steps 3 and 4 apply, for lines of JSON step 3 and windows-1252: guesses from short lines are too unreliable.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use memchr::memchr;

use crate::html::{TagAttributes, attributes_end, is_tag, raw_end};

/// Bytes of a file in which a declaration counts wherever it is.
const PRESCAN_BYTES: usize = 1024;

/// Bytes of a file that are searched for a declaration in its head.
const HEAD_BYTES: usize = 64 << 10;

/// Number of bytes that the detector sees.
const GUESS_BYTES: usize = 64 << 10;

/// Bytes of a file that are searched for the zeros of UTF-16, and the fewest in which they count.
const UTF16_BYTES: std::ops::RangeInclusive<usize> = 8..=1024;

/// Minimum number of well-formed non-ASCII sequences for each broken one in text that is "nearly UTF-8".
const UTF8_BENEFIT: usize = 4;

/// A decoded file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodedText<'a> {
    /// The text without byte order mark; borrowed if it was UTF-8 throughout.
    pub text: Cow<'a, str>,
    /// The WHATWG name of the character set.
    pub charset: &'static str,
    /// True if something could not be decoded and became U+FFFD.
    pub replaced: bool,
    /// True if a header or the page declared a character set that the bytes contradict.
    pub wrong_declaration: bool,
}

/// Detects the character set of a file and decodes it. Never fails. Linear in the length.
pub fn decode(bytes: &[u8], html: bool) -> DecodedText<'_> {
    decode_declared(bytes, html, None)
}

/// Works like [`decode`], with the character set that an HTTP header declares.
pub fn decode_declared<'a>(
    bytes: &'a [u8],
    html: bool,
    header: Option<&'static Encoding>,
) -> DecodedText<'a> {
    // A byte order mark overrides every declaration, as in browsers (WHATWG Encoding, section 6, "decode").
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return decode_as(encoding, &bytes[mark..]);
    }
    if let Some(encoding) = unmarked_utf16(bytes) {
        return decode_as(encoding, bytes);
    }
    let within = || match html {
        true => declared(bytes),
        false => in_xml_declaration(&bytes[..bytes.len().min(PRESCAN_BYTES)]),
    };
    let fits = |encoding: &&'static Encoding| !contradicts(encoding, bytes);
    let first = header.or_else(within);
    // A server declares one set for all its pages, so a page may well be right where its header is wrong.
    let of_page = || header.and_then(|_| within().filter(fits));
    let chosen = first.filter(fits).or_else(of_page);
    let decoded = match chosen {
        Some(encoding) => decode_as(encoding, bytes),
        None => decode_undeclared(bytes, html),
    };
    DecodedText {
        wrong_declaration: first != chosen,
        ..decoded
    }
}

fn decode_undeclared(bytes: &[u8], html: bool) -> DecodedText<'_> {
    match simdutf8::basic::from_utf8(bytes) {
        // Not in a page, where an escape sequence could hide markup from programs that read it as ASCII.
        Ok(_) if !html && is_iso_2022_jp(bytes) => decode_as(ISO_2022_JP, bytes),
        Ok(text) => DecodedText {
            text: Cow::Borrowed(text),
            charset: UTF_8.name(),
            replaced: false,
            wrong_declaration: false,
        },
        Err(_) if is_nearly_utf8(bytes) => decode_as(UTF_8, bytes),
        // Last, because the detector never returns UTF-8 here (`Utf8Detection::Deny`): valid and nearly valid bytes do not get to it.
        Err(_) => decode_as(guess(bytes), bytes),
    }
}

/// Decodes a line of JSON or a value of a table, whose character set is not declared: as UTF-8, or as windows-1252 if it is far from UTF-8, since
/// that has a character for each byte. Borrowed if it was UTF-8 throughout. Linear in the length.
///
/// U+FFFD for each byte would make all words of the same length equal, and different texts copies of each other. A guess from a single line could
/// differ from that for its neighbour, which would then not be a copy of it.
pub(crate) fn decode_line(bytes: &[u8]) -> Cow<'_, str> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) if is_nearly_utf8(bytes) => TableCharset::UTF_8.decode(bytes),
        Err(_) => TableCharset::default().decode(bytes),
    }
}

/// The character set of those rows of a table that are far from UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableCharset(&'static Encoding);

impl Default for TableCharset {
    fn default() -> Self {
        Self(WINDOWS_1252)
    }
}

impl TableCharset {
    /// The character set of rows that are not far from UTF-8.
    pub(crate) const UTF_8: TableCharset = TableCharset(UTF_8);

    /// Guesses the character set from the first row that is far from UTF-8, and the bytes behind it.
    pub(crate) fn guess(row: &[u8], rest: &[u8]) -> Self {
        let row = &row[..row.len().min(GUESS_BYTES)];
        let rest = &rest[..rest.len().min(GUESS_BYTES - row.len())];
        Self(guess(&[row, b"\n", rest].concat()))
    }

    /// Returns the character set of a row that is far from UTF-8: windows-1252 if the set of the table does not fit.
    pub(crate) fn of_row(self, bytes: &[u8]) -> Self {
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

/// Returns true if the bytes contradict the declaration: bytes are hardly valid non-ASCII UTF-8 by chance, and bytes far from UTF-8 are something
/// else.
fn contradicts(declared: &'static Encoding, bytes: &[u8]) -> bool {
    if declared == UTF_8 {
        return !is_like_utf8(bytes);
    }
    if declared == ISO_2022_JP {
        // ISO-2022-JP is ASCII with escapes, and other bytes do not decode.
        return memchr(0x1b, bytes).is_none() && !bytes.is_ascii();
    }
    if declared == UTF_16LE || declared == UTF_16BE {
        // UTF-16 of a page contains NUL bytes, from its tags or blanks.
        return memchr(0, bytes).is_none() && simdutf8::basic::from_utf8(bytes).is_ok();
    }
    // Require four sequences: one or two may be a word in another character set that is valid UTF-8 by chance.
    bytes
        .iter()
        // Bytes from 0xC0 on start a sequence and its other bytes are below, so this counts sequences, not bytes. The count comes first: it ends
        // early, or leaves nothing to validate.
        .filter(|byte| **byte >= 0xc0)
        .take(UTF8_BENEFIT)
        .count()
        == UTF8_BENEFIT
        && simdutf8::basic::from_utf8(bytes).is_ok()
}

/// Returns the character set that the value of a `Content-Type` header names.
pub fn in_content_type(value: &str) -> Option<&'static Encoding> {
    // Unlike a declaration within the bytes, a header may name UTF-16.
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

/// Returns UTF-16 if the bytes begin as a text in it without a byte order mark: with a tag, or with characters of which at least half are printable ASCII
/// or white space; and none is a control character.
pub(crate) fn unmarked_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(*UTF16_BYTES.end())];
    if head.len() < *UTF16_BYTES.start() || memchr(0, head).is_none() {
        return None;
    }
    let is_text = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r' | 0x0c);
    [(UTF_16LE, 0), (UTF_16BE, 1)]
        .into_iter()
        .find_map(|(encoding, low)| {
            let (mut ascii, mut others) = (0, 0);
            for pair in head.chunks_exact(2) {
                match (pair[low], pair[1 - low]) {
                    (byte, 0) if is_text(byte) => ascii += 1,
                    (..0xa0, 0) => return None,
                    _ => others += 1,
                }
            }
            let units = head.chunks_exact(2).map(|pair| [pair[low], pair[1 - low]]);
            let mut start = units.skip_while(|[byte, high]| *high == 0 && byte.is_ascii_whitespace());
            let is_tag = start.next() == Some([b'<', 0])
                && matches!(start.next(), Some([byte, 0]) if byte.is_ascii_alphabetic() || b"!?".contains(&byte));
            (is_tag || ascii >= others).then_some(encoding)
        })
}

/// Returns true if the bytes are UTF-8, or nearly.
pub(crate) fn is_like_utf8(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok() || is_nearly_utf8(bytes)
}

fn is_nearly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut broken, mut last) = (0, 0, &b""[..]);
    for piece in bytes.utf8_chunks() {
        // `utf8_chunks` ends a piece at each broken sequence, so this counts one for each replacement character that decoding would produce.
        good += piece.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        last = piece.invalid();
        broken += usize::from(!last.is_empty());
    }
    // Crawlers cut pages at a number of bytes, which may be within a character.
    let is_cut = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    good >= (broken - usize::from(is_cut && good > 0)) * UTF8_BENEFIT
}

/// Returns true for text in ISO-2022-JP, in which Japanese stands between escape sequences and all bytes are ASCII.
fn is_iso_2022_jp(bytes: &[u8]) -> bool {
    memchr(0x1b, bytes).is_some()
        && ISO_2022_JP
            .decode_without_bom_handling_and_without_replacement(bytes)
            .is_some_and(|text| text.chars().any(is_kana))
}

/// Returns true for a letter of Hiragana or Katakana, which no Japanese text lacks.
fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}')
}

/// Guesses the character set of bytes that are far from UTF-8.
fn guess(bytes: &[u8]) -> &'static Encoding {
    // What is ASCII tells the detector nothing, and symbols hardly more: it takes a few for letters of Central Europe, or for parts of Chinese ones.
    let start = match bytes.iter().position(|byte| is_letter_byte(*byte)) {
        None if are_symbols_of_1252(bytes) => return WINDOWS_1252,
        None => 0,
        Some(letter) => guess_start(bytes, letter),
    };
    let end = bytes.len().min(start + GUESS_BYTES);
    // It never sees ISO-2022-JP, which is valid UTF-8.
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes[start..end], true);
    detector.guess(None, Utf8Detection::Deny)
}

/// Returns true for a byte that is a letter in windows-1252, or a lead byte of Shift_JIS that is hardly ever a symbol there.
fn is_letter_byte(byte: u8) -> bool {
    matches!(byte, 0x81..=0x83 | 0x8a | 0x8c..=0x90 | 0x9a | 0x9c..=0x9f | 0xc0..)
}

/// Returns true if the bytes that are not ASCII, all of them symbols in windows-1252, are symbols indeed: they are rare, and most stand alone, whereas
/// those of Chinese, Japanese and Korean sets come in pairs.
fn are_symbols_of_1252(bytes: &[u8]) -> bool {
    let (mut all, mut alone) = (0, 0);
    for run in bytes.split(u8::is_ascii) {
        all += run.len();
        alone += usize::from(run.len() == 1);
    }
    all * MIN_ASCII_FOR_SYMBOL <= bytes.len() && alone * 2 >= all
}

/// Minimum length of a text for each of its symbols.
const MIN_ASCII_FOR_SYMBOL: usize = 10;

/// Returns the position at which the bytes for the detector begin, given that of the first letter: the start of the text if the letter is near to it, or
/// else a place before the letter that is within no character of several bytes.
fn guess_start(bytes: &[u8], letter: usize) -> usize {
    const CONTEXT: usize = 64;
    if letter < GUESS_BYTES / 2 {
        return 0;
    }
    let context = &bytes[letter - CONTEXT..letter];
    // A byte after a line feed begins a character in every set.
    match memchr::memrchr(b'\n', context) {
        Some(at) => letter - CONTEXT + at + 1,
        None => {
            letter
                - context
                    .iter()
                    .rev()
                    .take_while(|byte| !byte.is_ascii())
                    .count()
        }
    }
}

/// Returns the character set that a page declares in its head.
///
/// Follows the WHATWG prescan of the first 1024 bytes: comments are skipped, and the first `meta` with a `charset`, or with `http-equiv=content-type`
/// and a charset in its `content`, decides. Behind these bytes, browsers change the character set if their parser comes to such an element
/// (WHATWG HTML, "change the encoding"), so scripts and style sheets are skipped. If there is none, an XML declaration decides. UTF-16 means UTF-8 here.
pub fn declared(html: &[u8]) -> Option<&'static Encoding> {
    let head = &html[..html.len().min(HEAD_BYTES)];
    let (mut at, mut raw) = (0, 0);
    while let Some(found) = memchr(b'<', &head[at..]) {
        at += found;
        let rest = &head[at..];
        if rest.starts_with(b"<!--") {
            // The two hyphens that start the comment may also end it (WHATWG HTML, "prescan a byte stream"). The 5 bytes are the 2 that were skipped
            // and the 3 of the end itself. A comment without an end hides the rest.
            at += memchr::memmem::find(&rest[2..], b"-->")? + 5;
            continue;
        }
        let is = |name: &[u8]| is_tag(&rest[1..], name);
        if is(b"meta") {
            // A tag that is cut off declares nothing.
            let Some((end, _)) = attributes_end(head, at + 5) else {
                break;
            };
            let encoding = meta(&String::from_utf8_lossy(&head[at + 5..end - 1]));
            if encoding.is_some() && (end <= PRESCAN_BYTES || at >= raw) {
                return encoding;
            }
            at = end;
            continue;
        }
        if at >= raw
            && let Some(name) = RAW.iter().find(|name| is(name))
        {
            raw = raw_end(head, at + 1, name);
        } else if at >= raw.max(PRESCAN_BYTES) && (is(b"/head") || is(b"body")) {
            break;
        }
        at += 1;
    }
    in_xml_declaration(&head[..head.len().min(PRESCAN_BYTES)])
}

/// Elements of a head in which tags mean nothing.
const RAW: [&[u8]; 4] = [b"script", b"style", b"title", b"noscript"];

/// Returns the character set of an XML declaration (XML 1.0, section 4.3.3) at the start.
fn in_xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = head.strip_prefix(b"<?xml")?;
    let end = memchr(b'>', declaration)?;
    let after = memchr::memmem::find(&declaration[..end], b"encoding")? + b"encoding".len();
    let rest = after_equals(&declaration[after..end])?;
    let quote = rest.first().filter(|byte| matches!(byte, b'"' | b'\''))?;
    label(rest[1..].split(|byte| byte == quote).next()?)
}

/// Returns the character set that the attributes of a `meta` tag declare.
fn meta(attributes: &str) -> Option<&'static Encoding> {
    let (mut charset, mut pragma, mut content) = (None, false, None);
    for (name, value) in TagAttributes::new(attributes) {
        match &*name {
            "charset" => charset = charset.or_else(|| label(value.as_bytes())),
            "http-equiv" => pragma |= value.eq_ignore_ascii_case("content-type"),
            "content" => content = content.or_else(|| charset_in(value.as_bytes(), label)),
            _ => {}
        }
    }
    // `charset` takes precedence over the pragma, whatever their order in the tag.
    charset.or(content.filter(|_| pragma))
}

/// Returns the character set of a label, except those that decode any text to a single replacement character.
fn decodable(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label(label).filter(|encoding| *encoding != encoding_rs::REPLACEMENT)
}

fn label(name: &[u8]) -> Option<&'static Encoding> {
    let encoding = decodable(name)?;
    // A declaration that can be read byte by byte is not in UTF-16 (WHATWG HTML, "prescan a byte stream").
    Some(match encoding {
        _ if encoding == UTF_16LE || encoding == UTF_16BE => UTF_8,
        // Nor is it in a set of private characters.
        _ if encoding == X_USER_DEFINED => WINDOWS_1252,
        _ => encoding,
    })
}

/// Returns the bytes behind an equals sign, which comes first, without white space.
fn after_equals(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.trim_ascii_start().strip_prefix(b"=")?;
    Some(rest.trim_ascii_start())
}

/// Returns the character set of the label after `charset=` in the value of a `content` attribute.
fn charset_in(
    content: &[u8],
    of_label: fn(&[u8]) -> Option<&'static Encoding>,
) -> Option<&'static Encoding> {
    let lower = content.to_ascii_lowercase();
    let after = memchr::memmem::find(&lower, b"charset")? + b"charset".len();
    let rest = after_equals(&lower[after..])?;
    let name = match rest.first()? {
        quote @ (b'"' | b'\'') => rest[1..].split(|byte| byte == quote).next()?,
        _ => rest
            // The last two for headers of several types, or in quotes.
            .split(|byte| byte.is_ascii_whitespace() || b";,\"".contains(byte))
            .next()?,
    };
    of_label(name)
}
