//! Connections: how many, how long they may do nothing, and how they end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

use crate::app::App;
use crate::log::{Entry, Level};
use crate::overload::{Arrival, Shed, Timed};
use crate::tls::Tls;

/// Buffer of a connection for heads and answers.
const BUFFER: usize = 64 << 10;
/// Requests that one HTTP/2 connection may have in progress.
const STREAMS: u32 = 64;
/// Bytes of the head of an HTTP/2 request.
const HEAD: u32 = 16 << 10;
/// How long to wait when the system has no connection to give, for want of files for example.
const BREATH: Duration = Duration::from_millis(50);

/// Connections that the listener for health takes at a time.
pub const HEALTH_CONNECTIONS: usize = 64;
/// The rest of a body that nobody wants is read up to so many times the largest body.
const REST_BODIES: usize = 4;
/// How long that may take, and how long nothing may come meanwhile.
const REST_TIMEOUT: Duration = Duration::from_secs(10);
const REST_PAUSE: Duration = Duration::from_secs(2);

/// What a connection beyond the most gets.
fn refusal(code: &str, detail: &str) -> String {
    let body = format!(
        "{{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\"code\":\"{code}\",\
         \"detail\":\"{detail}\",\"remedy\":\"come again\"}}\n"
    );
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\
         Content-Type: application/problem+json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Where a connection comes from, as an extension of its requests: an address, or of IPv6 the network of one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peer(pub(crate) IpAddr);

impl Peer {
    fn of(address: SocketAddr) -> Self {
        Self(match address.ip().to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        })
    }
}

/// Where the service listens.
#[derive(Debug)]
pub struct Listeners {
    /// For all operations.
    pub main: TcpListener,
    /// For `/healthz` and `/readyz` alone, without TLS and with connections of its own: nobody who crowds the other keeps these out.
    pub health: Option<TcpListener>,
}

/// Serves connections, secured if `tls` says with what, until `stop` is done, then lets requests in progress end for as long as [`Limits::drain`] says, or until
/// `hurry` is done.
///
/// [`Limits::drain`]: crate::Limits::drain
pub async fn serve(
    listeners: Listeners,
    app: &Arc<App>,
    tls: Option<&Arc<Tls>>,
    stop: impl Future<Output = ()>,
    hurry: impl Future<Output = ()>,
) {
    let (closing, closed) = watch::channel(false);
    let (_never, never_closed) = watch::channel(false);
    let most = Most {
        all: app.limits.connections,
        per_address: app.limits.address_connections,
    };
    let mut main = Door {
        listener: listeners.main,
        router: crate::route::app(app),
        tls: tls.map(Arc::clone),
        places: Places::new(most),
        app: Arc::clone(app),
        closed,
        open: JoinSet::new(),
        is_main: true,
    };
    // It answers until all others have been answered: that the service is stopping, too.
    let health = listeners.health.map(|listener| Door {
        listener,
        router: crate::route::health(app),
        tls: None,
        places: Places::new(Most {
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
        let Door {
            listener, mut open, ..
        } = main;
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
    };
    tokio::select! {
        () = all => {}
        never = health => match never {},
    }
    app.metrics.connections.store(0, Relaxed);
}

/// Connections that are let in: all together, and those of one address.
#[derive(Clone, Copy)]
struct Most {
    all: usize,
    per_address: usize,
}

/// Who is in.
struct Places {
    most: Most,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_peer: HashMap<Peer, usize>,
}

/// The place of a connection; given back when it is dropped.
struct Place {
    places: Arc<Places>,
    peer: Peer,
}

impl Places {
    fn new(most: Most) -> Arc<Self> {
        let taken = Mutex::default();
        Arc::new(Self { most, taken })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection of a peer, or the code of why there is none, and what it says.
    fn take(self: &Arc<Self>, peer: Peer) -> Result<Place, (&'static str, &'static str)> {
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
        Ok(Place {
            places: Arc::clone(self),
            peer,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= 1;
        if let Some(of_peer) = taken.by_peer.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                taken.by_peer.remove(&self.peer);
            }
        }
    }
}

/// Where connections come in.
struct Door {
    listener: TcpListener,
    router: Router,
    tls: Option<Arc<Tls>>,
    places: Arc<Places>,
    app: Arc<App>,
    closed: watch::Receiver<bool>,
    open: JoinSet<()>,
    /// Whether its connections are those that are counted.
    is_main: bool,
}

impl Door {
    /// Lets connections in for ever.
    async fn accept(&mut self) -> Infallible {
        loop {
            if self.is_main {
                self.app.metrics.connections.store(self.open.len(), Relaxed);
            }
            let accepted = tokio::select! {
                Some(_) = self.open.join_next(), if !self.open.is_empty() => continue,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Err(error) => {
                    let entry = Entry::new(Level::Warn, "not-accepted");
                    let entry = entry.with("reason", error.to_string());
                    self.app.log.say(&entry);
                    sleep(BREATH).await;
                }
                Ok((stream, address)) => self.let_in(stream, Peer::of(address)),
            }
        }
    }

    fn let_in(&mut self, stream: TcpStream, peer: Peer) {
        let place = match self.places.take(peer) {
            Ok(place) => place,
            Err((code, detail)) => {
                self.app.metrics.refused(code);
                return refuse(stream, &refusal(code, detail));
            }
        };
        let connection = Connection {
            app: Arc::clone(&self.app),
            router: self.router.clone(),
            closed: self.closed.clone(),
            place,
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

/// What serves one connection.
struct Connection {
    app: Arc<App>,
    router: Router,
    closed: watch::Receiver<bool>,
    place: Place,
}

impl Connection {
    async fn begin(self, stream: TcpStream, tls: Option<Arc<Tls>>) {
        // Answers are small, and each is written at once.
        let _ = stream.set_nodelay(true);
        let stream = Timed::new(stream);
        let arrival = stream.arrival();
        let Some(tls) = tls else {
            return self.serve(stream, arrival).await;
        };
        let patience = self.app.limits.header_timeout;
        match timeout(patience, tls.acceptor().accept(stream)).await {
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
        arrival: Arc<Arrival>,
    ) {
        let patience = self.app.limits.header_timeout;
        let activity = Arc::new(Activity::default());
        let counted = Arc::clone(&activity);
        let router = self.router.clone();
        let (peer, app) = (self.place.peer, Arc::clone(&self.app));
        let most_rest = self.app.limits.body_bytes.saturating_mul(REST_BODIES);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let (router, working) = (router.clone(), Working::begin(&counted));
            request.extensions_mut().insert(peer);
            if app.overload.sheds(arrival.take_wait()) {
                request.extensions_mut().insert(Shed);
            }
            async move {
                let (request, rest) = Rest::beside(request);
                let response = router.oneshot(request).await;
                let response = response.map_err(|never: Infallible| never)?;
                if let Some(rest) = rest {
                    rest.read_on(&response, most_rest);
                }
                let watched = working.follow(response);
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

/// The body of a request, shared with whoever answers it. What he leaves of it is read, within bounds, and thrown away: a client that
/// is still sending when the connection is closed never sees the answer.
#[derive(Clone)]
struct Rest {
    body: Arc<Mutex<Option<Incoming>>>,
    /// Whether the client waits to be told before it sends the body.
    waits: bool,
}

impl Rest {
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
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
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

impl hyper::body::Body for Rest {
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
        let text = refusal("connections", "too many connections");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
        let problem: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(problem["code"], "connections");
    }

    #[test]
    fn an_address_has_its_own_most_and_places_come_back() {
        let places = Places::new(Most {
            all: 3,
            per_address: 2,
        });
        let peer = |text: &str| Peer::of(text.parse().expect("an address"));
        let (first, second) = (peer("192.0.2.1:1"), peer("192.0.2.2:1"));
        let held = [places.take(first), places.take(first)];
        let code = |peer| places.take(peer).err().map(|(code, _)| code);
        assert_eq!(code(first), Some("address-connections"));
        let other = places.take(second);
        assert_eq!(code(peer("192.0.2.3:1")), Some("connections"));
        drop((held, other));
        let taken = places.taken();
        assert!(taken.all == 0 && taken.by_peer.is_empty());
    }

    #[test]
    fn a_site_of_ipv6_is_one_peer() {
        let peer = |text: &str| Peer::of(text.parse().expect("an address"));
        assert_eq!(peer("[2001:db8::1]:1"), peer("[2001:db8::2:3]:2"));
        assert_ne!(peer("[2001:db8::1]:1"), peer("[2001:db8:0:1::1]:1"));
        assert_eq!(peer("[::ffff:192.0.2.1]:1"), peer("192.0.2.1:9"));
    }
}
