//! File names as text, without loss, for ids, errors and results.

use std::borrow::Cow;
use std::path::Path;

use crate::text_hash::first_128;

/// Returns the path as text, as in ids and results; see [`crate::Source::name`] for the rule. Different paths give different texts.
pub fn display(path: &Path) -> Cow<'_, str> {
    use std::os::unix::ffi::OsStrExt;
    match path.to_str() {
        Some(name) if !name.contains('\\') => Cow::Borrowed(name),
        _ => Cow::Owned(escape(path.as_os_str().as_bytes())),
    }
}

/// Returns a hash that stands for a path in a set, because a path takes many times as much memory. Collisions cannot be constructed.
pub(crate) fn path_hash(path: &Path) -> u128 {
    first_128(&blake3::hash(path.as_os_str().as_encoded_bytes()))
}

fn escape(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut name = String::with_capacity(bytes.len() + 8);
    for piece in bytes.utf8_chunks() {
        // Backslashes are doubled, so that a name with the four characters `\xff` differs from one with that byte.
        name.push_str(&piece.valid().replace('\\', "\\\\"));
        for byte in piece.invalid() {
            write!(name, "\\x{byte:02x}").expect("writing to a string succeeds");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn names_are_told_apart() {
        let name = |bytes: &'static [u8]| display(Path::new(OsStr::from_bytes(bytes))).into_owned();
        assert_eq!(name(b"a/b.txt"), "a/b.txt");
        assert_eq!(name(b"a\xff"), "a\\xff");
        assert_eq!(name(b"a\\xff"), "a\\\\xff");
        assert_eq!(name("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
    }
}
