//! The different sketches of a collection, each once.

use std::cmp::Ordering;

use crate::fingerprints::files::SketchShape;
use crate::parallel_sort::{ItemOrder, sort_unequal_by};

/// Different sketches in ascending order of their words.
#[derive(Debug)]
pub(crate) struct DistinctSketches {
    shape: SketchShape,
    words: Vec<u64>,
}

/// Different sketches, and which documents have each.
pub(crate) struct GroupedSketches {
    pub(crate) distinct: DistinctSketches,
    /// Documents by their sketches, those of one sketch in the order that was asked for.
    order: Vec<u32>,
    /// Place of the first document of each sketch, and the end.
    starts: Vec<u32>,
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

    /// Position of a sketch, if it is there.
    pub(crate) fn find(&self, sketch: &[u64]) -> Option<u32> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.sketch(middle as u32).cmp(sketch) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle as u32),
                Ordering::Greater => high = middle,
            }
        }
        None
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
        words: Vec<u64>,
        threads: usize,
        compare: impl Fn(u32, u32) -> Ordering + Sync,
    ) -> Self {
        let documents = words.len() / shape.words();
        let mut order: Vec<u32> = (0..documents as u32).collect();
        let sketch = |at: &u32| row(&words, shape, *at);
        let by_sketch: &ItemOrder<'_, u32> =
            &|a, b| sketch(a).cmp(sketch(b)).then_with(|| compare(*a, *b));
        sort_unequal_by(&mut order, threads, by_sketch);
        let (mut distinct, mut starts) = (Vec::with_capacity(words.len()), Vec::new());
        let mut end = 0;
        for group in order.chunk_by(|a, b| sketch(a) == sketch(b)) {
            starts.push(end);
            end += group.len() as u32;
            distinct.extend_from_slice(sketch(&group[0]));
        }
        starts.push(end);
        distinct.shrink_to_fit();
        Self {
            distinct: DistinctSketches {
                shape,
                words: distinct,
            },
            order,
            starts,
        }
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> u64 {
        let places = size_of_val(self.order.as_slice()) + size_of_val(self.starts.as_slice());
        (size_of_val(self.distinct.words.as_slice()) + places) as u64
    }

    /// Documents of the sketch at a position.
    pub(crate) fn documents(&self, at: u32) -> &[u32] {
        let at = at as usize;
        &self.order[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}
