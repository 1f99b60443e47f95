//! Runs `lookalike links`.

use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc;

use lookalike_corpus::{Format, Inputs, ReadError, Record, TextState};
use lookalike_hamming::threads::{join_all, spawn_scoped};
use serde::Serialize;

use super::frame;
use super::link_spool::{LinkMemory, LinkSpool};
use super::page;
use super::page_fields::{FieldStream, FieldsOfPage, next_number, next_of};
use super::table::{AddressPages, AddressTable, address_hash};
use crate::document_memory::{DocumentUse, ensure_documents_fit, fixed_bytes};
use crate::error::{BatchError, OUTPUT};
use crate::fields::FieldTally;
use crate::observer::JobStage;
use crate::parallel::map_parallel_limited;
use crate::record_scan::{ChunkSum, RecordScan, RecordWorker};
use crate::skipped::{SkippedRow, SkippedRows};
use crate::spill::frame_sort::{FrameSort, put_frame};
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
    links: u64,
    to_pages: u64,
    /// Message about link fields of this record that hold something other than texts.
    wrong: Option<String>,
    /// Error of the temporary files. Then some links are missing.
    failed: Option<io::Error>,
}

/// All links, before they are sorted.
struct FoundLinks {
    /// Links of addresses that one page has, by page number.
    single: LinkSpool,
    /// Links of addresses that several pages have, by the place of the address in the table. Repeating them for each page would cost the square of
    /// the address's pages.
    repeated: LinkSpool,
}

impl FoundLinks {
    /// Adds strings of one address, each after its length.
    fn push(&self, to: AddressPages, frames: &[u8]) -> io::Result<()> {
        match to {
            AddressPages::One(page) => self.single.push(page, frames),
            AddressPages::Several(place) => self.repeated.push(place, frames),
        }
    }
}

/// Links of single pages, and finished fields of pages that share an address, by page number.
struct LinksByPage {
    single: LinkSpool,
    repeated: LinkSpool,
    memory: LinkMemory,
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
        drop(table);
        summary.tables_on_disk = max_mapped(self.folder);
        summary.skipped = rows.finish();
        // Before the first line is written, so that a refused job has no output.
        self.pages.losses.check(&summary.skipped, read)?;
        let fields = self.fields(links, &mut summary);
        let fields = fields.map_err(BatchError::temporary(self.folder))?;
        self.write_pages(&fields, &mut sums, &mut summary, out)?;
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
        table.sort(self.pages.limits.workers());
        Ok(table)
    }

    fn links(
        &self,
        table: &AddressTable,
        sums: &mut FirstPassSums,
        summary: &mut LinksSummary,
        rows: &mut SkippedRows,
        read: &mut u64,
    ) -> Result<LinksByPage, BatchError> {
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
        let memory = self.link_memory(table);
        let links = self.spools(table, memory, summary.pages);
        let links = links.map_err(&temporary)?;
        let visit = |record: &Record<'_>, format| self.links_of(record, format, table, &links);
        self.pages
            .observer
            .stage(JobStage::Links, source.inputs.total_bytes());
        let collect = |found: Vec<PageLinks>, _| {
            for found in found {
                if let Some(failed) = found.failed {
                    return Err(temporary(failed));
                }
                if let Some(place) = found.wrong {
                    wrong.add("wrong-type", place);
                    lost += 1;
                }
                summary.links += found.links;
                summary.links_to_pages += found.to_pages;
            }
            Ok(())
        };
        let fields = self.for_each_record(source, &visit, sums, read_rows, collect)?;
        rows.append(wrong);
        if self.from.is_some() {
            *read += fields.records;
        }
        // They count as losses.
        *read -= lost;
        let by_page = self.fields_of_repeats(links, table, memory, summary);
        by_page.map_err(temporary)
    }

    /// Divides the memory for links that `table` leaves.
    fn link_memory(&self, table: &AddressTable) -> LinkMemory {
        // What exceeds the share is in a file and takes nothing here.
        let of_table = table.bytes().min(self.table_share().all());
        let remaining = self.remaining().saturating_sub(of_table);
        LinkMemory::of(remaining, self.pages.limits.workers())
    }

    fn spools(
        &self,
        table: &AddressTable,
        memory: LinkMemory,
        pages: u64,
    ) -> io::Result<FoundLinks> {
        let LinkMemory { parts, spool, .. } = memory;
        // With repeats, single links get half of the memory, and repeated links and their fields a quarter each. Otherwise these stay empty.
        let single = spool >> u32::from(table.has_repeats());
        Ok(FoundLinks {
            single: LinkSpool::new(self.folder, parts, pages, single)?,
            repeated: LinkSpool::new(self.folder, parts, table.len(), spool / 4)?,
        })
    }

    /// Computes the fields of each address that several pages have, and adds them for each of these pages.
    fn fields_of_repeats(
        &self,
        links: FoundLinks,
        table: &AddressTable,
        memory: LinkMemory,
        summary: &mut LinksSummary,
    ) -> io::Result<LinksByPage> {
        let FoundLinks { single, repeated } = links;
        let LinkMemory { parts, spool, .. } = memory;
        let fields = LinkSpool::new(self.folder, parts, summary.pages, spool / 4)?;
        let sorted = map_parallel_limited(0..parts, memory.threads, |part| {
            let links = repeated.sorted(part, FrameSort::new(memory.sort, self.folder))?;
            let on_disk = links.temporary_bytes();
            let (mut links, mut frame) = (links.peekable(), Vec::new());
            while let Some(place) = next_number(&mut links) {
                // Made once for an address, then copied for each of its pages.
                let of_address = FieldsOfPage::of(&mut links, place, self.most)?;
                for page in table.pages(place) {
                    frame.clear();
                    put_frame(&mut frame, |frame| of_address.write(page, frame));
                    fields.push(page, &frame)?;
                }
            }
            io::Result::Ok(on_disk)
        });
        summary.temporary_bytes += repeated.bytes_on_disk() + single.bytes_on_disk();
        summary.temporary_bytes += sorted.into_iter().sum::<io::Result<u64>>()?;
        Ok(LinksByPage {
            single,
            repeated: fields,
            memory,
        })
    }

    fn links_of(
        &self,
        record: &Record<'_>,
        format: Format,
        table: &AddressTable,
        links: &FoundLinks,
    ) -> PageLinks {
        let mut found = PageLinks::default();
        let Some(address) = page::address(record, format) else {
            return found;
        };
        let hash = address_hash(&address);
        let own = table.find(hash);
        let (mut pushed, mut frame, mut of_page) = (Ok(()), Vec::new(), Vec::new());
        let wrong = page::for_each_link(record, format, &address, self.window, &mut |link| {
            found.links += 1;
            let target = address_hash(&link.address);
            if let Some(to) = table.find(target) {
                found.to_pages += 1;
                frame.clear();
                let (source, anchor) = ((&*address, hash), link.anchor.as_ref());
                put_frame(&mut frame, |frame| {
                    frame::write_in_link(to.number(), source, anchor, frame);
                });
                // Nothing more is added after an error, which ends the job.
                if pushed.is_ok() {
                    pushed = links.push(to, &frame);
                }
            }
            // A page that was fetched twice has its links twice; the sort drops the duplicates.
            if let Some(own) = own {
                put_frame(&mut of_page, |frame| {
                    frame::write_out_link(own.number(), (&link.address, target), frame);
                });
            }
        });
        if let Some(own) = own {
            // All at once, since pages that are read at the same time have numbers of the same range.
            pushed = pushed.and_then(|()| links.push(own, &of_page));
        }
        found.wrong = wrong.map(|wrong| format!("{}: {wrong}", record.id));
        found.failed = pushed.err();
        found
    }

    /// Makes the fields of all pages that have links, in the order of the pages.
    fn fields(&self, links: LinksByPage, summary: &mut LinksSummary) -> io::Result<LinkSpool> {
        let LinksByPage {
            single,
            repeated,
            memory,
        } = links;
        let LinkMemory { parts, spool, .. } = memory;
        let fields = LinkSpool::new(self.folder, parts, summary.pages, spool)?;
        let sorted = map_parallel_limited(0..parts, memory.threads, |part| {
            let sort = || FrameSort::new(memory.sort / 2, self.folder);
            let single = single.sorted(part, sort())?;
            let repeated = repeated.sorted(part, sort())?;
            let on_disk = single.temporary_bytes() + repeated.temporary_bytes();
            let (mut single, mut repeated) = (single.peekable(), repeated.peekable());
            let mut frame = Vec::new();
            loop {
                let next = [next_number(&mut single), next_number(&mut repeated)];
                let Some(page) = next.into_iter().flatten().min() else {
                    return io::Result::Ok(on_disk);
                };
                frame.clear();
                // A page has links in one of the two streams only, depending on whether its address has other pages.
                if let Some(finished) = next_of(&mut repeated, page)? {
                    put_frame(&mut frame, |frame| frame.extend(finished));
                } else {
                    let of_page = FieldsOfPage::of(&mut single, page, self.most)?;
                    put_frame(&mut frame, |frame| of_page.write(page, frame));
                }
                fields.push(page, &frame)?;
            }
        });
        summary.temporary_bytes += repeated.bytes_on_disk() + fields.bytes_on_disk();
        summary.temporary_bytes += sorted.into_iter().sum::<io::Result<u64>>()?;
        Ok(fields)
    }

    fn write_pages(
        &self,
        fields: &LinkSpool,
        sums: &mut FirstPassSums,
        summary: &mut LinksSummary,
        out: &mut dyn Write,
    ) -> Result<(), BatchError> {
        std::thread::scope(|scope| {
            let (sender, pieces) = mpsc::sync_channel(2);
            let reader = spawn_scoped(scope, move || fields.send(&sender));
            let reader = reader.map_err(BatchError::Thread)?;
            // Ends the reader, because it drops the receiver.
            let written = self.write_lines(FieldStream::new(pieces), sums, summary, out);
            join_all(vec![reader]);
            written
        })
    }

    fn write_lines(
        &self,
        mut fields: FieldStream,
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
            let (counts, json) = fields.of(page).map_err(&temporary)?;
            page += 1;
            summary.cut += counts.cut;
            if let Some(mut line) = line {
                summary.linked_pages += u64::from(counts.in_links > 0);
                summary.anchors += counts.anchors;
                summary.in_links += counts.in_links;
                summary.out_links += counts.out_links;
                page::end_line(json, &mut line);
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
