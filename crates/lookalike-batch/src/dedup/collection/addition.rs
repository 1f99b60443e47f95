//! Additions to a collection in two steps: the segment is written first, without being part of the collection; then the manifest names it.
//!
//! A job writes its results between the two steps. If it is killed, the collection is unchanged or has the whole addition; the staged
//! addition, which the job saves beside its checkpoint, tells a resumed job which of the two is the case.
//!
//! The segment also has the documents of the newest segments, if [`merge`](crate::dedup::collection::merge) decides so. These segments are removed
//! once the manifest no longer names them.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::dedup::collection::directory::CollectionWriter;
use crate::dedup::collection::error::CollectionError;
use crate::dedup::collection::lookup::SegmentFile;
use crate::dedup::collection::manifest::{AdditionEntry, CollectionSetting, DirectoryManifest};
use crate::dedup::collection::merge::{MergeError, RECORD_BYTES, SegmentMerge, first_to_merge};
use crate::dedup::collection::segment::SegmentSource;
use crate::unfinished::write_whole;

/// A segment that has been written but is not yet part of the collection.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct StagedAddition {
    /// Checksum of the manifest that the addition extends; `None` for a new collection.
    base: Option<u64>,
    /// Number of documents added.
    added: u64,
    /// The manifest of the collection with the addition.
    manifest: DirectoryManifest,
}

/// Size of a collection after an addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AddedDocuments {
    /// Number of documents that were added.
    pub added: u64,
    /// Number of documents in the collection now.
    pub documents: u64,
}

impl StagedAddition {
    /// Writes the `chosen` documents as a segment, without changing the collection. A new collection gets the order `levels`. Older
    /// segments are merged with it as far as `memory` bytes allow.
    pub(crate) fn write(
        writer: &CollectionWriter,
        settings: Vec<CollectionSetting>,
        source: &SegmentSource<'_>,
        chosen: impl Iterator<Item = u32>,
        memory: u64,
    ) -> Result<Self, CollectionError> {
        let found = writer.manifest()?;
        let name = CollectionWriter::next_segment(found.as_ref().map(|(manifest, _)| manifest));
        let base = found.as_ref().map(|(_, checksum)| *checksum);
        let mut chosen = chosen.peekable();
        let adds = chosen.peek().is_some();
        let mut manifest = match found {
            Some((manifest, _)) => {
                manifest.ensure_same(&writer.folder, &settings)?;
                // A killed job may have left a segment with the next name. It can still be resumed unless this job adds something.
                if adds {
                    writer.remove_unnamed(&manifest)?;
                }
                manifest
            }
            None => DirectoryManifest::new(settings, writer.save_order(&source.new.levels)?),
        };
        let mut added = 0;
        // Nothing to add makes no segment, but a new collection gets its manifest all the same.
        if adds {
            let path = writer.folder.join(&name);
            let segment = source
                .write(chosen, &writer.folder, &name)
                .map_err(CollectionError::unwritable(&path))?;
            added = segment.documents;
            manifest.additions.push(AdditionEntry {
                identity: segment.identity,
            });
            manifest.segments.push(segment);
            merge_newest(&mut manifest, writer, source.settings.tests.len(), memory)?;
        }
        Ok(Self {
            base,
            added,
            manifest,
        })
    }

    /// Makes the segment part of the collection, in one step. Does nothing if it already is.
    pub(crate) fn commit(&self, writer: &CollectionWriter) -> Result<(), CollectionError> {
        if self.committed(writer)?.is_some() {
            return Ok(());
        }
        self.ensure_segments_exist(writer)?;
        self.manifest.save(&writer.folder)?;
        // Remove the files that were merged. Ignore an error, because the addition is complete and the next one removes the rest.
        let _ = writer.remove_unnamed(&self.manifest);
        Ok(())
    }

    /// Removes the files of an addition that will not be made. Ignores errors, because the next addition removes the rest.
    pub(crate) fn discard(&self, writer: &CollectionWriter) {
        let Ok(now) = writer.manifest() else {
            return;
        };
        let is_named = |name: &str| {
            let mut named = now.iter().flat_map(|(manifest, _)| manifest.files());
            named.any(|file| file == name)
        };
        for name in self.manifest.files().filter(|name| !is_named(name)) {
            let _ = std::fs::remove_file(writer.folder.join(name));
        }
    }

    /// Returns true if the collection has the documents of the addition, from this job or an equal one.
    pub(crate) fn is_made(&self, writer: &CollectionWriter) -> Result<bool, CollectionError> {
        match self.committed(writer) {
            Err(CollectionError::Changed { .. }) => Ok(false),
            committed => Ok(committed?.is_some() && self.added > 0),
        }
    }

    /// Returns the numbers of documents after [`StagedAddition::commit`].
    pub(crate) fn added(
        &self,
        writer: &CollectionWriter,
    ) -> Result<AddedDocuments, CollectionError> {
        let committed = self.committed(writer)?;
        let manifest = committed.as_ref().unwrap_or(&self.manifest);
        Ok(AddedDocuments {
            added: self.added,
            documents: manifest.documents(),
        })
    }

    /// Returns the checksum of the manifest that the job was compared with. Returns an error unless the collection still has that manifest, or this
    /// addition.
    pub(crate) fn base(&self, writer: &CollectionWriter) -> Result<Option<u64>, CollectionError> {
        self.committed(writer).map(|_| self.base)
    }

    /// Returns the manifest if it has the addition, and possibly later ones; `None` if it is still the one that the addition extends.
    fn committed(
        &self,
        writer: &CollectionWriter,
    ) -> Result<Option<DirectoryManifest>, CollectionError> {
        match writer.manifest()? {
            // Every manifest has an empty addition, but a new collection needs a manifest even then.
            None if self.base.is_none() => Ok(None),
            // Later additions and merges keep the beginning of the list.
            Some((manifest, _)) if manifest.additions.starts_with(&self.manifest.additions) => {
                Ok(Some(manifest))
            }
            Some((_, checksum)) if self.base == Some(checksum) => Ok(None),
            _ => Err(self.changed(writer)),
        }
    }

    /// Returns an error if another job, which was not completed, has replaced or removed a segment.
    fn ensure_segments_exist(&self, writer: &CollectionWriter) -> Result<(), CollectionError> {
        for segment in &self.manifest.segments {
            // Opening reads the indexes, whose checksums depend on the identity of the segment, so the file of another job is noticed.
            SegmentFile::open(&writer.folder, segment).map_err(|error| match error {
                CollectionError::Damaged { .. } => self.changed(writer),
                error => error,
            })?;
        }
        Ok(())
    }

    fn changed(&self, writer: &CollectionWriter) -> CollectionError {
        CollectionError::Changed {
            folder: writer.folder.clone(),
        }
    }

    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        let mut json = serde_json::to_vec(self)?;
        json.push(b'\n');
        write_whole(path, &json)
    }

    pub(crate) fn load(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }
}

/// Merges the newest segment of a manifest with older ones, which it replaces.
fn merge_newest(
    manifest: &mut DirectoryManifest,
    writer: &CollectionWriter,
    tests: usize,
    memory: u64,
) -> Result<(), CollectionError> {
    let most = writer.most_merged.min(memory / RECORD_BYTES);
    let first = first_to_merge(&manifest.segments, most);
    let [_, .., newest] = &manifest.segments[first..] else {
        return Ok(());
    };
    // This replaces the file of the addition, which no manifest names yet. Its open handle still reads the old one.
    let name = newest.file.clone();
    let open = |entry| SegmentFile::open(&writer.folder, entry);
    let segments = manifest.segments[first..].iter().map(open);
    let segments = segments.collect::<Result<Vec<_>, _>>()?;
    let merge = SegmentMerge {
        segments: &segments,
        tests,
    };
    match merge.write(&writer.folder, &name) {
        Ok(merged) => {
            manifest.segments.truncate(first);
            manifest.segments.push(merged);
            Ok(())
        }
        // If there is only space for the addition, it remains a separate segment until the next one.
        Err(MergeError::Write(error)) if is_full(&error) => Ok(()),
        Err(MergeError::Write(error)) => Err(CollectionError::unwritable(
            &writer.folder.join(&name),
        )(error)),
        Err(MergeError::Read(error)) => Err(error),
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
