//! Reads fingerprints from a Parquet table.

use std::io;
use std::path::Path;

use lookalike_corpus::{CodeCell, CodeTable};
use lookalike_hamming::Word;

use super::FingerprintFile;
use super::sized_fingerprint::{bits_of_digits, parse_code};

/// Opens a table. Returns it with the width of its fingerprints, from the type of the column or from its first text.
pub(super) fn open(path: &Path) -> io::Result<(CodeTable, Option<u32>)> {
    let mut table = CodeTable::open(path)?;
    let bits = match table.number_bits() {
        Some(bits) => Some(bits),
        // Texts do not declare a width; `take` refuses later ones of another.
        None => table.first_text()?.as_deref().and_then(bits_of_digits),
    };
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
