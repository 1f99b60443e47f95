//! Reads fingerprints from a Parquet table.

use std::io;
use std::path::Path;

use lookalike_corpus::{CodeCell, CodeTable};
use lookalike_hamming::Word;

use super::FingerprintFile;
use super::sized_fingerprint::{bits_of_digits, parse_code};

/// A stream of rows.
pub(super) struct TableReader {
    table: CodeTable,
    bits: Option<u32>,
}

impl TableReader {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut table = CodeTable::open(path)?;
        let bits = match table.number_bits() {
            Some(bits) => Some(bits),
            None => table.first_text()?.as_deref().and_then(bits_of_digits),
        };
        Ok(Self { table, bits })
    }

    /// Returns the width of the fingerprints, from the type of the column or from its first text.
    pub(super) fn bits(&self) -> Option<u32> {
        self.bits
    }

    /// Appends the fingerprints of some rows, counts those that are null, and reports rows that are not fingerprints to `bad`. Returns false at the
    /// end.
    pub(super) fn read<W: Word>(
        &mut self,
        out: &mut FingerprintFile<W>,
        without: &mut u64,
        mut bad: impl FnMut(String) -> Result<(), String>,
    ) -> io::Result<Result<bool, String>> {
        let mut stopped = Ok(());
        let more = self.table.read(&mut |row, id, cell| {
            let code = match cell {
                CodeCell::Null => {
                    *without += 1;
                    return;
                }
                CodeCell::Number(number) => Ok(W::from_u128(number.into())),
                CodeCell::Text(text) => parse_code(text),
            };
            match code {
                Ok(code) => {
                    match id {
                        Some(id) => out.ids.push_text(id, &out.codes),
                        None => out.ids.push_none(code),
                    }
                    out.codes.push(code);
                }
                Err(reason) if stopped.is_ok() => stopped = bad(format!("row {row}: {reason}")),
                // A table cannot stop within a group of rows, so rows after the first refusal are ignored.
                Err(_) => {}
            }
        })?;
        Ok(stopped.map(|()| more))
    }
}
