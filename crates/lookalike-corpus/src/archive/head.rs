//! Heads of records: the named fields of WARC, the one line of ARC.

use memchr::memmem;

use crate::format::Format;

/// Longest head that is taken.
pub(super) const MAX_HEAD_BYTES: usize = 256 << 10;

/// Stands in ARC for an address that is not known.
const NO_ADDRESS: &str = "0.0.0.0";

/// Longest line before an ARC record.
const MAX_ARC_LINE: usize = 16 << 10;

/// The type of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArchiveRecordType {
    Warcinfo,
    Request,
    Response,
    Resource,
    Conversion,
    Metadata,
    Revisit,
    Other,
}

impl ArchiveRecordType {
    fn of(name: &str) -> ArchiveRecordType {
        match name.to_ascii_lowercase().as_str() {
            "warcinfo" => ArchiveRecordType::Warcinfo,
            "request" => ArchiveRecordType::Request,
            "response" => ArchiveRecordType::Response,
            "resource" => ArchiveRecordType::Resource,
            "conversion" => ArchiveRecordType::Conversion,
            "metadata" => ArchiveRecordType::Metadata,
            "revisit" => ArchiveRecordType::Revisit,
            _ => ArchiveRecordType::Other,
        }
    }
}

/// The head of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArchiveHead {
    pub(super) kind: ArchiveRecordType,
    /// Its name as written, for a type that is not known.
    pub(super) type_name: String,
    pub(super) url: Option<String>,
    /// As in the archive; ARC's 14 digits as WARC writes them.
    pub(super) date: Option<String>,
    pub(super) mime: Option<String>,
    pub(super) record_id: Option<String>,
    pub(super) digest: Option<String>,
    /// Address of the server that answered.
    pub(super) ip: Option<String>,
    /// Length of the block, or what is wrong with it.
    pub(super) length: Result<u64, String>,
}

impl ArchiveHead {
    fn new(type_name: &str, length: Result<u64, String>) -> ArchiveHead {
        ArchiveHead {
            kind: ArchiveRecordType::of(type_name),
            type_name: type_name.to_owned(),
            url: None,
            date: None,
            mime: None,
            record_id: None,
            digest: None,
            ip: None,
            length,
        }
    }
}

/// A head and how many bytes it takes.
pub(super) type ParsedHead = (ArchiveHead, usize);

/// The beginning of some bytes: a head, or none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeadBegin {
    /// A whole head.
    Head(Box<ParsedHead>),
    /// A head so far; more bytes are needed.
    Part,
    /// No head.
    None,
}

/// Looks for a head at the beginning of the bytes.
pub(super) fn begin(format: Format, bytes: &[u8]) -> HeadBegin {
    match format {
        Format::Arc => begin_arc(bytes),
        _ => begin_warc(bytes),
    }
}

/// Finds the next head, at a line's beginning and not at 0; to be called again with more
/// bytes from `seen` on when there is none.
pub(super) fn find(format: Format, bytes: &[u8]) -> Option<usize> {
    match format {
        Format::Arc => memchr::memchr_iter(b'\n', bytes)
            .map(|newline| newline + 1)
            // ARC heads have no magic: the whole line must parse. A line is at most `MAX_ARC_LINE`, so a byte
            // is looked at once for the end of its line and once as a word.
            .find(|&at| matches!(begin_arc(&bytes[at..]), HeadBegin::Head(_))),
        _ => memmem::find_iter(bytes, b"\nWARC/")
            .map(|newline| newline + 1)
            // The digit is checked apart, since `\nWARC/` stands in texts about the format too. More is not
            // asked for: the rest of the head may not be there yet.
            .find(|&at| begins_warc(&bytes[at..])),
    }
}

/// Returns how many of the last bytes may be the beginning of a head.
pub(super) fn overlap(format: Format) -> usize {
    match format {
        Format::Arc => MAX_ARC_LINE,
        // `\nWARC/` and a digit fit.
        _ => 16,
    }
}

/// `WARC/` and a digit, as far as there are bytes.
pub(super) fn begins_warc(bytes: &[u8]) -> bool {
    let magic = b"WARC/";
    // A part of the magic counts as a beginning: the caller reads on and asks again. Empty bytes do, too.
    let n = bytes.len().min(magic.len());
    bytes[..n] == magic[..n] && bytes.get(5).is_none_or(u8::is_ascii_digit)
}

fn begin_warc(bytes: &[u8]) -> HeadBegin {
    if !begins_warc(bytes) {
        return HeadBegin::None;
    }
    match head_end(bytes) {
        Some((text, length)) => {
            // Fields are UTF-8 (WARC 1.1, section 4), but crawlers copy URIs as servers sent them; a head with
            // one broken byte still bounds its block.
            let head = parse_warc(&String::from_utf8_lossy(&bytes[..text]));
            HeadBegin::Head(Box::new((head, length)))
        }
        // What only begins like a head would be gathered to the end of the file.
        None if bytes.len() > MAX_HEAD_BYTES => HeadBegin::None,
        None => HeadBegin::Part,
    }
}

/// Returns the end of the lines of a head, and the offset after the empty line.
pub(super) fn head_end(bytes: &[u8]) -> Option<(usize, usize)> {
    // Bounded, since this is called again for each piece of a head that grows.
    let bytes = &bytes[..bytes.len().min(MAX_HEAD_BYTES + 4)];
    for newline in memchr::memchr_iter(b'\n', bytes) {
        match &bytes[newline + 1..] {
            [b'\n', ..] => return Some((newline + 1, newline + 2)),
            [b'\r', b'\n', ..] => return Some((newline + 1, newline + 3)),
            _ => {}
        }
    }
    None
}

/// Named fields, a line each; a line that begins with a blank goes on with the field before.
pub(super) fn fields(text: &str) -> Vec<(&str, String)> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        // Folded lines, which HTTP has given up (RFC 9112, section 5.2) and archives keep.
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((name, value)) = line.split_once(':') {
            fields.push((name.trim(), value.trim().to_owned()));
        }
    }
    fields
}

fn parse_warc(text: &str) -> ArchiveHead {
    let fields = fields(text);
    let field = |wanted: &str| {
        let found = fields
            .iter()
            // The first one counts: only `WARC-Concurrent-To` may be repeated (WARC 1.1, section 5.7), and it
            // is not read.
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    };
    let length = match field("content-length") {
        None => Err("no Content-Length".to_owned()),
        Some(digits) => length(digits),
    };
    let owned = |name: &str| field(name).map(str::to_owned);
    ArchiveHead {
        url: field("warc-target-uri").map(|uri| unbracketed(uri).to_owned()),
        date: owned("warc-date"),
        mime: owned("content-type"),
        record_id: field("warc-record-id").map(|id| unbracketed(id).to_owned()),
        digest: owned("warc-payload-digest"),
        ip: owned("warc-ip-address"),
        ..ArchiveHead::new(field("warc-type").unwrap_or(""), length)
    }
}

fn length(digits: &str) -> Result<u64, String> {
    let wrong = |_| format!("Content-Length is {:.40}, which is not a length", digits);
    digits.parse().map_err(wrong)
}

/// Some writers put URIs into angle brackets.
fn unbracketed(uri: &str) -> &str {
    uri.strip_prefix('<')
        .and_then(|uri| uri.strip_suffix('>'))
        .unwrap_or(uri)
}

fn begin_arc(bytes: &[u8]) -> HeadBegin {
    let line = &bytes[..bytes.len().min(MAX_ARC_LINE)];
    // Without the bound a binary file that is called .arc would be held to its first line feed.
    let Some(newline) = memchr::memchr(b'\n', line) else {
        return if line.len() < MAX_ARC_LINE {
            HeadBegin::Part
        } else {
            HeadBegin::None
        };
    };
    match parse_arc(&String::from_utf8_lossy(&line[..newline])) {
        Some(head) => HeadBegin::Head(Box::new((head, newline + 1))),
        None => HeadBegin::None,
    }
}

/// `URL IP date mime length`, or ARC 2 with five more fields before the length. URLs with blanks
/// are common: the date of 14 digits behind an address is the anchor.
fn parse_arc(line: &str) -> Option<ArchiveHead> {
    let words: Vec<&str> = line.trim_end().split(' ').collect();
    let (last, words) = words.split_last()?;
    let length = last.parse().ok()?;
    // From 2 on: the URL and the address stand before. The first such pair counts, since a URL with blanks can
    // hold a date, but hardly an address in front of it.
    let date = (2..words.len()).find(|&i| is_date(words[i]) && is_address(words[i - 1]))?;
    let url = words[..date - 1].join(" ");
    // All that ARC names are URLs; a line of a log with address, date and length is none.
    if !url.contains(':') {
        return None;
    }
    // The version block of a file (ARC 1, "filedesc"). All other records are answers of servers.
    let kind = if url.starts_with("filedesc:") {
        "warcinfo"
    } else {
        "response"
    };
    Some(ArchiveHead {
        url: Some(url),
        date: Some(iso_date(words[date])),
        mime: words.get(date + 1).map(|mime| (*mime).to_owned()),
        ip: Some(words[date - 1].to_owned()).filter(|ip| ip != NO_ADDRESS),
        ..ArchiveHead::new(kind, Ok(length))
    })
}

fn is_date(word: &str) -> bool {
    word.len() == 14 && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_address(word: &str) -> bool {
    // IPv4 or IPv6 by its letters only: archives hold addresses that no parser takes, and the date beside it
    // makes it certain enough.
    word.contains(['.', ':'])
        && word
            .bytes()
            .all(|b| b.is_ascii_hexdigit() || b".:".contains(&b))
}

/// `20080430204825` as `2008-04-30T20:48:25Z`.
fn iso_date(digits: &str) -> String {
    let part = |from: usize, to: usize| &digits[from..to];
    format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(8, 10),
        part(10, 12),
        part(12, 14)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warc(text: &str) -> ArchiveHead {
        match begin(Format::Warc, text.as_bytes()) {
            HeadBegin::Head(parsed) => parsed.0,
            other => panic!("{text:?} is {other:?}"),
        }
    }

    #[test]
    fn heads_of_warc() {
        let head = warc(
            "WARC/1.0\r\nWARC-Type: response\r\nwarc-target-uri: <http://a/b:c>\r\n\
             WARC-Date: 2024-01-02T03:04:05Z\r\nWARC-IP-Address: 192.0.2.7\r\nContent-Type: application/http;\r\n msgtype=response\r\n\
             Content-Length: 12\r\n\r\n",
        );
        assert_eq!(head.kind, ArchiveRecordType::Response);
        assert_eq!(head.url.as_deref(), Some("http://a/b:c"));
        assert_eq!(head.ip.as_deref(), Some("192.0.2.7"));
        assert_eq!(
            head.mime.as_deref(),
            Some("application/http; msgtype=response")
        );
        assert_eq!(head.length, Ok(12));
        for wrong in ["-5", "", "1e3", "99999999999999999999", "12 bytes"] {
            let head = warc(&format!(
                "WARC/1.1\nWARC-Type: new\nContent-Length: {wrong}\n\n"
            ));
            assert!(
                head.length.is_err() && head.kind == ArchiveRecordType::Other,
                "{wrong}"
            );
        }
        assert_eq!(
            begin(Format::Warc, b"WARC/1.0\r\nContent-Length: 1\r\n"),
            HeadBegin::Part
        );
        assert_eq!(begin(Format::Warc, b"WARD/1.0\r\n\r\n"), HeadBegin::None);
        assert_eq!(begin(Format::Warc, b"WARC/x.0\r\n\r\n"), HeadBegin::None);
    }

    #[test]
    fn heads_of_arc() {
        let arc = |line: &str| parse_arc(line);
        let one = arc("http://a.b/c d 1.2.3.4 20080430204825 text/html 77").unwrap();
        assert_eq!(one.url.as_deref(), Some("http://a.b/c d"));
        assert_eq!(one.date.as_deref(), Some("2008-04-30T20:48:25Z"));
        assert_eq!(one.ip.as_deref(), Some("1.2.3.4"));
        let unknown = arc("http://a/ 0.0.0.0 20080430204825 text/html 7").unwrap();
        assert_eq!(unknown.ip, None);
        assert_eq!(
            (one.length, one.mime.as_deref()),
            (Ok(77), Some("text/html"))
        );
        let two = arc("http://a/ 1.2.3.4 20080430204825 text/html 200 - - 0 x.arc.gz 77").unwrap();
        assert_eq!(two.length, Ok(77));
        for no in [
            "",
            "URL IP-address Archive-date Content-type Archive-length",
            "1 0 CommonCrawl",
            "http://a/ 1.2.3.4 20080430204825 text/html -7",
            "a b 1.2.3.4 20080430204825 text/html 7",
        ] {
            assert_eq!(arc(no), None, "{no}");
        }
    }
}
