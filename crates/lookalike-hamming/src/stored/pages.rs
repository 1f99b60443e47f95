//! The checks of the pages of a file, and its ids, which are read after the pages that hold them have been checked.

use super::super::file_error::{FileError, number};
use super::super::kernel::RankBytes;
use super::super::shared_bytes::SharedBytes;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::sync::OnceLock;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The check of each page of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageChecks(Vec<u64>);

impl PageChecks {
    /// Number of bytes of a page.
    pub const PAGE: usize = 1 << 16;

    /// Takes checks that were stored.
    pub fn new(checks: Vec<u64>) -> Self {
        Self(checks)
    }

    /// Returns the check of each page.
    pub fn all(&self) -> &[u64] {
        &self.0
    }

    /// Adds the check of the next page.
    pub fn push(&mut self, page: &[u8]) {
        // The seed is the number of the page, so a correct page in the wrong place fails, too.
        self.0.push(xxh3_64_with_seed(page, self.0.len() as u64));
    }

    /// Compares a page with its check.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::Damaged`] with the offset if it does not match.
    pub fn check_page(&self, page: usize, bytes: &[u8]) -> Result<(), FileError> {
        #[cfg(test)]
        super::tests::CHECKED_PAGES.set(super::tests::CHECKED_PAGES.get() + 1);
        if self.0.get(page) != Some(&xxh3_64_with_seed(bytes, page as u64)) {
            let offset = (page * Self::PAGE) as u64;
            let what = "these 65536 bytes do not match their checksum";
            return Err(FileError::Damaged { offset, what });
        }
        Ok(())
    }

    /// Checks the pages that a range of the file touches.
    ///
    /// # Errors
    ///
    /// As for [`PageChecks::check_page`].
    pub fn check(&self, whole: &[u8], range: &Range<usize>) -> Result<(), FileError> {
        let mut pages = range.start / Self::PAGE..range.end.div_ceil(Self::PAGE);
        pages.try_for_each(|page| {
            self.check_page(page, &whole[page * Self::PAGE..(page + 1) * Self::PAGE])
        })
    }
}

/// The bytes of a file whose pages have checks.
#[derive(Clone)]
pub struct CheckedFile {
    bytes: SharedBytes,
    checks: PageChecks,
    /// Set once every page was checked.
    verified: OnceLock<()>,
}

impl CheckedFile {
    /// Takes a file with the checks of all its pages. The bytes after these pages have other checks.
    pub fn new(bytes: SharedBytes, checks: PageChecks) -> Self {
        Self {
            bytes,
            checks,
            verified: OnceLock::new(),
        }
    }

    /// Takes the same file in other memory.
    #[must_use]
    pub fn moved(self, bytes: SharedBytes) -> Self {
        Self { bytes, ..self }
    }

    /// Returns the bytes of the whole file.
    pub fn whole(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    /// Checks the pages that a range touches, even if all were checked before.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::Damaged`] with the offset of the first page that does not match its checksum.
    pub fn check(&self, range: &Range<usize>) -> Result<(), FileError> {
        self.checks.check(self.whole(), range)
    }

    /// Checks every page.
    ///
    /// # Errors
    ///
    /// As for [`CheckedFile::check`].
    pub fn verify(&self) -> Result<(), FileError> {
        self.check(&(0..self.checks.all().len() * PageChecks::PAGE))?;
        self.verified.get_or_init(|| ());
        Ok(())
    }

    /// Checks every page by reading `file`, which must be at the start of the file that these bytes map. Touched pages of a mapping count as memory
    /// of the process, and [`CheckedFile::verify`] touches all of them.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if the file cannot be read, or a page does not match its checksum.
    pub fn verify_read(&self, file: &mut impl Read) -> Result<(), FileError> {
        let mut bytes = vec![0; PageChecks::PAGE];
        for page in 0..self.checks.all().len() {
            file.read_exact(&mut bytes)?;
            self.checks.check_page(page, &bytes)?;
        }
        self.verified.get_or_init(|| ());
        Ok(())
    }

    /// Returns a part of a section, after checking its pages unless all were checked before.
    fn part(&self, section: &Range<usize>, part: Range<usize>) -> Result<&[u8], FileError> {
        let inside = part.start <= part.end && part.end <= section.len();
        if !inside {
            return Err(outside(section));
        }
        let at = section.start + part.start..section.start + part.end;
        if self.verified.get().is_none() {
            self.check(&at)?;
        }
        Ok(&self.whole()[at])
    }

    /// Appends the ids of the entry at `rank` to `ids`, ascending. The sections are the number of the first id of each entry, and of the end (`width`
    /// bytes each); the end of each id (8 bytes each); the ids, back to back.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::Damaged`] with the offset if the bytes read do not match their checksum, or are no ids.
    pub fn ids<'a>(
        &'a self,
        sections: &[Range<usize>; 3],
        width: RankBytes,
        rank: usize,
        ids: &mut Vec<&'a str>,
    ) -> Result<(), FileError> {
        let [firsts, ends, texts] = sections;
        let width = width.get();
        // The number of the first id of this entry, and that of the next entry. Damaged numbers saturate, and `part` refuses them.
        let bounds = rank.saturating_mul(width)..rank.saturating_add(2).saturating_mul(width);
        let (first, end) = self.part(firsts, bounds)?.split_at(width);
        let [first, end] = [first, end].map(|at| number(at) as usize);
        // The first id begins at the end of the one before, unless there is none.
        let told = first.saturating_sub(1).saturating_mul(8)..end.saturating_mul(8);
        let mut told = self
            .part(ends, told)?
            .chunks_exact(8)
            .map(|end| number(end) as usize);
        let begin = match first {
            0 => 0,
            _ => told.next().unwrap_or(0),
        };
        // All at once, because each part is checked.
        let last = told.clone().next_back().unwrap_or(begin);
        let all = self.part(texts, begin..last)?;
        let mut start = begin;
        for end in told {
            let text = end
                .checked_sub(begin)
                .and_then(|end| all.get(start - begin..end));
            let text = text.ok_or_else(|| outside(texts))?;
            ids.push(std::str::from_utf8(text).map_err(|_| FileError::Damaged {
                offset: (texts.start + start) as u64,
                what: "an id is not UTF-8",
            })?);
            start = end;
        }
        Ok(())
    }
}

impl fmt::Debug for CheckedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("CheckedFile");
        shown.field("bytes", &self.whole().len());
        shown.finish_non_exhaustive()
    }
}

/// Returns the error for ids that are not where the file tells.
fn outside(section: &Range<usize>) -> FileError {
    let (offset, what) = (section.start as u64, "ids lie outside their section");
    FileError::Damaged { offset, what }
}
