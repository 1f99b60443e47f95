//! Files of which nothing was read, copied to `skipped/` in the results before any result refers to the copies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lookalike_corpus::{
    FileTree, Inputs, SkipKind, SkippedPart, Transfer, TransferError, path_text, transfer_file,
};
use serde::{Deserialize, Serialize};

use crate::error::BatchError;
use crate::skipped::SKIPPED_FILES;

/// Number and bytes of the files copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopiedFiles {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

/// Copies below `skipped/`.
pub(super) struct SkippedFiles<'a> {
    inputs: &'a Inputs,
    tree: FileTree,
    folder: PathBuf,
    transfer: Transfer,
    pub(super) copied: CopiedFiles,
    /// Paths in the tree of the files that were gone before they could be copied.
    gone: BTreeSet<PathBuf>,
    /// Those of them that are not reported as a loss otherwise.
    pub(super) lost: Vec<SkippedPart>,
}

impl<'a> SkippedFiles<'a> {
    /// Copies the skipped files, and the given sources of `inputs`.
    ///
    /// # Errors
    /// Returns an error if a copy cannot be written. A file that is gone is a loss.
    pub(super) fn copy(
        inputs: &'a Inputs,
        sources: impl IntoIterator<Item = u32>,
        folder: PathBuf,
        transfer: Transfer,
    ) -> Result<Self, BatchError> {
        let mut files = Self {
            inputs,
            tree: FileTree::copies(inputs),
            folder,
            transfer,
            copied: CopiedFiles::default(),
            gone: BTreeSet::new(),
            lost: Vec::new(),
        };
        files.copy_skipped()?;
        for source in sources {
            let tree = &files.tree;
            let copy = tree.copy(inputs, source, &files.folder, transfer);
            let to = tree.path(source).to_owned();
            // The source's own line reports the loss.
            files.count(to, copy)?;
        }
        Ok(files)
    }

    fn copy_skipped(&mut self) -> Result<(), BatchError> {
        let files = self.tree.skipped();
        let files: Vec<_> = files
            .map(|(from, to)| (from.to_owned(), to.to_owned()))
            .collect();
        let inputs = self.inputs;
        // The tree has a path for each of these, in the same order.
        let skips = inputs.skips.iter().filter(|skip| skip.file.is_some());
        for (skip, (from, to)) in skips.zip(files) {
            let copy = transfer_file(&from, &self.folder.join(&to), self.transfer);
            if let Some(reason) = self.count(to, copy)? {
                self.lost.push(SkippedPart {
                    kind: SkipKind::Unreadable,
                    reason: format!("skipped, and gone before it could be copied: {reason}"),
                    file: None,
                    ..skip.clone()
                });
            }
        }
        Ok(())
    }

    /// Counts a copy, or returns the reason why there is none.
    fn count(
        &mut self,
        to: PathBuf,
        copy: Result<u64, TransferError>,
    ) -> Result<Option<String>, BatchError> {
        match copy {
            Ok(bytes) => {
                self.copied.bytes += bytes;
                self.copied.files += 1;
                Ok(None)
            }
            // A file that is gone or has changed is a loss; only a copy that cannot be written ends the job.
            Err(TransferError::Source(reason)) => {
                self.gone.insert(to);
                Ok(Some(reason.to_string()))
            }
            Err(TransferError::Output(error)) => {
                Err(BatchError::result(&self.folder.join(to))(error))
            }
        }
    }

    /// Returns the path of the copy of a source within the results, or `None` if there is none.
    pub(super) fn of_source(&self, source: u32) -> Option<String> {
        self.named(self.tree.path(source))
    }

    /// Returns the paths of the copies of skipped files, in the order of [`Inputs::skips`].
    pub(super) fn skipped_copies(&self) -> impl Iterator<Item = Option<String>> {
        self.tree.skipped().map(|(_, to)| self.named(to))
    }

    fn named(&self, path: &Path) -> Option<String> {
        let name = || path_text(&Path::new(SKIPPED_FILES).join(path)).into_owned();
        (!self.gone.contains(path)).then(name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lookalike_corpus::InputOptions;

    use super::*;

    #[test]
    fn files_that_vanish_before_they_are_copied_are_named_and_the_others_are_copied() {
        let place = tempfile::tempdir().unwrap();
        let input = place.path().join("in");
        fs::create_dir(&input).unwrap();
        for name in ["a.txt", "b.txt", "c.png", "d.png"] {
            let head: &[u8] = if name.ends_with("png") {
                b"\x89PNG\r\n\x1a\n\0"
            } else {
                b"a text"
            };
            fs::write(input.join(name), head).unwrap();
        }
        let options = InputOptions::default();
        let inputs = Inputs::discover(&[input.clone().into()], &options, place.path()).unwrap();
        fs::remove_file(input.join("a.txt")).unwrap();
        fs::remove_file(input.join("c.png")).unwrap();
        let folder = place.path().join("skipped");
        for transfer in [Transfer::Copy, Transfer::Link] {
            let files = SkippedFiles::copy(&inputs, [0, 1], folder.clone(), transfer).unwrap();
            let named =
                |name: Option<String>| name.map(|name| name.rsplit('/').next().unwrap().to_owned());
            assert_eq!(
                [0, 1].map(|source| named(files.of_source(source))),
                [None, Some("b.txt".into())]
            );
            let passed_over: Vec<_> = files.skipped_copies().map(named).collect();
            assert_eq!(passed_over, [None, Some("d.png".into())]);
            // The loss of a source is reported elsewhere.
            let [lost] = &files.lost[..] else {
                panic!("{:?}", files.lost);
            };
            assert!(
                lost.name.ends_with("c.png") && lost.kind.is_loss(),
                "{lost:?}"
            );
            assert_eq!(
                files.copied,
                CopiedFiles {
                    bytes: 6 + 9,
                    files: 2
                }
            );
            for (number, source) in [(0, false), (1, true)] {
                assert_eq!(folder.join(files.tree.path(number)).exists(), source);
            }
            fs::remove_dir_all(&folder).unwrap();
        }
        // A file that changed meanwhile is not the one of which nothing was read.
        fs::write(input.join("b.txt"), "another text").unwrap();
        let files = SkippedFiles::copy(&inputs, [1], folder.clone(), Transfer::Copy).unwrap();
        assert_eq!(files.of_source(1), None);
        assert!(!folder.join(files.tree.path(1)).exists());
    }
}
