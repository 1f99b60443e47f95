//! The job behind `pairs`: writes all verified pairs as lines.

use std::io::Write;
use std::path::Path;

use crate::dedup::counts::InputCounts;
use crate::dedup::job::DedupJob;
use crate::dedup::job_logs::JobLogs;
use crate::dedup::pairs::PairSpool;
use crate::dedup::paragraphs::ParagraphRecords;
use crate::dedup::preparation::PreparedJob;
use crate::dedup::result_lines::write_pair;
use crate::dedup::run::is_recoverable;
use crate::dedup::scan_log::ensure_same;
use crate::dedup::summary::skipped;
use crate::error::{BatchError, OUTPUT};
use crate::folder_refusal::FolderRefusal;
use crate::observer::JobStage;
use crate::settings::PairList;
use crate::skipped::SkippedRow;
use crate::spill::table_memory::max_mapped;
use crate::unfinished::{FOUND, JobFolder, SCANNED, sibling_folder};

/// Name of the log of the input until one of its segments is complete.
const BEGUN: &str = "scanned.part";

/// Summary of `pairs`.
#[derive(Debug, serde::Serialize)]
#[non_exhaustive]
pub struct PairsSummary {
    /// Number of pairs written.
    pub pairs: u64,
    /// Counts of the input.
    #[serde(flatten)]
    pub counts: InputCounts,
    /// Parts that were not read, by kind.
    pub skipped: Vec<SkippedRow>,
    /// True if it reused anything that an interrupted job had read or found.
    pub resumed: bool,
}

impl DedupJob<'_> {
    /// Writes every verified pair, sorted by both ids, one JSON object per line.
    ///
    /// # Errors
    /// [`BatchError`]; if the reader has closed the output, [`BatchError::File`] with an error of kind
    /// [`io::ErrorKind::BrokenPipe`](std::io::ErrorKind::BrokenPipe).
    pub fn write_pairs(&self, out: &mut dyn Write) -> Result<PairsSummary, BatchError> {
        // All pairs, including those of documents whose text is in a collection.
        let all = DedupJob {
            settings: self.settings.clone().pairs(PairList::All),
            limits: self.limits.clone(),
            options: self.options.clone(),
            ..*self
        };
        let logs = all.pairs_logs()?;
        let _tables = all.open_tables();
        let found = all.find_pairs(logs.as_ref());
        let found = found.inspect_err(|error| {
            // The logs stay if a further attempt may succeed.
            if let Some(logs) = logs.as_ref().filter(|_| !is_recoverable(error)) {
                logs.discard();
            }
        });
        let (prepared, spool) = found.map_err(|error| match (error, self.pairs_checkpoint) {
            (BatchError::ResumedInput { name }, Some(checkpoint)) => BatchError::OtherUnfinished {
                folder: checkpoint.path().to_owned(),
                reason: FolderRefusal::ChangedInput { name },
            },
            (error, _) => error,
        })?;
        self.observer.stage(JobStage::Write, 0);
        let scanned = &prepared.scanned;
        let fingerprints = self
            .settings
            .method
            .has_fingerprints()
            .then_some(&scanned.classes);
        let names = self.paragraphs.map(ParagraphRecords::names);
        let mut pairs = 0;
        let written = spool.for_each(&prepared.ranking.by_id, |pair| {
            pairs += 1;
            write_pair(out, &scanned.documents, fingerprints, names, pair)
        });
        written
            .and_then(|()| out.flush())
            .map_err(BatchError::result(Path::new(OUTPUT)))?;
        let counts = InputCounts {
            tables_on_disk: max_mapped(self.folder),
            ..self.counts(&prepared)
        };
        Ok(PairsSummary {
            pairs,
            counts,
            skipped: skipped(self.inputs, scanned, &[]),
            resumed: scanned.is_resumed,
        })
    }

    /// Reads the inputs and finds their pairs. Work that is in a log is not done again.
    fn find_pairs(&self, logs: Option<&JobLogs>) -> Result<(PreparedJob, PairSpool), BatchError> {
        let mut prepared = self.prepare(logs)?;
        self.observer
            .stage(JobStage::Compare, prepared.rank_of.len() as u64);
        let spool = self.join(&mut prepared, logs)?;
        Ok((prepared, spool))
    }

    /// Returns the logs of reading and searching, or `None` if there is no folder for them or too little to read.
    fn pairs_logs(&self) -> Result<Option<JobLogs>, BatchError> {
        let Some(folder) = self.pairs_checkpoint.map(JobFolder::path) else {
            return Ok(None);
        };
        let input = match self.paragraphs {
            // The file of the paragraphs is a new one in each run.
            Some(paragraphs) => paragraphs.origin.clone(),
            None => format!(
                "{}+{}{}",
                self.inputs.fingerprint(),
                self.against_sources,
                self.collection_state(None)?
            ),
        };
        let (logs, identity) = self.described_logs(folder.join(SCANNED), input);
        let same = ensure_same(&logs.scanned, &identity);
        same.map_err(|reason| BatchError::OtherUnfinished {
            folder: folder.to_owned(),
            reason,
        })?;
        Ok(self.are_logs_worthwhile(&logs).then_some(logs))
    }
}

impl JobFolder {
    /// Takes the folder of a [`DedupJob::write_pairs`], which is named after its output with the ending `.pairing`. Unless `resume` is set, removes
    /// what an interrupted job left there.
    ///
    /// # Errors
    /// [`BatchError`]: the folder cannot be created, another job is using it, or it has other contents.
    pub fn of_pairs(output: &Path, resume: bool) -> Result<Self, BatchError> {
        let path = sibling_folder(output, ".pairing");
        // The log of the input comes first, because it vouches for the others.
        let files = [SCANNED, BEGUN, FOUND];
        Self::enter("search for pairs", &path, &files, resume)
    }
}
