//! Snapshots, their restoration, checks of a whole store, and saving what can be read of a damaged one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::answer::Write;
use crate::document::Document;
use crate::engine::{self, Change, Recovery};
use crate::error::{Result, StoreError};
use crate::fs::{Fs, read_exact, write_all};
use crate::manifest::{ReplaceError, read_checked, replace_checked};
use crate::store::{
    Catalog, OpenOptions, Store, StoreId, check_name, collection_folder, is_file_name, lock_to_read,
};
use crate::time::Time;

const SNAPSHOT: &str = "SNAPSHOT";
const NEW_SNAPSHOT: &str = "SNAPSHOT.new";
const VERSION: u32 = 1;
/// Bytes that are copied at a time.
const PIECE: usize = 1 << 20;

/// The list of the files of a snapshot.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotList {
    version: u32,
    /// By path below the snapshot: length and XXH3-64.
    files: BTreeMap<String, (u64, u64)>,
}

/// What a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// Collections.
    pub collections: usize,
    /// Files.
    pub files: usize,
    /// Bytes of all files; those of runs are shared with the store as long as both have them.
    pub bytes: u64,
}

/// What a salvage saved and lost.
#[derive(Clone, Debug, Default)]
pub struct Salvage {
    /// By collection, how many changes were read and written again.
    pub saved: BTreeMap<String, u64>,
    /// What could not be read.
    pub lost: Vec<StoreError>,
}

impl Store {
    /// Makes a snapshot in a new directory: a moment of each collection, while others read; writes wait for some tenths
    /// of a second. Runs are hard links where the medium allows it. It can be opened only after [`restore`].
    ///
    /// # Errors
    /// When a collection is damaged, the directory exists, or the medium fails.
    pub fn snapshot(&self, target: &Path) -> Result<SnapshotSummary> {
        let fs = self.fs();
        let failed = |error| StoreError::io(target, "making a snapshot")(error);
        if fs.list(target).is_ok_and(|names| !names.is_empty()) {
            let what = format!(
                "{}: there is something here already: name a new directory",
                target.display()
            );
            return Err(StoreError::Invalid(what));
        }
        fs.create_dir(target).map_err(failed)?;
        let parent = target.join("collections");
        fs.create_dir(&parent).map_err(failed)?;
        let (mut catalog, collections) = self.moment();
        catalog.removing.clear();
        for (name, opened) in collections {
            let folder = collection_folder(target, &name);
            fs.create_dir(&folder).map_err(failed)?;
            opened?.engine().snapshot(&folder)?;
        }
        fs.sync_dir(&parent).map_err(failed)?;
        catalog.write(&**fs, target)?;
        let files = list_files(&**fs, target, &catalog)?;
        let summary = SnapshotSummary {
            collections: catalog.collections.len(),
            files: files.len(),
            bytes: files.values().map(|(length, _)| length).sum(),
        };
        let list = SnapshotList {
            version: VERSION,
            files,
        };
        replace_checked(&**fs, target, SNAPSHOT, NEW_SNAPSHOT, &list).map_err(
            |error| match error {
                ReplaceError::Before(error) | ReplaceError::Unknown(error) => error,
            },
        )?;
        Ok(summary)
    }
}

/// Lengths and checks of all files of a snapshot.
fn list_files(
    fs: &dyn Fs,
    folder: &Path,
    catalog: &Catalog,
) -> Result<BTreeMap<String, (u64, u64)>> {
    let mut names = vec![crate::store::CATALOG.to_owned()];
    for name in catalog.collections.keys() {
        let below = collection_folder(folder, name);
        let files = fs
            .list(&below)
            .map_err(StoreError::io(&below, "reading a snapshot"))?;
        names.extend(
            files
                .into_iter()
                .map(|file| format!("collections/{name}/{file}")),
        );
    }
    let sums = names.into_iter().map(|name| {
        let sum = sum_file(fs, &folder.join(&name))?;
        Ok((name, sum))
    });
    sums.collect()
}

/// Length and XXH3-64 of a file.
fn sum_file(fs: &dyn Fs, path: &Path) -> Result<(u64, u64)> {
    let mut hasher = Xxh3::new();
    let length = pieces(fs, path, &mut |piece, _| {
        hasher.update(piece);
        Ok(())
    })?;
    Ok((length, hasher.digest()))
}

fn pieces(
    fs: &dyn Fs,
    path: &Path,
    each: &mut dyn FnMut(&[u8], u64) -> std::io::Result<()>,
) -> Result<u64> {
    let failed = |error| StoreError::io(path, "reading a snapshot")(error);
    let file = fs.open(path, false).map_err(failed)?;
    let length = file.length().map_err(failed)?;
    let (mut piece, mut at) = (vec![0; PIECE], 0);
    while at < length {
        let now = &mut piece[..PIECE.min((length - at) as usize)];
        read_exact(&*file, now, at).map_err(failed)?;
        each(now, at).map_err(failed)?;
        at += now.len() as u64;
    }
    Ok(length)
}

/// Copies a file; durable, but for its name.
pub(crate) fn copy(fs: &dyn Fs, from: &Path, to: &Path) -> Result<()> {
    let failed = |error| StoreError::io(to, "copying a file")(error);
    let file = fs.create(to).map_err(failed)?;
    pieces(fs, from, &mut |piece, at| write_all(&*file, piece, at))?;
    file.sync().map_err(failed)
}

/// A second name for a file that never changes, or a copy where that is not possible.
pub(crate) fn link_or_copy(fs: &dyn Fs, from: &Path, to: &Path) -> Result<()> {
    match fs.link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            Err(StoreError::DiskFull {
                path: to.to_owned(),
            })
        }
        Err(_) => copy(fs, from, to),
    }
}

/// Refuses a list with names that no snapshot has: it was not made by [`Store::snapshot`], whatever its check says.
fn check_names(path: &Path, list: &SnapshotList) -> Result<()> {
    let is_ours = |name: &&String| {
        let mut parts = name.split('/');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(crate::store::CATALOG), None, None, None) => true,
            (Some("collections"), Some(collection), Some(file), None) => {
                check_name(collection).is_ok() && is_file_name(file)
            }
            _ => false,
        }
    };
    let mut others = list.files.keys().filter(|name| !is_ours(name));
    others.next().map_or(Ok(()), |name| {
        let shown: String = name.chars().take(100).collect();
        let what =
            format!("{shown:?} is no name of a file of a snapshot: somebody has made this list");
        Err(StoreError::damaged(path, 0, what))
    })
}

/// Refuses files of collections that the catalog does not name.
fn check_collections(path: &Path, list: &SnapshotList, catalog: &Catalog) -> Result<()> {
    let collection = |name: &&String| {
        let name = name.strip_prefix("collections/")?.split('/').next()?;
        (!catalog.collections.contains_key(name)).then(|| name.to_owned())
    };
    let unknown = list.files.keys().find_map(|name| collection(&name));
    unknown.map_or(Ok(()), |name| {
        let what = format!("files of the collection {name:?}, which the catalog does not name");
        Err(StoreError::damaged(path, 0, what))
    })
}

/// Makes a store of a snapshot in a new directory. Every byte of the snapshot is checked first.
///
/// # Errors
/// When a file of the snapshot is missing, changed or not listed, or the target exists; then nothing is made.
pub fn restore(fs: &dyn Fs, snapshot: &Path, target: &Path) -> Result<SnapshotSummary> {
    let list: SnapshotList = read_checked(fs, snapshot, SNAPSHOT, "every snapshot")?;
    if list.version != VERSION {
        let (path, found) = (snapshot.join(SNAPSHOT), list.version);
        return Err(StoreError::Version {
            path,
            found,
            known: VERSION,
        });
    }
    // Names become paths: all are looked at before the first is.
    check_names(&snapshot.join(SNAPSHOT), &list)?;
    for (name, sum) in &list.files {
        let path = snapshot.join(name);
        let found = match sum_file(fs, &path) {
            Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(StoreError::Missing {
                    path,
                    named_by: SNAPSHOT,
                });
            }
            other => other?,
        };
        if found != *sum {
            return Err(StoreError::damaged(
                &path,
                0,
                "the file is not the one of which the snapshot was made",
            ));
        }
    }
    let catalog = Catalog::read(fs, snapshot)?;
    let missing = || StoreError::Missing {
        path: snapshot.join(crate::store::CATALOG),
        named_by: SNAPSHOT,
    };
    let catalog = catalog.ok_or_else(missing)?;
    check_collections(&snapshot.join(SNAPSHOT), &list, &catalog)?;
    let failed = |error| StoreError::io(target, "restoring a snapshot")(error);
    if fs.list(target).is_ok_and(|names| !names.is_empty()) {
        let what = format!(
            "{}: there is something here already: name a new directory",
            target.display()
        );
        return Err(StoreError::Invalid(what));
    }
    let parent = target.join("collections");
    fs.create_dir(target).map_err(failed)?;
    fs.create_dir(&parent).map_err(failed)?;
    for name in catalog.collections.keys() {
        let folder = collection_folder(target, name);
        fs.create_dir(&folder).map_err(failed)?;
    }
    for name in list.files.keys().filter(|name| name.contains('/')) {
        let (from, to) = (snapshot.join(name), target.join(name));
        // Logs are written on; all other files stay as they are for ever.
        if name.ends_with(".run") || name.ends_with(".dead") {
            link_or_copy(fs, &from, &to)?;
        } else {
            copy(fs, &from, &to)?;
        }
    }
    for name in catalog.collections.keys() {
        fs.sync_dir(&collection_folder(target, name))
            .map_err(failed)?;
    }
    fs.sync_dir(&parent).map_err(failed)?;
    // The catalog makes a store of it, so it comes last.
    catalog.write(fs, target)?;
    Ok(SnapshotSummary {
        collections: catalog.collections.len(),
        files: list.files.len(),
        bytes: list.files.values().map(|(length, _)| length).sum(),
    })
}

/// What a store says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreInfo {
    /// Its identity.
    pub identity: StoreId,
    /// The names of its collections.
    pub collections: Vec<String>,
}

/// Reads what a store says of itself; also while a process has it open.
///
/// # Errors
/// When there is none, or its catalog is damaged.
pub fn info(fs: &dyn Fs, folder: &Path) -> Result<StoreInfo> {
    let catalog = Catalog::read(fs, folder)?.ok_or_else(|| StoreError::NoStore {
        path: folder.to_owned(),
    })?;
    Ok(StoreInfo {
        identity: catalog.identity()?,
        collections: catalog.collections.into_keys().collect(),
    })
}

/// Reads every byte of a store that no process has open, and checks how its parts fit. By collection, what was found.
///
/// # Errors
/// When the catalog itself is damaged or the store is in use.
pub fn verify(fs: &dyn Fs, folder: &Path) -> Result<BTreeMap<String, Result<Recovery>>> {
    let _lock = lock_to_read(fs, folder)?;
    let catalog = Catalog::read(fs, folder)?;
    let catalog = catalog.ok_or_else(|| StoreError::NoStore {
        path: folder.to_owned(),
    })?;
    let verified = catalog.collections.iter().map(|(name, identity)| {
        let found = engine::verify(fs, &collection_folder(folder, name), *identity);
        (name.clone(), found)
    });
    Ok(verified.collect())
}

/// Writes everything that can be read of a damaged store into a new one. The damaged one is not changed.
///
/// What was deleted or replaced after what is lost may come back, and is not told apart from what lives.
///
/// # Errors
/// When not even names and settings of the collections can be read, or the target exists or cannot be written.
pub fn salvage(
    fs: &Arc<dyn Fs>,
    folder: &Path,
    target: &Path,
    options: OpenOptions,
) -> Result<Salvage> {
    let _lock = lock_to_read(&**fs, folder)?;
    let mut salvage = Salvage::default();
    let names = match Catalog::read(&**fs, folder) {
        Ok(Some(catalog)) => catalog.collections.into_keys().collect(),
        Ok(None) => {
            return Err(StoreError::NoStore {
                path: folder.to_owned(),
            });
        }
        Err(error) => {
            salvage.lost.push(error);
            let below = folder.join("collections");
            let mut names = fs
                .list(&below)
                .map_err(StoreError::io(&below, "reading a damaged store"))?;
            names.retain(|name| check_name(name).is_ok());
            names
        }
    };
    if fs.list(target).is_ok_and(|names| !names.is_empty()) {
        let what = format!(
            "{}: there is something here already: name a new directory",
            target.display()
        );
        return Err(StoreError::Invalid(what));
    }
    let store = Store::open_on(
        Arc::clone(fs),
        target,
        OpenOptions {
            create: true,
            ..options
        },
    )?;
    for name in names {
        let saved = salvage_collection(fs, &collection_folder(folder, &name), &store, &name);
        match saved {
            Ok((count, lost)) => {
                salvage.lost.extend(lost);
                salvage.saved.insert(name, count);
            }
            Err(error) => salvage.lost.push(error),
        }
    }
    store.close()?;
    Ok(salvage)
}

/// Changes that are written at once.
const BATCH: usize = 1000;

fn salvage_collection(
    fs: &Arc<dyn Fs>,
    folder: &Path,
    store: &Store,
    name: &str,
) -> Result<(u64, Vec<StoreError>)> {
    let mut settings = engine::settings(&**fs, folder)?;
    // Documents keep the ends that they have: none gets a new one.
    let time_to_live = settings.time_to_live.take();
    let collection = store.create_collection(name, &settings)?;
    let (mut batch, mut count, mut time) = (Vec::new(), 0, Time(0));
    let mut write = |batch: &mut Vec<Write>, time: Time| {
        count += batch.len() as u64;
        collection.write(std::mem::take(batch), time, 0).map(drop)
    };
    let lost = engine::salvage(&**fs, folder, &mut |told, changes| {
        time = time.max(told);
        batch.extend(changes.into_iter().map(into_write));
        if batch.len() >= BATCH {
            write(&mut batch, time)
        } else {
            Ok(())
        }
    })?;
    write(&mut batch, time)?;
    collection.set_time_to_live(time_to_live)?;
    Ok((count, lost))
}

fn into_write(change: Change<Document>) -> Write {
    match change {
        Change::Insert(document) => Write::Insert(document),
        Change::Delete(id) => Write::Delete(id),
    }
}
