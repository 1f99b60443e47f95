//! The distinct sketches of a collection.

use std::cmp::Ordering;
use std::convert::Infallible;

use bytemuck::pod_read_unaligned;

use crate::fingerprints::files::SketchShape;
use crate::parallel::column;
use crate::parallel_sort::{KeyedNumber, sort_unequal_by};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::trim_periodically;
use crate::spill::texts_in_order::texts_in_order;

/// Distinct sketches in ascending order of their words.
#[derive(Debug)]
pub(crate) struct DistinctSketches {
    pub(crate) shape: SketchShape,
    words: TableColumn<u64>,
}

/// Distinct sketches, with the documents that have each.
pub(crate) struct GroupedSketches {
    pub(crate) distinct: DistinctSketches,
    /// Documents ordered by sketch; those of one sketch are in the requested order.
    order: TableColumn<u32>,
    /// Place of each sketch's first document in `order`, and the end of the last.
    starts: TableColumn<u32>,
}

/// Distinct sketches, with the position of each document's sketch.
pub(crate) struct SketchPositions {
    pub(crate) distinct: DistinctSketches,
    /// Position of the sketch of each document.
    pub(crate) of_documents: TableColumn<u32>,
    /// Digest of the sketches of all documents, in order.
    pub(crate) digest: u64,
}

impl SketchPositions {
    /// Returns the bytes of the tables.
    pub(crate) fn bytes(&self) -> u64 {
        self.distinct.bytes() + size_of_val(self.of_documents.as_slice()) as u64
    }
}

impl DistinctSketches {
    pub(crate) fn len(&self) -> usize {
        self.words.len() / self.shape.words()
    }

    /// Returns the sketch at a position.
    pub(crate) fn sketch(&self, at: u32) -> &[u64] {
        row(&self.words, self.shape, at)
    }

    /// Returns the number of places in which two sketches differ.
    pub(crate) fn different_places(&self, a: u32, b: u32) -> u32 {
        let equal = self.shape.equal_places(self.sketch(a), self.sketch(b));
        (self.shape.places - equal) as u32
    }

    /// Returns the bytes of all sketches.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(self.words.as_slice()) as u64
    }
}

fn row(words: &[u64], shape: SketchShape, at: u32) -> &[u64] {
    let length = shape.words();
    &words[at as usize * length..][..length]
}

impl GroupedSketches {
    /// Groups the sketches of fewer than 2^32 documents, given by their words. `compare` orders documents with the same sketch and returns `Equal`
    /// only for a document and itself.
    pub(crate) fn new(
        shape: SketchShape,
        words: TableColumn<u64>,
        threads: usize,
        compare: impl Fn(u32, u32) -> Ordering + Sync,
    ) -> Self {
        let documents = words.len() / shape.words();
        let sketch = |at: u32| row(&words, shape, at);
        // Most sketches differ in their first words and need no further lookup.
        let mut keyed = column(documents, threads, |at| {
            KeyedNumber::new(sketch(at as u32)[0], at as u32)
        });
        sort_unequal_by(&mut keyed, threads, |a, b| {
            let looked_up = || {
                trim_periodically();
                sketch(a.number).cmp(sketch(b.number))
            };
            a.key()
                .cmp(&b.key())
                .then_with(looked_up)
                .then_with(|| compare(a.number, b.number))
        });
        let (mut firsts, mut starts) = (TableColumn::new(), TableColumn::new());
        let mut end = 0;
        // The key is only the first word, so equal keys prove nothing.
        for group in
            keyed.chunk_by(|a, b| a.key() == b.key() && sketch(a.number) == sketch(b.number))
        {
            firsts.push(group[0].number);
            starts.push(end);
            end += group.len() as u32;
        }
        starts.push(end);
        let order = keyed.iter().map(|keyed| keyed.number).collect();
        // Twelve bytes a document, before the words are copied.
        drop(keyed);
        let mut distinct = TableColumn::with_capacity(firsts.len() * shape.words());
        // Groups are in the order of sketches and words in that of documents, which may be on disk.
        let bytes = |at| bytemuck::cast_slice(sketch(at as u32));
        let Ok(()) = texts_in_order(&firsts, bytes, |sketch| {
            // The copies that `texts_in_order` passes are bytes without alignment.
            distinct.extend(sketch.chunks_exact(8).map(pod_read_unaligned::<u64>));
            Ok::<_, Infallible>(())
        });
        Self {
            distinct: DistinctSketches {
                shape,
                words: distinct,
            },
            order,
            starts,
        }
    }

    /// Converts the groups into positions by document. `digest` is that of all their sketches.
    pub(crate) fn into_positions(self, digest: u64) -> SketchPositions {
        let mut of_documents = TableColumn::zeroed(self.order.len());
        for at in 0..self.distinct.len() as u32 {
            for &document in self.documents(at) {
                of_documents[document as usize] = at;
            }
        }
        SketchPositions {
            distinct: self.distinct,
            of_documents,
            digest,
        }
    }

    /// Returns the documents of the sketch at a position.
    pub(crate) fn documents(&self, at: u32) -> &[u32] {
        let at = at as usize;
        &self.order[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}
