//! A mapped file that is cut short while it is searched: the system tells of it by a signal, which would end the process
//! without a word.

use std::path::Path;
use std::sync::OnceLock;

/// Message for that case.
static MESSAGE: OnceLock<String> = OnceLock::new();

/// From now on, a page that is not there any more is an error that names this file.
#[expect(unsafe_code, reason = "a handler for a signal")]
pub(crate) fn name_file(path: &Path) {
    let shown = path.display();
    let message = format!(
        "lookalike: error: {shown}: the file was truncated or became unreadable during the search: rebuild it, or give --in-memory\n"
    );
    // The first file stays: the handler reads without a lock, so the message may not change any more.
    if MESSAGE.set(message).is_err() {
        return;
    }
    let handler: extern "C" fn(libc::c_int) = tell_and_end;
    // SAFETY: all zeros are a valid `sigaction`: no flags and an empty mask. The handler makes only calls that are allowed in
    // one (`write` and `_exit`) and reads a value that was set before.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        // Without SA_SIGINFO the field holds a handler of one argument, which is what this one is.
        action.sa_sigaction = handler as libc::sighandler_t;
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
}

#[expect(unsafe_code, reason = "a handler for a signal")]
extern "C" fn tell_and_end(_signal: libc::c_int) {
    let message = MESSAGE.get().map_or("", String::as_str);
    // SAFETY: both calls are allowed in a handler, and the bytes live as long as the process.
    unsafe {
        libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len());
        libc::_exit(1);
    }
}
