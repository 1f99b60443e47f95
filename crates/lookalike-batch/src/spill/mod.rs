//! Data of a job that may outgrow its memory: partitions of records on disk, feature sets, sorted runs.

pub(crate) mod arrange;
pub(crate) mod external_sort;
pub(crate) mod feature_sets;
pub(crate) mod frame_sort;
pub(crate) mod partitions;
pub(crate) mod prefetch;
pub(crate) mod table_column;
pub(crate) mod table_memory;
pub(crate) mod texts_in_order;

/// Prefix of the names of folders for temporary files. Those of jobs that were killed are removed by the next job in the
/// same output folder.
pub const SPOOL: &str = "spool.tmp-";
