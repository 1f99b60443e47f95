//! One moment of a collection, in another folder.

use std::path::Path;

use super::CollectionEngine;
use crate::clean_shutdown::CleanShutdown;
use crate::error::{Result, StoreError};
use crate::file_copy::{copy_file, link_or_copy};
use crate::file_names::file_path;
use crate::fs::{read_exact, write_all};
use crate::scheme_part;
use crate::time::UnixMillis;

impl CollectionEngine {
    /// Writes all that is durable now into a folder that is empty; the identity of the collection. Writers wait, readers do not.
    /// A collection that takes no more writes leaves the folder empty.
    pub(crate) fn snapshot(&self, target: &Path) -> Result<u64> {
        let mut writer = self.writer();
        self.ensure_manifest_certain(&mut writer)?;
        // The writer lock is held to the end: no flush or merge can remove a file that this manifest names, and neither can
        // who removes the collection or puts another in its place, for they end its writes first.
        // Links take no time; only logs are copied.
        let (fs, manifest) = (&*self.fs, &writer.manifest);
        for part in &manifest.parts {
            let (file, kind) = (part.file, scheme_part::KIND);
            link_or_copy(fs, &self.path(file, kind), &file_path(target, file, kind))?;
        }
        for run in &manifest.runs {
            let files = [
                Some((run.file, "run")),
                run.tombstones.map(|file| (file, "tombstones")),
            ];
            for (number, kind) in files.into_iter().flatten() {
                link_or_copy(
                    fs,
                    &self.path(number, kind),
                    &file_path(target, number, kind),
                )?;
            }
        }
        for &log in &manifest.logs {
            let (from, to) = (self.path(log, "log"), file_path(target, log, "log"));
            if log == writer.log.file() {
                // No more than is acknowledged.
                let failed = |error| StoreError::io(&to, "copying a log")(error);
                let mut bytes = vec![0; writer.log.end() as usize];
                read_exact(&*fs.open(&from, false).map_err(failed)?, &mut bytes, 0)
                    .map_err(failed)?;
                let file = fs.create(&to).map_err(failed)?;
                write_all(&*file, &bytes, 0).map_err(failed)?;
                file.sync().map_err(failed)?;
            } else {
                copy_file(fs, &from, &to)?;
            }
        }
        // With this mark a restored collection takes a shortened log for damage, not for a crash.
        let clean_shutdown = CleanShutdown {
            collection: manifest.collection,
            log: writer.log.file(),
            end: writer.log.end(),
            next: writer.log.next(),
            time: self.now(UnixMillis(0)).0,
        };
        clean_shutdown.write(fs, target)?;
        // Last: a folder without a manifest is no collection. Its sync of the folder makes the linked names
        // durable, too.
        manifest.write(fs, target)?;
        Ok(manifest.collection)
    }
}
