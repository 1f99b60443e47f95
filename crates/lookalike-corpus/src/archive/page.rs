//! Converts an archive record that is a document to a row: the JSON line of its fields.

use crate::charset::{self, DecodedText};
use crate::format::Format;
use crate::html::begins_page;
use crate::long_hash::LongHasher;
use crate::record::BadRecordKind;
use crate::row::{JsonObject, RowSink, RowState, SkipNotes};
use crate::sniff;
use crate::source::{SkipKind, Source};

use super::head::ArchiveRecordHeader;
use super::http;
use super::wat::WatRecord;

/// Makes rows from records.
pub(super) struct ArchivePages {
    source: String,
    limit: usize,
    /// True for a WAT archive, whose metadata records are the documents.
    is_wat: bool,
}

/// The position of a record.
#[derive(Clone, Copy)]
pub(super) struct ArchivePlace {
    /// Offset in the decompressed source.
    pub(super) offset: u64,
    /// Offset of the compressed member in the file; 0 if the file has no members.
    pub(super) member: u64,
}

/// Facts about a page, from its own record or from its metadata record.
struct KnownFacts<'a> {
    date: Option<&'a str>,
    record_id: Option<&'a str>,
    status: Option<u16>,
    mime: Option<&'a str>,
}

/// The content of a record without its HTTP head.
struct RecordPayload<'a> {
    status: Option<u16>,
    mime: Option<String>,
    body: http::HttpBody<'a>,
    /// The response that contains the body, if there is one.
    response: Option<http::HttpResponse<'a>>,
}

/// Starts the hash of a block; more of the block may be added.
fn block_hash(block: &[u8]) -> LongHasher {
    let mut hasher = LongHasher::of_text();
    hasher.update(block);
    hasher
}

/// The kind of text in a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PayloadText {
    Html,
    Plain,
    /// The parser, which runs on several threads, extracts its text.
    Pdf,
}

impl ArchivePages {
    pub(super) fn new(source: &Source, limit: usize) -> ArchivePages {
        ArchivePages {
            source: source.name().into_owned(),
            limit,
            is_wat: source.format == Format::Wat,
        }
    }

    /// Adds the record as a row, or counts it. `is_cut` is true if the block is longer than the part that is held. For a row that is too long,
    /// returns the hash of the held part, to which the caller adds the rest of the block.
    pub(super) fn add(
        &mut self,
        head: &ArchiveRecordHeader,
        block: &[u8],
        is_cut: bool,
        place: ArchivePlace,
        notes: &mut SkipNotes,
        sink: &mut RowSink<'_>,
    ) -> Option<LongHasher> {
        let named = |what: &str| match &head.url {
            Some(url) => format!("{what} of {url:.200}"),
            None => what.to_owned(),
        };
        // Only in WAT: a WARC holds metadata records next to the pages that they describe, so a page would count twice.
        if self.is_wat && head.kind == "metadata" && is_json(head) {
            match self.add_wat(head, block, is_cut, place, sink) {
                WatOutcome::Page => return None,
                WatOutcome::TooLong(hasher) => return Some(hasher),
                WatOutcome::NotAPage => {}
            }
        }
        if let Some(kind) = not_a_document(&head.kind) {
            notes.add(kind, place.offset, || {
                let name = named(&format!("{:.40} record", head.kind));
                // Only those of WAT are JSON.
                match kind == SkipKind::Metadata && is_json(head) && !self.is_wat {
                    true => format!("{name}, which is read as a document in the format wat"),
                    false => name,
                }
            });
            return None;
        }
        let mut payload = payload(head, block, self.limit);
        // A cut body is too long even if its held part decodes to less than the limit.
        payload.body.too_long |= is_cut;
        // Other bodies are messages of the server, not the page (RFC 9110, section 15).
        if let Some(status) = payload.status.filter(|status| !(200..300).contains(status)) {
            notes.add(SkipKind::HttpStatus, place.offset, || {
                named(&format!("response with status {status}"))
            });
            return None;
        }
        let Some(text) = text_of(payload.mime.as_deref(), &payload.body.bytes) else {
            notes.add(SkipKind::NotText, place.offset, || {
                named(&name_of_binary(
                    payload.mime.as_deref(),
                    &payload.body.bytes,
                ))
            });
            return None;
        };
        if let Some(reason) = &payload.body.raw {
            notes.add(SkipKind::RawBody, place.offset, || {
                named(&format!("a body {reason}"))
            });
        }
        // A record that is too long is reported as such; part of its block is not even held.
        let cut = payload.body.cut.as_ref().or(head.cut.as_ref());
        if let Some(reason) = cut.filter(|_| !payload.body.too_long) {
            notes.add(SkipKind::CutBody, place.offset, || {
                named(&format!("the end of the body ({reason})"))
            });
        }
        // Hashes the stored bytes: a body that is too long is never decoded as a whole, and its copies are stored alike.
        self.write(head, &payload, text, place, sink);
        payload.body.too_long.then(|| match &payload.response {
            Some(response) => response.stored_hash(),
            None => block_hash(block),
        })
    }

    fn write(
        &self,
        head: &ArchiveRecordHeader,
        payload: &RecordPayload<'_>,
        text: PayloadText,
        place: ArchivePlace,
        sink: &mut RowSink<'_>,
    ) {
        let html = text == PayloadText::Html;
        // The mime type still has its parameters here; `write_fields` removes them from the result.
        let header = payload.mime.as_deref().and_then(charset::in_content_type);
        // A row that is too long has its fields but no text, so that results can name it.
        let decoded: Option<DecodedText<'_>> = (!payload.body.too_long && text != PayloadText::Pdf)
            .then(|| charset::decode_declared(&payload.body.bytes, html, header));
        let mut line = JsonObject::begin(sink.bytes);
        let known = KnownFacts {
            date: head.date.as_deref(),
            record_id: head.record_id.as_deref(),
            status: payload.status,
            mime: payload.mime.as_deref(),
        };
        self.write_fields(&mut line, head, &known, place);
        if let Some(decoded) = &decoded {
            line.text("charset", decoded.charset);
            line.text(if html { "html" } else { "text" }, &decoded.text);
        }
        line.end();
        let state = match payload.body.too_long {
            false => RowState::Good,
            true => RowState::TooLong(None),
        };
        let replaced = decoded.as_ref().is_some_and(|decoded| decoded.replaced);
        sink.push(place.offset, state, replaced);
        if let (Some(decoded), Some(row)) = (decoded, sink.rows.last_mut()) {
            row.charset = Some(decoded.charset);
            row.charset_wrong = decoded.wrong_declaration;
        }
        if text == PayloadText::Pdf && !payload.body.too_long {
            // Attached separately, because the bytes of a PDF cannot be part of JSON. They count towards the size of the chunk.
            let is_cut = payload.body.cut.is_some() || head.cut.is_some();
            sink.attach_pdf(payload.body.bytes.to_vec(), is_cut);
        }
    }

    /// Adds the page that a WAT record describes.
    fn add_wat(
        &self,
        head: &ArchiveRecordHeader,
        block: &[u8],
        is_cut: bool,
        place: ArchivePlace,
        sink: &mut RowSink<'_>,
    ) -> WatOutcome {
        let too_long = is_cut || block.len() > self.limit;
        let wat = match too_long {
            true => WatRecord::default(),
            false => match WatRecord::parse(block) {
                Ok(Some(wat)) => wat,
                // The caller counts it as metadata, as in any other archive.
                Ok(None) => return WatOutcome::NotAPage,
                Err(error) => {
                    let reason = format!("its metadata is not JSON: {error}");
                    sink.bad(place.offset, BadRecordKind::Broken, reason);
                    return WatOutcome::Page;
                }
            },
        };
        let mut line = JsonObject::begin(sink.bytes);
        let known = KnownFacts {
            // The date of the page, not of the extraction of its metadata.
            date: wat.date.as_deref().or(head.date.as_deref()),
            record_id: wat.record_id.as_deref().or(head.record_id.as_deref()),
            status: wat.status,
            mime: wat.mime.as_deref(),
        };
        self.write_fields(&mut line, head, &known, place);
        if too_long {
            line.end();
            sink.push(place.offset, RowState::TooLong(None), false);
            return WatOutcome::TooLong(block_hash(block));
        }
        line.text("title", &wat.title);
        if let Some(base) = &wat.base {
            line.text("base", base);
        }
        line.texts("link_texts", &wat.link_texts);
        line.texts("out_links", &wat.out_links);
        line.text("text", &wat.text());
        line.end();
        sink.push(place.offset, RowState::Good, false);
        WatOutcome::Page
    }

    /// Writes the fields that every document of an archive has.
    fn write_fields(
        &self,
        line: &mut JsonObject<'_>,
        head: &ArchiveRecordHeader,
        known: &KnownFacts<'_>,
        place: ArchivePlace,
    ) {
        let fields = [
            ("url", head.url.as_deref()),
            ("date", known.date),
            ("record_id", known.record_id),
            ("digest", head.digest.as_deref()),
            ("ip", head.ip.as_deref()),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                line.text(name, value);
            }
        }
        line.text("type", &head.kind);
        if let Some(status) = known.status {
            line.number("status", status);
        }
        if let Some(mime) = known.mime {
            line.text("mime", essence(mime));
        }
        line.text("source", &self.source);
        line.number("member", place.member);
        line.number("offset", place.offset);
    }
}

/// The result of adding a WAT record.
enum WatOutcome {
    /// A row was added, good or bad.
    Page,
    /// A row without a text was added. Holds the hash of the held part of its block.
    TooLong(LongHasher),
    /// The record describes something other than a page.
    NotAPage,
}

fn is_json(head: &ArchiveRecordHeader) -> bool {
    head.mime
        .as_deref()
        .is_some_and(|mime| mime.contains("json"))
}

/// Returns the counter for records that are never documents.
fn not_a_document(kind: &str) -> Option<SkipKind> {
    match kind {
        "response" | "resource" | "conversion" => None,
        "warcinfo" => Some(SkipKind::Warcinfo),
        "request" => Some(SkipKind::Request),
        "metadata" => Some(SkipKind::Metadata),
        // A revisit states that a page is unchanged, without repeating it (WARC 1.1, section 6.7).
        "revisit" => Some(SkipKind::Revisit),
        _ => Some(SkipKind::OtherRecord),
    }
}

/// Reads the HTTP response, or takes the whole block if the record holds something else.
fn payload<'a>(head: &ArchiveRecordHeader, block: &'a [u8], limit: usize) -> RecordPayload<'a> {
    // Resources and conversions are blocks without HTTP (WARC 1.1, sections 6.4 and 6.8), even if their text begins with `HTTP/`.
    let response = match &*head.kind {
        "response" => http::parse(block),
        _ => None,
    };
    match response {
        Some(response) => RecordPayload {
            status: response.status,
            body: response.body(limit),
            mime: response.mime.clone(),
            response: Some(response),
        },
        None => RecordPayload {
            status: None,
            mime: head.mime.as_deref().map(str::to_ascii_lowercase),
            body: http::HttpBody {
                bytes: block.into(),
                raw: None,
                cut: None,
                too_long: block.len() > limit,
            },
            response: None,
        },
    }
}

/// Returns a MIME type without its parameters. Of several, which proxies join with commas, the last valid one counts (Fetch, "extract a MIME type").
fn essence(mime: &str) -> &str {
    let ends = |c: char| c == ';' || c == '"' || c.is_ascii_whitespace();
    let mut types = mime.rsplit(',').map(|one| {
        let one = one.trim_start_matches(|c: char| c == '"' || c.is_ascii_whitespace());
        one.split(ends).next().unwrap_or_default()
    });
    let valid = types.clone().find(|one| one.contains('/') && *one != "*/*");
    valid.or(types.next()).unwrap_or_default()
}

/// Returns true for a type that says nothing, as in ClueWeb, ARC and responses of broken servers: browsers guess the types of these (WHATWG MIME
/// Sniffing, section 7).
fn is_undeclared(essence: &str) -> bool {
    let unknown = [
        "*/*",
        "unknown/unknown",
        "application/unknown",
        "application/http",
    ];
    !essence.contains('/') || unknown.contains(&essence)
}

/// Returns true for the types of pages and of other markup.
fn is_page(mime: &str) -> bool {
    matches!(
        essence(mime),
        "text/html"
            | "application/xhtml+xml"
            | "text/xml"
            | "application/xml"
            | "application/rss+xml"
            | "application/atom+xml"
    )
}

/// Decides whether a payload is text, by its declared type, or by its first bytes if the type says nothing or is that of a page, with which servers
/// also label images and archives.
fn text_of(mime: Option<&str>, body: &[u8]) -> Option<PayloadText> {
    let mime = mime.unwrap_or_default();
    let essence = essence(mime);
    match essence {
        _ if is_page(mime) && is_pdf(body) => pdf(),
        _ if is_page(mime) => (!sniff::is_media(body)).then_some(PayloadText::Html),
        // Servers declare unknown types as text/plain; the tags of such a page would become its text.
        "text/plain" if sniff::is_html(body) => Some(PayloadText::Html),
        "text/plain" | "text/markdown" | "text/x-markdown" => plain(body),
        "application/pdf" | "application/x-pdf" => pdf(),
        _ if essence == "application/octet-stream" || is_undeclared(essence) => {
            if begins_page(body) {
                Some(PayloadText::Html)
            } else if is_pdf(body) {
                pdf()
            // Declared as binary. Without a declaration, a body without NUL counts as text.
            } else if essence == "application/octet-stream" {
                None
            } else {
                plain(body)
            }
        }
        _ => None,
    }
}

/// Names a payload that is not text, for its counter.
fn name_of_binary(mime: Option<&str>, body: &[u8]) -> String {
    match mime {
        // Another build reads it, as it reads PDF that is declared as such.
        Some(mime) if is_page(mime) && is_pdf(body) => "application/pdf".to_owned(),
        Some(mime) if is_page(mime) => format!("binary data declared as {mime}"),
        mime => mime.unwrap_or("binary data").to_owned(),
    }
}

fn is_pdf(body: &[u8]) -> bool {
    body.starts_with(b"%PDF-")
}

/// Returns the PDF kind if this build reads PDF.
fn pdf() -> Option<PayloadText> {
    cfg!(feature = "pdf").then_some(PayloadText::Pdf)
}

/// Returns plain text if the first bytes contain no NUL, or are UTF-16.
fn plain(body: &[u8]) -> Option<PayloadText> {
    let head = &body[..body.len().min(sniff::HEAD_BYTES)];
    (sniff::is_utf16(head) || memchr::memchr(0, head).is_none()).then_some(PayloadText::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_archives_that_were_declared_as_pages_became_texts() {
        let bodies: [&[u8]; 6] = [
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            b"\xff\xd8\xff\xe0\0\x10JFIF",
            b"GIF89a\x01\0\x01\0",
            b"PK\x03\x04\x14\0",
            b"RIFF\x24\0\0\0WEBPVP8 ",
            b"\0\0\0\x20ftypisom",
        ];
        for body in bodies {
            for mime in [
                "text/html; charset=utf-8",
                "application/xhtml+xml",
                "text/xml",
            ] {
                assert_eq!(text_of(Some(mime), body), None, "{mime} {body:?}");
            }
        }
        assert_eq!(text_of(Some("text/html"), b"%PDF-1.4\n%\xe2"), pdf());
    }

    #[test]
    fn a_build_without_pdf_hid_that_a_page_was_one() {
        let name = |body| name_of_binary(Some("text/html"), body);
        assert_eq!(name(b"%PDF-1.4\n%\xe2"), "application/pdf");
        assert_eq!(name(b"GIF89a\x01\0"), "binary data declared as text/html");
    }

    #[test]
    fn what_is_a_text() {
        let cases = [
            (
                Some("text/html; charset=utf-8"),
                &b""[..],
                Some(PayloadText::Html),
            ),
            (Some("text/plain"), b"words", Some(PayloadText::Plain)),
            (
                Some("text/plain"),
                b"<!DOCTYPE html><p>",
                Some(PayloadText::Html),
            ),
            (Some("text/plain"), b"\0\x01", None),
            (Some("image/png"), b"\x89PNG", None),
            (Some("text/css"), b"a{}", None),
            (Some("text/html"), b"\0<p>a", Some(PayloadText::Html)),
            (Some("text/html"), b"GIF<p>a", Some(PayloadText::Html)),
            (Some("text/dns"), b"20080430", None),
            (None, b"<html>", Some(PayloadText::Html)),
            (Some("no-type"), b"<title>a", Some(PayloadText::Html)),
            (Some("html"), b"<html>", Some(PayloadText::Html)),
            (Some("*/*"), b"<html>", Some(PayloadText::Html)),
            (Some("unknown/unknown"), b"words", Some(PayloadText::Plain)),
            (Some("image/png, text/html"), b"a", Some(PayloadText::Html)),
            (Some("text/html, */*"), b"a", Some(PayloadText::Html)),
            (Some("text/html, image/png"), b"a", None),
            (None, b"<!-- a -->\n<P>a", Some(PayloadText::Html)),
            (Some("text/plain"), b"<p>a", Some(PayloadText::Plain)),
            (None, b"words", Some(PayloadText::Plain)),
            (Some("application/pdf"), b"%PDF-1.7", pdf()),
            (Some("application/octet-stream"), b"%PDF-1.7", pdf()),
            (Some("application/octet-stream"), b"words", None),
        ];
        for (mime, body, expected) in cases {
            assert_eq!(text_of(mime, body), expected, "{mime:?}");
        }
    }
}
