//! The job behind `lookalike links`.

use std::io::Write;
use std::path::Path;

use lookalike_corpus::{
    Format, InputOptions, Inputs, Parser, ReadError, Record, RecordChunk, TextState,
};
use serde::Serialize;

use super::frame::{self, PageLink, page_of};
use super::page::{self, AnchorField, LinkFields};
use super::table::{AddressTable, address_hash};
use crate::document_memory::{DocumentMemory, DocumentUse, ensure_documents_fit, fixed_bytes};
use crate::error::{BatchError, OUTPUT};
use crate::fields::FieldTally;
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage, ensure_wanted};
use crate::pipeline::{ChunkWorker, run_in_order};
use crate::settings::JobLimits;
use crate::skipped::{SkippedInput, SkippedRow, SkippedRows};
use crate::spill::frame_sort::{FrameSort, SortedFrames};

/// Sources and the options for reading them.
#[derive(Clone, Copy)]
pub struct LinkSource<'a> {
    /// Sources to read.
    pub inputs: &'a Inputs,
    /// Options for reading them.
    pub options: &'a InputOptions,
}

/// The job: which pages get fields, and where links come from.
pub struct LinkInversion<'a> {
    /// Pages that get fields.
    pub pages: LinkSource<'a>,
    /// Pages whose links count; those of `pages` where nothing is said.
    pub from: Option<LinkSource<'a>>,
    /// Words before and behind a link that go with its text.
    pub window: usize,
    /// Pages that a page keeps the links of, and anchors that it keeps.
    pub most: usize,
    /// Limits on threads and memory; they change no result.
    pub limits: &'a JobLimits,
    /// Folder of temporary files.
    pub folder: &'a Path,
    /// Policy for records that cannot be read.
    pub losses: LossPolicy,
    /// Receiver of progress.
    pub observer: &'a dyn JobObserver,
}

/// Summary of the job.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinksSummary {
    /// Records read.
    pub pages: u64,
    /// Of these, with neither a URL nor an id that is one or a path: they get empty fields.
    pub without_address: u64,
    /// Of these, longer than the limit: left out.
    pub too_long: u64,
    /// Links to other pages.
    pub links: u64,
    /// Of these, to a page among the records.
    pub links_to_pages: u64,
    /// Pages that others link to.
    pub linked_pages: u64,
    /// Anchors written.
    pub anchors: u64,
    /// Addresses of linking pages written.
    pub in_links: u64,
    /// Addresses of linked pages written.
    pub out_links: u64,
    /// Links left out because a page has too many.
    pub cut: u64,
    /// Bytes of temporary files.
    pub temporary_bytes: u64,
    /// Parts that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

/// Makes something of every record.
struct RecordMap<'a, V> {
    inputs: &'a Inputs,
    parser: Parser<'a>,
    visit: &'a V,
}

/// Products of the records of a chunk.
struct RecordBatch<T> {
    products: Vec<T>,
    /// Sum of the chunk.
    sum: u64,
    /// Source of its last record.
    source: Option<u32>,
    disk_bytes: u64,
    skipped: Vec<SkippedInput>,
}

impl<T: Send, V: Fn(&Record<'_>, Format) -> T + Sync> ChunkWorker<RecordChunk>
    for RecordMap<'_, V>
{
    type Output = RecordBatch<T>;

    fn run(&mut self, chunk: &RecordChunk) -> Result<RecordBatch<T>, BatchError> {
        let mut batch = RecordBatch {
            products: Vec::new(),
            sum: chunk.content_sum(),
            source: None,
            disk_bytes: chunk.disk_bytes,
            skipped: chunk.skips.iter().map(SkippedInput::part).collect(),
        };
        let Self {
            inputs,
            parser,
            visit,
        } = self;
        parser.parse(chunk, &mut |record| match record {
            Ok(record) => {
                let format = inputs.sources[record.source as usize].format;
                batch.source = Some(record.source);
                batch.products.push(visit(&record, format));
            }
            Err(bad) => {
                batch.source = Some(bad.source);
                batch.skipped.push(SkippedInput::record(inputs, &bad));
            }
        });
        Ok(batch)
    }

    fn shrink(&mut self) {
        self.parser.shrink();
    }
}

/// Sums of the chunks of some sources. Records go by their numbers, so each reading must find the same.
#[derive(Default)]
struct ChunkSums {
    sums: Vec<u64>,
    /// True once all chunks were read.
    is_whole: bool,
}

impl ChunkSums {
    /// Returns true if the chunk of a number is that of the first reading, or this is the first.
    fn is_same(&mut self, number: usize, sum: u64) -> bool {
        match self.sums.get(number) {
            Some(first) => *first == sum,
            None => {
                self.sums.push(sum);
                !self.is_whole
            }
        }
    }
}

/// Findings of the first pass about a record.
struct PageSeen {
    hash: Option<u128>,
    is_too_long: bool,
    fields: FieldTally,
}

/// Findings of the second pass about a record.
#[derive(Default)]
struct PageLinks {
    /// Strings, each with its length before it.
    frames: Vec<u8>,
    links: u64,
    to_pages: u64,
}

impl LinkInversion<'_> {
    /// Writes the records with the fields that links make, a JSON object a line, in input order.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, or `out` cannot be written to.
    pub fn write(&self, out: &mut dyn Write) -> Result<LinksSummary, BatchError> {
        for source in [Some(self.pages), self.from].into_iter().flatten() {
            let LinkSource { inputs, options } = source;
            ensure_documents_fit(self.limits, self.documents(), inputs, options)?;
            self.losses.refuse_undiscovered(inputs)?;
        }
        let mut summary = LinksSummary::default();
        let mut rows = SkippedRows::default();
        let mut chunks = ChunkSums::default();
        let table = self.addresses(&mut chunks, &mut summary, &mut rows)?;
        let frames = self.links(&table, &mut chunks, &mut summary, &mut rows)?;
        // Sorting was budgeted beside the table; the merge that follows has the memory of both.
        drop(table);
        summary.skipped = rows.finish();
        self.losses.check(&summary.skipped, summary.pages)?;
        self.write_pages(frames, &mut chunks, &mut summary, out)?;
        Ok(summary)
    }

    fn documents(&self) -> DocumentUse<'static> {
        DocumentUse::Links {
            window: self.window,
        }
    }

    /// Bytes for the table of addresses and the sort.
    fn left(&self) -> u64 {
        let fixed = fixed_bytes(self.limits, self.documents(), self.pages.options);
        self.limits.memory.saturating_sub(fixed)
    }

    fn addresses(
        &self,
        chunks: &mut ChunkSums,
        summary: &mut LinksSummary,
        rows: &mut SkippedRows,
    ) -> Result<AddressTable, BatchError> {
        let mut table = AddressTable::default();
        let mut fields = FieldTally::default();
        let visit = |record: &Record<'_>, format| {
            let mut fields = FieldTally::default();
            fields.count(record);
            PageSeen {
                hash: page::address(record, format).map(|address| address_hash(&address)),
                is_too_long: record.text_state == TextState::TooLong,
                fields,
            }
        };
        self.observer
            .stage(JobStage::Scan, self.pages.inputs.total_bytes());
        self.each_record(self.pages, &visit, chunks, Some(rows), |seen: PageSeen| {
            let page = u32::try_from(summary.pages).map_err(|_| BatchError::TooMany)?;
            summary.pages += 1;
            summary.without_address += u64::from(seen.hash.is_none());
            summary.too_long += u64::from(seen.is_too_long);
            fields.add(&seen.fields);
            if let Some(hash) = seen.hash {
                table.push(hash, page);
            }
            // A half at most: sorting links needs the rest.
            match 2 * table.bytes() > self.left() {
                true => Err(self.table_does_not_fit(table.bytes())),
                false => Ok(()),
            }
        })?;
        fields.check(self.pages.inputs, self.pages.options)?;
        table.sort();
        Ok(table)
    }

    fn table_does_not_fit(&self, needed: u64) -> BatchError {
        let fixed = self.limits.memory.saturating_sub(self.left());
        BatchError::Memory {
            what: "the table of addresses",
            needed,
            left: self.left() / 2,
            least: fixed + 2 * needed,
        }
    }

    fn links(
        &self,
        table: &AddressTable,
        chunks: &mut ChunkSums,
        summary: &mut LinksSummary,
        rows: &mut SkippedRows,
    ) -> Result<SortedFrames, BatchError> {
        let mut of_links = ChunkSums::default();
        let chunks = match self.from {
            Some(_) => &mut of_links,
            None => chunks,
        };
        let source = self.from.unwrap_or(self.pages);
        let temporary = BatchError::temporary(self.folder);
        // A sort takes half as much again while its buffers grow, and chunks of links wait in front of it.
        let budget = self.left().saturating_sub(table.bytes()) / 3;
        let mut sort = FrameSort::new(budget, self.folder);
        let visit = |record: &Record<'_>, format| self.links_of(record, format, table);
        self.observer
            .stage(JobStage::Links, source.inputs.total_bytes());
        // Records of the pages were counted when they were read first.
        let rows = self.from.is_some().then_some(rows);
        self.each_record(source, &visit, chunks, rows, |found: PageLinks| {
            summary.links += found.links;
            summary.links_to_pages += found.to_pages;
            let mut rest = &found.frames[..];
            while let Some((length, frames)) = rest.split_first_chunk() {
                let (frame, behind) = frames.split_at(u32::from_be_bytes(*length) as usize);
                sort.push(frame).map_err(&temporary)?;
                rest = behind;
            }
            Ok(())
        })?;
        summary.temporary_bytes = sort.temporary_bytes();
        sort.finish().map_err(&temporary)
    }

    fn links_of(&self, record: &Record<'_>, format: Format, table: &AddressTable) -> PageLinks {
        let mut found = PageLinks::default();
        let Some(address) = page::address(record, format) else {
            return found;
        };
        let hash = address_hash(&address);
        let mut frame = Vec::new();
        let mut push = |frame: &mut Vec<u8>| {
            found.frames.extend((frame.len() as u32).to_be_bytes());
            found.frames.append(frame);
        };
        for link in page::links(record, format, &address, self.window) {
            found.links += 1;
            let mut is_met = false;
            for page in table.pages(address_hash(&link.address)) {
                is_met = true;
                frame::write_in_link(page, (&address, hash), link.anchor.as_ref(), &mut frame);
                push(&mut frame);
            }
            found.to_pages += u64::from(is_met);
            // All records of this address: a page that was fetched twice has its links twice, and the sort
            // drops what is equal.
            for page in table.pages(hash) {
                frame::write_out_link(page, &link.address, &mut frame);
                push(&mut frame);
            }
        }
        found
    }

    fn write_pages(
        &self,
        frames: SortedFrames,
        chunks: &mut ChunkSums,
        summary: &mut LinksSummary,
        out: &mut dyn Write,
    ) -> Result<(), BatchError> {
        let mut links = LinksByPage {
            frames,
            next: None,
            most: self.most,
        };
        let temporary = BatchError::temporary(self.folder);
        links.advance().map_err(&temporary)?;
        let visit = |record: &Record<'_>, format| {
            let is_whole = record.text_state != TextState::TooLong;
            is_whole.then(|| page::begin_line(record, format))
        };
        self.observer
            .stage(JobStage::Linked, self.pages.inputs.total_bytes());
        let mut page = 0;
        self.each_record(self.pages, &visit, chunks, None, |line: Option<Vec<u8>>| {
            let fields = links.of(page, summary).map_err(&temporary)?;
            page += 1;
            if let Some(mut line) = line {
                summary.linked_pages += u64::from(!fields.in_links.is_empty());
                summary.anchors += fields.anchors.len() as u64;
                summary.in_links += fields.in_links.len() as u64;
                summary.out_links += fields.out_links.len() as u64;
                page::end_line(&fields, &mut line);
                out.write_all(&line)
                    .map_err(BatchError::result(Path::new(OUTPUT)))?;
            }
            Ok(())
        })
    }

    /// Visits every record; what cannot be read is counted where that is wished.
    fn each_record<T: Send, V: Fn(&Record<'_>, Format) -> T + Sync>(
        &self,
        source: LinkSource<'_>,
        visit: &V,
        chunks: &mut ChunkSums,
        mut rows: Option<&mut SkippedRows>,
        mut collect: impl FnMut(T) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let LinkSource { inputs, options } = source;
        if let Some(rows) = &mut rows {
            for skip in &inputs.skips {
                rows.take(SkippedInput::part(skip));
            }
        }
        let worker = || RecordMap {
            inputs,
            parser: Parser::new(inputs, options),
            visit,
        };
        let workers = (0..self.limits.threads).map(|_| worker()).collect();
        let memory = DocumentMemory::new(self.limits, self.documents(), inputs, options);
        let changed = |source: Option<u32>| {
            let source = source.and_then(|source| inputs.sources.get(source as usize));
            let source = source.or(inputs.sources.last());
            let name = source.map(|source| source.name().into_owned());
            BatchError::Read(ReadError::Changed {
                name: name.unwrap_or_default(),
            })
        };
        let (mut read, mut number) = (0, 0);
        run_in_order(
            inputs.chunks(options),
            memory,
            self.observer,
            workers,
            |batch: RecordBatch<T>| {
                ensure_wanted(self.observer).map_err(BatchError::temporary(self.folder))?;
                if !chunks.is_same(number, batch.sum) {
                    return Err(changed(batch.source));
                }
                number += 1;
                if let Some(rows) = &mut rows {
                    for skipped in batch.skipped {
                        self.losses.refuse_first(&skipped)?;
                        rows.take(skipped);
                    }
                }
                read += batch.disk_bytes;
                self.observer.advance(read);
                batch.products.into_iter().try_for_each(&mut collect)
            },
        )?;
        chunks.is_whole = true;
        match number == chunks.sums.len() {
            true => Ok(()),
            false => Err(changed(None)),
        }
    }
}

/// Sorted links, taken page by page.
struct LinksByPage {
    frames: SortedFrames,
    next: Option<Vec<u8>>,
    most: usize,
}

impl LinksByPage {
    fn advance(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let next = self.frames.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    /// The fields of a page; pages are asked for in ascending order.
    fn of(&mut self, page: u32, summary: &mut LinksSummary) -> std::io::Result<LinkFields> {
        let mut fields = LinkFields::default();
        let mut anchors: Vec<(usize, AnchorField)> = Vec::new();
        while self
            .next
            .as_deref()
            .is_some_and(|frame| page_of(frame) == page)
        {
            let frame = self.advance()?.expect("there is one");
            match frame::read(&frame) {
                PageLink::Out(address) => fields.out_links.push(address),
                PageLink::In(address, anchor) => {
                    // Frames of one source stand together: they begin with its hash and then its address.
                    let is_new = fields.in_links.last() != Some(&address);
                    let is_full = match is_new {
                        true => fields.in_links.len() == self.most,
                        false => anchors.len() == self.most,
                    };
                    if is_full {
                        summary.cut += 1;
                        continue;
                    }
                    if is_new {
                        fields.in_links.push(address);
                    }
                    let source = fields.in_links.len() - 1;
                    anchors.extend(anchor.filter(|_| anchors.len() < self.most).map(|anchor| {
                        let field = AnchorField {
                            text: anchor.text,
                            before: anchor.before,
                            after: anchor.after,
                        };
                        (source, field)
                    }));
                }
            }
        }
        // By address, as a reader expects it; anchors of one page in the order of their texts.
        anchors.sort_by(|a, b| fields.in_links[a.0].cmp(&fields.in_links[b.0]));
        fields.anchors = anchors.into_iter().map(|(_, anchor)| anchor).collect();
        fields.in_links.sort_unstable();
        Ok(fields)
    }
}
