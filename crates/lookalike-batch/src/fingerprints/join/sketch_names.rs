//! Names of the sketches of a join, by their numbers.

use crate::fingerprints::files::{FingerprintIds, FingerprintName};
use crate::spill::table_column::TableColumn;

/// Texts back to back. Memory: their bytes and eight beside each, in files beyond the share of tables.
#[derive(Default)]
pub(super) struct SketchNames {
    bytes: TableColumn<u8>,
    ends: TableColumn<u64>,
}

impl SketchNames {
    /// Adds the names of some sketches: every one has a text.
    pub(super) fn extend(&mut self, more: &FingerprintIds) {
        if let FingerprintIds::Texts { bytes, ends } = more {
            let before = self.bytes.len() as u64;
            self.bytes.extend_from_slice(bytes.as_bytes());
            self.ends.extend(ends.iter().map(|end| before + end));
        }
    }

    /// The name of a sketch.
    pub(super) fn name(&self, number: u32) -> FingerprintName<'_> {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let text = &self.bytes[start as usize..self.ends[at] as usize];
        FingerprintName::Text(std::str::from_utf8(text).expect("names came as texts"))
    }

    /// Bytes of all.
    pub(super) fn bytes(&self) -> u64 {
        (self.bytes.len() + size_of_val(self.ends.as_slice())) as u64
    }

    /// The bytes of all names, and where each ends.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.bytes, bytemuck::cast_slice(&self.ends)]
    }
}
