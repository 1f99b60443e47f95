//! Collections as users name them: paths, globs, objects of stores, and the type of raw numbers before what holds some, such as `u64:` or
//! `u64x6:`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use lookalike_corpus::{InputError, NamedFile, StoreSettings, named_files};

use super::sketch_shape::SketchShape;

/// Types of raw numbers, with their bits: the ending of a file, or what stands before a name that does not tell, as on standard input.
const RAW_NUMBERS: [(&str, u32); 3] = [("u32", 32), ("u64", 64), ("u128", 128)];

/// A collection that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintSource {
    file: NamedFile,
    /// Type of the raw numbers that the file holds, whatever its name is: `u64`, or `u64x6` of sketches.
    raw: Option<String>,
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
                let is_raw =
                    raw_bits(number).is_some() || SketchShape::of_raw_ending(number).is_some();
                is_raw.then_some((number, name))
            });
            let name: OsString = raw.map_or_else(|| argument.to_owned(), |(_, name)| name.into());
            let files = named_files(&[name], store, spool_dir)?;
            found.extend(files.into_iter().map(|file| Self {
                file,
                raw: raw.map(|(number, _)| number.to_owned()),
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

    /// Copies standard input to a file in a folder, so that it can be read more than once; any other collection stays where it is.
    ///
    /// # Errors
    /// When standard input cannot be read, or the file not written.
    pub fn copied_to(self, folder: &Path) -> io::Result<Self> {
        if !self.is_standard_input() {
            return Ok(self);
        }
        let path = folder.join("standard-input");
        io::copy(&mut io::stdin().lock(), &mut File::create(&path)?)?;
        let name = self.file.name;
        Ok(Self {
            file: NamedFile { name, path },
            raw: self.raw,
        })
    }

    /// The ending of the packing of a file of raw numbers; none when it holds something else.
    pub(super) fn raw_packing(&self) -> Option<&'static str> {
        let is_raw = self.raw_bits().is_some() || self.raw_shape().is_some();
        is_raw.then_some(self.bare_name().1)
    }

    /// The type of raw numbers that was named, or what ends the name of the file.
    fn raw_type(&self) -> Option<String> {
        let ending = || Some(self.bare_name().0.rsplit_once('.')?.1.to_owned());
        self.raw.clone().or_else(ending)
    }

    /// Bits of the raw fingerprints that the file holds, if it does.
    pub(super) fn raw_bits(&self) -> Option<u32> {
        raw_bits(&self.raw_type()?)
    }

    /// The shape of raw sketches of several places, if the file holds some.
    pub(super) fn raw_shape(&self) -> Option<SketchShape> {
        SketchShape::of_raw_ending(&self.raw_type()?)
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
            ("u64x6:-", Some("")),
            ("u32x128:part-0007.gz", Some(".gz")),
            ("a.u64x6.zst", Some(".zst")),
        ];
        for (name, packing) in cases {
            let found = FingerprintSource::find(&[name], &StoreSettings::default(), spool.path());
            let [source] = found.unwrap().try_into().unwrap();
            assert_eq!(source.raw_packing(), packing, "{name}");
            assert_eq!(source.is_standard_input(), name.ends_with('-'), "{name}");
        }
    }
}
