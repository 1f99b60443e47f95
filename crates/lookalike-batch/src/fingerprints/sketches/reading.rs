//! Reads several files of sketches one after another as if they were one.

use lookalike::scheme::SchemeId;

use super::sketch_index::{is_sketch_index, map_sketches};
use crate::error::BatchError;
use crate::fingerprints::files::{
    CodesError, CodesSummary, CommonFact, FingerprintSource, SketchFile, SketchRows, SketchShape,
    check_losses, ensure_equal_schemes, ensure_equal_shapes,
};
use crate::fingerprints::mapped::{damaged, unreadable};
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, check_cancelled};

/// Bytes of sketches and names in memory at once while a file is read.
const CHUNK_BYTES: u64 = 4 << 20;

/// Receiver of sketches: gets the reading, the name of the file, and some sketches.
type SketchRowsVisitor<'v> =
    dyn FnMut(&SketchReading<'_>, &str, &SketchRows) -> Result<(), BatchError> + 'v;

/// State of reading collections whose sketches have one shape and, if files name it, one scheme.
pub(crate) struct SketchReading<'a> {
    observer: &'a dyn JobObserver,
    losses: LossPolicy,
    shape: CommonFact<SketchShape>,
    scheme: CommonFact<SchemeId>,
    read_bytes: u64,
}

impl<'a> SketchReading<'a> {
    pub(crate) fn new(observer: &'a dyn JobObserver, losses: LossPolicy) -> Self {
        Self {
            observer,
            losses,
            shape: CommonFact::default(),
            scheme: CommonFact::default(),
            read_bytes: 0,
        }
    }

    /// Returns the shape of the sketches so far. `None` if there was none.
    pub(crate) fn shape(&self) -> Option<SketchShape> {
        self.shape.get()
    }

    /// Returns the scheme of the sketches so far. `None` if no file named it.
    pub(crate) fn scheme(&self) -> Option<SchemeId> {
        self.scheme.get()
    }

    /// Visits all sketches of some files and indexes, in order.
    ///
    /// # Errors
    /// [`BatchError`] if a file cannot be read or holds something else, if shapes or schemes differ, or if `visit` fails.
    pub(crate) fn for_each(
        &mut self,
        sources: &[FingerprintSource],
        visit: &mut SketchRowsVisitor<'_>,
    ) -> Result<Vec<CodesSummary>, BatchError> {
        let mut summaries = Vec::new();
        let mut rows = SketchRows::default();
        for source in sources {
            rows.clear();
            let summary = match is_sketch_index(source.path()) {
                true => self.index(source, &mut rows, visit)?,
                false => self.file(source, &mut rows, visit)?,
            };
            summaries.push(summary);
        }
        check_losses(self.losses, &summaries)?;
        Ok(summaries)
    }

    fn file(
        &mut self,
        source: &FingerprintSource,
        rows: &mut SketchRows,
        visit: &mut SketchRowsVisitor<'_>,
    ) -> Result<CodesSummary, BatchError> {
        let mut file = SketchFile::open(source, self.losses.is_strict())?;
        let before = self.read_bytes;
        let mut more = true;
        while more {
            check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
            rows.clear();
            more = file.fill(rows, CHUNK_BYTES)?;
            self.read_bytes = before + file.bytes_read();
            // Check after the first rows, because lines and tables have no known shape before.
            self.agree(file.name(), file.scheme(), file.shape())?;
            visit(self, file.name(), rows)?;
            self.observer.progress(self.read_bytes);
        }
        Ok(file.summary())
    }

    /// Reads each distinct sketch as often as it has ids, or once without ids.
    fn index(
        &mut self,
        source: &FingerprintSource,
        rows: &mut SketchRows,
        visit: &mut SketchRowsVisitor<'_>,
    ) -> Result<CodesSummary, BatchError> {
        let (name, (file, mut index)) = (source.name(), map_sketches(source.path())?);
        self.agree(name, index.scheme(), Some(index.shape()))?;
        let before = self.read_bytes;
        for at in 0..index.len() {
            let (shape, sketch, mut ids) = (index.shape(), index.sketch(at), Vec::new());
            index.ids(at, &mut ids).map_err(damaged(source.path()))?;
            let named = ids.into_iter().map(Some);
            let bare = (!index.has_ids()).then_some(None);
            let mut is_passed_on = false;
            // One sketch may have millions of ids.
            for id in named.chain(bare) {
                rows.words.extend_from_slice(&sketch);
                rows.name(id, shape);
                if rows.bytes() >= CHUNK_BYTES {
                    check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
                    let done = (at + 1) as f64 / index.len() as f64;
                    self.read_bytes = before + (done * index.bytes() as f64) as u64;
                    visit(self, name, rows)?;
                    self.observer.progress(self.read_bytes);
                    rows.clear();
                    is_passed_on = true;
                }
            }
            if is_passed_on {
                // Everything is read once, so unmap what was read to free memory.
                index = index.remapped(&file).map_err(unreadable(source.path()))?;
            }
        }
        self.read_bytes = before + index.bytes();
        visit(self, name, rows)?;
        self.observer.progress(self.read_bytes);
        Ok(index.summary(name))
    }

    /// Fails if the sketches cannot be compared with those before.
    pub(crate) fn agree(
        &mut self,
        name: &str,
        scheme: Option<SchemeId>,
        shape: Option<SketchShape>,
    ) -> Result<(), CodesError> {
        self.scheme.agree(name, scheme, ensure_equal_schemes)?;
        self.shape.agree(name, shape, ensure_equal_shapes)
    }
}

/// Returns the total bytes of files, as far as they are known.
pub(crate) fn stored_bytes(sources: &[FingerprintSource]) -> u64 {
    let sizes = sources.iter().map(|source| source.path().metadata());
    sizes.map(|size| size.map_or(0, |size| size.len())).sum()
}
