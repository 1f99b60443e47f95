//! Results of `dedup`: clusters, pairs and records, each file written atomically.
//!
//! Decisions come from a [`DecisionCheckpoint`], so that a resumed job writes what it had decided; records are read again.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use lookalike_corpus::{
    AtomicFile, BufferPool, Compression, FileTree, Inputs, OutputFormat, RawChunk, RawRecord,
    ReadError, RecordPart, STATE_FOLDER as STATE, Source, TransferError, path_text, raw_chunks,
};
use serde::Serialize;

use crate::dedup::checkpoint::DecisionCheckpoint;
use crate::dedup::counts::WrittenBytes;
use crate::dedup::decision::ClusterTable;
use crate::dedup::job::DedupJob;
use crate::dedup::record_cursor::DocumentNumbers;
use crate::dedup::record_router::{KEPT, REMOVED, RecordRouter, RouteWorker, RoutedRecords};
use crate::dedup::report_examples::{RECORD_BYTES, ReportExamples};
use crate::dedup::result_lines::{write_annotation, write_cluster, write_in_pieces};
use crate::document_memory::DocumentMemory;
use crate::error::BatchError;
use crate::observer::JobStage;
use crate::output_dir::{OutputDir, OutputOptions};
use crate::parallel::inverse;
use crate::pipeline::run_in_order;
use crate::settings::RecordOrder;
use crate::settings_error::SettingsError;
use crate::spill::arrange::{ExpectedRecords, RecordArranger};

/// Example lines with all fields, as schemas of tables without rows.
pub(super) const PAIR: &str =
    r#"{"a":"","b":"","similarity":0.5,"visible_similarity":0.5,"against":""}"#;
pub(super) const PAIR_WITH_DISTANCE: &str =
    r#"{"a":"","b":"","similarity":0.5,"visible_similarity":0.5,"distance":0,"against":""}"#;
const CLUSTER: &str = r#"{"cluster":1,"survivor":"","against":true,"members":[{"id":"","similarity":0.5,"visible_similarity":0.5,"reason":""}]}"#;

const ANNOTATION: &str = r#"{"id":"","cluster_id":1,"cluster_size":1,"survivor_id":"","similarity":0.5,"reason":"","representative_id":"","is_duplicate":true}"#;

/// Chunks on their way to the results take one part in this many of the memory.
const CHUNKS_SHARE: u64 = 16;
/// Each of the two files of records is compressed in one part in this many of the memory.
const COMPRESSION_SHARE: u64 = 16;

/// Writes everything that follows from the decisions.
pub(super) struct ResultWriter<'a> {
    pub(super) job: &'a DedupJob<'a>,
    pub(super) place: &'a OutputDir<'a>,
    pub(super) checkpoint: &'a DecisionCheckpoint,
    pub(super) options: &'a OutputOptions,
}

/// `kept.jsonl` or `removed.jsonl`, while it is written.
struct RecordFile {
    /// `None` if no source has lines.
    file: Option<AtomicFile>,
    name: &'static str,
    /// For error messages.
    path: PathBuf,
    bytes: u64,
}

impl RecordFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.write_all(bytes),
            None => Ok(()),
        }
    }
}

/// Collector of the second pass, which receives records in input order.
struct RecordIntake<'a> {
    router: &'a RecordRouter<'a>,
    inputs: &'a Inputs,
    tree: &'a FileTree,
    files: &'a mut [RecordFile; 2],
    examples: &'a mut ReportExamples,
}

#[derive(Serialize)]
struct FileLine<'a> {
    id: &'a str,
    file: std::borrow::Cow<'a, str>,
}

impl ResultWriter<'_> {
    /// Writes clusters and records, and returns their part of the report.
    pub(super) fn write(&self) -> Result<crate::report::ReportData, BatchError> {
        let checkpoint = self.checkpoint;
        let (documents, outcomes) = (&checkpoint.documents, &checkpoint.outcomes);
        let threads = self.job.limits.workers();
        let id_ranks = inverse(&checkpoint.by_id, threads);
        let clusters = ClusterTable::new(&checkpoint.by_id, &id_ranks, outcomes, threads);
        let format = self.options.format;
        self.place
            .write_lines("clusters", format, CLUSTER, &mut |out| {
                let members = |number| clusters.get(number).1.len();
                write_in_pieces(out, clusters.len(), threads, members, |out, number| {
                    let (survivor, members) = clusters.get(number);
                    let number = number as u64 + 1;
                    write_cluster(out, documents, number, survivor, members, outcomes)
                })
            })?;
        if self.options.annotate {
            self.write_annotations(&clusters)?;
        }
        // Before the records are written, because their texts are collected on the way.
        let mut examples = ReportExamples::choose(checkpoint, &clusters);
        let written = self.write_records(&id_ranks, &mut examples)?;
        examples.report(
            self.job,
            self.checkpoint,
            &clusters,
            written,
            &self.place.state("examples"),
        )
    }

    /// Writes the decision on each document, in the order of the input.
    fn write_annotations(&self, clusters: &ClusterTable) -> Result<(), BatchError> {
        let DecisionCheckpoint {
            documents,
            outcomes,
            ..
        } = self.checkpoint;
        let numbers = clusters.numbers(documents.len());
        let cluster = |document: usize| {
            let number = numbers[document].checked_sub(1)? as usize;
            Some((number as u64 + 1, clusters.get(number).1.len() as u64 + 1))
        };
        let (first, threads) = (documents.against, self.job.limits.workers());
        let count = documents.len() - first;
        let format = self.options.format;
        self.place
            .write_lines("annotations", format, ANNOTATION, &mut |out| {
                write_in_pieces(
                    out,
                    count,
                    threads,
                    |_| 1,
                    |out, at| {
                        let document = first + at;
                        let outcome = outcomes.get(document);
                        write_annotation(out, documents, document, outcome, cluster(document))
                    },
                )
            })
    }

    /// Reads the input again and writes every document at its place in the file it belongs to.
    fn write_records(
        &self,
        places: &[u32],
        examples: &mut ReportExamples,
    ) -> Result<WrittenBytes, BatchError> {
        let inputs = self.job.new_inputs();
        let tree = FileTree::new(&inputs);
        let in_order = self.job.settings.order == RecordOrder::Input || self.is_in_order();
        let has_lines = has_lines(self.options.format, &inputs.sources);
        let mut files = self.open(has_lines, &inputs)?;
        // Input in the order of ids is written as it arrives, without partitions.
        let arranger = match has_lines && !in_order {
            true => Some(self.arranger(&inputs)?),
            false => None,
        };
        let shown = examples.needed_documents();
        let paths = files.each_ref().map(|file| file.path.clone());
        let router = RecordRouter {
            numbers: DocumentNumbers::new(self.checkpoint, self.job.against_sources),
            outcomes: &self.checkpoint.outcomes,
            places,
            arranger: arranger.as_ref(),
            paths: &paths,
            has_lines,
            shown: &shown,
            shown_bytes: RECORD_BYTES,
            buffers: BufferPool::default(),
        };
        let observer = self.job.observer;
        observer.stage(JobStage::Write, self.checkpoint.documents.len() as u64);
        let mut intake = RecordIntake {
            router: &router,
            inputs: &inputs,
            tree: &tree,
            files: &mut files,
            examples,
        };
        let beside_tables = self.options.format == OutputFormat::Parquet;
        let chunks = raw_chunks(&inputs, &self.job.options, beside_tables);
        let limits = &self.job.limits;
        let workers = (0..limits.workers())
            .map(|_| RouteWorker(&router))
            .collect();
        let memory = DocumentMemory::of_chunks(limits.memory / CHUNKS_SHARE);
        // A failure from here on costs only the writing: the checkpoint has the decisions.
        run_in_order(chunks, memory, observer, workers, |routed| {
            self.take_all(routed, &mut intake)
        })?;
        // They were copied before the checkpoint was written.
        let copied = self.checkpoint.head.copied;
        let written = WrittenBytes {
            kept: files[KEPT].bytes,
            removed: files[REMOVED].bytes,
            skipped: copied.bytes,
            skipped_files: copied.files,
        };
        self.finish(files, arranger.as_ref())?;
        Ok(written)
    }

    fn take_all(
        &self,
        routed: Vec<RoutedRecords>,
        intake: &mut RecordIntake<'_>,
    ) -> Result<(), BatchError> {
        let mut routed = routed.into_iter();
        routed.try_for_each(|records| self.take(records, intake))
    }

    /// Writes the records of a chunk with a part of a long record.
    fn take_long(&self, chunk: &RawChunk, intake: &mut RecordIntake<'_>) -> Result<(), BatchError> {
        let router = intake.router;
        let mut routed = Vec::new();
        chunk.visit(&mut |record: RawRecord<'_>| {
            if matches!(record.part, RecordPart::Whole | RecordPart::File) {
                return router.route(&record, &mut routed);
            }
            // Write the lines before it first, because the parts of this record are written at once.
            self.take_all(std::mem::take(&mut routed), intake)?;
            let Some(document) = router.numbers.of(record.source, record.number) else {
                return Ok(());
            };
            self.take_part(document, record.bytes, intake)?;
            match record.part {
                RecordPart::Last => self.take_part(document, b"\n", intake),
                _ => Ok(()),
            }
        })?;
        self.take_all(routed, intake)
    }

    /// Writes a part of a long record.
    fn take_part(
        &self,
        document: usize,
        bytes: &[u8],
        intake: &mut RecordIntake<'_>,
    ) -> Result<(), BatchError> {
        let router = intake.router;
        let destination = router.destination(document);
        let file = &mut intake.files[destination];
        file.bytes += bytes.len() as u64;
        let done = match router.arranger {
            Some(arranger) => arranger.add_long(destination, router.places[document], bytes),
            None => file.write(bytes),
        };
        done.map_err(BatchError::result(&router.paths[destination]))
    }

    /// Writes a thread's result for some records, unless it was passed to the arranger.
    fn take(
        &self,
        records: RoutedRecords,
        intake: &mut RecordIntake<'_>,
    ) -> Result<(), BatchError> {
        let router = intake.router;
        match records {
            RoutedRecords::File { source } => self.take_file(source, intake),
            RoutedRecords::Long(chunk) => self.take_long(&chunk, intake),
            RoutedRecords::Lines(lines) => {
                for (document, line) in lines.shown {
                    intake.examples.collect_line(document, &line);
                }
                for destination in [KEPT, REMOVED] {
                    let file = &mut intake.files[destination];
                    file.bytes += lines.counts[destination];
                    file.write(&lines.bytes[destination])
                        .map_err(BatchError::result(&router.paths[destination]))?;
                }
                self.job.observer.progress(lines.end as u64);
                Ok(())
            }
        }
    }

    /// Writes a file, or a table, where it belongs.
    fn take_file(&self, source: u32, intake: &mut RecordIntake<'_>) -> Result<(), BatchError> {
        let RecordIntake { inputs, tree, .. } = *intake;
        if is_split(self.options.format, &inputs.sources[source as usize]) {
            let paths = [KEPT, REMOVED].map(|destination| {
                let name = intake.files[destination].name;
                self.place.path(table_name(name, inputs, tree, source))
            });
            let bytes = self.split(source, &paths, intake)?;
            intake.files[KEPT].bytes += bytes[KEPT];
            intake.files[REMOVED].bytes += bytes[REMOVED];
            return Ok(());
        }
        // A file is the only record of its source.
        let Some(document) = intake.router.numbers.of(source, 0) else {
            return Ok(());
        };
        self.job.observer.progress(document as u64);
        self.copy(source, document, intake)
    }

    /// Copies a file to the folder of kept or removed files, and writes its line.
    fn copy(
        &self,
        source: u32,
        document: usize,
        intake: &mut RecordIntake<'_>,
    ) -> Result<(), BatchError> {
        let (router, inputs, tree) = (intake.router, intake.inputs, intake.tree);
        let destination = router.destination(document);
        let file = &mut intake.files[destination];
        let folder = self.place.path(file.name);
        let to = Path::new(file.name).join(tree.path(source));
        let copied = tree.copy(inputs, source, &folder, self.options.transfer);
        let found = &inputs.sources[source as usize];
        file.bytes += copied.map_err(|error| match error {
            TransferError::Source(cause) => BatchError::from(match cause.downcast::<ReadError>() {
                Ok(unread) => unread,
                Err(cause) => ReadError::Io {
                    name: found.name().into_owned(),
                    cause,
                },
            }),
            TransferError::Output(cause) => BatchError::result(&self.place.path(&to))(cause),
        })?;
        intake.examples.collect_file(document as u32, found);
        let line = serde_json::to_vec(&FileLine {
            id: self.checkpoint.documents.id(document),
            file: path_text(&to),
        });
        let write = |line: Vec<u8>| match router.arranger {
            Some(arranger) => arranger.add_line(destination, router.places[document], &line),
            None => file.write(&[&line[..], b"\n"].concat()),
        };
        line.map_err(io::Error::from)
            .and_then(write)
            .map_err(BatchError::result(&router.paths[destination]))
    }

    /// Writes the rows of a table to the tables of kept and of removed rows, and returns the bytes of both.
    fn split(
        &self,
        source: u32,
        paths: &[PathBuf; 2],
        intake: &mut RecordIntake<'_>,
    ) -> Result<[u64; 2], BatchError> {
        let RecordIntake { router, inputs, .. } = *intake;
        let mut choose = |number: u64, line: &dyn Fn() -> Vec<u8>| {
            // An unreadable row is in neither table.
            let document = router.numbers.of(source, number)?;
            if document.is_multiple_of(4096) {
                self.job.observer.progress(document as u64);
            }
            if intake.examples.needs_document(document as u32) {
                intake.examples.collect_line(document as u32, &line());
            }
            Some(router.destination(document))
        };
        let [kept, removed] = paths;
        let source_name = || inputs.sources[source as usize].name().into_owned();
        let split = inputs
            .split_table(source, &self.job.options, [kept, removed], &mut choose)
            .map_err(|error| match error.downcast::<ReadError>() {
                Ok(unread) => BatchError::from(unread),
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    BatchError::from(SettingsError::NotParquet {
                        source_name: source_name(),
                        reason: error.to_string(),
                    })
                }
                // It may concern either table.
                Err(error) => BatchError::result(self.place.folder)(error),
            })?;
        let number = self.job.against_sources + source as usize;
        let rows = split.map_or(0, |split| split.rows);
        // If a table was changed meanwhile, its rows would be split by decisions on other rows.
        if rows != self.checkpoint.records[number] {
            return Err(BatchError::Read(ReadError::Changed {
                name: source_name(),
            }));
        }
        Ok(split.map_or([0; 2], |split| split.bytes))
    }

    fn finish(
        &self,
        files: [RecordFile; 2],
        arranger: Option<&RecordArranger>,
    ) -> Result<(), BatchError> {
        let mut whole = Vec::new();
        for (destination, RecordFile { file, path, .. }) in files.into_iter().enumerate() {
            let Some(mut file) = file else { continue };
            if let Some(arranger) = arranger {
                arranger
                    .finish(destination, &mut file)
                    .map_err(BatchError::result(&path))?;
            }
            whole.push((file, path));
        }
        match self.options.format {
            OutputFormat::JsonLines => whole
                .into_iter()
                .try_for_each(|(file, path)| file.commit().map_err(BatchError::result(&path))),
            // Both together: tables get the columns of both files, which are known now that all lines have been written.
            OutputFormat::Parquet => {
                AtomicFile::commit_all(whole.into_iter().map(|(file, _)| file).collect())
                    .map_err(BatchError::result(self.place.folder))
            }
        }
    }

    fn open(&self, has_lines: bool, inputs: &Inputs) -> Result<[RecordFile; 2], BatchError> {
        let compression = self
            .options
            .compression
            .unwrap_or_else(|| common_compression(&inputs.sources));
        let open = |name| -> Result<RecordFile, BatchError> {
            let file_name = record_file_name(name, self.options.format, compression);
            let path = self.place.path(file_name);
            let file = has_lines.then(|| self.open_file(&path, compression));
            Ok(RecordFile {
                file: file.transpose()?,
                name,
                path,
                bytes: 0,
            })
        };
        Ok([open("kept")?, open("removed")?])
    }

    fn arranger(&self, inputs: &Inputs) -> Result<RecordArranger, BatchError> {
        let budget = self.job.memory().records();
        // Compressed input may become many times larger when it is read; then the text is the better estimate.
        let bytes = inputs
            .total_bytes()
            .max(self.checkpoint.head.counts.text_bytes);
        let expected = ExpectedRecords {
            places: self.checkpoint.documents.len(),
            bytes,
        };
        let temporary = self.place.folder.join(STATE);
        // One output for kept records, and one for removed ones.
        let threads = self.job.limits.workers();
        RecordArranger::new(&temporary, 2, &expected, budget, threads)
            .map_err(BatchError::temporary(&temporary))
    }

    fn open_file(&self, path: &Path, compression: Compression) -> Result<AtomicFile, BatchError> {
        let file = match self.options.format {
            OutputFormat::JsonLines => {
                let limits = &self.job.limits;
                let memory = limits.memory / COMPRESSION_SHARE;
                AtomicFile::create_on(path, compression, limits.workers(), memory)
            }
            OutputFormat::Parquet => AtomicFile::lines(path, OutputFormat::Parquet, ""),
        };
        file.map_err(BatchError::result(path))
    }

    /// Returns true if the input is already in the order of ids.
    fn is_in_order(&self) -> bool {
        let against = self.checkpoint.documents.against;
        // Others are not written, so it does not matter where they are.
        self.checkpoint
            .by_id
            .iter()
            .filter(|&&document| document as usize >= against)
            .is_sorted()
    }
}

pub(super) fn record_file_name(
    name: &str,
    format: OutputFormat,
    compression: Compression,
) -> String {
    match format {
        OutputFormat::JsonLines => format!("{name}.jsonl{}", compression.suffix()),
        OutputFormat::Parquet => format!("{name}.parquet"),
    }
}

/// Returns true if the rows of a source go to separate tables.
pub(super) fn is_split(format: OutputFormat, source: &Source) -> bool {
    format == OutputFormat::Parquet && source.is_typed_table()
}

/// Returns true if any record is written as a line.
fn has_lines(format: OutputFormat, sources: &[Source]) -> bool {
    sources.is_empty() || sources.iter().any(|source| !is_split(format, source))
}

/// Returns the path for the rows of a table: `kept.parquet` if there is no other source, otherwise its path below `kept/`.
pub(super) fn table_name(name: &str, inputs: &Inputs, tree: &FileTree, source: u32) -> PathBuf {
    match inputs.sources.len() {
        1 => PathBuf::from(format!("{name}.parquet")),
        _ => Path::new(name).join(tree.path(source)),
    }
}

/// Returns the compression that all sources of records have, or none if they differ; a compression that is read but not written becomes zstd.
pub(super) fn common_compression(sources: &[Source]) -> Compression {
    let mut lines = sources.iter().filter(|source| !source.is_document());
    let first = lines
        .next()
        .map_or(Compression::None, |source| source.compression);
    match first {
        _ if lines.any(|source| source.compression != first) => Compression::None,
        // These can be read, but not written.
        Compression::Bzip2 | Compression::Xz => Compression::Zstd,
        first => first,
    }
}

#[cfg(test)]
mod tests {
    use lookalike_corpus::InputOptions;

    use super::*;
    use crate::observer::JobObserver;

    /// Creates a folder where a file is to be put, once the file is being written.
    struct FolderInTheWay(PathBuf);

    impl JobObserver for FolderInTheWay {
        fn stage(&self, stage: JobStage, _: u64) {
            if stage == JobStage::Write {
                std::fs::create_dir_all(&self.0).unwrap();
            }
        }
    }

    #[test]
    fn a_failure_of_the_removed_records_was_reported_as_one_of_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (input, out) = (folder.path().join("in.jsonl"), folder.path().join("out"));
        let lines = ["a", "b"].map(|id| format!("{{\"id\":\"{id}\",\"text\":\"a rose\"}}\n"));
        std::fs::write(&input, lines.concat()).unwrap();
        let options = InputOptions::default();
        let inputs = Inputs::discover(&[input.into()], &options, folder.path()).unwrap();
        let observer = FolderInTheWay(out.join(".lookalike/new/removed.jsonl"));
        let job = DedupJob::new(&inputs, folder.path()).observer(&observer);
        let failed = job.dedup(&out, &OutputOptions::default()).unwrap_err();
        let BatchError::Result { path, .. } = &failed else {
            panic!("{failed}");
        };
        assert_eq!(path, &out.join("removed.jsonl"));
    }
}
