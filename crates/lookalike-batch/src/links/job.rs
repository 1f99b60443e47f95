//! Runs `lookalike links`.

use std::io::{self, Write};
use std::iter::Peekable;
use std::path::Path;

use bytemuck::{Pod, Zeroable};
use lookalike_corpus::{Format, Inputs, ReadError, Record, TextState};
use serde::Serialize;

use super::frame::{self, PageLink};
use super::page::{self, AnchorField, LinkFields};
use super::table::{AddressPages, AddressTable, address_hash};
use crate::document_memory::{DocumentUse, ensure_documents_fit, fixed_bytes};
use crate::error::{BatchError, OUTPUT};
use crate::fields::FieldTally;
use crate::observer::JobStage;
use crate::record_scan::{ChunkSum, RecordScan, RecordWorker};
use crate::skipped::{SkippedRow, SkippedRows};
use crate::spill::frame_sort::{FrameSort, SortedFrames};
use crate::spill::table_memory::{TableShare, TableShareSizes, check, max_mapped};

/// Job that adds link fields to pages, with the source of the links.
#[derive(Debug)]
pub struct LinkInversion<'a> {
    pages: RecordScan<'a>,
    from: Option<RecordScan<'a>>,
    window: usize,
    most: usize,
    folder: &'a Path,
}

lookalike::setters! {
    LinkInversion<'a> {
        /// Sets the pages whose links are read. By default these are the pages that get the fields.
        from: Option<RecordScan<'a>>,
        /// Sets the number of words before and after a link that are kept with its text. Default: 10.
        window: usize,
        /// Sets the maximum number of linking pages, of anchors and of linked pages that a page keeps, each. Default: 1000.
        most: usize,
    }
}

/// Summary of the job.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct LinksSummary {
    /// Number of records read.
    pub pages: u64,
    /// Records whose URL is missing and whose id is neither a URL nor a path. They get empty fields.
    pub without_address: u64,
    /// Records longer than the limit. They are left out.
    pub too_long: u64,
    /// Records with invalid characters or values that were replaced.
    pub characters_replaced: u64,
    /// Number of links to other pages.
    pub links: u64,
    /// Links that lead to a page among the records.
    pub links_to_pages: u64,
    /// Number of pages that others link to.
    pub linked_pages: u64,
    /// Number of anchors written.
    pub anchors: u64,
    /// Number of addresses of linking pages written.
    pub in_links: u64,
    /// Number of addresses of linked pages written.
    pub out_links: u64,
    /// Number of entries left out of the three fields because a page has too many. One link may be an entry of each.
    pub cut: u64,
    /// Bytes of temporary files.
    pub temporary_bytes: u64,
    /// Maximum bytes of the address table that were in a temporary file because it exceeded its share of the memory.
    pub tables_on_disk: u64,
    /// Parts of the input that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

/// Worker that applies `visit` to every record.
struct RecordMap<'a, V> {
    inputs: &'a Inputs,
    visit: &'a V,
}

impl<T: Send, V: Fn(&Record<'_>, Format) -> T + Sync> RecordWorker for RecordMap<'_, V> {
    // Records are identified by number, so all readings must find the same records.
    const SUMS: bool = true;

    type Product = Vec<T>;

    fn add(&mut self, record: &Record<'_>, products: &mut Vec<T>) {
        let format = self.inputs.sources[record.source as usize].format;
        products.push((self.visit)(record, format));
    }
}

/// Checksums of the chunks, from the first reading.
type FirstPassSums = Option<Vec<ChunkSum>>;

/// Findings of the first reading about a record.
struct PageSeen {
    hash: Option<u128>,
    is_too_long: bool,
    is_replaced: bool,
}

/// Findings of the second reading about a record.
#[derive(Default)]
struct PageLinks {
    frames: LinkFrames,
    links: u64,
    to_pages: u64,
    /// Message about link fields of this record that hold something other than texts.
    wrong: Option<String>,
}

/// Encoded links, each preceded by its length.
#[derive(Default)]
struct LinkFrames {
    /// Links of addresses that one page has, by page number.
    single: Vec<u8>,
    /// Links of addresses that several pages have, by the place of the address in the table. Repeating them for each page would cost the square of
    /// the address's pages.
    repeated: Vec<u8>,
}

impl LinkFrames {
    /// Adds the string that `write` makes for the number that it is given.
    fn push(&mut self, to: AddressPages, write: impl FnOnce(u32, &mut Vec<u8>)) {
        let (number, frames) = match to {
            AddressPages::One(page) => (page, &mut self.single),
            AddressPages::Several(place) => (place, &mut self.repeated),
        };
        let start = frames.len();
        frames.extend([0; 4]);
        write(number, frames);
        let length = (frames.len() - start - 4) as u32;
        frames[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

impl<'a> LinkInversion<'a> {
    /// Creates a job that adds fields to `pages`. The limits and losses of `pages` apply to the job. Temporary files go to `folder`.
    pub fn new(pages: RecordScan<'a>, folder: &'a Path) -> Self {
        Self {
            pages,
            from: None,
            window: 10,
            most: 1000,
            folder,
        }
    }

    /// Writes the records with their link fields as JSON lines, in input order.
    ///
    /// # Errors
    /// [`BatchError`] if the input cannot be read or `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> Result<LinksSummary, BatchError> {
        for source in std::iter::once(&self.pages).chain(&self.from) {
            let (inputs, options) = (source.inputs, &source.options);
            ensure_documents_fit(&source.limits, self.documents(), inputs, options)?;
            source.losses.refuse_undiscovered(inputs)?;
        }
        // Checked before the first reading, which may take hours.
        self.ensure_links_fit()?;
        let _tables = TableShare::open(self.table_share(), self.folder);
        let mut summary = LinksSummary::default();
        let mut rows = SkippedRows::default();
        let mut sums = None;
        let table = self.addresses(&mut sums, &mut summary, &mut rows)?;
        // Of both inputs, because losses of both count.
        let mut read = summary.pages;
        let links = self.links(&table, &mut sums, &mut summary, &mut rows, &mut read)?;
        // The sort was budgeted next to the table; the merge that follows may use the memory of both.
        drop(table);
        summary.tables_on_disk = max_mapped(self.folder);
        summary.skipped = rows.finish();
        // Before the first line is written, so that a refused job has no output.
        self.pages.losses.check(&summary.skipped, read)?;
        self.write_pages(links, &mut sums, &mut summary, out)?;
        Ok(summary)
    }

    fn documents(&self) -> DocumentUse<'static> {
        DocumentUse::Links {
            window: self.window,
        }
    }

    /// Returns the bytes needed for everything except the address table and the sort.
    fn fixed(&self) -> u64 {
        let pages = &self.pages;
        fixed_bytes(
            &pages.limits,
            self.documents(),
            pages.inputs,
            &pages.options,
        )
    }

    /// Returns the bytes left for the address table and the sort.
    fn remaining(&self) -> u64 {
        self.pages.limits.memory.saturating_sub(self.fixed())
    }

    fn ensure_links_fit(&self) -> Result<(), BatchError> {
        /// Minimum memory for sorting links, in addition to the table.
        const MIN_MEMORY: u64 = 2 << 20;
        let limit = self.pages.limits.memory;
        BatchError::ensure_memory("sorting links", MIN_MEMORY, limit, self.fixed())
    }

    /// Returns the share of the memory that the address table may take.
    fn table_share(&self) -> TableShareSizes {
        TableShareSizes::of(self.remaining())
    }

    fn addresses(
        &self,
        sums: &mut FirstPassSums,
        summary: &mut LinksSummary,
        rows: &mut SkippedRows,
    ) -> Result<AddressTable, BatchError> {
        let mut table = AddressTable::default();
        let visit = |record: &Record<'_>, format| PageSeen {
            hash: page::address(record, format).map(|address| address_hash(&address)),
            is_too_long: record.text_state == TextState::TooLong,
            is_replaced: record.replaced,
        };
        let total = self.pages.inputs.total_bytes();
        self.pages.observer.stage(JobStage::Scan, total);
        let collect = |seen: Vec<PageSeen>, _| -> Result<(), BatchError> {
            for seen in seen {
                // Sorted links name pages by numbers of 32 bits.
                let page = u32::try_from(summary.pages).map_err(|_| BatchError::TooMany)?;
                summary.pages += 1;
                summary.without_address += u64::from(seen.hash.is_none());
                summary.too_long += u64::from(seen.is_too_long);
                summary.characters_replaced += u64::from(seen.is_replaced);
                if let Some(hash) = seen.hash {
                    table.push(hash, page);
                }
            }
            check(self.folder).map_err(BatchError::temporary(self.folder))
        };
        let fields = self.for_each_record(&self.pages, &visit, sums, rows, collect)?;
        fields.check(self.pages.inputs, &self.pages.options)?;
        table.sort();
        Ok(table)
    }

    fn links(
        &self,
        table: &AddressTable,
        sums: &mut FirstPassSums,
        summary: &mut LinksSummary,
        rows: &mut SkippedRows,
        read: &mut u64,
    ) -> Result<SortedLinks, BatchError> {
        let (mut sums_of_links, mut known_rows) = (None, SkippedRows::default());
        let (sums, read_rows) = match self.from {
            // Other files are read only once, so there is nothing to compare their checksums with.
            Some(_) => (&mut sums_of_links, &mut *rows),
            // The first reading already counted what was skipped in the pages.
            None => (sums, &mut known_rows),
        };
        let (mut wrong, mut lost) = (SkippedRows::default(), 0);
        let source = self.from.as_ref().unwrap_or(&self.pages);
        let temporary = BatchError::temporary(self.folder);
        // While its buffers grow, a sort takes half as much again as its budget, and chunks of links wait to be sorted.
        // What exceeds the share is in a file and takes nothing here.
        let of_table = table.bytes().min(self.table_share().all());
        let budget = self.remaining().saturating_sub(of_table) / 3;
        // With repeats, single links get half of the budget, and repeated links and their fields a quarter each. Otherwise these stay empty.
        let has_repeats = table.has_repeats();
        let mut single = FrameSort::new(budget >> u32::from(has_repeats), self.folder);
        // The same amount again is for sorting the fields made from these links.
        let mut repeated = FrameSort::new(budget / 4, self.folder);
        let visit = |record: &Record<'_>, format| self.links_of(record, format, table);
        self.pages
            .observer
            .stage(JobStage::Links, source.inputs.total_bytes());
        let fields = self.for_each_record(
            source,
            &visit,
            sums,
            read_rows,
            |found: Vec<PageLinks>, _| {
                for found in found {
                    if let Some(place) = found.wrong {
                        wrong.add("wrong-type", place);
                        lost += 1;
                    }
                    summary.links += found.links;
                    summary.links_to_pages += found.to_pages;
                    push_frames(&found.frames.single, &mut single)
                        .and_then(|()| push_frames(&found.frames.repeated, &mut repeated))
                        .map_err(&temporary)?;
                }
                Ok(())
            },
        )?;
        rows.append(wrong);
        if self.from.is_some() {
            *read += fields.records;
        }
        // They count as losses.
        *read -= lost;
        let repeated = repeated.finish().map_err(&temporary)?;
        summary.temporary_bytes = repeated.temporary_bytes();
        let fields = FrameSort::new(budget / 4, self.folder);
        let fields = self.fields_of_repeats(repeated, table, fields);
        let fields = fields.map_err(&temporary)?;
        let single = single.finish().map_err(&temporary)?;
        let fields = fields.finish().map_err(&temporary)?;
        summary.temporary_bytes += single.temporary_bytes() + fields.temporary_bytes();
        Ok(SortedLinks {
            single: single.peekable(),
            repeated: fields.peekable(),
            most: self.most,
        })
    }

    /// Computes the fields of each address that several pages have, and adds them for each of these pages.
    fn fields_of_repeats(
        &self,
        frames: SortedFrames,
        table: &AddressTable,
        mut sort: FrameSort,
    ) -> io::Result<FrameSort> {
        let mut links = frames.peekable();
        let mut frame = Vec::new();
        while let Some(next) = links.peek() {
            // An error, which has no number, is returned with the fields.
            let place = next.as_deref().map_or(0, frame::number_of);
            // Made once for an address, then copied for each of its pages.
            let fields = FieldsOfPage::of(&mut links, place, self.most)?;
            for page in table.pages(place) {
                fields.write(page, &mut frame);
                sort.push(&frame)?;
            }
        }
        Ok(sort)
    }

    fn links_of(&self, record: &Record<'_>, format: Format, table: &AddressTable) -> PageLinks {
        let mut found = PageLinks::default();
        let Some(address) = page::address(record, format) else {
            return found;
        };
        let hash = address_hash(&address);
        let own = table.find(hash);
        let wrong = page::for_each_link(record, format, &address, self.window, &mut |link| {
            found.links += 1;
            let target = address_hash(&link.address);
            if let Some(to) = table.find(target) {
                found.to_pages += 1;
                found.frames.push(to, |number, frame| {
                    frame::write_in_link(number, (&address, hash), link.anchor.as_ref(), frame);
                });
            }
            // A page that was fetched twice has its links twice; the sort drops the duplicates.
            if let Some(own) = own {
                found.frames.push(own, |number, frame| {
                    frame::write_out_link(number, (&link.address, target), frame);
                });
            }
        });
        found.wrong = wrong.map(|wrong| format!("{}: {wrong}", record.id));
        found
    }

    fn write_pages(
        &self,
        mut links: SortedLinks,
        sums: &mut FirstPassSums,
        summary: &mut LinksSummary,
        out: &mut dyn Write,
    ) -> Result<(), BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let visit = |record: &Record<'_>, format| {
            let is_whole = record.text_state != TextState::TooLong;
            is_whole.then(|| page::begin_line(record, format))
        };
        self.pages
            .observer
            .stage(JobStage::Linked, self.pages.inputs.total_bytes());
        let mut page = 0;
        let mut write = |line: Option<Vec<u8>>| -> Result<(), BatchError> {
            // Also for a record that is left out: its links are next in the stream and must not be taken for those of a later page.
            let fields = links.of(page).map_err(&temporary)?;
            page += 1;
            let counts = fields.counts;
            summary.cut += counts.cut;
            if let Some(mut line) = line {
                summary.linked_pages += u64::from(counts.in_links > 0);
                summary.anchors += counts.anchors;
                summary.in_links += counts.in_links;
                summary.out_links += counts.out_links;
                page::end_line(&fields.json, &mut line);
                out.write_all(&line)
                    .map_err(BatchError::result(Path::new(OUTPUT)))?;
            }
            Ok(())
        };
        // What is skipped in the pages was counted in the first reading.
        let rows = &mut SkippedRows::default();
        self.for_each_record(&self.pages, &visit, sums, rows, |lines: Vec<_>, _| {
            lines.into_iter().try_for_each(&mut write)
        })?;
        Ok(())
    }

    /// Visits every record of a source and passes what `visit` returns to `collect`, chunk by chunk, with the number of input bytes up to the end of
    /// the chunk. Fails if the source has changed since the first reading.
    fn for_each_record<T: Send, V: Fn(&Record<'_>, Format) -> T + Sync>(
        &self,
        source: &RecordScan<'_>,
        visit: &V,
        sums: &mut FirstPassSums,
        rows: &mut SkippedRows,
        collect: impl FnMut(Vec<T>, u64) -> Result<(), BatchError>,
    ) -> Result<FieldTally, BatchError> {
        let inputs = source.inputs;
        let worker = || RecordMap { inputs, visit };
        let read = source.read(self.documents(), rows, worker, collect)?;
        let first = sums.get_or_insert_with(|| read.sums.clone());
        if *first == read.sums {
            return Ok(read.fields);
        }
        let mut both = first.iter().zip(&read.sums);
        let changed = both.find(|(first, again)| first != again);
        // If all chunks in both readings are equal, one reading has more chunks than the other.
        let chunk = changed.map(|(first, _)| first).or(first.last());
        let source = chunk.and_then(|chunk| inputs.sources.get(chunk.source as usize));
        let name = source.map(|source| source.name().into_owned());
        Err(BatchError::Read(ReadError::Changed {
            name: name.unwrap_or_default(),
        }))
    }
}

/// Splits concatenated strings at their lengths and adds them to the sort.
fn push_frames(mut frames: &[u8], sort: &mut FrameSort) -> io::Result<()> {
    while let Some((length, rest)) = frames.split_first_chunk() {
        let (frame, behind) = rest.split_at(u32::from_be_bytes(*length) as usize);
        sort.push(frame)?;
        frames = behind;
    }
    Ok(())
}

/// Sorted strings, of which the next one can be looked at.
type NumberedFrames = Peekable<SortedFrames>;

/// Returns the next string if it has this number.
fn next_of(frames: &mut NumberedFrames, number: u32) -> io::Result<Option<Vec<u8>>> {
    // An error is returned at once, whichever number it would have had.
    let is_it = |frame: &Vec<u8>| frame::number_of(frame) == number;
    let next = frames.next_if(|next| next.as_ref().ok().is_none_or(is_it));
    next.transpose()
}

/// The links of all pages, sorted.
struct SortedLinks {
    /// Links of pages whose address no other page has.
    single: NumberedFrames,
    /// Finished fields of pages that share an address.
    repeated: NumberedFrames,
    most: usize,
}

impl SortedLinks {
    /// Returns the fields of a page. Pages must be requested in ascending order.
    fn of(&mut self, page: u32) -> io::Result<FieldsOfPage> {
        match next_of(&mut self.repeated, page)? {
            Some(frame) => Ok(FieldsOfPage::read(&frame)),
            // A page has links in one of the two streams only, depending on whether its address has other pages.
            None => FieldsOfPage::of(&mut self.single, page, self.most),
        }
    }
}

/// Numbers of entries in the link fields of a page.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct EntryCounts {
    anchors: u64,
    in_links: u64,
    out_links: u64,
    /// Number of entries left out.
    cut: u64,
}

/// Link fields of a page as JSON, with the number of entries in each.
struct FieldsOfPage {
    counts: EntryCounts,
    json: Vec<u8>,
}

impl FieldsOfPage {
    /// Makes the fields from the links of a page, keeping at most `most` entries of each kind.
    fn of(links: &mut NumberedFrames, page: u32, most: usize) -> io::Result<Self> {
        let mut fields = LinkFields::default();
        let mut cut = 0;
        let mut anchors: Vec<(usize, AnchorField)> = Vec::new();
        while let Some(frame) = next_of(links, page)? {
            let (address, anchor) = match frame::read(&frame) {
                PageLink::Out(address) => {
                    match fields.out_links.len() < most {
                        true => fields.out_links.push(address),
                        false => cut += 1,
                    }
                    continue;
                }
                PageLink::In(address, anchor) => (address, anchor),
            };
            // Links from one address are adjacent, because they start with its hash and then the address.
            if fields.in_links.last() != Some(&address) {
                if fields.in_links.len() == most {
                    cut += 1;
                    continue;
                }
                fields.in_links.push(address);
            }
            let source = fields.in_links.len() - 1;
            match anchor {
                Some(_) if anchors.len() == most => cut += 1,
                Some(anchor) => anchors.push((source, AnchorField::from(anchor))),
                None => {}
            }
        }
        // Sort by address, as readers expect. Anchors from one page stay in the order of their texts.
        anchors.sort_by(|a, b| fields.in_links[a.0].cmp(&fields.in_links[b.0]));
        fields.anchors = anchors.into_iter().map(|(_, anchor)| anchor).collect();
        fields.in_links.sort_unstable();
        fields.out_links.sort_unstable();
        let mut json = Vec::new();
        page::write_json(&fields, &mut json);
        let counts = EntryCounts {
            anchors: fields.anchors.len() as u64,
            in_links: fields.in_links.len() as u64,
            out_links: fields.out_links.len() as u64,
            cut,
        };
        Ok(Self { counts, json })
    }

    /// Replaces `frame` with the string of these fields for a page: the page number, the four counts and the JSON.
    fn write(&self, page: u32, frame: &mut Vec<u8>) {
        frame.clear();
        frame.extend(page.to_be_bytes());
        // Only the page number decides the order, so the rest need not be big-endian.
        frame.extend(bytemuck::bytes_of(&self.counts));
        frame.extend(&self.json);
    }

    /// Decodes a string written by [`Self::write`].
    fn read(frame: &[u8]) -> Self {
        let (counts, json) = frame[4..].split_at(size_of::<EntryCounts>());
        Self {
            counts: bytemuck::pod_read_unaligned(counts),
            json: json.to_vec(),
        }
    }
}
