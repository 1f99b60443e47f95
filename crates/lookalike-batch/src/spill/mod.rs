//! Data of a job that may exceed its memory: partitions of records on disk, feature sets, sorted runs.

pub(crate) mod arrange;
pub(crate) mod external_sort;
pub(crate) mod feature_sets;
pub(crate) mod frame_sort;
pub(crate) mod list_table;
pub(crate) mod partitions;
pub(crate) mod prefetch;
pub(crate) mod sorted_runs;
pub(crate) mod table_column;
pub(crate) mod table_memory;
pub(crate) mod texts_in_order;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Prefix of the names of folders for temporary files. The next job in an output folder removes those that killed jobs
/// left there.
pub const SPOOL: &str = "spool.tmp-";

/// Removes folders of temporary files that killed jobs left in `folder`, except the one named `used`.
pub(crate) fn remove_spools(folder: &Path, used: Option<&OsStr>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_left = name.to_string_lossy().starts_with(SPOOL) && Some(&*name) != used;
        if is_left && entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Returns the file, which is made in `folder` without a name when it is first needed.
pub(crate) fn temporary_file<'f, F: From<File>>(
    file: &'f mut Option<F>,
    folder: &Path,
) -> io::Result<&'f mut F> {
    Ok(match file {
        Some(file) => file,
        None => file.insert(tempfile::tempfile_in(folder)?.into()),
    })
}
