//! A directory of collections.
//!
//! Files: `LOCK`, locked while the store is open, with the process id of the holder; `CATALOG`, the list of collections, a checked file
//! like a manifest; `collections/NAME/`, or `collections/NAME~/` for a collection that was rebuilt. Each collection has its own log and
//! runs, so that damage in one does not affect the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use lookalike::hash::parse_hex;
use lookalike_hamming::threads::join_all;
use serde::{Deserialize, Serialize};

use crate::clean_shutdown::CLEAN_SHUTDOWN;
use crate::collection::Collection;
use crate::disk_reserve;
use crate::engine::{CollectionEngine, CollectionSecrets};
use crate::error::{Result, StoreError};
use crate::file_names::{MANIFEST, is_numbered};
use crate::fs::{FileLock, FileSystem, LockError, RealFs};
use crate::manifest::{ReplaceError, read_checked, replace_checked};
use crate::scheme_part::SchemePart;
use crate::settings::{CollectionSettings, StoreTuning};
use crate::sync::lock;

pub(crate) const CATALOG: &str = "CATALOG";
/// List of the files of a snapshot, with their checksums.
pub(crate) const SNAPSHOT: &str = "SNAPSHOT";
const NEW_CATALOG: &str = "CATALOG.new";
pub(crate) const LOCK: &str = "LOCK";
const VERSION: u32 = 1;
/// Maximum number of threads that open collections. Each has a whole log in memory.
const OPENING_THREADS: usize = 4;

/// The list of collections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreCatalog {
    pub(crate) version: u32,
    /// Identity of the store, in hexadecimal digits.
    pub(crate) store: String,
    /// Name and identity of each collection.
    pub(crate) collections: BTreeMap<String, u64>,
    /// Name and identity of each folder that belongs to no collection: it is being removed, or a rebuild that has not replaced its
    /// collection yet is being written to it.
    pub(crate) removing: BTreeMap<String, u64>,
    /// Names of the collections whose files are in their second folder.
    pub(crate) moved: BTreeSet<String>,
}

/// Options for opening a store.
///
/// ```
/// use lookalike_store::{StoreOptions, StoreTuning};
///
/// let options = StoreOptions::default()
///     .create(true)
///     .tuning(StoreTuning::default().fan_out(8));
/// assert!(options.create);
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Create a store if there is none in the directory.
    pub create: bool,
    /// Refuse a store with another identity.
    pub identity: Option<StoreId>,
    /// Memory and merge policy.
    pub tuning: StoreTuning,
    /// Seed of identities and keys, for tests; without a seed they are random.
    pub seed: Option<u64>,
}

lookalike::setters! {
    StoreOptions {
        create: bool,
        tuning: StoreTuning,
    }
}

impl StoreOptions {
    /// Refuses a store with another identity.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<Option<StoreId>>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Seeds identities and keys, for tests.
    #[must_use]
    pub fn seed(mut self, seed: impl Into<Option<u64>>) -> Self {
        self.seed = seed.into();
        self
    }
}

/// The identity of a store, drawn when the store is created and kept by its snapshots. It is shown as sixteen hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreId(u64);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for StoreId {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self> {
        let number = parse_hex(text, 16);
        number.map(|number| Self(number as u64)).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            StoreError::Invalid(format!(
                "{shown:?} is not the identity of a store: write 16 hexadecimal digits"
            ))
        })
    }
}

/// An open store.
///
/// ```
/// use lookalike::{Fingerprint, Scheme};
/// use lookalike_store::{CollectionSettings, Store, StoreOptions, StoredDocument, UnixMillis, WriteOp};
///
/// # let folder = tempfile::tempdir()?;
/// let store = Store::open(&folder, StoreOptions::default().create(true))?;
/// let pages = store.create_collection("pages", &CollectionSettings::new(&Scheme::default()))?;
/// let now = UnixMillis(1_700_000_000_000);
/// pages.write(vec![WriteOp::Insert(StoredDocument::new("a", Fingerprint(7)))], now)?;
/// store.close()?;
///
/// // After a restart; nothing is made where there is no store.
/// let store = Store::open(&folder, StoreOptions::default())?;
/// let pages = store.collection("pages")?;
/// assert!(pages.recovery().clean && pages.get("a", now)?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store {
    fs: Arc<dyn FileSystem>,
    folder: PathBuf,
    identity: StoreId,
    options: StoreOptions,
    state: Mutex<StoreState>,
    lock: Arc<dyn FileLock>,
    /// Held while a snapshot is made: two with the same name would mix their files.
    pub(crate) snapshots: Mutex<()>,
    /// Name of the collection that is being rebuilt, if any.
    pub(crate) rebuilding: Mutex<Option<String>>,
}

#[derive(Debug)]
pub(crate) struct StoreState {
    pub(crate) catalog: StoreCatalog,
    pub(crate) collections: BTreeMap<String, Result<Arc<Collection>>>,
    /// Folders that a thread is removing, or in which it is rebuilding a collection.
    pub(crate) busy_folders: BTreeSet<String>,
}

impl StoreState {
    /// Tells whether a collection is still the current one of its name.
    pub(crate) fn is_current(&self, collection: &Arc<Collection>) -> bool {
        let current = self.collections.get(collection.name());
        current.is_some_and(|opened| {
            opened
                .as_ref()
                .is_ok_and(|current| Arc::ptr_eq(current, collection))
        })
    }

    fn collection(&self, name: &str) -> Result<Arc<Collection>> {
        let opened = self.collections.get(name).cloned();
        opened.unwrap_or_else(|| Err(StoreError::NoCollection(shortened(name))))
    }
}

/// Longest name of a collection.
pub(crate) const MAX_NAME_BYTES: usize = 64;
/// Suffix of the second folder of a collection, which no name can end in. Each rebuild moves a collection from one of its two folders to
/// the other.
pub(crate) const SECOND_FOLDER: &str = "~";

/// Returns the path of a collection's folder, given the name of the folder.
pub(crate) fn collection_folder(folder: &Path, name: &str) -> PathBuf {
    folder.join("collections").join(name)
}

/// Name of the first or the second folder of a collection.
fn folder_name(name: &str, is_second: bool) -> String {
    let end = if is_second { SECOND_FOLDER } else { "" };
    format!("{name}{end}")
}

/// Makes the name of a folder durable.
pub(crate) fn sync_parent(fs: &dyn FileSystem, folder: &Path) -> Result<()> {
    let parent = match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    fs.sync_dir(parent)
        .map_err(StoreError::io(parent, "syncing the folder"))
}

/// Tells whether a text is a valid name of a collection, which also names its folder: 1 to 64 characters of a-z, 0-9, - and _.
pub fn is_name(text: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=MAX_NAME_BYTES).contains(&text.len()) && text.bytes().all(allowed)
}

/// Returns an error unless `name` is a valid name of a collection.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let refused = || StoreError::BadName(shortened(name));
    is_name(name).then_some(()).ok_or_else(refused)
}

/// Returns the beginning of a name that may have any length, for an error.
pub(crate) fn shortened(name: &str) -> String {
    name.chars().take(100).collect()
}

/// Tells whether the files of a collection may have this name.
pub(crate) fn is_file_name(name: &str) -> bool {
    [MANIFEST, CLEAN_SHUTDOWN].contains(&name) || is_numbered(name)
}

/// Locks a store.
pub(crate) fn lock_store(fs: &dyn FileSystem, folder: &Path) -> Result<Box<dyn FileLock>> {
    let holder = std::process::id().to_string();
    fs.lock(&folder.join(LOCK), &holder)
        .map_err(|error| lock_failed(folder, error))
}

/// Locks a store for reading, without writing anything.
pub(crate) fn lock_to_read(fs: &dyn FileSystem, folder: &Path) -> Result<Box<dyn FileLock>> {
    fs.lock_to_read(&folder.join(LOCK))
        .map_err(|error| lock_failed(folder, error))
}

pub(crate) fn lock_failed(folder: &Path, error: LockError) -> StoreError {
    match error {
        LockError::Held { holder } => StoreError::Locked {
            path: folder.to_owned(),
            holder,
        },
        LockError::Io(error) => StoreError::io(folder, "locking the store")(error),
    }
}

impl StoreCatalog {
    /// Creates the catalog of a store without collections.
    pub(crate) fn new(store: StoreId) -> Self {
        Self {
            version: VERSION,
            store: store.to_string(),
            collections: BTreeMap::new(),
            removing: BTreeMap::new(),
            moved: BTreeSet::new(),
        }
    }

    /// Returns the name of a collection's folder.
    pub(crate) fn folder_name(&self, name: &str) -> String {
        folder_name(name, self.moved.contains(name))
    }

    /// Returns the name of the folder in which a collection is rebuilt.
    pub(crate) fn spare_folder_name(&self, name: &str) -> String {
        folder_name(name, !self.moved.contains(name))
    }

    /// Returns the path of a collection's folder.
    pub(crate) fn folder(&self, root: &Path, name: &str) -> PathBuf {
        collection_folder(root, &self.folder_name(name))
    }

    pub(crate) fn read(fs: &dyn FileSystem, folder: &Path) -> Result<Option<Self>> {
        match read_checked::<Self>(fs, folder, CATALOG, "the store") {
            Ok(catalog) if catalog.version == VERSION => {
                catalog.check(&folder.join(CATALOG))?;
                Ok(Some(catalog))
            }
            Ok(catalog) => {
                let path = folder.join(CATALOG);
                Err(StoreError::version(path, catalog.version, VERSION))
            }
            Err(StoreError::Missing { .. }) => {
                // Collections without a catalog: it was lost, and a new, empty one would hide them.
                let below = folder.join("collections");
                match fs.list(&below) {
                    Ok(folders) if folders.is_empty() => Ok(None),
                    Ok(_) => Err(StoreError::Missing {
                        path: folder.join(CATALOG),
                        named_by: "the folder of collections",
                    }),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(StoreError::io(&below, "opening the store")(error)),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Checks the names in the catalog, because paths are made of them.
    fn check(&self, path: &Path) -> Result<()> {
        self.identity()
            .map_err(|error| StoreError::damaged(path, 0, error.to_string()))?;
        let folders = self.removing.keys();
        let removed = folders.map(|folder| folder.strip_suffix(SECOND_FOLDER).unwrap_or(folder));
        let names = self.collections.keys().chain(&self.moved);
        names
            .map(String::as_str)
            .chain(removed)
            .try_for_each(check_name)
            .map_err(|error| StoreError::damaged(path, 0, error.to_string()))?;
        let mut current = self.collections.keys();
        match current.find(|name| self.removing.contains_key(&self.folder_name(name))) {
            None => Ok(()),
            Some(name) => {
                let what = format!("the folder of the collection {name:?} is to be removed");
                Err(StoreError::damaged(path, 0, what))
            }
        }
    }

    pub(crate) fn identity(&self) -> Result<StoreId> {
        self.store.parse()
    }

    pub(crate) fn write(&self, fs: &dyn FileSystem, folder: &Path) -> Result<()> {
        self.replace(fs, folder).map_err(StoreError::from)
    }

    pub(crate) fn replace(&self, fs: &dyn FileSystem, folder: &Path) -> Result<(), ReplaceError> {
        replace_checked(fs, folder, CATALOG, NEW_CATALOG, self)
    }
}

impl Store {
    /// Opens the store in a directory.
    ///
    /// # Errors
    /// [`StoreError`] if another process has the store open, it is damaged, or there is none.
    pub fn open(folder: impl AsRef<Path>, options: StoreOptions) -> Result<Self> {
        Self::open_on(Arc::new(RealFs::default()), folder.as_ref(), options)
    }

    /// Opens a store like [`Store::open`], but on any file system. A damaged collection does not keep the others from being opened: its
    /// error is returned when it is asked for.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open_on(fs: Arc<dyn FileSystem>, folder: &Path, options: StoreOptions) -> Result<Self> {
        // A caller that expects a certain store must not get a new one.
        let may_begin = options.create && options.identity.is_none();
        if may_begin {
            fs.create_dir(folder)
                .map_err(StoreError::io(folder, "creating the store"))?;
        } else if let Err(error) = fs.list(folder) {
            return Err(match error.kind() {
                std::io::ErrorKind::NotFound => StoreError::no_store(folder),
                _ => StoreError::io(folder, "opening the store")(error),
            });
        }
        // Checked before the lock file is created, so that not a byte of a snapshot changes.
        let names = fs.list(folder).unwrap_or_default();
        if names.iter().any(|name| name == SNAPSHOT) {
            return Err(StoreError::IsSnapshot {
                path: folder.to_owned(),
            });
        }
        // Nor may a byte be written to a mount point whose volume is missing.
        if !may_begin && !names.iter().any(|name| name == CATALOG) {
            return Err(StoreError::no_store(folder));
        }
        // Lock before the catalog is read: another process might be replacing it.
        let lock: Arc<dyn FileLock> = lock_store(&*fs, folder)?.into();
        let mut catalog = match StoreCatalog::read(&*fs, folder)? {
            Some(catalog) => catalog,
            None if may_begin => {
                let path = folder.join("collections");
                fs.create_dir(&path)
                    .map_err(StoreError::io(&path, "creating the store"))?;
                // Sync before the catalog is written, because the next start takes a catalog to mean that nothing is left to do. If a power
                // failure then removed the store's own directory entry, all acknowledged writes would be lost.
                sync_parent(&*fs, folder)?;
                let catalog = StoreCatalog::new(StoreId(random_number("", options.seed, 3)));
                // The list of collections exists from the beginning, so a store without one has lost it.
                catalog.write(&*fs, folder)?;
                catalog
            }
            None => return Err(StoreError::no_store(folder)),
        };
        let identity = catalog.identity()?;
        if let Some(wanted) = options.identity.filter(|wanted| *wanted != identity) {
            return Err(StoreError::OtherStore {
                path: folder.to_owned(),
                found: identity.to_string(),
                wanted: wanted.to_string(),
            });
        }
        // The catalog just read may not be durable yet. Until it is, nothing that an older one names may be removed.
        fs.sync_dir(folder)
            .map_err(StoreError::io(folder, "syncing the folder"))?;
        // Files that cannot be removed now, for instance on a full disk, are removed at the next start.
        let _ = finish_removals(&*fs, folder, &mut catalog);
        let collections = open_collections(&fs, folder, &catalog, options.tuning, &lock);
        disk_reserve::reserve(&*fs, folder);
        Ok(Self {
            fs,
            folder: folder.to_owned(),
            identity,
            options,
            state: Mutex::new(StoreState {
                catalog,
                collections,
                busy_folders: BTreeSet::new(),
            }),
            lock,
            snapshots: Mutex::default(),
            rebuilding: Mutex::default(),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, StoreState> {
        lock(&self.state)
    }

    /// Returns the directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the identity.
    pub fn identity(&self) -> StoreId {
        self.identity
    }

    /// Creates a collection, or returns the existing one if it has the same settings.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if there is one with other settings, [`StoreError::BeingRemoved`], and failures of the medium.
    pub fn create_collection(
        &self,
        name: &str,
        settings: &CollectionSettings,
    ) -> Result<Arc<Collection>> {
        self.create_collection_with(name, settings, &[])
    }

    /// Creates a collection like [`Store::create_collection`], with the parts of its scheme, which the text of the scheme only names. An
    /// existing collection keeps the parts that it was created with: equal schemes name equal parts.
    ///
    /// # Errors
    /// Those of [`Store::create_collection`].
    pub fn create_collection_with(
        &self,
        name: &str,
        settings: &CollectionSettings,
        parts: &[SchemePart],
    ) -> Result<Arc<Collection>> {
        check_name(name)?;
        let mut state = self.state();
        if let Some(opened) = state.collections.get(name) {
            // Creation is idempotent: clients may repeat a request whose response was lost.
            let collection = opened.clone()?;
            return match difference(&collection.settings(), settings) {
                None => Ok(collection),
                Some(difference) => Err(StoreError::Exists {
                    name: name.to_owned(),
                    difference,
                }),
            };
        }
        if state.busy_folders.contains(name) {
            return Err(StoreError::BeingRemoved(name.to_owned()));
        }
        let secrets = self.new_secrets(name);
        let identity = secrets.identity;
        self.make_files(name, settings, parts, secrets)?;
        let mut catalog = state.catalog.clone();
        // The folder is entered in the catalog last: a crash before that leaves files that the next creation removes.
        catalog.collections.insert(name.to_owned(), identity);
        catalog.removing.remove(name);
        self.replace_catalog(&mut state, catalog)?;
        let opened = self.open_files(name, name, identity);
        state.collections.insert(name.to_owned(), opened.clone());
        opened
    }

    /// Creates the files of an empty collection in the folder `folder_name`.
    pub(crate) fn make_files(
        &self,
        folder_name: &str,
        settings: &CollectionSettings,
        parts: &[SchemePart],
        secrets: CollectionSecrets,
    ) -> Result<()> {
        let folder = collection_folder(&self.folder, folder_name);
        let failed = |error| StoreError::io(&folder, "creating the collection")(error);
        self.fs.create_dir(&folder).map_err(failed)?;
        // Files that an interrupted creation or removal left do not belong to this collection.
        for left in self.fs.list(&folder).map_err(failed)? {
            self.fs.remove(&folder.join(left)).map_err(failed)?;
        }
        let tuning = &self.options.tuning;
        CollectionEngine::create(&*self.fs, &folder, settings, parts, secrets, tuning)?;
        // If the catalog named a folder that a power failure removed, the store would count as damaged.
        let parent = self.folder.join("collections");
        self.fs.sync_dir(&parent).map_err(failed)
    }

    /// Opens the collection in the folder `folder_name`.
    pub(crate) fn open_files(
        &self,
        name: &str,
        folder_name: &str,
        identity: u64,
    ) -> Result<Arc<Collection>> {
        let folder = collection_folder(&self.folder, folder_name);
        let (fs, tuning, lock) = (&self.fs, self.options.tuning, &self.lock);
        open_collection(fs, &folder, name, identity, tuning, lock)
    }

    /// Replaces the catalog. If that fails, the old one is still in place, unless the error is [`ReplaceError::Unknown`].
    pub(crate) fn replace_catalog(
        &self,
        state: &mut StoreState,
        catalog: StoreCatalog,
    ) -> Result<(), ReplaceError> {
        let (fs, folder) = (&*self.fs, self.folder.as_path());
        match catalog.replace(fs, folder) {
            Ok(()) => {
                state.catalog = catalog;
                Ok(())
            }
            // A refused change must not show up at the next start, so write the old catalog again.
            Err(ReplaceError::Unknown(error)) => Err(match state.catalog.replace(fs, folder) {
                Ok(()) => ReplaceError::Before(error),
                Err(_) => ReplaceError::Unknown(error),
            }),
            Err(before) => Err(before),
        }
    }

    /// Returns the identity and key of a new collection.
    pub(crate) fn new_secrets(&self, name: &str) -> CollectionSecrets {
        let random = |purpose| random_number(name, self.options.seed, purpose);
        CollectionSecrets {
            identity: random(0),
            key: u128::from(random(1)) << 64 | u128::from(random(2)),
        }
    }

    /// Returns an open collection.
    ///
    /// # Errors
    /// [`StoreError::NoCollection`], or the error with which it failed to open.
    pub fn collection(&self, name: &str) -> Result<Arc<Collection>> {
        self.state().collection(name)
    }

    /// Returns a collection like [`Store::collection`]; `None` if that would wait for a collection that is being created or removed.
    pub fn try_collection(&self, name: &str) -> Option<Result<Arc<Collection>>> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(state.collection(name))
    }

    /// Tells whether a collection is still the current one of its name: false once it was removed or rebuilt.
    pub fn is_current(&self, collection: &Arc<Collection>) -> bool {
        self.state().is_current(collection)
    }

    /// Returns all collections by name, with the error of each that could not be opened.
    pub fn collections(&self) -> Vec<(String, Result<Arc<Collection>>)> {
        let state = self.state();
        let open = state.collections.iter();
        open.map(|(name, opened)| (name.clone(), opened.clone()))
            .collect()
    }

    /// Removes a collection and everything in it.
    ///
    /// # Errors
    /// [`StoreError::NoCollection`], and failures of the medium: the collection is then either removed as a whole or unchanged.
    /// [`StoreError::Stopped`] if this is only decided at the next start: the collection refuses writes until then.
    pub fn drop_collection(&self, name: &str) -> Result<()> {
        let (collection, folder) = self.unregister(name)?;
        // Other collections stay usable meanwhile: this one may have many files, and its threads may have to end first.
        if let Some(Ok(collection)) = collection {
            // Without the lock of the store: joining three threads may take as long as a sync.
            collection.abandon();
        }
        let removed = self.remove_files(&folder);
        disk_reserve::reserve(&*self.fs, &self.folder);
        removed
    }

    /// Removes a collection from the catalog before its first file is removed, so that no start opens half a collection. Returns the
    /// collection, if it was open or failed to open, and the name of its folder.
    fn unregister(&self, name: &str) -> Result<(Option<Result<Arc<Collection>>>, String)> {
        let mut state = self.state();
        let Some(&identity) = state.catalog.collections.get(name) else {
            return Err(StoreError::NoCollection(shortened(name)));
        };
        let mut catalog = state.catalog.clone();
        let folder = catalog.folder_name(name);
        catalog.collections.remove(name);
        // A later collection of this name begins in its first folder.
        catalog.moved.remove(name);
        catalog.removing.insert(folder.clone(), identity);
        let mut replaced = self.replace_catalog(&mut state, catalog.clone());
        if replaced.as_ref().is_err_and(ReplaceError::is_disk_full) {
            // The removal would free space, but it has to write a new catalog first.
            disk_reserve::release(&*self.fs, &self.folder);
            replaced = self.replace_catalog(&mut state, catalog);
        }
        let collection = match (&replaced, state.collections.get(name)) {
            // Writes acknowledged from now on might be gone after the next start.
            (Err(ReplaceError::Unknown(error)), Some(Ok(collection))) => {
                let (collection, reason) = (Arc::clone(collection), error.to_string());
                drop(state);
                collection.engine().end_writes(&reason);
                return Err(StoreError::Stopped(reason));
            }
            _ => {
                replaced?;
                state.collections.remove(name)
            }
        };
        // No new collection may take the folder until its files are gone.
        state.busy_folders.insert(folder.clone());
        Ok((collection, folder))
    }

    /// Removes a folder that is marked busy and belongs to no collection.
    pub(crate) fn remove_files(&self, folder_name: &str) -> Result<()> {
        let removed = remove_folder(&*self.fs, &collection_folder(&self.folder, folder_name));
        let mut state = self.state();
        // Even if some files are left: the next collection in this folder removes them (`make_files`).
        state.busy_folders.remove(folder_name);
        removed?;
        let mut catalog = state.catalog.clone();
        catalog.removing.remove(folder_name);
        // The folder is gone; recording that in the catalog can wait for the next start.
        let _ = self.replace_catalog(&mut state, catalog);
        Ok(())
    }

    /// Writes what is queued and records a clean shutdown. Collections that are still referenced refuse writes from then on.
    ///
    /// # Errors
    /// The first failure of the medium; no acknowledged write is lost.
    pub fn close(self) -> Result<()> {
        let open: Vec<_> = self
            .state()
            .collections
            .values()
            .flatten()
            .cloned()
            .collect();
        // Tell all collections before waiting for the first, so that their last syncs overlap.
        open.iter().for_each(|collection| collection.begin_end());
        let closed: Vec<Result<()>> = open.iter().map(|collection| collection.close()).collect();
        closed.into_iter().collect()
    }

    pub(crate) fn fs(&self) -> &Arc<dyn FileSystem> {
        &self.fs
    }
}

/// Returns a random number, or with a seed one derived from the seed, the name and the purpose.
fn random_number(name: &str, seed: Option<u64>, purpose: u64) -> u64 {
    match seed {
        // The purpose is in the upper half, where it cannot meet a small seed.
        Some(seed) => lookalike::hash::xxh3_64(name.as_bytes(), seed ^ purpose << 32),
        None => {
            // The system draws the keys of this hasher at random.
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u64(purpose);
            hasher.finish()
        }
    }
}

/// Removes the folder of a collection and everything in it. The removal is durable on return.
fn remove_folder(fs: &dyn FileSystem, folder: &Path) -> Result<()> {
    let failed = |error| StoreError::io(folder, "removing the collection")(error);
    match fs.list(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        files => {
            for file in files.map_err(failed)? {
                fs.remove(&folder.join(file)).map_err(failed)?;
            }
            fs.remove_dir(folder).map_err(failed)?;
        }
    }
    // The catalog forgets the folder next. If a power failure then brought the folder back, nobody would remove it.
    sync_parent(fs, folder)
}

/// Removes folders of collections whose removal a crash interrupted.
fn finish_removals(fs: &dyn FileSystem, folder: &Path, catalog: &mut StoreCatalog) -> Result<()> {
    if catalog.removing.is_empty() {
        return Ok(());
    }
    let mut left = catalog.clone();
    for name in std::mem::take(&mut left.removing).into_keys() {
        remove_folder(fs, &collection_folder(folder, &name))?;
    }
    left.write(fs, folder)?;
    *catalog = left;
    Ok(())
}

/// Opens all collections, several at once, because the replay of a log may take a processor for seconds.
fn open_collections(
    fs: &Arc<dyn FileSystem>,
    folder: &Path,
    catalog: &StoreCatalog,
    tuning: StoreTuning,
    store_lock: &Arc<dyn FileLock>,
) -> BTreeMap<String, Result<Arc<Collection>>> {
    let waiting = Mutex::new(catalog.collections.iter());
    let opened = Mutex::new(BTreeMap::new());
    let work = || {
        // A function, so that the lock is free while the collection is opened.
        let next = || lock(&waiting).next();
        while let Some((name, &identity)) = next() {
            let below = catalog.folder(folder, name);
            let collection = open_collection(fs, &below, name, identity, tuning, store_lock);
            lock(&opened).insert(name.clone(), collection);
        }
    };
    std::thread::scope(|scope| {
        let threads = OPENING_THREADS.min(catalog.collections.len());
        let helpers = (1..threads).filter_map(|_| {
            // A thread that the system refuses is not needed: this one opens what is left.
            let thread = std::thread::Builder::new().name("open".to_owned());
            thread.spawn_scoped(scope, work).ok()
        });
        let helpers: Vec<_> = helpers.collect();
        work();
        join_all(helpers);
    });
    opened.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn open_collection(
    fs: &Arc<dyn FileSystem>,
    folder: &Path,
    name: &str,
    identity: u64,
    tuning: StoreTuning,
    lock: &Arc<dyn FileLock>,
) -> Result<Arc<Collection>> {
    let (engine, recovery) = CollectionEngine::open(Arc::clone(fs), folder, identity, tuning)?;
    let lock = Arc::clone(lock);
    Ok(Arc::new(Collection::start(name, engine, recovery, lock)?))
}

/// Describes how two values of a setting differ; `None` if they are equal.
fn differing<T: PartialEq + fmt::Display>(name: &str, ours: &T, other: &T) -> Option<String> {
    (ours != other).then(|| format!("{name} ({ours} and {other})"))
}

/// Describes how the radiuses of two settings differ; `None` if their sketches are of different kinds.
fn radius_difference(ours: &CollectionSettings, other: &CollectionSettings) -> Option<String> {
    let places = |settings: &CollectionSettings| settings.sketch_form().places();
    let equal = |settings: &CollectionSettings, places: usize| places as u32 - settings.radius;
    match (places(ours), places(other)) {
        (None, None) => differing("radius", &ours.radius, &other.radius),
        (Some(a), Some(b)) => differing("equal", &equal(ours, a), &equal(other, b)),
        _ => None,
    }
}

/// Describes how two settings differ; `None` if they are equal.
fn difference(ours: &CollectionSettings, other: &CollectionSettings) -> Option<String> {
    let mut told = Vec::new();
    if ours.scheme != other.scheme {
        told.push(ours.scheme.differences(&other.scheme));
    }
    if ours.radius != other.radius {
        told.extend(radius_difference(ours, other));
    }
    if ours.time_to_live != other.time_to_live {
        let told_of = |life: Option<Duration>| {
            life.map_or("forever".to_owned(), |life| format!("{} s", life.as_secs()))
        };
        told.push(format!(
            "time to live ({} and {})",
            told_of(ours.time_to_live),
            told_of(other.time_to_live)
        ));
    }
    told.extend(differing("kept parts", &ours.keep, &other.keep));
    told.extend(differing(
        "end of paragraphs",
        &ours.paragraphs,
        &other.paragraphs,
    ));
    told.extend(differing("pairs that count", &ours.pairs, &other.pairs));
    (!told.is_empty()).then(|| told.join(", "))
}
