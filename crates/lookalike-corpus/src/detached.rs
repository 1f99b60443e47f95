//! Detached threads.

use std::io;
use std::thread::Builder;

/// Starts a detached thread, which nobody can join.
///
/// The thread starts its work only after it has been detached: `pthread_detach` of glibc 2.36 reads the descriptor of the thread, and if the thread
/// has ended and its stack is unmapped, a signal kills the process.
///
/// # Errors
/// Fails if the system cannot create a thread.
pub fn spawn_detached(builder: Builder, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (detached, is_detached) = std::sync::mpsc::channel::<()>();
    let thread = builder.spawn(move || {
        // Nothing is ever sent: dropping the sender is the signal.
        let _ = is_detached.recv();
        work();
    })?;
    drop(thread);
    drop(detached);
    Ok(())
}
