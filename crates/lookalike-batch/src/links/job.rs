//! The job behind `lookalike links`.

use std::io::Write;
use std::path::Path;

use lookalike_corpus::{Format, Inputs, ReadError, Record, TextState};
use serde::Serialize;

use super::frame::{self, PageLink, page_of};
use super::page::{self, AnchorField, LinkFields};
use super::table::{AddressTable, address_hash};
use crate::document_memory::{DocumentUse, ensure_documents_fit, fixed_bytes};
use crate::error::{BatchError, OUTPUT};
use crate::fields::FieldTally;
use crate::observer::JobStage;
use crate::record_scan::{ChunkSum, RecordScan, RecordWorker};
use crate::skipped::{SkippedRow, SkippedRows};
use crate::spill::frame_sort::{FrameSort, SortedFrames};

/// The job: which pages get fields, and where links come from.
pub struct LinkInversion<'a> {
    /// Pages that get fields. Their limits and losses are those of the job.
    pub pages: RecordScan<'a>,
    /// Pages whose links count; those of `pages` where nothing is said.
    pub from: Option<RecordScan<'a>>,
    /// Words before and behind a link that go with its text.
    pub window: usize,
    /// Pages that a page keeps the links of, and anchors that it keeps.
    pub most: usize,
    /// Folder of temporary files.
    pub folder: &'a Path,
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
    visit: &'a V,
}

impl<T: Send, V: Fn(&Record<'_>, Format) -> T + Sync> RecordWorker for RecordMap<'_, V> {
    // Records go by their numbers, so each reading must find the same.
    const SUMS: bool = true;

    type Product = Vec<T>;

    fn add(&mut self, record: &Record<'_>, products: &mut Vec<T>) {
        let format = self.inputs.sources[record.source as usize].format;
        products.push((self.visit)(record, format));
    }
}

/// Sums of the chunks of the first reading.
type FirstSums = Option<Vec<ChunkSum>>;

/// Findings of the first pass about a record.
struct PageSeen {
    hash: Option<u128>,
    is_too_long: bool,
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
            let RecordScan {
                inputs, options, ..
            } = source;
            ensure_documents_fit(source.limits, self.documents(), inputs, options)?;
            source.losses.refuse_undiscovered(inputs)?;
        }
        let mut summary = LinksSummary::default();
        let mut rows = SkippedRows::default();
        let mut sums = None;
        let table = self.addresses(&mut sums, &mut summary, &mut rows)?;
        let frames = self.links(&table, &mut sums, &mut summary, &mut rows)?;
        // Sorting was budgeted beside the table; the merge that follows has the memory of both.
        drop(table);
        summary.skipped = rows.finish();
        self.pages.losses.check(&summary.skipped, summary.pages)?;
        self.write_pages(frames, &mut sums, &mut summary, out)?;
        Ok(summary)
    }

    fn documents(&self) -> DocumentUse<'static> {
        DocumentUse::Links {
            window: self.window,
        }
    }

    /// Bytes for the table of addresses and the sort.
    fn left(&self) -> u64 {
        let fixed = fixed_bytes(self.pages.limits, self.documents(), self.pages.options);
        self.pages.limits.memory.saturating_sub(fixed)
    }

    fn addresses(
        &self,
        sums: &mut FirstSums,
        summary: &mut LinksSummary,
        rows: &mut SkippedRows,
    ) -> Result<AddressTable, BatchError> {
        let mut table = AddressTable::default();
        let visit = |record: &Record<'_>, format| PageSeen {
            hash: page::address(record, format).map(|address| address_hash(&address)),
            is_too_long: record.text_state == TextState::TooLong,
        };
        self.pages
            .observer
            .stage(JobStage::Scan, self.pages.inputs.total_bytes());
        let collect = |seen: PageSeen| -> Result<(), BatchError> {
            let page = u32::try_from(summary.pages).map_err(|_| BatchError::TooMany)?;
            summary.pages += 1;
            summary.without_address += u64::from(seen.hash.is_none());
            summary.too_long += u64::from(seen.is_too_long);
            if let Some(hash) = seen.hash {
                table.push(hash, page);
            }
            // A half at most: sorting links needs the rest.
            match 2 * table.bytes() > self.left() {
                true => Err(self.table_does_not_fit(table.bytes())),
                false => Ok(()),
            }
        };
        let fields = self.each_record(self.pages, &visit, sums, rows, collect)?;
        fields.check(self.pages.inputs, self.pages.options)?;
        table.sort();
        Ok(table)
    }

    fn table_does_not_fit(&self, needed: u64) -> BatchError {
        let fixed = self.pages.limits.memory.saturating_sub(self.left());
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
        sums: &mut FirstSums,
        summary: &mut LinksSummary,
        rows: &mut SkippedRows,
    ) -> Result<SortedFrames, BatchError> {
        let (mut sums_of_links, mut known_rows) = (None, SkippedRows::default());
        let (sums, rows) = match self.from {
            Some(_) => (&mut sums_of_links, rows),
            // Records of the pages were counted when they were read first.
            None => (sums, &mut known_rows),
        };
        let source = self.from.unwrap_or(self.pages);
        let temporary = BatchError::temporary(self.folder);
        // A sort takes half as much again while its buffers grow, and chunks of links wait in front of it.
        let budget = self.left().saturating_sub(table.bytes()) / 3;
        let mut sort = FrameSort::new(budget, self.folder);
        let visit = |record: &Record<'_>, format| self.links_of(record, format, table);
        self.pages
            .observer
            .stage(JobStage::Links, source.inputs.total_bytes());
        self.each_record(source, &visit, sums, rows, |found: PageLinks| {
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
        sums: &mut FirstSums,
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
        self.pages
            .observer
            .stage(JobStage::Linked, self.pages.inputs.total_bytes());
        let mut page = 0;
        let collect = |line: Option<Vec<u8>>| -> Result<(), BatchError> {
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
        };
        let rows = &mut SkippedRows::default();
        self.each_record(self.pages, &visit, sums, rows, collect)?;
        Ok(())
    }

    /// Visits every record of a source, which must be what it was when it was read first.
    fn each_record<T: Send, V: Fn(&Record<'_>, Format) -> T + Sync>(
        &self,
        source: RecordScan<'_>,
        visit: &V,
        sums: &mut FirstSums,
        rows: &mut SkippedRows,
        mut collect: impl FnMut(T) -> Result<(), BatchError>,
    ) -> Result<FieldTally, BatchError> {
        let inputs = source.inputs;
        let worker = || RecordMap { inputs, visit };
        let read = source.read(self.documents(), rows, worker, |products: Vec<T>| {
            products.into_iter().try_for_each(&mut collect)
        })?;
        let first = sums.get_or_insert_with(|| read.sums.clone());
        if *first == read.sums {
            return Ok(read.fields);
        }
        let mut both = first.iter().zip(&read.sums);
        let changed = both.find(|(first, again)| first != again);
        // Where those that both have are the same, one has more.
        let chunk = changed.map(|(first, _)| first).or(first.last());
        let source = chunk.and_then(|chunk| inputs.sources.get(chunk.source as usize));
        let name = source.map(|source| source.name().into_owned());
        Err(BatchError::Read(ReadError::Changed {
            name: name.unwrap_or_default(),
        }))
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
