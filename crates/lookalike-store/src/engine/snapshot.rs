//! Writing a collection as of one moment to another folder.

use std::path::Path;

use super::CollectionEngine;
use crate::error::{Result, StoreError};
use crate::file_copy::{copy_open_file, link};
use crate::file_names::file_path;
use crate::fs::{read_exact, write_file};
use crate::time::UnixMillis;

impl CollectionEngine {
    /// Writes everything that is durable now to an empty folder, and returns the identity of the collection. Writers wait while files are
    /// linked and the newest log is copied; readers do not. If the collection takes no more writes, the folder stays empty.
    pub(crate) fn snapshot(&self, target: &Path) -> Result<u64> {
        let mut writer = self.writer();
        self.ensure_manifest_certain(&mut writer)?;
        // Under the writer lock, no flush or merge can remove a file that this manifest names. Neither can removing or replacing the
        // collection, because these stop its writes first.
        let (fs, manifest) = (&*self.fs, writer.manifest.clone());
        let mut unlinked = Vec::new();
        for (number, kind) in manifest.files() {
            let (from, to) = (self.path(number, kind), file_path(target, number, kind));
            if number == writer.log.file() {
                // No more than what is acknowledged.
                let failed = |error| StoreError::io(&to, "copying a log")(error);
                let mut bytes = vec![0; writer.log.end() as usize];
                read_exact(&*fs.open(&from, false).map_err(failed)?, &mut bytes, 0)
                    .map_err(failed)?;
                write_file(fs, &to, &bytes).map_err(failed)?;
            } else if kind == "log" || !link(fs, &from, &to)? {
                // A restored store may append to its last log, so logs are copied.
                let file = fs.open(&from, false);
                let file = file.map_err(StoreError::io(&from, "copying a file"))?;
                unlinked.push((file, from, to));
            }
        }
        // With this mark, a restored collection treats a truncated log as damage, not as a crash.
        let clean_shutdown = writer.clean_shutdown(self.now(UnixMillis(0)));
        drop(writer);
        // An open file keeps its contents when it is removed, so writers need not wait while gigabytes are copied.
        for (file, from, to) in unlinked {
            copy_open_file(fs, &*file, &from, &to)?;
        }
        clean_shutdown.write(fs, target)?;
        // Last, because a folder without a manifest is not a collection. Its sync of the folder also makes the linked names durable.
        manifest.write(fs, target)?;
        Ok(manifest.collection)
    }
}
