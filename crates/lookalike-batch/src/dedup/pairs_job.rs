//! `pairs`: all verified pairs, as lines to one stream.

use std::io::Write;
use std::path::Path;

use crate::dedup::counts::InputCounts;
use crate::dedup::job::DedupJob;
use crate::dedup::pair_log::PairLogPlace;
use crate::dedup::pairs::PairSpool;
use crate::dedup::paragraphs::ParagraphRecords;
use crate::dedup::preparation::PreparedJob;
use crate::dedup::result_lines::write_pair;
use crate::dedup::run::may_be_mended;
use crate::dedup::scan_log::ScanLogPlace;
use crate::dedup::summary::skipped;
use crate::error::{BatchError, OUTPUT};
use crate::folder_refusal::FolderRefusal;
use crate::observer::JobStage;
use crate::output_dir::JobIdentity;
use crate::settings::PairList;
use crate::skipped::SkippedRow;
use crate::spill::table_memory::most_mapped;
use crate::unfinished::{FOUND, JobFolder, SCANNED, folder_beside};

/// The name of the log of what was read until a segment of it is whole.
const BEGUN: &str = "scanned.part";

/// Summary of `pairs`.
#[derive(Debug, serde::Serialize)]
#[non_exhaustive]
pub struct PairsSummary {
    /// Pairs written.
    pub pairs: u64,
    /// Counts of what was read.
    #[serde(flatten)]
    pub counts: InputCounts,
    /// Parts that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
    /// True if it took over anything that an interrupted job had read or found.
    pub resumed: bool,
}

/// Places of the logs that a search for pairs leaves while it reads and while it compares.
struct PairsLogs {
    scan: ScanLogPlace,
    pairs: PairLogPlace,
}

impl DedupJob<'_> {
    /// Writes every verified pair, sorted by both ids, one JSON object a line.
    ///
    /// # Errors
    /// [`BatchError`]; one of kind [`io::ErrorKind::BrokenPipe`](std::io::ErrorKind::BrokenPipe) inside [`BatchError::File`] when the
    /// reader is gone.
    pub fn write_pairs(&self, out: &mut dyn Write) -> Result<PairsSummary, BatchError> {
        // All pairs of documents whose text a collection has, too.
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
            if let Some(logs) = logs.as_ref().filter(|_| !may_be_mended(error)) {
                logs.forget();
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
        let written = spool.each(&prepared.ranking.by_id, |pair| {
            pairs += 1;
            write_pair(out, &scanned.documents, fingerprints, names, pair)
        });
        written
            .and_then(|()| out.flush())
            .map_err(BatchError::result(Path::new(OUTPUT)))?;
        let counts = InputCounts {
            tables_on_disk: most_mapped(self.folder),
            ..self.counts(&prepared)
        };
        Ok(PairsSummary {
            pairs,
            counts,
            skipped: skipped(self.inputs, scanned, &[]),
            resumed: scanned.is_resumed,
        })
    }

    /// Reads the inputs and finds their pairs. What a log has is not made again.
    fn find_pairs(&self, logs: Option<&PairsLogs>) -> Result<(PreparedJob, PairSpool), BatchError> {
        let mut prepared = self.prepare(logs.map(|logs| &logs.scan))?;
        self.observer
            .stage(JobStage::Compare, prepared.rank_of.len() as u64);
        let spool = self.join(&mut prepared, logs.map(|logs| &logs.pairs))?;
        Ok((prepared, spool))
    }

    /// The logs of what is read and found, where there is a place for them and enough to be read.
    fn pairs_logs(&self) -> Result<Option<PairsLogs>, BatchError> {
        let Some(folder) = self.pairs_checkpoint.map(JobFolder::path) else {
            return Ok(None);
        };
        let input = match self.paragraphs {
            // Their own file is a new one in each run.
            Some(paragraphs) => paragraphs.origin.clone(),
            None => self.inputs.fingerprint(),
        };
        let identity = JobIdentity {
            settings: format!("{} {}", self.settings.canonical(), self.options.canonical()),
            input,
        };
        let description = serde_json::to_string(&identity).expect("texts are JSON");
        let scan = ScanLogPlace {
            description: description.clone(),
            ..self.scan_log_place(folder.join(SCANNED), &description)
        };
        let there = scan.found_description();
        let there = there.and_then(|there| serde_json::from_slice::<JobIdentity>(&there).ok());
        let same = there.map_or(Ok(()), |there| identity.ensure_same(there));
        same.map_err(|reason| BatchError::OtherUnfinished {
            folder: folder.to_owned(),
            reason,
        })?;
        let pairs = PairLogPlace {
            path: folder.join(FOUND),
            job: scan.job,
        };
        let logs = PairsLogs { scan, pairs };
        Ok(self.is_worth_a_log(&logs.scan).then_some(logs))
    }
}

impl JobFolder {
    /// Takes the folder of a [`DedupJob::write_pairs`], which has the name of its output with the ending `.pairing`. Without `resume`, what an
    /// interrupted job left there is removed.
    ///
    /// # Errors
    /// [`BatchError`]: the folder cannot be made, another job is at work in it, or something else is in it.
    pub fn of_pairs(output: &Path, resume: bool) -> Result<Self, BatchError> {
        let path = folder_beside(output, ".pairing");
        // The log of what was read tells of the other.
        let files = [SCANNED, BEGUN, FOUND];
        Self::enter("search for pairs", &path, &files, resume)
    }
}

impl PairsLogs {
    fn forget(&self) {
        self.scan.forget();
        self.pairs.forget();
    }
}
