//! Builds an index file from collections of fingerprints in bounded memory, and resumes after an interruption.
//!
//! The build uses the folder `OUTPUT.building`. The inputs are copied to plain files (`gathered`), and `job.json` records that this is done. Then the
//! tables are built one after another from that copy and appended to `part`; after each table `progress` records how much of the file is complete.
//! Finally `part` is renamed. The result does not depend on the order of the inputs, the memory limit or interruptions. Indexes of longer sketches
//! are built by `sketch_build`.

mod build_folder;
mod gathered;
mod sketch_build;
#[cfg(test)]
mod sketch_tests;

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use lookalike::scheme::SchemeId;
use lookalike_corpus::open_regular;
use lookalike_hamming::{
    BuildLimits, CostConstants, CostedDesign, Design, FamilyKind, IndexFile, IndexFileWriter,
    Layout, PlanLimits, Word, balanced_design, index_width, plan,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use super::mapped::{map, read};
pub use sketch_build::SketchIndexSummary;

use super::mapped::{begins_with, damaged, map_file, unreadable};
use crate::error::BatchError;
use crate::fingerprints::DEFAULT_DISTANCE;
use crate::fingerprints::files::{CodesSummary, FingerprintSource, check_losses};
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::fingerprints::sketches::{MinEqual, stored_bytes};
use crate::fingerprints::with_word::with_word;
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage, NoProgress, check_cancelled};
use crate::settings::JobLimits;
use crate::unfinished::{JobFolder, save};
use build_folder::{PART, PROGRESS, identities};
use gathered::{GatheredFile, GatheredInput, LoadedIds};
use sketch_build::GatheredSketches;

lookalike::job! {
    /// Job that builds an index of fingerprints, or of sketches of several places.
    #[derive(Clone, Debug)]
    pub struct IndexBuild<'a> {
        /// Creates a build of the index file `output` from collections of fingerprints, in any of the formats of [`crate::fingerprints::files`], and from
        /// other indexes. With [`IndexBuild::equal`], all of them hold sketches of one shape.
        new(inputs: &'a [FingerprintSource], output: &'a Path);
        /// Sets the largest distance between a query and what it finds, in bits. Default: 3.
        distance: u32 = DEFAULT_DISTANCE,
        /// Sets the maximum number of tables. By default as many as tolerate one error in each key.
        tables: Option<u32>,
        /// Sets the design to build. By default the fastest is chosen.
        design: Option<Design>,
        /// Sets how tables are stored.
        layout: Layout = Layout::Packed,
        /// Declares that the inputs hold sketches of several places, and sets how many of these a query and what it finds have in common. The distance,
        /// the tables, the design and the layout are then ignored.
        equal: Option<MinEqual>,
        /// Sets whether ids are stored if the inputs have them. Default: true.
        with_ids: bool = true,
        /// Sets whether to resume an interrupted build of the same inputs and settings.
        resume: bool,
        /// Sets the policy for lines that cannot be read.
        losses: LossPolicy,
        /// Sets how many threads and how much memory the build may use. The result does not depend on them.
        limits: JobLimits,
        /// Sets the observer of progress.
        observer: &'a dyn JobObserver = &NoProgress,
    }
}

/// Summary of a build, by what the index holds.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum IndexSummary {
    /// Fingerprints.
    Fingerprints(FingerprintIndexSummary),
    /// Sketches of several places.
    Sketches(SketchIndexSummary),
}

impl IndexSummary {
    /// Returns the counts of each input.
    pub fn inputs(&self) -> &[CodesSummary] {
        match self {
            Self::Fingerprints(summary) => &summary.inputs,
            Self::Sketches(summary) => &summary.inputs,
        }
    }
}

/// Summary of a build of an index of fingerprints.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FingerprintIndexSummary {
    /// Counts of each input.
    pub inputs: Vec<CodesSummary>,
    /// Number of fingerprints read.
    pub fingerprints: u64,
    /// Number of distinct fingerprints.
    pub distinct: u64,
    /// The design of the tables.
    pub design: String,
    /// The layout of the tables.
    pub layout: &'static str,
    /// Number of tables.
    pub tables: usize,
    /// Largest distance of a search, in bits.
    pub distance: u32,
    /// True if ids are stored with the fingerprints.
    pub ids: bool,
    /// Id of the scheme, if the inputs name one.
    pub scheme_id: Option<String>,
    /// Size of the index in bytes.
    pub bytes: u64,
    /// Size of the index divided by the number of distinct fingerprints.
    pub bytes_per_fingerprint: f64,
    /// Number of tables that an interrupted build had completed.
    pub tables_resumed: usize,
}

/// Bytes at the start of an index that contain its width, and bytes at its end that depend on all others.
const HEAD_BYTES: u64 = 64;
const TRAILER_BYTES: usize = 32;
/// Memory besides tables, ids and sorting.
const BASE_BYTES: u64 = 24 << 20;
/// Minimum memory for sorting.
const MIN_SCRATCH: u64 = 16 << 20;

/// Inputs that a build has gathered, by the kind of index.
trait GatheredIndex: Serialize + DeserializeOwned {
    /// Returns the counts of each input.
    fn inputs(&self) -> &[CodesSummary];

    /// Reads all inputs and writes them to plain files in the folder.
    fn gather(build: &IndexBuild<'_>, folder: &Path) -> Result<Self, BatchError>;

    /// Writes [`PART`] of the plain files. Returns the number of tables that an interrupted build had completed.
    fn write(&self, build: &IndexBuild<'_>, folder: &Path) -> Result<usize, BatchError>;

    /// Opens and verifies the index, and returns the summary of its build. `resumed` is `None` for a build that had ended.
    fn summary(
        self,
        build: &IndexBuild<'_>,
        index: &Path,
        resumed: Option<usize>,
    ) -> Result<IndexSummary, BatchError>;
}

impl<'a> IndexBuild<'a> {
    /// Enters the folder next to the output. Removes what an interrupted build left there, unless it is resumed.
    ///
    /// # Errors
    /// [`BatchError`] if the folder cannot be created, if another build is using it, or if it has other contents.
    pub fn enter(&self) -> Result<JobFolder, BatchError> {
        build_folder::enter(self.output, self.resume)
    }

    /// Builds the index in the entered folder. It appears under its name only when it is complete. A build that fails leaves only what a later one
    /// can resume from.
    ///
    /// # Errors
    /// [`BatchError`] if an input cannot be read, if the output cannot be written, if the memory limit is too low, if the settings contradict each
    /// other, or if the sketches do not have as many places as must be equal.
    pub fn run(&self, folder: &JobFolder) -> Result<IndexSummary, BatchError> {
        let summary = match self.equal {
            None => self.run_of::<GatheredInput>(folder.path())?,
            Some(_) => self.run_of::<GatheredSketches>(folder.path())?,
        };
        build_folder::remove(folder.path())?;
        Ok(summary)
    }

    /// Does everything except removing the folder.
    fn run_of<G: GatheredIndex>(&self, folder: &Path) -> Result<IndexSummary, BatchError> {
        let settings = self.settings();
        let gathered = build_folder::completed_build::<G>(folder, self.output, &settings[1])?;
        // If the index was complete, only the removal of the folder is left.
        if let Some(gathered) = gathered {
            check_losses(self.losses, gathered.inputs())?;
            return gathered.summary(self, self.output, None);
        }
        self.install::<G>(folder, settings)
            .map_err(|error| build_folder::failed(folder, self.resume, error))
    }

    fn install<G: GatheredIndex>(
        &self,
        folder: &Path,
        [with_output, without]: [String; 2],
    ) -> Result<IndexSummary, BatchError> {
        // With the contents of an existing output, which may be an input and must not have changed since it was copied.
        let gathered = build_folder::gather_or_resume(folder, with_output, || {
            self.observer
                .stage(JobStage::Scan, stored_bytes(self.inputs));
            G::gather(self, folder)
        })?;
        // Also check losses of an interrupted build, under the policy of this one.
        check_losses(self.losses, gathered.inputs())?;
        let resumed = gathered.write(self, folder)?;
        // Verify every byte before replacing a good index with that name.
        let summary = gathered.summary(self, &folder.join(PART), Some(resumed))?;
        build_folder::install(folder, self.output, without)?;
        Ok(summary)
    }

    /// Returns the folder of the build, which exists until the build is done and from which [`Self::resume`] resumes.
    pub fn folder(&self) -> PathBuf {
        build_folder::of(self.output)
    }

    /// Returns everything that the result depends on, with and without the contents of an existing output.
    fn settings(&self) -> [String; 2] {
        let layout = self.layout.name();
        let design = self.design.as_ref().map(|design| design.family().name());
        let search = match self.equal {
            // The result depends on nothing else.
            Some(equal) => format!("{equal:?}"),
            None => format!("{} {:?} {design:?} {layout}", self.distance, self.tables),
        };
        identities(self.inputs, self.output).map(|inputs| {
            let version = env!("CARGO_PKG_VERSION");
            format!("{version} {inputs} {search} {}", self.with_ids)
        })
    }

    fn costed_design<W: Word>(&self, count: u64) -> Result<CostedDesign, BatchError> {
        let Some(design) = &self.design else {
            return Ok(cheapest_design(
                count,
                W::BITS,
                self.distance,
                self.tables,
                self.layout,
            )?);
        };
        if design.bits() != W::BITS {
            return Err(FingerprintSettingsError::DesignOfOtherWidth {
                design: design.family().name(),
                bits: design.bits(),
                found: W::BITS,
            }
            .into());
        }
        Ok(CostedDesign::of(
            design.clone(),
            self.layout,
            count.max(1),
            &CostConstants::default(),
        ))
    }

    /// Returns the memory that is left for sorting.
    fn scratch(&self, costed: &CostedDesign, gathering: &GatheredInput) -> Result<u64, BatchError> {
        let tables = costed.design.tables().len() as f64;
        // Tables are built one after another, so only one of them is in memory.
        let table = (costed.costs.bytes_per_fingerprint / tables * gathering.count as f64) as u64;
        // For each id its end, its rank and its position, in four bytes if these are enough.
        let number = if gathering.count > u32::MAX.into() {
            8
        } else {
            4
        };
        let ids = gathering
            .id_bytes
            .map_or(0, |bytes| bytes + (8 + 2 * number) * gathering.count);
        // A table is reserved for all fingerprints, and made again if most of them are equal.
        self.memory_beside(table + ids)
    }

    /// Returns the memory that is left for sorting beside `bytes` bytes.
    fn memory_beside(&self, bytes: u64) -> Result<u64, BatchError> {
        let (limit, needed) = (self.limits.memory, BASE_BYTES + bytes);
        let left = limit.checked_sub(needed);
        left.filter(|&left| left >= MIN_SCRATCH)
            .ok_or(BatchError::IndexMemory {
                limit,
                least: (needed + MIN_SCRATCH).div_ceil(1 << 20),
            })
    }

    /// Writes the missing part. Returns the number of tables that were already there.
    fn write<W: Word>(
        &self,
        folder: &Path,
        gathering: &GatheredInput,
    ) -> Result<usize, BatchError> {
        let mut costed = self.costed_design::<W>(gathering.count)?;
        let gathered = &GatheredFile(folder);
        costed.design = balanced_design::<W>(gathered, &costed.design, costed.layout)?;
        let costed = &costed;
        let scratch = self.scratch(costed, gathering)?;
        let part = folder.join(PART);
        let failed = BatchError::result(&part);
        let mut writer = self.begin(folder, gathering, costed)?;
        let (all, resumed) = (costed.design.tables().len(), writer.tables_written());
        self.observer.stage(JobStage::Tables, all as u64);
        let limits = BuildLimits::default()
            .scratch_bytes(scratch as usize)
            .threads(self.limits.workers());
        let mut ids: Option<LoadedIds> = None;
        // Ids are written with the first table; from the second table on their memory is free for sorting.
        if resumed == 0 && gathering.id_bytes.is_some() {
            ids = Some(LoadedIds::load(folder).map_err(BatchError::result(folder))?);
        }
        loop {
            self.observer.progress(writer.tables_written() as u64);
            let texts = ids.as_ref().map(LoadedIds::texts);
            check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
            if !writer.next_table::<W>(gathered, texts, limits)? {
                break;
            }
            ids = None;
            writer
                .output()
                .flush()
                .and_then(|()| writer.output().get_ref().sync_data())
                .map_err(&failed)?;
            // The table is on disk by now, so the progress is true even after a power failure.
            save(&folder.join(PROGRESS), &writer.progress())?;
        }
        let file = writer.finish()?;
        file.get_ref().sync_all().map_err(&failed)?;
        Ok(resumed)
    }

    /// Starts a new file, or reopens the one that an interrupted build left.
    fn begin(
        &self,
        folder: &Path,
        gathering: &GatheredInput,
        costed: &CostedDesign,
    ) -> Result<IndexFileWriter<BufWriter<File>>, BatchError> {
        let part = folder.join(PART);
        let failed = BatchError::result(&part);
        // Progress is worth nothing without the part that it describes.
        let goes_on = self.resume && part.exists();
        let progress = fs::read(folder.join(PROGRESS)).ok().filter(|_| goes_on);
        if let Some(progress) = progress {
            let written = map(&part).map_err(&failed)?;
            let file = OpenOptions::new()
                .append(true)
                .open(&part)
                .map_err(&failed)?;
            let out = BufWriter::with_capacity(1 << 20, file);
            let design = &costed.design;
            let resumed = IndexFileWriter::resume(out, design, &progress, (*written).as_ref());
            // Unmap before truncating the file: a read beyond its end would be a bus error.
            drop(written);
            // If the file is not valid, build the tables again.
            if let Ok((mut writer, kept)) = resumed {
                // The file is open in append mode, so truncate what an interrupted table left behind.
                writer.output().get_ref().set_len(kept).map_err(&failed)?;
                return Ok(writer);
            }
        }
        let file = File::create(&part).map_err(&failed)?;
        let out = BufWriter::with_capacity(1 << 20, file);
        IndexFileWriter::new(out, gathering.scheme, &costed.design, costed.layout).map_err(&failed)
    }
}

impl GatheredIndex for GatheredInput {
    fn inputs(&self) -> &[CodesSummary] {
        &self.summaries
    }

    fn gather(build: &IndexBuild<'_>, folder: &Path) -> Result<Self, BatchError> {
        // Before the inputs are read, which may take long.
        if build.design.is_none() && build.tables == Some(0) {
            return Err(FingerprintSettingsError::NoTables.into());
        }
        gathered::gather(build, folder)
    }

    fn write(&self, build: &IndexBuild<'_>, folder: &Path) -> Result<usize, BatchError> {
        with_word!(self.bits, W => build.write::<W>(folder, self))
    }

    fn summary(
        self,
        build: &IndexBuild<'_>,
        index: &Path,
        resumed: Option<usize>,
    ) -> Result<IndexSummary, BatchError> {
        let summary = with_word!(self.bits, W => summary::<W>(build, index, self, resumed)?);
        Ok(IndexSummary::Fingerprints(summary))
    }
}

fn summary<W: Word>(
    build: &IndexBuild<'_>,
    path: &Path,
    gathering: GatheredInput,
    resumed: Option<usize>,
) -> Result<FingerprintIndexSummary, BatchError> {
    let index = open::<W>(path, false)?;
    let distinct = index.index().len() as u64;
    let tables = index.index().design().tables().len();
    Ok(FingerprintIndexSummary {
        inputs: gathering.summaries,
        fingerprints: gathering.count,
        distinct,
        design: index.index().design().family().to_string(),
        layout: index.index().layout().name(),
        tables,
        distance: build.distance,
        ids: index.has_ids(),
        scheme_id: index.scheme().map(|id| SchemeId(id).to_string()),
        bytes: index.bytes(),
        bytes_per_fingerprint: index.bytes() as f64 / distinct.max(1) as f64,
        // All tables of a build that had ended count as resumed.
        tables_resumed: resumed.unwrap_or(tables),
    })
}

/// Returns the fastest design with this layout for `count` fingerprints of `bits` bits, within a maximum number of tables. By default that is as many
/// tables as tolerate one error in each key.
///
/// # Errors
/// [`FingerprintSettingsError::NoTables`] if no table is allowed: even a scan has one, without a key.
///
/// # Panics
/// Never: a scan is always listed.
pub fn cheapest_design(
    count: u64,
    bits: u32,
    distance: u32,
    tables: Option<u32>,
    layout: Layout,
) -> Result<CostedDesign, FingerprintSettingsError> {
    if tables == Some(0) {
        return Err(FingerprintSettingsError::NoTables);
    }
    // By the pigeonhole principle, one of more than `distance / 2` disjoint keys has at most one error.
    let most = tables.unwrap_or(distance / 2 + 1) as usize;
    let designs = plan(
        count.max(1),
        bits,
        distance,
        &PlanLimits::default(),
        &CostConstants::default(),
    );
    let scan = |costed: &CostedDesign| costed.design.family().kind() == FamilyKind::Scan;
    let allowed = designs.into_iter().filter(|costed| {
        // The only table of a scan has no key, so the layout makes no difference to it.
        let allowed = costed.layout == layout || scan(costed);
        allowed && costed.design.tables().len() <= most
    });
    let cheapest = allowed
        .min_by(|a, b| {
            let ns = |costed: &CostedDesign| costed.costs.query_ns;
            // Choose a scan only if nothing else has so few tables.
            scan(a).cmp(&scan(b)).then(ns(a).total_cmp(&ns(b)))
        })
        .expect("a scan is always listed");
    Ok(cheapest)
}

/// Properties of an index that stay the same when fingerprints are added.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexProperties {
    /// Largest distance between a query and what it finds, in bits.
    pub distance: u32,
    /// The design of its tables, with its bits in their own order: each build distributes them for its fingerprints.
    pub design: Design,
    /// The layout of its tables.
    pub layout: Layout,
    /// True if ids are stored with the fingerprints. `None` for an empty index, which may be extended either way.
    pub has_ids: Option<bool>,
}

impl IndexProperties {
    /// Reads the properties of an index.
    ///
    /// # Errors
    /// [`BatchError::IndexFile`] with the file and the cause.
    pub fn of(path: &Path) -> Result<Self, BatchError> {
        with_word!(width(path)?, W => Self::of_width::<W>(path))
    }

    fn of_width<W: Word>(path: &Path) -> Result<Self, BatchError> {
        let file = open_unchecked::<W>(path, false)?;
        let index = file.index();
        let stored = index.design();
        let design = Design::new(stored.family().clone(), stored.bits(), stored.radius());
        Ok(Self {
            distance: index.radius(),
            // A file from elsewhere may name a family that does not fit its keys.
            design: design.unwrap_or_else(|_| stored.clone()),
            layout: index.layout(),
            // Nothing tells whether an empty index was built with ids.
            has_ids: (file.documents() > 0).then(|| file.has_ids()),
        })
    }
}

/// Tells whether a file starts like an index of fingerprints. Returns false if it cannot be opened.
pub fn is_index(path: &Path) -> bool {
    begins_with(path, *b"LKIX")
}

/// Returns the width of an index's fingerprints, in bits. `None` for an empty index, which goes with fingerprints of any width: it may have been built
/// before any input told one.
///
/// # Errors
/// [`BatchError`] with the file and the cause.
pub fn stated_width(path: &Path) -> Result<Option<u32>, BatchError> {
    let properties = IndexProperties::of(path)?;
    Ok(properties.has_ids.map(|_| properties.design.bits()))
}

/// Returns the width of an index's fingerprints, in bits.
///
/// # Errors
/// [`BatchError`] with the file and the cause.
pub fn width(path: &Path) -> Result<u32, BatchError> {
    let mut head = Vec::new();
    let read = open_regular(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.map_err(unreadable(path))?;
    index_width(&head).map_err(damaged(path))
}

/// Returns the counts of the fingerprints of an index.
pub(super) fn codes_summary<W: Word>(name: &str, index: &IndexFile<W>) -> CodesSummary {
    CodesSummary::of_index(name, index.documents(), index.scheme().map(SchemeId))
}

/// Returns a number that depends on every byte of an index: the checksums at its end cover all others.
pub(super) fn digest(path: &Path) -> Result<u64, BatchError> {
    let mut end = [0; TRAILER_BYTES];
    let read = open_regular(path).and_then(|mut file| {
        file.seek(SeekFrom::End(-(TRAILER_BYTES as i64)))?;
        file.read_exact(&mut end)
    });
    read.map_err(unreadable(path))?;
    Ok(lookalike::hash::xxh3_64(&end, 0))
}

/// Opens an index of fingerprints of this width, either mapped or, if `in_memory` is true, read. Verifies every byte, because an altered entry would
/// give wrong answers.
///
/// # Errors
/// [`BatchError::IndexFile`] with the file and the cause.
pub fn open<W: Word>(path: &Path, in_memory: bool) -> Result<IndexFile<W>, BatchError> {
    if in_memory {
        let index = open_unchecked(path, in_memory)?;
        index.verify().map_err(damaged(path))?;
        return Ok(index);
    }
    let failed = unreadable(path);
    let mut file = open_regular(path).map_err(&failed)?;
    let mapped = map_file(&file).map_err(&failed)?;
    // The handle serves the mapping and the reading below, so a rename in between cannot make them two files.
    let index = IndexFile::open(mapped).map_err(damaged(path))?;
    // Verify by reading, not through the mapping: mapped pages that are touched count as the process's memory, and here these are all.
    index.verify_read(&mut file).map_err(damaged(path))?;
    Ok(index)
}

/// Does the same as [`open`] without verifying entries, so it is immediate for files of any size.
///
/// # Errors
/// [`BatchError::IndexFile`] with the file and the cause.
pub fn open_unchecked<W: Word>(path: &Path, in_memory: bool) -> Result<IndexFile<W>, BatchError> {
    let held = if in_memory { read(path) } else { map(path) };
    IndexFile::open(held.map_err(unreadable(path))?).map_err(damaged(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_lock::PathLock;
    use crate::unfinished::JOB;

    fn of_fingerprints(
        built: Result<IndexSummary, BatchError>,
    ) -> Result<FingerprintIndexSummary, BatchError> {
        built.map(|built| match built {
            IndexSummary::Fingerprints(summary) => summary,
            IndexSummary::Sketches(summary) => panic!("{summary:?}"),
        })
    }

    /// Builds an index of some fingerprints in `folder`.
    fn build(folder: &Path) -> Result<FingerprintIndexSummary, BatchError> {
        let codes: Vec<u8> = (0..5000_u64)
            .flat_map(|code| code.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
            .collect();
        let (input, output) = (folder.join("in.u64"), folder.join("out.lkix"));
        fs::write(&input, codes).unwrap();
        let inputs = [input.as_path().into()];
        let build = IndexBuild::new(&inputs, &output).with_ids(false);
        of_fingerprints(build.run(&build.enter()?))
    }

    #[test]
    fn a_design_without_tables_was_asked_for_and_the_build_panicked() {
        let most_tables = |tables| cheapest_design(1000, 64, 3, Some(tables), Layout::Packed);
        assert!(matches!(
            most_tables(0),
            Err(FingerprintSettingsError::NoTables)
        ));
        assert_eq!(most_tables(1).unwrap().design.tables().len(), 1);
    }

    #[test]
    fn two_builds_of_one_index_wrote_into_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let building = folder.path().join("out.lkix.building");
        fs::create_dir(&building).unwrap();
        let lock = PathLock::take(&building).unwrap().unwrap();
        fs::write(building.join(PART), "of the other").unwrap();
        let told = build(folder.path()).unwrap_err().to_string();
        assert!(told.contains("another build"), "{told}");
        assert!(building.join(PART).exists());
        drop(lock);
        assert_eq!(build(folder.path()).unwrap().fingerprints, 5000);
        assert!(!building.exists());
        assert_eq!(
            open::<u64>(&folder.path().join("out.lkix"), false)
                .unwrap()
                .documents(),
            5000
        );
    }

    #[test]
    fn an_extension_that_was_killed_at_its_end_was_made_twice() {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path()).unwrap();
        let [index, more, other] =
            ["out.lkix", "more.u64", "other.u64"].map(|name| folder.path().join(name));
        fs::write(&more, [7; 80]).unwrap();
        fs::write(&other, [8; 80]).unwrap();
        let of =
            |added: &Path| -> [FingerprintSource; 2] { [index.as_path().into(), added.into()] };
        let (inputs, others) = (of(&more), of(&other));
        let extension = |inputs, resume| {
            IndexBuild::new(inputs, &index)
                .with_ids(false)
                .resume(resume)
        };
        let killed = extension(&inputs, false);
        let entered = killed.enter().unwrap();
        let installed = killed.install::<GatheredInput>(entered.path(), killed.settings());
        assert_eq!(of_fingerprints(installed).unwrap().fingerprints, 5010);
        // Stopped in the middle of the removal.
        fs::remove_file(entered.path().join(JOB)).unwrap();
        drop(entered);
        let bytes = fs::read(&index).unwrap();
        let with_others = extension(&others, true);
        let refused = with_others.run(&with_others.enter().unwrap()).unwrap_err();
        assert!(refused.to_string().contains("other inputs"), "{refused}");
        let resumed = extension(&inputs, true);
        let summary = of_fingerprints(resumed.run(&resumed.enter().unwrap())).unwrap();
        assert_eq!((summary.fingerprints, summary.distinct), (5010, 5001));
        assert!(fs::read(&index).unwrap() == bytes && !resumed.folder().exists());
        // Once more, as two extensions.
        let again = extension(&inputs, false);
        let summary = of_fingerprints(again.run(&again.enter().unwrap())).unwrap();
        assert_eq!(summary.fingerprints, 5020);
    }

    #[test]
    fn an_id_behind_the_first_chunk_was_refused_as_if_it_were_in_another_file() {
        let folder = tempfile::tempdir().unwrap();
        // More fingerprints of 128 bits than are read at once.
        const COUNT: u128 = (5 << 20) / 16;
        let index = |name: &str, id: &dyn Fn(u128) -> String| {
            let lines = (0..=COUNT).map(|at| {
                let code = at.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                let id = match at {
                    COUNT => "\"id\":\"last\",".to_owned(),
                    _ => id(code),
                };
                format!("{{{id}\"fingerprint\":\"{code:032x}\"}}\n")
            });
            let [input, output] =
                ["jsonl", "lkix"].map(|end| folder.path().join(name).with_extension(end));
            fs::write(&input, lines.collect::<String>()).unwrap();
            // Twice, so that the file is also read behind one with ids.
            let inputs = [input.as_path().into(), input.as_path().into()];
            let build = IndexBuild::new(&inputs, &output);
            let built = of_fingerprints(build.run(&build.enter().unwrap()));
            assert!(built.unwrap().ids);
            fs::read(output).unwrap()
        };
        let late = index("late", &|_| String::new());
        assert!(late == index("own", &|code| format!("\"id\":\"{code:032x}\",")));
    }

    #[test]
    fn a_folder_that_no_build_made_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let building = folder.path().join("out.lkix.building");
        fs::create_dir(&building).unwrap();
        fs::write(building.join("thesis.tex"), "years").unwrap();
        let told = build(folder.path()).unwrap_err().to_string();
        assert!(told.contains("thesis.tex"), "{told}");
        assert!(building.join("thesis.tex").exists());
    }
}
