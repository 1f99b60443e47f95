//! Reads fingerprints from a Parquet table.

use std::io;
use std::path::Path;

use lookalike_corpus::{CodeCell, CodeTable, FINGERPRINT_COLUMN};
use lookalike_hamming::Word;

use super::FingerprintFile;
use super::sized_fingerprint::{bits_of_digits, parse_code};

/// Opens a table. Returns it with the width of its fingerprints, from the type of the column or from its first text.
pub(super) fn open(path: &Path) -> io::Result<(CodeTable, Option<u32>)> {
    let mut table = CodeTable::open(path, FINGERPRINT_COLUMN)?;
    let mut bits = table.number_bits;
    if bits.is_none() {
        // Texts do not declare a width; `take` refuses later ones of another.
        let mut first = None;
        table.read(&mut |_, _, cell| {
            if let CodeCell::Text(text) = cell {
                first.get_or_insert_with(|| text.to_owned());
            }
        })?;
        bits = first.as_deref().and_then(bits_of_digits);
        table = CodeTable::open(path, FINGERPRINT_COLUMN)?;
    }
    Ok((table, bits))
}

/// Takes one row. Returns false if its fingerprint is null.
pub(super) fn take<W: Word>(
    id: Option<&str>,
    cell: CodeCell<'_>,
    out: &mut FingerprintFile<W>,
) -> Result<bool, String> {
    let code = match cell {
        CodeCell::Null => return Ok(false),
        CodeCell::Number(number) => W::from_u128(number.into()),
        CodeCell::Text(text) => parse_code(text)?,
    };
    out.push(id, code);
    Ok(true)
}
