//! Saves the pairs that a join has found next to its output, so that a join that is killed can be resumed.
//!
//! The file `pairs` holds sorted runs of pairs. `job.json`, which is replaced atomically, lists the runs and the work that they complete: some tables
//! of a self-join, some bands of sketches, or the first fingerprints of a stream. Work that is repeated only finds the same pairs again, and each is
//! written once in the end. A resumed join reads all fingerprints again and checks by a digest that they are unchanged, but does not compare them
//! again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use lookalike_hamming::JoinedTables;
use serde::{Deserialize, Serialize};

use super::stream_position::StreamedPart;
use crate::dedup::hashing_stream::HashingStream;
use crate::error::BatchError;
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::spill::frame_sort::FrameRun;
use crate::unfinished::{JOB, JobFolder, save, sibling_folder};

const PAIRS: &str = "pairs";

/// Contents of `job.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct JoinState {
    /// Everything that the pairs depend on, except the contents of the files.
    settings: String,
    /// Digest of the fingerprints in memory.
    held: u64,
    /// Number of finished tables or bands, and number of all.
    tables: [usize; 2],
    /// Digest of the bits that the tables use.
    design: u64,
    /// The streamed fingerprints that are done.
    pub(super) streamed: StreamedPart,
    /// Sorted runs of pairs on disk.
    pub(super) runs: Vec<FrameRun>,
}

impl JoinState {
    pub(super) fn tables(&self) -> JoinedTables {
        let [done, all] = self.tables;
        let design = self.design;
        JoinedTables { done, all, design }
    }
}

impl JobFolder {
    /// Enters the folder of a [`FingerprintJoin`](crate::FingerprintJoin), which is named after its output with the ending `.joining`. Unless
    /// `resume` is true, removes what an interrupted join left there.
    ///
    /// # Errors
    /// [`BatchError`] if the folder cannot be created, if another join is using it, or if it has other contents.
    pub fn of_join(output: &Path, resume: bool) -> Result<Self, BatchError> {
        let path = sibling_folder(output, ".joining");
        Self::enter("join", &path, &[JOB, PAIRS], resume)
    }
}

/// Saved state of a join, with its folder.
pub(super) struct JoinCheckpoint {
    folder: PathBuf,
    pub(super) state: JoinState,
}

impl JoinCheckpoint {
    /// Resumes from what an interrupted join left if its settings and fingerprints in memory are the same, or starts anew. The returned file
    /// contains the runs.
    pub(super) fn open(
        checkpoint: &JobFolder,
        settings: String,
        held: u64,
    ) -> Result<(Self, File), BatchError> {
        let folder = checkpoint.path().to_owned();
        let path = folder.join(PAIRS);
        let failed = BatchError::result(&path);
        let left = fs::read(folder.join(JOB)).ok();
        let left = left.and_then(|text| serde_json::from_slice::<JoinState>(&text).ok());
        if let Some(state) = &left {
            if state.settings != settings {
                let job = "join";
                return Err(FingerprintSettingsError::OtherJob { folder, job }.into());
            }
            // The settings are the same, so it is the same job over other fingerprints: resuming would mix pairs of both.
            if state.held != held {
                return Err(FingerprintSettingsError::ChangedInputs.into());
            }
        }
        let mut file = OpenOptions::new();
        let file = file.read(true).write(true).create(true).truncate(false);
        let file = file.open(&path).map_err(&failed)?;
        // If the runs are not valid, start anew.
        let state = left.filter(|state| are_whole(&file, &state.runs).unwrap_or(false));
        let state = state.unwrap_or(JoinState {
            settings,
            held,
            ..JoinState::default()
        });
        let end = state.runs.last().map_or(0, |run| run.end);
        // This cuts off what was written after the state was last saved; the work that found it is repeated.
        file.set_len(end).map_err(&failed)?;
        Ok((Self { folder, state }, file))
    }

    /// Saves that the runs, which must be on disk, hold all pairs of some tables and of the first streamed fingerprints.
    pub(super) fn save(
        &mut self,
        runs: &[FrameRun],
        tables: JoinedTables,
        streamed: StreamedPart,
    ) -> Result<(), BatchError> {
        self.state.runs = runs.to_vec();
        self.state.tables = [tables.done, tables.all];
        self.state.design = tables.design;
        self.state.streamed = streamed;
        let text = serde_json::to_vec(&self.state).unwrap_or_default();
        save(&self.folder.join(JOB), &text)
    }
}

/// Tells whether the file contains all runs, one after another, as they were written.
fn are_whole(mut file: &File, runs: &[FrameRun]) -> io::Result<bool> {
    file.rewind()?;
    let mut at = 0;
    for run in runs {
        let Some(length) = run.end.checked_sub(run.start).filter(|_| run.start == at) else {
            return Ok(false);
        };
        let mut sum = HashingStream::new(io::sink());
        let copied = io::copy(&mut BufReader::new(file.take(length)), &mut sum)?;
        if copied < length || sum.digest() != run.check {
            return Ok(false);
        }
        // The buffer may have read too far.
        at = run.end;
        file.seek(SeekFrom::Start(at))?;
    }
    Ok(true)
}
