//! Probes of a table: the buckets at some xor masks from that of a query, and what is found there.

/// The buckets of one table that a query looks at: those at each of `xor_masks` from its own.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSet<'a> {
    /// The bucket of the query.
    pub bucket: u32,
    /// Bits that each probe flips in its number.
    pub xor_masks: &'a [u32],
    /// Errors that the query may have in all; a xor mask costs as many as it has bits.
    pub radius: u32,
}

impl ProbeSet<'_> {
    /// Bucket and errors left of each probe.
    #[inline(always)]
    pub(super) fn probes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.xor_masks.iter().filter_map(|&mask| {
            // A query may come with less than the radius of the table: masks that use up more have nothing to
            // find.
            let left = self.radius.checked_sub(mask.count_ones())?;
            Some((self.bucket ^ mask, left))
        })
    }
}

/// Entries of a bucket: the rank of the first, and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryRange {
    /// Entries of the table before the bucket.
    pub first: u64,
    /// Entries of the bucket.
    pub count: u32,
}

/// Probes whose entries have been found.
#[derive(Clone, Copy, Debug)]
pub struct ProbeLocations<'a> {
    /// The probes.
    pub probes: ProbeSet<'a>,
    /// The entries of each.
    pub ranges: &'a [EntryRange],
}

impl ProbeLocations<'_> {
    /// Bucket, errors left, and entries of each probe.
    #[inline(always)]
    pub(in super::super) fn each(&self) -> impl Iterator<Item = (u32, u32, EntryRange)> + '_ {
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
    /// The last four bytes: how many entries the bucket has or, above what a line holds, that it has
    /// more elsewhere.
    #[inline(always)]
    pub(in super::super) fn tail(&self) -> u32 {
        let [.., a, b, c, d] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Receiver of what a probe of buckets finds.
pub trait BucketVisitor<W> {
    /// An entry near the needle, and its bucket.
    fn hit(&mut self, bucket: u32, entry: W);
    /// A bucket with more entries than its line holds, and the errors left for them; how many more
    /// were compared.
    fn overflow(&mut self, bucket: u32, radius: u32) -> u64;
}
