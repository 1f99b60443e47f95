//! Joins sketches of several places: finds exactly the pairs with enough equal places. Sketches that do not fit in memory are in files.

use std::io::Write;

use bytemuck::cast_slice;
use lookalike_hamming::JoinedTables;
use xxhash_rust::xxh3::Xxh3;

use super::matches::{MatchBuffer, PairSides, SharedMatches};
use super::sketch_memory::SketchMemory;
use super::sketch_names::SketchNames;
use super::stream_position::StreamedPart;
use super::{FingerprintJoin, JoinSummary, SideCounts};
use crate::error::BatchError;
use crate::fingerprints::files::{FingerprintName, SketchShape};
use crate::fingerprints::index;
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::fingerprints::sketches::{
    EqualPlaces, GroupedSketches, MinEqual, NearSketches, SketchReading, is_sketch_index,
    stored_bytes,
};
use crate::observer::{JobStage, check_cancelled};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::{TableShare, check, max_mapped, trim, trim_periodically};

/// Minimum number of distinct sketches for checkpoints after each band.
const MIN_CHECKPOINTED: usize = if cfg!(test) { 1 } else { 1 << 14 };

/// Bytes between two checks of the resident memory.
const DIGEST_STEP: usize = 1 << 20;

/// Returns a digest of the sketches and names of F and Q.
fn digest(words: &[u64], names: &SketchNames, of_f: u32) -> u64 {
    let mut sum = Xxh3::new();
    // The same sketches make other pairs if they are divided differently between F and Q.
    sum.update(&of_f.to_le_bytes());
    let [texts, ends] = names.parts();
    for part in [cast_slice(words), texts, ends] {
        part.chunks(DIGEST_STEP).for_each(|step| {
            trim();
            sum.update(step);
        });
    }
    sum.digest()
}

/// The documents of both sides, those of F first.
struct JoinedSketches {
    grouped: GroupedSketches,
    names: SketchNames,
    /// Number of documents of F; all documents if there is no Q.
    of_f: u32,
    /// For each sketch, bits that tell whether it has documents of F, and of Q; empty if there is no Q.
    side_bits: TableColumn<u8>,
    is_alone: bool,
}

/// Bits of [`JoinedSketches::side_bits`].
const IN_F: u8 = 1;
const IN_Q: u8 = 2;

/// Returns the bits of each sketch.
fn side_bits(grouped: &GroupedSketches, of_f: u32) -> TableColumn<u8> {
    let bit = |&document: &u32| if document < of_f { IN_F } else { IN_Q };
    let sketches = 0..grouped.distinct.len() as u32;
    sketches
        .map(|at| {
            trim_periodically();
            grouped
                .documents(at)
                .iter()
                .map(bit)
                .fold(0, |bits, bit| bits | bit)
        })
        .collect()
}

impl JoinedSketches {
    fn name(&self, document: u32) -> FingerprintName<'_> {
        trim_periodically();
        self.names.name(document)
    }

    /// Returns the documents of a sketch that are in F, and those in Q.
    fn sides(&self, at: u32) -> [impl Iterator<Item = u32> + '_; 2] {
        trim_periodically();
        let documents = self.grouped.documents(at);
        [true, false].map(|is_f| {
            let side = move |&&document: &&u32| (document < self.of_f) == is_f;
            documents.iter().filter(side).copied()
        })
    }

    /// Tells whether a pair of sketches has documents in F and in Q.
    fn is_wanted(&self, a: u32, b: u32) -> bool {
        if self.is_alone {
            return true;
        }
        trim_periodically();
        // Asked for each pair that is compared, so documents are not read.
        let [a, b] = [a, b].map(|at| self.side_bits[at as usize]);
        (a & IN_F != 0 && b & IN_Q != 0) || (a & IN_Q != 0 && b & IN_F != 0)
    }

    /// Adds the pairs of documents of two distinct sketches, or of one sketch with itself.
    fn push(&self, a: u32, b: u32, distance: u32, handover: &mut MatchBuffer<'_>) {
        if self.is_alone {
            // Documents of one sketch are ordered by name.
            let [a, b] = [a, b].map(|at| self.name(self.grouped.documents(at)[0]));
            return handover.push_ordered(a, b, distance);
        }
        let mut cross = |x, y| {
            let [f, _] = self.sides(x);
            for f in f {
                let [_, q] = self.sides(y);
                q.for_each(|q| handover.push(self.name(f), self.name(q), distance));
            }
        };
        cross(a, b);
        if a != b {
            cross(b, a);
        }
    }

    /// Adds the pairs of documents with the same sketch.
    fn push_equal(&self, at: u32, handover: &mut MatchBuffer<'_>) {
        if !self.is_alone {
            return self.push(at, at, 0, handover);
        }
        let documents = self.grouped.documents(at);
        if documents.len() == 1 {
            return;
        }
        // Documents of a sketch are ordered by name. The first represents all, and each other one is paired with it only.
        let least = self.name(documents[0]);
        for &other in &documents[1..] {
            if self.name(other) != least {
                handover.push_ordered(least, self.name(other), 0);
            }
        }
    }
}

impl JoinSummary {
    /// Returns the summary of a join of sketches of a shape with at least `least` equal places.
    pub(super) fn of_places(self, shape: SketchShape, least: usize) -> Self {
        Self {
            distance: (shape.places - least) as u32,
            equal: Some(EqualPlaces::new(shape, least)),
            ..self
        }
    }
}

impl FingerprintJoin<'_> {
    /// Writes every pair of sketches with enough equal places. The distance is the number of places that differ.
    pub(super) fn write_sketches(
        &self,
        least: MinEqual,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        if let Some(found) = self
            .inputs
            .iter()
            .find(|source| index::is_index(source.path()))
        {
            let index = found.name().to_owned();
            return Err(FingerprintSettingsError::IndexOfFingerprints(index).into());
        }
        let is_indexed = self
            .inputs
            .iter()
            .all(|source| is_sketch_index(source.path()));
        if is_indexed && !self.queries.is_empty() {
            let (query, reading) = self.sketch_query(least)?;
            if !query.is_crowded() {
                return query.write(reading, out);
            }
        }
        let inputs = [self.inputs, self.queries];
        let all: u64 = inputs.map(stored_bytes).iter().sum();
        self.observer.stage(JobStage::Queries, all);
        let memory = SketchMemory::new(&self.limits);
        // Before reading, refuse a memory limit that is too low for any number of sketches.
        memory.pairs(0, 0, 0)?;
        let temporary = BatchError::temporary(self.folder);
        let _tables = TableShare::open(memory.tables(), self.folder);
        let (mut words, mut names) = (TableColumn::new(), SketchNames::default());
        let mut reading = SketchReading::new(self.observer, self.losses);
        let mut count = 0;
        let [(f, of_f), (q, _)] = {
            let mut side = |sources| {
                let summaries = reading.for_each(sources, &mut |_, _, rows| {
                    words.extend_from_slice(&rows.words);
                    names.extend(&rows.ids);
                    count += rows.count as u64;
                    // Positions have 32 bits.
                    if count >= u64::from(u32::MAX) {
                        return Err(BatchError::TooManyFingerprints(count));
                    }
                    check(self.folder).map_err(&temporary)
                })?;
                Ok::<_, BatchError>((summaries, count as u32))
            };
            // F first: a document is in F if its number is less than `of_f`.
            [side(self.inputs)?, side(self.queries)?]
        };
        // Without sketches the shape is unknown.
        let places = match reading.shape() {
            Some(shape) => Some((shape, least.places(shape)?)),
            None => None,
        };
        let budget = memory.pairs(size_of_val(words.as_slice()) as u64, names.bytes(), count)?;
        let held = digest(&words, &names, of_f);
        let matches = self.matches(budget, held)?;
        if let Some((shape, equal)) = places {
            let grouped = GroupedSketches::new(shape, words, self.limits.workers(), |a, b| {
                names.name(a).cmp(&names.name(b)).then(a.cmp(&b))
            });
            let is_alone = self.queries.is_empty();
            let joined = JoinedSketches {
                side_bits: match is_alone {
                    true => TableColumn::new(),
                    false => side_bits(&grouped, of_f),
                },
                grouped,
                names,
                of_f,
                is_alone,
            };
            self.observer.stage(JobStage::Compare, 0);
            self.join_all(&joined, equal, &matches)?;
        }
        let sides = if self.queries.is_empty() {
            PairSides::AB
        } else {
            PairSides::FQ
        };
        check(self.folder).map_err(&temporary)?;
        let summary = self.finish(SideCounts { f, q }, matches.into_inner()?, sides, out)?;
        let summary = JoinSummary {
            tables_on_disk: max_mapped(self.folder),
            ..summary
        };
        Ok(match places {
            Some((shape, least)) => summary.of_places(shape, least),
            None => JoinSummary {
                distance: 0,
                ..summary
            },
        })
    }

    fn join_all(
        &self,
        joined: &JoinedSketches,
        least: usize,
        matches: &SharedMatches,
    ) -> Result<(), BatchError> {
        let distinct = &joined.grouped.distinct;
        let mut equal = matches.buffer();
        for at in 0..distinct.len() as u32 {
            // Equal sketches have equal first words, so each group belongs to one shard. Pairs of distinct sketches belong to the shard of their
            // band.
            if self.shard.has(distinct.sketch(at)[0]) {
                joined.push_equal(at, &mut equal);
            }
        }
        drop(equal);
        let near = NearSketches {
            sketches: distinct,
            least,
            shard: self.shard,
            threads: self.limits.workers(),
            wanted: &|a, b| joined.is_wanted(a, b),
            is_cancelled: &|| self.observer.is_cancelled() || matches.has_failed(),
        };
        let all = near.bands();
        let before = matches.state().tables();
        // Pairs of equal sketches above are found again after a resumption, and each is written once.
        let done = if before.all == all { before.done } else { 0 };
        for band in done..all {
            // Pairs are lost already, so more comparisons are of no use.
            if matches.has_failed() {
                break;
            }
            near.for_each_pair_of_band(band, &|| {
                let mut mine = matches.buffer();
                move |a, b, distance| joined.push(a, b, distance, &mut mine)
            });
            check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
            if distinct.len() >= MIN_CHECKPOINTED {
                let tables = JoinedTables {
                    done: band + 1,
                    all,
                    // The bands of the same sketches in the same order are the same.
                    design: 0,
                };
                matches.keep(tables, StreamedPart::default())?;
            }
        }
        Ok(())
    }
}
