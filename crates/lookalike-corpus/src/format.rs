//! Formats and compressions of inputs.

use std::str::FromStr;

use crate::error::OptionError;

lookalike::words! {
    /// The format of a source, once decompressed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Format {
        /// One JSON object per line, one record each.
        Jsonl = "jsonl",
        /// JSON objects in an array or one after another, possibly spread over several lines, one record each.
        Json = "json",
        /// One document per file: plain text or source code.
        Text = "text",
        /// One document per file: HTML, from which the text is extracted.
        Html = "html",
        /// One document per file: PDF.
        Pdf = "pdf",
        /// One document per file, converted to text by a command of the user: see [`crate::InputOptions::converters`].
        Converted = "converted",
        /// WARC 0.17 to 1.1, including WET: pages of a web archive, one record each.
        Warc = "warc",
        /// WAT: WARC whose metadata records are the documents: title, description and links of a page. Never guessed: with [`Format::Warc`] these records
        /// are only counted.
        Wat = "wat",
        /// ARC 1 and 2, the older web archive.
        Arc = "arc",
        /// Values separated by commas, semicolons, bars or tabs, with a header line, one record per row.
        Csv = "csv",
        /// Like CSV, with tabs.
        Tsv = "tsv",
        /// Apache Parquet, one record per row.
        Parquet = "parquet",
        /// Arrow IPC, as a file (Feather 2) or a stream, one record per row.
        Arrow = "arrow",
    }
}

impl FromStr for Format {
    type Err = OptionError;

    fn from_str(s: &str) -> Result<Self, OptionError> {
        let name = match s {
            "ndjson" => "jsonl",
            "wet" => "warc",
            name => name,
        };
        // Files are converted by their endings, so no user names that format.
        let mut named = Self::ALL
            .into_iter()
            .filter(|format| *format != Format::Converted);
        named.find(|format| format.name() == name).ok_or_else(|| {
            OptionError(format!(
                "unknown format `{s}`: use jsonl, json, text, html, pdf, warc, wat, arc, csv, tsv, parquet or arrow"
            ))
        })
    }
}

/// The compression of a source. Several members or frames in a row are one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// RFC 1952, any number of members.
    Gzip,
    /// RFC 8878, any number of frames, windows up to 128 MiB.
    Zstd,
    /// Any number of streams.
    Bzip2,
    /// Any number of streams, with dictionaries up to 64 MiB and somewhat more.
    Xz,
}

impl Compression {
    /// Returns the file name suffix of this compression: ``, `.gz`, `.zst`, `.bz2` or `.xz`.
    pub fn suffix(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Gzip => ".gz",
            Compression::Zstd => ".zst",
            Compression::Bzip2 => ".bz2",
            Compression::Xz => ".xz",
        }
    }
}

/// The format in which a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadFormat {
    pub(crate) format: Format,
    pub(crate) compression: Compression,
    /// True if a file that begins like JSON, but has no field with a text, is read as one text.
    pub(crate) is_json_text: bool,
}

impl ReadFormat {
    pub(crate) fn new(format: Format, compression: Compression) -> Self {
        Self {
            format,
            compression,
            is_json_text: false,
        }
    }
}
