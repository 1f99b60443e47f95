//! The queries of a join: distinct fingerprints, and what each is called.

use lookalike::Fingerprint;

use super::memory_plan::{MemoryPlan, MemoryPurpose};
use crate::error::BatchError;
use crate::fingerprints::files::{CodeFile, FingerprintFile, FingerprintIds, FingerprintName, sum};
use crate::observer::JobObserver;

/// A collection in memory.
pub(super) struct QuerySet {
    /// In the order of the file when they stand for themselves, else ascending.
    codes: Vec<u64>,
    /// Position of the id of each; equal codes by their names.
    rows: Vec<u32>,
    ids: FingerprintIds,
}

/// Bytes that are read between two looks at the memory.
const STEP: u64 = 16 << 20;

impl QuerySet {
    /// Reads a whole collection, as long as it fits its share of the memory.
    pub(super) fn read(
        file: &mut CodeFile,
        shares: &MemoryPlan,
        purpose: MemoryPurpose,
        observer: &dyn JobObserver,
    ) -> Result<Self, BatchError> {
        let mut all = FingerprintFile::default();
        let counters = [file.bytes_read()];
        let mut more = true;
        while more {
            let wanted = all.bytes() + STEP;
            more = file.fill(&mut all, wanted)?;
            shares.ensure_fits(&all, file, purpose)?;
            observer.advance(sum(&counters));
        }
        if u32::try_from(all.codes.len()).is_err() {
            return Err(lookalike_hamming::BuildError::TooMany(all.codes.len() as u64).into());
        }
        let FingerprintFile { codes, ids } = all;
        if ids.is_none() {
            return Ok(Self {
                codes,
                rows: Vec::new(),
                ids,
            });
        }
        let mut rows: Vec<u32> = (0..codes.len() as u32).collect();
        let key = |row: u32| {
            let code = codes[row as usize];
            (code, ids.name(row as usize, code), row)
        };
        rows.sort_unstable_by(|&a, &b| key(a).cmp(&key(b)));
        let codes = rows.iter().map(|&row| codes[row as usize]).collect();
        Ok(Self { codes, rows, ids })
    }

    pub(super) fn codes(&self) -> &[u64] {
        &self.codes
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> u64 {
        self.ids.bytes()
            + (size_of_val(self.codes.as_slice()) + size_of_val(self.rows.as_slice())) as u64
    }

    /// Name of a fingerprint of the collection when it is to have one: the least of its own.
    pub(super) fn least_name(&self, fingerprint: u64) -> FingerprintName<'_> {
        if self.rows.is_empty() {
            return FingerprintName::Fingerprint(Fingerprint(fingerprint));
        }
        let first = self.codes.partition_point(|&code| code < fingerprint);
        let row = self.rows.get(first).copied().unwrap_or(0) as usize;
        self.ids.name(row, fingerprint)
    }

    /// Visits each id of a group of equal fingerprints with the least of the group.
    pub(super) fn equal(&self, visit: &mut dyn FnMut(FingerprintName<'_>, FingerprintName<'_>)) {
        if self.rows.is_empty() {
            return;
        }
        let groups = self.codes.chunk_by(|a, b| a == b);
        for group in groups.filter(|group| group.len() > 1) {
            let least = self.least_name(group[0]);
            self.names(group[0], &mut |name| {
                if name != least {
                    visit(least, name);
                }
            });
        }
    }

    /// Visits everything that a fingerprint of the collection is called.
    pub(super) fn names<'a>(
        &'a self,
        fingerprint: u64,
        visit: &mut dyn FnMut(FingerprintName<'a>),
    ) {
        if self.rows.is_empty() {
            return visit(self.ids.name(0, fingerprint));
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
