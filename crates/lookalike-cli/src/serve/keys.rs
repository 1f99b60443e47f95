//! The file of keys.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use lookalike_server::{ApiKeys, KeyRole, NewKey};

use super::io_failure::failed;
use crate::failure::Failure;

/// The keys of a file, which nobody else may change. One without a key lets nobody in.
pub(super) fn read(file: Option<&Path>) -> Result<ApiKeys, Failure> {
    let Some(file) = file else {
        return Ok(ApiKeys::default());
    };
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(failed(format!(
        "{shown}: make a key with --make-key ROLE:NAME, which creates the file"
    )))?;
    // Behind the reading, as a missing file has the better message. Who may write to the file could make
    // himself an administrator.
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
    if mode & 0o022 == 0 {
        return Ok(());
    }
    let shown = file.display();
    Err(Failure::Failed(format!(
        "{shown}: others can write to this file and add keys; run chmod go-w {shown}"
    )))
}

/// Makes a key, adds its hash to the file, and prints it.
pub(super) fn make(wanted: &str, file: &Path) -> Result<(), Failure> {
    let usage = |error: String| Failure::Usage(format!("--make-key {wanted}: {error}"));
    let mut parts = wanted.splitn(3, ':');
    let role = parts.next().unwrap_or_default();
    let name = parts
        .next()
        .ok_or_else(|| usage("write ROLE:NAME, for example write:crawler".to_owned()))?;
    let collections: Vec<&str> = parts.flat_map(|names| names.split(',')).collect();
    let role: KeyRole = role
        .parse()
        .map_err(|error: lookalike_server::KeyError| usage(error.to_string()))?;
    let mut chance = [0; 32];
    getrandom::fill(&mut chance).map_err(|error| {
        Failure::Failed(format!("the system provides no random numbers: {error}"))
    })?;
    let key =
        NewKey::make(role, name, &collections, chance).map_err(|error| usage(error.to_string()))?;
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let shown = file.display();
    let mut lines = options.open(file).map_err(failed(&shown))?;
    lines
        .write_all(key.line.as_bytes())
        // The hash is on the disk before the secret is shown: a key that somebody holds must never be unknown
        // after a crash.
        .and_then(|()| lines.sync_all())
        .map_err(failed(&shown))?;
    writeln!(std::io::stdout(), "{}", key.secret)?;
    Ok(())
}
