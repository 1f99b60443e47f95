//! Collections as users name them: paths, globs, objects of stores, and `u64:`, `u32:` or `u128:` before what holds raw numbers.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use lookalike_corpus::{InputError, NamedFile, StoreSettings, named_files};

use super::sketch_shape::SketchShape;

/// Types of raw numbers, with their bits: the ending of a file, or what stands before a name that does not tell, as on standard input.
const RAW_NUMBERS: [(&str, u32); 3] = [("u32", 32), ("u64", 64), ("u128", 128)];

/// A collection that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintSource {
    file: NamedFile,
    /// Bits of the raw numbers that the file holds, whatever its name is.
    raw: Option<u32>,
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
            let raw = argument.to_str().and_then(|text| {
                let (number, name) = text.split_once(':')?;
                Some((raw_bits(number)?, name))
            });
            let name: OsString = raw.map_or_else(|| argument.to_owned(), |(_, name)| name.into());
            let files = named_files(&[name], store, spool_dir)?;
            found.extend(files.into_iter().map(|file| Self {
                file,
                raw: raw.map(|(bits, _)| bits),
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
        let is_raw = self.raw_bits().is_some() || raw_shape(&bare).is_some();
        is_raw.then_some(packing)
    }

    /// Bits of the raw fingerprints that the file holds, if it does.
    pub(super) fn raw_bits(&self) -> Option<u32> {
        self.raw
            .or_else(|| raw_bits(self.bare_name().0.rsplit_once('.')?.1))
    }

    /// The shape of raw sketches of several places, by the name of their file.
    pub(super) fn raw_shape(&self) -> Option<SketchShape> {
        raw_shape(&self.bare_name().0).filter(|_| self.raw.is_none())
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

/// Bits of raw numbers of a type.
pub(super) fn raw_bits(number: &str) -> Option<u32> {
    let known = RAW_NUMBERS.into_iter().find(|(name, _)| *name == number);
    known.map(|(_, bits)| bits)
}

impl From<&Path> for FingerprintSource {
    fn from(path: &Path) -> Self {
        Self {
            file: path.into(),
            raw: None,
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
            ("a.u32", Some("")),
            ("a.u128.gz", Some(".gz")),
            ("u128:-", Some("")),
            ("u32:x.u64", Some("")),
            ("u16:a", None),
        ];
        for (name, packing) in cases {
            let found = FingerprintSource::find(&[name], &StoreSettings::default(), spool.path());
            let [source] = found.unwrap().try_into().unwrap();
            assert_eq!(source.raw_packing(), packing, "{name}");
            assert_eq!(source.is_standard_input(), name.ends_with('-'), "{name}");
        }
    }
}
