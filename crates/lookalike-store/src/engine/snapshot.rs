//! One moment of a collection, in another folder.

use std::path::Path;

use super::{Engine, file_path};
use crate::error::{Result, StoreError};
use crate::fs::{read_exact, write_all};
use crate::maintenance::{copy, link_or_copy};
use crate::manifest::ReplaceError;
use crate::marker::Marker;
use crate::time::Time;

impl Engine {
    /// Writes all that is durable now into a folder that is empty. Writers wait, readers do not.
    pub(crate) fn snapshot(&self, target: &Path) -> Result<()> {
        let mut writer = self.writer();
        self.ensure_settled(&mut writer)?;
        let (fs, manifest) = (&*self.fs, &writer.manifest);
        for run in &manifest.runs {
            let files = [Some((run.file, "run")), run.dead.map(|dead| (dead, "dead"))];
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
                copy(fs, &from, &to)?;
            }
        }
        let marker = Marker {
            collection: manifest.collection,
            log: writer.log.file(),
            end: writer.log.end(),
            next: writer.log.next(),
            time: self.now(Time(0)).0,
        };
        marker.write(fs, target)?;
        manifest.write(fs, target).map_err(|error| match error {
            ReplaceError::Before(error) | ReplaceError::Unknown(error) => error,
        })
    }
}
