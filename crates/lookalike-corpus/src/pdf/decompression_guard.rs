//! Guard against decompression bombs: measures the unpacked size of a PDF's streams before anything unpacks them into memory.
//!
//! Every stream stands in the file between the words `stream` and `endstream`, for a stream is never inside another one.
//! What its dictionary says of filters is read loosely: a filter too many costs time, one too few would cost memory.

use std::borrow::Cow;
use std::io::{Read, copy, sink};

use flate2::read::{DeflateDecoder, ZlibDecoder};
use memchr::memmem;

/// A stream of a page is some kilobytes, an image of a scanned page some 30 MiB.
const MOST_OF_ONE: u64 = 128 << 20;

/// All streams of a file together.
const MOST_OF_ALL: u64 = 2 << 30;

/// A dictionary of a stream is looked for within so many bytes before it.
const DICTIONARY_BYTES: usize = 64 << 10;

/// The growth of a stream by its filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterGrowth {
    /// By what trying shows.
    Tried,
    /// By so many times at most.
    Times(u64),
    Not,
}

/// Refuses a file that grows too large, with the reason. Linear in the file and what it grows to, up to the limits.
pub(super) fn measure(bytes: &[u8]) -> Result<(), String> {
    let mut all = 0;
    let mut end = 0;
    for at in memmem::find_iter(bytes, b"stream") {
        let body = body_start(bytes, at);
        let Some(body) = body.filter(|_| at >= end && !bytes[..at].ends_with(b"end")) else {
            continue;
        };
        // `/Length` is not believed: it may lie, or name an object elsewhere. Readers that repair files search
        // as well.
        let length = memmem::find(&bytes[body..], b"endstream").unwrap_or(bytes.len() - body);
        let stored = &bytes[body..body + length];
        let size = unpacked(dictionary(bytes, at)?, stored)?;
        // Counts the bytes as stored, too, where nothing unpacks: overlapping streams add up, which bounds the
        // searches of this loop by `MOST_OF_ALL`.
        all += size;
        if size > MOST_OF_ONE || all > MOST_OF_ALL {
            return Err(format!(
                "{} bytes on disk; one of its streams grows to more than {} MiB, or all to more than {}",
                bytes.len(),
                MOST_OF_ONE >> 20,
                MOST_OF_ALL >> 20
            ));
        }
        // Go on within the body: its `endstream` may be false, and a stream too many costs time only.
        end = body;
    }
    Ok(())
}

/// Finds the bytes of the stream whose keyword stands at `at`.
fn body_start(bytes: &[u8], at: usize) -> Option<usize> {
    let after = at + b"stream".len();
    match bytes.get(after..)? {
        // CR LF or LF alone (ISO 32000-1, section 7.3.8.1); readers take CR alone, too.
        [b'\r', b'\n', ..] => Some(after + 2),
        [b'\r' | b'\n', ..] => Some(after + 1),
        // White space that does not belong there, which readers forgive.
        [b' ' | b'\t', ..] => Some(after + 1),
        _ => None,
    }
}

/// Returns the dictionary before the stream.
fn dictionary(bytes: &[u8], at: usize) -> Result<&[u8], String> {
    // `N G obj << … >> stream`: the nearest `obj` before the keyword begins its dictionary.
    let before = &bytes[at.saturating_sub(DICTIONARY_BYTES)..at];
    match memmem::rfind(before, b"obj") {
        Some(found) => Ok(&before[found + 3..]),
        None => {
            Err("what stands before one of its streams does not say how it is packed".to_owned())
        }
    }
}

/// The size of a stream when it is unpacked; of what is not tried, the most that it can be.
fn unpacked(dictionary: &[u8], stored: &[u8]) -> Result<u64, String> {
    let filters = filters(dictionary);
    let growths: Vec<FilterGrowth> = filters
        .iter()
        .map(|name| growth(name))
        .filter(|growth| *growth != FilterGrowth::Not)
        .collect();
    let length = stored.len() as u64;
    match growths[..] {
        [] => Ok(length),
        [FilterGrowth::Times(most)] => Ok(length.saturating_mul(most)),
        // Held is only what the text encoding was undone of, which is smaller than what is stored.
        [_] => Ok(inflated(&plain(&filters, stored)).max(length)),
        _ => Err(
            "one of its streams is packed more than once, and may grow without bound".to_owned(),
        ),
    }
}

fn growth(filter: &[u8]) -> FilterGrowth {
    match filter {
        // A table that fills up and is cleared: 3,838 codes of 9 to 12 bits, some 5,500 bytes, stand for 1 + 2
        // + … + 3,838 bytes, which is 1,340 times as much.
        b"LZWDecode" | b"LZW" => FilterGrowth::Times(1400),
        // Two bytes become 128 at most (ISO 32000-1, section 7.4.5).
        b"RunLengthDecode" | b"RL" => FilterGrowth::Times(64),
        b"FlateDecode" | b"Fl" | b"?" => FilterGrowth::Tried,
        // Letters may be written as numbers.
        name if name.contains(&b'#') => FilterGrowth::Tried,
        _ => FilterGrowth::Not,
    }
}

/// The names of the filters that a dictionary tells, `?` where another object does.
fn filters(dictionary: &[u8]) -> Vec<&[u8]> {
    let mut filters: Vec<&[u8]> = Vec::new();
    // `/#46ilter` is `/Filter` (ISO 32000-1, section 7.3.5).
    if memmem::find(dictionary, b"/F#").is_some() || memmem::find(dictionary, b"/#").is_some() {
        filters.push(b"?");
    }
    for at in memmem::find_iter(dictionary, b"/F") {
        let after = &dictionary[at + 2..];
        // `/F` is the short form in inline images, and names a file elsewhere; both are taken for filters.
        let value = after.strip_prefix(b"ilter").unwrap_or(after);
        if value.first().is_some_and(u8::is_ascii_alphanumeric) {
            continue;
        }
        let value = value.trim_ascii_start();
        match value.first() {
            Some(b'[') => {
                let end = memchr::memchr(b']', value).unwrap_or(value.len());
                filters.extend(value[1..end].split(|byte| *byte == b'/').skip(1).map(name));
                // A list may name objects.
                if value[1..end].windows(2).any(|two| two == b" R") {
                    filters.push(b"?");
                }
            }
            Some(b'/') => filters.push(name(&value[1..])),
            Some(b'0'..=b'9') => filters.push(b"?"),
            _ => {}
        }
    }
    filters
}

fn name(text: &[u8]) -> &[u8] {
    let ends = |byte: &u8| !(byte.is_ascii_alphanumeric() || *byte == b'#');
    &text[..text.iter().position(ends).unwrap_or(text.len())]
}

/// The stream without the encoding that makes text of bytes, which never grows.
fn plain<'s>(filters: &[&[u8]], stored: &'s [u8]) -> Cow<'s, [u8]> {
    match filters.first() {
        Some(&(b"ASCII85Decode" | b"A85")) => ascii85(stored).into(),
        Some(&(b"ASCIIHexDecode" | b"AHx")) => hexadecimal(stored).into(),
        _ => stored.into(),
    }
}

/// Measures the output of compressed bytes: as a zlib stream, else as bare deflate. Never held.
fn inflated(bytes: &[u8]) -> u64 {
    let count = |reader: &mut dyn Read| {
        // One byte beyond the limit is enough to refuse.
        let mut most = reader.take(MOST_OF_ONE + 1);
        // What comes before damage is what a reader gets.
        let _ = copy(&mut most, &mut sink());
        // `limit` is what is still allowed, so this is what was read.
        MOST_OF_ONE + 1 - most.limit()
    };
    let zlib = count(&mut ZlibDecoder::new(bytes));
    let bare = count(&mut DeflateDecoder::new(bytes));
    // Readers that find no zlib pass its head over.
    let headless = count(&mut DeflateDecoder::new(bytes.get(2..).unwrap_or_default()));
    match zlib {
        0 => bare.max(headless),
        zlib => zlib,
    }
}

fn hexadecimal(stored: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = stored
        .iter()
        .take_while(|byte| **byte != b'>')
        .filter_map(|byte| (*byte as char).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0))
        .collect()
}

fn ascii85(stored: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(stored.len() / 5 * 4 + 4);
    let mut group: Vec<u8> = Vec::with_capacity(5);
    for &byte in stored {
        match byte {
            b'z' if group.is_empty() => out.extend([0; 4]),
            b'!'..=b'u' => group.push(byte - b'!'),
            b'~' => break,
            _ => {}
        }
        if group.len() == 5 {
            end_group(&mut group, &mut out);
        }
    }
    if group.len() > 1 {
        end_group(&mut group, &mut out);
    }
    out
}

/// Five digits of base 85 are four bytes; of fewer digits one byte less than digits.
fn end_group(group: &mut Vec<u8>, out: &mut Vec<u8>) {
    let bytes = group.len() - 1;
    // Padded with `u`, the highest digit (ISO 32000-1, section 7.4.3).
    group.resize(5, 84);
    let value = group
        .iter()
        .fold(0_u64, |value, digit| value * 85 + u64::from(*digit));
    out.extend(&(value as u32).to_be_bytes()[..bytes]);
    group.clear();
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn file(dictionary: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("%PDF-1.4\n1 0 obj\n<< {dictionary} >>\nstream\n");
        [head.as_bytes(), body, b"\nendstream\nendobj\n"].concat()
    }

    #[test]
    fn streams_are_measured_as_readers_unpack_them() {
        let small = zlib(&b"BT (text) Tj ET ".repeat(1000));
        let bomb = zlib(&vec![b' '; MOST_OF_ONE as usize + 1]);
        let hex: String = bomb.iter().map(|byte| format!("{byte:02x}")).collect();
        for filter in [
            "/Filter /FlateDecode",
            "/Filter/FlateDecode",
            "/Filter [/Fl]",
            "/Filter 9 0 R",
            "/Filter /Fl#61teDecode",
            "/F#69lter /FlateDecode",
        ] {
            assert_eq!(measure(&file(filter, &small)), Ok(()), "{filter}");
            let refused = measure(&file(filter, &bomb)).unwrap_err();
            assert!(
                refused.contains("grows to more than 128 MiB"),
                "{filter}: {refused}"
            );
        }
        assert_eq!(measure(&file("/Length 5", &bomb)), Ok(()));
        assert_eq!(
            measure(&file(
                "/Resources << /XObject << /Fl1 5 0 R /Fm 6 0 R >> >> /Filter /FlateDecode",
                &small
            )),
            Ok(())
        );
        assert!(
            measure(&file(
                "/Filter [/ASCIIHexDecode /FlateDecode]",
                hex.as_bytes()
            ))
            .is_err()
        );
        assert!(
            measure(&file("/Filter [/FlateDecode /FlateDecode]", &small))
                .unwrap_err()
                .contains("more than once")
        );
        assert_eq!(measure(&file("/Filter /DCTDecode", &bomb)), Ok(()));
        assert!(measure(&file("/Filter /LZWDecode", &[0; 200_000])).is_err());
        // Many that are large together.
        let page = file("/Filter /FlateDecode", &zlib(&vec![b' '; 100 << 20]));
        assert!(measure(&page.repeat(21)).is_err());
        assert_eq!(measure(b"no file, and no stream"), Ok(()));
    }

    #[test]
    fn text_encodings_are_undone() {
        assert_eq!(ascii85(b"87cURD]i,\"Ebo80~>"), b"Hello World!");
        assert_eq!(ascii85(b"z!!~>"), b"\0\0\0\0\0");
        assert_eq!(hexadecimal(b"48 65 6C6c 6F7>00"), b"Hellop");
    }
}
