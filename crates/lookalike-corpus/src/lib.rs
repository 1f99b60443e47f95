//! Reading of documents, record by record, and writing of results.
//!
//! The steps from input to output:
//!
//! 1. [`Inputs::discover`] turns arguments (files, directories, globs, `-`) into an ordered list of [`Source`]s and a complete list of
//!    [`SkippedPart`]s;
//! 2. [`Inputs::chunks`] reads them in that order, decompressed, in [`RecordChunk`]s of about a mebibyte (one thread);
//! 3. a [`Parser`] (one per worker) turns a chunk into [`Record`]s: id, text, order key, raw bytes;
//! 4. [`raw_records`] reads the same records again for output, with the same numbers but without parsing them; [`exact_pieces`] also visits the bytes
//!    between them;
//! 5. [`AtomicFile`] and [`FileTree`] write results so that an incomplete file never has its final name.
//!
//! [`HtmlText`] converts HTML to text, and [`charset`] detects character sets.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use lookalike_corpus::{InputOptions, Inputs, Parser};
//!
//! let dir = tempfile::tempdir()?;
//! let file = dir.path().join("two.jsonl");
//! std::fs::write(&file, "{\"id\":1,\"text\":\"one\"}\n{\"id\":2,\"text\":\"two\"}\n")?;
//!
//! let options = InputOptions::default();
//! let inputs = Inputs::discover(&[file.into()], &options, dir.path())?;
//! let mut parser = Parser::new(&inputs, &options);
//! let mut seen = Vec::new();
//! for chunk in inputs.chunks(&options) {
//!     parser.parse(&chunk?, &mut |record| {
//!         if let Ok(record) = record {
//!             seen.push(format!("{}={}", record.id, record.text));
//!         }
//!     });
//! }
//! assert_eq!(seen, ["1=one", "2=two"]);
//! # Ok(())
//! # }
//! ```

mod address;
mod archive;
mod ascii_host;
mod atomic;
mod block;
mod boilerplate;
mod buffer_pool;
pub mod charset;
mod chunk;
mod contents;
mod convert;
mod decode;
mod detached;
mod discover;
mod error;
mod exact;
mod field_path;
mod field_value_error;
mod fields;
mod format;
mod frames;
mod given;
mod glob;
mod guard;
mod homoglyphs;
mod html;
mod id_text;
mod input_window;
mod json;
mod limits;
mod lines;
mod long_hash;
mod member;
mod mojibake;
mod name;
mod named_files;
mod options;
mod order_key;
mod parser;
#[cfg(feature = "pdf")]
mod pdf;
mod piece;
mod raw;
mod record;
mod regular;
mod remote;
mod results;
mod row;
mod site;
mod sniff;
mod source;
mod surrogate;
mod table;
mod text_hash;
mod tree;
mod write_behind;

pub use address::{linked_address, page_address};
pub use atomic::{
    AtomicFile, CompressedStream, OutputFormat, parent_directory, remove_leftovers,
    remove_leftovers_of, sync_directory, sync_file_system, without_temporary_path,
};
#[doc(hidden)]
pub use atomic::{stop_new_files, uninterrupted};
pub use boilerplate::{BoilerplateFileError, BoilerplateLines, line_keys, site_key};
#[doc(hidden)]
pub use buffer_pool::{BufferPool, PooledBytes};
pub use chunk::ChunkReader;
pub use convert::Converter;
#[doc(hidden)]
pub use detached::spawn_detached;
pub use error::{InputError, OptionError, ReadError};
pub use exact::{ExactPiece, exact_pieces};
#[doc(hidden)]
pub use field_path::split_at_commas;
pub use field_path::{FieldPath, TextFieldSet, TextFields};
pub use field_value_error::FieldValueError;
pub use fields::parse_document_fields;
pub use format::{Compression, Format};
pub use given::{DocumentBatch, InMemoryDocument, given_id};
pub use glob::ExcludePattern;
#[doc(hidden)]
pub use guard::panic_is_handled;
pub use html::{Fallback, HtmlLink, HtmlLinks, HtmlText, PageFacts, PageIdentity, UnsupportedHtml};
pub use id_text::JsonId;
pub use name::display as path_text;
pub use named_files::{NamedFile, named_files, object_urls};
pub use options::{Category, InputOptions};
pub use order_key::{OrderField, OrderKey, OrderNumber, UnusableOrderKey};
pub use parser::Parser;
pub use piece::{RecordChunk, RecordPosition};
pub use raw::{RawChunk, RawRecord, raw_chunks, raw_records};
pub use record::{
    BadRecord, BadRecordKind, Record, RecordPart, RemovedBoilerplate, TextState, VisibleText,
};
pub use regular::{open_lockable, open_regular};
pub use remote::StoreSettings;
pub use results::{
    COLLECTION_FILE, OutputFolder, SPARK_PROGRAM, SUMMARY_FILE, holds_results, open_summary,
    results_in,
};
#[doc(hidden)]
pub use results::{PROGRAM, STATE_FOLDER};
pub use site::{field_of, host, server_of};
pub use source::{Inputs, SkipKind, SkippedPart, Source};
#[doc(hidden)]
pub use surrogate::replace_lone;
pub use table::{
    CodeCell, CodeColumn, CodeTable, CodeTableWriter, FINGERPRINT_COLUMN, SplitTable,
    TableRowChooser, TableRowError,
};
#[cfg(feature = "parquet")]
pub use table::{UnrepresentableValue, cell_json, row_line};
#[doc(hidden)]
pub use text_hash::hash_with;
pub use text_hash::{category_hash, long_hash, seen_text_hash, text_hash};
pub use tree::{FileTree, Transfer, TransferError, transfer_file};

/// The example in the README, compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct CorpusReadme;
