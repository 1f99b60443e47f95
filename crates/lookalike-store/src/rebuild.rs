//! Rebuilding a collection under another scheme or radius while it is used.
//!
//! A new collection is filled in the folder that the old one does not use. All documents as of one moment are copied, batch by batch. A
//! journal records the ids of documents that change meanwhile; after each batch, these are copied again in their current state. Finally,
//! with writes blocked, the remaining changes are copied, and the catalog is replaced by one that names the new folder instead of the old.
//! This is the single step that replaces the collection. Before it, the catalog lists the new folder among those to remove; after it, the
//! old one. So whatever a crash leaves behind is removed at the next start.

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

/// Maximum number of documents that are copied before the journal is read.
const BATCH: usize = 256;
/// Approximate maximum size of these documents in bytes; at least one is copied.
const BATCH_BYTES: usize = 8 << 20;
/// Maximum number of changes that are left to be copied while writes are blocked.
const MAX_CHANGES_WHILE_BLOCKED: usize = 64;
/// Number of times that the journal is emptied before writes are blocked and the rest is copied, however large it is.
const ROUNDS: usize = 32;

/// Settings that a rebuild changes. All others stay.
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
    /// New scheme.
    pub scheme: StoredScheme,
    /// New radius.
    pub radius: u32,
    /// Parts of the new scheme, data that its text only names.
    pub parts: Vec<SchemePart>,
}

impl RebuildTarget {
    /// Creates a target with a scheme without parts, and a radius.
    pub fn new(scheme: StoredScheme, radius: u32) -> Self {
        Self {
            scheme,
            radius,
            parts: Vec::new(),
        }
    }

    /// Sets the parts of the scheme, data that its text only names.
    #[must_use]
    pub fn parts(mut self, parts: Vec<SchemePart>) -> Self {
        self.parts = parts;
        self
    }
}

/// The report on a rebuild.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RebuildReport {
    /// Number of writes to the new collection. Documents that changed meanwhile count again.
    pub written: u64,
}

/// A collection that is being rebuilt, and the one that will replace it.
struct Rebuild<'s> {
    store: &'s Store,
    old: Arc<Collection>,
    new: Arc<Collection>,
    /// Identities of the old and the new collection.
    identities: [u64; 2],
    /// Name of the folder to remove at the end: the new one until it has replaced the old one, then the old one.
    spare: String,
    /// True if it is unknown which of the two the catalog on disk names. The next start removes the files of the other one.
    is_uncertain: bool,
    written: u64,
}

/// Registers a collection as the one that is being rebuilt, until dropped.
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
    /// Rebuilds a collection under another scheme or radius while it is read and written, and replaces the old one in a single durable
    /// step. `convert` turns each document into one of the new scheme, and may be called several times for the same document; it must keep
    /// the id. Documents keep their expiry and their order, except that those that change meanwhile come where they were copied last.
    /// `may_replace` is called when only the final step is left, as the last chance to refuse it. Callers that still hold the old
    /// collection can read its last state, but no longer write ([`StoreError::Replaced`]).
    ///
    /// # Errors
    /// Those of `convert` and `may_replace`; [`StoreError::Rebuilding`], because only one collection is rebuilt at a time;
    /// [`StoreError::Invalid`] if the settings are not valid for a collection; [`StoreError::NoCollection`] or [`StoreError::Closed`] if
    /// the collection was removed; failures of the medium. The old collection then stays as it is, with everything that was written to it.
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
            rebuild.swap_in().map_err(E::from)
        })?;
        // Dropping `rebuild` ends the old collection and removes its files.
        Ok(RebuildReport {
            written: rebuild.written,
        })
    }
}

impl<'s> Rebuild<'s> {
    /// Creates the new collection, still empty, and starts the journal of the old one.
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
            let Some(&identity) = named.filter(|_| state.is_current(old)) else {
                return Err(StoreError::NoCollection(name.to_owned()));
            };
            let spare = state.catalog.spare_folder_name(name);
            // The files that an earlier rebuild left there are still being removed.
            if state.busy_folders.contains(&spare) {
                return Err(StoreError::BeingRemoved(name.to_owned()));
            }
            let secrets = store.new_secrets(&spare);
            let mut catalog = state.catalog.clone();
            catalog.removing.insert(spare.clone(), secrets.identity);
            // Replace the catalog before the first file is created: from here on, the next start removes what a crash leaves behind.
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
                // Files that cannot be removed now are removed at the next start.
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

    /// Copies all documents, and then the changes made meanwhile, until few are left.
    fn copy_all<E: From<StoreError>>(
        &mut self,
        convert: &mut dyn FnMut(StoredDocument) -> Result<StoredDocument, E>,
    ) -> Result<(), E> {
        let old = Arc::clone(&self.old);
        let (mut ids, mut bytes) = (Vec::new(), 0);
        old.engine().for_each(UnixMillis(0), &mut |document| {
            bytes += document.size();
            ids.push(document.id);
            if ids.len() < BATCH && bytes < BATCH_BYTES {
                return Ok(());
            }
            bytes = 0;
            self.copy(std::mem::take(&mut ids), convert)?;
            self.copy_changes(convert).map(drop)
        })?;
        self.copy(ids, convert)?;
        for _ in 0..ROUNDS {
            if self.copy_changes(convert)? <= MAX_CHANGES_WHILE_BLOCKED {
                break;
            }
        }
        Ok(())
    }

    /// Copies the changed documents. Returns how many there were.
    fn copy_changes<E: From<StoreError>>(
        &mut self,
        convert: &mut dyn FnMut(StoredDocument) -> Result<StoredDocument, E>,
    ) -> Result<usize, E> {
        let changed = self.old.engine().take_changes();
        // Writes may be waiting because the journal was too long.
        self.old.changes_were_taken();
        let count = changed.len();
        self.copy(changed, convert)?;
        Ok(count)
    }

    /// Gives the documents with these ids in the new collection the state that they have now in the old one.
    fn copy<E: From<StoreError>>(
        &mut self,
        ids: Vec<String>,
        convert: &mut dyn FnMut(StoredDocument) -> Result<StoredDocument, E>,
    ) -> Result<(), E> {
        if self.old.is_closed() {
            return Err(StoreError::Closed.into());
        }
        let engine = self.old.engine();
        // Zero asks for the time of the collection without advancing it.
        let now = engine.now(UnixMillis(0));
        let mut writer = BatchWriter::new(&self.new, now);
        for id in ids {
            // Read the document as it is now, not as it was when it was visited: an older state must not undo a change that has already
            // been copied.
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

    /// Replaces the old collection by the new one. The caller holds the writer lock of the old one.
    fn swap_in(&mut self) -> Result<()> {
        let (store, name, [old, new]) = (self.store, self.old.name(), self.identities);
        let time_to_live: Option<Duration> = self.old.settings().time_to_live;
        // The time to live may have changed while documents were copied.
        if self.new.settings().time_to_live != time_to_live {
            self.new.set_time_to_live(time_to_live)?;
        }
        self.new.observe_time(self.old.engine().now(UnixMillis(0)));
        let mut state = store.state();
        if state.catalog.collections.get(name) != Some(&old) {
            // The collection was removed, and perhaps created again.
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
            // The old collection stops taking writes, because the next start might not find them.
            Err(ReplaceError::Unknown(error)) => {
                self.is_uncertain = true;
                return Err(self.old.engine().stop(&error));
            }
            replaced => replaced?,
        }
        state
            .collections
            .insert(name.to_owned(), Ok(Arc::clone(&self.new)));
        // The folders have exchanged their roles: the old one is busy until its files are removed.
        state.busy_folders.remove(&self.spare);
        state.busy_folders.insert(left.clone());
        self.spare = left;
        Ok(())
    }
}

impl Drop for Rebuild<'_> {
    /// Ends the collection that is not in use and removes its files, even if `convert` panicked.
    fn drop(&mut self) {
        self.old.engine().end_journal();
        self.old.changes_were_taken();
        let gone = if self.old.engine().is_replaced() {
            &self.old
        } else {
            &self.new
        };
        gone.abandon();
        // The catalog on disk may name either folder, so both keep their files.
        if self.is_uncertain {
            return;
        }
        // Files that cannot be removed now are removed at the next start.
        let _ = self.store.remove_files(&self.spare);
    }
}
