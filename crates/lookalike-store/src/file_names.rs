//! Names of the files of a collection.

use std::path::{Path, PathBuf};

/// The file that names all others.
pub(crate) const MANIFEST: &str = "MANIFEST";

/// Returns the path of a numbered file.
pub(crate) fn file_path(folder: &Path, number: u64, kind: &str) -> PathBuf {
    folder.join(format!("{number:08}.{kind}"))
}
