//! Collections as users name them: paths, globs, objects in stores, optionally preceded by a type of raw numbers such as `u64:` or `u64x6:`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use lookalike_corpus::{Compression, InputError, NamedFile, StoreSettings, named_files};

use super::sketch_kind::SketchKind;

/// A collection that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintSource {
    file: NamedFile,
    /// Type of the raw numbers given before the name: `u64`, or `u64x6` for sketches.
    raw: Option<String>,
}

impl FingerprintSource {
    /// Finds the collections that the arguments name; see [`named_files`].
    ///
    /// # Errors
    /// If a glob matches nothing, or an object cannot be fetched.
    pub fn find<S: AsRef<OsStr>>(
        arguments: &[S],
        store: &StoreSettings,
        spool_dir: &Path,
    ) -> Result<Vec<Self>, InputError> {
        let mut found = Vec::new();
        for argument in arguments {
            let argument = argument.as_ref();
            let raw = argument.to_str().and_then(|text| {
                // A path may contain a colon, so only a known type before it is a prefix.
                let (number, name) = text.split_once(':')?;
                SketchKind::of_raw_ending(number).map(|_| (number, name))
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

    /// Returns the name that results and errors use.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Returns the path of its contents.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Tells whether it is standard input, which can be read only once.
    pub fn is_standard_input(&self) -> bool {
        self.file.path.as_os_str() == "-"
    }

    /// Copies standard input or a pipe to the file `copy`, so that it can be read repeatedly. Other collections are returned unchanged.
    ///
    /// # Errors
    /// If it cannot be read, or the file cannot be written.
    pub fn copy_pipe_to(self, copy: PathBuf) -> io::Result<Self> {
        let mut pipe: Box<dyn Read> = if self.is_standard_input() {
            Box::new(io::stdin().lock())
        } else if is_pipe(self.path()) {
            Box::new(File::open(self.path())?)
        } else {
            return Ok(self);
        };
        io::copy(&mut pipe, &mut File::create(&copy)?)?;
        let (name, path) = (self.file.name, copy);
        Ok(Self {
            file: NamedFile { name, path },
            raw: self.raw,
        })
    }

    /// Returns the compression of a file of raw numbers. `None` if it holds something else.
    pub(super) fn raw_packing(&self) -> Option<Compression> {
        self.raw_kind().map(|_| unpacked_name(self.name()).1)
    }

    /// Returns the kind of the raw sketches in the file, by the given type of numbers or, without one, by the ending of the name. `None` if it holds
    /// something else.
    pub(super) fn raw_kind(&self) -> Option<SketchKind> {
        let ending = || Some(unpacked_name(self.name()).0.rsplit_once('.')?.1.to_owned());
        // The user wrote a prefix for this file, so it outweighs an ending.
        SketchKind::of_raw_ending(&self.raw.clone().or_else(ending)?)
    }

    /// Tells whether its name is that of a format whose files begin with a header.
    pub(super) fn has_header(&self) -> bool {
        let (name, _) = unpacked_name(self.name());
        let endings = [".lkfp", ".lkar", ".lkix", ".parquet"];
        self.raw_packing().is_none() && endings.iter().any(|end| name.ends_with(end))
    }
}

/// Tells whether a path names a pipe, such as the `/dev/fd/63` of a shell's `<(command)`.
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    // What does not exist is reported when it is opened.
    path.metadata()
        .is_ok_and(|found| found.file_type().is_fifo())
}

/// Returns a name in lower case without the ending of its compression, and the compression.
pub(super) fn unpacked_name(name: &str) -> (String, Compression) {
    let mut name = name.to_lowercase();
    let mut packings = [Compression::Gzip, Compression::Zstd].into_iter();
    let packing = packings.find(|packing| name.ends_with(packing.suffix()));
    let packing = packing.unwrap_or_default();
    name.truncate(name.len() - packing.suffix().len());
    (name, packing)
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
            let found = source.raw_packing().map(Compression::suffix);
            assert_eq!(found, packing, "{name}");
            assert_eq!(source.is_standard_input(), name.ends_with('-'), "{name}");
        }
    }
}
