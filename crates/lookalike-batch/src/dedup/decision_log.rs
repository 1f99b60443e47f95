//! The log of decisions on classes, on disk. A job that is killed while it compares resumes after the last complete segment.
//!
//! Decisions are made rank by rank, and the order of ranks depends only on ids and contents. So a resumed job, once it has ranked and
//! grouped what it read, needs only the decisions on the first ranks, for any number of threads and any memory.
//!
//! There is one file, `compared.bin`, an [`EntryLog`] with the magic `LOOKCMP3`; a segment is appended after a certain amount of work:
//!
//! ```text
//! u64 ranks that are settled; u64 x 3 what was looked at for them; u64 x 3 numbers of what follows
//! resemblances of classes that join another, by rank, and the ranks that they join; resemblances of visible texts; ranks that
//! were refused as pages
//! ```
//!
//! For columns of ranks, which may have any size, and of resemblances see [`number_column`](crate::dedup::number_column).

use std::io;

use crate::dedup::entry_log::{EntryLog, sealed};
use crate::dedup::hashing_stream::{HashingStream, damaged};
use crate::dedup::job_logs::JobLogs;
use crate::dedup::number_column::{
    ExpectedNumber, read_numbers, read_similarities, write_numbers, write_similarities,
};
use crate::dedup::survivors::SettledRanks;
use crate::spill::table_column::TableColumn;

const MAGIC: [u8; 8] = *b"LOOKCMP3";

/// A log that is open for writing.
pub(crate) struct DecisionLog {
    /// `None` once writing failed, as on a full disk: that ends the log, not the job.
    file: Option<EntryLog>,
    job: u64,
    segment_bytes: u64,
    /// Counts of what the log contains.
    noted: LoggedRanks,
}

/// Counts of what a log contains.
#[derive(Default)]
struct LoggedRanks {
    near: usize,
    visible: usize,
    refused: usize,
    work: u64,
}

impl LoggedRanks {
    fn of(settled: &SettledRanks) -> Self {
        Self {
            near: settled.decisions.near.len(),
            visible: settled.decisions.visible.len(),
            refused: settled.refused.len(),
            work: settled.compared_bytes,
        }
    }
}

impl DecisionLog {
    /// Opens the log and adds its decisions to `settled`. Begins a new log if there is none of the same job. `order` is a hash
    /// of the texts in the order of ranks.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn open(logs: &JobLogs, order: u64, settled: &mut SettledRanks) -> io::Result<Self> {
        // If files changed, the same job has another order of texts, and the decisions in the log are about other
        // ranks.
        let job = logs.job ^ order.rotate_left(32);
        let take = |entry: &[u8]| Ok(take_segment(entry, settled).is_ok());
        let file = EntryLog::open(&logs.compared, MAGIC, job, take)?;
        Ok(Self {
            file: Some(file),
            job,
            segment_bytes: logs.compared_bytes,
            noted: LoggedRanks::of(settled),
        })
    }

    /// Writes a segment with what was settled since the last one, if that was enough work.
    pub(crate) fn note(&mut self, settled: &SettledRanks) {
        let Some(file) = &mut self.file else { return };
        if settled.compared_bytes - self.noted.work < self.segment_bytes {
            return;
        }
        let added = segment(settled, &self.noted)
            .and_then(|segment| file.add(&sealed(self.job, &[&segment])))
            .and_then(|()| file.flush());
        self.noted = LoggedRanks::of(settled);
        if added.is_err() {
            // The job continues without the log. The checksum shows that the last segment is incomplete.
            self.file = None;
        }
    }
}

/// Returns the bytes of a segment.
fn segment(settled: &SettledRanks, noted: &LoggedRanks) -> io::Result<Vec<u8>> {
    let decisions = &settled.decisions;
    let near = &decisions.near[noted.near..];
    let visible = &decisions.visible[noted.visible..];
    let refused = &settled.refused[noted.refused..];
    // Every class that joins another has a resemblance, so these are all that do not survive.
    let survivors = near
        .iter()
        .map(|near| u64::from(decisions.kept[near.number()]));
    let compared = settled.comparisons;
    let numbers = [
        settled.count as u64,
        compared.visits,
        compared.candidates,
        compared.compared,
        near.len() as u64,
        visible.len() as u64,
        refused.len() as u64,
    ];
    let mut bytes: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    write_similarities(&mut bytes, near)?;
    write_numbers(&mut bytes, survivors, ExpectedNumber::Next)?;
    write_similarities(&mut bytes, visible)?;
    let refused = refused.iter().copied().map(u64::from);
    write_numbers(&mut bytes, refused, ExpectedNumber::Next)?;
    Ok(bytes)
}

/// Reads a segment and adds it to `settled`, which is unchanged after an error.
fn take_segment(segment: &[u8], settled: &mut SettledRanks) -> io::Result<()> {
    let file = &mut HashingStream::new(segment);
    let [count, visits, candidates, compared, near, visible, refused] = file.words()?;
    let near = read_similarities(file, near)?;
    let survivors: TableColumn<u32> = read_numbers(file, near.len() as u64, ExpectedNumber::Next)?;
    let visible = read_similarities(file, visible)?;
    let mut refused = read_numbers(file, refused, ExpectedNumber::Next)?;
    let count = usize::try_from(count).map_err(|_| damaged())?;
    let ranks = settled.decisions.len();
    let similar = near.iter().chain(&visible).map(|one| one.number());
    let others = survivors.iter().chain(&refused).map(|&rank| rank as usize);
    // Although the checksum is right, the log is a file, so its ranks are checked.
    if file.passed < segment.len() as u64
        || count < settled.count
        || count > ranks
        || similar.chain(others).any(|rank| rank >= ranks)
    {
        return Err(damaged());
    }
    settled.count = count;
    settled.decisions.join_all(&near, &survivors, &visible);
    settled.refused.append(&mut refused);
    // A segment has the totals so far, not its own counts.
    settled.comparisons.visits = visits;
    settled.comparisons.candidates = candidates;
    settled.comparisons.compared = compared;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::BufWriter;
    use std::sync::Mutex;

    use lookalike_corpus::{InputOptions, Inputs};
    use tempfile::TempDir;

    use super::*;
    use crate::dedup::job::DedupJob;
    use crate::error::BatchError;
    use crate::locks::lock;
    use crate::observer::{JobObserver, JobStage};
    use crate::output_dir::{IfExists, OutputOptions};
    use crate::settings::JobLimits;

    const RANKS: usize = 40;

    fn begun() -> SettledRanks {
        SettledRanks::fixed(2, RANKS)
    }

    /// Settles more ranks: every third joins the one before it, and every ninth has a resemblance of visible texts.
    fn settle_more(settled: &mut SettledRanks, to: usize) {
        for rank in settled.count..to {
            if rank % 3 == 0 {
                let visible = (rank % 9 == 0).then_some(0.5);
                settled
                    .decisions
                    .join(rank as u32, rank as u32 - 1, 0.75, visible);
            }
        }
        settled.refused.push(to as u32 - 1);
        settled.comparisons.visits += 7;
        settled.comparisons.compared += 1;
        settled.compared_bytes += 100;
        settled.count = to;
    }

    fn same(a: &SettledRanks, b: &SettledRanks) -> bool {
        let documents = |settled: &SettledRanks| settled.decisions.documents().collect::<Vec<_>>();
        let counts = |settled: &SettledRanks| (settled.count, settled.comparisons);
        documents(a) == documents(b) && counts(a) == counts(b) && a.refused == b.refused
    }

    fn place(folder: &TempDir, job: u64, segment_bytes: u64) -> JobLogs {
        JobLogs::in_folder(folder.path(), job, segment_bytes)
    }

    /// Returns the ranks that are in a log.
    fn told(place: &JobLogs, order: u64) -> (DecisionLog, SettledRanks) {
        let mut settled = begun();
        (
            DecisionLog::open(place, order, &mut settled).unwrap(),
            settled,
        )
    }

    #[test]
    fn a_log_with_ranks_that_the_job_does_not_have_was_used() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder, 5, 100);
        for (rank, survivor) in [(50, 3), (5, 50)] {
            let mut settled = SettledRanks::fixed(2, 80);
            let mut log = DecisionLog::open(&place, 9, &mut settled).unwrap();
            settled.decisions.join(rank, survivor, 0.75, None);
            settled.compared_bytes += 100;
            settled.count = 10;
            log.note(&settled);
            drop(log);
            assert!(same(&told(&place, 9).1, &begun()), "{rank}");
            place.discard();
        }
    }

    #[test]
    fn a_log_gives_back_its_whole_segments_wherever_it_is_cut_or_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder, 5, 100);
        let (mut log, mut settled) = told(&place, 9);
        let state = |settled: &SettledRanks| {
            let bytes = std::fs::metadata(&place.compared).unwrap().len();
            (bytes, settled.clone())
        };
        let mut states = vec![state(&settled)];
        for to in [10, 13, 31, 40] {
            settle_more(&mut settled, to);
            log.note(&settled);
            states.push(state(&settled));
            // Too little work for another segment.
            settled.compared_bytes += 1;
            log.note(&settled);
            settled.compared_bytes -= 1;
        }
        assert!(states.is_sorted_by(|a, b| a.0 < b.0));
        let whole = std::fs::read(&place.compared).unwrap();
        assert_eq!(whole.len() as u64, states.last().unwrap().0);
        for at in 0..whole.len() {
            let whole_segments = states.partition_point(|state| state.0 <= at as u64);
            let last = whole_segments.checked_sub(1);
            let expected = last.map_or_else(begun, |last| states[last].1.clone());
            let mut changed = whole.clone();
            changed[at] ^= 4;
            for bytes in [&whole[..at], &changed[..]] {
                std::fs::write(&place.compared, bytes).unwrap();
                let (mut log, mut found) = told(&place, 9);
                assert!(same(&found, &expected), "{at}");
                // New segments are appended after the old ones.
                settle_more(&mut found, RANKS);
                log.note(&found);
                assert!(same(&told(&place, 9).1, &found), "{at}");
            }
        }
    }

    #[test]
    fn a_full_disk_deleted_the_decisions_that_were_noted() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder, 5, 100);
        let (mut log, mut settled) = told(&place, 9);
        settle_more(&mut settled, 10);
        log.note(&settled);
        let noted = settled.clone();
        let full = OpenOptions::new().write(true).open("/dev/full");
        log.file.as_mut().unwrap().out = BufWriter::new(full.unwrap());
        for to in [20, 30] {
            settle_more(&mut settled, to);
            log.note(&settled);
        }
        assert!(same(&told(&place, 9).1, &noted));
    }

    #[test]
    fn the_log_of_another_job_or_another_order_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let [own, other] = [5, 6].map(|job| place(&folder, job, 1));
        for (place, order) in [(&other, 9), (&own, 8)] {
            let (mut log, mut settled) = told(&own, 9);
            settle_more(&mut settled, 20);
            log.note(&settled);
            assert!(same(&told(place, order).1, &begun()));
        }
        own.discard();
        assert!(!own.compared.exists());
    }

    /// Observes the comparison stage of a job, and cancels it after this many ranks.
    struct Comparing {
        cancelled_behind: u64,
        stage: Mutex<Option<JobStage>>,
        /// Number of ranks settled at each step.
        steps: Mutex<Vec<u64>>,
    }

    impl Comparing {
        fn up_to(cancelled_behind: u64) -> Self {
            Self {
                cancelled_behind,
                stage: Mutex::default(),
                steps: Mutex::default(),
            }
        }

        fn steps(&self) -> Vec<u64> {
            lock(&self.steps).clone()
        }
    }

    impl JobObserver for Comparing {
        fn stage(&self, stage: JobStage, _: u64) {
            *lock(&self.stage) = Some(stage);
        }

        fn progress(&self, done: u64) {
            if *lock(&self.stage) == Some(JobStage::Compare) {
                lock(&self.steps).push(done);
            }
        }

        fn is_cancelled(&self) -> bool {
            let steps = lock(&self.steps);
            steps
                .last()
                .is_some_and(|&done| done >= self.cancelled_behind)
        }
    }

    /// Records of words from a small pool, a third of which repeat the one before.
    fn records(count: u32) -> String {
        let mut last = String::new();
        let record = |number: u32| {
            let word = |at: u32| format!("w{}", (number * 37 + at * at * 11 + at) % 4001);
            let own = format!("n{number}");
            let words: Vec<String> = (0..20).map(word).chain([own]).collect();
            last = match number % 3 {
                1 => format!("{last} again"),
                _ => words.join(" "),
            };
            format!("{{\"id\":\"{number}\",\"text\":\"{last}\"}}\n")
        };
        (0..count).map(record).collect()
    }

    #[test]
    fn what_was_compared_before_a_job_was_stopped_is_not_compared_again() {
        const BLOCK: u64 = 1024;
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("in.jsonl");
        std::fs::write(&input, records(9000)).unwrap();
        let inputs =
            Inputs::discover(&[input.into()], &InputOptions::default(), folder.path()).unwrap();
        let run = |out: &str, threads, comparing: &Comparing| {
            let job = DedupJob::new(&inputs, folder.path());
            let job = job.checkpoint_bytes(400_000).observer(comparing);
            let job = job.limits(JobLimits::default().threads(threads));
            let options = OutputOptions::default().folder(IfExists::Resume);
            job.dedup(&folder.path().join(out), &options)
        };
        let bytes = |out: &str| {
            let read = |name| std::fs::read(folder.path().join(out).join(name)).unwrap();
            [
                "kept.jsonl",
                "removed.jsonl",
                "clusters.jsonl",
                "pairs.jsonl",
            ]
            .map(read)
        };
        let all = Comparing::up_to(u64::MAX);
        let whole = run("whole", 1, &all).unwrap();
        assert!(whole.decisions.removed_near > 1000);
        let ranks = *all.steps().last().unwrap();
        assert!(ranks > 7 * BLOCK);

        let first = Comparing::up_to(5 * BLOCK);
        assert!(matches!(run("out", 2, &first), Err(BatchError::Cancelled)));
        let second = Comparing::up_to(7 * BLOCK);
        assert!(matches!(run("out", 1, &second), Err(BatchError::Cancelled)));
        let third = Comparing::up_to(u64::MAX);
        let resumed = run("out", 3, &third).unwrap();
        assert!(resumed.resumed);
        // A checkpoint is written about every two blocks, and no more than that is done again.
        for (stopped, resumed) in [(&first, &second), (&second, &third)] {
            let (done, next) = (*stopped.steps().last().unwrap(), resumed.steps()[0] - BLOCK);
            assert!(next > 0 && done - next <= 3 * BLOCK, "{done}, then {next}");
        }
        assert_eq!(third.steps().last(), Some(&ranks));
        assert_eq!(resumed.comparisons, whole.comparisons);
        assert!(bytes("out") == bytes("whole"));
        assert!(!folder.path().join("out/.lookalike").exists());
    }
}
