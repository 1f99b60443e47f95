//! Sketched documents that an evaluation holds in memory, as far as `--memory` allows.

use lookalike_batch::JobLimits;
use lookalike_eval::SketchedDocument;
use lookalike_hamming::SelfJoinLimits;

use crate::failure::Failure;

/// Memory of the command itself in bytes: its code, and what is being read.
const OWN_BYTES: u64 = 32 << 20;
/// Minimum memory that is left for the join of the sketches, in bytes. With next to none it would take a pass over all sketches for each of them.
const LEAST_JOIN_BYTES: u64 = 12 << 20;

/// Documents that are added one after another.
pub(super) struct HeldDocuments {
    documents: Vec<SketchedDocument>,
    bytes: u64,
    limit: u64,
}

impl HeldDocuments {
    /// Creates the memory for documents: `limit` bytes minus the `taken` ones and those of the command itself.
    pub(super) fn new(limit: u64, taken: u64) -> Self {
        Self {
            documents: Vec::new(),
            bytes: taken + OWN_BYTES + LEAST_JOIN_BYTES,
            limit,
        }
    }

    pub(super) fn push(&mut self, document: SketchedDocument) {
        self.bytes += document.bytes();
        match self.bytes <= self.limit {
            true => self.documents.push(document),
            // From here on they are only counted, so that the failure can state how much all of them need.
            false => self.documents = Vec::new(),
        }
    }

    /// Returns the documents, or the failure that these `what` do not fit.
    pub(super) fn finish(self, what: &str) -> Result<Vec<SketchedDocument>, Failure> {
        match self.bytes <= self.limit {
            true => Ok(self.documents),
            false => Err(super::too_large(what, self.bytes, self.limit)),
        }
    }
}

/// Returns the limits of a join of sketches that take `held` bytes, which stay in memory during the join.
pub(super) fn join_limits(limits: &JobLimits, held: u64) -> SelfJoinLimits {
    let left = limits.memory.saturating_sub(held).saturating_sub(OWN_BYTES);
    SelfJoinLimits::default()
        .threads(limits.threads)
        .scratch_bytes(usize::try_from(left).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use lookalike_eval::SketchedSet;

    use super::*;

    #[test]
    fn a_join_took_the_memory_that_the_sketches_have_taken() {
        let document = |id: &str| SketchedDocument {
            id: id.to_owned(),
            text: None,
            sketch: Some(lookalike::SketchValue::Signature(vec![0; 1000].into())),
        };
        let set = SketchedSet::of(vec![document("a"), document("b")]).unwrap();
        assert!((8_000..9_000).contains(&set.bytes()), "{}", set.bytes());
        let limits = JobLimits::default().memory(set.bytes() + OWN_BYTES + 7);
        assert_eq!(join_limits(&limits, set.bytes()).scratch_bytes, 7);
    }
}
