//! Reads the sketches of files and indexes of any kind, document by document, as [`SketchValue`].

use lookalike::scheme::SchemeId;
use lookalike::sketch::{SketchValue, WideFingerprint};
use lookalike_hamming::{IndexFile, Word};

use super::files::{
    CodeFile, CodeFiles, CodesError, CodesSummary, CommonFact, FingerprintFile, FingerprintName,
    FingerprintSource, PlaceKind, SketchFile, SketchKind, SketchRows, SketchShape, check_losses,
    ensure_equal_kinds, ensure_equal_schemes,
};
use super::index;
use super::mapped::damaged;
use super::sketches::{SketchReading, is_sketch_index, open_sketches_unchecked, stored_bytes};
use super::with_word::with_word;
use crate::error::BatchError;
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage, check_cancelled};

/// Bytes of a file that are read at once.
const CHUNK: u64 = 4 << 20;

/// Receiver of documents: gets the name and the sketch of each.
type ValueVisitor<'v> = dyn FnMut(FingerprintName<'_>, SketchValue) + 'v;

/// Files and indexes with sketches of one kind and, if they name it, of one scheme.
pub struct SketchValues<'a> {
    /// The files and indexes. Each is opened once before it is read, so none may be a pipe: see [`FingerprintSource::copy_pipe_to`].
    pub sources: &'a [FingerprintSource],
    /// Policy for lines that cannot be read.
    pub losses: LossPolicy,
    /// Receiver of progress.
    pub observer: &'a dyn JobObserver,
}

lookalike::opaque_debug! {
    [] SketchValues ['_];
}

/// Summary of what was read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SketchValuesSummary {
    /// Kind of the sketches. `None` if there were none.
    pub kind: Option<SketchKind>,
    /// The scheme, if a file names it.
    pub scheme: Option<SchemeId>,
    /// Counts of each file and index. Indexes of fingerprints come last.
    pub files: Vec<CodesSummary>,
}

impl SketchValues<'_> {
    /// Visits each document with its sketch: in file order for files, by sketch for an index.
    ///
    /// # Errors
    /// [`BatchError`] if a file cannot be read, or if kinds or schemes differ.
    pub fn for_each(
        &self,
        visit: &mut ValueVisitor<'_>,
    ) -> Result<SketchValuesSummary, BatchError> {
        // Before anything is visited: callers must not get sketches of a first file that cannot be compared with those of a later one.
        let kind = self.kind()?;
        self.observer
            .stage(JobStage::Queries, stored_bytes(self.sources));
        let (scheme, files) = match kind {
            Some(SketchKind::Places(_)) => self.for_each_value_of_places(visit)?,
            Some(SketchKind::Fingerprints(bits)) => {
                with_word!(bits, W => self.for_each_code::<W>(visit)?)
            }
            // Without any sketch the width does not matter.
            None => self.for_each_code::<u64>(visit)?,
        };
        Ok(SketchValuesSummary {
            kind,
            scheme,
            files,
        })
    }

    fn kind(&self) -> Result<Option<SketchKind>, BatchError> {
        let mut common = CommonFact::default();
        for source in self.sources {
            common.agree(source.name(), kind_of(source)?, ensure_equal_kinds)?;
        }
        Ok(common.get())
    }

    fn for_each_value_of_places(
        &self,
        visit: &mut ValueVisitor<'_>,
    ) -> Result<ReadFiles, BatchError> {
        let mut reading = SketchReading::new(self.observer, self.losses);
        let files = reading.for_each(self.sources, &mut |reading, _, rows| {
            // The shape is known as soon as there is a sketch.
            if let Some(shape) = reading.shape() {
                for (name, words) in rows.for_each(shape) {
                    visit(FingerprintName::Text(name), value(shape, words));
                }
            }
            Ok(())
        })?;
        Ok((reading.scheme(), files))
    }

    fn for_each_code<W: Word>(
        &self,
        visit: &mut ValueVisitor<'_>,
    ) -> Result<ReadFiles, BatchError> {
        let is_index = |source: &FingerprintSource| index::is_index(source.path());
        // Files come first, so that they can be read as one collection.
        let (indexes, files): (Vec<_>, Vec<_>) = self.sources.iter().cloned().partition(is_index);
        let mut codes = CodeFiles::open(&files, self.losses.is_strict())?;
        let show = |_: &CodeFiles, chunk: &mut FingerprintFile<W>| {
            for (at, &code) in chunk.codes.iter().enumerate() {
                visit(chunk.ids.name(at, code), bits(code));
            }
            Ok(())
        };
        codes.for_each_chunk(CHUNK, self.observer, show)?;
        let (mut scheme, mut indexed) = (CommonFact::default(), Vec::new());
        if let Some((name, id)) = codes.scheme() {
            scheme.agree(name, Some(id), ensure_equal_schemes)?;
        }
        for source in &indexes {
            check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
            let file = for_each_indexed::<W>(source, visit)?;
            let own = file.scheme().map(SchemeId);
            scheme.agree(source.name(), own, ensure_equal_schemes)?;
            indexed.push(index::codes_summary(source.name(), &file));
        }
        let mut files = codes.summaries();
        check_losses(self.losses, &files)?;
        files.append(&mut indexed);
        Ok((scheme.get(), files))
    }
}

/// The scheme of some files, if one names it, and their counts.
type ReadFiles = (Option<SchemeId>, Vec<CodesSummary>);

/// Returns the kind of sketches in a file or an index. `None` if it has no sketch.
fn kind_of(source: &FingerprintSource) -> Result<Option<SketchKind>, BatchError> {
    let path = source.path();
    if index::is_index(path) {
        return Ok(Some(SketchKind::Fingerprints(index::width(path)?)));
    }
    if is_sketch_index(path) {
        let index = open_sketches_unchecked(path, false)?;
        return Ok(Some(SketchKind::Places(index.shape())));
    }
    let bits = match CodeFile::open(source, false) {
        Ok(file) => Ok(file.bits()),
        Err(CodesError::Places { shape, .. }) => return Ok(Some(SketchKind::Places(shape))),
        // A table without fingerprints may hold longer sketches; the error counts only if it does not.
        Err(error @ CodesError::Table { .. }) => Err(error),
        Err(error) => return Err(error.into()),
    };
    if let Ok(Some(bits)) = bits {
        return Ok(Some(SketchKind::Fingerprints(bits)));
    }
    // Lines and tables without fingerprints may hold longer sketches.
    match shape_of_rows(source) {
        Some(shape) => Ok(Some(SketchKind::Places(shape))),
        None => Ok(bits.map(|_| None)?),
    }
}

/// Returns the shape of the first sketch in lines or a table.
fn shape_of_rows(source: &FingerprintSource) -> Option<SketchShape> {
    let mut file = SketchFile::open(source, false).ok()?;
    // With a limit of one byte, reading stops at the first sketch or soon after.
    file.fill(&mut SketchRows::default(), 1).ok()?;
    file.shape()
}

/// Visits the fingerprints of an index, each under all of its ids. Returns the index.
fn for_each_indexed<W: Word>(
    source: &FingerprintSource,
    visit: &mut ValueVisitor<'_>,
) -> Result<IndexFile<W>, BatchError> {
    let file = index::open::<W>(source.path(), false)?;
    let (mut ids, mut read) = (Vec::new(), Ok(()));
    file.index().for_each_ascending(&mut |code| {
        // The iteration cannot be stopped, so the rest is ignored after an error.
        if read.is_err() {
            return;
        }
        ids.clear();
        read = file.ids(code, &mut ids);
        match (ids.is_empty(), &read) {
            (true, Ok(())) => visit(FingerprintName::from_code(code), bits(code)),
            _ => ids
                .iter()
                .for_each(|id| visit(FingerprintName::Text(id), bits(code))),
        }
    });
    read.map_err(damaged(source.path()))?;
    Ok(file)
}

fn bits<W: Word>(code: W) -> SketchValue {
    SketchValue::Bits(WideFingerprint(code.to_u128()), W::BITS)
}

fn value(shape: SketchShape, words: &[u64]) -> SketchValue {
    let places = (0..shape.places).map(|at| shape.place(words, at));
    match shape.kind {
        PlaceKind::SuperShingles => SketchValue::Hashes(places.map(Some).collect()),
        PlaceKind::Minima => SketchValue::Signature(places.map(|place| place as u32).collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::observer::NoProgress;

    fn read(sources: &[FingerprintSource]) -> Result<Vec<(String, SketchValue)>, BatchError> {
        let values = SketchValues {
            sources,
            losses: LossPolicy::Tolerate,
            observer: &NoProgress,
        };
        let mut all = Vec::new();
        values.for_each(&mut |name, value| {
            let name = match name {
                FingerprintName::Fingerprint(code) => code.to_string(),
                FingerprintName::Number(number) => number.to_string(),
                FingerprintName::Text(text) => text.to_owned(),
            };
            all.push((name, value));
        })?;
        Ok(all)
    }

    fn file(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> FingerprintSource {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.into()
    }

    #[test]
    fn every_kind_is_known_by_its_bytes_or_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let add = |name: &str, bytes: &[u8]| file(folder.path(), name, bytes);
        let wide = WideFingerprint;
        let cases = [
            (
                add("a.u32", &7_u32.to_le_bytes()),
                ("00000007", SketchValue::Bits(wide(7), 32)),
            ),
            (
                add("a.u128", &(1_u128 << 100).to_le_bytes()),
                (
                    "00000010000000000000000000000000",
                    SketchValue::Bits(wide(1 << 100), 128),
                ),
            ),
            (
                add("a.u64x1", &9_u64.to_le_bytes()),
                (
                    "0000000000000009",
                    SketchValue::Hashes([Some(9)].into()),
                ),
            ),
            (
                add("a.jsonl", b"{\"id\":\"x\",\"fingerprint\":\"000000000000000a\"}\n"),
                ("x", SketchValue::Bits(wide(10), 64)),
            ),
            (
                // Two texts without features come first.
                add(
                    "b.jsonl",
                    b"{\"id\":\"v\",\"signature\":null}\n{\"id\":\"w\",\"signature\":null}\n{\"id\":\"x\",\"signature\":\"000000010000000200000003\"}\n",
                ),
                ("x", SketchValue::Signature([1, 2, 3].into())),
            ),
        ];
        for (source, (name, value)) in cases {
            let expected = vec![(name.to_owned(), value)];
            assert_eq!(read(&[source]).unwrap(), expected);
        }
    }

    #[test]
    fn the_counts_of_indexes_were_missing() {
        let folder = tempfile::tempdir().unwrap();
        let input = file(folder.path(), "a.u64", [1; 24]);
        let output = folder.path().join("a.lkix");
        let inputs = [input.clone()];
        let build = index::IndexBuild::new(&inputs, &output);
        build.run(&build.enter().unwrap()).unwrap();
        let values = SketchValues {
            sources: &[output.clone().into(), input],
            losses: LossPolicy::Tolerate,
            observer: &NoProgress,
        };
        let mut visited = 0;
        let summary = values.for_each(&mut |_, _| visited += 1).unwrap();
        let counts: Vec<u64> = (summary.files.iter())
            .map(|file| file.fingerprints)
            .collect();
        // The file counts each copy. Without ids an index gives a fingerprint once, but counts its copies.
        assert_eq!((visited, counts), (3 + 1, vec![3, 3]));
        assert!(summary.files[1].name.ends_with("a.lkix"));
    }

    #[test]
    fn sketches_of_two_kinds_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let add = |name: &str, bytes: &[u8]| file(folder.path(), name, bytes);
        let sources = [add("a.u64", &[1; 16]), add("b.u64x2", &[1; 16])];
        let refused = read(&sources).unwrap_err().to_string();
        for word in [
            "a.u64",
            "64-bit fingerprints",
            "b.u64x2",
            "2 super-shingles",
        ] {
            assert!(refused.contains(word), "{refused}");
        }
        let neither = add("c.jsonl", b"{\"id\":\"x\",\"text\":\"a text\"}\n");
        let refused = read(&[neither]).unwrap_err().to_string();
        assert!(
            refused.contains("no line of the file is a fingerprint"),
            "{refused}"
        );
    }
}
