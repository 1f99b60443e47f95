//! The limit on open files: raised as far as the system allows, and compared with the needs of the settings.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::console;
use crate::failure::Failure;

/// Number of files for the runtime, the store itself with its reserve, and the log.
const BASE_FILES: u64 = 64;
/// Number of files per collection: runs before and after a merge, logs, folders.
const COLLECTION: u64 = 40;

/// Raises the soft limit to the hard one.
pub(crate) fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    // If it cannot be raised, the current limit may suffice.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Refuses settings that need more files than the process may open. Those of health checks come in addition to `connections`.
pub(crate) fn ensure_enough(
    connections: usize,
    health_connections: usize,
    collections: usize,
) -> Result<(), Failure> {
    // `None` means unlimited.
    let Some(most) = getrlimit(Resource::Nofile).current else {
        return Ok(());
    };
    let (connections, collections) = (connections as u64, collections as u64);
    let own = BASE_FILES + health_connections as u64 + collections * COLLECTION;
    if own + connections <= most {
        return Ok(());
    }
    let remedy = match most.checked_sub(own) {
        Some(fits) if fits > 0 => format!(", or give --max-connections {fits}"),
        _ => String::new(),
    };
    Err(Failure::Failed(format!(
        "too many open files for this process: it may have {most} (ulimit -n) and needs {needed}, {connections} of them for connections \
         (--max-connections) and {own} for itself and {}: raise the limit{remedy}",
        console::counted(collections, "collection"),
        needed = own + connections,
    )))
}
