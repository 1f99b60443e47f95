//! The search structures of a run: tables of fingerprints, or an index of sketches of other forms, and the documents of each sketch.

use std::sync::atomic::AtomicBool;

use lookalike_hamming::{IndexFile, Layout, TableIndex, share};

use super::code_groups::CodeGroups;
use super::footer::RunFooter;
use super::pages::{BlockReader, RunSection, check_cancelled};
use super::sorted::SortedIndex;
use super::table_design::{CodeSample, small_design};
use crate::codec::fixed;
use crate::document_sketch::{SketchForm, sketch_key};
use crate::error::{Result, StoreError};
use crate::place_index::PlaceIndex;
use crate::settings::IndexShape;

/// The distinct sketches of a run. Each has a name: 64-bit fingerprints are their own names, other sketches are numbered.
pub(super) enum RunSketches {
    Codes(RunTables),
    Places(Box<PlaceIndex>),
}

/// The fingerprint tables of a run, stored in it or built when it is opened.
pub(super) enum RunTables {
    Stored(Box<IndexFile<u64>>),
    Built(Box<TableIndex<u64>>),
}

impl RunSketches {
    /// Reads or builds the search structure, and the lists of the documents of each sketch.
    pub(super) fn open(
        reader: &BlockReader,
        footer: &RunFooter,
        shape: IndexShape,
    ) -> Result<(Self, CodeGroups)> {
        if shape.form == SketchForm::Fingerprint {
            let (tables, groups) = RunTables::open(reader, footer, shape.radius)?;
            return Ok((Self::Codes(tables), groups));
        }
        let mut index = PlaceIndex::new(shape.form, shape.radius);
        let mut numbers = Vec::with_capacity(footer.coded as usize);
        reader.rows(footer.codes, shape.form.bytes(), &mut |sketch| {
            // Documents with equal sketches get the same number.
            numbers.push(index.insert(sketch).0);
            Ok(())
        })?;
        // The sketches of a run never change.
        index.shrink_to_fit();
        let absent = reader.section(footer.absent)?;
        let (coded, documents) = (footer.coded as usize, footer.documents as usize);
        let groups = CodeGroups::build(index.len(), coded, documents, &mut |each| {
            let listed = with_sketch(&absent).zip(&numbers);
            listed.for_each(|(document, &number)| each(document, number as usize));
        });
        Ok((Self::Places(Box::new(index)), groups))
    }

    /// Returns the rank of a sketch, given its name, under which its documents are listed.
    pub(super) fn rank(&self, name: u64) -> Option<usize> {
        match self {
            Self::Codes(tables) => tables.index().rank(name),
            Self::Places(_) => Some(name as usize),
        }
    }

    /// Returns the name of a sketch, or `None`.
    pub(super) fn find(&self, sketch: &[u8]) -> Option<u64> {
        match self {
            Self::Codes(_) => Some(fixed(sketch)),
            Self::Places(index) => index.find(sketch).map(u64::from),
        }
    }

    /// Visits the name of every sketch within the radius, with its distance.
    pub(super) fn search(&self, sketch: &[u8], radius: u32, visit: &mut dyn FnMut(u64, u32)) {
        match self {
            Self::Codes(tables) => {
                // The radius was checked against that of the collection, for which all tables were made.
                let found = tables.index().search(fixed(sketch), radius, visit);
                debug_assert!(found.is_ok());
            }
            Self::Places(index) => index.search(sketch, radius, &mut |number, distance| {
                visit(number.into(), distance)
            }),
        }
    }

    /// Searches for several sketches at once. Visits also get the position of the sketch in the list.
    pub(super) fn search_group(
        &self,
        sketches: &[Vec<u8>],
        radius: u32,
        visit: &mut dyn FnMut(usize, u64, u32),
    ) {
        match self {
            Self::Codes(tables) => {
                let codes: Vec<u64> = sketches.iter().map(|sketch| fixed(sketch)).collect();
                let found = tables.index().search_group(&codes, radius, visit);
                debug_assert!(found.is_ok());
            }
            // One after the other: only tables gain from searching several sketches at once, because their memory accesses overlap.
            Self::Places(_) => {
                for (at, sketch) in sketches.iter().enumerate() {
                    self.search(sketch, radius, &mut |name, distance| {
                        visit(at, name, distance)
                    });
                }
            }
        }
    }

    /// Visits the name of every sketch, with the key of its bytes.
    pub(super) fn for_each(&self, visit: &mut dyn FnMut(u64, u64)) {
        match self {
            Self::Codes(tables) => tables.index().for_each(&mut |code| visit(code, code)),
            Self::Places(index) => (0..index.len() as u32)
                .for_each(|number| visit(number.into(), sketch_key(index.sketch(number)))),
        }
    }

    /// Returns the memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Codes(tables) => tables.index().bytes(),
            Self::Places(index) => index.bytes(),
        }
    }
}

/// Returns the documents with a sketch in ascending order: all but those listed in `absent`.
fn with_sketch(absent: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let mut absent = absent
        .chunks_exact(4)
        .map(|bytes| fixed(bytes) as u32)
        .peekable();
    (0..).filter(move |document| absent.next_if_eq(document).is_none())
}

impl RunTables {
    pub(super) fn index(&self) -> &TableIndex<u64> {
        match self {
            Self::Stored(file) => file.index(),
            Self::Built(index) => index,
        }
    }

    /// Reads the stored tables of a run, or builds those of a small run.
    fn open(reader: &BlockReader, footer: &RunFooter, radius: u32) -> Result<(Self, CodeGroups)> {
        let coded = footer.coded as usize;
        if footer.tables.length > 0 {
            let tables = Self::stored(reader, footer.tables, radius)?;
            let (starts, order) = (reader.words(footer.starts)?, reader.words(footer.order)?);
            let damaged = |what| reader.damaged(footer.starts.offset, what);
            let groups = CodeGroups::stored(starts, order, coded, footer.documents as usize)
                .ok_or_else(|| damaged("lists of documents of another length"))?;
            if groups.ranks() != tables.index().len() {
                return Err(damaged("lists for other tables"));
            }
            return Ok((tables, groups));
        }
        let codes = reader.words(footer.codes)?;
        let tables = Self::build(reader, &codes, radius)?;
        let absent = reader.section(footer.absent)?;
        // Only the writing of runs is ever cancelled, not their opening.
        let wanted = AtomicBool::new(false);
        let groups = group_by_code(reader, footer, &absent, tables.index(), &wanted)?;
        Ok((tables, groups))
    }

    /// Reads the stored tables of paragraph fingerprints, or builds them if there are few.
    pub(super) fn of_paragraphs(
        reader: &BlockReader,
        stored: RunSection,
        codes: &SortedIndex,
        radius: u32,
    ) -> Result<Self> {
        if stored.length > 0 {
            return Self::stored(reader, stored, radius);
        }
        let mut all = Vec::new();
        codes.keys(reader, &mut |keys| {
            all.extend_from_slice(keys);
            Ok(())
        })?;
        Self::build(reader, &all, radius)
    }

    /// Reads the tables in a section.
    fn stored(reader: &BlockReader, section: RunSection, radius: u32) -> Result<Self> {
        let tables = load_tables(reader, section)?;
        // Tables for a smaller radius would silently miss neighbours; those for a larger one only cost time.
        if tables.index().design().radius() < radius {
            let what = "the tables are for a smaller radius";
            return Err(reader.damaged(section.offset, what));
        }
        Ok(Self::Stored(Box::new(tables)))
    }

    /// Builds tables of a few fingerprints.
    fn build(reader: &BlockReader, codes: &[u64], radius: u32) -> Result<Self> {
        let mut sample = CodeSample::of(codes.len());
        codes.iter().for_each(|&code| sample.sample(code));
        let index = TableIndex::build(codes, &small_design(radius, &sample), Layout::Packed)
            .map_err(|error| StoreError::run_build(reader.path(), error))?;
        Ok(Self::Built(Box::new(index)))
    }
}

/// Reads the tables in a section into memory.
pub(super) fn load_tables(reader: &BlockReader, section: RunSection) -> Result<IndexFile<u64>> {
    let bytes = share(reader.section(section)?);
    IndexFile::open(bytes)
        .map_err(|error| reader.damaged(section.offset, format!("the tables: {error}")))
}

/// Lists the documents of each code.
pub(super) fn group_by_code(
    reader: &BlockReader,
    footer: &RunFooter,
    absent: &[u8],
    index: &TableIndex<u64>,
    cancelled: &AtomicBool,
) -> Result<CodeGroups> {
    let (coded, documents) = (footer.coded as usize, footer.documents as usize);
    let ranks = index.len();
    let mut failed = None;
    let groups = CodeGroups::build(ranks, coded, documents, &mut |each| {
        // Begun anew in each of the two passes.
        let mut documents = with_sketch(absent);
        let read = reader.pages(footer.codes, &mut |page| {
            check_cancelled(cancelled)?;
            for (code, document) in page.chunks_exact(8).map(fixed).zip(&mut documents) {
                let rank = index.rank(code).ok_or_else(|| {
                    let what = "a fingerprint is not in the tables";
                    reader.damaged(footer.codes.offset, what)
                })?;
                each(document, rank);
            }
            Ok(())
        });
        // `build` replays twice and its callback cannot return errors, so keep the first error until the end.
        failed = failed.take().or(read.err());
    });
    failed.map_or(Ok(groups), Err)
}
