//! Lengths of texts, nearly all of which are below 4 GiB.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::spill::table_column::TableColumn;

/// Lengths by position. Memory: 4 bytes per length.
#[derive(Clone, Default)]
pub(crate) struct LengthColumn {
    /// [`LONG`] if the length is in `long`.
    lengths: TableColumn<u32>,
    long: BTreeMap<usize, u64>,
}

const LONG: u32 = u32::MAX;

impl LengthColumn {
    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    pub(crate) fn push(&mut self, length: u64) {
        // A length that equals the mark is stored as a long one.
        let short = u32::try_from(length).ok().filter(|&short| short != LONG);
        if short.is_none() {
            self.long.insert(self.lengths.len(), length);
        }
        self.lengths.push(short.unwrap_or(LONG));
    }

    pub(crate) fn get(&self, position: usize) -> u64 {
        match self.lengths[position] {
            LONG => self.long[&position],
            short => u64::from(short),
        }
    }

    /// Returns all lengths in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(|position| self.get(position))
    }

    /// Writes the lengths, 8 bytes each.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        const STEP: usize = 1 << 12;
        let mut words = Vec::with_capacity(STEP);
        for start in (0..self.len()).step_by(STEP) {
            words.clear();
            let step = start..self.len().min(start + STEP);
            words.extend(step.map(|position| self.get(position)));
            out.write_all(bytemuck::cast_slice(&words))?;
        }
        Ok(())
    }

    /// Returns the number of bytes of the column.
    pub(crate) fn bytes(&self) -> usize {
        self.lengths.len() * 4
    }
}

impl Extend<u64> for LengthColumn {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, lengths: I) {
        lengths.into_iter().for_each(|length| self.push(length));
    }
}

impl FromIterator<u64> for LengthColumn {
    fn from_iter<I: IntoIterator<Item = u64>>(lengths: I) -> Self {
        let mut column = Self::default();
        column.extend(lengths);
        column
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_length_comes_back(
            lengths in prop::collection::vec(prop_oneof![0..10_u64, u64::from(LONG) - 2..u64::from(LONG) + 2, any::<u64>()], 0..50),
        ) {
            let column: LengthColumn = lengths.iter().copied().collect();
            let mut written = Vec::new();
            column.write(&mut written).unwrap();
            let expected: Vec<u8> = lengths.iter().flat_map(|length| length.to_le_bytes()).collect();
            prop_assert_eq!(written, expected);
            prop_assert_eq!(column.iter().collect::<Vec<u64>>(), lengths);
        }
    }
}
