//! Data of a job that may exceed its memory: partitions of records on disk, feature sets, sorted runs.

pub(crate) mod arrange;
pub(crate) mod external_sort;
pub(crate) mod feature_sets;
pub(crate) mod frame_sort;
pub(crate) mod partitions;
pub(crate) mod prefetch;
pub(crate) mod table_column;
pub(crate) mod table_memory;
pub(crate) mod texts_in_order;

/// Prefix of the names of folders for temporary files. The next job in an output folder removes those that killed jobs
/// left there.
pub const SPOOL: &str = "spool.tmp-";
