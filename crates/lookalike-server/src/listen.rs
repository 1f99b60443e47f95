//! Connections: how many, how long they may do nothing, and how they end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};
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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::ServiceExt as _;

use crate::app_state::AppState;
use crate::client::PeerAddress;
use crate::event_log::{LogEntry, LogLevel};
use crate::load_shedding::{ArrivalClock, ShedRequest, TimedStream};
use crate::sync::lock;
use crate::tls::ServerTls;

/// Buffer of a connection for heads and answers.
const BUFFER: usize = 64 << 10;
/// Requests that one HTTP/2 connection may have in progress.
const STREAMS: u32 = 64;
/// Bytes of the head of an HTTP/2 request.
const HEAD: u32 = 16 << 10;
/// Delay after a failed accept, for example without free file handles.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// Connections that the listener for health takes at a time.
pub const HEALTH_CONNECTIONS: usize = 64;
/// The rest of a body that nobody wants is read up to so many times the largest body.
const REST_BODIES: usize = 4;
/// Time limit on reading the rest, and on a pause in it.
const REST_TIMEOUT: Duration = Duration::from_secs(10);
const REST_PAUSE: Duration = Duration::from_secs(2);

/// Response to a connection beyond the limit.
fn refusal(code: &str, detail: &str) -> String {
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

/// Listeners of the service.
#[derive(Debug)]
pub struct ServiceListeners {
    /// For all operations.
    pub main: TcpListener,
    /// For `/healthz` and `/readyz` alone, without TLS and with connections of its own: nobody who crowds the other keeps these out.
    pub health: Option<TcpListener>,
}

/// Serves connections, secured if `tls` says with what, until `stop` is done, then lets requests in progress end for as long as [`ServiceLimits::drain`] says, or until
/// `force_shutdown` is done.
///
/// [`ServiceLimits::drain`]: crate::ServiceLimits::drain
pub async fn serve(
    listeners: ServiceListeners,
    app: &Arc<AppState>,
    tls: Option<&Arc<ServerTls>>,
    stop: impl Future<Output = ()>,
    force_shutdown: impl Future<Output = ()>,
) {
    let (closing, closed) = watch::channel(false);
    // The sender has to live: `changed` is ready, too, when there is none any more, and would end the
    // connections for health.
    let (_never, never_closed) = watch::channel(false);
    let most = ConnectionLimits {
        all: app.limits.connections,
        per_address: app.limits.address_connections,
    };
    let mut main = ConnectionAcceptor {
        listener: listeners.main,
        router: crate::route::router(app),
        tls: tls.map(Arc::clone),
        slots: ConnectionSlots::new(most),
        app: Arc::clone(app),
        closed,
        open: JoinSet::new(),
        is_main: true,
    };
    // It answers until all others have been answered: that the service is stopping, too.
    let health = listeners.health.map(|listener| ConnectionAcceptor {
        listener,
        router: crate::route::health_router(app),
        tls: None,
        slots: ConnectionSlots::new(ConnectionLimits {
            all: HEALTH_CONNECTIONS,
            per_address: HEALTH_CONNECTIONS,
        }),
        app: Arc::clone(app),
        closed: never_closed,
        open: JoinSet::new(),
        is_main: false,
    });
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
        // Before the drain: the system refuses whoever comes meanwhile, and nobody waits in its queue for an
        // answer that never comes.
        drop(listener);
        app.stop();
        // Nobody listens any more when all connections are gone.
        let _ = closing.send(true);
        // Each connection was told to finish: HTTP/1 closes after the answer that is under way, HTTP/2 sends
        // GOAWAY.
        let ended = async { while open.join_next().await.is_some() {} };
        tokio::select! {
            _ = timeout(app.limits.drain, ended) => {}
            () = force_shutdown => {}
        }
        open.shutdown().await;
    };
    tokio::select! {
        () = all => {}
        never = health => match never {},
    }
    app.metrics.connections.store(0, Relaxed);
}

/// Connections that are let in: all together, and those of one address.
#[derive(Clone, Copy)]
struct ConnectionLimits {
    all: usize,
    per_address: usize,
}

/// The connections that are open.
struct ConnectionSlots {
    most: ConnectionLimits,
    taken: Mutex<TakenSlots>,
}

#[derive(Default)]
struct TakenSlots {
    all: usize,
    by_peer: HashMap<PeerAddress, usize>,
}

/// The place of a connection; given back when it is dropped.
struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    peer: PeerAddress,
}

impl ConnectionSlots {
    fn new(most: ConnectionLimits) -> Arc<Self> {
        let taken = Mutex::default();
        Arc::new(Self { most, taken })
    }

    fn taken(&self) -> MutexGuard<'_, TakenSlots> {
        lock(&self.taken)
    }

    /// A place for a connection of a peer, or the code of why there is none, and what it says.
    fn take(
        self: &Arc<Self>,
        peer: PeerAddress,
    ) -> Result<ConnectionSlot, (&'static str, &'static str)> {
        let mut taken = self.taken();
        let of_peer = taken.by_peer.get(&peer).copied().unwrap_or_default();
        if taken.all >= self.most.all {
            return Err(("connections", "too many connections"));
        }
        if of_peer >= self.most.per_address {
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
        let mut taken = self.slots.taken();
        taken.all -= 1;
        if let Some(of_peer) = taken.by_peer.get_mut(&self.peer) {
            *of_peer -= 1;
            // Kept at zero, every address that ever came would stay in the map.
            if *of_peer == 0 {
                taken.by_peer.remove(&self.peer);
            }
        }
    }
}

/// Accepts connections of one listener.
struct ConnectionAcceptor {
    listener: TcpListener,
    router: Router,
    tls: Option<Arc<ServerTls>>,
    slots: Arc<ConnectionSlots>,
    app: Arc<AppState>,
    closed: watch::Receiver<bool>,
    open: JoinSet<()>,
    /// True if its connections count for the metrics.
    is_main: bool,
}

impl ConnectionAcceptor {
    /// Lets connections in for ever.
    async fn accept(&mut self) -> Infallible {
        loop {
            if self.is_main {
                self.app.metrics.connections.store(self.open.len(), Relaxed);
            }
            // The set keeps a task that ended until it is joined: all that ever were, otherwise.
            let accepted = tokio::select! {
                Some(_) = self.open.join_next(), if !self.open.is_empty() => continue,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                // Mostly EMFILE. The error comes back at once as long as a connection waits, so without a pause
                // this loop would take a core.
                Err(error) => {
                    let entry = LogEntry::new(LogLevel::Warn, "not-accepted");
                    let entry = entry.with("reason", error.to_string());
                    self.app.log.record(&entry);
                    // What could not be accepted stays in the queue, so that the listener is ready again at
                    // once.
                    sleep(ACCEPT_BACKOFF).await;
                }
                Ok((stream, address)) => self.let_in(stream, PeerAddress::of(address)),
            }
        }
    }

    fn let_in(&mut self, stream: TcpStream, peer: PeerAddress) {
        // Before the handshake: whoever is beyond his share is given none of its work.
        // Under one lock for both limits: a slot that counted in one and failed in the other would have to be
        // given back.
        let slot = match self.slots.take(peer) {
            Ok(slot) => slot,
            Err((code, detail)) => {
                self.app.metrics.refused(code);
                return refuse(stream, &refusal(code, detail));
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

/// Tells a connection to come again, if it can be told at once.
fn refuse(stream: TcpStream, refusal: &str) {
    if let Ok(mut stream) = stream.into_std() {
        // It does not block: what cannot be said is left unsaid.
        let _ = stream.write(refusal.as_bytes());
        // With a request unread the system would take back what was said.
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
        // Answers are small, and each is written at once.
        let _ = stream.set_nodelay(true);
        let stream = TimedStream::new(stream);
        let arrival = stream.arrival();
        let Some(tls) = tls else {
            return self.serve(stream, arrival).await;
        };
        let idle_timeout = self.app.limits.header_timeout;
        match timeout(idle_timeout, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream, arrival).await,
            // Plain HTTP, an unknown certificate, no version or cipher in common, nothing at all: who it was and why is
            // nobody's to log, but that there are many is to be seen.
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
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let (router, working) = (router.clone(), RequestInProgress::begin(&counted));
            request.extensions_mut().insert(peer);
            // Marked only: the route tells whether its operation may be shed. Of requests that came in one read
            // the first has its wait.
            if app.overload.sheds(arrival.take_wait()) {
                request.extensions_mut().insert(ShedRequest);
            }
            async move {
                let (request, rest) = UnreadBody::beside(request);
                let response = router.oneshot(request).await;
                let response = response.map_err(|never: Infallible| never)?;
                if let Some(rest) = rest {
                    rest.read_on(&response, most_rest);
                }
                // Its work ends here. An answer that is not taken leaves the connection idle.
                drop(working);
                Ok::<_, Infallible>(response)
            }
        });
        let builder = builder();
        // No upgrades: nothing here speaks another protocol, and an upgraded stream would leave all limits
        // below.
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut draining = false;
        loop {
            tokio::select! {
                // A request that has come is read before its connection is taken for an idle one, however late the runtime is.
                biased;
                // How a connection ended is its own affair.
                _ = connection.as_mut() => return,
                _ = self.closed.changed(), if !draining => {
                    connection.as_mut().graceful_shutdown();
                    draining = true;
                }
                () = sleep_until(activity.idle_deadline(idle_timeout)) => {
                    // Looked at again: a request may have begun between the timer and this branch.
                    if activity.is_idle_for(idle_timeout) {
                        return;
                    }
                }
            }
        }
    }
}

/// Serves one connection that needs no socket.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) async fn serve_stream(
    app: &Arc<AppState>,
    router: Router,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let slots = ConnectionSlots::new(ConnectionLimits {
        all: 1,
        per_address: 1,
    });
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

/// The body of a request, shared with whoever answers it. What he leaves of it is read, within bounds, and thrown away: a client that
/// is still sending when the connection is closed never sees the answer.
#[derive(Clone)]
struct UnreadBody {
    body: Arc<Mutex<Option<Incoming>>>,
    /// True if the client waits for `100 Continue` before it sends the body.
    waits: bool,
}

impl UnreadBody {
    /// A request with its body, and what may be left of it.
    fn beside(request: hyper::Request<Incoming>) -> (hyper::Request<Body>, Option<Self>) {
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

    fn body(&self) -> MutexGuard<'_, Option<Incoming>> {
        lock(&self.body)
    }

    /// Reads on in the background when a request was answered before its body was read.
    fn read_on(self, response: &Response<Body>, most: usize) {
        let body = self.body().take();
        let Some(body) = body.filter(|body| !body.is_end_stream()) else {
            return;
        };
        // One that waits to be told sends nothing, one that is too slow or too long not all, and what is told to close has no end that
        // is known.
        let is_too_long = body.size_hint().lower() > most as u64;
        let is_slow = response.status() == StatusCode::REQUEST_TIMEOUT;
        if self.waits || is_slow || is_too_long || response.headers().contains_key(CONNECTION) {
            return;
        }
        // A reset, with which the system answers what comes after a close, may overtake the response (RFC 9112
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
        match &mut *self.body() {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body().as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body()
            .as_ref()
            .map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // Heads that do not come are noticed by [`ConnectionActivity`], with one timer a connection; hyper would set one for each request.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        // One connection makes us hold at most so many heads of this size (RFC 9113 section 10.5).
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD)
        .max_send_buf_size(BUFFER);
    builder
}

/// State of a connection: idle, or with requests in progress. One on which no request is being worked on for longer than the idle timeout
/// is closed, whatever it does meanwhile: half a head, a head byte by byte, an answer that is not taken, nothing. As long as parts of an answer are
/// taken, it is not idle.
#[derive(Debug)]
struct ConnectionActivity {
    state: Mutex<ActivityState>,
    arrival: Arc<ArrivalClock>,
}

#[derive(Debug)]
struct ActivityState {
    in_progress: usize,
    since: Instant,
}

impl ConnectionActivity {
    fn new(arrival: Arc<ArrivalClock>) -> Self {
        Self {
            state: Mutex::new(ActivityState {
                in_progress: 0,
                since: Instant::now(),
            }),
            arrival,
        }
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        lock(&self.state)
    }

    /// The time since which nothing happens; none while a request is worked on.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        let taken = Instant::from_std(self.arrival.taken_at());
        (state.in_progress == 0).then(|| state.since.max(taken))
    }

    fn idle_deadline(&self, idle_timeout: Duration) -> Instant {
        // Only the next look, while a request is worked on.
        self.idle_since().unwrap_or_else(Instant::now) + idle_timeout
    }

    fn is_idle_for(&self, idle_timeout: Duration) -> bool {
        self.idle_since()
            .is_some_and(|since| since.elapsed() >= idle_timeout)
    }
}

/// A request that is being worked on.
struct RequestInProgress(Arc<ConnectionActivity>);

impl RequestInProgress {
    fn begin(activity: &Arc<ConnectionActivity>) -> Self {
        activity.state().in_progress += 1;
        Self(Arc::clone(activity))
    }
}

impl Drop for RequestInProgress {
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
        let text = refusal("connections", "too many connections");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
        let problem: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(problem["code"], "connections");
    }

    #[test]
    fn an_address_has_its_own_most_and_places_come_back() {
        let slots = ConnectionSlots::new(ConnectionLimits {
            all: 3,
            per_address: 2,
        });
        let peer = |text: &str| PeerAddress::of(text.parse().expect("an address"));
        let (first, second) = (peer("192.0.2.1:1"), peer("192.0.2.2:1"));
        let held = [slots.take(first), slots.take(first)];
        let code = |peer| slots.take(peer).err().map(|(code, _)| code);
        assert_eq!(code(first), Some("address-connections"));
        let other = slots.take(second);
        assert_eq!(code(peer("192.0.2.3:1")), Some("connections"));
        drop((held, other));
        let taken = slots.taken();
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
