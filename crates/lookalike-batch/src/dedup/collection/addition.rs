//! Adding documents to a collection in two steps: the segment is written where nobody looks at it, then the manifest names it.
//!
//! Between the two a job writes its results. One that is killed leaves the collection as it was, or with all of the addition; the staged
//! addition, which the job keeps beside its checkpoint, tells a resumed job which of the two it is.

use std::io::{self, Write};
use std::path::Path;

use lookalike_corpus::{AtomicFile, Compression};
use serde::{Deserialize, Serialize};

use crate::dedup::candidate_groups::KeySink;
use crate::dedup::collection::directory::CollectionWriter;
use crate::dedup::collection::error::CollectionError;
use crate::dedup::collection::manifest::{CollectionSetting, DirectoryManifest, OrderEntry};
use crate::dedup::collection::segment::{SegmentEntry, SegmentSource};
use crate::dedup::documents::RankingFacts;
use crate::dedup::frequency::FrequencyLevels;

/// A segment that is written, and not yet part of the collection.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct StagedAddition {
    /// Checksum of the manifest that the addition belongs to; none for a new collection.
    base: Option<u64>,
    settings: Vec<CollectionSetting>,
    order: OrderEntry,
    /// None if nothing is added.
    segment: Option<SegmentEntry>,
}

/// Facts about new documents that a job uses up before it has decided which of them to add.
pub(crate) struct KeptFacts {
    pub(crate) facts: RankingFacts,
    pub(crate) keys: KeySink,
    /// The order of features under which keys were made.
    pub(crate) levels: FrequencyLevels,
}

/// A collection after an addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AddedDocuments {
    /// Documents that were added.
    pub added: u64,
    /// Documents in the collection now.
    pub documents: u64,
}

impl StagedAddition {
    /// Writes the `chosen` documents as a segment of the collection, which stays as it is. A new collection gets the order `levels`.
    pub(crate) fn write(
        writer: &CollectionWriter,
        settings: Vec<CollectionSetting>,
        levels: &FrequencyLevels,
        source: &SegmentSource<'_>,
        chosen: impl Iterator<Item = u32>,
    ) -> Result<Self, CollectionError> {
        let manifest = writer.manifest()?;
        let order = match &manifest {
            Some((manifest, _)) => {
                manifest.ensure_same(&writer.folder, &settings)?;
                // A job that was killed may have left a segment under the name that comes next.
                writer.remove_unnamed(manifest)?;
                manifest.order.clone()
            }
            None => writer.save_order(levels)?,
        };
        let name = CollectionWriter::next_segment(manifest.as_ref().map(|(manifest, _)| manifest));
        let mut chosen = chosen.peekable();
        let segment = match chosen.peek() {
            None => None,
            Some(_) => {
                let path = writer.folder.join(&name);
                let written = source.write(chosen, &writer.folder, &name);
                Some(written.map_err(CollectionError::unwritable(&path))?)
            }
        };
        Ok(Self {
            base: manifest.map(|(_, checksum)| checksum),
            settings,
            order,
            segment,
        })
    }

    /// Makes the segment part of the collection, in one step; nothing is done if it is that already.
    pub(crate) fn commit(&self, writer: &CollectionWriter) -> Result<(), CollectionError> {
        match self.manifest(writer)? {
            // An empty addition is in every manifest, but a new collection needs one all the same.
            manifest if self.is_in(&manifest) && !self.is_new(writer)? => Ok(()),
            mut manifest => {
                manifest.segments.extend(self.segment.clone());
                manifest.save(&writer.folder)
            }
        }
    }

    /// The collection as [`StagedAddition::commit`] leaves it.
    pub(crate) fn added(
        &self,
        writer: &CollectionWriter,
    ) -> Result<AddedDocuments, CollectionError> {
        let manifest = self.manifest(writer)?;
        let added = self.segment.as_ref().map_or(0, |segment| segment.documents);
        let waiting = if self.is_in(&manifest) { 0 } else { added };
        Ok(AddedDocuments {
            added,
            documents: manifest.documents() + waiting,
        })
    }

    /// Checksum of the manifest that the job was compared with, if the collection is still that or that with this addition.
    pub(crate) fn base(&self, writer: &CollectionWriter) -> Result<Option<u64>, CollectionError> {
        self.manifest(writer).map(|_| self.base)
    }

    /// The manifest that the addition belongs to, or that has it already.
    fn manifest(&self, writer: &CollectionWriter) -> Result<DirectoryManifest, CollectionError> {
        let found = writer.manifest()?;
        let checksum = found.as_ref().map(|(_, checksum)| *checksum);
        match found {
            None if self.base.is_none() => Ok(DirectoryManifest::new(
                self.settings.clone(),
                self.order.clone(),
            )),
            Some((manifest, _)) if checksum == self.base || self.is_in(&manifest) => Ok(manifest),
            _ => Err(CollectionError::Changed {
                folder: writer.folder.clone(),
            }),
        }
    }

    /// True if there is no collection yet.
    fn is_new(&self, writer: &CollectionWriter) -> Result<bool, CollectionError> {
        Ok(writer.manifest()?.is_none())
    }

    /// True if there is nothing left to be added to a collection.
    fn is_in(&self, manifest: &DirectoryManifest) -> bool {
        let is_there = |segment| manifest.segments.contains(segment);
        self.segment.as_ref().is_none_or(is_there)
    }

    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        let mut file = AtomicFile::create(path, Compression::None)?;
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        file.commit()
    }

    pub(crate) fn load(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }
}
