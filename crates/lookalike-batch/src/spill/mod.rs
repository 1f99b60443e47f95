//! Data of a job that may outgrow its memory: partitions of records on disk, feature sets, sorted runs.

pub(crate) mod arrange;
pub(crate) mod external_sort;
pub(crate) mod feature_sets;
pub(crate) mod frame_sort;
pub(crate) mod partitions;
pub(crate) mod prefetch;
