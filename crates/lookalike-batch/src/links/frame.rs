//! Encodes links as byte strings that sort by the page that they belong to.
//!
//! A link to a page consists of the number of the page, or of the place of its address (4 bytes, big-endian); a 0 byte; a hash of the address that
//! the link comes from (8 bytes); that address; and a 1 byte with the texts of the anchor, or a 0 byte. A link from a page consists of the page's
//! number, a 1 byte, the hash of the address that the link leads to, and that address, which ends the string. All other texts follow their length (4
//! bytes).
//!
//! Because links sort by hash, the links that a page with too many keeps do not depend on the input order, and are spread over all linking pages.

use lookalike::Anchor;

const TO_PAGE: u8 = 0;
const FROM_PAGE: u8 = 1;

/// Writes the string of a link to a page.
pub(super) fn write_in_link(
    number: u32,
    source: (&str, u128),
    anchor: Option<&Anchor>,
    out: &mut Vec<u8>,
) {
    let (address, hash) = source;
    // Big-endian, so that strings sort by page number.
    out.extend(number.to_be_bytes());
    out.push(TO_PAGE);
    // Half of the hash is enough: it only spreads links, and equal halves are ordered by the address after it.
    out.extend((hash as u64).to_be_bytes());
    write_text(address, out);
    out.push(u8::from(anchor.is_some()));
    if let Some(anchor) = anchor {
        [&anchor.text, &anchor.before, &anchor.after]
            .iter()
            .for_each(|text| write_text(text, out));
    }
}

/// Writes the string of a link from a page.
pub(super) fn write_out_link(number: u32, target: (&str, u128), out: &mut Vec<u8>) {
    let (address, hash) = target;
    out.extend(number.to_be_bytes());
    out.push(FROM_PAGE);
    out.extend((hash as u64).to_be_bytes());
    out.extend(address.as_bytes());
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u32).to_be_bytes());
    out.extend(text.as_bytes());
}

/// Returns the number at the start of a string.
pub(super) fn number_of(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[..4].try_into().expect("four bytes"))
}

/// A decoded link.
pub(super) enum PageLink {
    /// A link to the page from this address, perhaps with an anchor.
    In(String, Option<Anchor>),
    /// A link from the page to this address.
    Out(String),
}

/// Decodes a string.
pub(super) fn read(frame: &[u8]) -> PageLink {
    // The number takes four bytes, the kind one and the hash eight; the hash served for sorting only.
    let (kind, mut rest) = (frame[4], &frame[13..]);
    if kind == FROM_PAGE {
        // The rest of the string is the address, which needs no length.
        return PageLink::Out(String::from_utf8_lossy(rest).into_owned());
    }
    let address = read_text(&mut rest);
    let has_anchor = rest[0] == 1;
    rest = &rest[1..];
    let anchor = has_anchor.then(|| Anchor {
        text: read_text(&mut rest),
        before: read_text(&mut rest),
        after: read_text(&mut rest),
    });
    PageLink::In(address, anchor)
}

fn read_text(rest: &mut &[u8]) -> String {
    let (length, text) = rest.split_at(4);
    let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
    let (text, behind) = text.split_at(length);
    *rest = behind;
    String::from_utf8_lossy(text).into_owned()
}
