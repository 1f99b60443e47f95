//! Building an index file from collections of fingerprints, in bounded memory, and going on after an interruption.
//!
//! The way of a build, in the folder `OUTPUT.building`: the inputs are copied to plain files (`gathered`), `job.json`
//! says that this is done; then the tables are built one after the other from that copy and appended to `part`, and
//! `progress` says after each how far the file is whole; at last `part` gets its name. The result does not depend on
//! the order of the inputs, the memory limit or interruptions.

mod gathered;
mod mapped;

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use lookalike::scheme::SchemeId;
use lookalike_corpus::{
    AtomicFile, Compression, open_regular, parent_directory, remove_leftovers, sync_directory,
};
use lookalike_hamming::{
    BuildLimits, CostConstants, CostedDesign, Design, FamilyKind, IndexFile, IndexFileWriter,
    Layout, PlanLimits, plan,
};
use serde::{Deserialize, Serialize};

pub use mapped::{map, read};

use crate::dedup::checkpoint::HashingStream;
use crate::error::BatchError;
use crate::fingerprints::files::{CodesSummary, FingerprintSource, check_losses};
use crate::folder_lock::FolderLock;
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage};
use crate::settings::JobLimits;
use gathered::{FILES, GatheredFile, GatheredInput, LoadedIds};

/// The job: what to index and how.
pub struct IndexBuild<'a> {
    /// Collections of fingerprints, in any of the formats of [`crate::fingerprints::files`], and other indexes.
    pub inputs: &'a [FingerprintSource],
    /// The index file.
    pub output: &'a Path,
    /// Most bits in which a query and what it finds differ.
    pub distance: u32,
    /// Most tables; by default as many as forgive one error in each key.
    pub tables: Option<u32>,
    /// The design to build, in place of the fastest.
    pub design: Option<Design>,
    /// Storage of tables.
    pub layout: Layout,
    /// Keep ids, where the inputs have them.
    pub with_ids: bool,
    /// Go on with an interrupted build of the same inputs and settings.
    pub resume: bool,
    /// Policy for lines that cannot be read.
    pub losses: LossPolicy,
    /// Memory of the build.
    pub limits: &'a JobLimits,
    /// Receiver of progress.
    pub observer: &'a dyn JobObserver,
}

/// Summary of a build.
#[derive(Clone, Debug, Serialize)]
pub struct IndexBuildSummary {
    /// Counts of what was read.
    pub inputs: Vec<CodesSummary>,
    /// Fingerprints read.
    pub fingerprints: u64,
    /// Different ones among them.
    pub distinct: u64,
    /// The design of the tables.
    pub design: String,
    /// Their storage.
    pub layout: &'static str,
    /// Number of them.
    pub tables: usize,
    /// Largest distance of a search.
    pub distance: u32,
    /// True if ids stand beside the fingerprints.
    pub ids: bool,
    /// Id of the scheme, where the inputs name one.
    pub scheme_id: Option<String>,
    /// Bytes of the index.
    pub bytes: u64,
    /// Of these a fingerprint that is stored.
    pub bytes_per_fingerprint: f64,
    /// Tables that an interrupted build had left.
    pub tables_resumed: usize,
}

/// Content of `job.json`: the identity of the build, and what was gathered.
#[derive(Serialize, Deserialize, PartialEq)]
struct JobFile {
    settings: String,
    count: u64,
    scheme: Option<u64>,
    id_bytes: Option<u64>,
    inputs: Vec<CodesSummary>,
}

/// True if the folder of a build that was interrupted holds what [`IndexBuild::resume`] goes on from.
pub fn can_resume(folder: &Path) -> bool {
    folder.join(JOB).exists()
}

const JOB: &str = "job.json";
const PART: &str = "part";
const PROGRESS: &str = "progress";
/// Memory beside tables, ids and sorting.
const BASE_BYTES: u64 = 24 << 20;
/// Least memory for sorting.
const LEAST_SCRATCH: u64 = 16 << 20;

impl IndexBuild<'_> {
    /// Builds the index; there is none under its name until it is whole.
    ///
    /// # Errors
    /// [`BatchError`]: an input cannot be read, the output cannot be written, the memory is too small, or the settings
    /// contradict each other.
    pub fn run(&self) -> Result<IndexBuildSummary, BatchError> {
        let folder = self.folder();
        let failed = BatchError::result(&folder);
        fs::create_dir_all(&folder).map_err(&failed)?;
        let _lock = enter(&folder, self.resume)?;
        let gathered = GatheredFile::of(&folder);
        let gathering = self.gather(&folder, &gathered)?;
        let costed = self.design(gathering.count);
        let scratch = self.scratch(&costed, &gathering)?;
        let (tables, resumed) = self.write(&folder, &gathered, &gathering, &costed, scratch)?;
        // Every byte is checked before a good index of that name goes.
        let summary = self.summary(&folder.join(PART), gathering, tables, resumed)?;
        fs::rename(folder.join(PART), self.output)
            // The new name is durable before the only other copy of the work goes.
            .and_then(|()| sync_directory(parent_directory(self.output)))
            .map_err(BatchError::result(self.output))?;
        fs::remove_dir_all(&folder).map_err(&failed)?;
        Ok(summary)
    }

    /// Folder of the build until it is done, with which [`Self::resume`] goes on.
    pub fn folder(&self) -> PathBuf {
        let mut name = self.output.as_os_str().to_owned();
        name.push(".building");
        PathBuf::from(name)
    }

    /// Everything that decides what the result is.
    fn settings(&self) -> String {
        let input =
            |source: &FingerprintSource| (source.name().to_owned(), content_sum(source.path()));
        let inputs: Vec<_> = self.inputs.iter().map(input).collect();
        let layout = self.layout.name();
        let design = self.design.as_ref().map(|design| design.family().name());
        format!(
            "{inputs:?} {} {:?} {design:?} {layout} {}",
            self.distance, self.tables, self.with_ids
        )
    }

    fn gather(&self, folder: &Path, gathered: &GatheredFile) -> Result<GatheredInput, BatchError> {
        let path = folder.join(JOB);
        let settings = self.settings();
        let kept = fs::read(&path)
            .ok()
            .and_then(|text| serde_json::from_slice::<JobFile>(&text).ok());
        if let Some(job) = kept {
            // By name and content, not by time: a file that was replaced between two attempts makes it another
            // build.
            if job.settings == settings {
                check_losses(self.losses, &job.inputs)?;
                return Ok(GatheredInput {
                    count: job.count,
                    scheme: job.scheme.map(SchemeId),
                    id_bytes: job.id_bytes,
                    summaries: job.inputs,
                });
            }
            return Err(BatchError::Settings(format!(
                "{}: an interrupted build of other inputs or settings: run without --resume to start again",
                folder.display()
            )));
        }
        let sizes = self
            .inputs
            .iter()
            .map(|source| fs::metadata(source.path()).map_or(0, |of| of.len()));
        self.observer.stage(JobStage::Scan, sizes.sum());
        let advance = |bytes| self.observer.advance(bytes);
        let gathering = gathered.gather(self.inputs, self.with_ids, self.losses, &advance)?;
        let job = JobFile {
            settings,
            count: gathering.count,
            scheme: gathering.scheme.map(|scheme| scheme.0),
            id_bytes: gathering.id_bytes,
            inputs: gathering.summaries.clone(),
        };
        // Last: where this file is, the copy of the inputs is whole.
        save(&path, &serde_json::to_vec(&job).unwrap_or_default())?;
        Ok(gathering)
    }

    fn design(&self, count: u64) -> CostedDesign {
        let Some(design) = &self.design else {
            return cheapest_design(count, self.distance, self.tables, self.layout);
        };
        CostedDesign::of(
            design.clone(),
            self.layout,
            count.max(1),
            &CostConstants::default(),
        )
    }

    /// Memory that is left for sorting.
    fn scratch(&self, costed: &CostedDesign, gathering: &GatheredInput) -> Result<u64, BatchError> {
        let tables = costed.design.tables().len() as f64;
        let table = (costed.costs.bytes_per_fingerprint / tables * gathering.count as f64) as u64;
        let ids = gathering
            .id_bytes
            .map_or(0, |bytes| bytes + 16 * gathering.count);
        // A table is reserved for all fingerprints and made again when most of them are equal.
        let needed = BASE_BYTES + table + ids;
        let limit = self.limits.memory;
        limit
            .checked_sub(needed)
            .filter(|&left| left >= LEAST_SCRATCH)
            .ok_or(BatchError::IndexMemory {
                limit,
                least: (needed + LEAST_SCRATCH).div_ceil(1 << 20),
            })
    }

    /// Writes the part that is missing; how many tables there are, and how many there were before.
    fn write(
        &self,
        folder: &Path,
        gathered: &GatheredFile,
        gathering: &GatheredInput,
        costed: &CostedDesign,
        scratch: u64,
    ) -> Result<(usize, usize), BatchError> {
        let part = folder.join(PART);
        let failed = BatchError::result(&part);
        let mut writer = self.begin(folder, gathering, costed)?;
        let (all, resumed) = (costed.design.tables().len(), writer.tables_written());
        self.observer.stage(JobStage::Tables, all as u64);
        let limits = BuildLimits::default()
            .scratch_bytes(scratch as usize)
            .threads(self.limits.threads);
        let mut ids: Option<LoadedIds> = None;
        // Ids are written with the first table, and their memory is free for sorting from the second on.
        if resumed == 0 && gathering.id_bytes.is_some() {
            ids = Some(gathered.load_ids().map_err(BatchError::result(folder))?);
        }
        loop {
            self.observer.advance(writer.tables_written() as u64);
            let texts = ids.as_ref().map(LoadedIds::texts);
            if !writer.next_table::<u64>(gathered, texts, limits)? {
                break;
            }
            ids = None;
            writer
                .output()
                .flush()
                .and_then(|()| writer.output().get_ref().sync_data())
                .map_err(&failed)?;
            // The table is durable by now, so after a power cut the progress claims no more than there is.
            save(&folder.join(PROGRESS), &writer.progress())?;
        }
        let file = writer.finish()?;
        file.get_ref().sync_all().map_err(&failed)?;
        Ok((all, resumed))
    }

    /// A new file, or the one that an interrupted build left.
    fn begin(
        &self,
        folder: &Path,
        gathering: &GatheredInput,
        costed: &CostedDesign,
    ) -> Result<IndexFileWriter<BufWriter<File>>, BatchError> {
        let part = folder.join(PART);
        let failed = BatchError::result(&part);
        let goes_on = self.resume && part.exists();
        let progress = fs::read(folder.join(PROGRESS)).ok().filter(|_| goes_on);
        if let Some(progress) = progress {
            let written = map(&part).map_err(&failed)?;
            let file = OpenOptions::new()
                .append(true)
                .open(&part)
                .map_err(&failed)?;
            let out = BufWriter::with_capacity(1 << 20, file);
            let resumed = IndexFileWriter::resume(out, &progress, (*written).as_ref());
            // Unmapped before the file is cut: a read beyond its end would be a bus error.
            drop(written);
            // What is not whole is not believed: the tables are built again.
            if let Ok((mut writer, kept)) = resumed {
                // The file is open to append: what an interrupted table left has to go first.
                writer.output().get_ref().set_len(kept).map_err(&failed)?;
                return Ok(writer);
            }
        }
        let file = File::create(&part).map_err(&failed)?;
        let out = BufWriter::with_capacity(1 << 20, file);
        IndexFileWriter::new(
            out,
            gathering.scheme.map(|id| id.0),
            &costed.design,
            costed.layout,
        )
        .map_err(&failed)
    }

    fn summary(
        &self,
        part: &Path,
        gathering: GatheredInput,
        tables: usize,
        tables_resumed: usize,
    ) -> Result<IndexBuildSummary, BatchError> {
        let index = open(part, false)?;
        let distinct = index.index().len() as u64;
        Ok(IndexBuildSummary {
            inputs: gathering.summaries,
            fingerprints: gathering.count,
            distinct,
            design: index.index().design().family().to_string(),
            layout: index.index().layout().name(),
            tables,
            distance: self.distance,
            ids: index.has_ids(),
            scheme_id: index.scheme().map(|id| SchemeId(id).to_string()),
            bytes: index.bytes(),
            bytes_per_fingerprint: index.bytes() as f64 / distinct.max(1) as f64,
            tables_resumed,
        })
    }
}

/// The fastest design of the layout for so many 64-bit fingerprints, within a number of tables: by default as many as forgive one
/// error in each key.
///
/// # Panics
/// Never: a scan, which has no tables, is always listed.
pub fn cheapest_design(
    count: u64,
    distance: u32,
    tables: Option<u32>,
    layout: Layout,
) -> CostedDesign {
    let most = tables.unwrap_or(distance / 2 + 1) as usize;
    let designs = plan(
        count.max(1),
        64,
        distance,
        &PlanLimits::default(),
        &CostConstants::default(),
    );
    let scan = |costed: &CostedDesign| costed.design.family().kind() == FamilyKind::Scan;
    let allowed = designs.into_iter().filter(|costed| {
        let allowed = costed.layout == layout || scan(costed);
        allowed && costed.design.tables().len() <= most
    });
    allowed
        .min_by(|a, b| {
            let ns = |costed: &CostedDesign| costed.costs.query_ns;
            // A scan only where no tables are allowed.
            (scan(a), ns(a))
                .partial_cmp(&(scan(b), ns(b)))
                .unwrap_or(std::cmp::Ordering::Equal)
        })
        .expect("a scan is always listed")
}

/// Takes the folder of a build for this one, without what an earlier one left unless that is resumed.
fn enter(folder: &Path, resume: bool) -> Result<FolderLock, BatchError> {
    let failed = BatchError::result(folder);
    let refused = |reason: String| BatchError::Folder {
        path: folder.to_owned(),
        reason,
    };
    // Another build would save its progress into our files, and give the half-made ones their name.
    let Some(lock) = FolderLock::take(folder).map_err(&failed)? else {
        return Err(refused(
            "another build of this index is at work: wait until it has ended, or choose another output".to_owned(),
        ));
    };
    remove_leftovers(folder).map_err(&failed)?;
    for entry in fs::read_dir(folder).map_err(&failed)? {
        let name = entry.map_err(&failed)?.file_name();
        let mut ours = FILES.iter().chain(&[JOB, PART, PROGRESS]);
        if !ours.any(|ours| name == *ours) {
            return Err(refused(format!(
                "{} is no file of an interrupted build, so it may be yours: move it away, or choose another output",
                name.display()
            )));
        }
    }
    if !resume {
        // The list of what is whole first. The folder stays, or its lock would be one of nothing.
        for name in [PROGRESS, JOB, PART].iter().chain(&FILES) {
            match fs::remove_file(folder.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed(error));
                }
                _ => {}
            }
        }
    }
    Ok(lock)
}

/// A small file that is there whole or not at all.
fn save(path: &Path, bytes: &[u8]) -> Result<(), BatchError> {
    let write = || {
        let mut file = AtomicFile::create(path, Compression::None)?;
        file.write_all(bytes)?;
        file.commit()
    };
    write().map_err(BatchError::result(path))
}

/// The sum of the bytes of a file; none of what can be read only once.
fn content_sum(path: &Path) -> Option<u64> {
    let mut file = open_regular(path).ok()?;
    let mut sum = HashingStream::new(std::io::sink());
    std::io::copy(&mut file, &mut sum).ok()?;
    Some(sum.digest())
}

/// Properties of an index that one with more fingerprints has too.
pub struct IndexProperties {
    /// Most bits in which a query and what it finds differ.
    pub distance: u32,
    /// The design of its tables.
    pub design: Design,
    /// Storage of tables.
    pub layout: Layout,
    /// True if ids stand beside the fingerprints; `None` for an index of nothing, which may take some or not.
    pub has_ids: Option<bool>,
}

impl IndexProperties {
    /// Reads those of an index.
    ///
    /// # Errors
    /// [`BatchError::IndexFile`] names the file and what is wrong with it.
    pub fn of(path: &Path) -> Result<Self, BatchError> {
        let file = open_unchecked(path, false)?;
        let index = file.index();
        Ok(Self {
            distance: index.radius(),
            design: index.design().clone(),
            layout: index.layout(),
            has_ids: (file.documents() > 0).then(|| file.has_ids()),
        })
    }
}

/// True if a file begins as an index does. What cannot be opened is somebody else's error.
pub fn is_index(path: &Path) -> bool {
    let mut head = [0; 4];
    let mut file = open_regular(path).ok();
    let read = file.as_mut().map(|file| file.read_exact(&mut head));
    matches!(read, Some(Ok(()))) && &head == b"LKIX"
}

/// Opens an index of 64-bit fingerprints, mapped or (`in_memory`) read, and checks every byte: an entry that was altered would
/// give wrong answers.
///
/// # Errors
/// [`BatchError::IndexFile`] names the file and what is wrong with it.
pub fn open(path: &Path, in_memory: bool) -> Result<IndexFile<u64>, BatchError> {
    let index = open_unchecked(path, in_memory)?;
    index.verify().map_err(|source| BatchError::IndexFile {
        path: path.display().to_string(),
        source,
    })?;
    Ok(index)
}

/// As [`open`], without a check of the entries: at once, however large the file is.
///
/// # Errors
/// [`BatchError::IndexFile`] names the file and what is wrong with it.
pub fn open_unchecked(path: &Path, in_memory: bool) -> Result<IndexFile<u64>, BatchError> {
    let wrong = |source| BatchError::IndexFile {
        path: path.display().to_string(),
        source,
    };
    let held = if in_memory { read(path) } else { map(path) };
    let held = held.map_err(|source| BatchError::File {
        path: path.to_owned(),
        source,
        remedy: "name an index made by `lookalike index build`",
    })?;
    IndexFile::open(held).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::NoProgress;

    /// Builds an index of some fingerprints in `folder`.
    fn build(folder: &Path) -> Result<IndexBuildSummary, BatchError> {
        let codes: Vec<u8> = (0..5000_u64)
            .flat_map(|code| code.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
            .collect();
        let (input, output) = (folder.join("in.u64"), folder.join("out.lkix"));
        fs::write(&input, codes).unwrap();
        let build = IndexBuild {
            inputs: &[input.as_path().into()],
            output: &output,
            distance: 3,
            tables: None,
            design: None,
            layout: Layout::Packed,
            with_ids: false,
            resume: false,
            losses: LossPolicy::Tolerate,
            limits: &JobLimits::default(),
            observer: &NoProgress,
        };
        build.run()
    }

    #[test]
    fn two_builds_of_one_index_wrote_into_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let building = folder.path().join("out.lkix.building");
        fs::create_dir(&building).unwrap();
        let lock = FolderLock::take(&building).unwrap().unwrap();
        fs::write(building.join(PART), "of the other").unwrap();
        let told = build(folder.path()).unwrap_err().to_string();
        assert!(told.contains("another build"), "{told}");
        assert!(building.join(PART).exists());
        drop(lock);
        assert_eq!(build(folder.path()).unwrap().fingerprints, 5000);
        assert!(!building.exists());
        assert_eq!(
            open(&folder.path().join("out.lkix"), false)
                .unwrap()
                .documents(),
            5000
        );
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
