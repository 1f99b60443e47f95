//! Removal of lines that recur on many pages of a site (Manku et al. 2007, section 6).
//!
//! Menus, footers and notices of a template make different pages look alike, and the same page on two sites look different. Which lines belong to a
//! template is learned from the collection: `learn` in `lookalike-batch` counts the pages with each line. This module defines a line and removes
//! learned lines from texts. A line is a line of the extracted text, without invisible characters and without white space at its ends.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use lookalike::scheme::{Boilerplate, BoilerplateScope};
use lookalike::text::without_ignorable;
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

use crate::format::Format;
use crate::html::Fallback;
use crate::record::{Record, RemovedBoilerplate, VisibleText};
use crate::site::server_of;

/// Minimum number of bytes that removal must leave; a text with fewer keeps all its lines, because the little that is its own would make it equal to
/// others with as little. If the main content of a page would keep less, it is template text, and the visible text of the page replaces it.
const MIN_REMAINING_BYTES: usize = 100;

/// The set of learned lines, as hashes.
///
/// Memory: some 18 bytes per line.
#[derive(Clone)]
pub struct BoilerplateLines {
    scope: BoilerplateScope,
    keys: HashSet<u64, BuildHasherDefault<IdentityHasher>>,
    id: u64,
}

/// Passes keys through, because they are already hashes.
#[derive(Clone, Copy, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// Returns the site of a record as a number, or `None` if it belongs to none.
pub fn site_key(scope: BoilerplateScope, record: &Record<'_>, format: Format) -> Option<u64> {
    match scope {
        // Used as the seed of all keys, so the same line has the same key everywhere.
        BoilerplateScope::Collection => Some(0),
        BoilerplateScope::Site => server_of(record, format).map(|host| host_key(&host)),
    }
}

fn host_key(host: &str) -> u64 {
    xxh3_64(host.as_bytes())
}

/// The first bytes of a file of lines.
const MAGIC: &[u8; 16] = b"lookalike lines\n";

/// The reason why bytes are not a valid file of learned lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BoilerplateFileError {
    /// They do not start with the magic bytes.
    #[error("not a file of learned lines")]
    NotLines,
    /// They are truncated or altered.
    #[error("the file of learned lines does not match its checksum: make it again")]
    Damaged,
}

/// Sets `keys` to the keys of the distinct lines of a text on a site, ascending. Blank lines have none.
pub fn line_keys(site: u64, text: &str, keys: &mut Vec<u64>) {
    keys.clear();
    keys.extend(text.lines().filter_map(|line| line_key(site, line)));
    keys.sort_unstable();
    keys.dedup();
}

fn line_key(site: u64, line: &str) -> Option<u64> {
    let line = without_ignorable(line);
    let line = line.trim();
    // The site is the seed, so one set of numbers serves all sites, at 8 bytes per line. With ten million learned lines, another line is taken for a
    // learned one with probability 10^7 / 2^64, which is 5e-13.
    (!line.is_empty()).then(|| xxh3_64_with_seed(line.as_bytes(), site))
}

impl BoilerplateLines {
    /// Creates the set of lines with these keys; see [`line_keys`].
    pub fn new(scope: BoilerplateScope, mut keys: Vec<u64>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        // Hashed in sorted order: the id belongs to the set, in whatever order it was learned.
        let mut hash = Xxh3::new();
        hash.update(scope.to_string().as_bytes());
        for key in &keys {
            hash.update(&key.to_le_bytes());
        }
        Self {
            scope,
            id: hash.digest(),
            keys: keys.into_iter().collect(),
        }
    }

    /// Returns the field of the scheme for texts without these lines.
    pub fn scheme(&self) -> Boilerplate {
        Boilerplate::Removed {
            scope: self.scope,
            id: self.id,
        }
    }

    /// Returns the number of lines.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there is no line.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Serializes the lines: `lookalike lines` and a line end (16 bytes), 1 if the lines recur on all pages of the collection or 0 if on those of a
    /// site (1), the keys, ascending (8 each), and XXH3-64 of everything before (8). Numbers are little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut keys: Vec<u64> = self.keys.iter().copied().collect();
        keys.sort_unstable();
        let mut bytes = MAGIC.to_vec();
        bytes.push(u8::from(self.scope == BoilerplateScope::Collection));
        bytes.extend(keys.iter().flat_map(|key| key.to_le_bytes()));
        let checksum = xxh3_64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    /// Reads the lines from the bytes of [`BoilerplateLines::to_bytes`].
    ///
    /// # Errors
    /// Returns a [`BoilerplateFileError`] if the bytes are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BoilerplateFileError> {
        if !bytes.starts_with(MAGIC) {
            return Err(BoilerplateFileError::NotLines);
        }
        let damaged = BoilerplateFileError::Damaged;
        let (body, checksum) = bytes.split_last_chunk().ok_or(damaged)?;
        let (scope, keys) = match body.get(MAGIC.len()..) {
            Some([0, keys @ ..]) => (BoilerplateScope::Site, keys),
            Some([1, keys @ ..]) => (BoilerplateScope::Collection, keys),
            _ => return Err(damaged),
        };
        let (keys, rest) = keys.as_chunks();
        if xxh3_64(body) != u64::from_le_bytes(*checksum) || !rest.is_empty() {
            return Err(damaged);
        }
        let keys = keys.iter().map(|&key| u64::from_le_bytes(key)).collect();
        Ok(Self::new(scope, keys))
    }

    /// Returns the scope: whether the lines recur on the pages of a site or of the collection.
    pub fn scope(&self) -> BoilerplateScope {
        self.scope
    }

    /// Returns the text of a page without the lines, as jobs compare it. If all of the text is template text and `visible` is given, `visible`
    /// without the lines takes its place. `host` is the server of the page.
    pub fn own_text<'t>(
        &self,
        host: Option<&str>,
        text: &'t str,
        visible: Option<&'t str>,
    ) -> Cow<'t, str> {
        let site = match self.scope {
            BoilerplateScope::Collection => Some(0),
            BoilerplateScope::Site => host.map(host_key),
        };
        let Some(site) = site else {
            return Cow::Borrowed(text);
        };
        let (left, removed) = self.split(site, text);
        match visible.filter(|_| removed.kept_whole) {
            Some(visible) => self.split(site, visible).0,
            None => left,
        }
    }

    /// Removes the lines from the text of a record. With `wants_visible`, the visible text is kept as well.
    pub(crate) fn strip(&self, record: &mut Record<'_>, format: Format, wants_visible: bool) {
        let Some(site) = site_key(self.scope, record, format) else {
            record.removed.without_site = true;
            return;
        };
        let (left, removed) = self.split(site, &record.text);
        record.removed = removed;
        // Borrowed means that nothing was removed, or that all would have been: both keep the text as it is.
        let left = match left {
            Cow::Owned(left) => Some(left),
            Cow::Borrowed(_) => None,
        };
        match &mut record.visible {
            Some(visible) => {
                // The visible text contains the template's lines as well, and is the fallback of the main content.
                let (own, of_page) = self.split(site, &visible.whole);
                visible.own = match own {
                    Cow::Owned(own) => Some(Cow::Owned(own)),
                    Cow::Borrowed(_) => None,
                };
                // All main content was template text, so the visible text takes its place.
                if removed.kept_whole {
                    record.removed = of_page;
                    record.fallback = Fallback::Template;
                    record.text = Cow::Owned(visible.own().to_owned());
                }
            }
            // Save the text before lines are removed: plain texts have no other copy of the visible text.
            None if wants_visible && left.is_some() => {
                let whole = std::mem::take(&mut record.text);
                let (own, page) = (None, None);
                record.visible = Some(VisibleText { whole, own, page });
            }
            None => {}
        }
        if let Some(left) = left {
            record.text = Cow::Owned(left);
        }
    }

    /// Removes the learned lines from a text. Returns the remaining text, and counts of what was removed.
    fn split<'t>(&self, site: u64, text: &'t str) -> (Cow<'t, str>, RemovedBoilerplate) {
        let is_learned =
            |line: &str| line_key(site, line).is_some_and(|key| self.keys.contains(&key));
        let mut removed = RemovedBoilerplate::default();
        // A first pass only counts. Most texts lose nothing, and are then not copied.
        for line in text.split_inclusive('\n').filter(|line| is_learned(line)) {
            removed.lines += 1;
            removed.bytes += line.len() as u64;
        }
        if removed.lines == 0 {
            return (Cow::Borrowed(text), removed);
        }
        let mut left = String::with_capacity(text.len() - removed.bytes as usize);
        for line in text.split_inclusive('\n').filter(|line| !is_learned(line)) {
            // At most one blank line between others, and none at the start.
            let doubled = line.trim().is_empty() && (left.is_empty() || left.ends_with("\n\n"));
            if !doubled {
                left.push_str(line);
            }
        }
        left.truncate(left.trim_end().len());
        if left.len() < MIN_REMAINING_BYTES {
            let kept = RemovedBoilerplate {
                kept_whole: true,
                ..RemovedBoilerplate::default()
            };
            return (Cow::Borrowed(text), kept);
        }
        (Cow::Owned(left), removed)
    }
}

impl PartialEq for BoilerplateLines {
    fn eq(&self, other: &Self) -> bool {
        self.scheme() == other.scheme()
    }
}

impl Eq for BoilerplateLines {}

impl fmt::Debug for BoilerplateLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scheme())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(lines: &[&str]) -> BoilerplateLines {
        let keys = lines.iter().filter_map(|line| line_key(7, line)).collect();
        BoilerplateLines::new(BoilerplateScope::Site, keys)
    }

    #[test]
    fn learned_lines_leave_and_the_rest_stays_in_order() {
        let own = "What this page says by itself is long enough to be compared. ".repeat(2);
        let text = format!("Home\n\n  Menu \n\n{own}\n\nHome\n\n{own}\nFooter");
        let (left, removed) = learned(&["Home", "Menu", "Footer"]).split(7, &text);
        assert_eq!(left, format!("{own}\n\n{}", own.trim_end()));
        assert_eq!((removed.lines, removed.bytes), (4, 5 + 8 + 5 + 6));
        // Another site has other lines.
        let (left, removed) = learned(&["Home"]).split(8, &text);
        assert_eq!(
            (left, removed),
            (Cow::Borrowed(&*text), RemovedBoilerplate::default())
        );
    }

    #[test]
    fn a_line_is_known_by_what_is_seen_of_it() {
        let own = "What this page says by itself is long enough to be compared. ".repeat(2);
        let text = format!("Ho\u{ad}me\n\u{200b}Menu\u{feff}\n{own}\n\u{200b}\n");
        let (left, removed) = learned(&["Home", "Menu"]).split(7, &text);
        assert!(left.starts_with(own.trim_end()), "{left:?}");
        assert_eq!(removed.lines, 2);
        let mut keys = Vec::new();
        line_keys(7, "Home\nHo\u{200d}me\n\u{2060}\n", &mut keys);
        assert_eq!(keys.len(), 1, "blank lines have none");
    }

    #[test]
    fn a_page_that_is_all_template_keeps_it() {
        let (left, removed) = learned(&["Home", "Menu"]).split(7, "Home\nMenu\nfew words");
        assert_eq!(left, "Home\nMenu\nfew words");
        assert!(removed.kept_whole && removed.lines == 0);
    }

    #[test]
    fn a_file_of_lines_has_the_same_lines_and_a_changed_one_is_refused() {
        for scope in [BoilerplateScope::Site, BoilerplateScope::Collection] {
            for keys in [vec![], vec![7, 1 << 63, 1]] {
                let lines = BoilerplateLines::new(scope, keys);
                let bytes = lines.to_bytes();
                let read = BoilerplateLines::from_bytes(&bytes).unwrap();
                assert_eq!((&read, read.len()), (&lines, lines.len()));
                for at in 0..bytes.len() {
                    let mut changed = bytes.clone();
                    changed[at] ^= 2;
                    assert!(BoilerplateLines::from_bytes(&changed).is_err(), "{at}");
                    assert!(BoilerplateLines::from_bytes(&bytes[..at]).is_err(), "{at}");
                }
            }
        }
    }

    #[test]
    fn a_page_whose_main_content_is_a_template_has_the_text_of_all_that_is_seen() {
        let own = "What this page says by itself is long enough to be compared. ".repeat(2);
        let line = "Home";
        let keys = [line_key(host_key("a.example"), line).unwrap()];
        let lines = BoilerplateLines::new(BoilerplateScope::Site, keys.to_vec());
        let page = format!("Home\n{own}");
        let of = |host, text, visible| lines.own_text(host, text, visible).into_owned();
        assert_eq!(of(Some("a.example"), &*page, None), own.trim_end());
        assert_eq!(of(Some("b.example"), &*page, None), page);
        assert_eq!(of(None, &*page, None), page);
        assert_eq!(of(Some("a.example"), line, None), line);
        assert_eq!(of(Some("a.example"), line, Some(&*page)), own.trim_end());
    }

    #[test]
    fn the_id_is_that_of_the_lines_whatever_their_order() {
        let (a, b) = (learned(&["x", "y", "x"]), learned(&["y", "x"]));
        assert_eq!(a, b);
        assert_ne!(a, learned(&["x"]));
        let keys = vec![1, 2];
        let [site, all] = [BoilerplateScope::Site, BoilerplateScope::Collection]
            .map(|scope| BoilerplateLines::new(scope, keys.clone()).scheme());
        assert_ne!(site, all);
    }
}
