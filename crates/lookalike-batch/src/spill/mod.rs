//! Data of a job that may exceed its memory: partitions of records on disk, feature sets, sorted runs.

pub(crate) mod arrange;
pub(crate) mod external_sort;
pub(crate) mod feature_sets;
pub(crate) mod frame_sort;
pub(crate) mod list_table;
pub(crate) mod offset_writer;
pub(crate) mod partitions;
pub(crate) mod prefetch;
pub(crate) mod sorted_runs;
pub(crate) mod table_column;
pub(crate) mod table_memory;
pub(crate) mod texts_in_order;

use std::fs::{self, File};
use std::io;
use std::path::Path;

use lookalike_corpus::open_lockable;

/// Prefix of the names of folders for temporary files. The next job in an output folder removes those that killed jobs
/// left there, if the file system has locks.
pub const SPOOL: &str = "spool.tmp-";

/// File in such a folder that its job locks.
pub const SPOOL_LOCK: &str = "in-use";

/// Removes folders of temporary files whose jobs have ended. Folders that cannot be read or removed belong to other users, and stay.
pub fn remove_abandoned_spools(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let is_spool = entry.file_name().to_string_lossy().starts_with(SPOOL);
        // This excludes links to folders.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_spool && is_folder && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    // A FIFO of another user would block an ordinary `open`.
    let lock = open_lockable(&folder.join(SPOOL_LOCK));
    // Locks of this kind belong to the open file, so a second attempt in the same process fails, too: several jobs of one program do not remove each
    // other's folders.
    lock.is_ok_and(|file| file.try_lock().is_ok())
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
