//! A directory of collections.
//!
//! `LOCK`, held while the store is open, with the process id of the holder; `CATALOG`, the list of collections, a checked
//! file as a manifest is; `collections/NAME/`, each with its own log and runs, so that damage in one leaves the others
//! alone.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use serde::{Deserialize, Serialize};

use crate::collection::Collection;
use crate::engine::{Engine, Tuning};
use crate::error::{Result, StoreError};
use crate::fs::{Fs, Lock, LockError, RealFs};
use crate::manifest::{ReplaceError, read_checked, replace_checked};
use crate::settings::CollectionSettings;

pub(crate) const CATALOG: &str = "CATALOG";
const NEW_CATALOG: &str = "CATALOG.new";
const LOCK: &str = "LOCK";
const VERSION: u32 = 1;

/// The list of collections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalog {
    pub(crate) version: u32,
    /// Name and identity of each.
    pub(crate) collections: BTreeMap<String, u64>,
}

/// How a store is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// Make a store where there is none.
    pub create: bool,
    /// Memory and merges.
    pub tuning: Tuning,
    /// What identities and keys of new collections are drawn from; from chance, when `None`. For tests.
    pub seed: Option<u64>,
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    fs: Arc<dyn Fs>,
    folder: PathBuf,
    options: OpenOptions,
    state: Mutex<State>,
    _lock: Box<dyn Lock>,
}

#[derive(Debug)]
struct State {
    catalog: Catalog,
    collections: BTreeMap<String, std::result::Result<Arc<Collection>, StoreError>>,
}

impl State {
    fn collection(&self, name: &str) -> Result<Arc<Collection>> {
        let opened = self.collections.get(name).cloned();
        opened.unwrap_or_else(|| Err(StoreError::NoCollection(name.chars().take(100).collect())))
    }
}

/// The folder of a collection.
pub(crate) fn collection_folder(folder: &Path, name: &str) -> PathBuf {
    folder.join("collections").join(name)
}

/// Refuses names that are no names of collections.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
        Ok(())
    } else {
        Err(StoreError::BadName(name.chars().take(100).collect()))
    }
}

/// Takes the lock of a store.
pub(crate) fn lock(fs: &dyn Fs, folder: &Path) -> Result<Box<dyn Lock>> {
    let holder = std::process::id().to_string();
    fs.lock(&folder.join(LOCK), &holder)
        .map_err(|error| match error {
            LockError::Held { holder } => StoreError::Locked {
                path: folder.to_owned(),
                holder,
            },
            LockError::Io(error) => StoreError::io(folder, "locking the store")(error),
        })
}

impl Catalog {
    pub(crate) fn read(fs: &dyn Fs, folder: &Path) -> Result<Option<Self>> {
        match read_checked::<Self>(fs, folder, CATALOG, "the store") {
            Ok(catalog) if catalog.version == VERSION => Ok(Some(catalog)),
            Ok(catalog) => Err(StoreError::Version {
                path: folder.join(CATALOG),
                found: catalog.version,
                known: VERSION,
            }),
            Err(StoreError::Missing { .. }) => {
                let folders = fs.list(&folder.join("collections")).unwrap_or_default();
                if folders.is_empty() {
                    return Ok(None);
                }
                Err(StoreError::Missing {
                    path: folder.join(CATALOG),
                    named_by: "the folder of collections",
                })
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn write(&self, fs: &dyn Fs, folder: &Path) -> Result<()> {
        replace_checked(fs, folder, CATALOG, NEW_CATALOG, self).map_err(|error| match error {
            ReplaceError::Before(error) | ReplaceError::Unknown(error) => error,
        })
    }
}

impl Store {
    /// Opens the store of a directory.
    ///
    /// # Errors
    /// [`StoreError`]: another process has it, it is damaged, or there is none.
    pub fn open(folder: &Path, options: OpenOptions) -> Result<Self> {
        Self::open_on(Arc::new(RealFs), folder, options)
    }

    /// As [`Store::open`], on any file system. A collection that is damaged is told when it is asked for: the others are
    /// open.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(fs: Arc<dyn Fs>, folder: &Path, options: OpenOptions) -> Result<Self> {
        if options.create {
            fs.create_dir(folder)
                .map_err(StoreError::io(folder, "creating the store"))?;
        } else if let Err(error) = fs.list(folder) {
            return Err(match error.kind() {
                std::io::ErrorKind::NotFound => StoreError::NoStore {
                    path: folder.to_owned(),
                },
                _ => StoreError::io(folder, "opening the store")(error),
            });
        }
        let lock = lock(&*fs, folder)?;
        let catalog = match Catalog::read(&*fs, folder)? {
            Some(catalog) => catalog,
            None if options.create => {
                let path = folder.join("collections");
                fs.create_dir(&path)
                    .map_err(StoreError::io(&path, "creating the store"))?;
                let (version, collections) = (VERSION, BTreeMap::new());
                let catalog = Catalog {
                    version,
                    collections,
                };
                catalog.write(&*fs, folder)?;
                catalog
            }
            None => {
                return Err(StoreError::NoStore {
                    path: folder.to_owned(),
                });
            }
        };
        fs.sync_dir(folder)
            .map_err(StoreError::io(folder, "syncing the folder"))?;
        let mut collections = BTreeMap::new();
        for (name, &identity) in &catalog.collections {
            let opened = open_collection(&fs, folder, (name, identity), options.tuning);
            collections.insert(name.clone(), opened);
        }
        Ok(Self {
            fs,
            folder: folder.to_owned(),
            options,
            state: Mutex::new(State {
                catalog,
                collections,
            }),
            _lock: lock,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a collection; the one that is there when it has the same settings.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when there is one with other settings, and failures of the medium.
    pub fn create_collection(
        &self,
        name: &str,
        settings: &CollectionSettings,
    ) -> Result<Arc<Collection>> {
        check_name(name)?;
        let mut state = self.state();
        if let Some(opened) = state.collections.get(name) {
            let collection = opened.clone()?;
            return match difference(&collection.settings(), settings) {
                None => Ok(collection),
                Some(difference) => Err(StoreError::Exists {
                    name: name.to_owned(),
                    difference,
                }),
            };
        }
        let folder = collection_folder(&self.folder, name);
        let parent = self.folder.join("collections");
        let failed = |error| StoreError::io(&folder, "creating the collection")(error);
        self.fs.create_dir(&folder).map_err(failed)?;
        // What an interrupted creation or removal left is no part of this one.
        for left in self.fs.list(&folder).map_err(failed)? {
            self.fs.remove(&folder.join(left)).map_err(failed)?;
        }
        let (identity, key) = self.draw(name);
        Engine::create(
            &*self.fs,
            &folder,
            settings,
            (identity, key),
            &self.options.tuning,
        )?;
        self.fs.sync_dir(&parent).map_err(failed)?;
        let mut catalog = state.catalog.clone();
        catalog.collections.insert(name.to_owned(), identity);
        catalog.write(&*self.fs, &self.folder)?;
        state.catalog = catalog;
        let opened = open_collection(
            &self.fs,
            &self.folder,
            (name, identity),
            self.options.tuning,
        );
        state.collections.insert(name.to_owned(), opened.clone());
        opened
    }

    /// Identity and key of a new collection.
    fn draw(&self, name: &str) -> (u64, u128) {
        let drawn = |purpose: u64| match self.options.seed {
            Some(seed) => lookalike::hash::xxh3_64(name.as_bytes(), seed ^ purpose << 32),
            None => {
                // The keys of this hasher are drawn by the system.
                let mut hasher = RandomState::new().build_hasher();
                hasher.write_u64(purpose);
                hasher.finish()
            }
        };
        (drawn(0), u128::from(drawn(1)) << 64 | u128::from(drawn(2)))
    }

    /// An open collection.
    ///
    /// # Errors
    /// [`StoreError::NoCollection`], or why it could not be opened.
    pub fn collection(&self, name: &str) -> Result<Arc<Collection>> {
        self.state().collection(name)
    }

    /// As [`Store::collection`]; `None` when it would have to wait for a collection that is being made or removed.
    pub fn try_collection(&self, name: &str) -> Option<Result<Arc<Collection>>> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(state.collection(name))
    }

    /// All collections by name, with why some are not open.
    pub fn collections(&self) -> Vec<(String, Result<Arc<Collection>>)> {
        let state = self.state();
        let all = state.collections.iter();
        all.map(|(name, opened)| (name.clone(), opened.clone()))
            .collect()
    }

    /// Removes a collection and all that is in it.
    ///
    /// # Errors
    /// [`StoreError::NoCollection`], and failures of the medium: then it is gone or not, as a whole.
    pub fn drop_collection(&self, name: &str) -> Result<()> {
        let mut state = self.state();
        if !state.catalog.collections.contains_key(name) {
            return Err(StoreError::NoCollection(name.chars().take(100).collect()));
        }
        let mut catalog = state.catalog.clone();
        catalog.collections.remove(name);
        catalog.write(&*self.fs, &self.folder)?;
        state.catalog = catalog;
        if let Some(Ok(collection)) = state.collections.remove(name) {
            collection.close()?;
        }
        let folder = collection_folder(&self.folder, name);
        let failed = |error| StoreError::io(&folder, "removing the collection")(error);
        for file in self.fs.list(&folder).map_err(failed)? {
            self.fs.remove(&folder.join(file)).map_err(failed)?;
        }
        self.fs.remove_dir(&folder).map_err(failed)
    }

    /// Writes what waits and marks an orderly end; collections that somebody still holds refuse to be written from then
    /// on.
    ///
    /// # Errors
    /// The first failure of the medium; nothing that was acknowledged is lost.
    pub fn close(self) -> Result<()> {
        let state = self.state();
        let open = state.collections.values().flatten();
        let closed: Vec<Result<()>> = open.map(|collection| collection.close()).collect();
        closed.into_iter().collect()
    }

    pub(crate) fn fs(&self) -> &Arc<dyn Fs> {
        &self.fs
    }

    pub(crate) fn catalog(&self) -> Catalog {
        self.state().catalog.clone()
    }
}

fn open_collection(
    fs: &Arc<dyn Fs>,
    folder: &Path,
    (name, identity): (&str, u64),
    tuning: Tuning,
) -> Result<Arc<Collection>> {
    let folder = collection_folder(folder, name);
    let (engine, recovery) = Engine::open(Arc::clone(fs), &folder, identity, tuning)?;
    Ok(Arc::new(Collection::start(name, engine, recovery)?))
}

/// What differs in two settings.
fn difference(ours: &CollectionSettings, other: &CollectionSettings) -> Option<String> {
    let mut told = Vec::new();
    if ours.scheme != other.scheme {
        told.push(ours.scheme.differences(&other.scheme));
    }
    if ours.radius != other.radius {
        told.push(format!("radius ({} and {})", ours.radius, other.radius));
    }
    if ours.time_to_live != other.time_to_live {
        told.push(format!(
            "time to live ({:?} and {:?})",
            ours.time_to_live, other.time_to_live
        ));
    }
    if ours.keep != other.keep {
        told.push(format!(
            "what is kept ({:?} and {:?})",
            ours.keep, other.keep
        ));
    }
    (!told.is_empty()).then(|| told.join(", "))
}
