//! Deduplication of documents in the caller's memory: batches in, decisions out. It writes only temporary files.

use std::convert::Infallible;
use std::path::Path;

use lookalike_corpus::{
    BadRecord, DocumentBatch, HtmlText, InputError, InputOptions, Inputs, Parser, Record,
    RecordPosition, SkippedPart,
};

use crate::dedup::candidate_groups::KeySink;
use crate::dedup::collection::directory::{CollectionWriter, DocumentCollection};
use crate::dedup::decided::DedupDecisions;
use crate::dedup::job::DedupJob;
use crate::dedup::scan::{ScanChunk, scan};
use crate::document_memory::LongestDocument;
use crate::error::BatchError;
use crate::observer::{JobObserver, JobStage, NoProgress, check_cancelled};
use crate::pipeline::InputChunk;
use crate::settings::{JobLimits, JobSettings};

/// Names of the sources, by number: documents to compare with, and documents to decide on.
const SOURCES: [&str; 2] = ["against", "documents"];

/// Deduplication of documents that a caller passes in batches.
///
/// The decisions are those of a [`DedupJob`](crate::DedupJob) over a file with the same ids and texts, and do not depend on threads,
/// memory or batches either. Each batch is read once and dropped.
///
/// ```
/// use lookalike_batch::{DocumentDedup, JobSettings};
/// use lookalike_corpus::InMemoryDocument;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let texts = ["a rose is a rose is a rose", "something else", "A rose is a rose is a rose!"];
/// let batch: Vec<_> = texts.map(InMemoryDocument::of_text).into();
///
/// let folder = tempfile::tempdir()?;
/// let settings = JobSettings::default().threshold(0.9);
/// let job = DocumentDedup::new(folder.path()).settings(settings);
/// let decided = job.decide([batch])?;
///
/// let survivors: Vec<_> = decided.decisions().map(|decision| decision.survivor()).collect();
/// assert_eq!(survivors, [Some(2), None, None]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DocumentDedup<'a> {
    folder: &'a Path,
    settings: JobSettings,
    limits: JobLimits,
    expected_bytes: u64,
    observer: &'a dyn JobObserver,
    collection: Option<&'a DocumentCollection>,
    addition: Option<&'a CollectionWriter>,
    options: InputOptions,
}

/// Default number of bytes of text to expect.
const EXPECTED_BYTES: u64 = 256 << 20;

lookalike::setters! {
    DocumentDedup<'a> {
        /// Sets the settings that decide the result.
        settings: JobSettings,
        /// Sets the resources that the job may use. The result does not depend on them.
        limits: JobLimits,
        /// Sets the approximate number of bytes of text to expect. Only the running time depends on it, not the result.
        expected_bytes: u64,
        /// Sets the observer, which receives the progress and may cancel the job.
        observer: &'a dyn JobObserver,
        /// Sets the options for reading from a file, of which the maximum document size and the extraction of HTML apply here, and, for
        /// collections, the source of categories.
        options: InputOptions,
    }
}

impl<'a> DocumentDedup<'a> {
    /// Creates a job with default settings and limits that writes unnamed temporary files to `folder`.
    pub fn new(folder: &'a Path) -> Self {
        Self {
            folder,
            settings: JobSettings::default(),
            limits: JobLimits::default(),
            expected_bytes: EXPECTED_BYTES,
            observer: &NoProgress,
            collection: None,
            addition: None,
            options: InputOptions::default(),
        }
    }

    /// Sets a collection to compare with, whose documents are never removed: see [`DedupJob::against_collection`]. Those of its documents that
    /// are compared are numbered before the caller's; [`DedupDecisions::new_documents`] returns only the latter.
    #[must_use]
    pub fn against_collection(
        mut self,
        collection: impl Into<Option<&'a DocumentCollection>>,
    ) -> Self {
        self.collection = collection.into();
        self
    }

    /// Sets a collection to which [`DocumentDedup::decide`] adds the documents that it keeps, in one step at the end. A job that is cancelled or
    /// fails before that step adds nothing; see [`DocumentDedup::try_decide_then`]. Documents are compared with it only in the cases that
    /// [`DedupJob::into_collection`] describes.
    #[must_use]
    pub fn into_collection(mut self, writer: impl Into<Option<&'a CollectionWriter>>) -> Self {
        self.addition = writer.into();
        self
    }

    /// Decides on every document.
    ///
    /// With several threads, the batches are fetched on a separate thread.
    ///
    /// # Errors
    /// [`BatchError`]; [`BatchError::Cancelled`] if the observer cancels the job.
    pub fn decide<B: DocumentBatch>(
        &self,
        documents: impl IntoIterator<Item = B, IntoIter: Send>,
    ) -> Result<DedupDecisions, BatchError> {
        self.try_decide([], documents.into_iter().map(Ok::<_, Infallible>))
    }

    /// Decides on documents from iterators that may fail. Those of `against` are compared with and never removed; it may be `[]`. They are
    /// numbered first.
    ///
    /// # Errors
    /// As [`DocumentDedup::decide`]; [`BatchError::Given`] with the error of a batch.
    pub fn try_decide<B: DocumentBatch, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        &self,
        against: impl IntoIterator<Item = Result<B, E>, IntoIter: Send>,
        documents: impl IntoIterator<Item = Result<B, E>, IntoIter: Send>,
    ) -> Result<DedupDecisions, BatchError> {
        self.try_decide_then(against, documents, Ok)
    }

    /// Decides as [`DocumentDedup::try_decide`] does, and returns what `then` makes of the decisions. The documents are added to a collection
    /// only after `then` has succeeded, so that they are not added without a result.
    ///
    /// # Errors
    /// As [`DocumentDedup::try_decide`]; the error of `then`.
    pub fn try_decide_then<
        B: DocumentBatch,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        T,
    >(
        &self,
        against: impl IntoIterator<Item = Result<B, E>, IntoIter: Send>,
        documents: impl IntoIterator<Item = Result<B, E>, IntoIter: Send>,
        then: impl FnOnce(DedupDecisions) -> Result<T, BatchError>,
    ) -> Result<T, BatchError> {
        let inputs = Inputs::given(&SOURCES);
        // For files, this is checked when they are discovered.
        HtmlText::new(self.options.html).map_err(InputError::from)?;
        let job = DedupJob {
            settings: self.settings.clone(),
            limits: self.limits.clone(),
            options: self.options.clone(),
            collection: self.collection,
            addition: self.addition,
            observer: self.observer,
            ..DedupJob::new(&inputs, self.folder).against_sources(1)
        };
        // Documents to compare with come first, because they are recognised by their numbers.
        let chunks = numbered(against, 0).chain(numbered(documents, 1));
        let _tables = job.open_tables();
        let prepared = job.prepare_scan(self.expected_bytes, |plan| {
            let sink = KeySink::new(self.folder, plan.budget.keys());
            let sink = sink.map_err(BatchError::temporary(self.folder))?;
            self.observer.stage(JobStage::Scan, 0);
            let scanned = scan(plan, chunks, &sink, None, self.observer)?;
            let tally = &scanned.tally;
            let is_named = self.options.category.is_some();
            // If the category has a name, the job reports that no document has it.
            if !is_named && tally.categorised == 0 && tally.uncategorised > 0 {
                job.refuse_scope()?;
            }
            Ok((scanned, sink))
        })?;
        let decided = job.choose_survivors(prepared, None)?;
        let Some((staged, writer)) = job.stage_kept(&decided)?.zip(self.addition) else {
            return then(decided);
        };
        let made = then(decided).and_then(|made| {
            // The last chance to cancel: the caller of a cancelled job does not expect an addition.
            check_cancelled(self.observer).map_err(BatchError::temporary(self.folder))?;
            staged.commit(writer)?;
            Ok(made)
        });
        made.inspect_err(|_| staged.discard(writer))
    }
}

/// Numbers the first document of each batch of a source.
fn numbered<B, E, I>(
    batches: I,
    source: u32,
) -> impl Iterator<Item = Result<PositionedBatch<B>, BatchError>>
where
    B: DocumentBatch,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: IntoIterator<Item = Result<B, E>>,
{
    let mut first = 0;
    batches.into_iter().map(move |batch| {
        let batch = batch.map_err(|error| BatchError::Given(error.into()))?;
        let chunk = PositionedBatch {
            source,
            first,
            batch,
        };
        first = u64::saturating_add(first, chunk.batch.len() as u64);
        Ok(chunk)
    })
}

/// A batch with its position.
struct PositionedBatch<B> {
    source: u32,
    /// Number of its first document in the source.
    first: u64,
    batch: B,
}

impl<B: DocumentBatch> InputChunk for PositionedBatch<B> {
    fn held_bytes(&self) -> usize {
        self.batch.bytes()
    }

    fn longest_document(&self) -> LongestDocument {
        let mut longest = LongestDocument {
            bytes: 0,
            place: None,
        };
        let mut record = self.first;
        self.batch.visit(&mut |document| {
            let bytes = document.text.map_or(0, |text| text.len() as u64);
            if bytes > longest.bytes {
                let source = self.source;
                longest = LongestDocument {
                    bytes,
                    place: Some(RecordPosition { source, record }),
                };
            }
            record += 1;
        });
        longest
    }
}

impl<B: DocumentBatch> ScanChunk for PositionedBatch<B> {
    fn skips(&self) -> &[SkippedPart] {
        &[]
    }

    fn read_bytes(&self) -> u64 {
        self.batch.bytes() as u64
    }

    fn content_sum(&self) -> u64 {
        // Documents in memory are never logged.
        0
    }

    fn parse(&self, parser: &mut Parser<'_>, visit: &mut dyn FnMut(Result<Record<'_>, BadRecord>)) {
        parser.parse_given(&self.batch, self.source, self.first, visit);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::panic::AssertUnwindSafe;
    use std::sync::mpsc;
    use std::time::Duration;

    use lookalike_corpus::{InMemoryDocument, OrderField, OrderKey};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::dedup::decided::DedupCluster;
    use crate::output_dir::OutputOptions;
    use crate::settings::{KeepRule, KeepRules, Method, PairList, PairScope};
    use crate::settings_error::{SettingConflict, SettingsError};

    /// A row as the caller has it.
    #[derive(Clone, Debug)]
    struct Row {
        id: String,
        text: Option<String>,
        score: Option<i64>,
        group: Option<String>,
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let text = prop::collection::vec("[ab]{1,2}", 0..9).prop_map(|words| words.join(" "));
        let row = (
            "[a-e]{1,2}",
            prop::option::weighted(0.9, text),
            prop::option::of(-2..3_i64),
            prop::option::of("[xy]"),
        );
        let row = row.prop_map(|(id, text, score, group)| Row {
            id,
            text,
            score,
            group,
        });
        prop::collection::vec(row, 1..40)
    }

    fn given(row: &Row) -> InMemoryDocument<'static> {
        let by_score: OrderField = "max:score".parse().unwrap();
        let order_key = match row.score.map(|score| score.to_string()) {
            // A number borrows nothing, unlike a text.
            Some(score) => match OrderKey::parse(&by_score, &score) {
                OrderKey::Number(number) => OrderKey::Number(number),
                _ => OrderKey::Missing,
            },
            None => OrderKey::Missing,
        };
        InMemoryDocument {
            id: Some(row.id.clone().into()),
            text: row.text.clone().map(Into::into),
            order_key,
            category: row.group.clone().map(Into::into),
            ..InMemoryDocument::default()
        }
    }

    /// Decisions in a simple form: each document's id, and its survivor's id with their similarity and the reason.
    type Told = Vec<(String, Option<(String, f64, &'static str)>)>;

    fn told(decided: &DedupDecisions) -> Told {
        let one = |(document, decision): (u32, crate::DocumentDecision)| {
            let survivor = decision.survivor().map(|survivor| {
                let reason = decision.reason().unwrap();
                let id = decided.id(survivor).to_owned();
                (id, decision.similarity(), reason)
            });
            (decided.id(document).to_owned(), survivor)
        };
        (0..).zip(decided.decisions()).map(one).collect()
    }

    fn of_files(
        settings: &JobSettings,
        options: &InputOptions,
        parts: [&[Row]; 2],
    ) -> DedupDecisions {
        let folder = tempfile::tempdir().unwrap();
        let files = ["old.jsonl", "new.jsonl"].map(|name| folder.path().join(name));
        for (file, rows) in files.iter().zip(parts) {
            let line = |row: &Row| {
                let fields =
                    json!({"id": row.id, "text": row.text, "score": row.score, "group": row.group});
                format!("{fields}\n")
            };
            std::fs::write(file, rows.iter().map(line).collect::<String>()).unwrap();
        }
        let files = files.map(Into::into);
        let inputs = Inputs::discover(&files, options, folder.path()).unwrap();
        let job = DedupJob::new(&inputs, folder.path()).settings(settings.clone());
        let job = job.options(options.clone()).against_sources(1);
        job.decide().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn given_documents_get_the_decisions_of_their_file(
            rows in rows(),
            old in 0..8_usize,
            size in 1..9_usize,
            threads in 1..4_usize,
            method in prop::sample::select(vec![Method::AllPairs, Method::MinHash, Method::Simhash, Method::Exact]),
            scope in prop::sample::select(vec![PairScope::Everything, PairScope::Within, PairScope::Across]),
            keep in prop::sample::select(vec!["longest", "shortest", "first", "max:score,longest"]),
            threshold in 0.3..1.0_f64,
        ) {
            // Both refuse input in which every record lacks a requested field.
            let mut rows = rows;
            rows.push(Row { id: "z".to_owned(), text: Some("a b".to_owned()), score: Some(1), group: Some("x".to_owned()) });
            // Which of two records of the same id and text is renamed depends on their other fields, and a caller's documents have none.
            let key = |row: &Row| (row.id.clone(), row.text.clone().unwrap_or_default());
            rows.sort_by_key(key);
            rows.dedup_by_key(|row| key(row));
            let (old, new) = rows.split_at(old.min(rows.len() - 1));
            let settings = JobSettings { scope, threshold, keep: keep.parse().unwrap(), ..JobSettings::of_method(method) };
            let field = settings.keep.field_rule().map(|_| "max:score".parse().unwrap());
            let category = (scope != PairScope::Everything).then(|| "group".parse().unwrap());
            let options = InputOptions::default().order_field(field).category(category);
            let expected = of_files(&settings, &options, [old, new]);

            let batches = |rows: &[Row]| -> Vec<Result<Vec<InMemoryDocument<'static>>, Infallible>> {
                rows.chunks(size).map(|rows| Ok(rows.iter().map(given).collect())).collect()
            };
            let folder = tempfile::tempdir().unwrap();
            let limits = JobLimits { threads, ..JobLimits::default() };
            let job = DocumentDedup::new(folder.path()).settings(settings).limits(limits);
            let found = job.try_decide(batches(old), batches(new)).unwrap();

            prop_assert_eq!(told(&found), told(&expected));
            prop_assert_eq!(found.against(), old.len());
            let decided: Vec<_> = (0..).zip(found.decisions()).skip(old.len()).collect();
            prop_assert_eq!(found.new_documents().collect::<Vec<_>>(), decided);
            prop_assert_eq!(found.decision_counts(), expected.decision_counts());
            let pairs = |decided: &DedupDecisions| {
                let mut pairs = Vec::new();
                decided.pairs(|pair| { pairs.push(pair); Ok(()) }).unwrap();
                pairs
            };
            prop_assert_eq!(pairs(&found), pairs(&expected));
        }
    }

    fn decide(
        job: &DocumentDedup<'_>,
        texts: &[&'static str],
    ) -> Result<DedupDecisions, BatchError> {
        let batch: Vec<_> = texts
            .iter()
            .map(|text| InMemoryDocument::of_text(*text))
            .collect();
        job.decide([batch])
    }

    #[test]
    fn documents_without_an_id_are_called_by_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let job = DocumentDedup::new(folder.path());
        let decided = decide(&job, &["x y", "x y", "z"]).unwrap();
        assert_eq!([0, 1, 2].map(|number| decided.id(number)), ["0", "1", "2"]);
        let clusters: Vec<_> = decided.clusters().collect();
        let members: &[u32] = &[1];
        assert_eq!(
            clusters,
            [DedupCluster {
                survivor: 0,
                members
            }]
        );
        assert_eq!(decided.counts().repeated_texts, 1);
    }

    #[test]
    fn all_pairs_could_be_shown_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let settings = JobSettings::default().pairs(PairList::All);
        let job = DocumentDedup::new(folder.path()).settings(settings);
        let decided = decide(&job, &["x y", "x y", "x y"]).unwrap();
        for _ in 0..2 {
            let mut pairs = Vec::new();
            let shown = decided.pairs(|pair| {
                pairs.push((pair.a, pair.b));
                Ok(())
            });
            shown.unwrap();
            assert_eq!(pairs, [(0, 1), (0, 2), (1, 2)]);
        }
    }

    #[test]
    fn html_is_reduced_to_what_a_reader_sees() {
        let folder = tempfile::tempdir().unwrap();
        let page = |text: &'static str| InMemoryDocument {
            is_html: true,
            ..InMemoryDocument::of_text(text)
        };
        let batch = vec![
            page("<p>a rose is a rose</p>"),
            page("<div><b>a</b> rose is a rose</div>"),
        ];
        let decided = DocumentDedup::new(folder.path()).decide([batch]).unwrap();
        assert_eq!(decided.decision_counts().removed_exact, 1);
    }

    #[test]
    fn a_caller_that_fails_ends_the_job_with_its_own_error() {
        let folder = tempfile::tempdir().unwrap();
        for threads in [1, 2] {
            let limits = JobLimits {
                threads,
                ..JobLimits::default()
            };
            let job = DocumentDedup::new(folder.path()).limits(limits);
            let batches = [
                Ok(vec![InMemoryDocument::of_text("a")]),
                Err(io::Error::other("column gone")),
            ];
            let error = job.try_decide([], batches).err().unwrap();
            assert!(matches!(error, BatchError::Given(_)), "{error:?}");
            let source = std::error::Error::source(&error).unwrap().to_string();
            assert_eq!(source, "column gone");
            assert!(!error.to_string().contains(&source), "{error}");
        }
    }

    /// Regression test: errors of callers who box them did not compile.
    #[test]
    fn a_boxed_error_of_a_caller_ends_the_job() {
        let folder = tempfile::tempdir().unwrap();
        let batch: Result<Vec<InMemoryDocument<'_>>, Box<dyn std::error::Error + Send + Sync>> =
            Err("column gone".into());
        let error = DocumentDedup::new(folder.path()).try_decide([], [batch]);
        let error = error.err().unwrap();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(source, "column gone");
    }

    #[test]
    fn a_panic_of_the_callers_batches_was_replaced_by_another() {
        let folder = tempfile::tempdir().unwrap();
        for threads in [1, 2] {
            let job = DocumentDedup::new(folder.path());
            let job = job.limits(JobLimits::default().threads(threads));
            let batches = (0..3).map(|number| match number {
                2 => panic!("column gone"),
                _ => vec![InMemoryDocument::of_text("a b c")],
            });
            let decided = AssertUnwindSafe(|| job.decide(batches).map(drop));
            let panic = std::panic::catch_unwind(decided).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"column gone"), "{threads}");
        }
    }

    #[test]
    fn a_job_of_no_threads_waited_for_them_for_ever() {
        let (sender, receiver) = mpsc::channel();
        let decided = std::thread::spawn(move || {
            let folder = tempfile::tempdir().unwrap();
            let limits = JobLimits::default().threads(0);
            let job = DocumentDedup::new(folder.path()).limits(limits);
            let given = decide(&job, &["x y", "x y", "z"]).unwrap();
            let path = folder.path().join("rows.jsonl");
            std::fs::write(&path, "{\"text\":\"x y\"}\n{\"text\":\"z\"}\n").unwrap();
            let options = InputOptions::default();
            let inputs = Inputs::discover(&[path.into()], &options, folder.path()).unwrap();
            let job = DedupJob::new(&inputs, folder.path()).limits(JobLimits::default().threads(0));
            let out = folder.path().join("out");
            let summary = job.dedup(&out, &OutputOptions::default()).unwrap();
            let told = (given.decision_counts().kept, summary.decisions.kept);
            sender.send(told).unwrap();
        });
        let told = receiver.recv_timeout(Duration::from_secs(60));
        assert_eq!(told, Ok((2, 2)));
        decided.join().unwrap();
    }

    #[test]
    fn categories_were_compared_where_no_document_had_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        std::fs::write(&path, "{\"text\":\"x y\",\"group\":\"a\"}\n").unwrap();
        let inputs =
            Inputs::discover(&[path.into()], &InputOptions::default(), folder.path()).unwrap();
        for scope in [PairScope::Within, PairScope::Across] {
            let settings = JobSettings::default().scope(scope);
            let given = DocumentDedup::new(folder.path()).settings(settings.clone());
            let of_files = DedupJob::new(&inputs, folder.path()).settings(settings);
            let ends = [
                decide(&given, &["x y", "x y"]).err(),
                of_files.decide().err(),
            ];
            for end in ends {
                let is_told = matches!(
                    end,
                    Some(BatchError::Settings(SettingsError::Conflict(
                        SettingConflict::ScopeWithoutCategory
                    )))
                );
                assert!(is_told, "{end:?}");
            }
        }
    }

    #[test]
    fn documents_in_memory_were_called_files() {
        let folder = tempfile::tempdir().unwrap();
        let batch = vec![InMemoryDocument::default()];
        let decided = DocumentDedup::new(folder.path()).decide([batch]);
        let refused = decided.err().unwrap().to_string();
        assert!(
            refused.contains("in memory") && !refused.contains("file"),
            "{refused}"
        );
    }

    /// Cancels at a given stage.
    struct CancelAt {
        stage: JobStage,
        is_there: std::sync::atomic::AtomicBool,
    }

    impl JobObserver for CancelAt {
        fn stage(&self, stage: JobStage, _: u64) {
            let is_there = stage == self.stage;
            self.is_there
                .fetch_or(is_there, std::sync::atomic::Ordering::Relaxed);
        }

        fn is_cancelled(&self) -> bool {
            self.is_there.load(std::sync::atomic::Ordering::Relaxed)
        }
    }

    #[test]
    fn a_job_can_be_cancelled_at_every_stage() {
        let folder = tempfile::tempdir().unwrap();
        for stage in [
            JobStage::Scan,
            JobStage::Keys,
            JobStage::Group,
            JobStage::Compare,
        ] {
            let observer = CancelAt {
                stage,
                is_there: false.into(),
            };
            let job = DocumentDedup::new(folder.path()).observer(&observer);
            let ended = decide(&job, &["a b c d e f", "a b c d e f g", "h"]);
            assert!(
                matches!(ended.err(), Some(BatchError::Cancelled)),
                "{stage:?}"
            );
        }
    }

    #[test]
    fn a_job_that_ended_without_a_result_had_added_its_documents() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        let writer = CollectionWriter::lock(&seen).unwrap();
        let is_cancelled = std::sync::atomic::AtomicBool::new(false);
        let job = DocumentDedup::new(folder.path())
            .into_collection(&writer)
            .observer(&is_cancelled);
        let batch = || {
            [Ok::<_, Infallible>(vec![InMemoryDocument::of_text(
                "a b c",
            )])]
        };
        let cancelled = job.try_decide_then([], batch(), |decided| {
            is_cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
            Ok(decided.len())
        });
        assert!(matches!(cancelled, Err(BatchError::Cancelled)));
        is_cancelled.store(false, std::sync::atomic::Ordering::Relaxed);
        let failed: Result<(), _> = job.try_decide_then([], batch(), |_| {
            Err(BatchError::Given("no memory for the table".into()))
        });
        assert!(matches!(failed, Err(BatchError::Given(_))));
        assert!(DocumentCollection::open(&seen).is_err());
        job.try_decide([], batch()).unwrap();
        assert_eq!(DocumentCollection::open(&seen).unwrap().documents(), 1);
    }

    #[test]
    fn an_addition_that_was_cancelled_left_its_segment() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        let writer = CollectionWriter::lock(&seen).unwrap();
        let add = |text: &'static str, is_wanted: bool| {
            let opened = DocumentCollection::open(&seen).ok();
            let job = DocumentDedup::new(folder.path()).into_collection(&writer);
            let job = match &opened {
                Some(opened) => job.against_collection(opened),
                None => job,
            };
            let document = InMemoryDocument {
                id: Some(text.into()),
                ..InMemoryDocument::of_text(text)
            };
            let batch = [Ok::<_, Infallible>(vec![document])];
            let done = job.try_decide_then([], batch, |_| match is_wanted {
                true => Ok(()),
                false => Err(BatchError::Cancelled),
            });
            assert_eq!(done.is_ok(), is_wanted);
        };
        let names = || {
            let files = std::fs::read_dir(&seen).unwrap();
            let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let empty = names();
        add("a b c", false);
        assert_eq!(names(), empty);
        add("a b c", true);
        let one = names();
        add("d e f", false);
        assert_eq!(names(), one);
        assert_eq!(DocumentCollection::open(&seen).unwrap().documents(), 1);
        add("d e f", true);
        assert_eq!(DocumentCollection::open(&seen).unwrap().documents(), 2);
    }

    #[test]
    fn fields_of_the_settings_that_were_not_read_counted_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        std::fs::write(&path, "{\"text\":\"x y\",\"score\":1}\n").unwrap();
        let options = InputOptions::default();
        let inputs = Inputs::discover(&[path.into()], &options, folder.path()).unwrap();
        let keep: KeepRules = "max:score".parse().unwrap();
        let visible = lookalike::Extraction::from(lookalike::HtmlMode::Visible);
        let anchors = "anchors:2".parse().unwrap();
        let settings = JobSettings::default;
        let of = |scheme: lookalike::Scheme| settings().scheme(scheme);
        let cases = [
            (
                settings().keep(keep.clone()),
                SettingConflict::KeepFieldNotRead,
            ),
            (
                of(settings().scheme.html(visible)),
                SettingConflict::OtherHtml,
            ),
            (
                of(settings().scheme.fields(anchors)),
                SettingConflict::OtherFields,
            ),
        ];
        let is_told = |end: Option<BatchError>, conflict| {
            let told = matches!(&end, Some(BatchError::Settings(SettingsError::Conflict(found))) if *found == conflict);
            assert!(told, "{conflict:?}: {end:?}");
        };
        for (settings, conflict) in cases {
            let job = DedupJob::new(&inputs, folder.path()).settings(settings.clone());
            is_told(job.decide().err(), conflict);
            // Keys and fields come with documents in memory, but pages are still to be extracted.
            if conflict == SettingConflict::OtherHtml {
                let given = DocumentDedup::new(folder.path()).settings(settings);
                is_told(decide(&given, &["x"]).err(), conflict);
            }
        }
        let read = options.order_field(keep.order_field().unwrap());
        let job = DedupJob::new(&inputs, folder.path()).settings(settings().keep(keep));
        let decided = job.options(read).decide().unwrap();
        assert_eq!(decided.decision_counts().kept, 1);
    }

    #[test]
    fn the_order_of_keep_rules_is_that_of_the_callers_values() {
        let folder = tempfile::tempdir().unwrap();
        let by_date: OrderField = "newest:date".parse().unwrap();
        let dated = |json: &'static str| InMemoryDocument {
            order_key: OrderKey::parse(&by_date, json),
            ..InMemoryDocument::of_text("same")
        };
        let batch = vec![
            dated("\"2024-01-01\""),
            dated("\"2025-01-01\""),
            dated("null"),
        ];
        let keep = KeepRules::from(KeepRule::Newest("date".to_owned()));
        let settings = JobSettings {
            keep,
            ..JobSettings::default()
        };
        let decided = DocumentDedup::new(folder.path())
            .settings(settings)
            .decide([batch])
            .unwrap();
        let survivors: Vec<_> = decided.decisions().map(|d| d.survivor()).collect();
        assert_eq!(survivors, [Some(1), None, Some(1)]);
    }
}
