//! Probes of a table: the buckets at some xor masks from that of a query, and the entries found there.

/// Buckets of one table that a query probes: those at each of `xor_masks` from its own.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSet<'a> {
    /// The bucket of the query.
    pub bucket: u32,
    /// Bits that each probe flips in the number of the bucket.
    pub xor_masks: &'a [u32],
    /// Number of errors that the query may have in all; a xor mask uses up as many as it has bits.
    pub radius: u32,
}

impl ProbeSet<'_> {
    /// Returns the bucket of each probe, and the errors left for it.
    #[inline(always)]
    pub(super) fn probes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.xor_masks.iter().filter_map(|&mask| {
            // A query may have a smaller radius than the table: masks that use up more cannot find anything.
            let left = self.radius.checked_sub(mask.count_ones())?;
            Some((self.bucket ^ mask, left))
        })
    }
}

/// Entries of a bucket: the rank of the first, and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryRange {
    /// Number of entries of the table before the bucket.
    pub first: u64,
    /// Number of entries of the bucket.
    pub count: u32,
}

/// Probes whose entries have been found.
#[derive(Clone, Copy, Debug)]
pub struct ProbeLocations<'a> {
    /// The probes.
    pub probes: ProbeSet<'a>,
    /// The entries of each probe.
    pub ranges: &'a [EntryRange],
}

impl ProbeLocations<'_> {
    /// Returns the bucket, the errors left, and the entries of each probe.
    #[inline(always)]
    pub(in super::super) fn for_each(&self) -> impl Iterator<Item = (u32, u32, EntryRange)> + '_ {
        let ProbeSet {
            bucket,
            xor_masks,
            radius,
        } = self.probes;
        xor_masks
            .iter()
            .zip(self.ranges)
            .filter_map(move |(&mask, &range)| {
                let left = radius.checked_sub(mask.count_ones())?;
                Some((bucket ^ mask, left, range))
            })
    }
}

/// A cache line of entries.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub struct CacheLine(pub [u8; 64]);

impl CacheLine {
    /// Returns the last four bytes: the number of entries of the bucket or, if it has more than a line holds, a larger number, from which the position of
    /// the others follows.
    #[inline(always)]
    pub(in super::super) fn tail(&self) -> u32 {
        let [.., a, b, c, d] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Receiver of the results of probing buckets.
pub trait BucketVisitor<W> {
    /// Receives an entry near the needle, and its bucket.
    fn hit(&mut self, bucket: u32, entry: W);
    /// Receives a bucket with more entries than its line holds, and the errors left for them. Returns the number of additional entries that were
    /// compared.
    fn overflow(&mut self, bucket: u32, radius: u32) -> u64;
}
