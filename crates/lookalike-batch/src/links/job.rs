//! The job behind `lookalike links`.

use std::io::{self, Write};
use std::path::Path;

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
use crate::spill::table_memory::{TableShare, TableShareSizes, check, most_mapped};

/// The job: which pages get fields, and where links come from.
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
        /// Sets the pages whose links count: those that get fields, if nothing is said.
        from: Option<RecordScan<'a>>,
        /// Sets how many words before and behind a link go with its text: 10, if nothing is said.
        window: usize,
        /// Sets how many linking pages, anchors and linked pages a page keeps, of each as many: 1000, if nothing is said.
        most: usize,
    }
}

/// Summary of the job.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct LinksSummary {
    /// Records read.
    pub pages: u64,
    /// Of these, with neither a URL nor an id that is one or a path: they get empty fields.
    pub without_address: u64,
    /// Of these, longer than the limit: left out.
    pub too_long: u64,
    /// Of these, with broken characters that were replaced.
    pub characters_replaced: u64,
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
    /// Most bytes of the table of addresses that were in a temporary file, because it took more than its share of the memory.
    pub tables_on_disk: u64,
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
    is_replaced: bool,
}

/// Findings of the second pass about a record.
#[derive(Default)]
struct PageLinks {
    frames: LinkFrames,
    links: u64,
    to_pages: u64,
    /// The record whose fields of links hold something else, and how.
    wrong: Option<String>,
}

/// Strings of links, each with its length before it.
#[derive(Default)]
struct LinkFrames {
    /// Of pages whose address no other page has, by their numbers.
    single: Vec<u8>,
    /// Of the others, by the place of their address in the table: in front of each page they would be as many as the pages of an
    /// address, squared.
    repeated: Vec<u8>,
}

impl LinkFrames {
    /// Adds the string that `write` makes for the number that it gets.
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
    /// Creates a job that adds fields to `pages`, whose limits and losses are its own. Its temporary files go to `folder`.
    pub fn new(pages: RecordScan<'a>, folder: &'a Path) -> Self {
        Self {
            pages,
            from: None,
            window: 10,
            most: 1000,
            folder,
        }
    }

    /// Writes the records with the fields that links make, a JSON object a line, in input order.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, or `out` cannot be written to.
    pub fn write(&self, out: &mut dyn Write) -> Result<LinksSummary, BatchError> {
        for source in [Some(&self.pages), self.from.as_ref()]
            .into_iter()
            .flatten()
        {
            let RecordScan {
                inputs, options, ..
            } = source;
            ensure_documents_fit(&source.limits, self.documents(), inputs, options)?;
            source.losses.refuse_undiscovered(inputs)?;
        }
        self.ensure_links_fit()?;
        let _tables = TableShare::open(self.table_share(), self.folder);
        let mut summary = LinksSummary::default();
        let mut rows = SkippedRows::default();
        let mut sums = None;
        let table = self.addresses(&mut sums, &mut summary, &mut rows)?;
        let links = self.links(&table, &mut sums, &mut summary, &mut rows)?;
        // Sorting was budgeted beside the table; the merge that follows has the memory of both.
        drop(table);
        summary.tables_on_disk = most_mapped(self.folder);
        summary.skipped = rows.finish();
        self.pages.losses.check(&summary.skipped, summary.pages)?;
        self.write_pages(links, &mut sums, &mut summary, out)?;
        Ok(summary)
    }

    fn documents(&self) -> DocumentUse<'static> {
        DocumentUse::Links {
            window: self.window,
        }
    }

    /// Bytes of everything but the table of addresses and the sort.
    fn fixed(&self) -> u64 {
        fixed_bytes(&self.pages.limits, self.documents(), &self.pages.options)
    }

    /// Bytes for the table of addresses and the sort.
    fn left(&self) -> u64 {
        self.pages.limits.memory.saturating_sub(self.fixed())
    }

    fn ensure_links_fit(&self) -> Result<(), BatchError> {
        /// Least memory to sort links with, beside the table.
        const LEAST: u64 = 2 << 20;
        match self.left() >= LEAST {
            true => Ok(()),
            false => Err(BatchError::Memory {
                what: "sorting links",
                needed: LEAST,
                left: self.left(),
                least: self.fixed() + LEAST,
            }),
        }
    }

    /// Bytes that the table of addresses may take.
    fn table_share(&self) -> TableShareSizes {
        TableShareSizes::of(self.left())
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
            is_replaced: record.replaced,
        };
        let total = self.pages.inputs.total_bytes();
        self.pages.observer.stage(JobStage::Scan, total);
        let collect = |seen: Vec<PageSeen>, _| -> Result<(), BatchError> {
            for seen in seen {
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
        let fields = self.each_record(&self.pages, &visit, sums, rows, collect)?;
        fields.check(self.pages.inputs, &self.pages.options)?;
        table.sort();
        Ok(table)
    }

    fn links(
        &self,
        table: &AddressTable,
        sums: &mut FirstSums,
        summary: &mut LinksSummary,
        rows: &mut SkippedRows,
    ) -> Result<SortedLinks, BatchError> {
        let (mut sums_of_links, mut known_rows) = (None, SkippedRows::default());
        let (sums, read_rows) = match self.from {
            Some(_) => (&mut sums_of_links, &mut *rows),
            // Records of the pages were counted when they were read first.
            None => (sums, &mut known_rows),
        };
        let mut wrong = Vec::new();
        let source = self.from.as_ref().unwrap_or(&self.pages);
        let temporary = BatchError::temporary(self.folder);
        // A sort takes half as much again while its buffers grow, and chunks of links wait in front of it.
        let of_table = table.bytes().min(self.table_share().all());
        let budget = self.left().saturating_sub(of_table) / 3;
        let has_repeats = table.has_repeats();
        let mut single = FrameSort::new(budget >> u32::from(has_repeats), self.folder);
        // As much again sorts the fields that are made of these.
        let mut repeated = FrameSort::new(budget / 4, self.folder);
        let visit = |record: &Record<'_>, format| self.links_of(record, format, table);
        self.pages
            .observer
            .stage(JobStage::Links, source.inputs.total_bytes());
        self.each_record(
            source,
            &visit,
            sums,
            read_rows,
            |found: Vec<PageLinks>, _| {
                for found in found {
                    wrong.extend(found.wrong);
                    summary.links += found.links;
                    summary.links_to_pages += found.to_pages;
                    push_frames(&found.frames.single, &mut single)
                        .and_then(|()| push_frames(&found.frames.repeated, &mut repeated))
                        .map_err(&temporary)?;
                }
                Ok(())
            },
        )?;
        for place in wrong {
            rows.add("wrong-type", place);
        }
        summary.temporary_bytes = single.temporary_bytes() + repeated.temporary_bytes();
        let repeated = repeated.finish().map_err(&temporary)?;
        let fields = FrameSort::new(budget / 4, self.folder);
        let fields = self.fields_of_repeats(repeated, table, fields);
        let fields = fields.map_err(&temporary)?;
        summary.temporary_bytes += fields.temporary_bytes();
        Ok(SortedLinks {
            single: FramesByNumber::new(single.finish().map_err(&temporary)?)
                .map_err(&temporary)?,
            repeated: FramesByNumber::new(fields.finish().map_err(&temporary)?)
                .map_err(&temporary)?,
            most: self.most,
        })
    }

    /// Makes the fields of each address that several pages have, for each of these.
    fn fields_of_repeats(
        &self,
        frames: SortedFrames,
        table: &AddressTable,
        mut sort: FrameSort,
    ) -> io::Result<FrameSort> {
        let mut links = FramesByNumber::new(frames)?;
        let mut frame = Vec::new();
        while let Some(place) = links.number() {
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
        let PageLinks {
            frames,
            links,
            to_pages,
            ..
        } = &mut found;
        let wrong = page::each_link(record, format, &address, self.window, &mut |link| {
            *links += 1;
            let target = address_hash(&link.address);
            if let Some(to) = table.find(target) {
                *to_pages += 1;
                frames.push(to, |number, frame| {
                    frame::write_in_link(number, (&address, hash), link.anchor.as_ref(), frame);
                });
            }
            // A page that was fetched twice has its links twice, and the sort drops what is equal.
            if let Some(own) = own {
                frames.push(own, |number, frame| {
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
        sums: &mut FirstSums,
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
            let fields = links.of(page).map_err(&temporary)?;
            page += 1;
            summary.cut += fields.cut;
            if let Some(mut line) = line {
                summary.linked_pages += u64::from(fields.in_links > 0);
                summary.anchors += fields.anchors;
                summary.in_links += fields.in_links;
                summary.out_links += fields.out_links;
                page::end_line(&fields.json, &mut line);
                out.write_all(&line)
                    .map_err(BatchError::result(Path::new(OUTPUT)))?;
            }
            Ok(())
        };
        let rows = &mut SkippedRows::default();
        self.each_record(&self.pages, &visit, sums, rows, |lines: Vec<_>, _| {
            lines.into_iter().try_for_each(&mut write)
        })?;
        Ok(())
    }

    /// Visits every record of a source, which must be what it was when it was read first. What `visit` makes goes to `collect` chunk by chunk,
    /// with the bytes of input up to its end.
    fn each_record<T: Send, V: Fn(&Record<'_>, Format) -> T + Sync>(
        &self,
        source: &RecordScan<'_>,
        visit: &V,
        sums: &mut FirstSums,
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
        // Where those that both have are the same, one has more.
        let chunk = changed.map(|(first, _)| first).or(first.last());
        let source = chunk.and_then(|chunk| inputs.sources.get(chunk.source as usize));
        let name = source.map(|source| source.name().into_owned());
        Err(BatchError::Read(ReadError::Changed {
            name: name.unwrap_or_default(),
        }))
    }
}

/// Takes the strings apart that stand behind each other.
fn push_frames(mut frames: &[u8], sort: &mut FrameSort) -> io::Result<()> {
    while let Some((length, rest)) = frames.split_first_chunk() {
        let (frame, behind) = rest.split_at(u32::from_be_bytes(*length) as usize);
        sort.push(frame)?;
        frames = behind;
    }
    Ok(())
}

/// Sorted strings, taken number by number.
struct FramesByNumber {
    frames: SortedFrames,
    next: Option<Vec<u8>>,
}

impl FramesByNumber {
    fn new(mut frames: SortedFrames) -> io::Result<Self> {
        let next = frames.next()?;
        Ok(Self { frames, next })
    }

    /// Returns the number of the next string.
    fn number(&self) -> Option<u32> {
        self.next.as_deref().map(frame::number_of)
    }

    /// Returns the next string if it has this number.
    fn next_of(&mut self, number: u32) -> io::Result<Option<Vec<u8>>> {
        if self.number() != Some(number) {
            return Ok(None);
        }
        let next = self.frames.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }
}

/// The links of all pages.
struct SortedLinks {
    /// Links of pages whose address no other page has.
    single: FramesByNumber,
    /// Fields of the others.
    repeated: FramesByNumber,
    most: usize,
}

impl SortedLinks {
    /// The fields of a page; pages are asked for in ascending order.
    fn of(&mut self, page: u32) -> io::Result<FieldsOfPage> {
        match self.repeated.next_of(page)? {
            Some(frame) => Ok(FieldsOfPage::read(&frame)),
            None => FieldsOfPage::of(&mut self.single, page, self.most),
        }
    }
}

/// The fields of a page as they are written, and how much is in them.
struct FieldsOfPage {
    anchors: u64,
    in_links: u64,
    out_links: u64,
    /// Links left out.
    cut: u64,
    json: Vec<u8>,
}

impl FieldsOfPage {
    /// Makes them of the links of a page, of which `most` are kept.
    fn of(links: &mut FramesByNumber, page: u32, most: usize) -> io::Result<Self> {
        let mut fields = LinkFields::default();
        let mut cut = 0;
        let mut anchors: Vec<(usize, AnchorField)> = Vec::new();
        while let Some(frame) = links.next_of(page)? {
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
            // Frames of one source stand together: they begin with its hash and then its address.
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
        // By address, as a reader expects it; anchors of one page in the order of their texts.
        anchors.sort_by(|a, b| fields.in_links[a.0].cmp(&fields.in_links[b.0]));
        fields.anchors = anchors.into_iter().map(|(_, anchor)| anchor).collect();
        fields.in_links.sort_unstable();
        fields.out_links.sort_unstable();
        let mut json = Vec::new();
        page::write_json(&fields, &mut json);
        Ok(Self {
            anchors: fields.anchors.len() as u64,
            in_links: fields.in_links.len() as u64,
            out_links: fields.out_links.len() as u64,
            cut,
            json,
        })
    }

    /// Replaces `frame` by the string of these fields for a page: its number, the four counts and the JSON.
    fn write(&self, page: u32, frame: &mut Vec<u8>) {
        frame.clear();
        frame.extend(page.to_be_bytes());
        for count in [self.anchors, self.in_links, self.out_links, self.cut] {
            frame.extend(count.to_le_bytes());
        }
        frame.extend(&self.json);
    }

    /// Reads that string back.
    fn read(frame: &[u8]) -> Self {
        let (counts, json) = frame[4..].split_at(32);
        let mut counts = counts.chunks_exact(8);
        let mut count = || {
            let bytes = counts.next().expect("four counts");
            u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
        };
        Self {
            anchors: count(),
            in_links: count(),
            out_links: count(),
            cut: count(),
            json: json.to_vec(),
        }
    }
}
