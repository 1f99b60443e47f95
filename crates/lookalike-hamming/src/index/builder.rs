//! Building of an index's tables, one after the other, from a source that is read again for each.

use super::super::build::{BuildError, CodeSource, buckets};
use super::super::code::Word;
use super::super::cost::neighbours;
use super::super::design::Design;
use super::super::entropy::BitBalance;
use super::super::kernel::RankBytes;
use super::super::layout::{Layout, TableGeometry};
use super::super::table::{ProbeTable, TableNumbers, overflow_unit};
use super::super::table_key::TableKey;
use super::super::threads::map_parallel;

limits! {
    /// Memory and threads that a build may take.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BuildLimits {
        /// Memory for sorting in addition to the tables, in bytes. With less than eight bytes for each 64-bit code, or up to a third more with several
        /// threads, the source is read several times for each table.
        scratch_bytes: usize = usize::MAX,
        /// Number of tables that are built at the same time, each with its share of the memory; at least one.
        threads: usize = 1,
        /// Minimum bytes of a rank, to test code that only billions of codes need.
        #[doc(hidden)]
        rank_bytes: u32 = 0,
    }
}

/// Maximum number of addresses at which a table is probed.
pub(in super::super) const MAX_PROBES: u64 = 1 << 20;
/// Number of codes in the sample that judges the bits.
const SAMPLE: usize = 1 << 16;

/// A sample of codes that depends only on which codes there are, not on their order: those whose hash is below a limit.
struct CodesByHash<C> {
    limit: u64,
    codes: Vec<C>,
}

impl<C: Word> CodesByHash<C> {
    fn add(&mut self, codes: &[C]) {
        for &code in codes {
            if hash(code) >= self.limit {
                continue;
            }
            self.codes.push(code);
            while self.codes.len() > SAMPLE {
                self.limit /= 2;
                self.codes.retain(|&code| hash(code) < self.limit);
            }
        }
    }
}

fn hash(code: impl Word) -> u64 {
    let code = code.to_u128();
    // Two multiplications by odd numbers (those of SplitMix64), whose high bits depend on all bits of the code.
    let low = (code as u64 ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((code >> 64) as u64 ^ low ^ low >> 32).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Facts about the codes that are needed before the first table is built.
pub(in super::super) struct Builder<'a, C: Word, S: ?Sized> {
    source: &'a S,
    layout: Layout,
    limits: BuildLimits,
    count: usize,
    balance: BitBalance,
    code: std::marker::PhantomData<C>,
}

impl<'a, C: Word, S: CodeSource<C> + ?Sized> Builder<'a, C, S> {
    pub(in super::super) fn analyze(
        source: &'a S,
        layout: Layout,
        limits: BuildLimits,
    ) -> Result<Self, BuildError> {
        let (limit, codes) = (u64::MAX, Vec::new());
        let (mut count, mut sample) = (0_usize, CodesByHash::<C> { limit, codes });
        source.replay(&mut |codes| {
            count += codes.len();
            sample.add(codes);
        })?;
        let balance = BitBalance::sample(&sample.codes, SAMPLE);
        Ok(Self {
            source,
            layout,
            limits,
            count,
            balance,
            code: std::marker::PhantomData,
        })
    }

    /// Keeps these facts, but reads the same codes from another source.
    pub(in super::super) fn reading<T: CodeSource<C> + ?Sized>(
        self,
        source: &'a T,
    ) -> Builder<'a, C, T> {
        Builder {
            source,
            layout: self.layout,
            limits: self.limits,
            count: self.count,
            balance: self.balance,
            code: self.code,
        }
    }

    /// Returns the bytes of a rank: enough for all codes, and for their ids.
    pub(in super::super) fn rank_bytes(&self) -> RankBytes {
        let needed = RankBytes::of_count(self.count as u64);
        let forced = RankBytes::new(self.limits.rank_bytes.into());
        forced.map_or(needed, |forced| forced.max(needed))
    }

    /// Returns the number of codes of the source, including equal ones.
    pub(in super::super) fn count(&self) -> usize {
        self.count
    }

    /// Returns a design with its bits renamed if this makes the poorest address better.
    pub(super) fn balanced(&self, design: &Design) -> Design {
        let address_bits = |key: &TableKey| {
            let count = self.count as u64;
            TableGeometry::choose(self.layout, C::BITS, key.prefix_bits(), count).address_bits
        };
        let keys = design.tables().iter();
        let masks: Vec<_> = keys.map(|key| (key.mask, address_bits(key))).collect();
        match self.balance.better_order(&masks) {
            Some(order) => design.permuted(&order),
            None => design.clone(),
        }
    }

    pub(super) fn tables(&self, keys: &[TableKey]) -> Result<Vec<ProbeTable<C>>, BuildError> {
        let Some((first, others)) = keys.split_first() else {
            return Ok(Vec::new());
        };
        let threads = self.limits.threads.clamp(1, keys.len());
        let limits = self.limits;
        // The first table is built by itself, with all threads, because the others need the number of distinct codes that it finds.
        let mut tables = vec![self.first_table(first, limits)?];
        let distinct = tables[0].len() as u64;
        // Each of the others is built by one thread.
        let each = BuildLimits {
            scratch_bytes: limits.scratch_bytes / threads,
            threads: 1,
            ..limits
        };
        if threads == 1 {
            for key in others {
                tables.push(self.table(key, distinct, limits)?);
            }
            return Ok(tables);
        }
        for keys in others.chunks(threads) {
            for table in map_parallel(keys, |key| self.table(key, distinct, each)) {
                tables.push(table?);
            }
        }
        Ok(tables)
    }

    /// Builds the table that finds the number of distinct codes. It is built again, smaller, if they are far fewer than assumed.
    pub(in super::super) fn first_table(
        &self,
        key: &TableKey,
        limits: BuildLimits,
    ) -> Result<ProbeTable<C>, BuildError> {
        let table = self.table(key, self.count as u64, limits)?;
        let distinct = table.len();
        // The address was chosen for at least four times as many codes: most buckets would be empty, and their directory larger than the entries.
        if distinct < self.count / 4 {
            self.table(key, distinct as u64, limits)
        } else {
            Ok(table)
        }
    }

    pub(in super::super) fn table(
        &self,
        key: &TableKey,
        distinct: u64,
        limits: BuildLimits,
    ) -> Result<ProbeTable<C>, BuildError> {
        let prefix = key.prefix_bits();
        let geometry = TableGeometry::choose(self.layout, C::BITS, prefix, distinct);
        // Before the masks are listed, which take memory in proportion.
        let probes = neighbours(geometry.address_bits, key.budget);
        if probes > MAX_PROBES {
            return Err(BuildError::TooManyProbes(probes));
        }
        // The best balanced bits of the key address the buckets; the others are stored, and compared.
        let address = self.balance.best(key.mask, geometry.address_bits);
        let unit = match self.layout {
            Layout::CacheLineBuckets => {
                overflow_unit(distinct, 1 << geometry.address_bits, geometry.width)
                    .ok_or(BuildError::TooManyForBuckets(distinct))?
            }
            Layout::Packed | Layout::Dense => 0,
        };
        let ranks = self.rank_bytes();
        let numbers = TableNumbers { ranks, unit };
        let mut table = ProbeTable::new(key, address, self.layout, numbers);
        table.reserve(distinct as usize);
        let addressing = table.addressing;
        let mut push = |rests: &[C], sizes: &[u32]| table.push(rests, sizes);
        buckets(
            self.source,
            self.count,
            &addressing,
            limits.scratch_bytes,
            limits.threads,
            &mut push,
        )?;
        table.finish();
        Ok(table)
    }
}
