//! The Hamming index, which finds the neighbours of fingerprints.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray, UInt32Array, UInt64Array};
use lookalike::scheme::SchemeId;
use lookalike::{Scheme, SchemeMismatch, Sketch};
use lookalike_batch::BatchError;
use lookalike_batch::fingerprints::files::SizedFingerprint;
use lookalike_batch::fingerprints::index::{cheapest_design, open, open_unchecked, width};
use lookalike_corpus::{AtomicFile, Compression};
use lookalike_hamming::{
    BuildLimits, CostedDesign, IdTexts, IndexFile, IndexFileWriter, Layout, Word, balanced_design,
    share,
};
use pyo3::exceptions::{PyFileExistsError, PyFileNotFoundError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::array::ArrowTable;
use crate::codes::{CodeColumn, FingerprintColumn};
use crate::error::CallError;
use crate::preset::{NamedPreset, check_distance, search_distance};
use crate::room::ensure_room;
use crate::scheme::PyScheme;
use crate::texts::TextSource;
use crate::whole::WholeNumber;
use crate::work::{Cancellation, catch_panic, for_all, run};

/// Index of fingerprints that finds every one within a distance, after sections 3 and 4 of Manku, Jain, Das Sarma (WWW 2007); in memory or a mapped
/// file.
///
/// >>> index = Index.build([0b1111, 0b0000], distance=1, ids=["x", "y"])
/// >>> index.search([0b1110]).to_pylist()
/// [{'query': 0, 'id': 'x', 'code': 15, 'distance': 1}]
#[pyclass(frozen, name = "Index", module = "lookalike")]
pub(crate) struct PyIndex {
    file: SizedIndex,
    path: Option<PathBuf>,
}

/// An index of fingerprints of one of the widths that columns can have.
enum SizedIndex {
    Narrow(IndexFile<u64>),
    Wide(IndexFile<u128>),
}

/// Runs the same code on an index of either width.
macro_rules! with_file {
    ($index:expr, $file:ident => $done:expr) => {
        match $index {
            SizedIndex::Narrow($file) => $done,
            SizedIndex::Wide($file) => $done,
        }
    };
}

/// A width of fingerprints that columns can have.
trait ColumnCode: Word {
    /// Converts fingerprints to a column.
    fn column(codes: impl Iterator<Item = Self>) -> ArrayRef;
}

impl ColumnCode for u64 {
    fn column(codes: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(codes.collect::<UInt64Array>())
    }
}

impl ColumnCode for u128 {
    fn column(codes: impl Iterator<Item = Self>) -> ArrayRef {
        let digits = codes.map(|code| Some(SizedFingerprint::new(code).to_string()));
        Arc::new(digits.collect::<StringArray>())
    }
}

#[pymethods]
impl PyIndex {
    /// Builds an index of `codes`, a column as `join` takes it, for searches up to `distance` bits (0 to 16, by default 3); nulls are left out.
    ///
    /// A `preset` sets the distance for fingerprints of `simhash(texts, preset=preset)`. It raises `ValueError` together with a distance, for
    /// fingerprints of another width, and together with a `scheme` of other features.
    ///
    /// `ids` are names of the rows (strings, as many as codes; by default row numbers). With `path` the index is a file in the command's format,
    /// written completely or not at all; otherwise it is in memory. A file that exists raises `FileExistsError` unless `overwrite` is true.
    /// `layout` is `packed`, `buckets` or `dense` (slowest, smallest); `tables` is the largest number of tables, by default half the distance
    /// plus one. `scheme` is recorded, so fingerprints of another scheme are refused; if it has no sketch, that of the fingerprints' width is
    /// recorded, as `simhash` and `lookalike fingerprint` do. Raises `ValueError` for other distances, layouts and numbers of tables, and for a scheme of
    /// another width, or with a sketch that is not a fingerprint.
    #[classmethod]
    #[pyo3(signature = (codes, distance=None, *, ids=None, path=None, overwrite=false, layout="packed", tables=None, scheme=None, preset=None, threads=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword arguments of a Python function"
    )]
    fn build(
        class: &Bound<'_, PyType>,
        codes: &Bound<'_, PyAny>,
        distance: Option<WholeNumber>,
        ids: Option<&Bound<'_, PyAny>>,
        path: Option<PathBuf>,
        overwrite: bool,
        layout: &str,
        tables: Option<WholeNumber>,
        scheme: Option<PyScheme>,
        preset: Option<NamedPreset>,
        threads: Option<WholeNumber>,
    ) -> PyResult<Self> {
        // Before the work, which may take minutes.
        if let Some(path) = path.as_deref().filter(|path| !overwrite && path.exists()) {
            return Err(PyFileExistsError::new_err(format!(
                "{}: exists: name another path, or say overwrite=True",
                path.display()
            )));
        }
        let distance = search_distance(distance, preset)?;
        let tables = tables.map(table_count).transpose()?;
        let layout = layout_named(layout)?;
        let threads = crate::work::threads(threads)?;
        let mut codes = FingerprintColumn::of(codes)?;
        let mut scheme = scheme.map(|scheme| scheme.0);
        if let Some(preset) = preset {
            preset.ensure_fits(&mut codes)?;
            scheme = scheme.map(|scheme| preset.scheme(scheme)).transpose()?;
        }
        let scheme = scheme
            .map(|scheme| scheme_of(scheme, &mut codes))
            .transpose()?;
        let options = IndexOptions {
            ids,
            path: path.as_deref(),
            scheme: scheme.map(|scheme| scheme.id().0),
            distance,
            tables,
            layout,
            threads,
        };
        let file = match codes {
            FingerprintColumn::Narrow(codes) => {
                SizedIndex::Narrow(options.build(class.py(), &codes)?)
            }
            FingerprintColumn::Wide(codes) => SizedIndex::Wide(options.build(class.py(), &codes)?),
        };
        Ok(Self { file, path })
    }

    /// Opens an index file, mapped or, with `in_memory`, read into memory. With `check` the whole file is read once and compared with its checksums.
    /// A mapped file must not be truncated or overwritten while it is open: a search would end the process. Use `in_memory=True` for a file that
    /// others may change.
    ///
    /// Raises `FileNotFoundError` if there is no such file, `LookalikeError` if it cannot be read or is damaged.
    #[classmethod]
    #[pyo3(signature = (path, *, in_memory=false, check=true))]
    fn open(
        class: &Bound<'_, PyType>,
        path: PathBuf,
        in_memory: bool,
        check: bool,
    ) -> PyResult<Self> {
        fn opened<W: Word>(
            path: &Path,
            in_memory: bool,
            check: bool,
        ) -> Result<IndexFile<W>, CallError> {
            let open = if check {
                open::<W>
            } else {
                open_unchecked::<W>
            };
            Ok(open(path, in_memory)?)
        }
        if !path.exists() {
            return Err(PyFileNotFoundError::new_err(format!(
                "{}: no such file: name an index that Index.build or the command has written",
                path.display()
            )));
        }
        let file = run(class.py(), |_| match width(&path)? {
            u128::BITS => Ok(SizedIndex::Wide(opened(&path, in_memory, check)?)),
            _ => Ok(SizedIndex::Narrow(opened(&path, in_memory, check)?)),
        })?;
        Ok(Self {
            file,
            path: Some(path),
        })
    }

    /// Finds the neighbours of every query: a table of `query` (uint64, its row), `id` (string), `code` (uint64, or a string of 32 hexadecimal
    /// digits if the index is of 128 bits) and `distance` (uint32, bits), by query, then distance.
    ///
    /// `codes` is a column as in `build`; `distance` is at most that of the index, which is the default. Raises `ValueError` for a larger one,
    /// `SchemeMismatch` if `scheme` is not that of the index, `MemoryLimit` if the neighbours exceed the memory.
    #[pyo3(signature = (codes, distance=None, *, scheme=None, threads=None))]
    fn search(
        &self,
        py: Python<'_>,
        codes: &Bound<'_, PyAny>,
        distance: Option<WholeNumber>,
        scheme: Option<PyScheme>,
        threads: Option<WholeNumber>,
    ) -> PyResult<ArrowTable> {
        let distance = match distance {
            Some(WholeNumber(distance)) => check_distance(distance)?,
            None => self.distance(),
        };
        if distance > self.distance() {
            return Err(CallError::Value(format!(
                "the index was built for distances up to {}, asked for {distance}: build it again with distance={distance}",
                self.distance()
            ))
            .into());
        }
        let scheme = scheme.map(|PyScheme(scheme)| with_sketch(scheme, self.bits()));
        self.check_scheme(scheme)?;
        let threads = crate::work::threads(threads)?;
        let mut queries = FingerprintColumn::of(codes)?;
        let bits = self.bits();
        match (&self.file, queries.bits_or(bits), &queries) {
            (SizedIndex::Narrow(file), _, FingerprintColumn::Narrow(queries)) => {
                searched(py, file, queries, distance, threads)
            }
            (SizedIndex::Wide(file), _, FingerprintColumn::Wide(queries)) => {
                searched(py, file, queries, distance, threads)
            }
            (_, found, _) => Err(CallError::Value(format!(
                "the index has fingerprints of {bits} bits, the queries are of {found}: make both with the same scheme or preset"
            ))
            .into()),
        }
    }

    /// Largest distance of a search, in bits.
    #[getter]
    fn distance(&self) -> u32 {
        with_file!(&self.file, file => file.index().radius())
    }

    /// Id of the scheme of the fingerprints, if it is known.
    #[getter]
    fn scheme_id(&self) -> Option<String> {
        let scheme = with_file!(&self.file, file => file.scheme());
        scheme.map(|id| SchemeId(id).to_string())
    }

    /// The file, if the index is one.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// Size of the index in bytes, in memory or as a file.
    #[getter]
    fn nbytes(&self) -> u64 {
        with_file!(&self.file, file => file.bytes())
    }

    /// Number of fingerprints, including equal ones.
    fn __len__(&self) -> usize {
        with_file!(&self.file, file => file.documents()) as usize
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "an index cannot be pickled or copied: build it with path=, and open the file in each process",
        ))
    }

    fn __repr__(&self) -> String {
        format!(
            "<lookalike.Index of {} fingerprints, distance {}, {}>",
            self.__len__(),
            self.distance(),
            with_file!(&self.file, file => file.index().layout().name())
        )
    }
}

/// Returns the scheme of fingerprints, whose sketch may be left out, as in `simhash`. Returns an error if it is for other sketches.
fn scheme_of(scheme: Scheme, codes: &mut FingerprintColumn) -> Result<Scheme, CallError> {
    let wanted = match (scheme.sketch, scheme.sketch.fingerprint_bits()) {
        (Sketch::None, _) => return Ok(with_sketch(scheme, codes.bits())),
        (other, 0) => {
            return Err(CallError::Value(format!(
                "an index holds fingerprints, and the scheme has sketch=\"{other}\": give the scheme that made them"
            )));
        }
        (_, bits) => bits,
    };
    let remedy = match wanted {
        32 => "leave it out, or make the index with `lookalike index build`",
        _ => "give the scheme that made them",
    };
    match codes.bits_or(wanted) {
        bits if bits == wanted => Ok(scheme),
        bits => Err(CallError::Value(format!(
            "fingerprints of {bits} bits, and the scheme makes {wanted}: {remedy}"
        ))),
    }
}

/// Returns the scheme, with the sketch of fingerprints of so many bits if it has none.
fn with_sketch(scheme: Scheme, bits: u32) -> Scheme {
    match (scheme.sketch, bits) {
        (Sketch::None, u128::BITS) => scheme.sketch(Sketch::Simhash128),
        (Sketch::None, _) => scheme.sketch(Sketch::Simhash),
        _ => scheme,
    }
}

fn layout_named(name: &str) -> Result<Layout, CallError> {
    let known = Layout::ALL.into_iter().find(|layout| layout.name() == name);
    known.ok_or_else(|| {
        let names: Vec<&str> = Layout::ALL.iter().map(|layout| layout.name()).collect();
        CallError::Value(format!("layout={name:?} is none: use {}", names.join(", ")))
    })
}

/// Rewords the error of a text column for ids, which are read as texts.
fn of_ids(error: CallError) -> CallError {
    match error {
        CallError::Type(told) => CallError::Type(told.replacen("texts", "ids", 1)),
        other => other,
    }
}

fn table_count(WholeNumber(tables): WholeNumber) -> Result<u32, CallError> {
    let count = u32::try_from(tables).ok().filter(|&count| count > 0);
    count.ok_or_else(|| {
        CallError::Value(format!(
            "tables={tables} is no number of tables: an index has one at least"
        ))
    })
}

/// Number of queries that a thread takes at a time.
const BLOCK: usize = 1024;
/// Maximum size of a batch's ids in bytes, far below the 2 GiB that a column of strings can hold.
const BATCH_BYTES: usize = 1 << 28;

/// Bytes of a neighbour in memory, without its id's text.
const NEIGHBOUR_BYTES: u64 = 36;

/// Neighbours of some queries, with ids in the index.
#[derive(Default)]
struct Neighbours<'f, W> {
    queries: Vec<u64>,
    ids: Vec<Option<&'f str>>,
    codes: Vec<W>,
    distances: Vec<u32>,
}

/// Creates the error for more neighbours than the memory holds.
fn too_many(neighbours: u64) -> String {
    format!(
        "{neighbours} neighbours or more exceed the memory: leave repeats out, lower the distance, or search with fewer fingerprints at a time"
    )
}

impl<W: ColumnCode> Neighbours<'_, W> {
    /// Reserves memory for more neighbours, unless the system refuses it.
    fn reserve(&mut self, more: usize) -> Result<(), CallError> {
        let reserved = self.queries.try_reserve(more);
        let reserved = reserved.and_then(|()| self.ids.try_reserve(more));
        let reserved = reserved.and_then(|()| self.codes.try_reserve(more));
        let reserved = reserved.and_then(|()| self.distances.try_reserve(more));
        reserved.map_err(|_| CallError::MemoryLimit {
            message: too_many((self.queries.len() + more) as u64),
            needed: None,
        })
    }

    /// Converts blocks to a table whose batches have no more ids than a column of strings can hold.
    fn table(blocks: Vec<Self>) -> Result<ArrowTable, CallError> {
        let id_bytes = |block: &Self| -> usize {
            let ids = block.ids.iter().flatten();
            ids.map(|id| id.len()).sum()
        };
        let count: usize = blocks.iter().map(|block| block.queries.len()).sum();
        let texts: usize = blocks.iter().map(id_bytes).sum();
        let bytes = count as u64 * NEIGHBOUR_BYTES + texts as u64;
        ensure_room(bytes, || too_many(count as u64))?;
        let (mut batches, mut bytes) = (vec![Vec::new()], 0);
        for block in blocks {
            let own = id_bytes(&block);
            if bytes + own > BATCH_BYTES && bytes > 0 {
                batches.push(Vec::new());
                bytes = 0;
            }
            bytes += own;
            batches.last_mut().expect("never empty").push(block);
        }
        let tables = batches.into_iter().map(|blocks| Self::batch(&blocks));
        ArrowTable::joined(tables.collect::<Result<_, _>>()?)
    }

    fn batch(blocks: &[Self]) -> Result<ArrowTable, CallError> {
        let queries = blocks
            .iter()
            .flat_map(|block| block.queries.iter().copied());
        let codes = blocks.iter().flat_map(|block| block.codes.iter().copied());
        let distances = blocks
            .iter()
            .flat_map(|block| block.distances.iter().copied());
        let ids = blocks.iter().flat_map(|block| block.ids.iter().copied());
        ArrowTable::of(vec![
            ("query", u64::column(queries)),
            ("id", Arc::new(ids.collect::<StringArray>())),
            ("code", W::column(codes)),
            ("distance", Arc::new(distances.collect::<UInt32Array>())),
        ])
    }
}

impl PyIndex {
    fn bits(&self) -> u32 {
        with_file!(&self.file, file => width_of(file))
    }

    fn check_scheme(&self, scheme: Option<Scheme>) -> Result<(), CallError> {
        let own = with_file!(&self.file, file => file.scheme());
        let (Some(own), Some(other)) = (own, scheme) else {
            return Ok(());
        };
        if own == other.id().0 {
            return Ok(());
        }
        let default = Scheme::default();
        let known = [default, default.sketch(other.sketch)]
            .into_iter()
            .find(|known| known.id().0 == own);
        Err(match known {
            Some(known) => SchemeMismatch {
                left: Box::new(known),
                right: Box::new(other),
            }
            .into(),
            None => CallError::SchemeMismatch(format!(
                "the index has fingerprints of the scheme {}, the queries are of {}: make both with one scheme",
                SchemeId(own),
                other.id()
            )),
        })
    }
}

/// Returns the width of an index's fingerprints in bits.
fn width_of<W: Word>(_: &IndexFile<W>) -> u32 {
    W::BITS
}

/// Finds the neighbours of all queries.
fn searched<W: ColumnCode>(
    py: Python<'_>,
    file: &IndexFile<W>,
    queries: &CodeColumn<W>,
    distance: u32,
    threads: usize,
) -> PyResult<ArrowTable> {
    let found = run(py, |cancellation| {
        let equal = equal_neighbours(file, queries)?;
        ensure_room(equal.saturating_mul(2 * NEIGHBOUR_BYTES), || {
            too_many(equal)
        })?;
        let blocks: Vec<usize> = (0..queries.codes.len()).step_by(BLOCK).collect();
        for_all(
            threads,
            blocks,
            cancellation,
            || (),
            |(), start| neighbours(file, queries, start, distance),
        )
    })?;
    Ok(Neighbours::table(found)?)
}

/// Returns the number of neighbours that repeated queries have among repeated fingerprints, which equal them.
fn equal_neighbours<W: ColumnCode>(
    file: &IndexFile<W>,
    queries: &CodeColumn<W>,
) -> Result<u64, CallError> {
    let mut count: u64 = 0;
    if file.documents() == file.index().len() as u64 {
        return Ok(count);
    }
    let (mut codes, mut ids) = (queries.codes.clone(), Vec::new());
    codes.sort_unstable();
    for equal in codes.chunk_by(PartialEq::eq) {
        if equal.len() > 1 {
            ids.clear();
            file.ids(equal[0], &mut ids)
                .map_err(|error| CallError::Failed(error.to_string()))?;
            count = count.saturating_add((equal.len() * ids.len()) as u64);
        }
    }
    Ok(count)
}

/// Finds the neighbours of a block of queries, ordered by query, distance, code and id.
fn neighbours<'f, W: ColumnCode>(
    file: &'f IndexFile<W>,
    queries: &CodeColumn<W>,
    start: usize,
    distance: u32,
) -> Result<Neighbours<'f, W>, CallError> {
    let block = &queries.codes[start..(start + BLOCK).min(queries.codes.len())];
    let mut found = Vec::new();
    file.index()
        .search_group(block, distance, &mut |query, code, distance| {
            found.push((query, distance, code));
        })
        .map_err(CallError::value)?;
    // In the order of query, distance and code, whichever table found them first.
    found.sort_unstable();
    let (mut neighbours, mut ids) = (Neighbours::default(), Vec::new());
    for (query, distance, code) in found {
        ids.clear();
        file.ids(code, &mut ids)
            .map_err(|error| CallError::Failed(error.to_string()))?;
        neighbours.reserve(ids.len().max(1))?;
        let named = ids.iter().copied().map(Some);
        // An index without ids still returns a row for each code.
        for id in named.chain(ids.is_empty().then_some(None)) {
            neighbours.queries.push(queries.row(start + query));
            neighbours.ids.push(id);
            neighbours.codes.push(code);
            neighbours.distances.push(distance);
        }
    }
    Ok(neighbours)
}

/// Ids of all codes, concatenated.
struct IndexIds {
    texts: String,
    ends: Vec<u64>,
}

impl IndexIds {
    /// Uses the row numbers as ids.
    fn rows<W>(codes: &CodeColumn<W>) -> Self {
        let rows = (0..codes.codes.len()).map(|at| codes.row(at).to_string());
        Self::collect(rows)
    }

    fn collect(ids: impl Iterator<Item = String>) -> Self {
        let (mut texts, mut ends) = (String::new(), Vec::new());
        for id in ids {
            texts.push_str(&id);
            ends.push(texts.len() as u64);
        }
        Self { texts, ends }
    }

    /// Reads the ids from a caller, one for each row of the fingerprints.
    fn of<W>(ids: &Bound<'_, PyAny>, codes: &CodeColumn<W>) -> Result<Self, CallError> {
        let mut all: Vec<Option<String>> = Vec::new();
        let mut source = TextSource::of(ids).map_err(of_ids)?;
        while let Some(chunk) = source.next(ids.py()).map_err(of_ids)? {
            all.extend((0..chunk.len()).map(|at| chunk.get(at).map(str::to_owned)));
        }
        if all.len() != codes.count() {
            return Err(CallError::Value(format!(
                "there are {} fingerprints but {} ids",
                codes.count(),
                all.len()
            )));
        }
        if let Some(row) = all.iter().position(Option::is_none) {
            return Err(CallError::BadInput {
                message: format!("row {row} has no id"),
                row: Some(row),
                source: None,
            });
        }
        let own = (0..codes.codes.len()).filter_map(|at| all[codes.row(at) as usize].clone());
        Ok(Self::collect(own))
    }
}

/// Settings of an index, independent of the width of its fingerprints.
struct IndexOptions<'a, 'py> {
    ids: Option<&'a Bound<'py, PyAny>>,
    path: Option<&'a Path>,
    scheme: Option<u64>,
    distance: u32,
    tables: Option<u32>,
    layout: Layout,
    threads: usize,
}

impl IndexOptions<'_, '_> {
    fn build<W: Word>(&self, py: Python<'_>, codes: &CodeColumn<W>) -> PyResult<IndexFile<W>> {
        let ids = match self.ids {
            Some(ids) => IndexIds::of(ids, codes)?,
            None => IndexIds::rows(codes),
        };
        let count = codes.codes.len() as u64;
        let design = catch_panic(|| {
            let cheapest = cheapest_design(count, W::BITS, self.distance, self.tables, self.layout);
            Ok(cheapest.map_err(BatchError::from)?)
        })?;
        let build = IndexInput {
            codes: &codes.codes,
            ids: &ids,
            scheme: self.scheme,
            design: &design,
            threads: self.threads,
        };
        let path = self.path;
        run(py, |cancellation| match path {
            Some(path) => {
                build.write_file(path, cancellation)?;
                Ok(open(path, false)?)
            }
            None => {
                let bytes = build.write(Vec::new(), cancellation)?;
                IndexFile::open(share(bytes)).map_err(|error| CallError::Failed(error.to_string()))
            }
        })
    }
}

/// Everything that an index is built from.
struct IndexInput<'a, W> {
    codes: &'a [W],
    ids: &'a IndexIds,
    scheme: Option<u64>,
    design: &'a CostedDesign,
    threads: usize,
}

impl<W: Word> IndexInput<'_, W> {
    fn write<O: Write>(&self, out: O, cancellation: &Cancellation) -> Result<O, CallError> {
        let failed = |error: &dyn std::fmt::Display| CallError::Failed(error.to_string());
        let limits = BuildLimits::default().threads(self.threads);
        // Written together with the first table, because the order of codes is only known then.
        let mut ids = Some(IdTexts {
            texts: &self.ids.texts,
            ends: &self.ids.ends,
        });
        let layout = self.design.layout;
        let design = balanced_design(self.codes, &self.design.design, layout)
            .map_err(|error| failed(&error))?;
        let mut writer = IndexFileWriter::new(out, self.scheme, &design, layout)
            .map_err(|error| failed(&error))?;
        let is_cancelled = || cancellation.is_cancelled();
        while writer
            .next_table_until(self.codes, ids.take(), limits, &is_cancelled)
            .map_err(|error| failed(&error))?
        {}
        writer.finish().map_err(|error| failed(&error))
    }

    /// Writes the file under a temporary name first, so that it appears completely or not at all.
    fn write_file(&self, path: &Path, cancellation: &Cancellation) -> Result<(), CallError> {
        let failed = |error: std::io::Error| CallError::of_path(path, error);
        let file = AtomicFile::create(path, Compression::None).map_err(failed)?;
        // If an error occurs, the file is dropped and thereby removed.
        self.write(file, cancellation)?.commit().map_err(failed)
    }
}
