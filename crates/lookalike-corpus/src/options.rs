//! Options of reading: format, fields, limits.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use lookalike::{Extraction, FieldWeights};

use crate::boilerplate::BoilerplateLines;
use crate::convert::Converter;
use crate::error::OptionError;
use crate::field_path::{FieldPath, TextFields};
use crate::format::Format;
use crate::glob::ExcludePattern;
use crate::order_key::OrderField;
use crate::remote::StoreSettings;

lookalike::settings! {
    /// Options of reading. Discovery, reading and parsing must get the same ones.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct InputOptions {
        /// Format of every source, overriding what its name and content suggest.
        format: Option<Format>,
        /// Delimiter of [`Format::Csv`] and [`Format::Tsv`], for which [`InputOptions::is_delimiter`] must be true. By default tabs for TSV, and for CSV the delimiter that the first rows suggest.
        delimiter: Option<u8>,
        /// True if such tables have no header: columns are then named by their numbers, from 1.
        no_header: bool = false,
        /// True if quotes in such tables are ordinary characters, so that every line is a row.
        no_quotes: bool = false,
        /// Field of the id of a JSONL record. By default `id`, otherwise `url`, otherwise an id is generated.
        id_field: Option<FieldPath>,
        /// Field of the text of a JSONL record, or several. By default `text`, otherwise `html`. A single field whose last component is `html` is
        /// converted to text as `html` specifies.
        text_field: Option<TextFields>,
        /// Field of the value by which survivors are chosen, if the job uses one. For a job with such a rule, the field must be that of the rule.
        order_field: Option<OrderField>,
        /// Source of a record's category, if the job uses one.
        category: Option<Category>,
        /// Other fields of a record to read: `anchors`, `in_links`, `out_links`. They must be those of the job's scheme.
        fields: FieldWeights,
        /// Extraction of text from HTML. It must be that of the job's scheme.
        html: Extraction,
        /// Commands that convert files with certain name suffixes to text, whatever their content.
        converters: Vec<Converter>,
        /// Maximum time that such a command may take for one file.
        convert_limit: Duration = Duration::from_secs(60),
        /// Maximum time for extracting the text of a PDF; `None` for a limit that grows with the file.
        pdf_limit: Option<Duration>,
        /// Files and folders to leave out, however they are found or named.
        exclude: Vec<ExcludePattern>,
        /// True if links in a walked directory that lead out of it are followed.
        follow_links: bool = false,
        /// True if named files that are missing or cannot be read as documents are skipped, like files in a folder; otherwise they are errors.
        skip_unreadable: bool = false,
        /// Settings of object stores, for arguments such as `s3://bucket/a.jsonl`.
        store: StoreSettings,
        /// Lines to remove from texts.
        boilerplate: Option<Arc<BoilerplateLines>>,
        /// Maximum size of a document in bytes after decompression: a JSONL line without its terminator, or a whole file. Longer ones become records
        /// without text, see [`crate::TextState::TooLong`].
        max_document_bytes: u64 = 64 << 20,
        /// True if longer files are read to their end, so that they also get a [`crate::Record::long_hash`].
        read_long: bool = false,
        /// Maximum ratio of decompressed to compressed bytes of a whole-file document, applied above 16 MiB of output. Beyond it the document is a
        /// [`crate::BadRecordKind::Bomb`].
        max_decoded_ratio: u64 = 1000,
        /// Maximum size of a batch of an Arrow file in bytes, unpacked: a batch is read as a whole.
        max_batch_bytes: u64 = 4 << 30,
        /// Target size of a [`crate::RecordChunk`], in bytes; at most 1 GiB.
        chunk_bytes: usize = 1 << 20,
    }
}

impl InputOptions {
    /// Returns true if a byte can separate the values of a table: letters and digits are values, a quote or line end would break the syntax of the
    /// reader, and what is not ASCII is part of a character.
    #[must_use]
    pub fn is_delimiter(byte: u8) -> bool {
        byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\r\n".contains(&byte)
    }

    /// Returns the options that affect how inputs are read, in one line: the name on the command line of each that is not the default. A resumed job
    /// must have the same line.
    #[must_use]
    pub fn canonical(&self) -> String {
        // Destructured without `..`, so that a new option does not compile until it is decided whether it belongs here.
        let InputOptions {
            format,
            delimiter,
            no_header,
            no_quotes,
            id_field,
            text_field,
            order_field,
            category,
            fields,
            html,
            converters,
            convert_limit,
            pdf_limit,
            // The list of inputs shows which files were found.
            exclude: _,
            follow_links: _,
            skip_unreadable: _,
            // Jobs that compare always do this.
            read_long: _,
            // The origin of the bytes and the number of bytes held at once do not affect the result.
            store: _,
            boilerplate,
            max_document_bytes,
            max_decoded_ratio,
            max_batch_bytes,
            chunk_bytes: _,
        } = self;
        let named = |name: &str, value: &dyn fmt::Display| format!("{name}={value}");
        let mut all = Vec::new();
        all.extend(format.map(|format| named("format", &format)));
        all.extend(delimiter.map(|byte| named("delimiter", &byte)));
        if *no_header {
            all.push("no-header".to_owned());
        }
        if *no_quotes {
            all.push("no-quotes".to_owned());
        }
        all.extend(id_field.as_ref().map(|path| named("id", path)));
        all.extend(text_field.as_ref().map(|path| named("text", path)));
        all.extend(order_field.as_ref().map(|field| named("rank", field)));
        all.extend(category.as_ref().map(|what| named("category", what)));
        if !fields.is_none() {
            all.push(named("fields", fields));
        }
        all.push(named("html", html));
        all.extend(converters.iter().map(|command| named("convert", command)));
        // Without a converter, the limit has no effect.
        if !converters.is_empty() {
            all.push(format!("convert-limit={}s", convert_limit.as_secs_f64()));
        }
        if let Some(limit) = pdf_limit {
            all.push(format!("pdf-limit={}s", limit.as_secs_f64()));
        }
        let lines = boilerplate.as_ref();
        all.extend(lines.map(|lines| named("boilerplate", &lines.scheme())));
        all.push(named("max-document", max_document_bytes));
        all.push(named("max-ratio", max_decoded_ratio));
        all.push(named("max-batch", max_batch_bytes));
        all.join(" ")
    }
}

/// The source of a record's category: the server of its URL, or a field such as a language.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Category {
    /// The host of the URL, from the field `url`, otherwise from the id. Written `site`.
    Site,
    /// The value of a field: a string, number, true or false. A field named `site` is written `\\site`.
    Field(FieldPath),
}

impl Category {
    /// Returns the field to read.
    pub(crate) fn path(&self) -> FieldPath {
        match self {
            Category::Site => FieldPath::name("url"),
            Category::Field(path) => path.clone(),
        }
    }
}

impl FromStr for Category {
    type Err = OptionError;

    fn from_str(s: &str) -> Result<Self, OptionError> {
        match s {
            "site" => Ok(Category::Site),
            field => field.parse().map(Category::Field),
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Category::Site => f.write_str("site"),
            Category::Field(path) if path.to_string() == "site" => f.write_str("\\site"),
            Category::Field(path) => path.fmt(f),
        }
    }
}
