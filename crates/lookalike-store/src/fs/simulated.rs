//! A file system in memory that loses unsynced changes when its power is cut, and fails on request.
//!
//! A power cut keeps each unsynced 512-byte sector, drops it, tears it, or fills it with garbage. Each unsynced change of a name (creation,
//! rename, removal) survives or is lost independently of the others. The seed of the cut determines all outcomes.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use lookalike::hash::splitmix64;

use super::{FileHandle, FileLock, FileSystem, LockError};
use crate::sync::lock;

const SECTOR: usize = 512;
/// One in this many sectors that are being written when the power fails is filled with garbage.
const GARBAGE: usize = 6;

/// A fault that is injected into a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// The call fails with an input or output error; later calls work.
    Io,
    /// From this call until [`SimulatedFs::heal`], every call that needs space fails.
    Full,
    /// From this call until [`SimulatedFs::heal`], every call that opens a file fails.
    OutOfFiles,
    /// From this call until [`SimulatedFs::heal`], every call that changes something fails, as if the system had remounted the medium
    /// read-only after an error.
    ReadOnly,
    /// A write writes only some of the bytes and then fails.
    ShortWrite,
    /// A sync fails, and the bytes that it should have made durable never become so, although they can be read.
    FailedSync,
    /// The power is cut: this call and all later ones fail.
    PowerCut,
}

/// A kind of sync that a lying medium acknowledges without performing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredSync {
    /// Syncs of the bytes of files.
    Sync,
    /// Syncs of the names in a folder.
    SyncDir,
}

/// State of the medium just before a call, at which the power can be cut.
#[derive(Clone, Debug)]
pub struct CrashPoint {
    /// The latest mark set by [`SimulatedFs::mark`].
    pub mark: u64,
    state: MediumState,
}

/// A simulated file system. Clones share its state.
///
/// ```
/// # use lookalike::{Fingerprint, Scheme};
/// use std::{path::Path, sync::Arc};
///
/// use lookalike_store::fs::SimulatedFs;
/// use lookalike_store::{Store, StoreOptions};
/// # use lookalike_store::{CollectionSettings, StoredDocument, UnixMillis, WriteOp};
///
/// # let now = UnixMillis(1_700_000_000_000);
/// let fs = SimulatedFs::new();
/// let store = Store::open_on(Arc::new(fs.clone()), Path::new("/s"), StoreOptions::default().create(true))?;
/// let pages = store.create_collection("pages", &CollectionSettings::new(&Scheme::default()))?;
/// pages.write(vec![WriteOp::Insert(StoredDocument::new("a", Fingerprint(7)))], now)?;
///
/// // The power goes, and the machine starts again: what was acknowledged is there.
/// let after = Store::open_on(Arc::new(fs.cut(1)), Path::new("/s"), StoreOptions::default())?;
/// assert!(after.collection("pages")?.get("a", now)?.is_some());
/// # Ok::<(), lookalike_store::StoreError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SimulatedFs(Arc<Mutex<SimulatedMachine>>);

#[derive(Debug, Default)]
struct SimulatedMachine {
    state: MediumState,
    calls: u64,
    fault: Option<(u64, InjectedFault)>,
    // Faults that last until `heal`.
    full: bool,
    out_of_files: bool,
    read_only: bool,
    cut: bool,
    failed: bool,
    lie: Option<IgnoredSync>,
    mark: u64,
    recorded: Option<Vec<CrashPoint>>,
    locks: Vec<(PathBuf, String)>,
    interludes: Vec<Interlude>,
    has_no_links: bool,
    /// Ending of files that cannot be created, until `heal`.
    refused_kind: Option<(&'static str, InjectedFault)>,
}

/// An action to run just before a call.
struct Interlude {
    path: PathBuf,
    action: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Interlude {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interlude")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Default)]
struct MediumState {
    inodes: Vec<SimulatedInode>,
    folders: BTreeMap<PathBuf, SimulatedFolder>,
    /// Folders that were removed, but whose removal is not durable yet.
    removed: BTreeMap<PathBuf, SimulatedFolder>,
}

#[derive(Clone, Debug, Default)]
struct SimulatedInode {
    // The contents without the unsynced writes, the contents that readers see, and these writes in order.
    durable: Arc<Vec<u8>>,
    current: Arc<Vec<u8>>,
    unsynced: Vec<(usize, Arc<[u8]>)>,
}

#[derive(Clone, Debug, Default)]
struct SimulatedFolder {
    /// True once the folder's own name is durable.
    named: bool,
    // Inodes by name, likewise.
    durable: BTreeMap<String, usize>,
    current: BTreeMap<String, usize>,
    unsynced: Vec<NameChange>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(String, usize),
    Unset(String, usize),
    Move(String, String, usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FsCall {
    Read,
    /// Opens an existing file, which takes a file descriptor.
    Open,
    Create,
    Write,
    Sync,
    /// Creates, changes or syncs a name, which needs space; removing one does not.
    Name,
    Remove,
}

/// A random number generator that decides the outcome of a power cut.
#[derive(Clone, Copy, Debug)]
struct PowerCutRng(u64);

impl PowerCutRng {
    fn next_u64(&mut self) -> u64 {
        splitmix64(&mut self.0)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next_u64() % end.max(1) as u64) as usize
    }
}

impl SimulatedFs {
    /// Creates an empty medium with the folder `/`.
    pub fn new() -> Self {
        let fs = Self::default();
        fs.machine().state.folders.insert(
            PathBuf::from("/"),
            SimulatedFolder {
                named: true,
                ..SimulatedFolder::default()
            },
        );
        fs
    }

    fn machine(&self) -> MutexGuard<'_, SimulatedMachine> {
        lock(&self.0)
    }

    /// Makes hard links fail from now on, as between two file systems.
    pub fn refuse_links(&self) {
        self.machine().has_no_links = true;
    }

    /// Runs `action` just before the next call that names this path, on the thread of that call, to simulate what others do in the middle
    /// of an operation. `action` may make calls of its own.
    pub fn before(&self, path: impl Into<PathBuf>, action: impl FnOnce() + Send + 'static) {
        let interlude = Interlude {
            path: path.into(),
            action: Box::new(action),
        };
        self.machine().interludes.push(interlude);
    }

    /// Locks the machine for a call that names this path, after running the action that is due.
    fn machine_at(&self, path: &Path) -> MutexGuard<'_, SimulatedMachine> {
        let mut machine = self.machine();
        let due = machine.interludes.iter().position(|due| due.path == path);
        if let Some(due) = due {
            let interlude = machine.interludes.remove(due);
            drop(machine);
            (interlude.action)();
            machine = self.machine();
        }
        machine
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> u64 {
        self.machine().calls
    }

    /// Makes the call with this number fail; the first is 0.
    pub fn fail_at(&self, call: u64, fault: InjectedFault) {
        self.machine().fault = Some((call, fault));
    }

    /// Returns true once the fault has occurred.
    pub fn failed(&self) -> bool {
        self.machine().failed
    }

    /// Ends all faults, and makes space again.
    pub fn heal(&self) {
        let mut machine = self.machine();
        machine.fault = None;
        machine.full = false;
        machine.out_of_files = false;
        machine.read_only = false;
        machine.refused_kind = None;
    }

    /// Makes the medium full from now on.
    pub fn fill(&self) {
        self.machine().full = true;
    }

    /// Makes every call that creates a file with this ending fail with the error of a fault, until [`SimulatedFs::heal`].
    pub fn refuse_kind(&self, kind: &'static str, fault: InjectedFault) {
        self.machine().refused_kind = Some((kind, fault));
    }

    /// Makes the medium acknowledge syncs of one kind without performing them, to simulate a store that forgets to sync.
    pub fn ignore_syncs(&self, lie: Option<IgnoredSync>) {
        self.machine().lie = lie;
    }

    /// Sets the number that later crash points carry, by which a test records its progress.
    pub fn mark(&self, mark: u64) {
        self.machine().mark = mark;
    }

    /// Starts recording the state before every call that changes something.
    pub fn record(&self) {
        self.machine().recorded = Some(Vec::new());
    }

    /// Stops recording, and returns the recorded states and the current one.
    pub fn recorded(&self) -> Vec<CrashPoint> {
        let mut machine = self.machine();
        let mut recorded = machine.recorded.take().unwrap_or_default();
        recorded.push(CrashPoint {
            mark: machine.mark,
            state: machine.state.clone(),
        });
        recorded
    }

    /// Returns the medium as it would be if the power were cut now.
    pub fn cut(&self, seed: u64) -> Self {
        self.machine().state.clone().cut(seed)
    }

    /// Returns a copy of the medium on which everything is durable, for tests that damage it.
    pub fn copy(&self) -> Self {
        let mut state = self.machine().state.clone();
        state
            .inodes
            .iter_mut()
            .for_each(SimulatedInode::make_durable);
        for folder in state.folders.values_mut() {
            folder.named = true;
            folder.durable = folder.current.clone();
            folder.unsynced.clear();
        }
        state.removed.clear();
        Self::of(state)
    }

    fn of(state: MediumState) -> Self {
        Self(Arc::new(Mutex::new(SimulatedMachine {
            state,
            ..SimulatedMachine::default()
        })))
    }

    /// Returns all files with their contents.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let machine = self.machine();
        let mut files = BTreeMap::new();
        for (path, folder) in &machine.state.folders {
            for (name, &inode) in &folder.current {
                let bytes = machine.state.inodes[inode].current.to_vec();
                files.insert(path.join(name), bytes);
            }
        }
        files
    }

    /// Replaces the contents of a file without the knowledge of its users; `None` removes it.
    pub fn damage(&self, path: &Path, bytes: Option<Vec<u8>>) {
        let mut machine = self.machine();
        let Some((folder, name)) = split(path) else {
            return;
        };
        let state = &mut machine.state;
        let inode = SimulatedInode::of(Arc::new(bytes.clone().unwrap_or_default()));
        if let Some(folder) = state.folders.get_mut(folder) {
            match bytes {
                Some(_) => {
                    let number = state.inodes.len();
                    state.inodes.push(inode);
                    folder.current.insert(name.to_owned(), number);
                    folder.durable.insert(name.to_owned(), number);
                }
                None => {
                    folder.current.remove(name);
                    folder.durable.remove(name);
                }
            }
        }
    }
}

impl CrashPoint {
    /// Returns the medium as it is if the process was killed here: everything written is present, but not durable.
    pub fn kill(&self) -> SimulatedFs {
        SimulatedFs::of(self.state.clone())
    }

    /// Returns the medium as it would be if the power had been cut here.
    pub fn cut(&self, seed: u64) -> SimulatedFs {
        self.state.clone().cut(seed)
    }
}

fn split(path: &Path) -> Option<(&Path, &str)> {
    Some((path.parent()?, path.file_name()?.to_str()?))
}

impl SimulatedInode {
    fn of(bytes: Arc<Vec<u8>>) -> Self {
        Self {
            durable: Arc::clone(&bytes),
            current: bytes,
            unsynced: Vec::new(),
        }
    }

    fn make_durable(&mut self) {
        self.durable = Arc::clone(&self.current);
        self.unsynced.clear();
    }

    fn write(&mut self, bytes: &[u8], offset: usize) {
        let current = Arc::make_mut(&mut self.current);
        if current.len() < offset + bytes.len() {
            current.resize(offset + bytes.len(), 0);
        }
        current[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.unsynced.push((offset, bytes.into()));
    }

    fn cut(self, rng: &mut PowerCutRng) -> Self {
        if self.unsynced.is_empty() {
            return Self::of(self.durable);
        }
        // One cut in eight keeps everything and one drops everything, because the simple cases often reveal bugs.
        let mood = rng.below(8);
        let mut bytes = self.durable.to_vec();
        for (offset, written) in &self.unsynced {
            let mut at = 0;
            while at < written.len() {
                // The end of this sector or of the write, whichever comes first.
                let end = (SECTOR - (offset + at) % SECTOR + at).min(written.len());
                if mood > 1 && rng.below(GARBAGE) == 0 {
                    corrupt_sector(&mut bytes, offset + at, rng);
                    at = end;
                    continue;
                }
                // In mixed cuts, two of five sectors are lost, one is torn and two are kept.
                let kept = match (mood, rng.below(5)) {
                    (0, _) => end - at,
                    (1, _) | (_, 0 | 1) => 0,
                    (_, 2) => rng.below(end - at + 1),
                    _ => end - at,
                };
                if kept > 0 {
                    let from = offset + at;
                    if bytes.len() < from + kept {
                        bytes.resize(from + kept, 0);
                    }
                    bytes[from..from + kept].copy_from_slice(&written[at..at + kept]);
                }
                at = end;
            }
        }
        // The file may have been extended without its new bytes being written.
        if mood > 1 && rng.below(4) == 0 && self.current.len() > bytes.len() {
            let length = bytes.len() + rng.below(self.current.len() - bytes.len() + 1);
            bytes.resize(length, 0);
        }
        Self::of(Arc::new(bytes))
    }
}

/// Fills the sector of a byte with garbage, including bytes that were durable.
fn corrupt_sector(bytes: &mut Vec<u8>, at: usize, rng: &mut PowerCutRng) {
    let start = at / SECTOR * SECTOR;
    if bytes.len() < start + SECTOR {
        bytes.resize(start + SECTOR, 0);
    }
    for word in bytes[start..start + SECTOR].chunks_exact_mut(8) {
        word.copy_from_slice(&rng.next_u64().to_le_bytes());
    }
}

impl SimulatedFolder {
    fn apply(names: &mut BTreeMap<String, usize>, naming: &NameChange) {
        match naming {
            NameChange::Set(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            NameChange::Unset(name, inode) => {
                // Because a cut keeps some changes and drops others, the name may refer to another file by now.
                if names.get(name) == Some(inode) {
                    names.remove(name);
                }
            }
            NameChange::Move(from, to, inode) => {
                if names.get(from) == Some(inode) {
                    names.remove(from);
                }
                names.insert(to.clone(), *inode);
            }
        }
    }

    fn name(&mut self, naming: NameChange) {
        Self::apply(&mut self.current, &naming);
        self.unsynced.push(naming);
    }

    fn cut(self, rng: &mut PowerCutRng) -> Self {
        let mut names = self.durable;
        let mood = rng.below(6);
        for naming in &self.unsynced {
            if mood == 0 || (mood > 1 && rng.below(2) == 0) {
                Self::apply(&mut names, naming);
            }
        }
        Self {
            named: true,
            durable: names.clone(),
            current: names,
            unsynced: Vec::new(),
        }
    }
}

impl MediumState {
    fn cut(self, seed: u64) -> SimulatedFs {
        let mut rng = PowerCutRng(seed);
        let inodes = self.inodes.into_iter().map(|inode| inode.cut(&mut rng));
        let inodes = inodes.collect();
        // A folder whose name was never synced is lost with everything in it.
        let lost: Vec<PathBuf> = (self.folders.iter())
            .filter(|(_, folder)| !folder.named)
            .map(|(path, _)| path.clone())
            .collect();
        let is_lost = |path: &Path| lost.iter().any(|folder| path.starts_with(folder));
        let folders = self.folders.into_iter();
        let mut folders: BTreeMap<_, _> = folders
            .filter(|(path, _)| !is_lost(path))
            .map(|(path, folder)| (path, folder.cut(&mut rng)))
            .collect();
        for (path, folder) in self.removed {
            let is_back = rng.below(2) == 0;
            let folder = folder.cut(&mut rng);
            if is_back {
                folders.entry(path).or_insert(folder);
            }
        }
        SimulatedFs::of(MediumState {
            inodes,
            folders,
            removed: BTreeMap::new(),
        })
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        split(path)
            .and_then(|(folder, name)| self.folders.get(folder)?.current.get(name).copied())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn folder<'a>(&mut self, path: &'a Path) -> io::Result<(&mut SimulatedFolder, &'a str)> {
        let (folder, name) = split(path).ok_or(io::ErrorKind::InvalidInput)?;
        let folder = self
            .folders
            .get_mut(folder)
            .ok_or(io::ErrorKind::NotFound)?;
        Ok((folder, name))
    }
}

impl SimulatedMachine {
    /// Counts a call. Returns the fault that the call should simulate itself, if any.
    fn call(&mut self, call: FsCall) -> io::Result<Option<InjectedFault>> {
        if self.cut {
            return Err(io::Error::other("the power is cut"));
        }
        if !matches!(call, FsCall::Read | FsCall::Open)
            && let Some(recorded) = &mut self.recorded
        {
            recorded.push(CrashPoint {
                mark: self.mark,
                state: self.state.clone(),
            });
        }
        let number = self.calls;
        self.calls += 1;
        if let Some((at, fault)) = self.fault
            && at == number
        {
            let applies = match fault {
                InjectedFault::Io | InjectedFault::PowerCut => true,
                InjectedFault::ReadOnly => !matches!(call, FsCall::Read | FsCall::Open),
                InjectedFault::Full => {
                    !matches!(call, FsCall::Read | FsCall::Open | FsCall::Remove)
                }
                InjectedFault::OutOfFiles => matches!(call, FsCall::Open | FsCall::Create),
                InjectedFault::ShortWrite => call == FsCall::Write,
                InjectedFault::FailedSync => call == FsCall::Sync,
            };
            self.failed |= applies;
            match fault {
                _ if !applies => {}
                InjectedFault::Io => return Err(fault.error()),
                InjectedFault::Full => self.full = true,
                InjectedFault::OutOfFiles => self.out_of_files = true,
                InjectedFault::ReadOnly => self.read_only = true,
                InjectedFault::PowerCut => {
                    self.cut = true;
                    return Err(io::Error::other("the power is cut"));
                }
                InjectedFault::ShortWrite | InjectedFault::FailedSync => return Ok(Some(fault)),
            }
        }
        if self.out_of_files && matches!(call, FsCall::Open | FsCall::Create) {
            return Err(InjectedFault::OutOfFiles.error());
        }
        if self.read_only && !matches!(call, FsCall::Read | FsCall::Open) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        Ok(None)
    }

    fn room(&self) -> io::Result<()> {
        if self.full {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }
}

impl FileSystem for SimulatedFs {
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        let mut machine = self.machine_at(path);
        machine.call(FsCall::Create)?;
        machine.room()?;
        let kind = path.extension().and_then(|kind| kind.to_str());
        if let Some((refused, fault)) = machine.refused_kind
            && kind == Some(refused)
        {
            return Err(fault.error());
        }
        let inode = machine.state.inodes.len();
        let (folder, name) = machine.state.folder(path)?;
        folder.name(NameChange::Set(name.to_owned(), inode));
        machine.state.inodes.push(SimulatedInode::default());
        let fs = self.clone();
        Ok(Box::new(SimulatedFile { fs, inode }))
    }

    fn open(&self, path: &Path, _write: bool) -> io::Result<Box<dyn FileHandle>> {
        let mut machine = self.machine_at(path);
        machine.call(FsCall::Open)?;
        let inode = machine.state.find(path)?;
        let fs = self.clone();
        Ok(Box::new(SimulatedFile { fs, inode }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut machine = self.machine_at(to);
        machine.call(FsCall::Name)?;
        machine.room()?;
        let inode = machine.state.find(from)?;
        let (from_folder, to_folder) = (from.parent(), to.parent());
        let (folder, name) = machine.state.folder(from)?;
        let name = name.to_owned();
        if from_folder == to_folder {
            let to = split(to).ok_or(io::ErrorKind::InvalidInput)?.1.to_owned();
            folder.name(NameChange::Move(name, to, inode));
        } else {
            folder.name(NameChange::Unset(name, inode));
            let (folder, name) = machine.state.folder(to)?;
            folder.name(NameChange::Set(name.to_owned(), inode));
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine_at(path);
        machine.call(FsCall::Remove)?;
        let inode = machine.state.find(path)?;
        let (folder, name) = machine.state.folder(path)?;
        folder.name(NameChange::Unset(name.to_owned(), inode));
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut machine = self.machine_at(to);
        machine.call(FsCall::Name)?;
        machine.room()?;
        if machine.has_no_links {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        let inode = machine.state.find(from)?;
        let (folder, name) = machine.state.folder(to)?;
        folder.name(NameChange::Set(name.to_owned(), inode));
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine_at(path);
        machine.call(FsCall::Name)?;
        machine.state.folders.entry(path.to_owned()).or_default();
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine_at(path);
        machine.call(FsCall::Remove)?;
        let removed = machine.state.folders.remove(path);
        // A folder whose name was never durable does not come back.
        if let Some(folder) = removed.filter(|folder| folder.named) {
            machine.state.removed.insert(path.to_owned(), folder);
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine_at(path);
        let fault = machine.call(FsCall::Sync)?;
        if machine.lie == Some(IgnoredSync::SyncDir) {
            return Ok(());
        }
        // Making changed names durable may need space.
        let full = machine.full;
        let folder = machine.state.folders.get_mut(path);
        let folder = folder.ok_or(io::ErrorKind::NotFound)?;
        let full = full && !folder.unsynced.is_empty();
        if full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if fault.is_some() {
            return Err(io::Error::other("injected failure of a sync"));
        }
        folder.durable = folder.current.clone();
        folder.unsynced.clear();
        let folders = machine.state.folders.iter_mut();
        let below = folders.filter(|(at, _)| at.parent() == Some(path));
        below.for_each(|(_, folder)| folder.named = true);
        let removed = &mut machine.state.removed;
        removed.retain(|at, _| at.parent() != Some(path));
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut machine = self.machine_at(path);
        machine.call(FsCall::Read)?;
        let state = &machine.state;
        let folder = state.folders.get(path).ok_or(io::ErrorKind::NotFound)?;
        let below = state.folders.keys().filter(|at| at.parent() == Some(path));
        let folders = below.filter_map(|at| Some(at.file_name()?.to_str()?.to_owned()));
        let mut names: Vec<String> = folder.current.keys().cloned().chain(folders).collect();
        names.sort();
        Ok(names)
    }

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn FileLock>, LockError> {
        let mut machine = self.machine_at(path);
        machine.call(FsCall::Read).map_err(LockError::Io)?;
        if let Some((_, holder)) = machine.locks.iter().find(|(held, _)| held == path) {
            let holder = holder.clone();
            return Err(LockError::Held { holder });
        }
        machine.locks.push((path.to_owned(), holder.to_owned()));
        let (fs, path) = (self.clone(), path.to_owned());
        Ok(Box::new(SimulatedLock { fs, path }))
    }

    fn lock_to_read(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError> {
        self.lock(path, "a reader")
    }
}

impl InjectedFault {
    /// Returns the error of a call that fails with this fault.
    fn error(self) -> io::Error {
        match self {
            Self::OutOfFiles => io::Error::from_raw_os_error(24),
            Self::Full => io::ErrorKind::StorageFull.into(),
            _ => io::Error::other("injected input or output error"),
        }
    }
}

#[derive(Debug)]
struct SimulatedFile {
    fs: SimulatedFs,
    inode: usize,
}

impl FileHandle for SimulatedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut machine = self.fs.machine();
        machine.call(FsCall::Read)?;
        let current = &machine.state.inodes[self.inode].current;
        let from = (offset as usize).min(current.len());
        let count = bytes.len().min(current.len() - from);
        bytes[..count].copy_from_slice(&current[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut machine = self.fs.machine();
        let fault = machine.call(FsCall::Write)?;
        let grows = offset as usize + bytes.len() > machine.state.inodes[self.inode].current.len();
        if grows {
            machine.room()?;
        }
        let inode = &mut machine.state.inodes[self.inode];
        if fault.is_some() {
            inode.write(&bytes[..bytes.len() / 2], offset as usize);
            return Err(io::Error::other("injected short write"));
        }
        inode.write(bytes, offset as usize);
        Ok(bytes.len())
    }

    fn sync(&self) -> io::Result<()> {
        let mut machine = self.fs.machine();
        let fault = machine.call(FsCall::Sync)?;
        if machine.lie == Some(IgnoredSync::Sync) {
            return Ok(());
        }
        let inode = &mut machine.state.inodes[self.inode];
        if fault.is_some() {
            // The system drops the unsynced changes as if it had written them.
            inode.unsynced.clear();
            return Err(io::Error::other("injected failure of a sync"));
        }
        // Bytes that an earlier sync lost stay lost.
        let mut durable = std::mem::take(&mut inode.durable).to_vec();
        for (offset, bytes) in inode.unsynced.drain(..) {
            if durable.len() < offset + bytes.len() {
                durable.resize(offset + bytes.len(), 0);
            }
            durable[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
        inode.durable = Arc::new(durable);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        let mut machine = self.fs.machine();
        machine.call(FsCall::Read)?;
        Ok(machine.state.inodes[self.inode].current.len() as u64)
    }
}

#[derive(Debug)]
struct SimulatedLock {
    fs: SimulatedFs,
    path: PathBuf,
}

impl FileLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut machine = self.fs.machine();
        machine.locks.retain(|(held, _)| *held != self.path);
    }
}
