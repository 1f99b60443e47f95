//! Files with sketches for a collection of the service: fingerprints of any width, super-shingles or minima.

use std::path::{Path, PathBuf};

use lookalike::scheme::SchemeId;
use lookalike::sketch::WideFingerprint;
use lookalike::{Fingerprint, Sketch};
use lookalike_batch::fingerprints::files::{
    CodeFile, CodesError, FingerprintFile, PlaceKind, SketchFile, SketchRows, SketchShape,
};
use lookalike_batch::{SkippedRow, SkippedRows};
use lookalike_hamming::Word;
use lookalike_store::{DocumentSketch, check_id};

use crate::failure::Failure;
use crate::remedy;

/// An open file with the sketches of a collection.
pub(crate) struct CollectionFile {
    path: PathBuf,
    sketch: Sketch,
    content: FileContent,
    /// True if the first id that collections refuse is an error.
    strict: bool,
    /// Number of documents so far, including those with such ids.
    read: u64,
    refused: SkippedRows,
}

/// A file and the rows that were read last.
enum FileContent {
    Bits32(CodeFile, FingerprintFile<u32>),
    Bits64(CodeFile, FingerprintFile<u64>),
    Bits128(CodeFile, FingerprintFile<u128>),
    Places(SketchFile, SketchRows, SketchShape),
}

impl CollectionFile {
    /// Opens a file for a collection with this sketch.
    pub(crate) fn open(path: &Path, sketch: Sketch, strict: bool) -> Result<Self, Failure> {
        let source = path.into();
        let codes = || CodeFile::open(&source, strict);
        // The collection decides how a file is read: many formats do not tell the width or the kind themselves.
        let content = match (SketchShape::of(sketch), sketch) {
            (Some(shape), _) => SketchFile::open(&source, strict)
                .map(|file| FileContent::Places(file, SketchRows::default(), shape)),
            (None, Sketch::Simhash32) => {
                codes().map(|file| FileContent::Bits32(file, FingerprintFile::default()))
            }
            (None, Sketch::Simhash128) => {
                codes().map(|file| FileContent::Bits128(file, FingerprintFile::default()))
            }
            _ => codes().map(|file| FileContent::Bits64(file, FingerprintFile::default())),
        };
        let content = content.map_err(|error| failed(&error, sketch))?;
        Ok(Self {
            path: path.to_owned(),
            sketch,
            content,
            strict,
            read: 0,
            refused: SkippedRows::default(),
        })
    }

    /// Returns the scheme, if the format stores it.
    pub(crate) fn scheme(&self) -> Option<SchemeId> {
        match &self.content {
            FileContent::Bits32(file, _)
            | FileContent::Bits64(file, _)
            | FileContent::Bits128(file, _) => file.scheme(),
            FileContent::Places(file, ..) => file.scheme(),
        }
    }

    /// Reads the next sketches, about `bytes` bytes of them. Returns false at the end.
    pub(crate) fn read(&mut self, bytes: u64) -> Result<bool, Failure> {
        fn fill<W: Word>(
            file: &mut CodeFile,
            codes: &mut FingerprintFile<W>,
            bytes: u64,
        ) -> Result<bool, CodesError> {
            // Each call replaces the rows of the last one, which `documents` has taken.
            codes.clear();
            file.fill(codes, bytes)
        }
        let read = match &mut self.content {
            FileContent::Bits32(file, codes) => fill(file, codes, bytes),
            FileContent::Bits64(file, codes) => fill(file, codes, bytes),
            FileContent::Bits128(file, codes) => fill(file, codes, bytes),
            FileContent::Places(file, rows, shape) => {
                rows.clear();
                let more = file.fill(rows, bytes);
                // The shape of lines and tables is known only from their first sketch.
                match file.shape().filter(|found| found != shape) {
                    Some(found) => Err(CodesError::Places {
                        name: file.name().to_owned(),
                        shape: found,
                    }),
                    None => more,
                }
            }
        };
        read.map_err(|error| failed(&error, self.sketch))
    }

    /// Returns the sketches that were read last, with the ids of their documents. Those whose ids collections refuse are left out and count as
    /// skipped.
    pub(crate) fn documents(&mut self) -> Result<Vec<(String, DocumentSketch)>, Failure> {
        let mut documents = Vec::new();
        for (id, sketch) in self.content.documents() {
            // Refused ones count too, because the message gives the position in the file.
            self.read += 1;
            let Err(error) = check_id(&id) else {
                documents.push((id, sketch));
                continue;
            };
            let fault = format!(
                "{}, fingerprint {}: {error}",
                self.path.display(),
                self.read
            );
            if self.strict {
                return Err(Failure::Failed(fault));
            }
            self.refused.add("id", fault);
        }
        Ok(documents)
    }

    /// Returns the number of documents whose sketch is null, and what else was left out. Call it at the end.
    pub(crate) fn left_out(self) -> (u64, Vec<SkippedRow>) {
        let summary = match self.content {
            FileContent::Bits32(file, _)
            | FileContent::Bits64(file, _)
            | FileContent::Bits128(file, _) => file.summary(),
            FileContent::Places(file, ..) => file.summary(),
        };
        let mut skipped = summary.skipped;
        skipped.extend(self.refused.finish());
        (summary.without_features, skipped)
    }
}

impl FileContent {
    /// Returns the sketches that were read last, with the ids of their documents.
    fn documents(&self) -> Box<dyn Iterator<Item = (String, DocumentSketch)> + '_> {
        match self {
            FileContent::Bits32(_, codes) => Box::new(wide(codes)),
            FileContent::Bits64(_, codes) => {
                let all = codes.codes.iter().enumerate();
                Box::new(all.map(|(at, &code)| {
                    let id = codes.ids.name(at, code).text().into_owned();
                    (id, Fingerprint(code).into())
                }))
            }
            FileContent::Bits128(_, codes) => Box::new(wide(codes)),
            FileContent::Places(_, rows, shape) => Box::new(
                rows.for_each(*shape)
                    .map(|(id, words)| (id.to_owned(), places(*shape, words))),
            ),
        }
    }
}

fn wide<W: Word>(
    codes: &FingerprintFile<W>,
) -> impl Iterator<Item = (String, DocumentSketch)> + '_ {
    let all = codes.codes.iter().enumerate();
    all.map(|(at, &code)| {
        let sketch = DocumentSketch::Bits(WideFingerprint(code.to_u128()), W::BITS);
        (codes.ids.name(at, code).text().into_owned(), sketch)
    })
}

fn places(shape: SketchShape, words: &[u64]) -> DocumentSketch {
    let places = (0..shape.places).map(|at| shape.place(words, at));
    match shape.kind {
        PlaceKind::SuperShingles => DocumentSketch::SuperShingles(places.collect()),
        // A minimum has 32 bits, whatever the width of a place in the file.
        PlaceKind::Minima => DocumentSketch::Minima(places.map(|place| place as u32).collect()),
    }
}

/// Adds to an error the remedy for a file that a collection with this sketch refuses.
fn failed(error: &CodesError, sketch: Sketch) -> Failure {
    Failure::Failed(match error {
        CodesError::Places { .. }
        | CodesError::NoPlaces { .. }
        | CodesError::Width { .. }
        | CodesError::Index { .. } => format!(
            "{error}, and the collection holds {sketch}: make the file with `lookalike fingerprint --sketch {sketch}`"
        ),
        _ => remedy::codes_error_with_remedy(error),
    })
}
