//! Earlier results as input: their kept documents.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lookalike_corpus::{PROGRAM, SUMMARY_FILE};

/// Part of a folder of results that is read where its kept documents are asked for.
#[derive(serde::Deserialize)]
struct KeptView {
    program: String,
    kept_in: Vec<String>,
}

/// The kept documents of an earlier result, or the path itself.
pub(crate) fn kept_documents(path: &OsString) -> Vec<OsString> {
    let folder = Path::new(path);
    // A path that is no folder of results is an input like any other, and errors come up when it is read.
    let summary = std::fs::read(folder.join(SUMMARY_FILE)).ok();
    let kept = summary.and_then(|text| serde_json::from_slice::<KeptView>(&text).ok());
    match kept.filter(|kept| kept.program == PROGRAM) {
        Some(kept) => {
            let paths = kept.kept_in.iter().map(|name| folder.join(name));
            // Of files there is a folder only if one was kept.
            let there = paths.filter(|path| path.exists());
            there.map(PathBuf::into_os_string).collect()
        }
        None => vec![path.clone()],
    }
}
