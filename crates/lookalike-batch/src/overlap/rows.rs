//! Turns rows of units into lines of documents or servers, in the order of their names.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::collection::UnitView;
use super::settings::{ExactCopies, OverlapSettings};
use super::{RowSink, SharedCount};
use crate::error::BatchError;
use crate::observer::{JobObserver, check_cancelled};
use crate::spill::external_sort::ExternalSort;

/// One row of the results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OverlapRow<'a> {
    /// The name of the first unit, the smaller of the two.
    pub a: &'a str,
    /// The name of the second unit.
    pub b: &'a str,
    /// The chunking of the texts.
    pub chunking: &'a str,
    /// Number of distinct chunks that both have.
    pub shared: u32,
    /// Number of distinct chunks of `a`.
    pub chunks_a: u32,
    /// Number of distinct chunks of `b`.
    pub chunks_b: u32,
    /// Share of the chunks of `a` that `b` has.
    pub containment_a: f64,
    /// Share of the chunks of `b` that `a` has.
    pub containment_b: f64,
    /// Shared chunks divided by all chunks of both.
    pub resemblance: f64,
}

impl<'a> OverlapRow<'a> {
    pub(crate) fn new(
        names: [&'a str; 2],
        chunking: &'a str,
        shared: u32,
        chunks: [u32; 2],
    ) -> Self {
        // Units in rows share chunks, so both have some and nothing is divided by 0.
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

impl OverlapRow<'_> {
    /// Replaces `line` with the row as a line of JSON. The bytes are those of serde in less than half the time, because there are millions of rows.
    fn write_to(&self, line: &mut Vec<u8>) -> io::Result<()> {
        line.clear();
        for (before, text) in [
            (&b"{\"a\":"[..], self.a),
            (b",\"b\":", self.b),
            (b",\"chunking\":", self.chunking),
        ] {
            line.extend_from_slice(before);
            string(line, text)?;
        }
        for (before, count) in [
            (&b",\"shared\":"[..], self.shared),
            (b",\"chunks_a\":", self.chunks_a),
            (b",\"chunks_b\":", self.chunks_b),
        ] {
            line.extend_from_slice(before);
            serde_json::to_writer(&mut *line, &count)?;
        }
        for (before, share) in [
            (&b",\"containment_a\":"[..], self.containment_a),
            (b",\"containment_b\":", self.containment_b),
            (b",\"resemblance\":", self.resemblance),
        ] {
            line.extend_from_slice(before);
            serde_json::to_writer(&mut *line, &share)?;
        }
        line.extend_from_slice(b"}\n");
        Ok(())
    }
}

/// Appends a JSON string. Names rarely need escapes, and the check for that handles many bytes at once.
fn string(line: &mut Vec<u8>, text: &str) -> io::Result<()> {
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    // Without an early exit the compiler vectorizes the loop.
    if text.bytes().fold(true, |all, byte| all & plain(byte)) {
        line.push(b'"');
        line.extend_from_slice(text.as_bytes());
        line.push(b'"');
        return Ok(());
    }
    Ok(serde_json::to_writer(line, text)?)
}

/// Number of rows written at once.
const BATCH: usize = 4096;

/// Stage between an engine and the output.
pub(crate) struct RowWriter<'a> {
    pub(crate) view: UnitView<'a>,
    pub(crate) chunking: &'a str,
    /// Number of distinct chunks of each unit.
    pub(crate) sizes: &'a [u32],
    pub(crate) min_shared: u32,
    pub(crate) settings: &'a OverlapSettings,
    /// Bytes for sorting, if equal texts are listed one by one.
    pub(crate) budget: u64,
    pub(crate) folder: &'a Path,
    /// True if nothing else runs while rows are written, so that the observer can measure it.
    pub(crate) is_alone: bool,
}

impl RowWriter<'_> {
    /// Writes the rows that `engine` emits, passes each to `hear`, and returns the number of lines and the result of `engine`. The observer is told
    /// while rows are written.
    pub(crate) fn write<T>(
        &self,
        out: &mut dyn Write,
        path: &Path,
        hear: &mut dyn FnMut(SharedCount),
        observer: &dyn JobObserver,
        engine: impl FnOnce(&mut RowSink<'_>) -> Result<T, BatchError>,
    ) -> Result<(u64, T), BatchError> {
        let result = BatchError::result(path);
        let mut lines = 0_u64;
        let mut line = Vec::new();
        // Without copies each set is one document, and its rows are already in order.
        if self.settings.copies == ExactCopies::Listed && self.view.has_copies() {
            // Sets are ordered by their smallest ids, but their other documents are not, so rows of documents are sorted again.
            let (sort, counted) = self.expand(hear, observer, engine)?;
            sort.drain(|[a, b, shared]: [u32; 3]| {
                if lines.is_multiple_of(1 << 16) {
                    check_cancelled(observer).map_err(|_| BatchError::Cancelled)?;
                }
                lines += 1;
                self.row_of_documents(a, b, shared)
                    .write_to(&mut line)
                    .and_then(|()| out.write_all(&line))
                    .map_err(&result)
            })?;
            return Ok((lines, counted));
        }
        let mut flush = |batch: &mut Vec<SharedCount>| {
            // The engine asks between blocks of units, each of which may have millions of rows.
            check_cancelled(observer).map_err(|_| BatchError::Cancelled)?;
            self.tell_writing(observer, true);
            let done = batch.drain(..).try_for_each(|row| {
                hear(row);
                lines += 1;
                // Units are numbered by name, so the first name is the smaller.
                let names = [row.a, row.b].map(|unit| self.view.name(unit));
                let chunks = [row.a, row.b].map(|unit| self.sizes[unit as usize]);
                OverlapRow::new(names, self.chunking, row.shared, chunks)
                    .write_to(&mut line)
                    .and_then(|()| out.write_all(&line))
                    .map_err(&result)
            });
            self.tell_writing(observer, false);
            done
        };
        let mut batch = Vec::with_capacity(BATCH);
        let counted = engine(&mut |row| {
            if self.settings.is_contained_enough(row, self.sizes) {
                batch.push(row);
            }
            match batch.len() {
                BATCH => flush(&mut batch),
                _ => Ok(()),
            }
        })?;
        flush(&mut batch)?;
        Ok((lines, counted))
    }

    fn tell_writing(&self, observer: &dyn JobObserver, is_writing: bool) {
        if self.is_alone {
            observer.writing(is_writing);
        }
    }

    /// Expands rows of sets into rows of documents.
    fn expand<T>(
        &self,
        hear: &mut dyn FnMut(SharedCount),
        observer: &dyn JobObserver,
        engine: impl FnOnce(&mut RowSink<'_>) -> Result<T, BatchError>,
    ) -> Result<(ExternalSort<[u32; 3]>, T), BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let mut sort = ExternalSort::new(self.budget, self.folder);
        let mut pushed = 0_u64;
        let mut push = |a: u32, b: u32, shared: u32| {
            pushed += 1;
            // The engine asks between rows, but one set of equal texts may have very many pairs.
            if pushed.is_multiple_of(1 << 16) {
                check_cancelled(observer).map_err(|_| BatchError::Cancelled)?;
            }
            sort.push([a.min(b), a.max(b), shared]).map_err(&temporary)
        };
        let members = |set| self.view.collection.exact.members(set);
        let counted = engine(&mut |row| {
            if !self.settings.is_contained_enough(row, self.sizes) {
                return Ok(());
            }
            hear(row);
            for &a in members(row.a) {
                members(row.b)
                    .iter()
                    .try_for_each(|&b| push(a, b, row.shared))?;
            }
            Ok(())
        })?;
        // Documents with equal texts share all chunks. They are one unit, so no engine counts their pairs.
        for (set, &size) in self
            .sizes
            .iter()
            .enumerate()
            .filter(|(_, size)| **size >= self.min_shared)
        {
            let members = members(set as u32);
            for (i, &a) in members.iter().enumerate() {
                // Their containment is 1, so no other condition applies.
                members[i + 1..]
                    .iter()
                    .try_for_each(|&b| push(a, b, size))?;
            }
        }
        Ok((sort, counted))
    }

    fn row_of_documents(&self, a: u32, b: u32, shared: u32) -> OverlapRow<'_> {
        let collection = self.view.collection;
        let names = [a, b].map(|document| collection.documents.id(document as usize));
        let chunks = [a, b].map(|document| {
            let set = collection.set_of(document);
            self.sizes[set.expect("documents in rows have a text") as usize]
        });
        OverlapRow::new(names, self.chunking, shared, chunks)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_row_is_written_as_serde_writes_it(
            a in any::<String>(),
            b in "[ -~]{0,40}",
            chunks in (1_u32..9_000, 1_u32..9_000),
            shared in any::<u32>(),
        ) {
            let shared = shared % (chunks.0.min(chunks.1) + 1);
            let row = OverlapRow::new([&a, &b], "lines:2", shared, [chunks.0, chunks.1]);
            let mut line = b"what was there".to_vec();
            row.write_to(&mut line).unwrap();
            prop_assert_eq!(line, format!("{}\n", serde_json::to_string(&row).unwrap()).into_bytes());
        }
    }
}
