//! Connections: their number, their timeouts, and how they end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, EXPECT};
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use lookalike_store::sync::lock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};
use tower::ServiceExt as _;

use crate::app_state::AppState;
use crate::client::PeerAddress;
use crate::connection_activity::{ConnectionActivity, RequestInProgress};
use crate::event_log::{LogEntry, LogLevel};
use crate::load_shedding::{ArrivalClock, ShedRequest, TimedStream};
use crate::tls::ServerTls;

/// Size in bytes of a connection's buffer for heads and answers.
const BUFFER: usize = 64 << 10;
/// Maximum number of concurrent requests on an HTTP/2 connection.
const STREAMS: u32 = 64;
/// Maximum size of the head of an HTTP/2 request in bytes.
const HEAD: u32 = 16 << 10;
/// Interval at which the collections record the time.
const TIME_INTERVAL: Duration = Duration::from_secs(60);
/// Delay after a failed accept, for example for lack of file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// Maximum number of connections to the listener for health checks.
pub const HEALTH_CONNECTIONS: usize = 64;
/// The rest of an unread body is discarded up to this many times the largest body.
const REST_BODIES: usize = 4;
/// Time limit for reading the rest, followed by that for a pause in it.
const REST_TIMEOUT: Duration = Duration::from_secs(10);
const REST_PAUSE: Duration = Duration::from_secs(2);

/// Returns the response to a connection beyond a limit.
fn refusal(code: &str, detail: &str) -> String {
    // Not a `ProblemDetails`: a refused connection has no request and no task, so the bytes are written by hand.
    let body = format!(
        "{{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\"code\":\"{code}\",\
         \"detail\":\"{detail}\",\"remedy\":\"try again later\"}}\n"
    );
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\
         Content-Type: application/problem+json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The listeners of the service.
#[derive(Debug)]
pub struct ServiceListeners {
    /// Listener for all operations.
    pub main: TcpListener,
    /// Listener for `/healthz` and `/readyz` only, without TLS and with its own limit on connections, so that crowding the other one does
    /// not affect it.
    pub health: Option<TcpListener>,
}

/// Serves connections, with TLS if `tls` is given, until `stop` completes. Then lets requests in progress finish within
/// [`ServiceLimits::drain`], or until `force_shutdown` completes. Calls [`AppState::observe_time`] and [`AppState::log_failures`] every minute.
/// Returns the number of connections that were cut off because their requests did not end in time; it is logged, too.
///
/// [`ServiceLimits::drain`]: crate::ServiceLimits::drain
pub async fn serve(
    listeners: ServiceListeners,
    app: &Arc<AppState>,
    tls: Option<&Arc<ServerTls>>,
    stop: impl Future<Output = ()>,
    force_shutdown: impl Future<Output = ()>,
) -> usize {
    let (closing, closed) = watch::channel(false);
    // Keep the sender alive: `changed` also completes when the sender is dropped, which would end the connections for health checks.
    let (_never, never_closed) = watch::channel(false);
    let mut main = ConnectionAcceptor {
        listener: listeners.main,
        router: crate::route::router(app),
        tls: tls.map(Arc::clone),
        slots: ConnectionSlots::new(app.limits.connections, app.limits.address_connections),
        app: Arc::clone(app),
        closed,
        open: JoinSet::new(),
        is_main: true,
    };
    // The listener for health checks answers until all other requests have been answered, and also tells that the service is stopping.
    let health = listeners.health.map(|listener| ConnectionAcceptor {
        listener,
        router: crate::route::health_router(app),
        tls: None,
        slots: ConnectionSlots::new(HEALTH_CONNECTIONS, HEALTH_CONNECTIONS),
        app: Arc::clone(app),
        closed: never_closed,
        open: JoinSet::new(),
        is_main: false,
    });
    // Without this listener, the future never completes, and only `all` ends the service.
    let health = async {
        match health {
            Some(mut door) => door.accept().await,
            None => std::future::pending().await,
        }
    };
    let all = async {
        tokio::select! {
            () = stop => {}
            never = main.accept() => match never {},
        }
        let ConnectionAcceptor {
            listener, mut open, ..
        } = main;
        // Close the listener before the drain: the system then refuses new clients, instead of letting them wait for an answer that never
        // comes.
        drop(listener);
        app.stop();
        // Sending fails if all connections are already gone.
        let _ = closing.send(true);
        // Each connection has been told to finish: HTTP/1 closes after the current answer, HTTP/2 sends GOAWAY.
        let ended = async { while open.join_next().await.is_some() {} };
        tokio::select! {
            _ = timeout(app.limits.drain, ended) => {}
            () = force_shutdown => {}
        }
        while open.try_join_next().is_some() {}
        let cut_off = open.len();
        // Aborts the connections that are left. What their requests began on workers still ends: `AppState::close` waits for that.
        open.shutdown().await;
        cut_off
    };
    let mut turns = JoinSet::new();
    let telling_time = async {
        loop {
            let app = Arc::clone(app);
            // Not here, because both may wait for locks, and meanwhile no connection would be accepted.
            turns.spawn_blocking(move || {
                app.observe_time();
                app.log_failures();
            });
            // A panic ends only this turn.
            let _ = turns.join_next().await;
            sleep(TIME_INTERVAL).await;
        }
    };
    let cut_off = tokio::select! {
        cut_off = all => cut_off,
        never = health => match never {},
        () = telling_time => 0,
    };
    if cut_off > 0 {
        let entry = LogEntry::new(LogLevel::Warn, "cut-off");
        app.log.record(&entry.with("connections", cut_off));
    }
    // A turn that has begun holds the state, and `AppState::close` would take it for a request that does not end.
    turns.shutdown().await;
    app.metrics.connections.store(0, Relaxed);
    cut_off
}

/// The slots of open connections.
struct ConnectionSlots {
    most: usize,
    most_per_address: usize,
    taken: Mutex<UsedSlots>,
}

#[derive(Default)]
struct UsedSlots {
    all: usize,
    by_peer: HashMap<PeerAddress, usize>,
}

/// The slot of a connection, which is freed when dropped.
struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    peer: PeerAddress,
}

impl ConnectionSlots {
    fn new(most: usize, most_per_address: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_per_address,
            taken: Mutex::default(),
        })
    }

    /// Takes a slot for a connection of a peer. Returns the code and the detail of the refusal if none is free.
    fn take(
        self: &Arc<Self>,
        peer: PeerAddress,
    ) -> Result<ConnectionSlot, (&'static str, &'static str)> {
        let mut taken = lock(&self.taken);
        let of_peer = taken.by_peer.get(&peer).copied().unwrap_or_default();
        if taken.all >= self.most {
            return Err(("connections", "too many connections"));
        }
        if of_peer >= self.most_per_address {
            return Err((
                "address-connections",
                "too many connections from this address",
            ));
        }
        taken.all += 1;
        taken.by_peer.insert(peer, of_peer + 1);
        Ok(ConnectionSlot {
            slots: Arc::clone(self),
            peer,
        })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = lock(&self.slots.taken);
        taken.all -= 1;
        if let Some(of_peer) = taken.by_peer.get_mut(&self.peer) {
            *of_peer -= 1;
            // Otherwise the map would keep every address that ever connected.
            if *of_peer == 0 {
                taken.by_peer.remove(&self.peer);
            }
        }
    }
}

/// Accepts the connections of a listener.
struct ConnectionAcceptor {
    listener: TcpListener,
    router: Router,
    tls: Option<Arc<ServerTls>>,
    slots: Arc<ConnectionSlots>,
    app: Arc<AppState>,
    closed: watch::Receiver<bool>,
    open: JoinSet<()>,
    /// True if its connections are counted in metrics.
    is_main: bool,
}

impl ConnectionAcceptor {
    /// Accepts connections forever.
    async fn accept(&mut self) -> Infallible {
        loop {
            if self.is_main {
                self.app.metrics.connections.store(self.open.len(), Relaxed);
            }
            // The set keeps finished tasks until they are joined, so without this it would grow with every connection.
            let accepted = tokio::select! {
                Some(_) = self.open.join_next(), if !self.open.is_empty() => continue,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Err(error) => {
                    let entry = LogEntry::new(LogLevel::Warn, "not-accepted");
                    let entry = entry.with("reason", error.to_string());
                    self.app.log.record(&entry);
                    // Usually EMFILE. The connection stays in the queue, so without a pause the error would recur at once, and this loop
                    // would use a whole core.
                    sleep(ACCEPT_BACKOFF).await;
                }
                Ok((stream, address)) => self.accept_stream(stream, PeerAddress::of(address)),
            }
        }
    }

    fn accept_stream(&mut self, stream: TcpStream, peer: PeerAddress) {
        // Take the slot before the TLS handshake, so that a client beyond its share causes no such work. Both limits are checked under one
        // lock: otherwise a slot counted for one limit would have to be returned when the other is exceeded.
        let slot = match self.slots.take(peer) {
            Ok(slot) => slot,
            Err((code, detail)) => {
                self.app.metrics.refused(code);
                // A client that gets plain text would take a TLS service for one without TLS.
                if self.tls.is_none() {
                    refuse(stream, &refusal(code, detail));
                }
                return;
            }
        };
        let connection = ClientConnection {
            app: Arc::clone(&self.app),
            router: self.router.clone(),
            closed: self.closed.clone(),
            slot,
        };
        self.open
            .spawn(connection.begin(stream, self.tls.as_ref().map(Arc::clone)));
    }
}

/// Sends a refusal to a connection if that is possible without waiting.
fn refuse(stream: TcpStream, refusal: &str) {
    if let Ok(mut stream) = stream.into_std() {
        // The socket does not block: if the write is not possible now, it is skipped.
        let _ = stream.write(refusal.as_bytes());
        // If a request is left unread, the system would discard the refusal.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read(&mut [0; 4096]);
    }
}

/// Serves one connection.
struct ClientConnection {
    app: Arc<AppState>,
    router: Router,
    closed: watch::Receiver<bool>,
    slot: ConnectionSlot,
}

impl ClientConnection {
    async fn begin(self, stream: TcpStream, tls: Option<Arc<ServerTls>>) {
        // Answers are small and written in one piece.
        let _ = stream.set_nodelay(true);
        let stream = TimedStream::new(stream);
        let arrival = stream.arrival();
        let Some(tls) = tls else {
            return self.serve(stream, arrival).await;
        };
        let idle_timeout = self.app.limits.header_timeout;
        match timeout(idle_timeout, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream, arrival).await,
            // This may be plain HTTP, an unknown certificate, no common version or cipher, or nothing at all. Single cases are not worth
            // logging, but their number is shown in metrics.
            _ => {
                self.app.metrics.unsecured.fetch_add(1, Relaxed);
            }
        }
    }

    async fn serve(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        arrival: Arc<ArrivalClock>,
    ) {
        let idle_timeout = self.app.limits.header_timeout;
        let activity = Arc::new(ConnectionActivity::new(Arc::clone(&arrival)));
        let counted = Arc::clone(&activity);
        let router = self.router.clone();
        let (peer, app) = (self.slot.peer, Arc::clone(&self.app));
        let most_rest = self.app.limits.body_bytes.saturating_mul(REST_BODIES);
        // Called when the head of a request has been read, which ends the idle time of the connection.
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let (router, working) = (router.clone(), RequestInProgress::begin(&counted));
            // For the limits on one address: see `RequestSender`.
            request.extensions_mut().insert(peer);
            // For an answer that takes long to come.
            request.extensions_mut().insert(Arc::clone(&counted));
            // Only mark the request: the route decides whether its operation may be shed. If one read contained several requests, the first
            // takes the wait.
            if app.overload.sheds(arrival.take_wait()) {
                request.extensions_mut().insert(ShedRequest);
            }
            async move {
                let (request, rest) = UnreadBody::split_body(request);
                let response = router.oneshot(request).await;
                let response = response.map_err(|never: Infallible| never)?;
                if let Some(rest) = rest {
                    rest.drain_in_background(&response, most_rest);
                }
                // Its work ends here. If the client does not take the answer, the connection counts as idle.
                drop(working);
                Ok::<_, Infallible>(response)
            }
        });
        let builder = builder();
        // No upgrades: no other protocol is supported, and an upgraded stream would escape the limits below.
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut draining = false;
        loop {
            tokio::select! {
                // A request that has arrived is read before its connection is considered idle, however late the runtime is.
                biased;
                // How a connection ended does not matter.
                _ = connection.as_mut() => return,
                _ = self.closed.changed(), if !draining => {
                    connection.as_mut().graceful_shutdown();
                    draining = true;
                }
                () = sleep_until(activity.idle_deadline(idle_timeout)) => {
                    // Check again: a request may have begun between the timer and this branch.
                    if activity.is_idle_for(idle_timeout) {
                        return;
                    }
                }
            }
        }
    }
}

/// Serves one connection over any stream, without a socket.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) async fn serve_stream(
    app: &Arc<AppState>,
    router: Router,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let slots = ConnectionSlots::new(1, 1);
    let peer = PeerAddress::of(std::net::SocketAddr::from(([127, 0, 0, 1], 1)));
    let Ok(slot) = slots.take(peer) else {
        return;
    };
    let (_closing, closed) = watch::channel(false);
    let stream = TimedStream::new(stream);
    let arrival = stream.arrival();
    let connection = ClientConnection {
        app: Arc::clone(app),
        router,
        closed,
        slot,
    };
    connection.serve(stream, arrival).await;
}

/// The body of a request, shared with its handler. The part that the handler leaves unread is read and discarded, up to a limit, because a
/// client that is still sending when the connection is closed never sees the answer.
#[derive(Clone)]
struct UnreadBody {
    body: Arc<Mutex<Option<Incoming>>>,
    /// True if the client waits for `100 Continue` before it sends the body.
    waits: bool,
}

impl UnreadBody {
    /// Splits a request into one that reads the shared body, and that body unless it is empty.
    fn split_body(request: hyper::Request<Incoming>) -> (hyper::Request<Body>, Option<Self>) {
        if request.body().is_end_stream() {
            return (request.map(Body::new), None);
        }
        let waits = request.headers().contains_key(EXPECT);
        let (parts, body) = request.into_parts();
        let body = Arc::new(Mutex::new(Some(body)));
        let rest = Self { body, waits };
        let request = hyper::Request::from_parts(parts, Body::new(rest.clone()));
        (request, Some(rest))
    }

    /// If the request was answered before its body was read, reads the rest in the background.
    fn drain_in_background(self, response: &Response<Body>, most: usize) {
        let body = lock(&self.body).take();
        let Some(body) = body.filter(|body| !body.is_end_stream()) else {
            return;
        };
        // Nothing to read from a client that still waits for `100 Continue`. A body that is too slow or too long is not read to its end,
        // and one with unclear framing, after which the connection is closed, has no known end.
        let is_too_long = body.size_hint().lower() > most as u64;
        let is_slow = response.status() == StatusCode::REQUEST_TIMEOUT;
        if self.waits || is_slow || is_too_long || response.headers().contains_key(CONNECTION) {
            return;
        }
        // If the connection were closed now, the system would answer further data with a reset, which may overtake the response (RFC 9112
        // section 9.6).
        tokio::spawn(timeout(REST_TIMEOUT, async move {
            let (mut body, mut left) = (body, most);
            while let Ok(Some(Ok(frame))) = timeout(REST_PAUSE, body.frame()).await {
                let length = frame.data_ref().map_or(0, bytes::Bytes::len);
                left = left.saturating_sub(length);
                if left == 0 {
                    return;
                }
            }
        }));
    }
}

impl hyper::body::Body for UnreadBody {
    type Data = bytes::Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match &mut *lock(&self.body) {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.body)
            .as_ref()
            .is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.body)
            .as_ref()
            .map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // [`ConnectionActivity`] detects heads that do not arrive, with one timer for each connection; hyper would set one for each request.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        // So a connection can make the service hold at most this many heads of this size (RFC 9113 section 10.5).
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD)
        .max_send_buf_size(BUFFER);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let text = refusal("connections", "too many connections");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
        let problem: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(problem["code"], "connections");
    }

    #[test]
    fn an_address_has_its_own_most_and_places_come_back() {
        let slots = ConnectionSlots::new(3, 2);
        let peer = |text: &str| PeerAddress::of(text.parse().expect("an address"));
        let (first, second) = (peer("192.0.2.1:1"), peer("192.0.2.2:1"));
        let held = [slots.take(first), slots.take(first)];
        let code = |peer| slots.take(peer).err().map(|(code, _)| code);
        assert_eq!(code(first), Some("address-connections"));
        let other = slots.take(second);
        assert_eq!(code(peer("192.0.2.3:1")), Some("connections"));
        drop((held, other));
        let taken = lock(&slots.taken);
        assert!(taken.all == 0 && taken.by_peer.is_empty());
    }

    #[test]
    fn a_site_of_ipv6_is_one_peer() {
        let peer = |text: &str| PeerAddress::of(text.parse().expect("an address"));
        assert_eq!(peer("[2001:db8::1]:1"), peer("[2001:db8::2:3]:2"));
        assert_ne!(peer("[2001:db8::1]:1"), peer("[2001:db8:0:1::1]:1"));
        assert_eq!(peer("[::ffff:192.0.2.1]:1"), peer("192.0.2.1:9"));
    }
}
