//! Memory for the tables of a job: the heap, and mapped unnamed files once the tables' share of the heap is full.
//!
//! Tables are arrays that are read and written at random. Those that exceed the memory of a job are in mapped temporary files, so that
//! the same code works on them, and the system reads and writes the pages in use. A thread releases mapped pages when
//! more of them are resident than the job allows: they stay in the system's cache while it has room, and no longer count for the process.
//!
//! Columns need no reference to their job: shares and mappings belong to the process. If several jobs run at the same time, their
//! shares add up, and the files are in the folder of any of them that has room.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use allocator_api2::alloc::{AllocError, Allocator, Global, Layout};
use lookalike_corpus::spawn_detached;
use memmap2::{Advice, MmapMut, MmapOptions, UncheckedAdvice};

use crate::locks::lock;

// A mapped array has a file of its own, which smaller arrays are not worth.
/// Minimum number of bytes of an array that counts against the share and may be in a file.
const LARGE: usize = 1 << 17;

/// Maximum alignment of a mapped array: the smallest page size of any system, to which mappings are aligned.
const MAX_ALIGNMENT: usize = 4096;

/// Time between two checks of resident memory. A thread that only touches pages adds about 8 MB in this time.
const TRIM_INTERVAL: Duration = Duration::from_micros(500);

/// Number of random accesses between two checks of resident memory. On Linux each may map sixteen pages.
const ACCESSES_PER_TRIM: u32 = 16;

/// The table memory of this process.
static TABLES: TableMemory = TableMemory::new();

/// State of the table memory: counts, shares of jobs, and mappings.
#[derive(Debug)]
struct TableMemory {
    /// Bytes of large arrays on the heap.
    heap: AtomicU64,
    /// Maximum of `heap`: the sum of the shares, or `u64::MAX` if no job runs.
    heap_share: AtomicU64,
    // Never reset: it only lets `check` skip the lock while nothing has failed.
    /// True once a file could not be created.
    has_failed: AtomicBool,
    /// True if there are mappings; readable without the lock.
    is_mapped: AtomicBool,
    state: Mutex<TableState>,
}

#[derive(Debug)]
struct TableState {
    /// Shares of the jobs that are running.
    shares: Vec<OpenShare>,
    next_share: u64,
    /// Mappings by their start addresses.
    regions: BTreeMap<usize, MmapMut>,
    /// Number of bytes of all mappings.
    mapped: u64,
    /// Bytes of files that were resident before the first mapping; `None` if no thread checks resident memory.
    before: Option<u64>,
}

#[derive(Debug)]
struct OpenShare {
    number: u64,
    sizes: TableShareSizes,
    folder: PathBuf,
    /// Maximum number of bytes mapped at a time.
    most_mapped: u64,
    failure: Option<io::Error>,
}

/// Bytes of a job's memory that its tables may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableShareSizes {
    /// Bytes on the heap.
    pub(crate) heap: u64,
    /// Resident bytes of mapped tables.
    pub(crate) resident: u64,
}

impl TableShareSizes {
    /// Number of parts that the memory of a job is divided into.
    pub(crate) const PARTS: u64 = 8;
    /// Number of parts for tables on the heap.
    const HEAP: u64 = 4;
    /// Number of parts for the resident pages of mapped tables.
    const RESIDENT: u64 = 1;
    /// Number of parts that are left for everything else.
    pub(crate) const LEFT: u64 = Self::PARTS - Self::HEAP - Self::RESIDENT;

    /// Returns the share of tables in a memory of this size: a half on the heap, and an eighth for resident pages of mapped tables.
    pub(crate) fn of(memory: u64) -> Self {
        Self {
            heap: memory / Self::PARTS * Self::HEAP,
            resident: memory / Self::PARTS * Self::RESIDENT,
        }
    }

    /// Returns the smallest memory that leaves `bytes` bytes beside the full share of tables.
    pub(crate) fn min_memory_beside(bytes: u64) -> u64 {
        // Parts are rounded down.
        (Self::PARTS * bytes).div_ceil(Self::LEFT) + Self::PARTS
    }

    /// Returns the total of both.
    pub(crate) fn all(self) -> u64 {
        self.heap + self.resident
    }
}

/// Keeps a job's share open until it is dropped.
#[derive(Debug)]
pub(crate) struct TableShare {
    memory: &'static TableMemory,
    number: u64,
}

impl TableShare {
    /// Limits large arrays of tables to these sizes; further arrays go to files in `folder`.
    pub(crate) fn open(sizes: TableShareSizes, folder: &Path) -> Self {
        TABLES.open_share(sizes, folder)
    }
}

impl Drop for TableShare {
    fn drop(&mut self) {
        let mut state = lock(&self.memory.state);
        state.shares.retain(|share| share.number != self.number);
        self.memory.set_heap_share(&state);
    }
}

/// Checks for failures of files in `folder`. The arrays for which they were meant are in memory, above its limit.
///
/// # Errors
/// Returns the error of the file system.
pub(crate) fn check(folder: &Path) -> io::Result<()> {
    TABLES.check(folder)
}

/// Returns the maximum number of bytes in files of `folder` at a time, for jobs that are running.
pub(crate) fn max_mapped(folder: &Path) -> u64 {
    TABLES.max_mapped(folder)
}

/// Returns a copy of an error, since [`io::Error`] is not `Clone`.
fn clone_error(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Returns true if arrays are in files: then memory is short, and another copy of an array would not fit.
pub(crate) fn are_mapped() -> bool {
    lock(&TABLES.state).mapped > 0
}

impl TableMemory {
    const fn new() -> Self {
        Self {
            heap: AtomicU64::new(0),
            // Without an open share all tables stay on the heap.
            heap_share: AtomicU64::new(u64::MAX),
            has_failed: AtomicBool::new(false),
            is_mapped: AtomicBool::new(false),
            state: Mutex::new(TableState {
                shares: Vec::new(),
                next_share: 0,
                regions: BTreeMap::new(),
                mapped: 0,
                before: None,
            }),
        }
    }

    fn open_share(&'static self, sizes: TableShareSizes, folder: &Path) -> TableShare {
        let mut state = lock(&self.state);
        let number = state.next_share;
        state.next_share += 1;
        state.shares.push(OpenShare {
            number,
            sizes,
            folder: folder.to_owned(),
            most_mapped: 0,
            failure: None,
        });
        self.set_heap_share(&state);
        TableShare {
            memory: self,
            number,
        }
    }

    fn check(&self, folder: &Path) -> io::Result<()> {
        if !self.has_failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let state = lock(&self.state);
        let mut own = state.shares.iter().filter(|share| share.folder == folder);
        let failure = own.find_map(|share| share.failure.as_ref());
        failure.map_or(Ok(()), |error| Err(clone_error(error)))
    }

    fn max_mapped(&self, folder: &Path) -> u64 {
        let state = lock(&self.state);
        let own = state.shares.iter().filter(|share| share.folder == folder);
        own.map(|share| share.most_mapped).max().unwrap_or(0)
    }

    fn set_heap_share(&self, state: &TableState) {
        let heap = match state.shares.is_empty() {
            true => u64::MAX,
            false => state.shares.iter().map(|share| share.sizes.heap).sum(),
        };
        self.heap_share.store(heap, Ordering::Relaxed);
    }

    /// Counts bytes on the heap if they fit in the share, and returns whether they do.
    fn take(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        // Added first and taken back if it does not fit, so two threads cannot both get the last bytes of the share.
        // In between another thread may see too large a sum; its array then goes to a file although it would fit, which is only slower.
        let before = self.heap.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.heap_share.load(Ordering::Relaxed);
        if !fits {
            self.release_bytes(bytes as usize);
        }
        fits
    }

    fn release_bytes(&self, bytes: usize) {
        self.heap.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Creates a zeroed array in a file. Returns `None` if its alignment is too large or no file can be created.
    fn map(&'static self, layout: Layout) -> Option<NonNull<[u8]>> {
        if layout.align() > MAX_ALIGNMENT {
            return None;
        }
        let mut state = lock(&self.state);
        // Space is reserved under the lock: the file system takes a moment, but large arrays are few.
        let Some((share, mut region)) = map_in_any_share(&mut state.shares, layout.size()) else {
            self.has_failed.store(true, Ordering::Relaxed);
            return None;
        };
        let bytes = NonNull::from(&mut region[..]);
        state.mapped += region.len() as u64;
        state.regions.insert(bytes.addr().get(), region);
        let mapped = state.mapped;
        let share = &mut state.shares[share];
        share.most_mapped = share.most_mapped.max(mapped);
        // Also empty if the thread could not be started for an earlier mapping: then each further one tries again.
        if state.before.is_none() {
            state.before = trim_in_background(self).ok();
            self.is_mapped.store(true, Ordering::Relaxed);
        }
        Some(bytes)
    }

    fn allocate(
        &'static self,
        layout: Layout,
        on_heap: impl FnOnce() -> Result<NonNull<[u8]>, AllocError>,
    ) -> Result<NonNull<[u8]>, AllocError> {
        if !self.take(layout.size()) {
            if let Some(mapped) = self.map(layout) {
                return Ok(mapped);
            }
            // Above the share, until the job checks whether its files failed.
            self.heap.fetch_add(layout.size() as u64, Ordering::Relaxed);
        }
        on_heap().inspect_err(|_| self.release_bytes(layout.size()))
    }

    /// Unmaps an array and returns true, or returns false if it is not in a file.
    fn unmap(&self, start: NonNull<u8>) -> bool {
        let mut state = lock(&self.state);
        let region = state.regions.remove(&start.addr().get());
        // By the length of the region, since `shrink` leaves the file longer than the array.
        state.mapped -= region.as_ref().map_or(0, |region| region.len() as u64);
        // Without the lock, because the system takes some time to release the pages.
        drop(state);
        region.is_some()
    }

    fn is_mapped(&self, start: NonNull<u8>) -> bool {
        let state = lock(&self.state);
        state.regions.contains_key(&start.addr().get())
    }
}

/// Maps a file in the folder of the newest job that has room for it, and returns that job's index. It is unknown which job the array belongs
/// to, so if no folder has room, each job gets the error of its own folder.
fn map_in_any_share(shares: &mut [OpenShare], bytes: usize) -> Option<(usize, MmapMut)> {
    let mut failures = Vec::new();
    for (place, share) in shares.iter().enumerate().rev() {
        match mapped_file(&share.folder, bytes) {
            Ok(region) => return Some((place, region)),
            Err(error) => failures.push(error),
        }
    }
    // In the same order as above, so that each error meets its own folder.
    for (share, error) in shares.iter_mut().rev().zip(failures) {
        share.failure.get_or_insert(error);
    }
    None
}

/// Creates and maps an unnamed file.
#[expect(unsafe_code, reason = "mapping a file")]
fn mapped_file(folder: &Path, bytes: usize) -> io::Result<MmapMut> {
    let file = tempfile::tempfile_in(folder)?;
    reserve(&file, bytes as u64)?;
    // SAFETY: the file has no name and this process has no other handle of it, so nothing else changes or truncates it.
    let mapped = unsafe { MmapOptions::new().len(bytes).map_mut(&file) }?;
    // Otherwise the system caches the file in folios of up to 2 MiB, each of which becomes resident as a whole when one of its bytes is used: a
    // gigabyte within a millisecond, too fast to be released in time. This is a hint: without it more is resident for moments.
    let _ = mapped.advise(Advice::Random);
    Ok(mapped)
}

/// Sets the length of a file and reserves space on the disk if the system can: a write to a mapping that finds the disk full would kill
/// the process.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
        // Not every file system can reserve space.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        reserved => return reserved.map_err(io::Error::from),
    }
    file.set_len(bytes)
}

/// Releases mapped pages if too many are resident. The background thread alone is too late when all processors use tables, because each access
/// makes further pages resident. Takes microseconds if something is mapped, next to nothing otherwise.
pub(crate) fn trim() {
    if TABLES.is_mapped.load(Ordering::Relaxed)
        // The thread that holds the lock is trimming or mapping.
        && let Ok(state) = TABLES.state.try_lock()
    {
        state.trim();
    }
}

/// Calls [`trim`] on every [`ACCESSES_PER_TRIM`]th call, for loops with random access.
pub(crate) fn trim_periodically() {
    thread_local! {
        static ACCESSES: Cell<u32> = const { Cell::new(0) };
    }
    let looks = ACCESSES.get().wrapping_add(1);
    ACCESSES.set(looks);
    if looks.is_multiple_of(ACCESSES_PER_TRIM) {
        trim();
    }
}

/// Starts a thread that releases mapped pages when too many are resident, and ends when nothing is mapped any more. Returns the number of
/// bytes of files that are resident now.
fn trim_in_background(tables: &'static TableMemory) -> io::Result<u64> {
    let Some(before) = resident_file_bytes() else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let thread = std::thread::Builder::new().name("tables".to_owned());
    spawn_detached(thread, move || {
        loop {
            std::thread::sleep(TRIM_INTERVAL);
            let mut state = lock(&tables.state);
            if state.regions.is_empty() {
                // This happens under the lock: a mapping made later finds `before` empty and starts a new thread.
                state.before = None;
                tables.is_mapped.store(false, Ordering::Relaxed);
                return;
            }
            state.trim();
        }
    })?;
    Ok(before)
}

impl TableState {
    /// Releases all pages if more are resident than before the first mapping plus the shares together.
    fn trim(&self) {
        let Some(before) = self.before else {
            return;
        };
        let shares = self.shares.iter().map(|share| share.sizes.resident);
        // Code and libraries are mapped files as well; what was resident before the first table is not counted.
        let most = before + shares.sum::<u64>();
        // Without a running job there is no limit to keep.
        let is_limited = !self.shares.is_empty();
        if is_limited && resident_file_bytes().is_some_and(|resident| resident > most) {
            // Nothing tells which pages will be used next. Those that are return from the system's cache without a read while it has room.
            self.regions.values().for_each(release_pages);
        }
    }
}

/// Removes the pages of a mapping from the process; they return when they are used.
#[expect(unsafe_code, reason = "advice that needs a promise")]
fn release_pages(region: &MmapMut) {
    // SAFETY: the mapping shares its pages with a file, which keeps what was written, so readers see the same bytes. An error means
    // that the pages stay.
    let _ = unsafe { region.unchecked_advise(UncheckedAdvice::DontNeed) };
}

/// Returns the number of bytes of files that are resident in this process, or `None` if the system does not tell.
fn resident_file_bytes() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let counts = std::fs::read_to_string("/proc/self/statm").ok()?;
        // The third number counts resident pages of files and shared memory; the mapped tables are among the former.
        let pages: u64 = counts.split(' ').nth(2)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Allocator for arrays of tables; see the module's header. Small arrays are always on the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableAllocator(&'static TableMemory);

impl Default for TableAllocator {
    fn default() -> Self {
        Self::new()
    }
}

impl TableAllocator {
    /// Creates an allocator that uses the table memory of this process.
    pub(crate) const fn new() -> Self {
        Self(&TABLES)
    }

    /// Allocates, copies and frees, for arrays that move from one kind of memory to the other.
    ///
    /// # Safety
    /// The conditions of [`Allocator::grow`] and [`Allocator::shrink`].
    #[expect(unsafe_code, reason = "an allocator")]
    unsafe fn move_to(
        self,
        start: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let moved = self.allocate(new)?;
        let bytes = old.size().min(new.size());
        // SAFETY: both blocks have at least `bytes` bytes, and a new block overlaps no other. The old one came from this allocator with this
        // layout.
        unsafe {
            std::ptr::copy_nonoverlapping(start.as_ptr(), moved.cast::<u8>().as_ptr(), bytes);
            self.deallocate(start, old);
        }
        Ok(moved)
    }
}

// SAFETY: blocks come from the global allocator, or are mappings that last until they are deallocated; both stay in place however
// often this value, a reference, is copied or moved. Blocks are distinguished by their layouts and addresses.
#[expect(unsafe_code, reason = "an allocator")]
unsafe impl Allocator for TableAllocator {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        match layout.size() < LARGE {
            true => Global.allocate(layout),
            false => self.0.allocate(layout, || Global.allocate(layout)),
        }
    }

    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        match layout.size() < LARGE {
            true => Global.allocate_zeroed(layout),
            // Files begin with zeros.
            false => self.0.allocate(layout, || Global.allocate_zeroed(layout)),
        }
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        if layout.size() >= LARGE {
            // Only the address tells whether a large block is mapped: arrays do not know it.
            if self.0.unmap(start) {
                return;
            }
            self.0.release_bytes(layout.size());
        }
        // SAFETY: the block is on the heap and has this layout.
        unsafe { Global.deallocate(start, layout) }
    }

    unsafe fn grow(
        &self,
        start: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        if new.size() < LARGE {
            // SAFETY: a small block is on the heap; the rest is the caller's promise.
            return unsafe { Global.grow(start, old, new) };
        }
        let counted = if old.size() < LARGE { 0 } else { old.size() };
        // A small array is neither counted nor mapped, so growing beyond `LARGE` counts all of its bytes.
        let is_on_heap = counted == 0 || !self.0.is_mapped(start);
        if is_on_heap && self.0.take(new.size() - counted) {
            // The system may move the pages instead of copying their bytes. SAFETY: the block is on the heap; the rest is the caller's promise.
            let grown = unsafe { Global.grow(start, old, new) };
            return grown.inspect_err(|_| self.0.release_bytes(new.size() - counted));
        }
        // SAFETY: the caller's promise.
        unsafe { self.move_to(start, old, new) }
    }

    unsafe fn shrink(
        &self,
        start: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        if old.size() < LARGE {
            // SAFETY: a small block is on the heap; the rest is the caller's promise.
            return unsafe { Global.shrink(start, old, new) };
        }
        if new.size() < LARGE {
            // SAFETY: the caller's promise.
            return unsafe { self.move_to(start, old, new) };
        }
        if self.0.is_mapped(start) {
            // The file keeps its length.
            return Ok(NonNull::slice_from_raw_parts(start, new.size()));
        }
        // SAFETY: the block is on the heap; the rest is the caller's promise.
        let shrunk = unsafe { Global.shrink(start, old, new) }?;
        self.0.release_bytes(old.size() - new.size());
        Ok(shrunk)
    }
}

#[cfg(test)]
mod tests {
    use allocator_api2::vec::Vec as AllocatedVec;
    use proptest::prelude::*;

    use super::*;

    fn memory() -> &'static TableMemory {
        Box::leak(Box::new(TableMemory::new()))
    }

    fn sizes(heap: usize, resident: usize) -> TableShareSizes {
        TableShareSizes {
            heap: heap as u64,
            resident: resident as u64,
        }
    }

    fn numbers(memory: &'static TableMemory, count: usize) -> AllocatedVec<u32, TableAllocator> {
        let mut numbers = AllocatedVec::new_in(TableAllocator(memory));
        numbers.extend(0..count as u32);
        numbers
    }

    fn are_whole(numbers: &[u32]) -> bool {
        (0..).zip(numbers).all(|(at, &number)| at == number)
    }

    #[derive(Clone, Debug)]
    enum Change {
        Push(usize),
        Truncate(usize),
        Shrink,
        New(usize),
        Drop(usize),
    }

    fn changes() -> impl Strategy<Value = Vec<(usize, Change)>> {
        // Around the size, of about a hundred kilobytes, from which on arrays are large.
        let length = 0..3 * LARGE / 4;
        let change = prop_oneof![
            length.clone().prop_map(Change::Push),
            length.clone().prop_map(Change::Truncate),
            Just(Change::Shrink),
            length.prop_map(Change::New),
            (0..4_usize).prop_map(Change::Drop),
        ];
        prop::collection::vec((0..4_usize, change), 0..24)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn arrays_keep_their_values_wherever_they_lie(changes in changes(), heap in 0..8 * LARGE) {
            let folder = tempfile::tempdir().unwrap();
            let memory = memory();
            let share = memory.open_share(sizes(heap, LARGE), folder.path());
            let mut arrays: Vec<_> = (0..4).map(|_| numbers(memory, 0)).collect();
            for (at, change) in changes {
                let array = &mut arrays[at];
                match change {
                    Change::Push(more) => {
                        let end = (array.len() + more).min(2 * LARGE) as u32;
                        array.extend(array.len() as u32..end);
                    }
                    Change::Truncate(length) => array.truncate(length),
                    Change::Shrink => array.shrink_to_fit(),
                    Change::New(length) => *array = numbers(memory, length),
                    Change::Drop(other) => arrays[other] = numbers(memory, 0),
                }
                prop_assert!(arrays.iter().all(|array| are_whole(array)));
                prop_assert!(memory.heap.load(Ordering::Relaxed) <= heap as u64);
            }
            drop(arrays);
            prop_assert_eq!(memory.heap.load(Ordering::Relaxed), 0);
            prop_assert_eq!(lock(&memory.state).mapped, 0);
            drop(share);
            prop_assert_eq!(memory.heap_share.load(Ordering::Relaxed), u64::MAX);
        }
    }

    #[test]
    fn cleared_arrays_are_cleared_wherever_they_lie() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory();
        let _share = memory.open_share(sizes(2 * LARGE, 0), folder.path());
        let allocator = TableAllocator(memory);
        let layout = Layout::array::<u8>(LARGE).unwrap();
        for _ in 0..4 {
            let mut bytes = allocator.allocate_zeroed(layout).unwrap();
            // SAFETY: nothing else has the block, which is filled with zeros.
            #[expect(unsafe_code, reason = "a test of an allocator")]
            let bytes = unsafe { bytes.as_mut() };
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.fill(1);
        }
        assert_eq!(memory.heap.load(Ordering::Relaxed), 2 * LARGE as u64);
        assert_eq!(memory.max_mapped(folder.path()), 2 * LARGE as u64);
    }

    #[test]
    fn a_folder_without_room_is_told_and_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let memory = memory();
        let _share = memory.open_share(sizes(0, 0), &gone);
        let array = numbers(memory, LARGE);
        assert!(are_whole(&array));
        for _ in 0..2 {
            let error = memory.check(&gone).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
        assert!(memory.check(folder.path()).is_ok());
        drop(array);
        assert_eq!(memory.heap.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_job_failed_for_the_tables_of_another_that_had_no_room_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let memory = memory();
        let first = memory.open_share(sizes(0, 0), folder.path());
        let _second = memory.open_share(sizes(0, 0), &gone);
        let array = numbers(memory, LARGE);
        assert!(are_whole(&array) && lock(&memory.state).mapped > 0);
        assert!(memory.check(folder.path()).is_ok() && memory.check(&gone).is_ok());
        drop(first);
        assert!(are_whole(&numbers(memory, LARGE)));
        assert!(memory.check(&gone).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn pages_of_files_do_not_stay_resident() {
        const COUNT: usize = 128 * LARGE;
        let folder = tempfile::tempdir().unwrap();
        let memory = memory();
        let before = resident_file_bytes().unwrap();
        let share = memory.open_share(sizes(0, LARGE), folder.path());
        let array = numbers(memory, COUNT);
        let bytes = (4 * COUNT) as u64;
        // Other tests map files meanwhile, and more of this program's own file comes into memory, but not this much.
        let started = std::time::Instant::now();
        while resident_file_bytes().unwrap() > before + bytes / 2 {
            assert!(started.elapsed() < Duration::from_secs(60));
            std::thread::sleep(TRIM_INTERVAL);
        }
        assert!(are_whole(&array));
        drop(share);
        assert!(are_whole(&array));
    }
}
