//! The queries of a join: distinct fingerprints with their names.

use lookalike_hamming::Word;

use super::memory_plan::{MemoryPlan, MemoryPurpose};
use super::shard::FingerprintShard;
use super::stream_position::StreamedPart;
use crate::error::BatchError;
use crate::fingerprints::files::{CodeFiles, FingerprintFile, FingerprintIds, FingerprintName};
use crate::observer::JobObserver;
use crate::parallel_sort::{ItemOrder, sort_unequal_by};

/// A collection in memory.
pub(super) struct QuerySet<W> {
    /// Fingerprints in file order if none has an id, otherwise ascending.
    pub(super) codes: Vec<W>,
    /// Position of each fingerprint's id; equal fingerprints are ordered by name. Empty without ids.
    rows: Vec<u32>,
    ids: CollectedIds,
    pub(super) seen: StreamedPart,
}

/// Ids of several files, which may be of different kinds, by position.
#[derive(Default)]
struct CollectedIds {
    /// Each with the position of its first id.
    parts: Vec<(usize, FingerprintIds)>,
}

impl CollectedIds {
    /// Appends the ids of the fingerprints from position `first` on.
    fn append(&mut self, first: usize, more: &FingerprintIds) {
        let last = self.parts.last_mut().map(|(_, ids)| ids);
        let taken = match (last, more) {
            // A new part starts only where the kind changes, so lookups search few parts, not all chunks.
            (Some(FingerprintIds::None), FingerprintIds::None) => true,
            (Some(last @ FingerprintIds::Numbers(_)), FingerprintIds::Numbers(numbers)) => {
                last.extend_numbers(numbers);
                true
            }
            (Some(last @ FingerprintIds::Texts { .. }), FingerprintIds::Texts { bytes, ends }) => {
                last.extend_texts(bytes, ends);
                true
            }
            _ => false,
        };
        if !taken {
            self.parts.push((first, more.clone()));
        }
    }

    fn name<W: Word>(&self, at: usize, code: W) -> FingerprintName<'_> {
        // The first part begins at 0, so there is always one.
        let part = self.parts.partition_point(|&(first, _)| first <= at) - 1;
        let (first, ids) = &self.parts[part];
        ids.name(at - first, code)
    }

    /// Tells whether no fingerprint has an id.
    fn is_none(&self) -> bool {
        self.parts.iter().all(|(_, ids)| ids.is_none())
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|(_, ids)| ids.bytes()).sum()
    }
}

/// Bytes read between two checks of the memory.
const STEP: u64 = 1 << 20;

impl<W: Word> QuerySet<W> {
    /// Reads whole collections, or a shard of them, if they fit their share of the memory.
    pub(super) fn read(
        files: &mut CodeFiles,
        shard: FingerprintShard,
        shares: &MemoryPlan,
        purpose: MemoryPurpose,
        observer: &dyn JobObserver,
    ) -> Result<Self, BatchError> {
        let (mut codes, mut ids) = (Vec::new(), CollectedIds::default());
        let mut seen = StreamedPart::default();
        let add = |files: &CodeFiles, chunk: &mut FingerprintFile<W>| {
            chunk.retain_shard(shard);
            // After the cut to the shard: a resumed run must hold the same fingerprints, whatever else the files contain.
            seen = seen.and(StreamedPart::of(chunk));
            ids.append(codes.len(), &chunk.ids);
            codes.extend_from_slice(&chunk.codes);
            let bytes = size_of_val(codes.as_slice()) as u64 + ids.bytes();
            shares.ensure_fits::<W>(bytes, codes.len() as u64, files, purpose)
        };
        files.for_each_chunk(STEP, observer, add)?;
        // Rows are numbered with 32 bits.
        if u32::try_from(codes.len()).is_err() {
            return Err(BatchError::TooManyFingerprints(codes.len() as u64));
        }
        if ids.is_none() {
            return Ok(Self {
                codes,
                rows: Vec::new(),
                ids,
                seen,
            });
        }
        let mut rows: Vec<u32> = (0..codes.len() as u32).collect();
        // The first of equal fingerprints has the smallest name, as `smallest_name` assumes.
        let key = |row: u32| {
            let code = codes[row as usize];
            // The row makes all keys different, so the order is the same for any number of threads.
            (code, ids.name(row as usize, code), row)
        };
        let threads = shares.threads as usize;
        let by_key: &ItemOrder<'_, u32> = &|&a, &b| key(a).cmp(&key(b));
        sort_unequal_by(&mut rows, threads, by_key);
        let codes = rows.iter().map(|&row| codes[row as usize]).collect();
        Ok(Self {
            codes,
            rows,
            ids,
            seen,
        })
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.ids.bytes()
            + (size_of_val(self.codes.as_slice()) + size_of_val(self.rows.as_slice())) as u64
    }

    /// Returns the single name of a fingerprint of the collection: the smallest of its names.
    pub(super) fn smallest_name(&self, fingerprint: W) -> FingerprintName<'_> {
        if self.rows.is_empty() {
            return FingerprintName::from_code(fingerprint);
        }
        // Codes ascend if there are rows; codes without ids have no rows and returned above.
        let first = self.codes.partition_point(|&code| code < fingerprint);
        let row = self.rows.get(first).copied().unwrap_or(0) as usize;
        self.ids.name(row, fingerprint)
    }

    /// Visits every id in a group of equal fingerprints, except the smallest, together with the smallest.
    pub(super) fn equal(&self, visit: &mut dyn FnMut(FingerprintName<'_>, FingerprintName<'_>)) {
        if self.rows.is_empty() {
            return;
        }
        let groups = self.codes.chunk_by(|a, b| a == b);
        for group in groups.filter(|group| group.len() > 1) {
            let least = self.smallest_name(group[0]);
            self.names(group[0], &mut |name| {
                if name != least {
                    visit(least, name);
                }
            });
        }
    }

    /// Visits all names of a fingerprint of the collection.
    pub(super) fn names<'a>(&'a self, fingerprint: W, visit: &mut dyn FnMut(FingerprintName<'a>)) {
        if self.rows.is_empty() {
            return visit(FingerprintName::from_code(fingerprint));
        }
        let first = self.codes.partition_point(|&code| code < fingerprint);
        let equal = self.codes[first..]
            .iter()
            .take_while(|&&code| code == fingerprint);
        for (at, _) in equal.enumerate() {
            let row = self.rows[first + at] as usize;
            visit(self.ids.name(row, fingerprint));
        }
    }
}
