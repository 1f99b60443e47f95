//! Manages the folder of a build, `OUTPUT.building`, and renames its result.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lookalike_corpus::{open_regular, parent_directory, sync_directory};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::dedup::hashing_stream::HashingStream;
use crate::error::BatchError;
use crate::fingerprints::files::FingerprintSource;
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::unfinished::{DONE, JOB, JobFolder, can_resume, save, sibling_folder};

/// The index as far as it is written.
pub(super) const PART: &str = "part";
/// State of the part of a fingerprint index that is complete.
pub(super) const PROGRESS: &str = "progress";
/// Fingerprints, ids and ends of ids, in input order.
pub(super) const CODES: &str = "codes";
pub(super) const TEXTS: &str = "ids.txt";
pub(super) const ENDS: &str = "ids.ends";
/// Distinct sketches, and the position of each sketch's first id.
pub(super) const SKETCHES: &str = "sketches";
pub(super) const FIRST_IDS: &str = "ids.firsts";

/// Creates a plain file in the folder of a build.
pub(super) fn create(folder: &Path, name: &str) -> io::Result<BufWriter<File>> {
    let file = File::create(folder.join(name))?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

/// Syncs plain files to disk, before `job.json` states that they are complete.
pub(super) fn finish<const N: usize>(files: [BufWriter<File>; N]) -> io::Result<()> {
    files.into_iter().try_for_each(|file| {
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()
    })
}

/// Returns the build folder of an output.
pub(super) fn of(output: &Path) -> PathBuf {
    sibling_folder(output, ".building")
}

/// Enters the folder next to the output. Removes what an interrupted build of any kind left there, unless it is resumed.
pub(super) fn enter(output: &Path, resume: bool) -> Result<JobFolder, BatchError> {
    // The files that state what is complete come first.
    let files = [
        DONE, PROGRESS, JOB, PART, CODES, SKETCHES, FIRST_IDS, TEXTS, ENDS,
    ];
    JobFolder::enter("build", &of(output), &files, resume)
}

/// Contents of [`DONE`]. It is needed because an extended index differs from the one that it extends: another build would add the same documents
/// twice.
#[derive(Serialize, Deserialize)]
struct CompletedBuild {
    settings: String,
    index: FileIdentity,
    /// Contents of [`JOB`].
    job: String,
}

/// Contents of [`JOB`]: the identity of the build, and what was gathered.
#[derive(Serialize, Deserialize)]
struct JobFile<G> {
    settings: String,
    gathered: G,
}

// A rename changes none of these, so `part` and the index that it becomes have the same identity.
/// Identity of a file, whatever its name.
#[derive(PartialEq, Serialize, Deserialize)]
struct FileIdentity {
    device: u64,
    number: u64,
    bytes: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl FileIdentity {
    fn of(path: &Path) -> io::Result<Self> {
        let data = fs::metadata(path)?;
        Ok(Self {
            device: data.dev(),
            number: data.ino(),
            bytes: data.size(),
            modified_s: data.mtime(),
            modified_ns: data.mtime_nsec(),
        })
    }
}

/// Renames the index in the folder to its final name. `settings` identify its inputs, except for an earlier file with that name: see [`identities`].
pub(super) fn install(folder: &Path, output: &Path, settings: String) -> Result<(), BatchError> {
    let part = folder.join(PART);
    let done = || -> io::Result<CompletedBuild> {
        Ok(CompletedBuild {
            settings,
            index: FileIdentity::of(&part)?,
            job: fs::read_to_string(folder.join(JOB))?,
        })
    };
    // Saved before the rename: if the process is killed in between, the next attempt finds no such index under the name and repeats the rename.
    let done = done().map_err(BatchError::result(folder))?;
    save(
        &folder.join(DONE),
        // Numbers and strings always serialise.
        &serde_json::to_vec(&done).unwrap_or_default(),
    )?;
    fs::rename(part, output)
        // Make the new name durable before the only other copy of the work is removed.
        .and_then(|()| sync_directory(parent_directory(output)))
        .map_err(BatchError::result(output))
}

/// Removes the folder of a finished build.
pub(super) fn remove(folder: &Path) -> Result<(), BatchError> {
    let remove = || -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // Remove this file last: without it the build would look as if it had never started.
            if entry.file_name() != DONE {
                fs::remove_file(entry.path())?;
            }
        }
        fs::remove_dir_all(folder)
    };
    remove().map_err(BatchError::result(folder))
}

/// Removes what a failed build leaves, unless a later build can resume from it. `error` is the reason for the failure; `resumed` tells whether this
/// build was itself resumed.
pub(super) fn failed(folder: &Path, resumed: bool, error: BatchError) -> BatchError {
    // The inputs were gathered for settings that are refused.
    let is_useless = matches!(error, BatchError::Settings(_)) && !resumed;
    if is_useless || !can_resume(folder) {
        // Ignore this error: the build failed for another reason, which is the one to report.
        let _ = remove(folder);
    }
    error
}

/// Returns what an interrupted build with these settings gathered, or gathers it now.
pub(super) fn gather_or_resume<G: Serialize + DeserializeOwned>(
    folder: &Path,
    settings: String,
    gather: impl FnOnce() -> Result<G, BatchError>,
) -> Result<G, BatchError> {
    let path = folder.join(JOB);
    if let Ok(kept) = fs::read(&path) {
        let job = serde_json::from_slice::<JobFile<G>>(&kept).ok();
        let job = job.filter(|job| job.settings == settings);
        return job
            .map(|job| job.gathered)
            .ok_or_else(|| other_build(folder));
    }
    let gathered = gather()?;
    let job = JobFile { settings, gathered };
    // Write this file last: it shows that the copy of the inputs is complete.
    save(&path, &serde_json::to_vec(&job).unwrap_or_default())?;
    Ok(job.gathered)
}

/// Returns what was gathered if an interrupted build with these settings had only to remove its folder.
pub(super) fn completed_build<G: DeserializeOwned>(
    folder: &Path,
    output: &Path,
    settings: &str,
) -> Result<Option<G>, BatchError> {
    let done = fs::read(folder.join(DONE)).ok();
    let done = done.and_then(|text| serde_json::from_slice::<CompletedBuild>(&text).ok());
    // Another file, or none, under the name: the rename did not happen, or the index was replaced since.
    match done.filter(|done| FileIdentity::of(output).is_ok_and(|found| found == done.index)) {
        Some(done) if done.settings == settings => {
            let job = serde_json::from_str::<JobFile<G>>(&done.job).ok();
            Ok(job.map(|job| job.gathered))
        }
        Some(_) => Err(other_build(folder)),
        None => Ok(None),
    }
}

/// Identifies the inputs of a build by name and contents, not by time: if a file was replaced between two attempts, it is another build. In the second
/// identity, only the name of an input that is also the output counts. Both come from one reading, so that they describe the same contents.
pub(super) fn identities(inputs: &[FingerprintSource], output: &Path) -> [String; 2] {
    let sums = inputs.iter().map(|source| content_sum(source.path()));
    let sums: Vec<_> = inputs.iter().zip(sums).collect();
    // The output may be one of the inputs, which are then replaced by the rename.
    [true, false].map(|with_output| {
        let identity = sums.iter().map(|(source, sum)| {
            let counts = with_output || source.path() != output;
            (source.name(), counts.then_some(*sum))
        });
        format!("{:?}", identity.collect::<Vec<_>>())
    })
}

/// Returns the checksum of a file's contents. `None` if it can be read only once.
fn content_sum(path: &Path) -> Option<u64> {
    let mut file = open_regular(path).ok()?;
    let mut sum = HashingStream::new(std::io::sink());
    std::io::copy(&mut file, &mut sum).ok()?;
    Some(sum.digest())
}

/// Error: the folder has an interrupted build that is not the one to resume.
pub(super) fn other_build(folder: &Path) -> BatchError {
    FingerprintSettingsError::OtherJob {
        folder: folder.to_owned(),
        job: "build",
    }
    .into()
}
