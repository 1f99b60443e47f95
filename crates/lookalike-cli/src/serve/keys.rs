//! The file of keys.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use lookalike_server::{ApiKeys, KeyRole, NewKey};

use super::io_failure::failed;
use crate::failure::Failure;

/// Reads the keys in a file, which no other user may be able to change. A file without keys admits nobody.
pub(super) fn read(file: Option<&Path>) -> Result<ApiKeys, Failure> {
    let Some(file) = file else {
        return Ok(ApiKeys::default());
    };
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => ": make a key with --make-key ROLE:NAME, which creates it",
            _ => "",
        };
        Failure::Failed(format!(
            "{shown}: the file of keys cannot be read: {error}{remedy}"
        ))
    })?;
    // After the file was read, because the message for a missing file is better. A user who may write to the file could become an administrator.
    check_mode(file)?;
    let keys: ApiKeys = text.parse().map_err(|error| {
        Failure::Failed(format!(
            "{shown}: {error}; make keys with --make-key ROLE:NAME"
        ))
    })?;
    Ok(keys)
}

fn check_mode(file: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let shown = file.display();
    let mode = std::fs::metadata(file)
        .map_err(failed(shown))?
        .permissions()
        .mode();
    // Only writing is dangerous: the hash of 32 random bytes may be read.
    if mode & 0o022 == 0 {
        return Ok(());
    }
    let shown = file.display();
    Err(Failure::Failed(format!(
        "{shown}: others can write to this file and add keys; run chmod go-w {shown}"
    )))
}

/// Creates a key, adds its hash to the file, and prints the key.
pub(super) fn make(wanted: &str, file: &Path) -> Result<(), Failure> {
    let usage = |error: String| Failure::Usage(format!("--make-key {wanted}: {error}"));
    // Names contain no colon, so the third part is the list of collections.
    let mut parts = wanted.splitn(3, ':');
    let role = parts.next().unwrap_or_default();
    let name = parts
        .next()
        .ok_or_else(|| usage("write ROLE:NAME, for example write:crawler".to_owned()))?;
    let collections: Vec<&str> = parts.flat_map(|names| names.split(',')).collect();
    let role: KeyRole = role
        .parse()
        .map_err(|error: lookalike_server::KeyError| usage(error.to_string()))?;
    let shown = file.display();
    let lines = existing_lines(file).map_err(failed(&shown))?;
    // The log names keys, and a line is removed by its name.
    if lines.lines().any(|line| name_in(line) == Some(name)) {
        return Err(usage(format!(
            "{shown} has a key with this name: choose another, or first remove its line to revoke the key"
        )));
    }
    let mut chance = [0; 32];
    getrandom::fill(&mut chance).map_err(|error| {
        Failure::Failed(format!("the system provides no random numbers: {error}"))
    })?;
    let key =
        NewKey::make(role, name, &collections, chance).map_err(|error| usage(error.to_string()))?;
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    // Hashes reveal no key, but names and scopes concern nobody else.
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // If the last line has no line end, as some editors leave it, the new key would be appended to it, and both would be lost.
    let end = match lines.is_empty() || lines.ends_with('\n') {
        true => "",
        false => "\n",
    };
    let mut lines = options.open(file).map_err(failed(&shown))?;
    lines
        .write_all(format!("{end}{}", key.line).as_bytes())
        // The hash is on disk before the secret is shown: a key in use must never be unknown after a crash.
        .and_then(|()| lines.sync_all())
        .map_err(failed(&shown))?;
    writeln!(std::io::stdout(), "{}", key.secret)?;
    Ok(())
}

/// Returns the text of a file of keys; empty if there is no file.
fn existing_lines(file: &Path) -> io::Result<String> {
    match std::fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text,
    }
}

/// Returns the name of the key in a line, if there is one.
fn name_in(line: &str) -> Option<&str> {
    line.split('#').next()?.split_whitespace().nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_joined_a_last_line_without_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        make("read:first", &file).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.trim_end()).unwrap();
        make("write:second", &file).unwrap();
        make("write:third", &file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 3);
        assert!(read(Some(&file)).is_ok());
    }

    #[test]
    fn whoever_may_not_read_the_keys_was_told_to_make_one() {
        let folder = tempfile::tempdir().unwrap();
        let said = |file: &Path| read(Some(file)).unwrap_err().to_string();
        assert!(!said(folder.path()).contains("--make-key"));
        let missing = said(&folder.path().join("keys"));
        assert!(
            missing.contains("(os error 2): make a key with"),
            "{missing}"
        );
    }

    #[test]
    fn two_keys_with_one_name_could_not_be_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        std::fs::write(&file, "# write first, then read:\n").unwrap();
        make("write:first", &file).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        for wanted in ["write:first", "read:first:pages"] {
            let said = make(wanted, &file).unwrap_err().to_string();
            assert!(said.contains("a key with this name"), "{said}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        // A comment is no key.
        std::fs::write(&file, text.replace("write first", "# write first")).unwrap();
        make("write:first", &file).unwrap();
    }
}
