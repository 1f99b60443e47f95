//! Finds classes of documents with equal sketches of several places, and the pairs between them.
//!
//! From here on the position of a sketch among the distinct ones serves as the fingerprint of its class. Files are read again only for the ids of
//! documents, whose positions are remembered, so nothing has to be looked up.

use bytemuck::cast_slice;
use xxhash_rust::xxh3::Xxh3;

use super::FingerprintClustering;
use super::edge_spool::EdgeSpool;
use super::linked_classes::{ClassIndex, LinkedClasses};
use super::memory_shares::MemoryShares;
use super::sorted_fingerprints::{FingerprintMarks, SortedKeys};
use crate::error::BatchError;
use crate::fingerprints::files::{CodesError, FingerprintSource, PlaceKind, SketchShape};
use crate::fingerprints::join::FingerprintShard;
use crate::fingerprints::sketches::{
    EqualPlaces, GroupedSketches, MinEqual, NearSketches, SketchPositions, SketchReading,
    is_sketch_index, stored_bytes,
};
use crate::observer::{JobStage, check_cancelled};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::check;

/// The sketches of the files.
pub(super) struct SketchClasses {
    /// Sketches of the documents, in file order.
    pub(super) sketches: SketchPositions,
    /// Minimum number of equal places.
    least: usize,
    /// Bytes for pairs that wait in memory.
    pairs: u64,
}

impl SketchClasses {
    /// Returns the largest number of places in which the sketches of a pair differ.
    pub(super) fn max_distance(&self) -> u32 {
        (self.sketches.distinct.shape.places - self.least) as u32
    }

    pub(super) fn equal(&self) -> EqualPlaces {
        EqualPlaces::new(self.sketches.distinct.shape, self.least)
    }
}

impl FingerprintClustering<'_> {
    /// Reads the sketches of all files.
    pub(super) fn read_sketches(&self, least: MinEqual) -> Result<SketchClasses, BatchError> {
        // An index does not keep the order of documents, which survivors are chosen by.
        let is_index = |source: &&FingerprintSource| is_sketch_index(source.path());
        if let Some(index) = self.inputs.iter().find(is_index) {
            let name = index.name().to_owned();
            return Err(CodesError::Index { name }.into());
        }
        let all = stored_bytes(self.inputs);
        self.observer.stage(JobStage::Scan, all);
        let shares = MemoryShares::new(&self.limits);
        // Before reading, refuse a memory limit that is too low for any number of sketches.
        shares.after_sketches(0, 0)?;
        let temporary = BatchError::temporary(self.folder);
        let mut reading = SketchReading::new(self.observer, self.losses);
        let (mut words, mut count, mut digest) = (TableColumn::new(), 0, Xxh3::new());
        reading.for_each(self.inputs, &mut |_, _, rows| {
            words.extend_from_slice(&rows.words);
            digest.update(cast_slice(&rows.words));
            count += rows.count as u64;
            // Places have 32 bits, and one value means no document.
            if count >= u64::from(u32::MAX) {
                return Err(BatchError::TooManyFingerprints(count));
            }
            check(self.folder).map_err(&temporary)
        })?;
        // Without sketches there are no pairs, whatever the shape.
        let shape = reading.shape().unwrap_or(SketchShape {
            kind: PlaceKind::SuperShingles,
            places: match least {
                MinEqual::Places(places) => places as usize,
                MinEqual::Share(_) => 1,
            },
        });
        let least = least.places(shape)?;
        let bytes = size_of_val(words.as_slice()) as u64;
        let shares = shares.after_sketches(bytes, count)?;
        let grouped = GroupedSketches::new(shape, words, self.limits.workers(), |a, b| a.cmp(&b));
        let sketches = grouped.into_positions(digest.digest());
        check(self.folder).map_err(&temporary)?;
        Ok(SketchClasses {
            sketches,
            least,
            pairs: shares.pairs,
        })
    }

    /// Finds all pairs of distinct sketches with enough equal places.
    pub(super) fn join_sketches(
        &self,
        classes: &SketchClasses,
    ) -> Result<LinkedClasses, BatchError> {
        self.observer.stage(JobStage::Compare, 0);
        let distinct = &classes.sketches.distinct;
        let count = distinct.len();
        let (seen, marks) = (FingerprintMarks::new(count), FingerprintMarks::new(count));
        // Documents with equal sketches are a cluster even if their class has no neighbour.
        // A bit each for "once" and "more than once" is enough here, and takes less memory than counts.
        for &at in &classes.sketches.of_documents {
            if seen.has(at) {
                marks.set(at);
            }
            seen.set(at);
        }
        drop(seen);
        let temporary = BatchError::temporary(self.folder);
        let mut edges = EdgeSpool::new(self.folder, classes.pairs).map_err(&temporary)?;
        let near = NearSketches {
            sketches: distinct,
            least: classes.least,
            shard: FingerprintShard::ALL,
            threads: self.limits.workers(),
            wanted: &|_, _| true,
            is_cancelled: &|| self.observer.is_cancelled() || edges.has_failed(),
        };
        near.for_each(|| {
            let (marks, mut writer) = (&marks, edges.writer());
            move |a, b, distance| {
                marks.set(a);
                marks.set(b);
                writer.push([a, b, distance]);
            }
        });
        edges.check().map_err(&temporary)?;
        check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
        // Each position serves as the key of its sketch, so that lookups of fingerprints find positions.
        let positions = SortedKeys::new((0..count as u64).collect());
        Ok(LinkedClasses {
            index: ClassIndex::of_marked(positions, marks),
            edges,
            read: None,
        })
    }
}
