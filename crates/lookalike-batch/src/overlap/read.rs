//! The first stage: every record once; its id, site and text's class, and once a class its chunks under every chunking.

use std::borrow::Cow;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lookalike::chunk::Chunker;
use lookalike_corpus::{
    BadRecord, Chunk, FieldPath, InputOptions, Inputs, Parser, Record, Skip, TextState,
};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::settings::OverlapSettings;
use super::site::Site;
use crate::documents::{ClassId, Classes, Documents};
use crate::error::BatchError;
use crate::observer::Observer;
use crate::pipeline::{Worker, run_in_order};
use crate::scan::{Seen, Tally, content_hash};
use crate::sets::{SetStore, header};
use crate::summary::{SkippedRow, SkippedRows};

/// What the reading is asked for.
pub(crate) struct ReadPlan<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) options: &'a InputOptions,
    pub(crate) settings: &'a OverlapSettings,
    /// Whether URLs and servers are wanted.
    pub(crate) sites: bool,
    pub(crate) threads: usize,
    /// Bytes of chunks to keep in memory.
    pub(crate) sets_budget: u64,
    pub(crate) folder: &'a Path,
}

/// All that was read.
pub(crate) struct ReadOut {
    pub(crate) documents: Documents,
    pub(crate) classes: Classes,
    pub(crate) sites: Sites,
    /// Chunks of every class, under each chunking.
    pub(crate) chunks: Vec<ChunkSets>,
    pub(crate) tally: Tally,
    pub(crate) skipped: Vec<SkippedRow>,
    pub(crate) lines: Vec<SkippedLine>,
    pub(crate) unreadable: u64,
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SkippedLine {
    kind: Cow<'static, str>,
    reason: String,
}

/// The chunk sets of one chunking.
pub(crate) struct ChunkSets {
    pub(crate) sets: SetStore,
    /// Chunks of each class.
    pub(crate) sizes: Vec<u32>,
}

/// URLs and servers of documents; empty when nobody asked.
#[derive(Default)]
pub(crate) struct Sites {
    urls: String,
    /// Ends of the URLs in `urls`, by document; an empty one stands for the id.
    url_ends: Vec<u64>,
    /// Numbers of servers, one more than their position in `names`.
    pub(crate) servers: Vec<Option<NonZeroU32>>,
    /// Servers as they turned up.
    pub(crate) names: Vec<String>,
    numbers: HashMap<String, NonZeroU32>,
}

impl Sites {
    fn push(&mut self, site: Site) {
        self.urls.push_str(site.url.as_deref().unwrap_or_default());
        self.url_ends.push(self.urls.len() as u64);
        let server = site.server.map(|name| {
            let next = NonZeroU32::MIN.saturating_add(self.names.len() as u32);
            *self.numbers.entry(name).or_insert_with_key(|name| {
                self.names.push(name.clone());
                next
            })
        });
        self.servers.push(server);
    }

    /// URLs, their ends, and numbers of servers.
    pub(crate) fn columns(&self) -> (&str, &[u64], &[Option<NonZeroU32>]) {
        (&self.urls, &self.url_ends, &self.servers)
    }

    /// From its columns, without the names of servers; nothing can be added.
    pub(crate) fn from_columns(
        urls: String,
        url_ends: Vec<u64>,
        servers: Vec<Option<NonZeroU32>>,
    ) -> Self {
        Self {
            urls,
            url_ends,
            servers,
            ..Self::default()
        }
    }

    /// The URL of a document, if it has one that is not its id.
    pub(crate) fn url(&self, document: usize) -> Option<&str> {
        let end = *self.url_ends.get(document)? as usize;
        let start = document
            .checked_sub(1)
            .map_or(0, |before| self.url_ends[before] as usize);
        (end > start).then(|| &self.urls[start..end])
    }

    pub(crate) fn bytes(&self) -> u64 {
        let names: usize = self.names.iter().map(|name| 2 * name.len() + 96).sum();
        (self.urls.capacity() + self.url_ends.capacity() * 8 + self.servers.capacity() * 4 + names)
            as u64
    }
}

/// What one worker made of one chunk of input.
#[derive(Default)]
struct Batch {
    ids: String,
    rows: Vec<Row>,
    classes: Vec<(ClassId, u128)>,
    /// Sets with headers, for each chunking.
    words: Vec<Vec<u64>>,
    skipped: Vec<(&'static str, String)>,
    unreadable: u64,
    tally: Tally,
    disk_bytes: u64,
}

struct Row {
    id_end: u32,
    class: Option<ClassId>,
    length: u64,
    record_hash: u64,
    site: Site,
}

struct Reader<'a> {
    plan: &'a ReadPlan<'a>,
    seen: &'a Seen,
    too_many: &'a AtomicBool,
    parser: Parser<'a>,
    chunker: Chunker,
    url_field: FieldPath,
}

impl Worker for Reader<'_> {
    type Output = Batch;

    fn run(&mut self, chunk: &Chunk) -> Result<Batch, BatchError> {
        let mut batch = Batch {
            words: vec![Vec::new(); self.plan.settings.chunkings.len()],
            disk_bytes: chunk.disk_bytes,
            ..Batch::default()
        };
        for skip in &chunk.skips {
            batch.skipped.push(skip_line(skip));
        }
        let Self {
            plan,
            seen,
            too_many,
            parser,
            chunker,
            url_field,
        } = self;
        parser.parse(chunk, &mut |record| match record {
            Err(bad) => batch.add_bad(plan.inputs, &bad),
            Ok(record) => {
                let site = match plan.sites {
                    true => {
                        let source = &plan.inputs.sources[record.source as usize];
                        Site::of(
                            &record,
                            !source.is_document(),
                            &plan.settings.server,
                            url_field,
                        )
                    }
                    false => Site::default(),
                };
                if !batch.add(&record, site, seen, chunker) {
                    too_many.store(true, Ordering::Relaxed);
                }
            }
        });
        Ok(batch)
    }
}

fn skip_line(skip: &Skip) -> (&'static str, String) {
    (
        skip.kind.as_str(),
        format!("{}: {}", skip.name, skip.reason),
    )
}

impl Batch {
    fn add_bad(&mut self, inputs: &Inputs, bad: &BadRecord) {
        let name = inputs.sources[bad.source as usize].name();
        self.unreadable += 1;
        self.skipped.push((
            bad.kind.as_str(),
            format!("{name}, line {}: {}", bad.line, bad.reason),
        ));
    }

    /// Adds a record; false when there are too many texts.
    fn add(&mut self, record: &Record<'_>, site: Site, seen: &Seen, chunker: &mut Chunker) -> bool {
        let text = &*record.text;
        let tally = &mut self.tally;
        tally.text_bytes += text.len() as u64;
        tally.missing += u64::from(record.text_state == TextState::Missing);
        tally.too_long += u64::from(record.text_state == TextState::TooLong);
        tally.replaced += u64::from(record.replaced);
        tally.generated_ids += u64::from(record.id_generated);
        tally.removed.count(&record.removed);
        let class = if text.trim().is_empty() {
            tally.empty += u64::from(record.text_state != TextState::TooLong);
            None
        } else {
            let hash = content_hash(text);
            let Some((class, is_new)) = seen.class(hash) else {
                return false;
            };
            if is_new {
                self.classes.push((class, hash));
                self.add_chunks(class, text, chunker);
            }
            Some(class)
        };
        self.ids.push_str(&record.id);
        self.rows.push(Row {
            id_end: self.ids.len() as u32,
            class,
            length: text.len() as u64,
            record_hash: xxh3_64(record.raw),
            site,
        });
        true
    }

    fn add_chunks(&mut self, class: ClassId, text: &str, chunker: &mut Chunker) {
        chunker.chunk(text);
        for (chunking, words) in self.words.iter_mut().enumerate() {
            let set = chunker.set(chunking);
            words.push(header(class.position() as u32, set.len()));
            words.extend_from_slice(set);
        }
    }
}

impl ReadOut {
    /// Nothing yet.
    pub(crate) fn new(plan: &ReadPlan<'_>) -> Self {
        let share = plan.sets_budget / plan.settings.chunkings.len() as u64;
        let chunks = plan.settings.chunkings.iter();
        Self {
            documents: Documents::default(),
            classes: Classes::default(),
            sites: Sites::default(),
            chunks: chunks
                .map(|_| ChunkSets {
                    sets: SetStore::new(share),
                    sizes: Vec::new(),
                })
                .collect(),
            tally: Tally::default(),
            skipped: Vec::new(),
            lines: Vec::new(),
            unreadable: 0,
        }
    }

    fn append(&mut self, batch: Batch, plan: &ReadPlan<'_>) -> Result<(), BatchError> {
        let mut start = 0;
        for row in batch.rows {
            self.documents
                .push_id(&batch.ids[start..row.id_end as usize]);
            start = row.id_end as usize;
            self.documents.classes.push(row.class);
            self.documents.lengths.push(row.length);
            self.documents.record_hashes.push(row.record_hash);
            if plan.sites {
                self.sites.push(row.site);
            }
        }
        for (class, hash) in batch.classes {
            self.classes.set(class, hash, 0, 0);
        }
        for (chunks, mut words) in self.chunks.iter_mut().zip(batch.words) {
            words.shrink_to_fit();
            chunks
                .push(words, plan.folder)
                .map_err(BatchError::temporary(plan.folder))?;
        }
        self.tally.add(&batch.tally);
        self.unreadable += batch.unreadable;
        Ok(())
    }
}

impl ChunkSets {
    pub(crate) fn push(&mut self, words: Vec<u64>, folder: &Path) -> std::io::Result<()> {
        let mut at = 0;
        while at < words.len() {
            let (class, length) = crate::sets::split(words[at]);
            if self.sizes.len() <= class as usize {
                self.sizes.resize(class as usize + 1, 0);
            }
            self.sizes[class as usize] = length as u32;
            at += 1 + length;
        }
        self.sets.push(words, folder).map(|_| ())
    }
}

/// Reads all inputs.
pub(crate) fn read(plan: &ReadPlan<'_>, observer: &dyn Observer) -> Result<ReadOut, BatchError> {
    let (seen, too_many) = (Seen::new(), AtomicBool::new(false));
    let reader = || Reader {
        plan,
        seen: &seen,
        too_many: &too_many,
        parser: Parser::new(plan.inputs, plan.options),
        chunker: Chunker::new(&plan.settings.chunkings, plan.settings.bits),
        url_field: FieldPath::name("url"),
    };
    let mut out = ReadOut::new(plan);
    let mut rows = SkippedRows::default();
    for skip in &plan.inputs.skips {
        let (kind, first) = skip_line(skip);
        rows.add(kind, first.clone());
        out.lines.push(SkippedLine {
            kind: kind.into(),
            reason: first,
        });
    }
    let mut read = 0;
    run_in_order(
        plan.inputs,
        plan.options,
        (0..plan.threads).map(|_| reader()).collect(),
        |mut batch| {
            for (kind, first) in batch.skipped.drain(..) {
                if plan.settings.strict {
                    return Err(BatchError::Strict(first));
                }
                rows.add(kind, first.clone());
                out.lines.push(SkippedLine {
                    kind: kind.into(),
                    reason: first,
                });
            }
            read += batch.disk_bytes;
            out.append(batch, plan)?;
            observer.advance(read);
            Ok(())
        },
    )?;
    if too_many.load(Ordering::Relaxed) || out.documents.len() >= u32::MAX as usize {
        return Err(BatchError::TooMany);
    }
    out.skipped = rows.finish();
    Ok(out)
}
