//! Names of the files of a collection.

use std::path::{Path, PathBuf};

/// The file that names all others.
pub(crate) const MANIFEST: &str = "MANIFEST";

/// Extension of the files of parts of schemes.
pub(crate) const PART: &str = "part";

/// Returns the path of a numbered file.
pub(crate) fn file_path(folder: &Path, number: u64, kind: &str) -> PathBuf {
    folder.join(format!("{number:08}.{kind}"))
}

/// Tells whether a name is that of a numbered file.
pub(crate) fn is_numbered(name: &str) -> bool {
    let (number, kind) = name.split_once('.').unwrap_or((name, ""));
    // A number of 64 bits has at most twenty digits.
    (8..=20).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && ["log", "run", "tombstones", PART].contains(&kind)
}
