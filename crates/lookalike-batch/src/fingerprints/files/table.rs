//! Fingerprints in a Parquet table.

use std::io;
use std::path::Path;

use lookalike::Fingerprint;
use lookalike_corpus::{CodeCell, CodeTable};

use super::FingerprintFile;

/// A stream of rows.
pub(super) struct TableReader {
    table: CodeTable,
}

impl TableReader {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            table: CodeTable::open(path)?,
        })
    }

    /// Appends the fingerprints of some rows, counts those that are null, and tells `bad` of the rows that are none;
    /// false at the end.
    pub(super) fn read(
        &mut self,
        out: &mut FingerprintFile,
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
                CodeCell::Number(number) => Ok(number),
                CodeCell::Text(text) => text.parse().map(|Fingerprint(code)| code),
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
                // A table cannot be stopped within a group of rows: after the first refusal they pass by.
                Err(_) => {}
            }
        })?;
        Ok(stopped.map(|()| more))
    }
}
