//! The fingerprint tables of a run, and the documents of each fingerprint.

use std::sync::atomic::AtomicBool;

use lookalike_hamming::{IndexFile, Layout, TableIndex, share};

use super::code_groups::CodeGroups;
use super::footer::RunFooter;
use super::pages::{BlockReader, RunSection, ensure_wanted};
use super::sorted::SortedIndex;
use super::table_design::{CodeSample, small_design};
use crate::codec::fixed;
use crate::error::{Result, StoreError};

/// The fingerprint tables of a run.
pub(super) enum RunTables {
    Stored(Box<IndexFile<u64>>),
    Made(Box<TableIndex<u64>>),
}

impl RunTables {
    pub(super) fn index(&self) -> &TableIndex<u64> {
        match self {
            Self::Stored(file) => file.index(),
            Self::Made(index) => index,
        }
    }

    /// Reads stored tables, or builds those of a small run.
    pub(super) fn open(
        reader: &BlockReader<'_>,
        footer: &RunFooter,
        radius: u32,
    ) -> Result<(Self, CodeGroups)> {
        let coded = footer.coded as usize;
        if footer.tables.length > 0 {
            let tables = Self::stored(reader, footer.tables, radius)?;
            let (starts, order) = (reader.words(footer.starts)?, reader.words(footer.order)?);
            let groups = CodeGroups::stored(starts, order, coded, footer.documents as usize)
                .ok_or_else(|| {
                    StoreError::damaged(
                        reader.path,
                        footer.starts.offset,
                        "lists of documents of another length",
                    )
                })?;
            if groups.ranks() != tables.index().len() {
                return Err(StoreError::damaged(
                    reader.path,
                    footer.starts.offset,
                    "lists for other tables",
                ));
            }
            return Ok((tables, groups));
        }
        let codes = reader.words(footer.codes)?;
        let tables = Self::made(reader, &codes, radius)?;
        let absent = reader.section(footer.absent)?;
        let wanted = AtomicBool::new(false);
        let groups = group_by_code(reader, footer, &absent, tables.index(), &wanted)?;
        Ok((tables, groups))
    }

    /// Reads stored tables of fingerprints of paragraphs, or builds those of a few.
    pub(super) fn of_paragraphs(
        reader: &BlockReader<'_>,
        stored: RunSection,
        codes: &SortedIndex,
        radius: u32,
    ) -> Result<Self> {
        if stored.length > 0 {
            return Self::stored(reader, stored, radius);
        }
        let mut all = Vec::new();
        codes.keys(*reader, &mut |keys| {
            all.extend_from_slice(keys);
            Ok(())
        })?;
        Self::made(reader, &all, radius)
    }

    /// Tables of a section.
    fn stored(reader: &BlockReader<'_>, section: RunSection, radius: u32) -> Result<Self> {
        let tables = load_tables(reader, section)?;
        // A smaller radius would miss neighbours without a word; a larger one only costs time.
        if tables.index().design().radius() < radius {
            let what = "the tables are for a smaller radius";
            return Err(StoreError::damaged(reader.path, section.offset, what));
        }
        Ok(Self::Stored(Box::new(tables)))
    }

    /// Tables of a few fingerprints.
    fn made(reader: &BlockReader<'_>, codes: &[u64], radius: u32) -> Result<Self> {
        let mut sample = CodeSample::of(codes.len());
        codes.iter().for_each(|&code| sample.see(code));
        let index = TableIndex::build(codes, &small_design(radius, &sample), Layout::Packed)
            .map_err(|error| StoreError::Invalid(format!("{}: {error}", reader.path.display())))?;
        Ok(Self::Made(Box::new(index)))
    }
}

/// The tables of a section, in memory.
pub(super) fn load_tables(reader: &BlockReader<'_>, section: RunSection) -> Result<IndexFile<u64>> {
    let bytes = share(reader.section(section)?);
    IndexFile::open(bytes).map_err(|error| {
        StoreError::damaged(reader.path, section.offset, format!("the tables: {error}"))
    })
}

/// Lists the documents of each code.
pub(super) fn group_by_code(
    reader: &BlockReader<'_>,
    footer: &RunFooter,
    absent: &[u8],
    index: &TableIndex<u64>,
    cancelled: &AtomicBool,
) -> Result<CodeGroups> {
    let (coded, documents) = (footer.coded as usize, footer.documents as usize);
    let ranks = index.len();
    let mut failed = None;
    let groups = CodeGroups::build(ranks, coded, documents, &mut |each| {
        let mut absent = absent
            .chunks_exact(4)
            .map(|bytes| fixed(bytes) as u32)
            .peekable();
        let mut document = 0;
        let read = reader.pages(footer.codes, &mut |page| {
            ensure_wanted(cancelled)?;
            for code in page.chunks_exact(8).map(fixed) {
                while absent.next_if_eq(&document).is_some() {
                    document += 1;
                }
                let rank = index.rank(code).ok_or_else(|| {
                    let what = "a fingerprint is not in the tables";
                    StoreError::damaged(reader.path, footer.codes.offset, what)
                })?;
                each(document, rank);
                document += 1;
            }
            Ok(())
        });
        // `build` replays twice and knows no errors: the first is kept for the end.
        failed = failed.take().or(read.err());
    });
    failed.map_or(Ok(groups), Err)
}
