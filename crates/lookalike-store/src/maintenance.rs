//! Snapshots and their restoration, verification of a whole store, and salvage of the readable data of a damaged one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::batch_writer::BatchWriter;
use crate::engine::{self, LogChange, RecoveryReport};
use crate::error::{Result, StoreError};
use crate::file_copy::{copy_file, for_each_piece, link_or_copy};
use crate::fs::{FileSystem, RealFs};
use crate::manifest::{read_checked, replace_checked};
use crate::store::{
    LOCK, MAX_NAME_BYTES, SECOND_FOLDER, SNAPSHOT, Store, StoreCatalog, StoreId, StoreOptions,
    check_name, collection_folder, is_file_name, lock_failed, lock_to_read, shortened, sync_parent,
};
use crate::sync::lock;
use crate::time::UnixMillis;

const NEW_SNAPSHOT: &str = "SNAPSHOT.new";
/// Marker file that is locked while a snapshot is written, and removed at the end.
const UNFINISHED: &str = "UNFINISHED";
const VERSION: u32 = 1;
/// Suffix that a salvage adds to the name of a collection that may have been half rebuilt.
const REBUILT: &str = "-rebuilt";

/// Contents of the list of a snapshot's files.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotList {
    version: u32,
    /// Length and XXH3-64 of each file, by its path relative to the snapshot.
    files: BTreeMap<String, (u64, u64)>,
}

impl SnapshotList {
    fn summary(&self, catalog: &StoreCatalog) -> SnapshotSummary {
        SnapshotSummary {
            collections: catalog.collections.len(),
            files: self.files.len(),
            bytes: self.files.values().map(|(length, _)| length).sum(),
        }
    }
}

/// The summary of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotSummary {
    /// Number of collections.
    pub collections: usize,
    /// Number of files.
    pub files: usize,
    /// Total size of the files in bytes. Runs are shared with the store as long as both have them.
    pub bytes: u64,
}

/// The report on a salvage.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Number of changes that were saved, for each collection.
    pub saved: BTreeMap<String, u64>,
    /// An error for everything that could not be read.
    pub lost: Vec<StoreError>,
}

impl Store {
    /// Creates a snapshot in a new or empty directory, with each collection as of one moment. Reads continue meanwhile; writes wait for a few tenths
    /// of a second. Runs are hard links if the medium supports them, otherwise copies; every byte is read once for its checksum. A
    /// collection that is removed meanwhile may or may not be included; one that is rebuilt is included in its state before or after. A
    /// snapshot must be restored with [`restore`] before it can be opened.
    ///
    /// # Errors
    /// Fails if a collection is damaged, the directory is not empty, or the medium fails.
    pub fn snapshot(&self, target: impl AsRef<Path>) -> Result<SnapshotSummary> {
        let target = target.as_ref();
        let _alone = lock(&self.snapshots);
        let fs = &**self.fs();
        // Remains of a killed process would count as files below, and the name of this snapshot could not be used again.
        if is_unfinished(fs, target) {
            remove_copy(fs, target, false);
        }
        let exists = ensure_empty(fs, target)?;
        let made = self.snapshot_into(target);
        fs.release_dirs(target);
        if made.is_err() {
            // Hard links in it would keep runs on the medium after the store has removed them, and its name could not be used again.
            remove_copy(fs, target, exists);
        }
        made
    }

    /// Removes snapshots in a directory that a killed process left unfinished, and returns their names. Snapshots that are being written
    /// stay.
    pub fn remove_unfinished_snapshots(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let folder = folder.as_ref();
        let _alone = lock(&self.snapshots);
        let fs = &**self.fs();
        let mut names = fs.list(folder).unwrap_or_default();
        names.retain(|name| is_unfinished(fs, &folder.join(name)));
        names
            .iter()
            .for_each(|name| remove_copy(fs, &folder.join(name), false));
        names
    }

    fn snapshot_into(&self, target: &Path) -> Result<SnapshotSummary> {
        let fs = self.fs();
        let failed = |error| StoreError::io(target, "making a snapshot")(error);
        fs.create_dir(target).map_err(failed)?;
        let mark = target.join(UNFINISHED);
        fs.create(&mark).map_err(failed)?;
        // The lock tells other processes that this snapshot was not left unfinished.
        let unfinished = fs.lock(&mark, &std::process::id().to_string());
        let unfinished = unfinished.map_err(|error| lock_failed(target, error))?;
        let parent = target.join("collections");
        fs.create_dir(&parent).map_err(failed)?;
        let mut catalog = self.state().catalog.clone();
        // Collections that are being removed or rebuilt have no files in the snapshot, and all others are in their first folder.
        catalog.removing.clear();
        catalog.moved.clear();
        for name in std::mem::take(&mut catalog.collections).into_keys() {
            if let Some(identity) = self.snapshot_collection(target, &name)? {
                catalog.collections.insert(name, identity);
            }
        }
        fs.sync_dir(&parent).map_err(failed)?;
        sync_parent(&**fs, target)?;
        // The list is written last and names all files: an interrupted snapshot has no list, and `restore` refuses it.
        let summary = list_snapshot(&**fs, target, &catalog)?;
        drop(unfinished);
        // A snapshot with a list is complete, even if the marker cannot be removed.
        let _ = fs.remove(&mark);
        Ok(summary)
    }

    /// Writes a collection as of one moment into a snapshot. Returns its identity, or `None` if it was removed meanwhile.
    fn snapshot_collection(&self, target: &Path, name: &str) -> Result<Option<u64>> {
        let (fs, folder) = (&**self.fs(), collection_folder(target, name));
        loop {
            let collection = match self.collection(name) {
                Err(StoreError::NoCollection(_)) => {
                    // An earlier iteration may have created the folder; if it is left behind, it does no harm.
                    let _ = fs.remove_dir(&folder);
                    return Ok(None);
                }
                opened => opened?,
            };
            fs.create_dir(&folder)
                .map_err(StoreError::io(target, "making a snapshot"))?;
            match collection.engine().snapshot(&folder) {
                // Its writes have ended because it was replaced or removed in the meantime, so try again.
                Err(StoreError::Replaced | StoreError::Stopped(_))
                    if !self.is_current(&collection) => {}
                made => return made.map(Some),
            }
        }
    }
}

/// Completes a snapshot whose files have been written: adds its catalog and the list of all files.
pub(crate) fn list_snapshot(
    fs: &dyn FileSystem,
    target: &Path,
    catalog: &StoreCatalog,
) -> Result<SnapshotSummary> {
    // The catalog comes first, because the list includes its checksum.
    catalog.write(fs, target)?;
    let list = SnapshotList {
        version: VERSION,
        files: list_files(fs, target, catalog)?,
    };
    replace_checked(fs, target, SNAPSHOT, NEW_SNAPSHOT, &list).map_err(StoreError::from)?;
    Ok(list.summary(catalog))
}

/// Tells whether a snapshot was left unfinished by a process that is gone: it has the marker but no list, and nobody holds the lock of the
/// marker.
fn is_unfinished(fs: &dyn FileSystem, folder: &Path) -> bool {
    let names = fs.list(folder).unwrap_or_default();
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    has(UNFINISHED) && !has(SNAPSHOT) && fs.lock_to_read(&folder.join(UNFINISHED)).is_ok()
}

/// Removes as much as possible of a failed snapshot, or of a store that failed to be restored; the directory itself stays if it existed
/// before.
fn remove_copy(fs: &dyn FileSystem, target: &Path, existed: bool) {
    let below = target.join("collections");
    let names = fs.list(&below).unwrap_or_default();
    let collections = names.into_iter().map(|name| below.join(name));
    // Children come before their parents, because only an empty folder can be removed.
    for folder in collections.chain([below.clone(), target.to_owned()]) {
        for file in fs.list(&folder).unwrap_or_default() {
            let _ = fs.remove(&folder.join(file));
        }
        if !existed || folder != target {
            let _ = fs.remove_dir(&folder);
        }
    }
}

/// Returns an error for a directory that already contains files; otherwise tells whether the directory exists.
fn ensure_empty(fs: &dyn FileSystem, target: &Path) -> Result<bool> {
    match fs.list(target) {
        Ok(names) if !names.is_empty() => Err(StoreError::NotEmpty {
            path: target.to_owned(),
        }),
        listed => Ok(listed.is_ok()),
    }
}

/// Returns lengths and checksums of all files of a snapshot.
fn list_files(
    fs: &dyn FileSystem,
    folder: &Path,
    catalog: &StoreCatalog,
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

/// Returns length and XXH3-64 of a file.
fn sum_file(fs: &dyn FileSystem, path: &Path) -> Result<(u64, u64)> {
    let mut hasher = Xxh3::new();
    let length = for_each_piece(fs, path, &mut |piece, _| {
        hasher.update(piece);
        Ok(())
    })?;
    Ok((length, hasher.digest()))
}

/// Returns an error for a list with names that no snapshot contains: [`Store::snapshot`] did not write it, even if its checksum is right.
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
        let shown = shortened(name);
        let what =
            format!("{shown:?} is not the name of a file of a snapshot: this list was forged");
        Err(StoreError::damaged(path, 0, what))
    })
}

/// Returns an error for files of collections that the catalog does not name.
fn check_collections(path: &Path, list: &SnapshotList, catalog: &StoreCatalog) -> Result<()> {
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

/// Restores a snapshot as a store in a new directory. Every byte of the snapshot is verified first.
///
/// ```
/// use lookalike_store::{Store, StoreOptions, restore, verify};
///
/// # let folder = tempfile::tempdir()?;
/// # let [data, snapshot, restored] = ["data", "snapshot", "restored"].map(|name| folder.path().join(name));
/// let store = Store::open(&data, StoreOptions::default().create(true))?;
/// store.snapshot(&snapshot)?;
/// restore(&snapshot, &restored)?;
/// assert!(verify(&restored)?.values().all(Result::is_ok));
/// assert_eq!(Store::open(&restored, StoreOptions::default())?.identity(), store.identity());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Fails if a file of the snapshot is missing, changed or not listed, or the target is not empty; nothing is left in it then.
pub fn restore(snapshot: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<SnapshotSummary> {
    restore_on(&RealFs::default(), snapshot.as_ref(), target.as_ref())
}

/// Restores a snapshot like [`restore`], on any file system.
///
/// # Errors
/// Those of [`restore`].
pub fn restore_on(fs: &dyn FileSystem, snapshot: &Path, target: &Path) -> Result<SnapshotSummary> {
    let list: Result<SnapshotList> = read_checked(fs, snapshot, SNAPSHOT, "every snapshot");
    let list = list.map_err(|error| {
        // No snapshot has a lock.
        let is_store = fs.open(&snapshot.join(LOCK), false).is_ok();
        match matches!(error, StoreError::Missing { .. }) && is_store {
            true => StoreError::Invalid(format!(
                "{}: this is a store, not a snapshot of one",
                snapshot.display()
            )),
            false => error,
        }
    })?;
    if list.version != VERSION {
        let path = snapshot.join(SNAPSHOT);
        return Err(StoreError::version(path, list.version, VERSION));
    }
    // Paths are made of the names, so check them all before using the first.
    check_names(&snapshot.join(SNAPSHOT), &list)?;
    for (name, sum) in &list.files {
        let path = snapshot.join(name);
        let found = sum_file(fs, &path).map_err(|error| error.or_missing(SNAPSHOT))?;
        if found != *sum {
            let what = "the file was changed after the snapshot was made";
            return Err(StoreError::damaged(&path, 0, what));
        }
    }
    let catalog = StoreCatalog::read(fs, snapshot)?;
    let or_missing = || StoreError::Missing {
        path: snapshot.join(crate::store::CATALOG),
        named_by: SNAPSHOT,
    };
    let catalog = catalog.ok_or_else(or_missing)?;
    check_collections(&snapshot.join(SNAPSHOT), &list, &catalog)?;
    let exists = ensure_empty(fs, target)?;
    let made = restore_into(fs, snapshot, target, &list, &catalog);
    if made.is_err() {
        remove_copy(fs, target, exists);
    }
    made
}

/// Creates the files of a store from those of a snapshot.
fn restore_into(
    fs: &dyn FileSystem,
    snapshot: &Path,
    target: &Path,
    list: &SnapshotList,
    catalog: &StoreCatalog,
) -> Result<SnapshotSummary> {
    let failed = |error| StoreError::io(target, "restoring a snapshot")(error);
    let parent = target.join("collections");
    fs.create_dir(target).map_err(failed)?;
    fs.create_dir(&parent).map_err(failed)?;
    for name in catalog.collections.keys() {
        let folder = collection_folder(target, name);
        fs.create_dir(&folder).map_err(failed)?;
    }
    // A name with a slash is a file of a collection. The catalog, the only other one (`check_names`), is written last.
    for name in list.files.keys().filter(|name| name.contains('/')) {
        let (from, to) = (snapshot.join(name), target.join(name));
        // Logs will be appended to, so they are copied; runs, tombstones and parts never change and can be linked.
        let stays = [".run", ".tombstones", ".part"];
        if stays.iter().any(|kind| name.ends_with(kind)) {
            link_or_copy(fs, &from, &to)?;
            // If the snapshot itself was copied here, its files may not have been synced yet.
            fs.open(&to, false)
                .and_then(|file| file.sync())
                .map_err(failed)?;
        } else {
            copy_file(fs, &from, &to)?;
        }
    }
    for name in catalog.collections.keys() {
        fs.sync_dir(&collection_folder(target, name))
            .map_err(failed)?;
    }
    fs.sync_dir(&parent).map_err(failed)?;
    sync_parent(fs, target)?;
    // The catalog comes last, because it makes the directory a store.
    catalog.write(fs, target)?;
    Ok(list.summary(catalog))
}

/// The identity and collections of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreInfo {
    /// Its identity.
    pub identity: StoreId,
    /// The names of its collections.
    pub collections: Vec<String>,
}

/// Reads the identity and collections of a store, which may be open in another process.
///
/// # Errors
/// Fails if there is no store, or its catalog is damaged.
pub fn info(folder: impl AsRef<Path>) -> Result<StoreInfo> {
    let folder = folder.as_ref();
    let catalog = StoreCatalog::read(&RealFs::default(), folder)?;
    let catalog = catalog.ok_or_else(|| StoreError::no_store(folder))?;
    Ok(StoreInfo {
        identity: catalog.identity()?,
        collections: catalog.collections.into_keys().collect(),
    })
}

/// Reads every byte of a store that no process has open, and checks that its parts are consistent. Returns the result for each collection.
///
/// # Errors
/// Fails if the catalog itself is damaged, or the store is in use.
pub fn verify(folder: impl AsRef<Path>) -> Result<BTreeMap<String, Result<RecoveryReport>>> {
    verify_on(&RealFs::default(), folder.as_ref())
}

/// Verifies a store like [`verify`], on any file system.
///
/// # Errors
/// Those of [`verify`].
pub fn verify_on(
    fs: &dyn FileSystem,
    folder: &Path,
) -> Result<BTreeMap<String, Result<RecoveryReport>>> {
    let _lock = lock_to_read(fs, folder)?;
    let catalog = StoreCatalog::read(fs, folder)?;
    let catalog = catalog.ok_or_else(|| StoreError::no_store(folder))?;
    let verified = catalog.collections.iter().map(|(name, identity)| {
        let found = engine::verify(fs, &catalog.folder(folder, name), *identity);
        (name.clone(), found)
    });
    Ok(verified.collect())
}

/// Writes all readable data of a damaged store to a new one. The damaged store is not changed.
///
/// ```
/// use lookalike_store::{Store, StoreOptions, salvage};
///
/// # let folder = tempfile::tempdir()?;
/// # let (damaged, saved) = (folder.path().join("damaged"), folder.path().join("saved"));
/// # Store::open(&damaged, StoreOptions::default().create(true))?.close()?;
/// let report = salvage(&damaged, &saved, StoreOptions::default())?;
/// for error in &report.lost {
///     eprintln!("{error}");
/// }
/// let store = Store::open(&saved, StoreOptions::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Documents whose deletion or replacement is among the lost data may come back; they cannot be told from live ones.
///
/// # Errors
/// Fails if not even names and settings of the collections can be read, or if the target exists or cannot be written. Nothing of the target
/// is left then.
pub fn salvage(
    folder: impl AsRef<Path>,
    target: impl AsRef<Path>,
    options: StoreOptions,
) -> Result<SalvageReport> {
    let fs: Arc<dyn FileSystem> = Arc::new(RealFs::default());
    salvage_on(&fs, folder.as_ref(), target.as_ref(), options)
}

/// Salvages a store like [`salvage`], on any file system.
///
/// # Errors
/// Those of [`salvage`].
pub fn salvage_on(
    fs: &Arc<dyn FileSystem>,
    folder: &Path,
    target: &Path,
    options: StoreOptions,
) -> Result<SalvageReport> {
    let _lock = lock_to_read(&**fs, folder)?;
    let mut salvage = SalvageReport::default();
    let collections = match StoreCatalog::read(&**fs, folder) {
        Ok(Some(catalog)) => {
            let names = catalog.collections.keys();
            names
                .map(|name| (name.clone(), catalog.folder(folder, name)))
                .collect()
        }
        Ok(None) => return Err(StoreError::no_store(folder)),
        Err(error) => {
            // The names are then taken from the folders, including those of collections that were being removed.
            salvage.lost.push(error);
            let below = folder.join("collections");
            let folders = fs
                .list(&below)
                .map_err(StoreError::io(&below, "reading a damaged store"))?;
            salvaged_names(&below, &folders)
        }
    };
    // Check before anything is created: a salvage into a directory in use would mix two stores.
    let exists = ensure_empty(&**fs, target)?;
    let options = options.create(true);
    let salvaged = salvage_into(fs, collections, target, options, &mut salvage);
    if let Err(error) = salvaged {
        // If another process has the store open, its directory is left alone.
        if is_failure_at(&error, target) {
            // The target is incomplete, and nobody could tell it from a complete salvage.
            fs.release_dirs(target);
            remove_copy(&**fs, target, exists);
        }
        return Err(error);
    }
    Ok(salvage)
}

/// Salvages collections into a new store one after another, until writing to it fails.
fn salvage_into(
    fs: &Arc<dyn FileSystem>,
    collections: Vec<(String, PathBuf)>,
    target: &Path,
    options: StoreOptions,
    salvage: &mut SalvageReport,
) -> Result<()> {
    let store = Store::open_on(Arc::clone(fs), target, options)?;
    let salvaged = collections.into_iter().try_for_each(|(name, folder)| {
        let lost = match salvage_collection(fs, &folder, &store, &name) {
            Ok((count, lost)) => {
                salvage.saved.insert(name, count);
                lost
            }
            Err(error) => vec![error],
        };
        // What cannot be read is reported at the end, but a failure to write the new store ends the salvage.
        for error in lost {
            if is_failure_at(&error, target) {
                return Err(error);
            }
            salvage.lost.push(error);
        }
        Ok(())
    });
    salvaged.and(store.close())
}

/// Tells whether an error is a failure to write a store in this directory.
fn is_failure_at(error: &StoreError, target: &Path) -> bool {
    match error {
        StoreError::Io { path, .. }
        | StoreError::DiskFull { path }
        | StoreError::OutOfFiles { path } => path.starts_with(target),
        // Only an open store can stop, and the damaged one is not open.
        StoreError::Stopped(_) => true,
        _ => false,
    }
}

/// Returns names for the collections in the folders of a store without a catalog. If a name has two folders, one of them was being rebuilt
/// or removed, and it is unknown which: the collection in the second folder gets a name that no other folder has.
fn salvaged_names(below: &Path, folders: &[String]) -> Vec<(String, PathBuf)> {
    let first = |folder: &String| {
        folder
            .strip_suffix(SECOND_FOLDER)
            .unwrap_or(folder)
            .to_owned()
    };
    let mut taken: BTreeSet<String> = folders.iter().map(first).collect();
    let named = folders.iter().filter_map(|folder| {
        let mut name = first(folder);
        check_name(&name).ok()?;
        if name != *folder && folders.contains(&name) {
            name = unused_name(&name, &taken);
            taken.insert(name.clone());
        }
        Some((name, below.join(folder)))
    });
    named.collect()
}

/// Returns a name that is not taken: the beginning of `name`, a suffix, and a number if it needs one.
fn unused_name(name: &str, taken: &BTreeSet<String>) -> String {
    let numbers = std::iter::once(String::new()).chain((2..).map(|number: u32| number.to_string()));
    let mut names = numbers.map(|number| {
        let end = format!("{REBUILT}{number}");
        // Names are ASCII (`check_name`), so every length is a character boundary.
        let kept = name.len().min(MAX_NAME_BYTES - end.len());
        format!("{}{end}", &name[..kept])
    });
    names
        .find(|name| !taken.contains(name))
        .expect("there are more numbers than folders")
}

fn salvage_collection(
    fs: &Arc<dyn FileSystem>,
    folder: &Path,
    store: &Store,
    name: &str,
) -> Result<(u64, Vec<StoreError>)> {
    let (settings, parts) = engine::settings(&**fs, folder)?;
    let (mut whole, mut damaged) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Ok(part) => whole.push(part),
            Err(error) => damaged.push(error),
        }
    }
    // Damaged parts are left out instead of copied: a collection without its table reports that, but one with a wrong table would compute
    // wrong fingerprints.
    let collection = store.create_collection_with(name, &settings, &whole)?;
    // The time comes from the store that is read: each call below brings it before its first write.
    let mut writer = BatchWriter::new(&collection, UnixMillis(0));
    let lost = engine::salvage(&**fs, folder, &mut |told, changes| {
        writer.time = writer.time.max(told);
        changes.into_iter().try_for_each(|change| match change {
            LogChange::Insert(document) => writer.insert(document),
            LogChange::Delete(id) => writer.delete(id),
        })
    });
    // Documents saved before a failure count.
    let flushed = writer.flush();
    match lost {
        Ok(lost) => damaged.extend(lost),
        Err(error) => damaged.push(error),
    }
    damaged.extend(flushed.err());
    Ok((writer.written, damaged))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second collection was then salvaged into the first, or not at all.
    #[test]
    fn two_salvaged_collections_got_the_same_name() {
        let long = "x".repeat(60);
        let [a, b] = [format!("{long}a"), format!("{long}b")];
        let [second_a, second_b] = [format!("{a}~"), format!("{b}~")];
        let folders = [
            "pages",
            "pages-rebuilt",
            "pages~",
            &a,
            &second_a,
            &b,
            &second_b,
        ];
        let named = salvaged_names(Path::new("/s"), &folders.map(str::to_owned));
        let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
        let (cut, cut2) = (
            format!("{}-rebuilt", "x".repeat(56)),
            format!("{}-rebuilt2", "x".repeat(55)),
        );
        assert_eq!(
            names,
            [
                "pages",
                "pages-rebuilt",
                "pages-rebuilt2",
                &a,
                &cut,
                &b,
                &cut2
            ]
        );
        let paths: Vec<_> = named.iter().map(|(_, path)| path.clone()).collect();
        assert_eq!(paths, folders.map(|folder| Path::new("/s").join(folder)));
    }
}
