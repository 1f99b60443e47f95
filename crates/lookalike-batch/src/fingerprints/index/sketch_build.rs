//! Builds an index of sketches of several places in bounded memory.
//!
//! The build uses the folder `OUTPUT.building`. The sketches and ids of all inputs are sorted, on disk if they are many, and written to plain files.
//! `job.json` records that this is done, and an interrupted build resumes from there. Then the sections of the index file are filled, each band by
//! sorting the positions of the sketches by their buckets, and `part` is renamed. The result does not depend on the order of the inputs, the memory
//! limit, threads or interruptions.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use lookalike_hamming::{PageChecks, RankBytes};
use serde::{Deserialize, Serialize};

use super::build_folder::{ENDS, FIRST_IDS, PART, SKETCHES, TEXTS, create, finish, other_build};
use super::{GatheredIndex, IndexBuild, IndexSummary, MIN_SCRATCH};
use crate::error::BatchError;
use crate::fingerprints::files::{CodesSummary, SketchShape};
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::fingerprints::sketches::{
    BandSections, EqualPlaces, IdCounts, SketchIndexHeader, SketchIndexSections, SketchReading,
    bucket, open_sketches, tail_bytes,
};
use crate::observer::{JobObserver, JobStage, check_cancelled};
use crate::parallel::in_order;
use crate::spill::external_sort::ExternalSort;
use crate::spill::frame_sort::FrameSort;
use crate::spill::offset_writer::OffsetWriter;

/// Bytes read or written at once.
const STEP: usize = 1 << 20;
/// Number of parts of a thread's memory, one of which the positions of a band may take: vectors double when they grow.
// Tests have no memory for them, so that a few thousand sketches are merged from several runs.
const PARTS: u64 = if cfg!(test) { u64::MAX } else { 2 };

/// Summary of a build of an index of sketches.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SketchIndexSummary {
    /// Counts of each input.
    pub inputs: Vec<CodesSummary>,
    /// Number of sketches read.
    pub sketches: u64,
    /// Number of distinct sketches.
    pub distinct: u64,
    /// Minimum number of equal places of a query and what it finds.
    pub equal: EqualPlaces,
    /// Number of bands of places. Two such sketches agree in at least one band.
    pub bands: usize,
    /// True if ids are stored with the sketches.
    pub ids: bool,
    /// Id of the scheme, if the inputs name one.
    pub scheme_id: Option<String>,
    /// Size of the index in bytes.
    pub bytes: u64,
    /// Size of the index divided by the number of distinct sketches.
    pub bytes_per_sketch: f64,
}

/// Facts about the gathered inputs.
#[derive(Serialize, Deserialize)]
pub(super) struct GatheredSketches {
    /// Bytes of a [`SketchIndexHeader`].
    head: Vec<u8>,
    summaries: Vec<CodesSummary>,
}

impl GatheredIndex for GatheredSketches {
    fn inputs(&self) -> &[CodesSummary] {
        &self.summaries
    }

    fn gather(build: &IndexBuild<'_>, folder: &Path) -> Result<Self, BatchError> {
        let failed = BatchError::result(folder);
        // The sort takes half as much again while its buffers grow or while threads copy positions, and what is read at once needs memory too.
        let budget = build.memory_beside(0)? / 2;
        let mut sort = FrameSort::new(budget, folder).threads(build.limits.workers());
        let mut reading = SketchReading::new(build.observer, build.losses);
        let (mut has_ids, mut frame) = (false, Vec::new());
        let summaries = reading.for_each(build.inputs, &mut |reading, _, rows| {
            let Some(shape) = reading.shape() else {
                return Ok(());
            };
            // Check this before hours of reading.
            build.min_equal(shape)?;
            has_ids |= rows.has_ids && build.with_ids;
            for (name, sketch) in rows.for_each(shape) {
                frame.clear();
                shape.extend_raw(sketch, &mut frame);
                // For a sketch without an id this appends its digits, which are dropped again if no input has ids.
                if build.with_ids {
                    // The id follows the sketch, so that equal sketches are adjacent and the ids of each ascend.
                    frame.extend_from_slice(name.as_bytes());
                }
                sort.push(&frame).map_err(&failed)?;
            }
            Ok(())
        })?;
        let shape = reading.shape();
        let shape = shape.ok_or(FingerprintSettingsError::NoSketch)?;
        build.observer.stage(JobStage::Rank, 0);
        let (distinct, ids) = build.write_sorted(folder, sort, shape, has_ids)?;
        let head = SketchIndexHeader {
            scheme: reading.scheme(),
            shape,
            least: build.min_equal(shape)?,
            // Counted by the inputs, since the sort drops repetitions of a sketch with the same id.
            documents: summaries.iter().map(|input| input.fingerprints).sum(),
            distinct,
            ids: has_ids.then_some(ids),
            position_bytes: position_bytes(distinct.max(ids.ids)),
        };
        let head = head.bytes().to_vec();
        Ok(Self { head, summaries })
    }

    fn write(&self, build: &IndexBuild<'_>, folder: &Path) -> Result<usize, BatchError> {
        let head = SketchIndexHeader::read(&self.head).map_err(|_| other_build(folder))?;
        let part = folder.join(PART);
        let too_large = || BatchError::result(&part)(io::ErrorKind::FileTooLarge.into());
        let part_build = PartBuild {
            folder,
            head: &head,
            sections: head.sections().ok_or_else(too_large)?,
            // Always written anew: an interrupted build resumes behind the gathering only.
            part: create_readable(&part).map_err(BatchError::result(&part))?,
            observer: build.observer,
        };
        part_build.write(build.memory_beside(0)?, build.limits.workers())?;
        Ok(0)
    }

    fn summary(
        self,
        _: &IndexBuild<'_>,
        index: &Path,
        _: Option<usize>,
    ) -> Result<IndexSummary, BatchError> {
        let index = open_sketches(index, false)?;
        let distinct = index.len() as u64;
        Ok(IndexSummary::Sketches(SketchIndexSummary {
            inputs: self.summaries,
            sketches: index.documents(),
            distinct,
            equal: EqualPlaces::new(index.shape(), index.min_equal()),
            bands: index.bands(),
            ids: index.has_ids(),
            scheme_id: index.scheme().map(|id| id.to_string()),
            bytes: index.bytes(),
            bytes_per_sketch: index.bytes() as f64 / distinct.max(1) as f64,
        }))
    }
}

impl IndexBuild<'_> {
    /// Returns the minimum number of equal places in sketches of a shape.
    fn min_equal(&self, shape: SketchShape) -> Result<usize, BatchError> {
        Ok(self.equal.map_or(Ok(1), |equal| equal.places(shape))?)
    }

    /// Writes sorted sketches to the plain files. Returns the number of distinct sketches and the counts of ids.
    fn write_sorted(
        &self,
        folder: &Path,
        sort: FrameSort,
        shape: SketchShape,
        has_ids: bool,
    ) -> Result<(u64, IdCounts), BatchError> {
        let failed = BatchError::result(folder);
        let mut out = SortedWriters::create(folder).map_err(&failed)?;
        let mut sorted = sort.finish().map_err(&failed)?;
        let mut frames = 0_u64;
        while let Some(frame) = sorted.next().transpose().map_err(&failed)? {
            let (sketch, id) = frame.split_at(shape.raw_bytes());
            if frames.is_multiple_of(1 << 16) {
                check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
            }
            frames += 1;
            out.add(sketch, has_ids.then_some(id)).map_err(&failed)?;
        }
        out.finish().map_err(failed)
    }
}

/// Writers of the plain files.
struct SortedWriters {
    sketches: BufWriter<File>,
    firsts: BufWriter<File>,
    ends: BufWriter<File>,
    texts: BufWriter<File>,
    last: Vec<u8>,
    distinct: u64,
    ids: IdCounts,
}

impl SortedWriters {
    fn create(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            sketches: create(folder, SKETCHES)?,
            firsts: create(folder, FIRST_IDS)?,
            ends: create(folder, ENDS)?,
            texts: create(folder, TEXTS)?,
            last: Vec::new(),
            distinct: 0,
            ids: IdCounts { ids: 0, bytes: 0 },
        })
    }

    fn write_first(&mut self) -> io::Result<()> {
        // Write full-width numbers; how many bytes they need in the index is only known at the end.
        self.firsts.write_all(&self.ids.ids.to_le_bytes())
    }

    fn add(&mut self, sketch: &[u8], id: Option<&[u8]>) -> io::Result<()> {
        if self.distinct == 0 || self.last != sketch {
            self.write_first()?;
            self.sketches.write_all(sketch)?;
            self.last.clear();
            self.last.extend_from_slice(sketch);
            self.distinct += 1;
        }
        let Some(id) = id else {
            return Ok(());
        };
        self.texts.write_all(id)?;
        self.ids.ids += 1;
        self.ids.bytes += id.len() as u64;
        self.ends.write_all(&self.ids.bytes.to_le_bytes())
    }

    // One number more than sketches: the end of the last one's ids.
    fn finish(mut self) -> io::Result<(u64, IdCounts)> {
        self.write_first()?;
        finish([self.sketches, self.firsts, self.ends, self.texts])?;
        Ok((self.distinct, self.ids))
    }
}

/// Returns the number of bytes for positions and for numbers of ids, given their count.
fn position_bytes(count: u64) -> RankBytes {
    let needed = RankBytes::of_count(count);
    #[cfg(test)]
    let needed = needed.max(MIN_POSITION_BYTES.get());
    needed
}

#[cfg(test)]
thread_local! {
    /// Minimum bytes of positions in this thread's builds, as if there were billions of sketches.
    pub(super) static MIN_POSITION_BYTES: std::cell::Cell<RankBytes> =
        std::cell::Cell::new(RankBytes::default());
}

/// Writer of the index file.
struct PartBuild<'a> {
    folder: &'a Path,
    head: &'a SketchIndexHeader,
    sections: SketchIndexSections,
    part: File,
    observer: &'a dyn JobObserver,
}

impl PartBuild<'_> {
    fn write(&self, scratch: u64, threads: usize) -> Result<(), BatchError> {
        let path = self.folder.join(PART);
        let failed = BatchError::result(&path);
        let SketchIndexSections { bands, ids, .. } = &self.sections;
        self.observer.stage(JobStage::Tables, bands.len() as u64);
        // Space between sections is not written and therefore zero.
        self.part
            .set_len(self.sections.end as u64)
            .and_then(|()| self.part.write_all_at(&self.head.bytes(), 0))
            .and_then(|()| self.copy(SKETCHES, self.sections.sketches.start))
            .map_err(&failed)?;
        if let Some(sections) = ids {
            let [firsts, ends, texts] = sections;
            self.copy_numbers(FIRST_IDS, firsts.start)
                .and_then(|()| self.copy(ENDS, ends.start))
                .and_then(|()| self.copy(TEXTS, texts.start))
                .map_err(&failed)?;
        }
        let threads = threads.min((scratch / MIN_SCRATCH).max(1) as usize);
        let budget = scratch / threads as u64 / PARTS;
        let mut done = 0;
        in_order(
            bands.iter().collect(),
            threads.min(bands.len()),
            |band| self.band(band, budget),
            |()| {
                done += 1;
                self.observer.progress(done);
                Ok(())
            },
        )?;
        self.finish().map_err(failed)
    }

    /// Copies a plain file to a position of the index.
    fn copy(&self, name: &str, start: usize) -> io::Result<()> {
        let mut out = OffsetWriter::new(&self.part, start as u64);
        io::copy(&mut File::open(self.folder.join(name))?, &mut out)?;
        out.flush()
    }

    /// Copies a plain file of numbers to a position of the index, with each number in as many bytes as positions take.
    fn copy_numbers(&self, name: &str, start: usize) -> io::Result<()> {
        let mut out = OffsetWriter::new(&self.part, start as u64);
        let mut input = BufReader::with_capacity(STEP, File::open(self.folder.join(name))?);
        // Inclusive: the end of the last sketch's ids follows the starts.
        for _ in 0..=self.head.distinct {
            let mut number = [0; 8];
            input.read_exact(&mut number)?;
            out.write_all(self.head.position_bytes.cut(&number))?;
        }
        out.flush()
    }

    /// Writes the starts and entries of a band. Sorting them takes up to `budget` bytes of memory.
    fn band(&self, band: &BandSections, budget: u64) -> Result<(), BatchError> {
        let path = self.folder.join(PART);
        let failed = BatchError::result(&path);
        let bytes = self.head.position_bytes;
        // The last number is the end of the last bucket, not the start of one.
        let buckets = (band.starts.len() / bytes.get() - 1) as u64;
        let [mut starts, mut entries] = [&band.starts, &band.entries]
            .map(|section| OffsetWriter::new(&self.part, section.start as u64));
        let (mut next, mut rank) = (0, 0_u64);
        // Buckets without entries start where the next one does.
        let mut start_up_to = |bucket: u64, rank: u64| -> io::Result<()> {
            while next <= bucket {
                starts.write_all(bytes.cut(&rank.to_le_bytes()))?;
                next += 1;
            }
            Ok(())
        };
        let sorted = self.sorted_positions(band, budget);
        let drained = sorted.and_then(|sorted| {
            sorted.drain(|[bucket, at]| {
                start_up_to(bucket, rank).map_err(&failed)?;
                rank += 1;
                entries
                    .write_all(bytes.cut(&at.to_le_bytes()))
                    .map_err(&failed)
            })
        });
        drained.map_err(|error| match error {
            // Sorted in the folder of the index, so another folder for temporary files is no remedy.
            BatchError::Temporary { cause, .. } => failed(cause),
            other => other,
        })?;
        start_up_to(buckets, rank)
            .and_then(|()| starts.flush())
            .and_then(|()| entries.flush())
            .map_err(failed)
    }

    /// Returns the bucket and the position of each sketch in a band, to be sorted.
    fn sorted_positions(
        &self,
        band: &BandSections,
        budget: u64,
    ) -> Result<ExternalSort<[u64; 2]>, BatchError> {
        let path = self.folder.join(SKETCHES);
        let failed = BatchError::result(&path);
        let file = File::open(&path).map_err(&failed)?;
        let mut input = BufReader::with_capacity(STEP, file);
        let mut sketch = vec![0; self.head.shape.raw_bytes()];
        let mut sort = ExternalSort::new(budget, self.folder);
        for at in 0..self.head.distinct {
            if at.is_multiple_of(1 << 16) {
                check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
            }
            input.read_exact(&mut sketch).map_err(&failed)?;
            let bucket = bucket(&sketch[band.part.clone()], self.head.distinct);
            let pushed = sort.push([bucket as u64, at]);
            pushed.map_err(BatchError::temporary(self.folder))?;
        }
        Ok(sort)
    }

    /// Writes the checksums of all pages and syncs the file.
    fn finish(&self) -> io::Result<()> {
        let (mut checks, mut page) = (PageChecks::default(), vec![0; PageChecks::PAGE]);
        // The sections end at a page boundary, so every page is whole.
        for at in (0..self.sections.end as u64).step_by(PageChecks::PAGE) {
            self.part.read_exact_at(&mut page, at)?;
            checks.push(&page);
        }
        let end = self.sections.end as u64;
        self.part.write_all_at(&tail_bytes(&checks), end)?;
        self.part.sync_all()
    }
}

/// Creates a file that can also be read.
fn create_readable(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    options.open(path)
}
