//! Files of a caller's own formats that arguments name: paths, globs, and objects of stores.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::InputError;
use crate::glob;
use crate::name;
use crate::remote::{self, StoreSettings};

/// A file, with its name in results and errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The path as given or found, or the URL of an object.
    pub name: String,
    /// Path of its bytes; `-` is standard input.
    pub path: PathBuf,
}

impl From<&Path> for NamedFile {
    fn from(path: &Path) -> Self {
        Self {
            name: name::display(path).into_owned(),
            path: path.to_owned(),
        }
    }
}

/// Finds the files that the arguments name, in the order of the arguments, and for a glob sorted by name.
///
/// Opens no files and walks no directories: an argument that is not a glob is taken as a path, whether it exists or not. Objects of stores are copied
/// to `spool_dir`, which the caller removes.
///
/// # Errors
/// Fails if a glob matches nothing, or an object cannot be fetched.
pub fn named_files(
    arguments: &[OsString],
    store: &StoreSettings,
    spool_dir: &Path,
) -> Result<Vec<NamedFile>, InputError> {
    let mut files = Vec::new();
    for argument in arguments {
        if let Some(url) = remote::url(argument) {
            files.extend(objects(url, store, spool_dir)?);
        // A file whose name equals the glob takes precedence, as in discovery.
        } else if glob::is_glob(argument) && Path::new(argument).symlink_metadata().is_err() {
            files.extend(matches(argument)?);
        } else {
            files.push(Path::new(argument).into());
        }
    }
    Ok(files)
}

fn matches(argument: &OsStr) -> Result<impl Iterator<Item = NamedFile> + use<>, InputError> {
    let name = || name::display(Path::new(argument)).into_owned();
    let mut unreadable = None;
    // What is kept beside a table holds no rows, or those of an unfinished job.
    let mut leave_out = |path: &Path| path.file_name().is_some_and(glob::is_bookkeeping);
    let found = glob::expand(argument, &mut leave_out, &mut |path, error| {
        unreadable.get_or_insert((path.to_owned(), error));
    });
    let mut found = found.map_err(|reason| InputError::Pattern {
        name: name(),
        reason,
    })?;
    // Silently skipping files would leave them out of the result.
    if let Some((path, cause)) = unreadable {
        let name = name::display(&path).into_owned();
        return Err(InputError::Io { name, cause });
    }
    found.retain(|path| !path.is_dir());
    match found.is_empty() {
        true => Err(InputError::NoMatch { name: name() }),
        false => Ok(found.into_iter().map(|path| path.as_path().into())),
    }
}

/// Returns the URLs of the objects that an argument names in a store, sorted by name: a single one, all below a path that ends in `/`, or those that
/// match a `*`. Copies nothing, and does not look up a single object. An argument that is not the URL of a store is returned unchanged.
///
/// # Errors
/// Fails if there are no such objects, or the store cannot be listed.
pub fn object_urls(argument: &str, store: &StoreSettings) -> Result<Vec<String>, InputError> {
    match remote::url(OsStr::new(argument)) {
        None => Ok(vec![argument.to_owned()]),
        Some(url) => listed(url, store),
    }
}

#[cfg(feature = "cloud")]
fn listed(url: &str, store: &StoreSettings) -> Result<Vec<String>, InputError> {
    let urls = remote::list(url, store)?;
    match urls.is_empty() {
        true => Err(InputError::NoMatch {
            name: url.to_owned(),
        }),
        false => Ok(urls),
    }
}

#[cfg(not(feature = "cloud"))]
fn listed(url: &str, _: &StoreSettings) -> Result<Vec<String>, InputError> {
    Err(remote::store_support_missing(url))
}

#[cfg(feature = "cloud")]
fn objects(
    url: &str,
    store: &StoreSettings,
    spool_dir: &Path,
) -> Result<Vec<NamedFile>, InputError> {
    let failed = |cause| InputError::Io {
        name: url.to_owned(),
        cause,
    };
    // Each argument has its own folder of copies.
    let mut folder = tempfile::Builder::new();
    let folder = folder.prefix("objects-").tempdir_in(spool_dir);
    // Kept: it is removed with the spool directory, after the caller has read the copies.
    let folder = folder.map_err(failed)?.keep();
    let objects = remote::fetch(url, store, &folder, 0)?;
    let mut files = Vec::new();
    for object in objects {
        match object? {
            remote::FetchedObject::Copied(remote::RemoteObject { url, copy, .. }) => {
                files.push(NamedFile {
                    name: url,
                    path: copy,
                })
            }
            // As in a folder: it holds no rows, or those of an unfinished job.
            remote::FetchedObject::Bookkeeping(_) => {}
        }
    }
    match files.is_empty() {
        true => Err(InputError::NoMatch {
            name: url.to_owned(),
        }),
        false => Ok(files),
    }
}

#[cfg(not(feature = "cloud"))]
fn objects(url: &str, _: &StoreSettings, _: &Path) -> Result<Vec<NamedFile>, InputError> {
    Err(remote::store_support_missing(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(arguments: &[&str]) -> Result<Vec<PathBuf>, InputError> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let spool = tempfile::tempdir().unwrap();
        let files = named_files(&arguments, &StoreSettings::default(), spool.path())?;
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    #[test]
    fn globs_give_files_by_name_and_all_else_is_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["b.u64", "a.u64", "c.txt", ".d.u64", "[1].u64"] {
            std::fs::write(path(name), "").unwrap();
        }
        std::fs::create_dir(path("e.u64")).unwrap();
        let (glob, odd) = (path("*.u64"), path("[1].u64"));
        let (glob, odd) = (glob.to_str().unwrap(), odd.to_str().unwrap());
        let expected = [
            PathBuf::from("-"),
            path("[1].u64"),
            path("a.u64"),
            path("b.u64"),
            path("[1].u64"),
            PathBuf::from("absent"),
        ];
        assert_eq!(found(&["-", glob, odd, "absent"]).unwrap(), expected);
        let none = path("*.lkfp");
        let refused = found(&[none.to_str().unwrap()]).unwrap_err();
        assert!(refused.to_string().contains("*.lkfp: no file matches"));
    }
}
