//! Connections: how many, how long they may do nothing, and how they end.

use std::convert::Infallible;
use std::future::Future;
use std::io::Write as _;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::ServiceExt as _;

use crate::app::App;
use crate::log::{Entry, Level};
use crate::tls::Tls;

/// Buffer of a connection for heads and answers.
const BUFFER: usize = 64 << 10;
/// Requests that one HTTP/2 connection may have in progress.
const STREAMS: u32 = 64;
/// Bytes of the head of an HTTP/2 request.
const HEAD: u32 = 16 << 10;
/// How long to wait when the system has no connection to give, for want of files for example.
const BREATH: Duration = Duration::from_millis(50);

/// What a connection beyond the most gets.
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\
Content-Type: application/problem+json\r\nContent-Length: 141\r\n\r\n\
{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\"code\":\"connections\",\
\"detail\":\"too many connections\",\"remedy\":\"come again\"}\n";

/// Serves connections, secured if `tls` says with what, until `stop` is done, then lets requests in progress end for as long as [`Limits::drain`] says, or until
/// `hurry` is done.
///
/// [`Limits::drain`]: crate::Limits::drain
pub async fn serve(
    listener: TcpListener,
    app: &Arc<App>,
    tls: Option<&Arc<Tls>>,
    stop: impl Future<Output = ()>,
    hurry: impl Future<Output = ()>,
) {
    let router = crate::route::app(app);
    let (closing, closed) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        app.metrics.connections.store(open.len(), Relaxed);
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = open.join_next(), if !open.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Err(error) => {
                let entry = Entry::new(Level::Warn, "not-accepted");
                app.log.say(&entry.with("reason", error.to_string()));
                sleep(BREATH).await;
            }
            Ok((stream, _)) if open.len() >= app.limits.connections => {
                app.metrics.refused("connections");
                refuse(stream);
            }
            Ok((stream, _)) => {
                let connection = Connection {
                    app: Arc::clone(app),
                    router: router.clone(),
                    closed: closed.clone(),
                };
                open.spawn(connection.begin(stream, tls.map(Arc::clone)));
            }
        }
    }
    drop(listener);
    app.stop();
    // Nobody listens any more when all connections are gone.
    let _ = closing.send(true);
    let ended = async { while open.join_next().await.is_some() {} };
    tokio::select! {
        _ = timeout(app.limits.drain, ended) => {}
        () = hurry => {}
    }
    open.shutdown().await;
    app.metrics.connections.store(0, Relaxed);
}

/// Tells a connection to come again, if it can be told at once.
fn refuse(stream: TcpStream) {
    if let Ok(mut stream) = stream.into_std() {
        // It does not block: what cannot be said is left unsaid.
        let _ = stream.write(REFUSAL);
    }
}

/// What serves one connection.
struct Connection {
    app: Arc<App>,
    router: Router,
    closed: watch::Receiver<bool>,
}

impl Connection {
    async fn begin(self, stream: TcpStream, tls: Option<Arc<Tls>>) {
        // Answers are small, and each is written at once.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else {
            return self.serve(stream).await;
        };
        let patience = self.app.limits.header_timeout;
        match timeout(patience, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream).await,
            // Plain HTTP, an unknown certificate, no version or cipher in common, nothing at all: who it was and why is
            // nobody's to log, but that there are many is to be seen.
            _ => {
                self.app.metrics.unsecured.fetch_add(1, Relaxed);
            }
        }
    }

    async fn serve(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let patience = self.app.limits.header_timeout;
        let activity = Arc::new(Activity::default());
        let counted = Arc::clone(&activity);
        let router = self.router.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (router, working) = (router.clone(), Working::begin(&counted));
            async move {
                let response = router.oneshot(request.map(Body::new)).await;
                let watched = working.follow(response.map_err(|never: Infallible| never)?);
                drop(working);
                Ok::<_, Infallible>(watched)
            }
        });
        let builder = builder();
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut draining = false;
        loop {
            tokio::select! {
                // How a connection ended is its own affair.
                _ = connection.as_mut() => return,
                _ = self.closed.changed(), if !draining => {
                    connection.as_mut().graceful_shutdown();
                    draining = true;
                }
                () = sleep_until(activity.patience_ends(patience)) => {
                    if activity.is_idle_for(patience) {
                        return;
                    }
                }
            }
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // Heads that do not come are noticed by [`Activity`], with one timer a connection; hyper would set one for each request.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD)
        .max_send_buf_size(BUFFER);
    builder
}

/// Whether a connection is waited for, or waits for us. One on which no request is being worked on for longer than the patience
/// is closed, whatever it does meanwhile: half a head, a head byte by byte, an answer that is not taken, nothing.
#[derive(Debug)]
struct Activity {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    in_progress: usize,
    since: Instant,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                in_progress: 0,
                since: Instant::now(),
            }),
        }
    }
}

impl Activity {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn patience_ends(&self, patience: Duration) -> Instant {
        let state = self.state();
        if state.in_progress > 0 {
            return Instant::now() + patience;
        }
        state.since + patience
    }

    fn is_idle_for(&self, patience: Duration) -> bool {
        let state = self.state();
        state.in_progress == 0 && state.since.elapsed() >= patience
    }
}

/// A request that is being worked on.
struct Working(Arc<Activity>);

impl Working {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.state().in_progress += 1;
        Self(Arc::clone(activity))
    }
}

impl Working {
    /// Counts every part of an answer that is taken while it is made, so that a long one is no idle connection.
    fn follow(&self, response: Response<Body>) -> Response<Body> {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        let activity = Arc::clone(&self.0);
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                activity.state().since = Instant::now();
                frame
            }))
        })
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_progress -= 1;
        state.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let text = std::str::from_utf8(REFUSAL).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    }
}
