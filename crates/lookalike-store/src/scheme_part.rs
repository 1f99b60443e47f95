//! Parts of a scheme, data that its text only names, such as a table of terms. Each is a file beside the documents, written when the
//! collection is created and never changed. Their lengths and checksums are in the manifest.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::checksum::{FileChecksum, FileIdentity};

use crate::error::{Result, StoreError};
use crate::file_names::{MANIFEST, PART, file_path};
use crate::fs::{FileSystem, read_exact, write_file};

/// Maximum length of a part's name in bytes.
const MAX_NAME_BYTES: usize = 32;

/// A part of a collection's scheme: data that the text of the scheme only names. The store keeps its bytes unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemePart {
    /// Its name, of the characters a-z and -.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl SchemePart {
    /// Creates a part.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            bytes,
        }
    }
}

/// The entry of a part in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartEntry {
    pub(crate) name: String,
    pub(crate) file: u64,
    bytes: u64,
    /// Checksum of all bytes, seeded with the identity of the file.
    check: u64,
}

/// Returns an error if a collection cannot have these parts.
pub(crate) fn check_parts(parts: &[SchemePart]) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
    for (at, part) in parts.iter().enumerate() {
        let name = &part.name;
        if !(1..=MAX_NAME_BYTES).contains(&name.len()) || !name.bytes().all(allowed) {
            return Err(StoreError::Invalid(format!(
                "{name:?} is not the name of a part of a scheme: use a-z and -"
            )));
        }
        if parts[..at].iter().any(|other| other.name == *name) {
            return Err(StoreError::Invalid(format!(
                "the scheme has two parts of the name {name:?}"
            )));
        }
    }
    Ok(())
}

impl PartEntry {
    pub(crate) fn new(part: &SchemePart, file: FileIdentity) -> Self {
        Self {
            name: part.name.clone(),
            file: file.number,
            bytes: part.bytes.len() as u64,
            // The whole file is one block at offset 0.
            check: FileChecksum::new(file).of_block(&part.bytes, 0),
        }
    }

    /// Writes the part to its file and syncs it, but not the folder that names it.
    pub(crate) fn write(
        &self,
        fs: &dyn FileSystem,
        folder: &Path,
        part: &SchemePart,
    ) -> Result<()> {
        let path = file_path(folder, self.file, PART);
        write_file(fs, &path, &part.bytes)
            .map_err(StoreError::io(&path, "writing a part of a scheme"))
    }

    /// Reads the part and verifies its checksum.
    pub(crate) fn read(
        &self,
        fs: &dyn FileSystem,
        folder: &Path,
        collection: u64,
    ) -> Result<SchemePart> {
        let path = file_path(folder, self.file, PART);
        let failed =
            |error| StoreError::io(&path, "reading a part of a scheme")(error).or_missing(MANIFEST);
        let file = fs.open(&path, false).map_err(failed)?;
        let damaged = |what: &str| Err(StoreError::damaged(&path, 0, what));
        // Check the length before allocating memory of the size that the manifest gives.
        if file.length().map_err(failed)? != self.bytes {
            return damaged("the part of the scheme has another length than the manifest says");
        }
        let mut bytes = vec![0; self.bytes as usize];
        read_exact(&*file, &mut bytes, 0).map_err(failed)?;
        let identity = FileIdentity {
            collection,
            number: self.file,
        };
        if FileChecksum::new(identity).of_block(&bytes, 0) != self.check {
            return damaged("the part of the scheme does not match its checksum");
        }
        Ok(SchemePart::new(self.name.clone(), bytes))
    }
}
