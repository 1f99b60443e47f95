//! Groups of ranks on disk, for jobs whose groups do not fit in memory. They are read sequentially, never by number.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::spill::partitions::{PartitionedFile, by_parts};

/// Number of words that are read or written at a time.
const PIECE: usize = 1 << 15;

/// Number of words of a group before its members: the number of members, and of strong members.
const HEAD: usize = 2;

/// Members of a group: strong ones, then weak ones, both ascending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupMembers<'g> {
    pub(crate) ranks: &'g [u32],
    /// Number of strong members.
    pub(crate) strong: usize,
}

impl<'g> GroupMembers<'g> {
    /// Returns the strong members and the weak ones.
    #[inline]
    pub(crate) fn halves(self) -> [&'g [u32]; 2] {
        let (strong, weak) = self.ranks.split_at(self.strong);
        [strong, weak]
    }
}

/// Groups in a temporary file, 4 bytes per posting and 8 per group.
pub(crate) struct GroupFile {
    parts: PartitionedFile<u32>,
    /// Number of members of the largest group.
    largest: AtomicUsize,
    /// Number of groups that were left out because they have too many members.
    pub(crate) left_out: u64,
}

impl GroupFile {
    /// Creates an unnamed file in `folder`.
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            // Without a budget: the memory is for the tables that are built from the groups.
            parts: PartitionedFile::new(folder, 0)?,
            largest: AtomicUsize::new(0),
            left_out: 0,
        })
    }

    /// Returns a writer that appends to one of [`PARTS`](crate::spill::partitions::PARTS) partitions.
    pub(crate) fn writer(&self, part: usize) -> GroupWriter<'_> {
        GroupWriter {
            file: self,
            part,
            words: Vec::new(),
        }
    }

    /// Calls `visit` with the groups of a partition.
    pub(crate) fn for_each(
        &self,
        part: usize,
        mut visit: impl FnMut(GroupMembers<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        // Words of a group whose end is in a later piece.
        let mut begun: Vec<u32> = Vec::new();
        self.parts.pieces(part, PIECE, &mut |piece: &[u32]| {
            let mut rest = piece;
            while let Some(&first) = rest.first() {
                // Either is the first word of a group, its number of members: of the group that has begun, or of the one that begins here.
                let words = HEAD + *begun.first().unwrap_or(&first) as usize;
                // Nearly all groups lie within a piece and are visited there, without a copy.
                if begun.is_empty() && words <= rest.len() {
                    visit(group(&rest[..words]))?;
                    rest = &rest[words..];
                    continue;
                }
                let (more, others) = rest.split_at(rest.len().min(words - begun.len()));
                begun.extend_from_slice(more);
                rest = others;
                if begun.len() == words {
                    visit(group(&begun))?;
                    begun.clear();
                }
            }
            io::Result::Ok(())
        })
    }

    /// Copies the groups to a new file, with other members: `change` gets the members of each group and returns how many of the remaining ones are
    /// strong, or `None` to drop the group.
    pub(crate) fn changed(
        &self,
        folder: &Path,
        threads: usize,
        change: impl Fn(&mut [u32]) -> Option<usize> + Sync,
    ) -> io::Result<Self> {
        let mut changed = Self::new(folder)?;
        changed.left_out = self.left_out;
        by_parts(threads, Vec::new, |members, part| {
            let mut writer = changed.writer(part);
            self.for_each(part, |group| {
                members.clear();
                members.extend_from_slice(group.ranks);
                let strong = change(members);
                let ranks = &members[..];
                let group = strong.map(|strong| GroupMembers { ranks, strong });
                group.map_or(Ok(()), |group| writer.push(group))
            })?;
            writer.finish()
        })?;
        Ok(changed)
    }

    /// Returns the number of bytes of memory that `threads` threads need to read the file.
    pub(crate) fn reading_bytes(&self, threads: usize) -> u64 {
        let largest = HEAD + self.largest.load(Ordering::Relaxed);
        // A growing vector may have twice the capacity.
        (threads * (PIECE + 2 * largest) * size_of::<u32>()) as u64
    }
}

/// Appends groups to a partition.
pub(crate) struct GroupWriter<'f> {
    file: &'f GroupFile,
    part: usize,
    words: Vec<u32>,
}

impl GroupWriter<'_> {
    pub(crate) fn push(&mut self, group: GroupMembers<'_>) -> io::Result<()> {
        let GroupMembers { ranks, strong } = group;
        self.file.largest.fetch_max(ranks.len(), Ordering::Relaxed);
        self.words.extend([ranks.len() as u32, strong as u32]);
        self.words.extend_from_slice(ranks);
        match self.words.len() < PIECE {
            true => Ok(()),
            false => self.file.parts.append(self.part, &mut self.words),
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.file.parts.append(self.part, &mut self.words)
    }
}

/// Reads a group from its words.
fn group(words: &[u32]) -> GroupMembers<'_> {
    GroupMembers {
        ranks: &words[HEAD..],
        strong: words[1] as usize,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn groups_come_back_whole_wherever_pieces_end(
            sizes in prop::collection::vec(prop_oneof![2..9_usize, PIECE - 9..PIECE + 9, 3 * PIECE..3 * PIECE + 4], 0..12),
            at_once in 1..5_usize,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let file = GroupFile::new(folder.path()).unwrap();
            let groups: Vec<Vec<u32>> = (0..).zip(&sizes).map(|(first, &size)| (first..first + size as u32).collect()).collect();
            for groups in groups.chunks(at_once) {
                let mut writer = file.writer(7);
                groups.iter().for_each(|ranks| writer.push(GroupMembers { ranks, strong: ranks.len() / 2 }).unwrap());
                writer.finish().unwrap();
            }
            let mut found = Vec::new();
            file.for_each(7, |group| {
                found.push((group.ranks.to_vec(), group.strong));
                Ok(())
            }).unwrap();
            let expected: Vec<_> = groups.into_iter().map(|ranks| (ranks.clone(), ranks.len() / 2)).collect();
            prop_assert_eq!(found, expected);
            file.for_each(8, |_| panic!("nothing is there")).unwrap();
        }
    }
}
