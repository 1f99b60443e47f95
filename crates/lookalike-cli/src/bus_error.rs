//! Handling of a mapped file that is truncated during a search: the system reports it by a signal, which would end the process without a message.

use std::path::Path;
use std::sync::OnceLock;

/// Message for that case.
static MESSAGE: OnceLock<String> = OnceLock::new();

/// Makes access to a missing page of a mapped file an error that names this file.
#[expect(unsafe_code, reason = "a handler for a signal")]
pub(crate) fn name_file(path: &Path) {
    let shown = path.display();
    let message = format!(
        "lookalike: error: {shown}: the file was truncated or became unreadable during the search: rebuild it, or give --in-memory\n"
    );
    // The first file is kept: the handler reads the message without a lock, so it must not change.
    if MESSAGE.set(message).is_err() {
        return;
    }
    let handler: extern "C" fn(libc::c_int) = report_and_exit;
    // SAFETY: all zeros are a valid `sigaction`: no flags and an empty mask. The handler makes only calls that are allowed in one (`write` and
    // `_exit`) and reads a value that was set before.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        // Without SA_SIGINFO, the field holds a handler with one argument, like this one.
        action.sa_sigaction = handler as libc::sighandler_t;
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
}

#[expect(unsafe_code, reason = "a handler for a signal")]
extern "C" fn report_and_exit(_signal: libc::c_int) {
    // Formatted beforehand, because a handler must not allocate: the signal may come while the allocator holds its lock.
    let message = MESSAGE.get().map_or("", String::as_str);
    // SAFETY: both calls are allowed in a handler, and the bytes live as long as the process.
    unsafe {
        libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len());
        libc::_exit(1);
    }
}
