//! HTTP responses as archives store them: the head, and the body with its encodings undone.
//!
//! Archives do not store exactly what servers sent: Common Crawl stores decoded bodies under heads that still name an encoding. So an encoding that
//! does not fit is not an error; the body is taken as it is, and the reason is reported.

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::head;
use crate::decode;
use crate::long_hash::LongHasher;

/// Maximum number of encodings that are undone, because each can produce up to the limit of bytes. Servers name one or two.
const MAX_ENCODINGS: usize = 8;

/// A response, with its body as stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpResponse<'a> {
    pub(super) status: Option<u16>,
    pub(super) mime: Option<String>,
    chunked: bool,
    /// The length of the body as sent, if the head has it.
    length: Option<usize>,
    encodings: Vec<String>,
    stored: &'a [u8],
}

/// A body with its encodings undone.
pub(super) struct HttpBody<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// Reason why an encoding that the head names was not undone.
    pub(super) raw: Option<String>,
    /// Reason why the body is incomplete: cut off or damaged. `bytes` holds the part before that.
    pub(super) cut: Option<String>,
    /// True if the body is longer than the limit; `bytes` is then cut somewhere after the limit.
    pub(super) too_long: bool,
}

/// Parses the response in a block. Returns `None` if the block does not start with `HTTP/`.
pub(super) fn parse(block: &[u8]) -> Option<HttpResponse<'_>> {
    if !block.starts_with(b"HTTP/") {
        return None;
    }
    // If the head has no end, the whole block is head: its lines must not become the text of a page.
    let (end, body) = head::head_end(block).unwrap_or((block.len(), block.len()));
    let text = String::from_utf8_lossy(&block[..end]);
    let (line, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let fields = head::fields(rest);
    let all = |wanted: &'static str| head::values(&fields, wanted).map(str::to_ascii_lowercase);
    let status = line
        .split_ascii_whitespace()
        .nth(1)
        .and_then(|s| s.parse().ok());
    Some(HttpResponse {
        status,
        mime: Some(all("content-type").collect::<Vec<_>>().join(", "))
            .filter(|mime| !mime.is_empty()),
        // Chunked is always the last coding (RFC 9112, section 6.1).
        chunked: all("transfer-encoding").any(|value| value.contains("chunked")),
        length: all("content-length")
            .next()
            .and_then(|value| value.parse().ok()),
        // Other transfer codings were applied to the body after its content encodings.
        encodings: all("content-encoding")
            .chain(all("transfer-encoding"))
            .flat_map(|value| {
                value
                    .split(',')
                    .map(|e| e.trim().to_owned())
                    .collect::<Vec<_>>()
            })
            .filter(|encoding| !matches!(encoding.as_str(), "" | "identity" | "chunked"))
            .collect(),
        stored: &block[body..],
    })
}

impl<'a> HttpResponse<'a> {
    /// Starts a hash of the stored body and of the encodings that its head names. More of the body may be added.
    pub(super) fn stored_hash(&self) -> LongHasher {
        let mut hasher = LongHasher::of_text();
        // The same stored bytes under another encoding are another text. A body without encodings hashes like a text file with the same bytes, so
        // that the two count as copies.
        if self.chunked || !self.encodings.is_empty() {
            hasher.update_delimited(&[u8::from(self.chunked)]);
            let encodings = self.encodings.iter();
            encodings.for_each(|encoding| hasher.update_delimited(encoding.as_bytes()));
        }
        hasher.update(self.stored);
        hasher
    }

    /// Undoes the chunks and the compression of the body. Produces little more than `limit` bytes. Linear in the stored length and the limit, with
    /// few encodings.
    pub(super) fn body(&self, limit: usize) -> HttpBody<'a> {
        let mut body = HttpBody {
            bytes: Cow::Borrowed(self.stored),
            raw: None,
            cut: None,
            too_long: false,
        };
        if self.chunked {
            match unchunked(self.stored) {
                Some(joined) => {
                    body.bytes = Cow::Owned(joined.bytes);
                    body.cut = joined.cut;
                }
                None => body.raw = Some("not chunked, though its header says so".to_owned()),
            }
        } else if let Some(length) = self.length.filter(|length| *length > self.stored.len()) {
            let stored = self.stored.len();
            body.cut = Some(format!("{stored} of {length} bytes"));
        }
        let encodings = match self.encodings.len() {
            ..=MAX_ENCODINGS => &self.encodings[..],
            number => {
                let reason = format!("read as it is, because its header names {number} encodings");
                body.raw.get_or_insert(reason);
                &[]
            }
        };
        // They are listed in the order in which they were applied (RFC 9110, section 8.4).
        for encoding in encodings.iter().rev() {
            match inflate(encoding, &body.bytes, limit) {
                // Each layer is cut at the limit by itself, so none can grow beyond it, whatever the next one makes of it.
                Ok(decoded) => {
                    body.bytes = Cow::Owned(decoded.bytes);
                    // The innermost layer decides where the text ends.
                    body.cut = decoded.cut.or(body.cut);
                }
                Err(reason) => {
                    let reason =
                        format!("not in {encoding:.20}, though its header says so: {reason}");
                    // Keep the first reason: once the chunks did not fit, later failures are mostly a consequence.
                    body.raw.get_or_insert(reason);
                    break;
                }
            }
        }
        body.too_long = body.bytes.len() > limit;
        body
    }
}

/// A body after undoing one encoding.
struct DecodedBody {
    bytes: Vec<u8>,
    /// Reason why the body is incomplete, as in [`HttpBody`].
    cut: Option<String>,
}

/// Joins the chunks. Returns `None` if the body is not chunked. The last chunk may be missing or cut off.
fn unchunked(stored: &[u8]) -> Option<DecodedBody> {
    let mut bytes = Vec::with_capacity(stored.len());
    let mut rest = stored;
    let mut has_chunk = false;
    while !rest.is_empty() {
        let Some((size, data)) = chunk_size(rest) else {
            // A body that is not chunked fails at its first line, or has no chunk that ends as one. Behind a whole chunk, the sizes of the others
            // must not become text.
            let cut = Some("one of its chunks is damaged".to_owned());
            return has_chunk.then_some(DecodedBody { bytes, cut });
        };
        if size == 0 {
            return Some(DecodedBody { bytes, cut: None });
        }
        // The declared size only moves the reading position, because crawlers cut bodies off.
        let (chunk, after) = data.split_at(size.min(data.len()));
        bytes.extend_from_slice(chunk);
        let line_end = after
            .strip_prefix(b"\r\n")
            .or_else(|| after.strip_prefix(b"\n"));
        has_chunk |= after.starts_with(b"\r\n");
        rest = line_end.unwrap_or(after);
    }
    let cut = (!stored.is_empty()).then(|| "its last chunk is missing".to_owned());
    Some(DecodedBody { bytes, cut })
}

/// Parses the line before a chunk. Returns the size of the chunk, and the bytes behind the line.
fn chunk_size(rest: &[u8]) -> Option<(usize, &[u8])> {
    // `chunk-size [ chunk-ext ] CRLF` (RFC 9112, section 7.1). The limit avoids searching a body that is not chunked to its end for each line.
    let newline = memchr::memchr(b'\n', &rest[..rest.len().min(1024)])?;
    let line = std::str::from_utf8(&rest[..newline]).ok()?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    let size = usize::from_str_radix(digits, 16).ok()?;
    Some((size, &rest[newline + 1..]))
}

/// Undoes one content encoding. Of a body that is cut off, returns the part that can be decoded.
fn inflate(encoding: &str, bytes: &[u8], limit: usize) -> Result<DecodedBody, String> {
    match encoding {
        // Both names mean the same coding (RFC 9110, section 8.4.1.3).
        "gzip" | "x-gzip" => read_up_to(MultiGzDecoder::new(bytes), limit),
        // `deflate` means zlib, but some servers send raw deflate (RFC 9110, section 8.4.1.2).
        "deflate" => read_up_to(ZlibDecoder::new(bytes), limit)
            .or_else(|_| read_up_to(DeflateDecoder::new(bytes), limit)),
        "zstd" => read_up_to(
            decode::zstd_decoder(bytes, &[]).map_err(|error| error.to_string())?,
            limit,
        ),
        "br" => read_up_to(brotli_decompressor::Decompressor::new(bytes, 4096), limit),
        _ => Err("it is not known".to_owned()),
    }
}

/// Reads up to `limit` + 1 bytes. An error before the first byte is returned as `Err`; a later one cuts the body.
fn read_up_to(decoder: impl Read, limit: usize) -> Result<DecodedBody, String> {
    let mut bytes = Vec::new();
    let most = (limit as u64).saturating_add(1);
    let cut = match decoder.take(most).read_to_end(&mut bytes) {
        // Errors after the first bytes come from bodies that were cut off, which are common in archives. Bytes of another encoding fail at once, in
        // the header.
        Err(error) if bytes.is_empty() => return Err(error.to_string()),
        Err(error) => Some(error.to_string()),
        Ok(_) => None,
    };
    Ok(DecodedBody { bytes, cut })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn body(head: &str, stored: &[u8], limit: usize) -> (Vec<u8>, bool, bool) {
        let block = [format!("HTTP/1.1 200 OK\r\n{head}\r\n").as_bytes(), stored].concat();
        let response = parse(&block).unwrap();
        let body = response.body(limit);
        (body.bytes.to_vec(), body.raw.is_some(), body.too_long)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn encodings_are_undone_or_the_body_is_taken_as_it_is() {
        let chunked = "Transfer-Encoding: chunked\r\n";
        let gzipped = "Content-Encoding: gzip\r\n";
        let sent_packed = "Transfer-Encoding: gzip, chunked\r\n";
        let packed = gzip(b"text");
        let in_chunks = [
            format!("{:x}\r\n", packed.len()).as_bytes(),
            &packed,
            b"\r\n0\r\n\r\n",
        ]
        .concat();
        let cases: [(&str, Vec<u8>, &[u8], bool); 10] = [
            (sent_packed, in_chunks, b"text", false),
            ("", b"plain".to_vec(), b"plain", false),
            (
                chunked,
                b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n".to_vec(),
                b"abcde",
                false,
            ),
            (chunked, b"<html>".to_vec(), b"<html>", true),
            (chunked, b"9\r\nabc".to_vec(), b"abc", false),
            (gzipped, gzip(b"text"), b"text", false),
            (gzipped, b"text".to_vec(), b"text", true),
            ("Content-Encoding: identity\r\n", b"t".to_vec(), b"t", false),
            ("Content-Encoding: pack200\r\n", b"t".to_vec(), b"t", true),
            (
                "Content-Encoding: zstd\r\n",
                zstd::encode_all(&b"z"[..], 1).unwrap(),
                b"z",
                false,
            ),
        ];
        for (head, stored, expected, raw) in cases {
            assert_eq!(
                body(head, &stored, 100),
                (expected.to_vec(), raw, false),
                "{head}"
            );
        }
    }

    #[test]
    fn a_body_that_ends_early_tells_why() {
        let cut = |head: &str, stored: &[u8]| {
            let block = [format!("HTTP/1.1 200 OK\r\n{head}\r\n").as_bytes(), stored].concat();
            let response = parse(&block).unwrap();
            response.body(1 << 20).cut
        };
        let (chunked, gzipped) = (
            "Transfer-Encoding: chunked\r\n",
            "Content-Encoding: gzip\r\n",
        );
        let whole = gzip("a text of many words ".repeat(100).as_bytes());
        assert_eq!(cut(gzipped, &whole), None);
        assert!(cut(gzipped, &whole[..whole.len() - 9]).is_some());
        // Damage the checksum, which comes after the text.
        let mut damaged = whole.clone();
        let at = damaged.len() - 8;
        damaged[at] ^= 1;
        assert!(cut(gzipped, &damaged).is_some());
        assert_eq!(cut(chunked, b"3\r\nabc\r\n0\r\n\r\n"), None);
        assert_eq!(cut(chunked, b""), None);
        assert!(cut(chunked, b"3\r\nabc\r\n").is_some());
        assert!(cut(chunked, b"9\r\nabc").is_some());
        let both = [format!("{:x}\r\n", whole.len()).as_bytes(), &whole].concat();
        assert!(cut(&format!("{chunked}{gzipped}"), &both).is_some());
        assert_eq!(cut("", b"text"), None);
        assert_eq!(cut("Content-Length: 4\r\n", b"text"), None);
        assert!(cut("Content-Length: 5\r\n", b"text").is_some());
    }

    #[test]
    fn a_body_that_is_not_chunked_is_not_cut_behind_a_line_that_looks_like_a_size() {
        assert!(unchunked(b"2\nab\ncd ef\n").is_none());
    }

    #[test]
    fn a_damaged_chunk_made_text_of_sizes_and_of_compressed_bytes() {
        let text: String = (0..200).map(|number| number.to_string()).collect();
        let packed = gzip(text.as_bytes());
        let in_chunks = |bytes: &[u8]| {
            let (first, second) = bytes.split_at(bytes.len() / 2);
            let size = format!("{:x}\r\n", first.len());
            [size.as_bytes(), first, b"\r\nno size\r\n", second].concat()
        };
        let chunked = "Transfer-Encoding: chunked\r\n";
        let both = "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n";
        for (head, stored) in [
            (chunked, in_chunks(text.as_bytes())),
            (both, in_chunks(&packed)),
        ] {
            let block = [format!("HTTP/1.1 200 OK\r\n{head}\r\n").as_bytes(), &stored].concat();
            let response = parse(&block).unwrap();
            let body = response.body(1 << 20);
            assert!(text.as_bytes().starts_with(&body.bytes), "{head}");
            assert!(!body.bytes.is_empty() && body.raw.is_none(), "{head}");
            assert!(body.cut.is_some(), "{head}");
        }
    }

    #[test]
    fn a_body_that_swells_is_cut() {
        let bomb = gzip(&vec![b'a'; 1 << 20]);
        let (bytes, raw, too_long) = body("Content-Encoding: gzip\r\n", &bomb, 1000);
        assert!(bytes.len() == 1001 && !raw && too_long);
    }

    #[test]
    fn a_head_named_thousands_of_encodings() {
        let twice = gzip(&gzip(b"text"));
        let head =
            |number: usize| format!("Content-Encoding: {}\r\n", ["gzip"; 9][..number].join(", "));
        assert_eq!(
            body(&head(2), &twice, 100),
            (b"text".to_vec(), false, false)
        );
        let mut packed = b"text".to_vec();
        for _ in 0..9 {
            packed = gzip(&packed);
        }
        let (bytes, raw, _) = body(&head(9), &packed, 1000);
        assert!(bytes == packed && raw);
        let (bytes, raw, _) = body(&head(8), &packed, 1000);
        assert!(bytes == gzip(b"text") && !raw);
    }

    #[test]
    fn odd_heads_are_read() {
        let response = parse(b"HTTP/1.0 404\nContent-Type: Text/HTML; charset=x\n\nbody").unwrap();
        assert_eq!(response.status, Some(404));
        assert_eq!(response.mime.as_deref(), Some("text/html; charset=x"));
        assert_eq!(&*response.body(10).bytes, b"body");
        assert_eq!(parse(b"HTTP/1.0 200 OK").unwrap().stored, b"");
        assert_eq!(parse(b"<html>"), None);
    }
}
