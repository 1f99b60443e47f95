//! Writing of an index file in one pass, table by table. An interrupted build continues after the last whole table.

use super::super::build::{BuildError, CancellableSource, CodeSource};
use super::super::code::Word;
use super::super::design::Design;
use super::super::file_error::FileError;
use super::super::index::{BuildLimits, Builder, check_width};
use super::super::kernel::RankBytes;
use super::super::layout::Layout;
use super::super::table::ProbeTable;
use super::super::table_key::TableKey;
use super::{HEAD, PAGE, PageChecks, StoredDirectory, StoredTable, head};
use std::io::{self, Write};
use std::ops::Range;

/// The ids of all codes of a source, in the order of the source.
#[derive(Clone, Copy, Debug)]
pub struct IdTexts<'a> {
    /// The ids, back to back.
    pub texts: &'a str,
    /// End of each id, which is at least that of the id before it, and at a character boundary of the texts.
    pub ends: &'a [u64],
}

impl<'a> IdTexts<'a> {
    /// Checks that there is an id for each of `codes` codes, and that each can be cut out of the texts.
    fn check(&self, codes: usize) -> Result<(), BuildError> {
        let ids = self.ends.len();
        if ids != codes {
            return Err(BuildError::IdCount { codes, ids });
        }
        let mut start = 0;
        let bad = self.ends.iter().position(|&end| {
            // A position beyond the end is never a boundary.
            let fits = start <= end && self.texts.is_char_boundary(end as usize);
            start = end;
            !fits
        });
        bad.map_or(Ok(()), |at| Err(BuildError::IdEnd(at)))
    }

    fn of(&self, document: usize) -> &'a str {
        let start = document
            .checked_sub(1)
            .map_or(0, |before| self.ends[before]);
        &self.texts[start as usize..self.ends[document] as usize]
    }
}

/// Writer of an index file. Call [`IndexFileWriter::new`], then [`IndexFileWriter::next_table`] until it returns false, then
/// [`IndexFileWriter::finish`].
///
/// After each table, but not before the first, [`IndexFileWriter::progress`] returns the state that is needed to continue from there.
/// [`IndexFile`](super::IndexFile) has an example.
#[derive(Debug)]
pub struct IndexFileWriter<W: Write> {
    out: PageWriter<W>,
    design: Design,
    directory: StoredDirectory,
    /// True while a table is being written, so after an error, too: what is there of it cannot be taken back.
    is_partial: bool,
}

impl<W: Write> IndexFileWriter<W> {
    /// Begins a file for codes of the width of `design`.
    ///
    /// # Errors
    ///
    /// Returns an error if writing to the output fails.
    pub fn new(out: W, scheme: Option<u64>, design: &Design, layout: Layout) -> io::Result<Self> {
        let mut out = PageWriter {
            out,
            page: Vec::with_capacity(PAGE),
            checks: PageChecks::default(),
        };
        out.write(&head(scheme, design.bits()))?;
        Ok(Self {
            out,
            design: design.clone(),
            directory: StoredDirectory {
                offset: 0,
                bits: design.bits(),
                radius: design.radius(),
                layout,
                rank_bytes: RankBytes::default(),
                family: design.family().clone(),
                scheme,
                documents: 0,
                distinct: 0,
                tables: Vec::new(),
                ids: None,
                pages: PageChecks::default(),
            },
            is_partial: false,
        })
    }

    /// Continues an interrupted build with the `design` that it was begun with. `progress` is the result of [`IndexFileWriter::progress`], and
    /// `written` is the content of the output so far. The returned number is the bytes of it that are good: truncate the output to that length, and
    /// let `out` append to it.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if the bytes written do not match the progress, or the progress is of another design.
    pub fn resume(
        out: W,
        design: &Design,
        progress: &[u8],
        written: &[u8],
    ) -> Result<(Self, u64), FileError> {
        let directory = StoredDirectory::from_progress(progress)?;
        // Compared with the keys, because the family does not tell the order of the bits.
        if !directory.begins(design) {
            return Err(FileError::OtherDesign);
        }
        let kept = directory.offset as usize;
        let Some(written) = written.get(..kept) else {
            let offset = written.len() as u64;
            return Err(FileError::Truncated { offset });
        };
        // Check all of it: a power cut may have lost pages that were written before others that survived.
        directory.pages.check(written, &(0..kept))?;
        let out = PageWriter {
            out,
            page: Vec::with_capacity(PAGE),
            checks: directory.pages.clone(),
        };
        let writer = Self {
            out,
            design: design.clone(),
            directory,
            is_partial: false,
        };
        Ok((writer, kept as u64))
    }

    /// Returns the state that [`IndexFileWriter::resume`] needs to continue after the tables written so far.
    pub fn progress(&self) -> Vec<u8> {
        // The directory of a file that ends here, so it is read like that of a whole file.
        let directory = self.directory_so_far();
        let mut bytes = directory.offset.to_le_bytes().to_vec();
        bytes.extend(directory.to_bytes());
        bytes
    }

    /// Returns the output, for example to flush it after a table.
    pub fn output(&mut self) -> &mut W {
        &mut self.out.out
    }

    /// Returns the number of tables written.
    pub fn tables_written(&self) -> usize {
        self.directory.tables.len()
    }

    /// Builds and writes the next table. Returns false if all are there. The ids, as many as the source has codes, are written with the first table.
    ///
    /// Memory: the table, [`BuildLimits::scratch_bytes`], and for ids eight bytes each.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError`] if the source fails or changes, the ids do not match it, or the output fails. Once a table is written in part, every
    /// further call returns [`BuildError::Failed`].
    pub fn next_table<C: Word>(
        &mut self,
        source: &(impl CodeSource<C> + ?Sized),
        ids: Option<IdTexts<'_>>,
        limits: BuildLimits,
    ) -> Result<bool, BuildError> {
        self.next_table_until(source, ids, limits, &|| false)
    }

    /// Like [`IndexFileWriter::next_table`], until `is_cancelled` returns true. It is called at least every 65,536 codes, and once true it must stay so;
    /// the file can then not be finished.
    ///
    /// # Errors
    ///
    /// As for [`IndexFileWriter::next_table`], and [`BuildError::Cancelled`].
    pub fn next_table_until<C: Word>(
        &mut self,
        source: &(impl CodeSource<C> + ?Sized),
        ids: Option<IdTexts<'_>>,
        limits: BuildLimits,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool, BuildError> {
        let written = self.write_next(source, ids, limits, is_cancelled);
        match is_cancelled() {
            true => Err(BuildError::Cancelled),
            false => written,
        }
    }

    fn write_next<C: Word>(
        &mut self,
        source: &(impl CodeSource<C> + ?Sized),
        ids: Option<IdTexts<'_>>,
        limits: BuildLimits,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool, BuildError> {
        if self.is_partial {
            return Err(BuildError::Failed);
        }
        let at = self.directory.tables.len();
        let Some(&key) = self.design.tables().get(at) else {
            return Ok(false);
        };
        check_width::<C>(&self.design)?;
        // The sample depends on the pieces in which codes arrive, so it is taken without checks for cancellation in between.
        let builder = Builder::analyze(source, self.directory.layout, limits)?;
        // Ids are in the order of ranks, and these are those of the first table.
        let ids = ids.filter(|_| at == 0);
        if let Some(ids) = ids {
            ids.check(builder.count())?;
        }
        let source = &CancellableSource {
            source,
            is_cancelled,
        };
        let builder = builder.reading(source);
        let mut table = if at == 0 {
            builder.first_table(&key, limits)?
        } else {
            builder.table(&key, self.directory.distinct, limits)?
        };
        if at == 0 {
            self.directory.documents = builder.count() as u64;
            self.directory.rank_bytes = builder.rank_bytes();
            self.directory.distinct = table.len() as u64;
        } else if table.len() as u64 != self.directory.distinct {
            // All tables have the same codes, unless the source has changed.
            return Err(BuildError::Changed);
        }
        if ids.is_some() {
            table.count_ranks();
        }
        self.is_partial = true;
        self.write_table(key, &table)?;
        if let Some(ids) = ids {
            self.write_ids(source, &table, ids)?;
        }
        // Whole pages, each with its check, so that an interrupted build can continue from here.
        self.out.pad(PAGE).map_err(BuildError::Write)?;
        self.is_partial = false;
        Ok(true)
    }

    fn write_table<T: Word>(
        &mut self,
        key: TableKey,
        table: &ProbeTable<T>,
    ) -> Result<(), BuildError> {
        let sections = table.sections().map(|section| self.out.section(section));
        let [first, second, third] = sections;
        let failed = BuildError::Write;
        let sections = [
            first.map_err(failed)?,
            second.map_err(failed)?,
            third.map_err(failed)?,
        ];
        self.directory.tables.push(StoredTable {
            key,
            address: table.addressing.address.to_u128(),
            unit: table.numbers.unit,
            sections,
        });
        Ok(())
    }

    /// Orders the ids by rank and writes them.
    fn write_ids<C: Word>(
        &mut self,
        source: &(impl CodeSource<C> + ?Sized),
        table: &ProbeTable<C>,
        ids: IdTexts<'_>,
    ) -> Result<(), BuildError> {
        let sections = match self.directory.rank_bytes.get() {
            // Eight bytes for each document, which are enough for nearly all collections.
            ..=4 => self.write_ordered::<C, u32>(source, table, ids)?,
            _ => self.write_ordered::<C, u64>(source, table, ids)?,
        };
        self.directory.ids = Some(sections);
        Ok(())
    }

    /// Does the same with ranks and positions as numbers `N`, which must be large enough for all.
    fn write_ordered<C: Word, N: Copy + Ord + TryFrom<usize> + Into<u64>>(
        &mut self,
        source: &(impl CodeSource<C> + ?Sized),
        table: &ProbeTable<C>,
        ids: IdTexts<'_>,
    ) -> Result<[Range<usize>; 3], BuildError> {
        let mut order: Vec<(N, N)> = Vec::with_capacity(ids.ends.len());
        let (mut missing, mut codes_read) = (false, 0);
        source.replay(&mut |codes| {
            for &code in codes {
                let rank = table.find(code);
                let position = N::try_from(codes_read).ok();
                codes_read += 1;
                match rank.and_then(|rank| N::try_from(rank).ok()).zip(position) {
                    Some(both) => order.push(both),
                    None => missing = true,
                }
            }
        })?;
        // There were as many ids as codes when the source was first read.
        if missing || codes_read != ids.ends.len() {
            return Err(BuildError::Changed);
        }
        sort_by_text(&mut order, ids);
        let sections = self.id_sections(&order, table.len(), ids);
        sections.map_err(BuildError::Write)
    }

    fn id_sections<N: Copy + Into<u64>>(
        &mut self,
        order: &[(N, N)],
        ranks: usize,
        ids: IdTexts<'_>,
    ) -> io::Result<[Range<usize>; 3]> {
        let mut first = 0;
        // One more than there are ranks: the last is the end of the list.
        let firsts = (0..=ranks as u64).map(|rank| {
            // Ranks ascend, so the search continues from the last position.
            first += order[first..].partition_point(|&(of, _)| of.into() < rank);
            (first as u64).to_le_bytes()
        });
        let bytes = self.directory.rank_bytes;
        let firsts = self
            .out
            .items(firsts.map(|first| NumberBytes(first, bytes)))?;
        let text = |&(_, document): &(N, N)| ids.of(document.into() as usize);
        let mut end = 0;
        let ends = order.iter().map(|both| {
            end += text(both).len() as u64;
            end.to_le_bytes()
        });
        let ends = self.out.items(ends)?;
        let texts = self.out.items(order.iter().map(text))?;
        Ok([firsts, ends, texts])
    }

    fn directory_so_far(&self) -> StoredDirectory {
        StoredDirectory {
            offset: self.out.position() as u64,
            pages: self.out.checks.clone(),
            ..self.directory.clone()
        }
    }

    /// Writes the part after the tables, flushes the output, and returns it.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError::Incomplete`] if tables are missing, [`BuildError::Failed`] if one was written in part only, and the errors of the
    /// output.
    pub fn finish(mut self) -> Result<W, BuildError> {
        if self.is_partial {
            return Err(BuildError::Failed);
        }
        if self.directory.tables.len() < self.design.tables().len() {
            return Err(BuildError::Incomplete);
        }
        // Not part of a page, because the directory has its own check.
        let end = self.directory_so_far().to_bytes();
        let mut written = self.out.out.write_all(&end);
        written = written.and_then(|()| self.out.out.flush());
        written.map_err(BuildError::Write)?;
        Ok(self.out.out)
    }
}

/// Sorts pairs of a rank and a document, those of equal ranks by the texts of the documents; the texts are not moved.
fn sort_by_text<N: Copy + Ord + Into<u64>>(order: &mut [(N, N)], ids: IdTexts<'_>) {
    let text = |&(_, document): &(N, N)| ids.of(document.into() as usize);
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| text(a).cmp(text(b))));
}

impl StoredDirectory {
    /// Reads the result of [`IndexFileWriter::progress`]: the offset, and the directory that would be there.
    fn from_progress(progress: &[u8]) -> Result<Self, FileError> {
        let Some((offset, rest)) = progress.split_first_chunk::<8>() else {
            let offset = progress.len() as u64;
            return Err(FileError::Truncated { offset });
        };
        let offset = u64::from_le_bytes(*offset);
        Self::read_at(rest, offset)
    }

    /// Returns true if the tables are the first ones of a design.
    fn begins(&self, design: &Design) -> bool {
        let keys: Vec<TableKey> = self.tables.iter().map(|table| table.key).collect();
        (self.bits, self.radius, &self.family) == (design.bits(), design.radius(), design.family())
            && design.tables().starts_with(&keys)
    }
}

/// A number, cut to the bytes of a rank.
struct NumberBytes([u8; 8], RankBytes);

impl AsRef<[u8]> for NumberBytes {
    fn as_ref(&self) -> &[u8] {
        self.1.cut(&self.0)
    }
}

/// Writer of pages, which keeps their checks.
#[derive(Debug)]
struct PageWriter<W> {
    out: W,
    page: Vec<u8>,
    checks: PageChecks,
}

impl<W: Write> PageWriter<W> {
    fn position(&self) -> usize {
        self.checks.all().len() * PAGE + self.page.len()
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PAGE - self.page.len()));
            self.page.extend_from_slice(now);
            bytes = later;
            if self.page.len() == PAGE {
                self.out.write_all(&self.page)?;
                self.checks.push(&self.page);
                self.page.clear();
            }
        }
        Ok(())
    }

    /// Writes zeros up to a multiple of `unit`, which divides a page.
    fn pad(&mut self, unit: usize) -> io::Result<()> {
        let zeros = self.position().next_multiple_of(unit) - self.position();
        self.write(&[0; PAGE][..zeros])
    }

    fn section(&mut self, bytes: &[u8]) -> io::Result<Range<usize>> {
        self.items([bytes])
    }

    /// Writes a section of items of any size.
    fn items<T: AsRef<[u8]>>(
        &mut self,
        items: impl IntoIterator<Item = T>,
    ) -> io::Result<Range<usize>> {
        // In a mapped file, the lines of buckets are then cache lines.
        self.pad(HEAD)?;
        let start = self.position();
        for item in items {
            self.write(item.as_ref())?;
        }
        Ok(start..self.position())
    }
}
