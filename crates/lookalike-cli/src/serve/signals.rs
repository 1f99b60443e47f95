//! The signals that the service handles.

/// The signals that end the service.
pub(super) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// The signal to reload the files of keys and TLS.
pub(super) struct Hangups(tokio::signal::unix::Signal);

impl Hangups {
    pub(super) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::hangup()).map(Self)
    }

    pub(super) async fn next(&mut self) {
        // No more signals can arrive, which must not count as a signal.
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
