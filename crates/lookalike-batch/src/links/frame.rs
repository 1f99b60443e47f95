//! Links as byte strings, which sort by the page that they belong to.
//!
//! A link to a page is its number, or that of its address (4 bytes, high first), 0, a hash of the address that it comes from (8 bytes), the address, and 1 with
//! the texts of its anchor, or 0. A link from a page is its number, 1, the hash of the address that it leads to, and the address. Other texts have their length before them, 4 bytes.
//! By the hash, the links of which a page keeps some are the same for any order of the input, and come from all over.

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
    // Most significant byte first: strings sort by the numbers of pages.
    out.extend(number.to_be_bytes());
    out.push(TO_PAGE);
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

/// Returns the number that a string begins with.
pub(super) fn number_of(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[..4].try_into().expect("four bytes"))
}

/// A link read back.
pub(super) enum PageLink {
    /// To the page, from this address.
    In(String, Option<Anchor>),
    /// From the page, to this address.
    Out(String),
}

/// Reads a string back.
pub(super) fn read(frame: &[u8]) -> PageLink {
    let (kind, mut rest) = (frame[4], &frame[13..]);
    if kind == FROM_PAGE {
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
