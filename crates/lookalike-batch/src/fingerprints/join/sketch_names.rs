//! Names of the sketches of a join, by number.

use crate::fingerprints::files::{FingerprintIds, FingerprintName};
use crate::spill::table_column::TableColumn;

/// Concatenated texts. Memory: their bytes and eight more for each, in files beyond the share of tables.
#[derive(Default)]
pub(super) struct SketchNames {
    bytes: TableColumn<u8>,
    ends: TableColumn<u64>,
}

impl SketchNames {
    /// Appends the names of some sketches, each of which must have a text.
    pub(super) fn extend(&mut self, more: &FingerprintIds) {
        if let FingerprintIds::Texts { bytes, ends } = more {
            let before = self.bytes.len() as u64;
            self.bytes.extend_from_slice(bytes.as_bytes());
            self.ends.extend(ends.iter().map(|end| before + end));
        }
    }

    /// Returns the name of a sketch.
    pub(super) fn name(&self, number: u32) -> FingerprintName<'_> {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let text = &self.bytes[start as usize..self.ends[at] as usize];
        FingerprintName::Text(std::str::from_utf8(text).expect("names came as texts"))
    }

    /// Returns the bytes of all names.
    pub(super) fn bytes(&self) -> u64 {
        (self.bytes.len() + size_of_val(self.ends.as_slice())) as u64
    }

    /// Returns the bytes of all names, and their ends.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.bytes, bytemuck::cast_slice(&self.ends)]
    }
}
