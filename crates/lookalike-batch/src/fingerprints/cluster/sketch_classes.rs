//! Classes of documents with equal sketches of several places, and the pairs between them.
//!
//! The position of a sketch among all different ones stands for the fingerprint of a class from then on.

use super::FingerprintClustering;
use super::edge_spool::EdgeSpool;
use super::linked_classes::{ClassIndex, LinkedClasses};
use super::sorted_fingerprints::{FingerprintMarks, SortedKeys};
use crate::error::BatchError;
use crate::fingerprints::files::{CodesError, FingerprintSource, PlaceKind, SketchShape};
use crate::fingerprints::join::FingerprintShard;
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::fingerprints::sketches::{
    DistinctSketches, EqualPlaces, GroupedSketches, LeastEqual, NearSketches, SketchMemory,
    SketchReading, is_sketch_index, stored_bytes,
};
use crate::observer::{JobStage, ensure_wanted};

/// The different sketches of the files.
pub(super) struct SketchClasses {
    grouped: GroupedSketches,
    /// Places that are equal at least.
    least: usize,
    /// Bytes for pairs that wait.
    pairs: u64,
}

impl SketchClasses {
    pub(super) fn distinct(&self) -> &DistinctSketches {
        &self.grouped.distinct
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> u64 {
        self.grouped.bytes()
    }

    /// Most places in which the sketches of a pair differ.
    pub(super) fn most_different(&self) -> u32 {
        (self.distinct().shape().places - self.least) as u32
    }

    pub(super) fn equal(&self) -> EqualPlaces {
        EqualPlaces {
            least: self.least,
            of: self.distinct().shape().to_string(),
        }
    }
}

impl FingerprintClustering<'_> {
    /// Reads the sketches of all files.
    pub(super) fn read_sketches(&self, least: LeastEqual) -> Result<SketchClasses, BatchError> {
        // It has no order of documents, by which survivors are chosen.
        let is_index = |source: &&FingerprintSource| is_sketch_index(source.path());
        if let Some(index) = self.inputs.iter().find(is_index) {
            let name = index.name().to_owned();
            return Err(CodesError::Index { name }.into());
        }
        let all = stored_bytes(self.inputs);
        self.observer.stage(JobStage::Scan, all);
        let memory = SketchMemory::new(self.limits);
        let mut reading = SketchReading::new(self.observer, self.losses);
        let (mut words, mut count) = (Vec::new(), 0);
        reading.each(self.inputs, &mut |reading, _, rows| {
            words.extend_from_slice(&rows.words);
            count += rows.count as u64;
            let bytes = size_of_val(words.as_slice()) as u64;
            memory.ensure(bytes, 0, count, [reading.read_bytes(), all])
        })?;
        // Without a sketch there are no pairs, whatever the shape.
        let shape = reading.shape().unwrap_or(SketchShape {
            kind: PlaceKind::SuperShingles,
            places: match least {
                LeastEqual::Places(places) => places as usize,
                LeastEqual::Share(_) => 1,
            },
        });
        let least = least.places(shape);
        let least = least.map_err(FingerprintSettingsError::from)?;
        let pairs = memory.pairs(size_of_val(words.as_slice()) as u64, 0, count);
        Ok(SketchClasses {
            grouped: GroupedSketches::new(shape, words, self.limits.threads, |a, b| a.cmp(&b)),
            least,
            pairs,
        })
    }

    /// All pairs of different sketches with enough equal places.
    pub(super) fn join_sketches(
        &self,
        classes: &SketchClasses,
    ) -> Result<LinkedClasses, BatchError> {
        self.observer.stage(JobStage::Compare, 0);
        let distinct = classes.distinct();
        let count = distinct.len();
        let marks = FingerprintMarks::new(count);
        let repeated = (0..count as u32).filter(|&at| classes.grouped.documents(at).len() > 1);
        repeated.for_each(|at| marks.set(at));
        let temporary = BatchError::temporary(self.folder);
        let edges = EdgeSpool::new(self.folder, classes.pairs).map_err(&temporary)?;
        let near = NearSketches {
            sketches: distinct,
            least: classes.least,
            shard: FingerprintShard::ALL,
            threads: self.limits.threads,
            wanted: &|_, _| true,
            is_cancelled: &|| self.observer.is_cancelled(),
        };
        near.each(|| {
            let (marks, mut writer) = (&marks, edges.writer());
            move |a, b, distance| {
                marks.set(a);
                marks.set(b);
                writer.push([a, b, distance]);
            }
        });
        ensure_wanted(self.observer).map_err(|_| BatchError::Cancelled)?;
        edges.check().map_err(&temporary)?;
        // A position is the key of its sketch: what follows looks up fingerprints, and finds these instead.
        let positions = SortedKeys::new((0..count as u64).collect());
        Ok(LinkedClasses {
            index: ClassIndex::Fingerprints {
                classes: Box::new(positions.retain(&marks)),
                marks: marks.numbered(),
            },
            edges,
            read: None,
        })
    }
}
