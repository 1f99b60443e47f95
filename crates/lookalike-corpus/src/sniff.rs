//! Detection of the format and compression of a file, from its name and first bytes.

use std::borrow::Cow;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::{fmt, iter};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::charset;
use crate::convert::{Converter, converter_of};
use crate::decode;
use crate::error::InputError;
use crate::format::{Compression, Format, ReadFormat};
use crate::html::{after_prologue, begins_page, begins_with};
use crate::input_window::BYTE_ORDER_MARK;
use crate::options::InputOptions;
use crate::source::SkipKind;
use crate::table;

/// Bytes of a file that are examined, before and after decompression.
pub(crate) const HEAD_BYTES: usize = 8192;

/// The remedy for packed files. One that is converted to text would be one document, whatever it holds.
const UNPACK: &str = "unpack it first, or pass its content through standard input";

/// The format of a file, or the reason why it is not read.
pub(crate) type SniffedFormat = Result<ReadFormat, FormatRefusal>;

/// Reason why a file is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormatRefusal {
    pub(crate) kind: SkipKind,
    pub(crate) reason: String,
    pub(crate) remedy: &'static str,
}

impl FormatRefusal {
    /// The error of a source of this name that has to be read.
    pub(crate) fn of(self, name: impl Into<String>) -> InputError {
        InputError::Unsupported {
            name: name.into(),
            reason: self.reason,
            remedy: self.remedy.to_owned(),
            is_convertible: self.kind == SkipKind::Unsupported && self.remedy != UNPACK,
        }
    }
}

/// The converter of a file of this path.
pub(crate) fn converter<'c>(path: &Path, converters: &'c [Converter]) -> Option<&'c Converter> {
    converter_of(converters, inner_name(&lower_name(path)))
}

fn lower_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().to_lowercase()
}

/// Decides by name and content. `file` is the file as stored on disk, at its beginning.
///
/// # Errors
/// Fails if the file cannot be read.
pub(crate) fn sniff(
    path: &Path,
    file: &mut (impl Read + Seek),
    options: &InputOptions,
) -> io::Result<SniffedFormat> {
    let name = lower_name(path);
    let mut stored = vec![0; HEAD_BYTES];
    let (filled, end) = decode::fill(file, &mut stored);
    end?;
    stored.truncate(filled);
    let compression = compression(&name, &stored, options);
    let inner = inner_name(&name);
    // Before examining the content: a command for a suffix applies to all files with that suffix, whatever their content.
    if converter_of(&options.converters, inner).is_some() {
        let format = ReadFormat::new(Format::Converted, compression);
        return Ok(Ok(format));
    }
    let head = match compression {
        Compression::None => Some(stored),
        // Not from the stored head: it may be less than a block, which gives no text before its end.
        _ => decode::peek(file, compression, HEAD_BYTES)?,
    };
    Ok(sniff_head(inner, head.as_deref(), compression, options))
}

/// Decides by the name without the suffix of the compression, and by the decompressed head; `None` if none was found.
fn sniff_head(
    name: &str,
    head: Option<&[u8]>,
    compression: Compression,
    options: &InputOptions,
) -> SniffedFormat {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let named = format(extension, b"", options);
    if let Some(format) = options.format {
        let head = head.unwrap_or_default();
        refuse(head, format, named, true, compression)?;
        return Ok(ReadFormat::new(format, compression));
    }
    let head = head.ok_or_else(unknown_format)?;
    if let Some((what, remedy)) = unsupported(extension) {
        return Err(FormatRefusal {
            kind: SkipKind::Unsupported,
            reason: format!("{what} not supported yet"),
            remedy,
        });
    }
    let found = format(extension, head, options);
    refuse(head, found, named, false, compression)?;
    Ok(ReadFormat {
        is_json_text: found == Format::Text && json(head).is_some(),
        ..ReadFormat::new(found, compression)
    })
}

/// Returns the head in UTF-8 if it is in UTF-16: the format of a file does not depend on its character set.
fn in_utf8(head: &[u8]) -> Cow<'_, [u8]> {
    match is_utf16(head) {
        true => charset::decode(head, false)
            .text
            .into_owned()
            .into_bytes()
            .into(),
        false => head.into(),
    }
}

pub(crate) fn is_utf16(head: &[u8]) -> bool {
    head.starts_with(b"\xff\xfe")
        || head.starts_with(b"\xfe\xff")
        || charset::unmarked_utf16(head).is_some()
}

/// Fails with the reason why a file of this format is not read, if there is one. `named` is the format that its name says;
/// `is_chosen` is true if an option says it.
fn refuse(
    head: &[u8],
    format: Format,
    named: Format,
    is_chosen: bool,
    compression: Compression,
) -> Result<(), FormatRefusal> {
    if format == Format::Pdf && cfg!(not(feature = "pdf")) {
        return Err(FormatRefusal {
            kind: SkipKind::Unsupported,
            reason: "a PDF, which needs a build with the Cargo feature `pdf`".to_owned(),
            remedy: "install lookalike with the feature `full`",
        });
    }
    let refusal = binary(head, format, named, is_chosen);
    let refusal = refusal.or_else(|| packed_table(format, compression));
    refusal.map_or(Ok(()), Err)
}

/// Refuses tables that are compressed as a whole, because reading starts at their footer.
fn packed_table(format: Format, compression: Compression) -> Option<FormatRefusal> {
    let is_table = matches!(format, Format::Parquet | Format::Arrow);
    if is_table && cfg!(not(feature = "parquet")) {
        return Some(FormatRefusal {
            kind: SkipKind::Unsupported,
            reason: format!(
                "a {format} file, which needs a build with the Cargo feature `parquet`"
            ),
            remedy: "install lookalike with the feature `full`",
        });
    }
    // This counts as a loss, because the format itself is supported.
    (is_table && compression != Compression::None).then(|| FormatRefusal {
        kind: SkipKind::Unreadable,
        reason: format!("{format} that is compressed as a whole"),
        remedy: "decompress it first: it is compressed inside",
    })
}

/// Detects the compression by magic number. If a file is too short to have one, or it is damaged, its name decides.
fn compression(name: &str, head: &[u8], options: &InputOptions) -> Compression {
    match head {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
        // A skippable frame, with which seekable zstd files may begin.
        [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
        // Seven bytes, because `BZh9` alone may begin a text.
        [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', ..] => Compression::Bzip2,
        // An empty stream has no block.
        [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, ..] => Compression::Bzip2,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
        _ if head.len() < 7 && name.ends_with(".bz2") => Compression::Bzip2,
        _ if head.len() < 6 && name.ends_with(".xz") => Compression::Xz,
        _ => {
            let named = match name.rsplit_once('.') {
                Some((_, "gz" | "gzip")) => Compression::Gzip,
                Some((_, "zst" | "zstd")) => Compression::Zstd,
                _ => Compression::None,
            };
            let is_short = head.len() < if named == Compression::Gzip { 2 } else { 4 };
            match is_short || begins_damaged(inner_name(name), head, options) {
                true => named,
                false => Compression::None,
            }
        }
    }
}

/// Returns true for a file of records without any magic number at its beginning, which is no text either: most members of a compressed archive can be
/// read if only its first bytes are damaged. A file that begins with zeros alone holds nothing.
fn begins_damaged(name: &str, head: &[u8], options: &InputOptions) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let named = options.format.unwrap_or(format(extension, b"", options));
    let holds_records = matches!(
        named,
        Format::Warc | Format::Wat | Format::Arc | Format::Jsonl | Format::Csv | Format::Tsv
    );
    // Records of a plain archive may contain NUL, but its first bytes do not.
    holds_records
        && memchr::memchr(0, head).is_some()
        && head.iter().any(|byte| *byte != 0)
        && !is_utf16(head)
        && format("", head, options) == Format::Text
}

/// Returns the name without the suffix of the compression.
fn inner_name(name: &str) -> &str {
    [".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name)
}

fn format(extension: &str, stored: &[u8], options: &InputOptions) -> Format {
    // Only formats of texts may be in UTF-16: a text in it that begins with a magic number is a text.
    let head = &*in_utf8(stored);
    match extension {
        _ if stored.starts_with(b"WARC/") => Format::Warc,
        // The first record of an ARC file describes the file.
        _ if stored.starts_with(b"filedesc:") => Format::Arc,
        // WAT must be requested explicitly: in a WARC its records are counted as metadata, and both look alike.
        "warc" | "wet" | "wat" => Format::Warc,
        "arc" => Format::Arc,
        "csv" | "psv" => Format::Csv,
        "tsv" | "tab" => Format::Tsv,
        _ if stored.starts_with(b"PAR1") => Format::Parquet,
        _ if stored.starts_with(b"ARROW1") || is_arrow_stream(stored) => Format::Arrow,
        "parquet" => Format::Parquet,
        "arrow" | "arrows" | "feather" | "ipc" => Format::Arrow,
        // After the magic numbers: a Parquet file named .jsonl is Parquet. Before the content: an invalid first line does not turn the rest into
        // plain text.
        "jsonl" | "ndjson" | "jl" | "jsonlines" | "ldjson" => Format::Jsonl,
        // Archives do the same: servers declare a PDF as a page.
        _ if stored.starts_with(b"%PDF-") => Format::Pdf,
        "html" | "htm" | "xhtml" => Format::Html,
        "pdf" => Format::Pdf,
        "json" | "" => by_content(head, options),
        // Numbered parts have names like `a.jsonl.00` or `a.jsonl-00000-of-00004`.
        _ => match json(head) {
            Some(format) if has_text_field(head, options) => format,
            _ if is_html(head) => Format::Html,
            // In prose, the first lines may have commas and the word "text" by chance, or show a table on purpose.
            _ if !is_prose(extension) && table::has_even_rows(head, options) => Format::Csv,
            _ => Format::Text,
        },
    }
}

/// Returns true for an ending that promises a text.
fn is_prose(extension: &str) -> bool {
    matches!(extension, "txt" | "text" | "md" | "log")
}

/// Decides by content if the name does not tell: for standard input, files without extension, `.json`.
fn by_content(head: &[u8], options: &InputOptions) -> Format {
    match json(head) {
        // An object spread over several lines is a record if it has a text. In a repository of source code, it is a file like any other.
        Some(Format::Json) if !is_array(head) && !has_text_field(head, options) => Format::Text,
        Some(format) => format,
        None if begins_page(head) => Format::Html,
        None if table::is_table(head, options) => Format::Csv,
        None => Format::Text,
    }
}

/// Returns the format of JSON objects.
fn json(head: &[u8]) -> Option<Format> {
    // Check for an array first: its lines may be objects, too.
    if is_array(head) {
        Some(Format::Json)
    } else if is_jsonl(head) {
        Some(Format::Jsonl)
    } else {
        begins_object(without_mark(head).trim_ascii_start()).then_some(Format::Json)
    }
}

fn without_mark(head: &[u8]) -> &[u8] {
    head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head)
}

/// Returns true for the first bytes of a JSON object.
fn begins_object(bytes: &[u8]) -> bool {
    let rest = bytes.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    matches!(rest.and_then(<[u8]>::first), Some(b'"' | b'}'))
}

/// Returns true if an object at the start of a line, of the head or of its array has the text field, as far as visible.
fn has_text_field(head: &[u8], options: &InputOptions) -> bool {
    let head = without_mark(head).trim_ascii_start();
    let first = head.strip_prefix(b"[").unwrap_or(head).trim_ascii_start();
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    iter::once(first)
        .chain(lines.map(<[u8]>::trim_ascii_start))
        .filter(|bytes| begins_object(bytes))
        .any(|bytes| {
            let mut found = false;
            let wanted = TextFieldSeed {
                options,
                found: &mut found,
            };
            // Fails at the end of the head, if not before.
            let _ = wanted.deserialize(&mut serde_json::Deserializer::from_slice(bytes));
            found
        })
}

/// Walks through an object and notes whether it has the text field.
struct TextFieldSeed<'a> {
    options: &'a InputOptions,
    found: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for TextFieldSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TextFieldSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            *self.found |= match &self.options.text_field {
                Some(fields) => fields.begin_with(&name),
                None => name == "text" || name == "html",
            };
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// Returns true for the first message of an Arrow IPC stream, a schema: a mark that is not UTF-8, the length of the message, and the offset of its
/// table.
fn is_arrow_stream(head: &[u8]) -> bool {
    let Some(rest) = head.strip_prefix(b"\xff\xff\xff\xff") else {
        return false;
    };
    let number = |at: usize| {
        let bytes = rest.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    matches!((number(0), number(4)), (Some(length), Some(table)) if table >= 4 && table < length && length % 8 == 0)
}

/// Returns true for a JSON array of objects, or an empty one.
fn is_array(head: &[u8]) -> bool {
    let Some(rest) = without_mark(head).trim_ascii_start().strip_prefix(b"[") else {
        return false;
    };
    let rest = rest.trim_ascii_start();
    // A list of objects. Lists of numbers or strings are not records, and `[{x` is some other language.
    begins_object(rest) || matches!(rest.trim_ascii_end(), b"{" | b"]")
}

/// Returns true for lines of JSON objects, as far as visible. The first may be damaged if most of the others are complete: a stream that begins
/// within a record is not plain text.
fn is_jsonl(head: &[u8]) -> bool {
    let lines = without_mark(head)
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty()).map(JsonLine::of);
    let lines: Vec<JsonLine> = lines.collect();
    let Some((first, others)) = lines.split_first() else {
        return false;
    };
    match (first, others) {
        (JsonLine::Object, _) | (JsonLine::Unclosed, []) => true,
        (_, others) => {
            // The last line may continue beyond the head. Any other line that does not end is the start of an object spread over several lines.
            let is_object = |at: usize| match others[at] {
                JsonLine::Object => true,
                JsonLine::Unclosed => at + 1 == others.len(),
                JsonLine::Other => false,
            };
            let objects = (0..others.len()).filter(|at| is_object(*at)).count();
            2 * objects > others.len()
        }
    }
}

/// The content of a line.
enum JsonLine {
    /// A complete JSON object.
    Object,
    /// A JSON object that does not end in the line.
    Unclosed,
    /// Something else.
    Other,
}

impl JsonLine {
    fn of(line: &[u8]) -> Self {
        if !begins_object(line) {
            return Self::Other;
        }
        // `IgnoredAny` accepts invalid UTF-8 in strings.
        match serde_json::from_slice::<IgnoredAny>(line) {
            Ok(_) => Self::Object,
            Err(error) if error.is_eof() => Self::Unclosed,
            Err(_) => Self::Other,
        }
    }
}

/// Returns true if a page begins here, whatever the name or the declared type. The other tags with which pages begin also begin Markdown and the parts
/// of programs.
pub(crate) fn is_html(head: &[u8]) -> bool {
    begins_with(
        after_prologue(head),
        &[b"<!doctype html", b"<html", b"<head"],
    )
}

/// Returns true for the start of a tag, a comment or a declaration. In UTF-16, a NUL is behind the bracket or before it.
fn begins_markup(head: &[u8]) -> bool {
    let head = without_mark(head).trim_ascii_start();
    matches!(
        head,
        [b'<', b'!' | b'?' | b'/' | b'a'..=b'z' | b'A'..=b'Z', ..]
    )
}

/// Returns true for the signatures of images, audio, video, fonts and archives, with which no page begins (WHATWG MIME Sniffing, section 6).
pub(crate) fn is_media(head: &[u8]) -> bool {
    match head {
        [b'R', b'I', b'F', b'F', _, _, _, _, kind @ ..] => {
            kind.starts_with(b"WEBPVP") || kind.starts_with(b"AVI ") || kind.starts_with(b"WAVE")
        }
        // The first box of MP4 and its relatives: its length, and its type.
        [0, 0, _, _, b'f', b't', b'y', b'p', ..] => true,
        _ => MEDIA.iter().any(|signature| head.starts_with(signature)),
    }
}

/// Signatures at the start of media files. Those of two or three letters are left out: a text may begin with them.
const MEDIA: [&[u8]; 16] = [
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"\0\0\x01\0",
    b"\0\0\x02\0",
    b"OggS\0",
    b"MThd\0\0\0\x06",
    b"\x1a\x45\xdf\xa3",
    b"\0\x01\0\0",
    b"OTTO\0",
    b"wOFF\0",
    b"wOF2\0",
    b"\x1f\x8b\x08",
    b"PK\x03\x04",
    b"Rar!\x1a\x07",
];

/// Refuses a file with a NUL, which is not text unless it is in UTF-16. Tables that are named or chosen as such may contain some,
/// and pages that begin with a tag.
fn binary(head: &[u8], format: Format, named: Format, is_chosen: bool) -> Option<FormatRefusal> {
    let is_utf16 = is_utf16(head);
    // The byte order marks of UTF-32; the first begins like that of UTF-16.
    if head.starts_with(b"\xff\xfe\0\0") || head.starts_with(b"\0\0\xfe\xff") {
        return Some(FormatRefusal {
            kind: SkipKind::Unreadable,
            reason: "text in UTF-32 is not supported".to_owned(),
            remedy: "convert the file to UTF-8 first",
        });
    }
    if is_utf16
        && matches!(
            format,
            Format::Jsonl | Format::Json | Format::Csv | Format::Tsv
        )
    {
        return Some(FormatRefusal {
            // Its name indicates records, and all of them are missing.
            kind: SkipKind::Unreadable,
            reason: "records in UTF-16 are not supported".to_owned(),
            remedy: "convert the file to UTF-8 first",
        });
    }
    let takes_any = !matches!(
        format,
        Format::Text | Format::Html | Format::Csv | Format::Tsv
    );
    let is_table = |format| matches!(format, Format::Csv | Format::Tsv);
    let may_contain = (is_chosen || format == named) && !is_media(head);
    // A NUL among the names of the columns is not one that an export left in a value.
    let examined = match memchr::memchr(b'\n', head) {
        _ if may_contain && format == Format::Html && begins_markup(head) => b"",
        Some(end) if may_contain && is_table(format) => &head[..end],
        _ => head,
    };
    // The other formats have their own magic numbers, or their records fail with a better reason.
    if is_utf16 || takes_any || memchr::memchr(0, examined).is_none() {
        return None;
    }
    // Its name indicates records, and all of them are missing.
    let (kind, remedy) = match may_contain && is_table(named) {
        true => (SkipKind::Unreadable, "repair it, or leave it out"),
        false => (
            SkipKind::Binary,
            "name text, HTML or JSON Lines files, or leave it out",
        ),
    };
    Some(FormatRefusal {
        kind,
        reason: "a binary file, not text".to_owned(),
        remedy,
    })
}

/// Refuses a compressed file whose first block has no end within the bytes examined. Taking it as a text would make one document of all its records.
fn unknown_format() -> FormatRefusal {
    FormatRefusal {
        kind: SkipKind::Unreadable,
        reason: "format not recognised: its first MiB of compressed data contains no text"
            .to_owned(),
        remedy: "name its format, or decompress it first",
    }
}

/// Describes formats that are recognized by their extension but not supported, with a remedy.
fn unsupported(extension: &str) -> Option<(&'static str, &'static str)> {
    const CONVERT: &str = "convert it to JSON Lines";
    Some(match extension {
        "lz4" | "br" | "lzma" => ("this compression is", UNPACK),
        "zip" | "wacz" | "tar" | "tgz" | "tbz2" | "txz" | "7z" | "rar" | "jar" => {
            ("archives of files are", UNPACK)
        }
        "orc" | "avro" => ("this table format is", CONVERT),
        "doc" | "docx" | "odt" | "rtf" | "epub" | "ppt" | "pptx" | "xls" | "xlsx" => {
            ("office documents are", CONVERT)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use super::*;
    use crate::format::Format::{Csv, Html, Json, Jsonl, Text};

    fn sniff_bytes(name: &str, bytes: &[u8], options: &InputOptions) -> SniffedFormat {
        sniff(Path::new(name), &mut Cursor::new(bytes), options).unwrap()
    }

    fn read(name: &str, head: &[u8]) -> SniffedFormat {
        sniff_bytes(name, head, &InputOptions::default())
    }

    fn format_of(sniffed: SniffedFormat) -> (Format, Compression) {
        let Ok(format) = sniffed else {
            panic!("{sniffed:?}");
        };
        (format.format, format.compression)
    }

    #[test]
    fn json_without_a_text_that_is_read_as_one_text_is_known_as_such() {
        let object = b"{\n  \"body\": \"a\"\n}\n";
        let cases: [(&str, &[u8], bool); 6] = [
            ("a.json", object, true),
            ("a.data", b"{\"body\": 1}\n{\"body\": 2}\n", true),
            ("a.data", b"[{\"body\": 1}]", true),
            ("a.txt", b"{x} is a set\n", false),
            ("a.json", b"{\n\"text\": \"a\"}", false),
            ("a.json.png", b"text", false),
        ];
        for (name, head, is_json_text) in cases {
            let Ok(format) = read(name, head) else {
                panic!("{name} is refused");
            };
            assert_eq!(format.is_json_text, is_json_text, "{name}: {head:?}");
        }
    }

    #[test]
    fn name_and_content_decide() {
        let object = b"{\"text\": \"a\"}\n{\"text\": \"b\"}\n";
        let pretty = b"{\n  \"text\": \"a\"\n}\n";
        let cut = b"{\"text\": \"a\n{\"text\": \"b\"}\n{\"text\": \"c";
        let spread = b"{\n  \"id\": 1,\n  \"text\": \"a";
        let cases: [(&str, &[u8], Format); 49] = [
            ("a.jsonl", b"", Jsonl),
            ("a.NDJSON", b"not json", Jsonl),
            ("a.json", object, Jsonl),
            ("a.json", pretty, Json),
            ("a.json", spread, Json),
            ("stdin", spread, Json),
            ("a.json", b"{\n  \"name\": \"a package\"\n}\n", Text),
            ("a.json", b"{\n  \"name\": {\n    \"text\": 1}\n}\n", Text),
            ("a.jsonl.00", object, Jsonl),
            ("a.jsonl-00000-of-00004", object, Jsonl),
            ("a.jsonl.01", &object[3..], Jsonl),
            ("a.json.part", spread, Json),
            ("a.bak", b"[{\"text\": 1},\n{\"text\": 2}\n]", Json),
            ("a.map", b"{\"version\": 3}\n", Text),
            ("a.log", b"{\"level\": 3}\n{\"level\": 4}\n", Text),
            ("stdin", object, Jsonl),
            ("stdin", cut, Jsonl),
            ("stdin", &cut[..11], Jsonl),
            ("stdin", b"null\n{\"text\": 1}\n", Jsonl),
            ("stdin", b"end of it\"}\n{\"text\": \"long", Jsonl),
            ("a.json", b"{\"text\":\n1}\n", Json),
            ("notes", b"So it is:\n{\"text\": 1}\nThe end.\n", Text),
            ("notes", b"{\"a\" b\n", Text),
            ("a.json", b"[{\"text\": 1},\n{\"text\": 2}\n]", Json),
            ("a.json", b" [\n {\"text\":1}", Json),
            ("stdin", b"[]\n", Json),
            ("a.json", b"[1, 2]", Text),
            ("stdin", b"[x] a task\n", Text),
            ("a.jsonl", b"[{}]", Jsonl),
            ("stdin", b"id;text\n1;a, b\n2;c\n", Csv),
            ("a.dat", b"id;text\n1;a, b\n2;c\n", Csv),
            ("a.csv-00000", b"id,text\n1,a\n2,b\n", Csv),
            ("a.txt", b"id,text\n1,a\n2,b\n", Text),
            ("a.md", b"id | text\n---|---\n1 | a\n", Text),
            ("a.dat", b"id,body\n1,a\n2,b\n", Text),
            ("stdin", b"Dear text,\nhello, and\n", Text),
            ("notes", b"red, green\nblue, white\n", Text),
            ("stdin", b"\xef\xbb\xbf <!DOCTYPE html>", Html),
            ("README", b"hello", Text),
            ("stdin", b"<title>My page</title><p>words", Html),
            ("page", b"<!-- saved -->\n<TABLE border=1>", Html),
            ("stdin", b"<abbr>", Text),
            ("README.md", b"<p align=center>A project", Text),
            ("app.vue", b"<script>let a</script>", Text),
            ("main.rs", b"fn main() {}", Text),
            ("page.HTM", b"", Html),
            ("page.php", b"<html>", Html),
            ("a.txt", object, Jsonl),
            ("a.txt", b"\xff\xfea\0b\0", Text),
        ];
        for (name, head, format) in cases {
            assert_eq!(
                format_of(read(name, head)),
                (format, Compression::None),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_not_read_says_so() {
        for (name, head, kind) in [
            ("a.parquet", &b"\x1f\x8b\x08"[..], SkipKind::Unreadable),
            ("a.tar.gz", b"", SkipKind::Unsupported),
            ("a.png", b"\x89PNG\r\n\x1a\n\0\0", SkipKind::Binary),
            ("a.wacz", b"PK\x03\x04\0", SkipKind::Unsupported),
            ("a.jsonl", b"\xff\xfe{\0", SkipKind::Unreadable),
        ] {
            let Err(refusal) = read(name, head) else {
                panic!("{name} was taken");
            };
            assert_eq!(refusal.kind, kind, "{name}");
        }
    }

    #[test]
    fn binary_files_named_or_chosen_as_pages_were_read_and_those_chosen_as_tables_were_lost() {
        let kind = |name: &str, head: &[u8], format| {
            let options = InputOptions {
                format,
                ..InputOptions::default()
            };
            let refusal = sniff_bytes(name, head, &options).err();
            refusal.map(|refusal| refusal.kind)
        };
        let binary: [&[u8]; 4] = [b"SQLite format 3\0", b"BM\x36\0", b"<\0p\0", b"\x8b\0<p>"];
        for head in binary {
            assert_eq!(kind("a.html", head, None), Some(SkipKind::Binary));
            for format in [Html, Csv] {
                let kind = kind("a.data", head, Some(format));
                assert_eq!(kind, Some(SkipKind::Binary), "{format}");
            }
        }
        let named = kind("a.csv", binary[0], Some(Csv));
        assert_eq!(named, Some(SkipKind::Unreadable));
        assert_eq!(kind("a.data", b"\xef\xbb\xbf\n<p>\0", Some(Html)), None);
        let pdf = read("a.html", b"%PDF-1.7\n\0");
        let is_pdf = pdf.is_ok_and(|found| found.format == Format::Pdf);
        assert_eq!(is_pdf, cfg!(feature = "pdf"));
    }

    #[test]
    fn a_text_in_utf16_that_begins_like_another_format_stays_a_text() {
        for text in ["WARC/1.0 is a format", "PAR1 begins a table", "%PDF-1.7"] {
            let marked = format!("\u{feff}{text}\n");
            let head: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(format_of(read("a.txt", &head)).0, Text, "{text}");
        }
    }

    #[test]
    fn records_in_utf16_were_one_text_if_the_content_decided() {
        let lines = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n";
        for text in [lines, "[{\"text\": \"a\"}]", "id,text\n1,a\n2,b\n"] {
            let head: Vec<u8> = format!("\u{feff}{text}")
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect();
            let Err(refusal) = read("a.json", &head) else {
                panic!("{text} was taken");
            };
            assert_eq!(refusal.kind, SkipKind::Unreadable, "{text}");
        }
    }

    #[test]
    fn pages_behind_a_comment_or_the_declaration_of_xml_were_text_with_tags() {
        let pages: [&[u8]; 3] = [
            b"<?xml version=\"1.0\"?>\n<!DOCTYPE html PUBLIC \"x\"><html>",
            b"<!-- saved from url=(0014)http://a.example -->\r\n<html>",
            b"\xef\xbb\xbf<!-- a --> <!-- b --><?xml version=\"1.0\"?><head>",
        ];
        for page in pages {
            assert_eq!(format_of(read("page.php", page)).0, Html);
        }
        let others: [&[u8]; 3] = [
            b"<!-- a comment without an end <html>",
            b"<?xml version=\"1.0\"?><rss><item/></rss>",
            b"<!-- a comment -->\n# A heading\n",
        ];
        for text in others {
            assert_eq!(format_of(read("page.php", text)).0, Text);
        }
    }

    #[test]
    fn a_format_by_order_wins_over_the_name() {
        let options = InputOptions {
            format: Some(Text),
            ..InputOptions::default()
        };
        let verdict = sniff_bytes("a.csv", b"x,y\n", &options);
        assert_eq!(format_of(verdict), (Text, Compression::None));
    }

    #[test]
    fn compression_is_known_by_its_magic_number() {
        let plain = read("a.txt.gz", b"plain after all");
        assert_eq!(format_of(plain), (Text, Compression::None));
        assert_eq!(
            format_of(read("a.jsonl.gz", b"")),
            (Jsonl, Compression::Gzip)
        );
        let zstd = zstd::encode_all(&b"<html><p>x"[..], 1).unwrap();
        assert_eq!(format_of(read("page", &zstd)), (Html, Compression::Zstd));
    }

    /// Returns records that hardly compress: a block of them takes far more than [`HEAD_BYTES`].
    fn records(bytes: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut word = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            format!("{:08x}", state >> 32)
        };
        let mut records = Vec::new();
        while records.len() < bytes {
            let words: Vec<String> = (0..50).map(|_| word()).collect();
            writeln!(records, "{{\"text\": \"{}\"}}", words.join(" ")).unwrap();
        }
        records
    }

    fn bzip2_of(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn records_in_blocks_longer_than_the_stored_head_were_taken_as_one_text() {
        let records = records(2 << 20);
        let zstd = zstd::encode_all(&records[..], 3).unwrap();
        // A seekable file, or one with an index before the text.
        let mut framed = b"\x5e\x2a\x4d\x18\0\0\x20\0".to_vec();
        framed.resize(8 + (2 << 20), 7);
        framed.extend_from_slice(&zstd);
        let bzip2 = bzip2_of(&records);
        for (packed, compression) in [
            (&zstd, Compression::Zstd),
            (&framed, Compression::Zstd),
            (&bzip2, Compression::Bzip2),
        ] {
            for name in ["", "a.json.zst", "a.part"] {
                let format = format_of(read(name, packed));
                assert_eq!(format, (Jsonl, compression), "{name}");
            }
        }
    }

    #[test]
    fn compressed_binary_files_and_tables_were_taken_as_texts() {
        let mut table = b"id,text\n".to_vec();
        let mut binary = vec![0; 9];
        for line in records(1 << 20).split(|byte| *byte == b'\n') {
            table.extend_from_slice(b"1,");
            table.extend_from_slice(&line[line.len().min(10)..line.len().max(2) - 2]);
            table.push(b'\n');
            binary.extend_from_slice(line);
        }
        for pack in [bzip2_of, |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap()] {
            let (format, _) = format_of(read("", &pack(&table)));
            assert_eq!(format, Csv);
            let Err(refusal) = read("", &pack(&binary)) else {
                panic!("a binary file was taken");
            };
            assert_eq!(refusal.kind, SkipKind::Binary);
        }
    }

    #[test]
    fn compressed_data_without_a_text_in_sight_is_no_text() {
        let empty = zstd::encode_all(&b""[..], 1).unwrap();
        let packed = empty.repeat((1 << 20) / empty.len() + 1);
        for name in ["", "a.json.zst", "a.txt.zst"] {
            let Err(refusal) = read(name, &packed) else {
                panic!("{name} was taken");
            };
            assert_eq!(refusal.kind, SkipKind::Unreadable, "{name}");
        }
        let options = InputOptions {
            format: Some(Jsonl),
            ..InputOptions::default()
        };
        let (format, _) = format_of(sniff_bytes("", &packed, &options));
        assert_eq!(format, Jsonl);
        // A file that is empty inside is an empty text.
        assert_eq!(format_of(read("a", &empty)), (Text, Compression::Zstd));
    }
}
