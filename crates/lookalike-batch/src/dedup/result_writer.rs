//! Results of `dedup`: clusters, pairs and records, each file written as a whole.
//!
//! Decisions come from a [`DecisionCheckpoint`], so that an interrupted job writes what it had decided; records are read again.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lookalike_corpus::{
    AtomicFile, Compression, FileTree, Inputs, OutputFormat, RawRecord, ReadError, RecordPart,
    STATE_FOLDER as STATE, Source, TableRow, raw_records, raw_records_beside_tables,
};
use serde::Serialize;

use crate::dedup::checkpoint::DecisionCheckpoint;
use crate::dedup::counts::WrittenBytes;
use crate::dedup::decision::{ClusterTable, DocumentDecision};
use crate::dedup::job::DedupJob;
use crate::dedup::record_cursor::RecordCursor;
use crate::dedup::report_examples::ReportExamples;
use crate::dedup::result_lines::write_cluster;
use crate::error::BatchError;
use crate::observer::JobStage;
use crate::output_dir::{OutputDir, OutputOptions};
use crate::settings::RecordOrder;
use crate::spill::arrange::RecordArranger;

/// Lines whose fields tables have even where no line does.
pub(super) const PAIR: &str = r#"{"a":"","b":"","similarity":0.5,"visible_similarity":0.5}"#;
pub(super) const PAIR_WITH_DISTANCE: &str =
    r#"{"a":"","b":"","similarity":0.5,"visible_similarity":0.5,"distance":0}"#;
const CLUSTER: &str = r#"{"cluster":1,"survivor":"","members":[{"id":"","similarity":0.5,"visible_similarity":0.5,"reason":""}]}"#;

/// Writing everything that follows from the decisions.
pub(super) struct ResultWriter<'a> {
    pub(super) job: &'a DedupJob<'a>,
    pub(super) place: &'a OutputDir<'a>,
    pub(super) verdicts: &'a DecisionCheckpoint,
    pub(super) options: &'a OutputOptions,
}

/// One of `kept.jsonl` and `removed.jsonl` on its way.
struct RecordFile {
    /// None where no source has lines.
    file: Option<AtomicFile>,
    arranger: Option<RecordArranger>,
    name: &'static str,
    bytes: u64,
}

impl RecordFile {
    fn add(&mut self, place: u32, bytes: &[u8], is_whole: bool) -> io::Result<()> {
        match (&mut self.arranger, &mut self.file) {
            (None, Some(file)) => file.write_all(bytes),
            (None, None) => Ok(()),
            (Some(arranger), _) if is_whole => arranger.add(place, bytes),
            (Some(arranger), _) => arranger.add_long(place, bytes),
        }
    }

    /// The file with all its records in it.
    fn arranged(mut self) -> io::Result<Option<AtomicFile>> {
        if let (Some(arranger), Some(file)) = (self.arranger, &mut self.file) {
            arranger.finish(file)?;
        }
        Ok(self.file)
    }
}

#[derive(Serialize)]
struct FileLine<'a> {
    id: &'a str,
    file: std::borrow::Cow<'a, str>,
}

impl ResultWriter<'_> {
    /// Writes clusters and records; returns what the report shows of them.
    pub(super) fn write(&self) -> Result<crate::report::ReportData, BatchError> {
        let DecisionCheckpoint {
            documents,
            by_id,
            outcomes,
            ..
        } = self.verdicts;
        let mut id_ranks = vec![0; by_id.len()];
        for (rank, &document) in by_id.iter().enumerate() {
            id_ranks[document as usize] = rank as u32;
        }
        let clusters = ClusterTable::new(by_id, &id_ranks, outcomes);
        let columns = (self.options.format, CLUSTER);
        self.place.write_lines("clusters", columns, &mut |out| {
            for (number, (survivor, members)) in clusters.iter().enumerate() {
                write_cluster(
                    out,
                    documents,
                    number as u64 + 1,
                    survivor,
                    members,
                    outcomes,
                )?;
            }
            Ok(())
        })?;
        let mut examples = ReportExamples::choose(self.verdicts, &clusters);
        let written = self.write_records(&mut examples)?;
        examples.report(
            self.job,
            self.verdicts,
            &clusters,
            written,
            &self.place.state("examples"),
        )
    }

    /// Reads the input again and sends every record where it belongs.
    fn write_records(&self, examples: &mut ReportExamples) -> Result<WrittenBytes, BatchError> {
        let against = self.job.against_sources;
        let inputs = self.job.new_inputs();
        let tree = FileTree::new(&inputs);
        let places = self.places();
        let in_order = self.job.settings.order == RecordOrder::Input || self.is_in_order();
        let compression = self
            .options
            .compression
            .unwrap_or_else(|| common_compression(&inputs.sources));
        let mut kept = self.open("kept", compression, in_order, &inputs)?;
        let mut removed = self.open("removed", compression, in_order, &inputs)?;
        self.job
            .observer
            .stage(JobStage::Write, self.verdicts.documents.len() as u64);
        let mut cursor = RecordCursor::new(
            &self.verdicts.bad,
            against,
            self.verdicts.documents.against,
            self.job.observer,
        );
        let mut current = None;
        let read = match self.options.format {
            OutputFormat::Parquet => raw_records_beside_tables,
            OutputFormat::JsonLines => raw_records,
        };
        read(
            &inputs,
            &self.job.options,
            &mut |record: RawRecord<'_>| -> Result<(), BatchError> {
                if self.is_split(&inputs.sources[record.source as usize]) {
                    let paths = [&kept, &removed].map(|file| {
                        let name = table_name(file.name, &inputs, &tree, record.source);
                        self.place.path(&name)
                    });
                    let source = (&inputs, record.source);
                    let bytes = self.split(source, &paths, &mut cursor, examples)?;
                    kept.bytes += bytes[0];
                    removed.bytes += bytes[1];
                    return Ok(());
                }
                if record.part.begins() {
                    current = cursor.next(record.source, record.number);
                }
                let Some(document) = current else {
                    return Ok(());
                };
                let file = if self.verdicts.outcomes[document] == DocumentDecision::Kept {
                    &mut kept
                } else {
                    &mut removed
                };
                let source = (&inputs, &tree);
                let done = self.send(file, source, &record, document, places[document], examples);
                done.map_err(BatchError::result(&self.place.path(file.name)))
            },
        )?;
        let copied = self.verdicts.head.copied;
        let written = WrittenBytes {
            kept: kept.bytes,
            removed: removed.bytes,
            skipped: copied.bytes,
            skipped_files: copied.files,
        };
        self.finish(kept, removed)?;
        Ok(written)
    }

    /// True if the rows of a source go to tables of their own.
    fn is_split(&self, source: &Source) -> bool {
        is_split(self.options.format, source)
    }

    /// Writes the rows of a table to the tables of what is kept and what is removed; their bytes.
    fn split(
        &self,
        (inputs, source): (&Inputs, u32),
        paths: &[PathBuf; 2],
        cursor: &mut RecordCursor<'_>,
        examples: &mut ReportExamples,
    ) -> Result<[u64; 2], BatchError> {
        let outcomes = &self.verdicts.outcomes;
        let mut choose = |row: &TableRow<'_>| {
            let document = cursor.next(source, row.number)?;
            if examples.wants(document as u32) {
                examples.meet_line(document as u32, &row.line());
            }
            Some(usize::from(outcomes[document] != DocumentDecision::Kept))
        };
        let [kept, removed] = paths;
        let split = inputs
            .split_table(source, &self.job.options, [kept, removed], &mut choose)
            .map_err(BatchError::result(kept))?;
        let number = self.job.against_sources + source as usize;
        let rows = split.map_or(0, |split| split.rows);
        if rows != self.verdicts.records[number] {
            let name = inputs.sources[source as usize].name().into_owned();
            return Err(BatchError::Read(ReadError::Changed { name }));
        }
        Ok(split.map_or([0; 2], |split| split.bytes))
    }

    fn finish(&self, kept: RecordFile, removed: RecordFile) -> Result<(), BatchError> {
        let mut files = Vec::new();
        for file in [kept, removed] {
            let path = self.place.path(file.name);
            files.extend(file.arranged().map_err(BatchError::result(&path))?);
        }
        AtomicFile::commit_alike(files).map_err(BatchError::result(&self.place.path("kept")))
    }

    fn send(
        &self,
        file: &mut RecordFile,
        (inputs, tree): (&Inputs, &FileTree),
        record: &RawRecord<'_>,
        document: usize,
        place: u32,
        examples: &mut ReportExamples,
    ) -> io::Result<()> {
        if record.part == RecordPart::File {
            let source = &inputs.sources[record.source as usize];
            let folder = self.place.path(file.name);
            file.bytes += tree.copy(inputs, record.source, &folder, self.options.transfer)?;
            examples.meet_file(document as u32, source);
            let id = self.verdicts.documents.id(document);
            let to = Path::new(file.name).join(tree.path(record.source));
            let mut line = serde_json::to_vec(&FileLine {
                id,
                file: to.to_string_lossy(),
            })?;
            line.push(b'\n');
            return file.add(place, &line, true);
        }
        let ends = matches!(record.part, RecordPart::Whole | RecordPart::Last);
        file.bytes += record.bytes.len() as u64 + u64::from(ends);
        let is_whole = record.part == RecordPart::Whole;
        if is_whole {
            examples.meet_line(document as u32, record.bytes);
        }
        file.add(place, record.bytes, is_whole)?;
        if ends {
            file.add(
                place, b"
", is_whole,
            )
        } else {
            Ok(())
        }
    }

    fn open(
        &self,
        name: &'static str,
        compression: Compression,
        in_order: bool,
        inputs: &Inputs,
    ) -> Result<RecordFile, BatchError> {
        let has_lines = has_lines(self.options.format, &inputs.sources);
        let file = has_lines
            .then(|| self.open_file(name, compression))
            .transpose()?;
        let budget = crate::dedup::memory_budget::DedupMemory::new(
            &self.job.limits,
            &self.job.settings.scheme,
            &self.job.options,
        )
        .keys();
        // Compressed input may be many times larger once it is read; the text is the better guess then.
        let bytes = inputs
            .total_bytes()
            .max(self.verdicts.head.counts.text_bytes);
        let places = self.verdicts.documents.len();
        let temporary = self.place.folder.join(STATE);
        let arranger = (has_lines && !in_order)
            .then(|| RecordArranger::new(&temporary, places, bytes, budget));
        Ok(RecordFile {
            file,
            arranger,
            name,
            bytes: 0,
        })
    }

    fn open_file(&self, name: &str, compression: Compression) -> Result<AtomicFile, BatchError> {
        let name = record_file_name(name, self.options.format, compression);
        let path = self.place.path(&name);
        let file = match self.options.format {
            OutputFormat::JsonLines => AtomicFile::create(&path, compression),
            OutputFormat::Parquet => AtomicFile::lines(&path, OutputFormat::Parquet, ""),
        };
        file.map_err(BatchError::result(&path))
    }

    /// Place of each document in the order of the output.
    fn places(&self) -> Vec<u32> {
        let mut places = vec![0; self.verdicts.by_id.len()];
        for (place, &document) in self.verdicts.by_id.iter().enumerate() {
            places[document as usize] = place as u32;
        }
        places
    }

    /// True if the input is already in the order of ids.
    fn is_in_order(&self) -> bool {
        let against = self.verdicts.documents.against;
        self.verdicts
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

/// True if the rows of a source go to tables of their own.
pub(super) fn is_split(format: OutputFormat, source: &Source) -> bool {
    format == OutputFormat::Parquet && source.is_typed_table()
}

/// True if any record leaves as a line.
fn has_lines(format: OutputFormat, sources: &[Source]) -> bool {
    sources.is_empty() || sources.iter().any(|source| !is_split(format, source))
}

/// Path for the rows of a table: `kept.parquet` if there is no other source, else its path below `kept/`.
pub(super) fn table_name(name: &str, inputs: &Inputs, tree: &FileTree, source: u32) -> PathBuf {
    match inputs.sources.len() {
        1 => PathBuf::from(format!("{name}.parquet")),
        _ => Path::new(name).join(tree.path(source)),
    }
}

/// The compression that all sources of records have, or none; what is read but not written becomes zstd.
pub(super) fn common_compression(sources: &[Source]) -> Compression {
    let mut lines = sources.iter().filter(|source| !source.is_document());
    let first = lines
        .next()
        .map_or(Compression::None, |source| source.compression);
    match first {
        _ if lines.any(|source| source.compression != first) => Compression::None,
        Compression::Bzip2 | Compression::Xz => Compression::Zstd,
        first => first,
    }
}
