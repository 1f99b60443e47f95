//! Pairs of classes that wait for their order: in memory while they fit, in a temporary file beyond.

use std::io;
use std::path::Path;
use std::sync::Mutex;

use crate::locks::lock;
use crate::spill::partitions::PartitionedFile;

/// The two ends of a pair and their distance.
pub(super) type Edge = [u32; 3];

/// Edges that one thread gathers before it disturbs the others.
const BATCH: usize = 1 << 14;

/// Edges in no order. Shared between threads, each with an [`EdgeWriter`].
pub(super) struct EdgeSpool {
    edges: PartitionedFile<Edge>,
    failed: Mutex<Option<io::Error>>,
}

impl EdgeSpool {
    pub(super) fn new(folder: &Path, budget: u64) -> io::Result<Self> {
        Ok(Self {
            edges: PartitionedFile::new(folder, budget)?,
            failed: Mutex::new(None),
        })
    }

    pub(super) fn writer(&self) -> EdgeWriter<'_> {
        EdgeWriter {
            spool: self,
            edges: Vec::new(),
        }
    }

    /// The first failure of any writer.
    pub(super) fn check(&self) -> io::Result<()> {
        // Only once all writers are gone: what a writer still holds goes in, or fails, when it is dropped.
        lock(&self.failed).take().map_or(Ok(()), Err)
    }

    /// Number of edges.
    pub(super) fn len(&self) -> u64 {
        // All edges are in one partition: nothing is asked of their order here.
        self.edges.records(0)
    }

    /// Shows all edges, in no particular order.
    pub(super) fn each(&self, mut visit: impl FnMut(Edge) -> io::Result<()>) -> io::Result<()> {
        self.edges.pieces(0, BATCH, &mut |edges| {
            edges.iter().try_for_each(|&edge| visit(edge))
        })
    }
}

/// One thread's edges on their way to all.
pub(super) struct EdgeWriter<'s> {
    spool: &'s EdgeSpool,
    edges: Vec<Edge>,
}

impl EdgeWriter<'_> {
    pub(super) fn push(&mut self, edge: Edge) {
        self.edges.push(edge);
        if self.edges.len() == BATCH {
            self.append();
        }
    }

    fn append(&mut self) {
        // The join that calls this cannot be stopped by an error, so the first one waits for `check`.
        if let Err(error) = self.spool.edges.append(0, &mut self.edges) {
            lock(&self.spool.failed).get_or_insert(error);
        }
    }
}

impl Drop for EdgeWriter<'_> {
    fn drop(&mut self) {
        self.append();
    }
}
