//! The directory of an index file: the place of each section, and the check of every page.

use super::super::cost::neighbours;
use super::super::family::{BlockGroup, Family};
use super::super::file_error::{FileError, number};
use super::super::index::MAX_PROBES;
use super::super::kernel::RankBytes;
use super::super::layout::Layout;
use super::super::table_key::TableKey;
use super::{HEAD, PAGE, PageChecks, TRAILER};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Everything that is known about the sections of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredDirectory {
    /// Start of the directory, a multiple of [`PAGE`].
    pub(super) offset: u64,
    pub(super) bits: u32,
    pub(super) radius: u32,
    pub(super) layout: Layout,
    /// Bytes of ranks, and of numbers of documents.
    pub(super) rank_bytes: RankBytes,
    pub(super) family: Family,
    pub(super) scheme: Option<u64>,
    pub(super) documents: u64,
    pub(super) distinct: u64,
    pub(super) tables: Vec<StoredTable>,
    pub(super) ids: Option<[Range<usize>; 3]>,
    pub(super) pages: PageChecks,
}

/// One table of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredTable {
    pub(super) key: TableKey,
    pub(super) address: u128,
    /// Unit of the positions in the overflow, in bytes.
    pub(super) unit: usize,
    pub(super) sections: [Range<usize>; 3],
}

impl StoredDirectory {
    /// Returns the directory and the trailer that follows it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let numbers = self.numbers();
        let mut bytes: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        let check = xxh3_64(&bytes);
        let mut trailer = Vec::with_capacity(TRAILER);
        for number in [self.offset, numbers.len() as u64, check] {
            trailer.extend_from_slice(&number.to_le_bytes());
        }
        // It has its own check, because it is read first: it tells where the directory begins.
        trailer.extend_from_slice(&xxh3_64(&trailer).to_le_bytes());
        bytes.extend_from_slice(&trailer);
        bytes
    }

    fn numbers(&self) -> Vec<u64> {
        // Only 64-bit numbers: no alignment, no padding, one parser.
        let (tag, family) = family_numbers(&self.family);
        let mut numbers = vec![self.bits.into(), self.radius.into(), self.layout as u64];
        numbers.push(self.rank_bytes.get() as u64);
        numbers.extend([tag, family.len() as u64]);
        numbers.extend(family);
        numbers.extend([self.scheme.is_some().into(), self.scheme.unwrap_or(0)]);
        numbers.extend([self.documents, self.distinct, self.tables.len() as u64]);
        for table in &self.tables {
            for mask in [table.key.mask, table.address] {
                numbers.extend([mask as u64, (mask >> 64) as u64]);
            }
            numbers.extend([table.key.budget.into(), table.unit as u64]);
            numbers.extend(table.sections.iter().flat_map(place));
        }
        numbers.push(self.ids.is_some().into());
        numbers.extend(self.ids.iter().flatten().flat_map(place));
        numbers.push(self.pages.all().len() as u64);
        numbers.extend(self.pages.all());
        numbers
    }

    /// Reads and checks the directory of a whole file.
    pub(super) fn read(whole: &[u8]) -> Result<Self, FileError> {
        let length = whole.len() as u64;
        if whole.len() < HEAD + TRAILER {
            return Err(FileError::Truncated { offset: length });
        }
        let trailer = &whole[whole.len() - TRAILER..];
        let offset = number(&trailer[..8]);
        if xxh3_64(&trailer[..24]) != number(&trailer[24..]) {
            return Err(FileError::Damaged {
                offset: length - TRAILER as u64,
                what: "the end of the file is missing or does not match its checksum",
            });
        }
        // Only now is it trusted: the bytes at the end of a file that is cut off are no offset.
        if offset > length {
            return Err(FileError::Truncated { offset: length });
        }
        Self::read_at(&whole[offset as usize..], offset)
    }

    /// Reads and checks a directory and its trailer, which are at `offset` of a file.
    pub(super) fn read_at(bytes: &[u8], offset: u64) -> Result<Self, FileError> {
        let wrong = |what| FileError::Damaged { offset, what };
        let cut = FileError::Truncated {
            offset: offset + bytes.len() as u64,
        };
        let Some((bytes, trailer)) = bytes.split_last_chunk::<TRAILER>() else {
            return Err(cut);
        };
        let told = [0, 8, 16].map(|at| number(&trailer[at..at + 8]));
        // A directory contains its own position: one that was moved is refused.
        if told[0] != offset || told[1].checked_mul(8) != Some(bytes.len() as u64) {
            return Err(cut);
        }
        if xxh3_64(bytes) != told[2] || xxh3_64(&trailer[..24]) != number(&trailer[24..]) {
            return Err(wrong("the directory does not match its checksum"));
        }
        let numbers: Vec<u64> = bytes.chunks_exact(8).map(number).collect();
        let parsed = Self::parse(&mut numbers.into_iter(), offset);
        parsed.ok_or(wrong("the directory is inconsistent"))
    }

    fn parse(numbers: &mut impl Iterator<Item = u64>, offset: u64) -> Option<Self> {
        let bits = u32::try_from(numbers.next()?).ok()?;
        let radius = u32::try_from(numbers.next()?).ok()?;
        let number = numbers.next()?;
        let mut layouts = Layout::ALL.into_iter();
        let layout = layouts.find(|&layout| layout as u64 == number)?;
        let rank_bytes = RankBytes::new(numbers.next()?)?;
        let family = read_family(numbers)?;
        let known = numbers.next()? == 1;
        let scheme = Some(numbers.next()?).filter(|_| known);
        let (documents, distinct) = (numbers.next()?, numbers.next()?);
        let count = numbers.next()?;
        // If the count is too large, this ends with the numbers.
        let tables = (0..count).map(|_| read_table(numbers, offset));
        let tables = tables.collect::<Option<Vec<_>>>()?;
        are_probes_bounded(&tables, offset).then_some(())?;
        let ids = match numbers.next()? {
            0 => None,
            _ => Some(read_places(numbers, offset)?),
        };
        let pages = numbers.next()?;
        // Collect the numbers that exist, so that a count that is too large allocates nothing.
        let pages: Vec<u64> = numbers.by_ref().take(pages as usize).collect();
        // Every byte before the directory is under a check.
        let whole = pages.len() as u64 * PAGE as u64 == offset && numbers.next().is_none();
        whole.then_some(Self {
            offset,
            bits,
            radius,
            layout,
            rank_bytes,
            family,
            scheme,
            documents,
            distinct,
            tables,
            ids,
            pages: PageChecks::new(pages),
        })
    }
}

/// Returns offset and length of a section.
fn place(section: &Range<usize>) -> [u64; 2] {
    [section.start as u64, section.len() as u64]
}

fn read_places(numbers: &mut impl Iterator<Item = u64>, limit: u64) -> Option<[Range<usize>; 3]> {
    let mut place = || {
        let (start, length) = (numbers.next()?, numbers.next()?);
        // Sections come before the directory.
        let end = start.checked_add(length).filter(|&end| end <= limit)?;
        Some(start as usize..end as usize)
    };
    Some([place()?, place()?, place()?])
}

fn read_table(numbers: &mut impl Iterator<Item = u64>, limit: u64) -> Option<StoredTable> {
    let mut mask = || {
        let (low, high) = (numbers.next()?, numbers.next()?);
        Some(u128::from(high) << 64 | u128::from(low))
    };
    let (mask, address) = (mask()?, mask()?);
    let budget = u32::try_from(numbers.next()?).ok()?;
    let unit = usize::try_from(numbers.next()?).ok()?;
    // Probes only flip bits of the key: with an address beyond it they would miss codes. Bucket numbers have 32 bits.
    let small = address.count_ones() <= 32 && address & !mask == 0;
    Some(StoredTable {
        key: TableKey { mask, budget },
        address: Some(address).filter(|_| small)?,
        unit,
        sections: read_places(numbers, limit)?,
    })
}

/// Returns true if the masks of all tables fit into memory: a few bytes of a file may ask for any number of them.
fn are_probes_bounded(tables: &[StoredTable], file_bytes: u64) -> bool {
    let probes = |table: &StoredTable| neighbours(table.address.count_ones(), table.key.budget);
    let all = tables.iter().map(probes).fold(0, u64::saturating_add);
    // No table has more probes than buckets, so tables with sections of their own have hardly more than the file has bytes.
    tables.iter().all(|table| probes(table) <= MAX_PROBES) && all <= file_bytes.max(64 * MAX_PROBES)
}

fn family_numbers(family: &Family) -> (u64, Vec<u64>) {
    let of_group = |group: &BlockGroup| [group.errors, group.blocks, group.chosen].map(u64::from);
    match family {
        Family::Scan => (0, Vec::new()),
        Family::Groups(groups) => (1, groups.iter().flat_map(of_group).collect()),
        Family::Nested(levels) => (2, levels.iter().map(|&level| level.into()).collect()),
        Family::Biplane => (3, Vec::new()),
        Family::Affine => (4, Vec::new()),
        Family::Projective => (5, Vec::new()),
    }
}

fn read_family(numbers: &mut impl Iterator<Item = u64>) -> Option<Family> {
    let (tag, count) = (numbers.next()?, numbers.next()?);
    let told = numbers.by_ref().take(count as usize).map(u32::try_from);
    let told: Vec<u32> = told.collect::<Result<_, _>>().ok()?;
    let groups = told.chunks_exact(3).map(|group| BlockGroup {
        errors: group[0],
        blocks: group[1],
        chosen: group[2],
    });
    match (tag, told.len()) {
        (0, 0) => Some(Family::Scan),
        (1, _) if told.len().is_multiple_of(3) => {
            let groups: Vec<BlockGroup> = groups.collect();
            let are_well_formed = groups.iter().all(BlockGroup::is_well_formed);
            are_well_formed.then_some(Family::Groups(groups))
        }
        (2, _) => Some(Family::Nested(told)),
        (3, 0) => Some(Family::Biplane),
        (4, 0) => Some(Family::Affine),
        (5, 0) => Some(Family::Projective),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(family: Family, budget: u32, tables: usize) -> Result<StoredDirectory, FileError> {
        let mask = u128::from(u32::MAX);
        let table = StoredTable {
            key: TableKey { mask, budget },
            address: mask,
            unit: 0,
            sections: [0..0, 0..0, 0..0],
        };
        let directory = StoredDirectory {
            offset: PAGE as u64,
            bits: 64,
            radius: 3,
            layout: Layout::Packed,
            rank_bytes: RankBytes::default(),
            family,
            scheme: None,
            documents: 0,
            distinct: 0,
            tables: vec![table; tables],
            ids: None,
            pages: PageChecks::new(vec![0]),
        };
        StoredDirectory::read_at(&directory.to_bytes(), PAGE as u64)
    }

    #[test]
    fn a_crafted_budget_asked_for_more_masks_than_there_is_memory() {
        let family = || Family::budgets(&[1, 1]);
        read(family(), 3, 2).expect("5489 masks a table");
        for (budget, tables) in [(8, 1), (32, 1), (5, 1000)] {
            assert!(read(family(), budget, tables).is_err(), "{budget} {tables}");
        }
    }

    #[test]
    fn ranks_of_an_impossible_width_are_refused() {
        let directory = StoredDirectory {
            rank_bytes: RankBytes::of_count(1 << 50),
            ..StoredDirectory::read_at(
                &read(Family::Scan, 0, 1).expect("a directory").to_bytes(),
                PAGE as u64,
            )
            .expect("the same")
        };
        let bytes = directory.to_bytes();
        let found = StoredDirectory::read_at(&bytes, PAGE as u64).expect("seven bytes");
        assert_eq!(found, directory);
        let end = bytes.len() - TRAILER;
        for width in 0..=u8::MAX {
            let mut bytes = bytes.clone();
            // The fourth number, with all checks computed again.
            bytes[24] = width;
            let check = xxh3_64(&bytes[..end]).to_le_bytes();
            bytes[end + 16..end + 24].copy_from_slice(&check);
            let check = xxh3_64(&bytes[end..end + 24]).to_le_bytes();
            bytes[end + 24..].copy_from_slice(&check);
            let found = StoredDirectory::read_at(&bytes, PAGE as u64);
            assert_eq!(found.is_ok(), (4..=8).contains(&width), "{width}");
        }
    }

    #[test]
    fn a_crafted_family_without_blocks_divided_by_zero() {
        let group = |errors, blocks, chosen| BlockGroup {
            errors,
            blocks,
            chosen,
        };
        for odd in [
            group(3, 0, 0),
            group(3, 0, 1),
            group(1, 2, 3),
            group(1, 2, 0),
        ] {
            let family = Family::Groups(vec![group(1, 1, 1), odd]);
            assert!(read(family, 0, 1).is_err(), "{odd:?}");
        }
        let refused = crate::Design::new(Family::block_choice(0, 3), 64, 3);
        assert!(refused.is_err());
    }
}
