//! Collections as users name them: paths, globs, objects of stores, and `u64:` before what holds raw numbers.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use lookalike_corpus::{InputError, NamedFile, StoreSettings, named_files};

use super::sketch_shape::SketchShape;

/// Stands before the name of raw numbers that the name does not tell, as on standard input.
const RAW_PREFIX: &str = "u64:";

/// A collection that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintSource {
    file: NamedFile,
    /// True if the file holds raw numbers, whatever its name is.
    is_raw: bool,
}

impl FingerprintSource {
    /// Finds the collections that arguments name; see [`named_files`].
    ///
    /// # Errors
    /// When a glob matches nothing, or an object cannot be had.
    pub fn find<S: AsRef<OsStr>>(
        arguments: &[S],
        store: &StoreSettings,
        spool_dir: &Path,
    ) -> Result<Vec<Self>, InputError> {
        let mut found = Vec::new();
        for argument in arguments {
            let argument = argument.as_ref();
            let raw = argument
                .to_str()
                .and_then(|text| text.strip_prefix(RAW_PREFIX));
            let name: OsString = raw.map_or_else(|| argument.to_owned(), OsString::from);
            let files = named_files(&[name], store, spool_dir)?;
            found.extend(files.into_iter().map(|file| Self {
                file,
                is_raw: raw.is_some(),
            }));
        }
        Ok(found)
    }

    /// The name by which results and errors call it.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Path of its bytes.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// True if it is standard input, which can be read only once.
    pub fn is_standard_input(&self) -> bool {
        self.file.path.as_os_str() == "-"
    }

    /// The ending of the packing of a file of raw numbers; none when it holds something else.
    pub(super) fn raw_packing(&self) -> Option<&'static str> {
        let (bare, packing) = self.bare_name();
        let is_raw = self.is_raw || bare.ends_with(".u64") || raw_shape(&bare).is_some();
        is_raw.then_some(packing)
    }

    /// The shape of raw sketches of several places, by the name of their file.
    pub(super) fn raw_shape(&self) -> Option<SketchShape> {
        raw_shape(&self.bare_name().0).filter(|_| !self.is_raw)
    }

    /// The name in lower case without packing, and the ending of the packing.
    fn bare_name(&self) -> (String, &'static str) {
        let name = self.file.name.to_lowercase();
        let packing = [".gz", ".zst"].into_iter().find(|end| name.ends_with(end));
        let packing = packing.unwrap_or_default();
        let bare = name.strip_suffix(packing).unwrap_or(&name);
        (bare.to_owned(), packing)
    }
}

fn raw_shape(bare: &str) -> Option<SketchShape> {
    SketchShape::of_raw_ending(bare.rsplit_once('.')?.1)
}

impl From<&Path> for FingerprintSource {
    fn from(path: &Path) -> Self {
        Self {
            file: path.into(),
            is_raw: false,
        }
    }
}

impl From<PathBuf> for FingerprintSource {
    fn from(path: PathBuf) -> Self {
        path.as_path().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_numbers_are_known_by_their_ending_or_by_what_stands_before() {
        let spool = tempfile::tempdir().unwrap();
        let cases = [
            ("a.u64", Some("")),
            ("a.U64.gz", Some(".gz")),
            ("a.u64.zst", Some(".zst")),
            ("a.jsonl.gz", None),
            ("-", None),
            ("u64:-", Some("")),
            ("u64:part-0007.zst", Some(".zst")),
            ("./u64:a", None),
        ];
        for (name, packing) in cases {
            let found = FingerprintSource::find(&[name], &StoreSettings::default(), spool.path());
            let [source] = found.unwrap().try_into().unwrap();
            assert_eq!(source.raw_packing(), packing, "{name}");
            assert_eq!(source.is_standard_input(), name.ends_with('-'), "{name}");
        }
    }
}
