//! `lookalike index search` in indexes of sketches: finds all stored sketches with enough places equal to those of each query.

use std::io::{BufWriter, Write, stdout};
use std::path::Path;

use lookalike_batch::BatchError;
use lookalike_batch::fingerprints::files::{
    FingerprintSource, SketchFile, SketchRows, SketchShape, ensure_equal_schemes,
    ensure_equal_shapes,
};
use lookalike_batch::fingerprints::sketches::{
    SketchIndexFile, open_sketches, open_sketches_unchecked,
};

use super::findings::damaged;
use super::search::{FoundLine, SearchPlan, SearchSummary, SearchedIndex};
use crate::arguments::fingerprint_sources;
use crate::failure::Failure;
use crate::spool::Spool;

/// Memory for the queries that are read at once.
const CHUNK_BYTES: u64 = 1 << 20;

struct SketchSearch<'a, W> {
    indexes: Vec<SearchedIndex<'a, SketchIndexFile>>,
    shape: SketchShape,
    least: usize,
    is_strict: bool,
    out: W,
    summary: SearchSummary,
}

impl<'a> SearchedIndex<'a, SketchIndexFile> {
    fn open_all(plan: &SearchPlan<'a>) -> Result<Vec<Self>, Failure> {
        let open = match plan.arguments.skip_check {
            true => open_sketches_unchecked,
            false => open_sketches,
        };
        let mut indexes: Vec<Self> = Vec::with_capacity(plan.indexes.len());
        for &path in &plan.indexes {
            let file = open(path, plan.arguments.in_memory)?;
            let index = Self { path, file };
            if let Some(first) = indexes.first() {
                first.ensure_comparable(&index.name(), &index.file)?;
            }
            indexes.push(index);
        }
        Ok(indexes)
    }

    /// Refuses an index of other sketches.
    fn ensure_comparable(&self, other: &str, file: &SketchIndexFile) -> Result<(), BatchError> {
        let name = self.name();
        let of = |file: &SketchIndexFile| (file.scheme(), file.shape());
        let ((scheme, shape), (other_scheme, other_shape)) = (of(&self.file), of(file));
        let named = scheme.map(|scheme| (name.as_str(), scheme));
        ensure_equal_schemes(named, other_scheme.map(|scheme| (other, scheme)))?;
        Ok(ensure_equal_shapes(
            Some((&name, shape)),
            Some((other, other_shape)),
        )?)
    }
}

pub(super) fn run(plan: &SearchPlan<'_>) -> Result<(), Failure> {
    let indexes = SearchedIndex::<SketchIndexFile>::open_all(plan)?;
    // The index that demands most decides what all of them can answer.
    let built = indexes.iter().map(|index| index.file.min_equal()).max();
    let (shape, built) = (indexes[0].file.shape(), built.unwrap_or(1));
    if plan.arguments.distance.is_some() {
        return Err(Failure::Usage(format!(
            "{}: an index of sketches of {shape}: use --equal instead of --distance",
            indexes[0].name()
        )));
    }
    let equal = plan.arguments.equal.map(|equal| equal.places(shape));
    let least = equal.transpose();
    let least = least
        .map_err(|error| Failure::Usage(error.to_string()))?
        .unwrap_or(built);
    if let Some(index) = indexes.iter().find(|index| index.file.min_equal() > least) {
        return Err(Failure::Usage(format!(
            "{}: built for at least {} equal places, not {least}: rebuild it with --equal {least}",
            index.name(),
            index.file.min_equal()
        )));
    }
    let mut search = SketchSearch {
        indexes,
        shape,
        least,
        is_strict: plan.arguments.losses.policy().is_strict(),
        out: BufWriter::with_capacity(1 << 18, stdout().lock()),
        summary: SearchSummary::default(),
    };
    let spool = Spool::new(&std::env::temp_dir())?;
    for &query in &plan.queries {
        match shape.parse(query) {
            // As with fingerprints, `./` before it means the file.
            Some(sketch) => search.query(query, &sketch)?,
            None => {
                search.refuse_digits(query)?;
                for source in fingerprint_sources(&[query], spool.path())? {
                    search.file(&source)?;
                }
            }
        }
    }
    search.out.flush()?;
    plan.end(&search.summary)
}

impl<W: Write> SketchSearch<'_, W> {
    /// Refuses digits of another sketch, if no file has that name.
    fn refuse_digits(&self, query: &str) -> Result<(), Failure> {
        let is_plain = query.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_plain || Path::new(query).exists() {
            return Ok(());
        }
        let shape = self.shape;
        // All sketches of a shape have as many digits.
        let digits = shape.digits(&vec![0; shape.words()]).len();
        Err(Failure::Usage(format!(
            "{query} has {} hexadecimal digits, and the index holds sketches of {shape}: give {digits}",
            query.len()
        )))
    }

    /// Searches all queries of a file.
    fn file(&mut self, source: &FingerprintSource) -> Result<(), Failure> {
        let mut file = SketchFile::open(source, self.is_strict).map_err(BatchError::from)?;
        let (mut rows, mut more) = (SketchRows::default(), true);
        while more {
            rows.clear();
            more = file
                .fill(&mut rows, CHUNK_BYTES)
                .map_err(BatchError::from)?;
            let first = &self.indexes[0];
            let name = first.name();
            let scheme = first.file.scheme().map(|scheme| (name.as_str(), scheme));
            let other = file.scheme().map(|scheme| (file.name(), scheme));
            ensure_equal_schemes(scheme, other).map_err(BatchError::from)?;
            // The shape of lines and tables is known only from their first sketch.
            let other = file.shape().map(|shape| (file.name(), shape));
            ensure_equal_shapes(Some((&name, self.shape)), other).map_err(BatchError::from)?;
            for (name, sketch) in rows.for_each(self.shape) {
                self.query(name, sketch)?;
            }
        }
        self.summary.inputs.push(file.summary());
        Ok(())
    }

    fn query(&mut self, name: &str, sketch: &[u64]) -> Result<(), Failure> {
        let mut found: Vec<(u32, String)> = Vec::new();
        let (mut near, mut ids) = (Vec::new(), Vec::new());
        for index in &self.indexes {
            near.clear();
            let visit = &mut |at, distance| near.push((at, distance));
            let effort = index.file.search(sketch, self.least, visit);
            self.summary.probes += effort.probes;
            self.summary.candidates += effort.candidates;
            for &(at, distance) in &near {
                ids.clear();
                let read = index.file.ids(at, &mut ids);
                read.map_err(damaged(index.path))?;
                found.extend(ids.iter().map(|&id| (distance, id.to_owned())));
                if !index.file.has_ids() {
                    // As in every file, a sketch without an id gets its digits as id.
                    let digits = self.shape.digits(&index.file.sketch(at));
                    found.push((distance, digits));
                }
            }
        }
        // The same document may be in several indexes.
        found.sort_unstable();
        found.dedup();
        self.summary.queries += 1;
        self.summary.queries_with_matches += u64::from(!found.is_empty());
        self.summary.matches += found.len() as u64;
        for (distance, id) in &found {
            let line = FoundLine {
                query: name,
                fingerprint: None,
                id: Some(id),
                distance: *distance,
            };
            line.write(&mut self.out)?;
        }
        Ok(())
    }
}
