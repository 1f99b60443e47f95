//! Record heads: the named fields of WARC, and the single line of ARC.

use memchr::memmem;

use crate::format::Format;

/// Maximum length of a head.
pub(super) const MAX_HEAD_BYTES: usize = 256 << 10;

/// Placeholder that ARC uses for an unknown IP address.
const NO_ADDRESS: &str = "0.0.0.0";

/// Maximum length of the line before an ARC record.
const MAX_ARC_LINE: usize = 16 << 10;

/// The parsed head of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArchiveRecordHeader {
    /// The type in lower case.
    pub(super) kind: String,
    pub(super) url: Option<String>,
    /// The date as written in the archive; the 14 digits of ARC are converted to the form of WARC.
    pub(super) date: Option<String>,
    pub(super) mime: Option<String>,
    pub(super) record_id: Option<String>,
    pub(super) digest: Option<String>,
    /// IP address of the server that answered.
    pub(super) ip: Option<String>,
    /// Reason why the archive holds only a part of what was sent.
    pub(super) cut: Option<String>,
    /// Length of the block, or the reason why it is invalid.
    pub(super) length: Result<u64, String>,
}

/// A head and its length in bytes.
pub(super) type ParsedHeader = (ArchiveRecordHeader, usize);

/// The result of looking for a head at the start of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeaderMatch {
    /// A complete head.
    Head(Box<ParsedHeader>),
    /// The start of a head; more bytes are needed.
    Part,
    /// The start of a head that was never completed: at this offset, something else begins.
    Broken(usize),
    /// No head.
    None,
}

/// Parses a head at the start of `bytes`.
pub(super) fn begin(format: Format, bytes: &[u8]) -> HeaderMatch {
    match format {
        Format::Arc => begin_arc(bytes),
        _ => begin_warc(bytes),
    }
}

/// Finds the next head that starts a line, never at offset 0. If there is none, call again with more bytes.
pub(super) fn find(format: Format, bytes: &[u8]) -> Option<usize> {
    match format {
        Format::Arc => memchr::memchr_iter(b'\n', bytes)
            .map(|newline| newline + 1)
            // ARC heads have no magic: the whole line must parse. A line has at most `MAX_ARC_LINE` bytes, so each byte is scanned once for the end
            // of its line and once as part of a word.
            .find(|&at| matches!(begin_arc(&bytes[at..]), HeaderMatch::Head(_))),
        _ => memmem::find_iter(bytes, b"\nWARC/")
            .map(|newline| newline + 1)
            // Check the digit too, because `\nWARC/` also occurs in texts about the format. Do not require more: the rest of the head may not be in
            // the buffer yet.
            .find(|&at| begins_warc(&bytes[at..])),
    }
}

/// Returns how many bytes at the end of the buffer may be the start of a head.
pub(super) fn overlap(format: Format) -> usize {
    match format {
        Format::Arc => MAX_ARC_LINE,
        // Enough for `\nWARC/` and a digit.
        _ => 16,
    }
}

/// Returns true if the bytes are `WARC/` and a digit, or a prefix of that.
pub(super) fn begins_warc(bytes: &[u8]) -> bool {
    let magic = b"WARC/";
    // A prefix of the magic counts, even an empty one: the caller reads on and asks again.
    let n = bytes.len().min(magic.len());
    bytes[..n] == magic[..n] && bytes.get(5).is_none_or(u8::is_ascii_digit)
}

fn begin_warc(bytes: &[u8]) -> HeaderMatch {
    if !begins_warc(bytes) {
        return HeaderMatch::None;
    }
    match head_end(bytes) {
        Some((text, length)) => {
            if let Some(end) = break_in(&bytes[..text]) {
                return HeaderMatch::Broken(end);
            }
            // Fields are UTF-8 (WARC 1.1, section 4), but crawlers copy URIs as servers sent them, and a head with one invalid byte still bounds its
            // block.
            let head = parse_warc(&String::from_utf8_lossy(&bytes[..text]));
            HeaderMatch::Head(Box::new((head, length)))
        }
        // Otherwise data that only starts like a head would be buffered to the end of the file.
        None if bytes.len() > MAX_HEAD_BYTES => HeaderMatch::None,
        None => HeaderMatch::Part,
    }
}

/// Returns where a head breaks off: before a hole of zeros, or before the head of another record, which a writer that was killed and started again
/// has appended to it.
fn break_in(head: &[u8]) -> Option<usize> {
    let hole = memmem::find(head, b"\0\0");
    let other = memmem::find_iter(&head[1..], b"WARC/").map(|at| at + 1);
    let other = other.filter(|&at| begins_warc(&head[at..])).find(|&at| {
        // Within a line it may be part of an address, so the next line must be that with which heads begin.
        let next = memchr::memchr(b'\n', &head[at..]).map(|newline| &head[at + newline + 1..]);
        let type_field = b"WARC-Type:";
        let is_type = |line: &[u8]| {
            line.len() > type_field.len()
                && line[..type_field.len()].eq_ignore_ascii_case(type_field)
        };
        head[at - 1] == b'\n' || next.is_some_and(is_type)
    });
    hole.into_iter().chain(other).min()
}

/// Returns the end of the lines of a head, and the offset after the empty line that follows them.
pub(super) fn head_end(bytes: &[u8]) -> Option<(usize, usize)> {
    // Limited, because this is called again for each piece that is added to a head.
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

/// Parses named fields, one per line; a line that starts with a blank continues the previous field.
pub(super) fn fields(text: &str) -> Vec<(&str, String)> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        // Folded lines, which are obsolete in HTTP (RFC 9112, section 5.2) but still occur in archives.
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

/// Returns the values of the fields with this name.
pub(super) fn values<'f>(
    fields: &'f [(&str, String)],
    wanted: &str,
) -> impl Iterator<Item = &'f str> {
    let named = fields.iter();
    let named = named.filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
    named.map(|(_, value)| value.as_str())
}

fn parse_warc(text: &str) -> ArchiveRecordHeader {
    let fields = fields(text);
    let field = |wanted: &str| {
        // The first one counts: only `WARC-Concurrent-To` may be repeated (WARC 1.1, section 5.7), and it is not read.
        let first = values(&fields, wanted).next();
        first.filter(|value| !value.is_empty())
    };
    let length = match field("content-length") {
        None => Err("no Content-Length".to_owned()),
        Some(digits) => length(digits),
    };
    let owned = |name: &str| field(name).map(str::to_owned);
    let truncated = field("warc-truncated").map(|why| format!("WARC-Truncated: {why:.40}"));
    let segment = || field("warc-segment-number").map(|_| "it is in several segments".to_owned());
    ArchiveRecordHeader {
        url: field("warc-target-uri").map(|uri| unbracketed(uri).to_owned()),
        date: owned("warc-date"),
        mime: owned("content-type"),
        record_id: field("warc-record-id").map(|id| unbracketed(id).to_owned()),
        digest: owned("warc-payload-digest"),
        ip: owned("warc-ip-address"),
        cut: truncated.or_else(segment),
        kind: field("warc-type").unwrap_or("").to_ascii_lowercase(),
        length,
    }
}

fn length(digits: &str) -> Result<u64, String> {
    let wrong = |_| format!("Content-Length is {:.40}, which is not a length", digits);
    digits.parse().map_err(wrong)
}

/// Strips the angle brackets that some writers put around URIs.
pub(super) fn unbracketed(uri: &str) -> &str {
    uri.strip_prefix('<')
        .and_then(|uri| uri.strip_suffix('>'))
        .unwrap_or(uri)
}

fn begin_arc(bytes: &[u8]) -> HeaderMatch {
    let line = &bytes[..bytes.len().min(MAX_ARC_LINE)];
    // Without the limit, a binary file named .arc would be buffered up to its first line feed.
    let Some(newline) = memchr::memchr(b'\n', line) else {
        return if line.len() < MAX_ARC_LINE {
            HeaderMatch::Part
        } else {
            HeaderMatch::None
        };
    };
    match parse_arc(&String::from_utf8_lossy(&line[..newline])) {
        Some(head) => HeaderMatch::Head(Box::new((head, newline + 1))),
        None => HeaderMatch::None,
    }
}

/// Parses `URL IP date mime length`, or the line of ARC 2 with five more fields before the length. URLs often contain blanks, so the 14-digit date
/// after an IP address is the anchor.
fn parse_arc(line: &str) -> Option<ArchiveRecordHeader> {
    let words: Vec<&str> = line.trim_end().split(' ').collect();
    let (last, words) = words.split_last()?;
    let length = last.parse().ok()?;
    // Start at 2, because the URL and the IP address come first. Take the first such pair: a URL with blanks may contain a date, but hardly an IP
    // address before it.
    let date = (2..words.len()).find(|&i| is_date(words[i]) && is_address(words[i - 1]))?;
    let url = words[..date - 1].join(" ");
    // All names in ARC are URLs. This excludes lines of logs that have an address, a date and a length.
    if !url.contains(':') {
        return None;
    }
    // `filedesc:` is the version block of a file (ARC 1). All other records are responses of servers.
    let kind = if url.starts_with("filedesc:") {
        "warcinfo"
    } else {
        "response"
    };
    Some(ArchiveRecordHeader {
        url: Some(url),
        date: Some(iso_date(words[date])),
        mime: words.get(date + 1).map(|mime| (*mime).to_owned()),
        ip: Some(words[date - 1].to_owned()).filter(|ip| ip != NO_ADDRESS),
        kind: kind.to_owned(),
        length: Ok(length),
        record_id: None,
        digest: None,
        cut: None,
    })
}

fn is_date(word: &str) -> bool {
    word.len() == 14 && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_address(word: &str) -> bool {
    // Only checks the characters of IPv4 and IPv6: archives contain addresses that no parser accepts, and the date next to it makes the match certain
    // enough.
    word.contains(['.', ':'])
        && word
            .bytes()
            .all(|b| b.is_ascii_hexdigit() || b".:".contains(&b))
}

/// Converts `20080430204825` to `2008-04-30T20:48:25Z`.
fn iso_date(digits: &str) -> String {
    let part = |from: usize, to: usize| &digits[from..to];
    let (year, month, day) = (part(0, 4), part(4, 6), part(6, 8));
    let (hour, minute, second) = (part(8, 10), part(10, 12), part(12, 14));
    format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warc(text: &str) -> ArchiveRecordHeader {
        match begin(Format::Warc, text.as_bytes()) {
            HeaderMatch::Head(parsed) => parsed.0,
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
        assert_eq!(head.kind, "response");
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
            assert!(head.length.is_err() && head.kind == "new", "{wrong}");
        }
        assert_eq!(
            begin(Format::Warc, b"WARC/1.0\r\nContent-Length: 1\r\n"),
            HeaderMatch::Part
        );
        assert_eq!(begin(Format::Warc, b"WARD/1.0\r\n\r\n"), HeaderMatch::None);
        assert_eq!(begin(Format::Warc, b"WARC/x.0\r\n\r\n"), HeaderMatch::None);
    }

    #[test]
    fn a_head_breaks_off_where_another_begins() {
        let head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a/WARC/1.0\r\n";
        for (rest, whole) in [
            ("WARC/1.0\r\nWARC-Date: 2024\r\n", false),
            ("WARC-DWARC/1.1\nwarc-type: response\n", false),
            ("\0\0\0\r\n", false),
            ("WARC-Date: WARC/1.0\r\nContent-Length: 1\r\n", true),
            ("WARC/x: 1\r\n", true),
        ] {
            let bytes = format!("{head}{rest}\r\n");
            let at = head.len() + rest.find("WARC/1.").unwrap_or_default();
            match begin(Format::Warc, bytes.as_bytes()) {
                HeaderMatch::Head(_) => assert!(whole, "{rest}"),
                other => assert_eq!((other, whole), (HeaderMatch::Broken(at), false), "{rest}"),
            }
        }
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
