//! Rows of units to lines of documents or servers, in the order of their names.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::Row;
use super::collection::View;
use super::external_sort::ExternalSort;
use super::settings::ExactCopies;
use crate::error::BatchError;
use crate::lines::write_line;

/// One row of the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverlapRow<'a> {
    /// The smaller name.
    pub a: &'a str,
    /// The larger name.
    pub b: &'a str,
    /// How the texts were cut.
    pub chunking: &'a str,
    /// Distinct chunks that both have.
    pub shared: u32,
    /// Distinct chunks of `a`.
    pub chunks_a: u32,
    /// Distinct chunks of `b`.
    pub chunks_b: u32,
    /// Share of the chunks of `a` that `b` has.
    pub containment_a: f64,
    /// Share of the chunks of `b` that `a` has.
    pub containment_b: f64,
    /// Shared chunks by all chunks of the two.
    pub resemblance: f64,
}

impl<'a> OverlapRow<'a> {
    pub(crate) fn new(
        names: [&'a str; 2],
        chunking: &'a str,
        shared: u32,
        chunks: [u32; 2],
    ) -> Self {
        let share = |part: u32, whole: u64| f64::from(part) / whole as f64;
        let [chunks_a, chunks_b] = chunks;
        Self {
            a: names[0],
            b: names[1],
            chunking,
            shared,
            chunks_a,
            chunks_b,
            containment_a: share(shared, u64::from(chunks_a)),
            containment_b: share(shared, u64::from(chunks_b)),
            resemblance: share(
                shared,
                u64::from(chunks_a) + u64::from(chunks_b) - u64::from(shared),
            ),
        }
    }
}

/// What is between an engine and the file.
pub(crate) struct RowWriter<'a> {
    pub(crate) view: View<'a>,
    pub(crate) chunking: &'a str,
    /// Distinct chunks of each unit.
    pub(crate) sizes: &'a [u32],
    pub(crate) min_shared: u32,
    pub(crate) min_containment: f64,
    pub(crate) copies: ExactCopies,
    /// Bytes for sorting, where equal texts are listed one by one.
    pub(crate) budget: u64,
    pub(crate) folder: &'a Path,
}

/// Writing into `out` fails elsewhere than sorting.
enum Failure {
    Here(io::Error),
    There(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Here(error)
    }
}

impl RowWriter<'_> {
    /// Whether a pair is contained enough.
    pub(crate) fn wants(&self, row: &Row) -> bool {
        let smaller = self.sizes[row.a as usize].min(self.sizes[row.b as usize]);
        f64::from(row.shared) / f64::from(smaller) >= self.min_containment
    }

    /// Writes what `engine` hands over; the number of lines.
    pub(crate) fn write(
        &self,
        out: &mut dyn Write,
        path: &Path,
        engine: impl FnOnce(&mut dyn FnMut(Row) -> Result<(), BatchError>) -> Result<(), BatchError>,
    ) -> Result<u64, BatchError> {
        let result = BatchError::result(path);
        let mut lines = 0;
        if self.copies == ExactCopies::Listed && self.view.has_copies() {
            let sort = self.expand(engine)?;
            let done = sort.drain(|[a, b, shared]: [u32; 3]| {
                lines += 1;
                self.line_of_documents(out, a, b, shared)
                    .map_err(Failure::There)
            });
            done.map_err(|failure| match failure {
                Failure::Here(error) => BatchError::temporary(self.folder)(error),
                Failure::There(error) => result(error),
            })?;
            return Ok(lines);
        }
        engine(&mut |row| {
            if !self.wants(&row) {
                return Ok(());
            }
            lines += 1;
            let names = [row.a, row.b].map(|unit| self.view.name(unit));
            let chunks = [row.a, row.b].map(|unit| self.sizes[unit as usize]);
            write_line(
                out,
                &OverlapRow::new(names, self.chunking, row.shared, chunks),
            )
            .map_err(&result)
        })?;
        Ok(lines)
    }

    /// Rows of sets to rows of documents, by their ranks.
    fn expand(
        &self,
        engine: impl FnOnce(&mut dyn FnMut(Row) -> Result<(), BatchError>) -> Result<(), BatchError>,
    ) -> Result<ExternalSort<[u32; 3]>, BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let mut sort = ExternalSort::new(self.budget, self.folder);
        let mut push = |a: u32, b: u32, shared: u32| {
            sort.push([a.min(b), a.max(b), shared]).map_err(&temporary)
        };
        engine(&mut |row| {
            if !self.wants(&row) {
                return Ok(());
            }
            for a in self.view.collection.ranks_of_set(row.a) {
                self.view
                    .collection
                    .ranks_of_set(row.b)
                    .try_for_each(|b| push(a, b, row.shared))?;
            }
            Ok(())
        })?;
        for (set, &size) in self
            .sizes
            .iter()
            .enumerate()
            .filter(|(_, size)| **size >= self.min_shared)
        {
            let members: Vec<u32> = self.view.collection.ranks_of_set(set as u32).collect();
            for (i, &a) in members.iter().enumerate() {
                members[i + 1..]
                    .iter()
                    .try_for_each(|&b| push(a, b, size))?;
            }
        }
        Ok(sort)
    }

    fn line_of_documents(
        &self,
        out: &mut dyn Write,
        a: u32,
        b: u32,
        shared: u32,
    ) -> io::Result<()> {
        let ends = [a, b].map(|rank| self.view.collection.document_at(rank));
        let names = ends.map(|(id, _)| id);
        let chunks = ends.map(|(_, set)| self.sizes[set as usize]);
        write_line(out, &OverlapRow::new(names, self.chunking, shared, chunks))
    }
}
