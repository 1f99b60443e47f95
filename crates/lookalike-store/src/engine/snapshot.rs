//! Writing a collection as of one moment to another folder.

use std::path::Path;

use super::CollectionEngine;
use crate::clean_shutdown::CleanShutdown;
use crate::error::{Result, StoreError};
use crate::file_copy::{copy_open_file, link};
use crate::file_names::{PART, file_path};
use crate::fs::{read_exact, write_all};
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
        let parts = manifest.parts.iter();
        let parts = parts.map(|part| (part.file, PART));
        let runs = manifest.runs.iter().map(|run| (run.file, "run"));
        let tombstones = manifest.runs.iter().filter_map(|run| run.tombstones);
        let tombstones = tombstones.map(|file| (file, "tombstones"));
        let mut unlinked = Vec::new();
        for (number, kind) in parts.chain(runs).chain(tombstones) {
            let (from, to) = (self.path(number, kind), file_path(target, number, kind));
            if !link(fs, &from, &to)? {
                let file = fs.open(&from, false);
                let file = file.map_err(StoreError::io(&from, "copying a file"))?;
                unlinked.push((file, from, to));
            }
        }
        for &log in &manifest.logs {
            let (from, to) = (self.path(log, "log"), file_path(target, log, "log"));
            if log == writer.log.file() {
                // No more than what is acknowledged.
                let failed = |error| StoreError::io(&to, "copying a log")(error);
                let mut bytes = vec![0; writer.log.end() as usize];
                read_exact(&*fs.open(&from, false).map_err(failed)?, &mut bytes, 0)
                    .map_err(failed)?;
                let file = fs.create(&to).map_err(failed)?;
                write_all(&*file, &bytes, 0).map_err(failed)?;
                file.sync().map_err(failed)?;
            } else {
                // It never changes any more.
                let file = fs.open(&from, false);
                let file = file.map_err(StoreError::io(&from, "copying a log"))?;
                unlinked.push((file, from, to));
            }
        }
        // With this mark, a restored collection treats a truncated log as damage, not as a crash.
        let clean_shutdown = CleanShutdown {
            collection: manifest.collection,
            log: writer.log.file(),
            end: writer.log.end(),
            next: writer.log.next(),
            time: self.now(UnixMillis(0)).0,
        };
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
