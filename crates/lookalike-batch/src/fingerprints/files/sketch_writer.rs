//! Writes collections of sketches of several places in the format that the file's name implies.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lookalike::scheme::SchemeId;
use lookalike_corpus::{AtomicFile, CodeTableWriter, Compression};
use lookalike_hamming::{FileError, FingerprintWriter};

use super::sketch_shape::SketchShape;
use super::write::{AtomicFileCreator, CodeFormat, system_error, unpacked_name, unwritable};
use crate::dedup::result_lines::write_line;
use crate::error::BatchError;
use crate::fingerprints::settings_error::FingerprintSettingsError;

/// A collection being written. It appears only when it is complete: [`SketchWriter::commit`].
pub(crate) struct SketchWriter {
    path: PathBuf,
    shape: SketchShape,
    out: SketchOutput,
}

enum SketchOutput {
    Lines(AtomicFile),
    Raw(AtomicFile),
    Words(FingerprintWriter<AtomicFile>),
    Table(Box<CodeTableWriter<AtomicFile>>),
}

/// Writes a sketch in the form that `lookalike fingerprint` prints; null for a text without features.
pub(crate) fn write_sketch(
    out: &mut dyn Write,
    id: &str,
    shape: SketchShape,
    sketch: Option<&[u64]>,
) -> io::Result<()> {
    let mut line = serde_json::Map::new();
    line.insert("id".to_owned(), id.into());
    let digits = sketch.map(|sketch| shape.digits(sketch));
    line.insert(shape.kind.column().to_owned(), digits.into());
    write_line(out, &line)
}

impl SketchWriter {
    /// Starts a file in the format that its name implies.
    ///
    /// # Errors
    /// [`BatchError`] if the name implies no format for such sketches, or if the file cannot be created.
    pub(crate) fn create(
        path: &Path,
        begin: AtomicFileCreator,
        shape: SketchShape,
        scheme: SchemeId,
    ) -> Result<Self, BatchError> {
        let begin = |packing| begin(path, packing).map_err(unwritable(path));
        let wrong = |error: FileError| unwritable(path)(system_error(error));
        let out = match CodeFormat::of(path) {
            Some((CodeFormat::JsonLines, packing)) => SketchOutput::Lines(begin(packing)?),
            Some((CodeFormat::Fingerprints, packing)) => {
                let file = begin(packing)?;
                let header = shape.in_header();
                let writer = FingerprintWriter::new(file, scheme.0, header, true);
                SketchOutput::Words(writer.map_err(wrong)?)
            }
            Some((CodeFormat::Parquet, packing)) => {
                let table = CodeTableWriter::of_texts(begin(packing)?, true, shape.kind.column());
                SketchOutput::Table(Box::new(table.map_err(unwritable(path))?))
            }
            // Raw sketches have endings of their own, such as `.u64x6`, and archives hold single fingerprints only.
            Some((CodeFormat::Raw(_) | CodeFormat::Archive, _)) | None => {
                match raw_packing(path, shape) {
                    Some(packing) => SketchOutput::Raw(begin(packing)?),
                    None => {
                        return Err(FingerprintSettingsError::FormatOfOtherShape {
                            path: path.to_owned(),
                            shape: shape.to_string(),
                            ending: shape.raw_ending(),
                        }
                        .into());
                    }
                }
            }
        };
        Ok(Self {
            path: path.to_owned(),
            shape,
            out,
        })
    }

    /// Adds a sketch, or `None` for a text without features, which only lines and tables store.
    ///
    /// # Errors
    /// [`BatchError`] if the file cannot be written.
    pub(crate) fn push(&mut self, id: &str, sketch: Option<&[u64]>) -> Result<(), BatchError> {
        let Self { path, shape, out } = self;
        let written = match (out, sketch) {
            (SketchOutput::Lines(file), _) => write_sketch(file, id, *shape, sketch),
            (SketchOutput::Table(table), _) => {
                table.push_text(Some(id), sketch.map(|sketch| shape.digits(sketch)))
            }
            // The summary counts these texts, so leaving them out is not silent.
            (SketchOutput::Raw(_) | SketchOutput::Words(_), None) => Ok(()),
            (SketchOutput::Raw(file), Some(sketch)) => {
                let mut bytes = Vec::new();
                shape.extend_raw(sketch, &mut bytes);
                file.write_all(&bytes)
            }
            (SketchOutput::Words(file), Some(sketch)) => {
                file.push_sketch(sketch, id).map_err(system_error)
            }
        };
        written.map_err(unwritable(path))
    }

    /// Finishes the file and renames it to its final name.
    ///
    /// # Errors
    /// [`BatchError`] if the file cannot be written.
    pub(crate) fn commit(self) -> Result<(), BatchError> {
        let failed = unwritable(&self.path);
        let file = match self.out {
            SketchOutput::Lines(file) | SketchOutput::Raw(file) => file,
            SketchOutput::Words(file) => {
                file.finish().map_err(|error| failed(system_error(error)))?
            }
            SketchOutput::Table(table) => table.finish().map_err(&failed)?,
        };
        file.commit().map_err(failed)
    }
}

/// Returns the compression of a raw file whose name states this shape, or `None` for another name.
fn raw_packing(path: &Path, shape: SketchShape) -> Option<Compression> {
    let (name, packing) = unpacked_name(path)?;
    name.ends_with(&format!(".{}", shape.raw_ending()))
        .then_some(packing)
}
