//! Threads that nobody waits for.

use std::io;
use std::thread::Builder;

/// Begins a thread that nobody waits for.
///
/// It begins its work when it has been detached: `pthread_detach` of glibc 2.36 reads the descriptor of a thread that may have ended
/// meanwhile, whose stack may be unmapped, and the process dies of a signal.
///
/// # Errors
/// If the system gives no thread.
pub fn spawn_detached(builder: Builder, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (detached, is_detached) = std::sync::mpsc::channel::<()>();
    let thread = builder.spawn(move || {
        // Nothing is ever sent: the end of the sender is the message.
        let _ = is_detached.recv();
        work();
    })?;
    drop(thread);
    drop(detached);
    Ok(())
}
