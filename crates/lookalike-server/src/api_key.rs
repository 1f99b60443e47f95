//! API keys and their roles.
//!
//! A key consists of 32 random bytes, so its plain BLAKE3 hash can be stored without revealing anything. The file has one key a line:
//! `ROLE NAME HASH`, followed by the names of the collections that the key is for, unless it is for all. `#` begins a comment.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use lookalike_store::is_name;

lookalike::words! {
    /// The role of a key. Each role includes the previous ones.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum KeyRole {
        /// Check, query, get, list, metrics.
        Read = "read",
        /// Insert and delete documents.
        Write = "write",
        /// Create and remove collections.
        Admin = "admin",
    }
}

/// An error in a key or a file of keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no role of this name.
    #[error("{0:?} is not a role: use read, write or admin")]
    Role(String),
    /// The name is not valid for a key.
    #[error("{0:?} is not a valid name of a key: use 1 to 64 characters of a-z, A-Z, 0-9, - and _")]
    Name(String),
    /// The name is not valid for a collection.
    #[error(
        "{0:?} is not a valid name of a collection: use 1 to 64 characters of a-z, 0-9, - and _"
    )]
    Collection(String),
    /// A line of the file is not a key.
    #[error("line {line}: {what}; each line is ROLE NAME HASH [COLLECTION...]")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Description of the error.
        what: String,
    },
}

/// A key as it is stored, without its secret.
#[derive(Clone)]
pub struct ApiKey {
    pub(crate) role: KeyRole,
    /// Name of the holder, for the log.
    pub(crate) name: Arc<str>,
    hash: blake3::Hash,
    pub(crate) scope: KeyScope,
}

/// The collections that a key is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum KeyScope {
    #[default]
    All,
    Named(Arc<[String]>),
}

impl KeyScope {
    /// Tells whether the scope includes a collection.
    pub(crate) fn includes(&self, collection: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == collection),
        }
    }
}

/// All accepted keys. By default requests need no key; a file without a key admits nobody.
#[derive(Clone, Debug, Default)]
pub struct ApiKeys {
    /// The keys; `None` if requests need no key.
    keys: Option<Vec<ApiKey>>,
}

/// A newly generated key.
#[derive(Clone)]
pub struct NewKey {
    /// Secret that the holder sends. It is shown once and not stored.
    pub secret: String,
    /// Its line in the file, including the newline.
    pub line: String,
}

// Shows neither the secret nor its line, so that no log does.
lookalike::opaque_debug! {
    [] NewKey [];
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} {})", self.role, self.name)
    }
}

impl FromStr for KeyRole {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let named = Self::ALL.into_iter().find(|role| role.name() == text);
        named.ok_or_else(|| KeyError::Role(text.to_owned()))
    }
}

fn check_name(name: &str) -> Result<(), KeyError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(KeyError::Name(name.to_owned()))
}

/// Returns the scope for names of collections: all collections if there are no names.
fn scope(names: &[&str]) -> Result<KeyScope, KeyError> {
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(KeyError::Collection((*name).to_owned())),
        None if names.is_empty() => Ok(KeyScope::All),
        None => Ok(KeyScope::Named(
            names.iter().map(|&name| name.to_owned()).collect(),
        )),
    }
}

impl NewKey {
    /// Generates a key with a role, for some collections or, if none is named, for all. `chance` must be 32 random bytes that nobody can
    /// guess.
    ///
    /// # Errors
    /// [`KeyError::Name`] and [`KeyError::Collection`].
    pub fn make(
        role: KeyRole,
        name: &str,
        collections: &[&str],
        chance: [u8; 32],
    ) -> Result<Self, KeyError> {
        check_name(name)?;
        scope(collections)?;
        let named: String = collections.iter().map(|name| format!(" {name}")).collect();
        // The prefix lets scanners of repositories and logs find leaked keys.
        let digits: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
        let secret = format!("lk_{digits}");
        let hash = blake3::hash(secret.as_bytes());
        Ok(Self {
            line: format!("{role} {name} {hash}{named}\n"),
            secret,
        })
    }
}

impl FromStr for ApiKeys {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            // No role, hash or name of a collection contains `#`, so a comment may also follow a key.
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let wrong = |what: String| KeyError::Line {
                line: number + 1,
                what,
            };
            match words[..] {
                [] => {}
                [role, name, hash, ref collections @ ..] => {
                    let invalid = |error: KeyError| wrong(error.to_string());
                    // Also of lines that were not made by this program, because names are shown in the log.
                    check_name(name).map_err(invalid)?;
                    keys.push(ApiKey {
                        role: role.parse().map_err(invalid)?,
                        name: name.into(),
                        hash: hash.parse().map_err(|_| {
                            wrong("the hash is not 64 hexadecimal digits".to_owned())
                        })?,
                        scope: scope(collections).map_err(invalid)?,
                    });
                }
                _ => return Err(wrong(format!("{} words, fewer than three", words.len()))),
            }
        }
        Ok(Self { keys: Some(keys) })
    }
}

impl ApiKeys {
    /// Tells whether requests need a key.
    pub fn are_required(&self) -> bool {
        self.keys.is_some()
    }

    /// Returns true if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> &[ApiKey] {
        self.keys.as_deref().unwrap_or_default()
    }

    /// Finds the key with a secret. If several lines have it, prefers one that `allows` accepts, and then the highest role. The time taken
    /// depends neither on which key it is nor on whether there is one.
    pub(crate) fn find(&self, secret: &str, allows: impl Fn(&ApiKey) -> bool) -> Option<&ApiKey> {
        let hash = blake3::hash(secret.as_bytes());
        // Compare all lines even after a match: otherwise the time would reveal how far down the key is.
        let rank = |key: &ApiKey| (allows(key), key.role);
        let mut found: Option<&ApiKey> = None;
        for key in self.all() {
            // Comparing hashes takes constant time.
            if key.hash == hash && found.is_none_or(|known| rank(known) < rank(key)) {
                found = Some(key);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_what_its_line_says() {
        let made = NewKey::make(KeyRole::Write, "crawler", &[], [7; 32]).expect("a name");
        assert!(
            !made.line.contains(&made.secret[3..]),
            "the file holds the hash only"
        );
        let file = format!("# keys\n\n{}", made.line);
        let keys: ApiKeys = file.parse().expect("a file of keys");
        let found = keys.find(&made.secret, |_| true).expect("the key");
        assert_eq!(
            (keys.len(), found.role, &*found.name),
            (1, KeyRole::Write, "crawler")
        );
        assert!(keys.find(&made.secret[1..], |_| true).is_none());
        assert!(keys.find("", |_| true).is_none());
        assert!(KeyRole::Admin > KeyRole::Write && KeyRole::Write > KeyRole::Read);
    }

    #[test]
    fn names_of_keys_in_a_file_were_not_checked() {
        let made = NewKey::make(KeyRole::Read, "name", &[], [1; 32]).expect("a name");
        for name in ["\u{1b}[2J", "n\u{e4}me", &"x".repeat(65)] {
            let line = made.line.replace("name", name);
            let refused = line.parse::<ApiKeys>().expect_err("no name");
            let said = refused.to_string();
            assert!(
                said.contains("line 1") && !said.contains('\u{1b}'),
                "{said}"
            );
        }
    }

    #[test]
    fn a_key_of_several_lines_is_what_any_of_them_allows() {
        let [all, pages] = [
            NewKey::make(KeyRole::Read, "all", &[], [1; 32]),
            NewKey::make(KeyRole::Write, "some", &["pages", "news"], [1; 32]),
        ]
        .map(|key| key.expect("a name"));
        let keys: ApiKeys = (all.line + &pages.line).parse().expect("a file of keys");
        let find = |role, collection| {
            let allows = |key: &ApiKey| key.role >= role && key.scope.includes(collection);
            keys.find(&pages.secret, allows).expect("the key").clone()
        };
        assert_eq!(&*find(KeyRole::Write, "news").name, "some");
        assert_eq!(&*find(KeyRole::Read, "other").name, "all");
        assert!(!find(KeyRole::Write, "other").scope.includes("other"));
    }

    #[test]
    fn a_file_without_keys_lets_nobody_in() {
        let none: ApiKeys = "# all revoked\n".parse().expect("a file of keys");
        assert!(none.are_required() && none.is_empty());
        assert!(!ApiKeys::default().are_required());
    }

    #[test]
    fn lines_that_are_no_keys_are_named() {
        for (line, said) in [
            ("root me 00", "not a role"),
            ("read me 00", "64 hexadecimal"),
            ("read 00", "2 words"),
            (
                "read me af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262 Pages",
                "name of a collection",
            ),
        ] {
            let error = format!("# first\n{line}")
                .parse::<ApiKeys>()
                .expect_err("no key")
                .to_string();
            assert!(error.contains(said) && error.contains("line 2"), "{error}");
        }
        assert!(NewKey::make(KeyRole::Read, "a b", &[], [0; 32]).is_err());
        assert!(NewKey::make(KeyRole::Read, "a", &["a/b"], [0; 32]).is_err());
    }
}
