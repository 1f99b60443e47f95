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
    Bits(CodeFile, Box<dyn BitsRows>),
    Places(SketchFile, SketchRows, SketchShape),
}

impl CollectionFile {
    /// Opens a file for a collection with this sketch.
    pub(crate) fn open(path: &Path, sketch: Sketch, strict: bool) -> Result<Self, Failure> {
        let source = path.into();
        // The collection decides how a file is read: many formats do not tell the width or the kind themselves.
        let rows: Box<dyn BitsRows> = match sketch {
            Sketch::Simhash32 => Box::new(FingerprintFile::<u32>::default()),
            Sketch::Simhash128 => Box::new(FingerprintFile::<u128>::default()),
            _ => Box::new(FingerprintFile::<u64>::default()),
        };
        let content = match SketchShape::of(sketch) {
            Some(shape) => SketchFile::open(&source, strict)
                .map(|file| FileContent::Places(file, SketchRows::default(), shape)),
            None => CodeFile::open(&source, strict).map(|file| FileContent::Bits(file, rows)),
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
            FileContent::Bits(file, _) => file.scheme(),
            FileContent::Places(file, ..) => file.scheme(),
        }
    }

    /// Reads the next sketches, about `bytes` bytes of them. Returns false at the end.
    pub(crate) fn read(&mut self, bytes: u64) -> Result<bool, Failure> {
        // Each call replaces the rows of the last one, which `documents` has taken.
        let read = match &mut self.content {
            FileContent::Bits(file, rows) => rows.refill(file, bytes),
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
        let rows: Box<dyn Iterator<Item = _>> = match &self.content {
            FileContent::Bits(_, rows) => rows.documents(),
            FileContent::Places(_, rows, shape) => Box::new(
                rows.for_each(*shape)
                    .map(|(id, words)| (id.to_owned(), places(*shape, words))),
            ),
        };
        for (id, sketch) in rows {
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
            FileContent::Bits(file, _) => file.summary(),
            FileContent::Places(file, ..) => file.summary(),
        };
        let mut skipped = summary.skipped;
        skipped.extend(self.refused.finish());
        (summary.without_features, skipped)
    }
}

/// Fingerprints of one width, which were read last.
trait BitsRows {
    fn refill(&mut self, file: &mut CodeFile, bytes: u64) -> Result<bool, CodesError>;
    fn documents(&self) -> Box<dyn Iterator<Item = (String, DocumentSketch)> + '_>;
}

impl<W: Word> BitsRows for FingerprintFile<W> {
    fn refill(&mut self, file: &mut CodeFile, bytes: u64) -> Result<bool, CodesError> {
        self.clear();
        file.fill(self, bytes)
    }

    fn documents(&self) -> Box<dyn Iterator<Item = (String, DocumentSketch)> + '_> {
        Box::new(self.codes.iter().enumerate().map(|(at, &code)| {
            let sketch = match W::BITS {
                u64::BITS => Fingerprint(code.to_u128() as u64).into(),
                bits => DocumentSketch::Bits(WideFingerprint(code.to_u128()), bits),
            };
            (self.ids.name(at, code).text().into_owned(), sketch)
        }))
    }
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
        CodesError::Places { .. } | CodesError::NoPlaces { .. } | CodesError::Width { .. } => {
            format!(
                "{error}, and the collection holds {sketch}: make the file with `lookalike fingerprint --sketch {sketch}`"
            )
        }
        CodesError::Index { .. } => format!("{error}: name the files that it was built from"),
        _ => remedy::codes_error_with_remedy(error),
    })
}
