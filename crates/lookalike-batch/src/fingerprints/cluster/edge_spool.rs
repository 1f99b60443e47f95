//! Stores pairs of classes until they can be ordered: in memory while they fit, then in a temporary file.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use crate::spill::partitions::PartitionedFile;

/// The two ends of a pair, and their distance.
pub(super) type Edge = [u32; 3];

// All edges go to one partition with one lock, so a thread takes it rarely: once for 192 KiB.
/// Number of edges that one thread collects before it takes the lock.
const BATCH: usize = 1 << 14;

/// Edges in no particular order. Threads share it, each with its own [`EdgeWriter`].
pub(super) struct EdgeSpool {
    edges: PartitionedFile<Edge>,
    /// The first failure of any writer.
    failed: OnceLock<io::Error>,
}

impl EdgeSpool {
    pub(super) fn new(folder: &Path, budget: u64) -> io::Result<Self> {
        Ok(Self {
            edges: PartitionedFile::new(folder, budget)?,
            failed: OnceLock::new(),
        })
    }

    pub(super) fn writer(&self) -> EdgeWriter<'_> {
        EdgeWriter {
            spool: self,
            edges: Vec::new(),
        }
    }

    /// Tells whether a writer has failed. Edges are lost then, so finding more is of no use.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    /// Returns the first failure of any writer. None is left that could still fail: each appends its remaining edges when it is dropped.
    pub(super) fn check(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Returns the number of edges.
    pub(super) fn len(&self) -> u64 {
        // All edges are in one partition, because their order does not matter here.
        self.edges.records(0)
    }

    /// Visits all edges in no particular order.
    pub(super) fn for_each(&self, mut visit: impl FnMut(Edge) -> io::Result<()>) -> io::Result<()> {
        self.edges.pieces(0, BATCH, &mut |edges| {
            edges.iter().try_for_each(|&edge| visit(edge))
        })
    }
}

/// Buffer of one thread's edges.
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
        // The caller is inside a join, which asks `has_failed` from time to time. Later errors follow from the first.
        if let Err(error) = self.spool.edges.append(0, &mut self.edges) {
            let _ = self.spool.failed.set(error);
            // They are lost. Kept, they would fill the memory.
            self.edges.clear();
        }
    }
}

impl Drop for EdgeWriter<'_> {
    fn drop(&mut self) {
        self.append();
    }
}
