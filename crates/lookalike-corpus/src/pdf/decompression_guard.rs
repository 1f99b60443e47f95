//! A guard against decompression bombs: measures the unpacked size of a PDF's streams before any of them is unpacked into memory.
//!
//! Every stream is in the file between the words `stream` and `endstream`, because streams do not nest. Its dictionary is parsed loosely: assuming a
//! filter too many costs time, but missing one would cost memory. Files whose filters are named by another object are refused, because that object
//! may itself be packed. Streams encrypted with an empty password can be unpacked too, but only the reader has the key: they are assumed to grow 32
//! times, which hardly any honest stream does.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::io::{Read, copy, sink};
use std::time::Instant;

use flate2::read::{DeflateDecoder, ZlibDecoder};
use memchr::memmem;

/// Maximum unpacked size of one stream. A stream of a page has some kilobytes, an image of a scanned page some 30 MiB.
pub(super) const MAX_STREAM_BYTES: u64 = 128 << 20;

/// Maximum unpacked size of all streams of a file together.
const MAX_TOTAL_BYTES: u64 = 2 << 30;

/// Maximum distance before a stream in which its dictionary is searched, in bytes.
const DICTIONARY_BYTES: usize = 64 << 10;

/// Maximum length of a line with `N G obj`.
const LINE_BYTES: usize = 4096;

/// Maximum total number of bytes before streams that are examined, unless the file is longer.
const MAX_EXAMINED_BYTES: usize = 256 << 20;

/// Assumed growth of encrypted streams, which cannot be unpacked here. Text and fonts grow 2 to 10 times. Deflate can reach 1,032, but assuming that
/// would refuse most of the files that may be read and only not printed.
const ENCRYPTED_RATIO: u64 = 32;

/// The growth of a stream by its filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterGrowth {
    /// Determined by unpacking.
    Measured,
    /// At most this many times.
    AtMost(u64),
    NoGrowth,
}

/// Reason why a file is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GuardRefusal {
    /// The file grows too large, or does not tell how large.
    TooLarge(String),
    /// Time ran out before all streams were measured.
    TimedOut,
}

/// Refuses a file that grows too large, with the reason. Linear in the file and its unpacked size, up to the limits.
pub(super) fn measure(bytes: &[u8], deadline: Option<Instant>) -> Result<(), GuardRefusal> {
    let mut all = 0;
    let mut end = 0;
    let mut looked = 0;
    let mut heads = ObjectHeads::new(bytes);
    let lengths = IndirectLengths::new(bytes);
    let is_encrypted = values_of(bytes, &[b"Encrypt"]).next().is_some();
    for at in memmem::find_iter(bytes, b"stream") {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(GuardRefusal::TimedOut);
        }
        let body = body_start(bytes, at);
        let Some(body) = body.filter(|_| at >= end && !bytes[..at].ends_with(b"end")) else {
            continue;
        };
        // `/Length` is not trusted: it may be wrong, or name an object elsewhere. Readers that repair files search as well.
        let rest = &bytes[body..];
        let length = memmem::find(rest, b"endstream").unwrap_or(rest.len());
        let dictionary = StreamDictionary::before(bytes, at, &mut heads)?;
        looked += dictionary.bytes.len();
        let stored = || dictionary.stored(rest, length, &lengths);
        let size = dictionary.unpacked(rest, length, &stored, is_encrypted)?;
        // Also counts the stored bytes if nothing needs unpacking: overlapping streams add up, so `MAX_TOTAL_BYTES` limits the searches of this loop.
        all += size;
        if size > MAX_STREAM_BYTES || all > MAX_TOTAL_BYTES {
            return Err(GuardRefusal::TooLarge(format!(
                "{} bytes on disk; one of its streams grows to more than {} MiB, or all to more than {}",
                bytes.len(),
                MAX_STREAM_BYTES >> 20,
                MAX_TOTAL_BYTES >> 20
            )));
        }
        // The bytes before a stream are normally few. Otherwise several streams share them, and each would read them again.
        if looked > MAX_EXAMINED_BYTES.max(bytes.len()) {
            return Err(unknown_growth());
        }
        // Continue within the body: its `endstream` may be false, and a stream too many only costs time.
        end = body;
    }
    Ok(())
}

fn unknown_growth() -> GuardRefusal {
    let reason = "the dictionary of one of its streams does not say how it is compressed";
    GuardRefusal::TooLarge(reason.to_owned())
}

/// Returns the start of the bytes of the stream whose keyword is at `at`.
fn body_start(bytes: &[u8], at: usize) -> Option<usize> {
    let after = at + b"stream".len();
    match bytes.get(after..)? {
        // CR LF or LF (ISO 32000-1, section 7.3.8.1); readers accept a lone CR, too.
        [b'\r', b'\n', ..] => Some(after + 2),
        [b'\r' | b'\n', ..] => Some(after + 1),
        // Invalid white space, which readers tolerate.
        [b' ' | b'\t', ..] => Some(after + 1),
        _ => None,
    }
}

/// Finds the positions where objects seem to begin (`N G obj`), in order.
struct ObjectHeads<'f> {
    bytes: &'f [u8],
    words: memmem::FindIter<'f, 'static>,
    /// The end of the next head that `before` has not passed.
    next: Option<usize>,
    last: Option<usize>,
}

impl<'f> ObjectHeads<'f> {
    fn new(bytes: &'f [u8]) -> ObjectHeads<'f> {
        ObjectHeads {
            bytes,
            words: memmem::find_iter(bytes, b"obj"),
            next: Some(0),
            last: None,
        }
    }

    /// Returns the end of the last head before `at`, which must not decrease from call to call.
    fn before(&mut self, at: usize) -> Option<usize> {
        while let Some(next) = self.next.filter(|next| *next <= at) {
            if next > 0 {
                self.last = Some(next);
            }
            let bytes = self.bytes;
            let found = self.words.find(|&word| is_object_head(&bytes[..word]));
            self.next = found.map(|word| word + b"obj".len());
        }
        self.last
    }
}

/// Returns true if an `obj` after these bytes begins an object: it must follow two numbers, and not be in a comment.
fn is_object_head(before: &[u8]) -> bool {
    let first = before.len().saturating_sub(LINE_BYTES);
    let line = match memchr::memrchr2(b'\r', b'\n', &before[first..]) {
        Some(end) => &before[first + end..],
        None if first == 0 => before,
        None => return false,
    };
    // The numbers may be on earlier lines.
    let number = before.trim_ascii_end().last();
    number.is_some_and(u8::is_ascii_digit) && memchr::memchr(b'%', line).is_none()
}

/// The text before a stream that describes how it is packed.
struct StreamDictionary<'f> {
    bytes: &'f [u8],
    /// True if it may not be the dictionary, because of an `obj` in a string, or a stream within another one.
    is_doubtful: bool,
}

impl<'f> StreamDictionary<'f> {
    /// Finds the dictionary of the stream whose keyword is at `at`.
    fn before(
        bytes: &'f [u8],
        at: usize,
        heads: &mut ObjectHeads<'_>,
    ) -> Result<StreamDictionary<'f>, GuardRefusal> {
        let first = at.saturating_sub(DICTIONARY_BYTES);
        let head = heads.before(at).filter(|head| *head >= first);
        let bytes_from = head.ok_or_else(unknown_growth)?;
        let is_doubtful = !is_one_value(&bytes[bytes_from..at]);
        // `N G obj << … >> stream`: it begins at the nearest head. If in doubt, take everything nearby.
        let from = if is_doubtful { first } else { bytes_from };
        Ok(StreamDictionary {
            bytes: &bytes[from..at],
            is_doubtful,
        })
    }

    /// Returns the unpacked size of the stream, whose own bytes are the first `length` of `rest`. If it cannot be unpacked here, returns the maximum
    /// that its stored bytes can become.
    fn unpacked(
        &self,
        rest: &[u8],
        length: usize,
        stored: &dyn Fn() -> u64,
        is_encrypted: bool,
    ) -> Result<u64, GuardRefusal> {
        let mut size = length as u64;
        let mut tried: Vec<TextEncoding> = Vec::new();
        if self.is_doubtful {
            tried.push(TextEncoding::None);
        }
        for filters in filter_lists(self.bytes)? {
            let growths: Vec<FilterGrowth> = filters
                .iter()
                .map(|name| growth(name))
                .filter(|growth| *growth != FilterGrowth::NoGrowth)
                .collect();
            match growths[..] {
                [] => {}
                [FilterGrowth::AtMost(most)] => size = size.max(stored() * most),
                [_] => tried.push(TextEncoding::of(&filters)),
                _ => {
                    let reason = "one of its streams is compressed more than once, and may grow without bound";
                    return Err(GuardRefusal::TooLarge(reason.to_owned()));
                }
            }
        }
        // Encrypted bytes cannot be unpacked directly.
        if is_encrypted && !tried.is_empty() {
            return Ok(size.max(stored() * ENCRYPTED_RATIO));
        }
        tried.sort_unstable();
        tried.dedup();
        for encoding in tried {
            // Unpack all of the rest, because compressed bytes determine their own end, and may contain the word `endstream`. Only the result of
            // undoing the text encoding is held, which is smaller than the stored bytes.
            size = size.max(inflated(&encoding.decoded(rest)));
        }
        Ok(size)
    }

    /// Returns the number of bytes of the stream up to the word that ends it, or the number in its dictionary if that is larger, because the word may
    /// occur within them.
    fn stored(&self, rest: &[u8], length: usize, lengths: &IndirectLengths<'_>) -> u64 {
        let said = values_of(self.bytes, &[b"Length"]).map(|value| lengths.max_length(value));
        let most = said.max().unwrap_or(0).min(rest.len());
        length.max(most) as u64
    }
}

/// Lengths of streams that are stored in other objects, as in `/Length 9 0 R`.
struct IndirectLengths<'f> {
    bytes: &'f [u8],
    integers: OnceCell<Option<HashMap<usize, usize>>>,
}

impl<'f> IndirectLengths<'f> {
    fn new(bytes: &'f [u8]) -> IndirectLengths<'f> {
        IndirectLengths {
            bytes,
            integers: OnceCell::new(),
        }
    }

    /// Returns the maximum that a value of `/Length` can mean.
    fn max_length(&self, value: &[u8]) -> usize {
        let number = whole_number(&value[..word_length(value)]).unwrap_or(usize::MAX);
        if !is_reference(value) {
            return number;
        }
        let integers = self.integers.get_or_init(|| plain_integers(self.bytes));
        let said = integers.as_ref().and_then(|integers| integers.get(&number));
        said.copied().unwrap_or(usize::MAX)
    }
}

/// Returns for each object number the largest integer that the object may be, or `None` if packed objects may be integers too.
fn plain_integers(bytes: &[u8]) -> Option<HashMap<usize, usize>> {
    // An object within a packed stream replaces one in the file itself. Object streams are found by their type if a reader repairs the file,
    // otherwise by a table of three columns.
    let mut columns = values_of(bytes, &[b"W"]);
    if values_of(bytes, &[b"ObjStm"]).next().is_some() || columns.any(is_three_numbers) {
        return None;
    }
    let mut integers = HashMap::new();
    for word in memmem::find_iter(bytes, b"obj") {
        let value = after_blanks(&bytes[word + b"obj".len()..]);
        let is_number = matches!(value.first(), Some(b'0'..=b'9' | b'+' | b'-' | b'.'));
        if !is_number || bytes[..word].ends_with(b"end") {
            continue;
        }
        let integer = whole_number(&value[..word_length(value)]).filter(|_| !is_reference(value));
        // The file may contain the object in several versions, and only its cross-reference table determines which one counts.
        let most = integers.entry(object_number(&bytes[..word])?).or_insert(0);
        *most = integer.unwrap_or(usize::MAX).max(*most);
    }
    Some(integers)
}

/// Returns the number of the object that an `obj` after these bytes begins, as in `9 0 obj`.
fn object_number(before: &[u8]) -> Option<usize> {
    let first = before.len().saturating_sub(LINE_BYTES);
    let words = before[first..].rsplit(|byte| is_blank(*byte));
    let mut numbers = words.filter(|word| !word.is_empty()).map(whole_number);
    numbers.next()??;
    numbers.next()?
}

/// Parses a number that consists of digits only.
fn whole_number(word: &[u8]) -> Option<usize> {
    let digits = word.iter().all(u8::is_ascii_digit);
    str::from_utf8(word).ok().filter(|_| digits)?.parse().ok()
}

/// Returns true for a list of three whole numbers.
fn is_three_numbers(value: &[u8]) -> bool {
    let Some((b'[', mut list)) = value.split_first() else {
        return false;
    };
    for _ in 0..3 {
        list = after_blanks(list);
        let (word, rest) = list.split_at(word_length(list));
        if whole_number(word).is_none() {
            return false;
        }
        list = rest;
    }
    after_blanks(list).first() == Some(&b']')
}

/// Returns true if the bytes are complete tokens with balanced brackets, and no stream begins in them.
fn is_one_value(mut bytes: &[u8]) -> bool {
    let mut depth = 0_usize;
    loop {
        bytes = after_blanks(bytes);
        let Some((&first, after)) = bytes.split_first() else {
            return depth == 0;
        };
        bytes = match first {
            b'(' => match after_string(after) {
                Some(rest) => rest,
                None => return false,
            },
            b'<' if after.first() == Some(&b'<') => {
                depth += 1;
                &after[1..]
            }
            b'>' if after.first() == Some(&b'>') && depth > 0 => {
                depth -= 1;
                &after[1..]
            }
            b'<' => match memchr::memchr(b'>', after) {
                Some(end) => &after[end + 1..],
                None => return false,
            },
            b')' | b'>' => return false,
            b'/' => &after[word_length(after)..],
            b'[' | b']' | b'{' | b'}' => after,
            _ => {
                let (word, rest) = bytes.split_at(word_length(bytes));
                if word.ends_with(b"stream") {
                    return false;
                }
                rest
            }
        };
    }
}

/// Skips white space and comments.
fn after_blanks(mut bytes: &[u8]) -> &[u8] {
    loop {
        let blank = bytes.iter().take_while(|byte| is_blank(**byte)).count();
        bytes = &bytes[blank..];
        if bytes.first() != Some(&b'%') {
            return bytes;
        }
        let end = memchr::memchr2(b'\r', b'\n', bytes);
        bytes = &bytes[end.unwrap_or(bytes.len())..];
    }
}

/// Skips the rest of a string, in which brackets nest (ISO 32000-1, section 7.3.4.2).
fn after_string(bytes: &[u8]) -> Option<&[u8]> {
    let mut depth = 1;
    let mut at = 0;
    while depth > 0 {
        match bytes.get(at)? {
            b'\\' => at += 1,
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.get(at..)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

/// Returns the number of bytes before white space or a bracket.
fn word_length(bytes: &[u8]) -> usize {
    let ends = |byte: &u8| is_blank(*byte) || b"()<>[]{}/%".contains(byte);
    bytes.iter().position(ends).unwrap_or(bytes.len())
}

fn growth(filter: &[u8]) -> FilterGrowth {
    match filter {
        // The worst case is a table that is filled and cleared: 3,838 codes of 9 to 12 bits, some 5,500 bytes, stand for 1 + 2 + … + 3,838 bytes,
        // which is 1,340 times as much.
        b"LZWDecode" | b"LZW" => FilterGrowth::AtMost(1400),
        // Two bytes become at most 128 (ISO 32000-1, section 7.4.5).
        b"RunLengthDecode" | b"RL" => FilterGrowth::AtMost(64),
        b"FlateDecode" | b"Fl" => FilterGrowth::Measured,
        _ => FilterGrowth::NoGrowth,
    }
}

/// Returns the filter names in each value that may be a list of filters. Names in strings and comments are taken for names: a value too many costs
/// time.
fn filter_lists(dictionary: &[u8]) -> Result<Vec<Vec<Cow<'_, [u8]>>>, GuardRefusal> {
    // `/F` is the short form in inline images, but can also name an external file; both are taken for filters.
    let lists = values_of(dictionary, &[b"F", b"Filter"]).map(|value| match value.first() {
        Some(b'[') => list_of_names(&value[1..]),
        Some(b'/') => Ok(vec![name(&value[1..][..word_length(&value[1..])])]),
        _ if is_reference(value) => Err(unknown_growth()),
        _ => Ok(Vec::new()),
    });
    lists.collect()
}

/// Returns true for a reference to another object, as in `9 0 R`.
fn is_reference(mut value: &[u8]) -> bool {
    let mut word = || {
        let (word, rest) = value.split_at(word_length(value));
        value = after_blanks(rest);
        word
    };
    let is_number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    is_number(word()) && is_number(word()) && word() == b"R"
}

/// Returns the bytes after each occurrence of one of the names.
fn values_of<'f>(bytes: &'f [u8], names: &'f [&[u8]]) -> impl Iterator<Item = &'f [u8]> {
    memchr::memchr_iter(b'/', bytes).filter_map(|slash| {
        let after = &bytes[slash + 1..];
        let length = word_length(after);
        let is_one = names.contains(&&*name(&after[..length]));
        is_one.then(|| after_blanks(&after[length..]))
    })
}

fn list_of_names(mut list: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, GuardRefusal> {
    let mut names = Vec::new();
    loop {
        list = after_blanks(list);
        match list.split_first() {
            None | Some((b']', _)) => return Ok(names),
            Some((b'/', after)) => {
                let (written, rest) = after.split_at(word_length(after));
                names.push(name(written));
                list = rest;
            }
            Some((_, after)) => {
                let (word, rest) = list.split_at(word_length(list));
                // A list may contain references to objects.
                if word == b"R" {
                    return Err(unknown_growth());
                }
                list = if word.is_empty() { after } else { rest };
            }
        }
    }
}

/// Decodes a name: `/#46ilter` is `/Filter` (ISO 32000-1, section 7.3.5).
fn name(written: &[u8]) -> Cow<'_, [u8]> {
    if !written.contains(&b'#') {
        return written.into();
    }
    let digit = |at: usize| (*written.get(at)? as char).to_digit(16);
    let mut meant = Vec::new();
    let mut at = 0;
    while at < written.len() {
        match (written[at], digit(at + 1), digit(at + 2)) {
            (b'#', Some(high), Some(low)) => {
                meant.push((high << 4 | low) as u8);
                at += 3;
            }
            (byte, ..) => {
                meant.push(byte);
                at += 1;
            }
        }
    }
    meant.into()
}

/// A text encoding of bytes. Undoing it never makes them longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TextEncoding {
    None,
    Ascii85,
    Hexadecimal,
}

impl TextEncoding {
    /// Returns the text encoding that is undone first.
    fn of(filters: &[Cow<'_, [u8]>]) -> TextEncoding {
        match filters.first().map(|name| &**name) {
            Some(b"ASCII85Decode" | b"A85") => TextEncoding::Ascii85,
            Some(b"ASCIIHexDecode" | b"AHx") => TextEncoding::Hexadecimal,
            _ => TextEncoding::None,
        }
    }

    fn decoded(self, stored: &[u8]) -> Cow<'_, [u8]> {
        match self {
            TextEncoding::None => stored.into(),
            TextEncoding::Ascii85 => ascii85(stored).into(),
            TextEncoding::Hexadecimal => hexadecimal(stored).into(),
        }
    }
}

/// Measures the output of compressed bytes, as a zlib stream or else as raw deflate, without holding it.
fn inflated(bytes: &[u8]) -> u64 {
    let count = |reader: &mut dyn Read| {
        // One byte beyond the limit suffices to refuse.
        let mut most = reader.take(MAX_STREAM_BYTES + 1);
        // Readers get the output before damage, so it counts.
        let _ = copy(&mut most, &mut sink());
        // `limit` is the remaining allowance, so this is the number of bytes read.
        MAX_STREAM_BYTES + 1 - most.limit()
    };
    let zlib = count(&mut ZlibDecoder::new(bytes));
    let bare = count(&mut DeflateDecoder::new(bytes));
    // Readers that find no zlib stream skip its header.
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

pub(super) fn ascii85(stored: &[u8]) -> Vec<u8> {
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

/// Decodes a group: five digits of base 85 give four bytes, and fewer digits give one byte less than their number.
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

    fn measured(bytes: &[u8]) -> Result<(), String> {
        measure(bytes, None).map_err(|refusal| match refusal {
            GuardRefusal::TooLarge(reason) => reason,
            GuardRefusal::TimedOut => "late".to_owned(),
        })
    }

    #[test]
    fn filters_in_odd_writing_passed_a_bomb() {
        let bomb = zlib(&vec![b' '; MAX_STREAM_BYTES as usize + 1]);
        let small = zlib(b"BT (text) Tj ET");
        for dictionary in [
            "/Fil#74er /FlateDecode",
            "/Filter /FlateDecode /X (obj)",
            "/Filter /FlateDecode /X (1 0 obj)",
            "/Filter /FlateDecode /X (\n1 0 obj << >>\n)",
            "/Filter /FlateDecode % 1 0 obj <<\n",
            "/Filter /FlateDecode /Nobj 7",
            "/Filter%x\n/FlateDecode",
            "/Filter%x\n[ %y\n/FlateDecode]",
        ] {
            assert_eq!(measured(&file(dictionary, &small)), Ok(()), "{dictionary}");
            let refused = measured(&file(dictionary, &bomb)).unwrap_err();
            assert!(refused.contains("grows to"), "{dictionary}: {refused}");
        }
        // A stored block that contains the word, and the bomb after it.
        let block = b"\x78\x01\x00\x0b\x00\xf4\xff endstream ";
        let parted = [&block[..], &bomb[2..]].concat();
        assert!(measured(&file("/Filter /FlateDecode", &parted)).is_err());
    }

    #[test]
    fn filters_that_another_object_names_passed_a_bomb() {
        for filter in [
            "/Filter 9 0 R",
            "/Filter [9 0 R]",
            "/F#69lter[ /FlateDecode 9 0 R ]",
        ] {
            let packed = [
                &file(filter, b"80 0b 60 50")[..],
                b"9 0 obj\n/LZWDecode\nendobj\n",
            ];
            let refused = measured(&packed.concat()).unwrap_err();
            assert!(
                refused.contains("does not say how it is compressed"),
                "{filter}: {refused}"
            );
        }
    }

    #[test]
    fn a_stream_that_the_empty_password_decrypts_passed_as_large_as_it_is_stored() {
        let trailer = b"trailer\n<< /Root 1 0 R /Encr#79pt 2 0 R >>\n";
        let encrypted = |stored: usize, dictionary: &str| {
            let body: Vec<u8> = (0..stored).map(|at| (at * 7 % 251) as u8).collect();
            measured(&[&file(dictionary, &body)[..], trailer].concat())
        };
        assert_eq!(encrypted(4_000_000, "/Filter /FlateDecode"), Ok(()));
        let refused = encrypted(4_400_000, "/Filter /FlateDecode").unwrap_err();
        assert!(refused.contains("grows to more than 128 MiB"), "{refused}");
        // The filter of a photo does not make it grow.
        assert_eq!(encrypted(4_400_000, "/Filter /DCTDecode"), Ok(()));
        let cut = [&[b'x'; 9][..], b" endstream ", &vec![b'x'; 4_400_000]].concat();
        for filter in ["/FlateDecode", "/LZWDecode"] {
            let within = file(&format!("/Filter {filter} /Length 4400020"), &cut);
            assert!(
                measured(&[&within[..], trailer].concat()).is_err(),
                "{filter}"
            );
        }
    }

    #[test]
    fn a_length_in_another_object_was_taken_for_the_number_of_that_object() {
        let cut = [&[b'x'; 9][..], b" endstream ", &vec![b'x'; 4_400_000]].concat();
        let encryption = b"trailer\n<< /Root 1 0 R /Encrypt 2 0 R >>\n";
        let with = |filter: &str, body: &[u8], objects: &str| {
            let stream = file(&format!("/Filter {filter} /Length 9 0 R"), body);
            let other = file("/Length 4400020", &vec![b'x'; 4_400_000]);
            measured(&[&stream[..], objects.as_bytes(), &other, encryption].concat())
        };
        for (filter, own) in [("/FlateDecode", 100_000), ("/LZWDecode", 9000)] {
            for objects in [
                "9 0 obj\n4400020\nendobj\n",
                "9 0 obj 5 endobj\n9 0 obj 4400020 endobj\n",
                "9 0 obj 5 endobj\n9 %\n0 obj 4400020 endobj\n",
                "9 0 obj 8 0 R endobj\n8 0 obj 4400020 endobj\n",
                "9 0 obj +4400020 endobj\n",
                "9 0 obj 5 endobj\n7 0 obj << /Type /Obj#53tm >>\n",
                "9 0 obj 5 endobj\n7 0 obj << /W [1 %\n2 1] >>\n",
                "",
            ] {
                assert!(with(filter, &cut, objects).is_err(), "{filter}: {objects}");
            }
            // A correct length determines the end of a stream, whatever follows.
            let objects = format!("7 0 obj << /W [1 [2 1]] >> endobj\n9 0 obj\n{own}\nendobj\n");
            assert_eq!(with(filter, &vec![b'x'; own], &objects), Ok(()), "{filter}");
        }
        let signed = file("/Filter /LZWDecode /Length +4400020", &cut);
        assert!(measured(&signed).is_err());
    }

    #[test]
    fn words_of_streams_and_objects_in_a_text_refuse_nothing() {
        let text =
            "a stream of words) and >> more obj 7 0 obj streams\n and a stream \n".repeat(30);
        assert_eq!(measured(&file("/Length 5", text.as_bytes())), Ok(()));
        let packed = file(
            "/Filter /FlateDecode /Name (an obj)",
            &zlib(text.as_bytes()),
        );
        assert_eq!(measured(&packed.repeat(50)), Ok(()));
    }

    #[test]
    fn the_same_bytes_were_looked_at_again_for_each_stream() {
        let streams = format!("1 0 obj\n{}", "stream\nendstream\n".repeat(3500));
        let refused = measured(streams.repeat(10).as_bytes()).unwrap_err();
        assert!(
            refused.contains("does not say how it is compressed"),
            "{refused}"
        );
    }

    #[test]
    fn time_began_only_when_all_was_measured() {
        let small = file("/Filter /FlateDecode", &zlib(b"text"));
        assert_eq!(
            measure(&small, Some(Instant::now())),
            Err(GuardRefusal::TimedOut)
        );
    }

    #[test]
    fn streams_are_measured_as_readers_unpack_them() {
        let small = zlib(&b"BT (text) Tj ET ".repeat(1000));
        let bomb = zlib(&vec![b' '; MAX_STREAM_BYTES as usize + 1]);
        let hex: String = bomb.iter().map(|byte| format!("{byte:02x}")).collect();
        for filter in [
            "/Filter /FlateDecode",
            "/Filter/FlateDecode",
            "/Filter [/Fl]",
            "/Filter /Fl#61teDecode",
            "/F#69lter /FlateDecode",
        ] {
            assert_eq!(measured(&file(filter, &small)), Ok(()), "{filter}");
            let refused = measured(&file(filter, &bomb)).unwrap_err();
            assert!(
                refused.contains("grows to more than 128 MiB"),
                "{filter}: {refused}"
            );
        }
        assert_eq!(measured(&file("/Length 5", &bomb)), Ok(()));
        assert_eq!(
            measured(&file(
                "/Resources << /XObject << /Fl1 5 0 R /Fm 6 0 R >> >> /Filter /FlateDecode",
                &small
            )),
            Ok(())
        );
        assert!(
            measured(&file(
                "/Filter [/ASCIIHexDecode /FlateDecode]",
                hex.as_bytes()
            ))
            .is_err()
        );
        assert!(
            measured(&file("/Filter [/FlateDecode /FlateDecode]", &small))
                .unwrap_err()
                .contains("more than once")
        );
        assert_eq!(measured(&file("/Filter /DCTDecode", &bomb)), Ok(()));
        assert!(measured(&file("/Filter /LZWDecode", &[0; 200_000])).is_err());
        // Many streams that are large only together.
        let page = file("/Filter /FlateDecode", &zlib(&vec![b' '; 100 << 20]));
        assert!(measured(&page.repeat(21)).is_err());
        assert_eq!(measured(b"no file, and no stream"), Ok(()));
    }

    #[test]
    fn text_encodings_are_undone() {
        assert_eq!(ascii85(b"87cURD]i,\"Ebo80~>"), b"Hello World!");
        assert_eq!(ascii85(b"z!!~>"), b"\0\0\0\0\0");
        assert_eq!(hexadecimal(b"48 65 6C6c 6F7>00"), b"Hellop");
    }
}
