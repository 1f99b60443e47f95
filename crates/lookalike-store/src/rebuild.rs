//! Rebuilding of a collection under another scheme or radius, beside its traffic.
//!
//! A new collection is filled in the folder that the old one does not use. All documents of a moment are copied, one batch after
//! the other; a journal tells what changes meanwhile, and after each batch the documents that it names are copied again, as they
//! are by then. At last, while nobody writes, the rest is copied and the catalog names the new folder in the place of the old
//! one: the one step by which the collection changes. Before that step the catalog lists the new folder among those to remove,
//! after it the old one, so that whatever a crash leaves is removed at the next start.

use std::sync::Arc;
use std::time::Duration;

use crate::batch_writer::BatchWriter;
use crate::collection::Collection;
use crate::document::StoredDocument;
use crate::error::{Result, StoreError};
use crate::manifest::ReplaceError;
use crate::scheme_part::SchemePart;
use crate::settings::{CollectionSettings, StoredScheme};
use crate::store::Store;
use crate::sync::lock;
use crate::time::UnixMillis;

/// Documents that are copied before the journal is looked at.
const BATCH: usize = 256;
/// Bytes of them, roughly; at least one document.
const BATCH_BYTES: usize = 8 << 20;
/// Changes that are few enough to be copied while nobody writes.
const FEW_CHANGES: usize = 64;
/// Times that the journal is emptied before the rest is copied while nobody writes, however much it is.
const ROUNDS: usize = 32;

/// Settings that a collection gets when it is rebuilt. All others stay.
///
/// ```
/// # use lookalike::Scheme;
/// use lookalike_store::{RebuildTarget, StoreError};
/// # use lookalike_store::{CollectionSettings, Store, StoreOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let store = Store::open(&folder, StoreOptions::default().create(true))?;
/// # store.create_collection("pages", &CollectionSettings::new(&Scheme::default()))?;
/// let pages = store.collection("pages")?;
/// // Another radius, and the same scheme: documents stay as they are.
/// let target = RebuildTarget::new(pages.settings().scheme.clone(), 6);
/// store.rebuild_collection(&pages, &target, &mut |document| Ok(document), || Ok::<_, StoreError>(()))?;
/// assert_eq!(store.collection("pages")?.settings().radius, 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RebuildTarget {
    /// Its scheme.
    pub scheme: StoredScheme,
    /// Its radius.
    pub radius: u32,
    /// The parts of the scheme that its text only names.
    pub parts: Vec<SchemePart>,
}

impl RebuildTarget {
    /// A scheme without parts, and a radius.
    pub fn new(scheme: StoredScheme, radius: u32) -> Self {
        Self {
            scheme,
            radius,
            parts: Vec::new(),
        }
    }

    /// Sets the parts of the scheme that its text only names.
    #[must_use]
    pub fn parts(mut self, parts: Vec<SchemePart>) -> Self {
        self.parts = parts;
        self
    }
}

/// Report on a collection that was rebuilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RebuildReport {
    /// Writes into the new collection: its documents, and what changed meanwhile once more.
    pub written: u64,
}

/// A collection that is being rebuilt, and the one that is to stand in its place.
struct Rebuild<'s> {
    store: &'s Store,
    old: Arc<Collection>,
    new: Arc<Collection>,
    /// Identities of the old and the new collection.
    identities: [u64; 2],
    /// Name of the folder that is to be removed at the end: that of the new one until it is in its place.
    spare: String,
    /// True if nobody knows which of the two the catalog on disk names: the next start removes the files of the other one.
    is_uncertain: bool,
    written: u64,
}

/// Keeps the name of a collection as that which is being rebuilt.
struct RebuildSlot<'s>(&'s Store);

impl<'s> RebuildSlot<'s> {
    fn take(store: &'s Store, name: &str) -> Result<Self> {
        let mut running = lock(&store.rebuilding);
        if let Some(other) = &*running {
            return Err(StoreError::Rebuilding(other.clone()));
        }
        *running = Some(name.to_owned());
        drop(running);
        Ok(Self(store))
    }
}

impl Drop for RebuildSlot<'_> {
    fn drop(&mut self) {
        *lock(&self.0.rebuilding) = None;
    }
}

impl Store {
    /// Builds a collection anew under another scheme or radius, while others read and write it, and puts it in the place of the
    /// old one in one durable step. `convert` makes each document one of the new scheme, some more than once; it keeps the id. Each
    /// document keeps its end. Their order stays; those that change meanwhile stand where they were copied. `may_replace` is asked when only
    /// that step is left: its last chance to refuse. Who still holds the old collection reads what it was, and can write no more
    /// ([`StoreError::Replaced`]).
    ///
    /// # Errors
    /// Those of `convert` and `may_replace`; [`StoreError::Rebuilding`], for one collection is rebuilt at a time; [`StoreError::Invalid`] of
    /// settings that no collection can have; [`StoreError::NoCollection`] or [`StoreError::Closed`] if the collection was removed; failures of
    /// the medium. Then the old collection stands as it was, with all that was written to it.
    pub fn rebuild_collection<E: From<StoreError>>(
        &self,
        collection: &Arc<Collection>,
        target: &RebuildTarget,
        convert: &mut dyn FnMut(StoredDocument) -> Result<StoredDocument, E>,
        may_replace: impl FnOnce() -> Result<(), E>,
    ) -> Result<RebuildReport, E> {
        let _slot = RebuildSlot::take(self, collection.name())?;
        let mut rebuild = Rebuild::begin(self, collection, target)?;
        rebuild.copy_all(convert)?;
        collection.engine().replace(|| {
            rebuild.copy_changes(convert)?;
            may_replace()?;
            rebuild.put_in_place().map_err(E::from)
        })?;
        // When it goes, it ends the old collection and removes its files.
        Ok(RebuildReport {
            written: rebuild.written,
        })
    }
}

impl<'s> Rebuild<'s> {
    /// Makes the new collection, empty, and begins the journal of the old one.
    fn begin(store: &'s Store, old: &Arc<Collection>, target: &RebuildTarget) -> Result<Self> {
        let name = old.name();
        let settings = CollectionSettings {
            scheme: target.scheme.clone(),
            radius: target.radius,
            ..CollectionSettings::clone(&old.settings())
        };
        settings.check()?;
        let (spare, secrets, old_identity) = {
            let mut state = store.state();
            let named = state.catalog.collections.get(name);
            let Some(&identity) = named.filter(|_| state.holds(old)) else {
                return Err(StoreError::NoCollection(name.to_owned()));
            };
            let spare = state.catalog.spare_folder_name(name);
            if state.busy_folders.contains(&spare) {
                return Err(StoreError::BeingRemoved(name.to_owned()));
            }
            let secrets = store.new_secrets(&spare);
            let mut catalog = state.catalog.clone();
            catalog.removing.insert(spare.clone(), secrets.identity);
            // Before the first file: from here on a crash leaves nothing behind.
            store.replace_catalog(&mut state, catalog)?;
            state.busy_folders.insert(spare.clone());
            (spare, secrets, identity)
        };
        let made = store
            .make_files(&spare, &settings, &target.parts, secrets)
            .and_then(|()| store.open_files(name, &spare, secrets.identity));
        let new = match made {
            Ok(new) => new,
            Err(error) => {
                // What cannot be removed now is removed at the next start.
                let _ = store.remove_files(&spare);
                return Err(error);
            }
        };
        old.engine().begin_journal();
        Ok(Self {
            store,
            old: Arc::clone(old),
            new,
            identities: [old_identity, secrets.identity],
            spare,
            is_uncertain: false,
            written: 0,
        })
    }

    /// Copies all documents, and then what changed meanwhile, until little is left.
    fn copy_all<E: From<StoreError>>(
        &mut self,
        convert: &mut dyn FnMut(StoredDocument) -> Result<StoredDocument, E>,
    ) -> Result<(), E> {
        let old = Arc::clone(&self.old);
        let (mut ids, mut bytes, mut failure) = (Vec::new(), 0, None);
        let visited = old.engine().for_each(UnixMillis(0), &mut |document| {
            bytes += document.size();
            ids.push(document.id);
            if ids.len() < BATCH && bytes < BATCH_BYTES {
                return Ok(());
            }
            bytes = 0;
            let copied = self.copy(std::mem::take(&mut ids), convert);
            let caught_up = copied.and_then(|()| self.copy_changes(convert).map(drop));
            caught_up.map_err(|error| {
                failure = Some(error);
                // It ends the visit, and is not told.
                StoreError::Closed
            })
        });
        failure.map_or(Ok(()), Err)?;
        visited?;
        self.copy(ids, convert)?;
        for _ in 0..ROUNDS {
            if self.copy_changes(convert)? <= FEW_CHANGES {
                break;
            }
        }
        Ok(())
    }

    /// Copies what has changed; how much that was.
    fn copy_changes<E: From<StoreError>>(
        &mut self,
        convert: &mut dyn FnMut(StoredDocument) -> Result<StoredDocument, E>,
    ) -> Result<usize, E> {
        let changed = self.old.engine().take_changes();
        self.old.changes_were_taken();
        let count = changed.len();
        self.copy(changed, convert)?;
        Ok(count)
    }

    /// Makes some documents of the new collection what those of the old one are now.
    fn copy<E: From<StoreError>>(
        &mut self,
        ids: Vec<String>,
        convert: &mut dyn FnMut(StoredDocument) -> Result<StoredDocument, E>,
    ) -> Result<(), E> {
        if self.old.is_closed() {
            return Err(StoreError::Closed.into());
        }
        let engine = self.old.engine();
        let now = engine.now(UnixMillis(0));
        let mut writer = BatchWriter::new(&self.new, now);
        for id in ids {
            // As it is now, not as it was when it was visited: what a change that was copied before has made of it
            // must not come back.
            match engine.get(&id, now)? {
                Some(document) => {
                    let converted = convert(Arc::unwrap_or_clone(document))?;
                    debug_assert_eq!(converted.id, id);
                    writer.insert(converted)?;
                }
                None => writer.delete(id)?,
            }
        }
        writer.flush()?;
        self.written += writer.written;
        Ok(())
    }

    /// Puts the new collection in the place of the old one. The writer lock of the old one is held.
    fn put_in_place(&mut self) -> Result<()> {
        let (store, name, [old, new]) = (self.store, self.old.name(), self.identities);
        let time_to_live: Option<Duration> = self.old.settings().time_to_live;
        if self.new.settings().time_to_live != time_to_live {
            self.new.set_time_to_live(time_to_live)?;
        }
        self.new.observe_time(self.old.engine().now(UnixMillis(0)));
        let mut state = store.state();
        if state.catalog.collections.get(name) != Some(&old) {
            // It was removed, and perhaps made again.
            return Err(StoreError::NoCollection(name.to_owned()));
        }
        let mut catalog = state.catalog.clone();
        let left = catalog.folder_name(name);
        catalog.collections.insert(name.to_owned(), new);
        if !catalog.moved.remove(name) {
            catalog.moved.insert(name.to_owned());
        }
        catalog.removing.remove(&self.spare);
        catalog.removing.insert(left.clone(), old);
        match store.replace_catalog(&mut state, catalog) {
            // The old collection takes no more writes: the next start might not find them.
            Err(ReplaceError::Unknown(error)) => {
                self.is_uncertain = true;
                return Err(self.old.engine().stop(&error));
            }
            replaced => replaced?,
        }
        state
            .collections
            .insert(name.to_owned(), Ok(Arc::clone(&self.new)));
        state.busy_folders.remove(&self.spare);
        state.busy_folders.insert(left.clone());
        self.spare = left;
        Ok(())
    }
}

impl Drop for Rebuild<'_> {
    /// Ends the collection that is not in its place, and removes its files; also when `convert` panicked.
    fn drop(&mut self) {
        self.old.engine().end_journal();
        self.old.changes_were_taken();
        let gone = if self.old.engine().is_replaced() {
            &self.old
        } else {
            &self.new
        };
        gone.abandon();
        if self.is_uncertain {
            return;
        }
        // What cannot be removed now is removed at the next start.
        let _ = self.store.remove_files(&self.spare);
    }
}
