//! The different sketches of a collection, each once.

use std::cmp::Ordering;
use std::convert::Infallible;

use bytemuck::pod_read_unaligned;

use crate::fingerprints::files::SketchShape;
use crate::parallel::column;
use crate::parallel_sort::{KeyedNumber, sort_unequal_by};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::trim_after_looks;
use crate::spill::texts_in_order::texts_in_order;

/// Different sketches in ascending order of their words.
#[derive(Debug)]
pub(crate) struct DistinctSketches {
    shape: SketchShape,
    words: TableColumn<u64>,
}

/// Different sketches, and which documents have each.
pub(crate) struct GroupedSketches {
    pub(crate) distinct: DistinctSketches,
    /// Documents by their sketches, those of one sketch in the order that was asked for.
    order: TableColumn<u32>,
    /// Place of the first document of each sketch, and the end.
    starts: TableColumn<u32>,
}

/// Different sketches, and which of them each document has.
pub(crate) struct SketchPositions {
    pub(crate) distinct: DistinctSketches,
    /// The position of the sketch of each document.
    pub(crate) of_documents: TableColumn<u32>,
    /// Digest of the sketches of all documents in their order.
    pub(crate) digest: u64,
}

impl SketchPositions {
    /// Bytes of tables.
    pub(crate) fn bytes(&self) -> u64 {
        self.distinct.bytes() + size_of_val(self.of_documents.as_slice()) as u64
    }
}

impl DistinctSketches {
    /// The shape of all.
    pub(crate) fn shape(&self) -> SketchShape {
        self.shape
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len() / self.shape.words()
    }

    /// The sketch at a position.
    pub(crate) fn sketch(&self, at: u32) -> &[u64] {
        row(&self.words, self.shape, at)
    }

    /// Number of places in which two of them differ.
    pub(crate) fn different_places(&self, a: u32, b: u32) -> u32 {
        let equal = self.shape.equal_places(self.sketch(a), self.sketch(b));
        (self.shape.places - equal) as u32
    }

    /// Bytes of all.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(self.words.as_slice()) as u64
    }
}

fn row(words: &[u64], shape: SketchShape, at: u32) -> &[u64] {
    let length = shape.words();
    &words[at as usize * length..][..length]
}

impl GroupedSketches {
    /// Takes the words of the sketches of fewer than 2^32 documents; `compare` orders documents of one sketch, and says `Equal` of none
    /// but a document and itself.
    pub(crate) fn new(
        shape: SketchShape,
        words: TableColumn<u64>,
        threads: usize,
        compare: impl Fn(u32, u32) -> Ordering + Sync,
    ) -> Self {
        let documents = words.len() / shape.words();
        let sketch = |at: u32| row(&words, shape, at);
        // Most differ in their first words, and none of these is looked up again.
        let mut keyed = column(documents, threads, |at| {
            KeyedNumber::new(sketch(at as u32)[0], at as u32)
        });
        sort_unequal_by(&mut keyed, threads, |a, b| {
            let looked_up = || {
                trim_after_looks();
                sketch(a.number).cmp(sketch(b.number))
            };
            a.key()
                .cmp(&b.key())
                .then_with(looked_up)
                .then_with(|| compare(a.number, b.number))
        });
        let (mut firsts, mut starts) = (TableColumn::new(), TableColumn::new());
        let mut end = 0;
        for group in
            keyed.chunk_by(|a, b| a.key() == b.key() && sketch(a.number) == sketch(b.number))
        {
            firsts.push(group[0].number);
            starts.push(end);
            end += group.len() as u32;
        }
        starts.push(end);
        let order = keyed.iter().map(|keyed| keyed.number).collect();
        drop(keyed);
        let mut distinct = TableColumn::with_capacity(firsts.len() * shape.words());
        let bytes = |at| bytemuck::cast_slice(sketch(at as u32));
        let Ok(()) = texts_in_order(&firsts, bytes, |sketch| {
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

    /// The same by documents, with the digest of all their sketches.
    pub(crate) fn by_documents(self, digest: u64) -> SketchPositions {
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

    /// Documents of the sketch at a position.
    pub(crate) fn documents(&self, at: u32) -> &[u32] {
        let at = at as usize;
        &self.order[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}
