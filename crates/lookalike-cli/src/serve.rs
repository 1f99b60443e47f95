//! `lookalike serve`: the online service.

mod io_failure;
mod keys;
mod log;
mod signals;

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use lookalike_hamming::threads::ensure_startable;
use lookalike_server::{
    AppState, ConfigError, EventLog, LogEntry, LogLevel, ServerTls, ServiceConfig, ServiceLimits,
    ServiceListeners, TlsError, WallClock, check_address,
};
use lookalike_store::{Store, StoreError, StoreId, StoreOptions};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use self::io_failure::{failed, refused_thread};
use self::log::LogQueue;
use self::signals::Signals;
use crate::console::counted;
use crate::failure::Failure;
use crate::store::{refuse_nested, refuse_within};
use crate::{machine, open_files, size, store};

/// Examples for `-h`.
const SHORT_EXAMPLES: &str = "\
Examples:
  lookalike serve --data store                       on 127.0.0.1:7280, for this machine
  lookalike serve --keys keys --make-key admin:me    print a new key, its hash goes to keys

--help lists all options.";

/// Examples for `--help`.
const EXAMPLES: &str = "\
Examples:
  lookalike serve --data store                       on 127.0.0.1:7280, for this machine
  lookalike serve --keys keys --make-key admin:me    print a new key, its hash goes to keys
  lookalike serve --config lookalike.toml            the same flags from a file
  lookalike serve --data store --listen 0.0.0.0:7280 --keys keys --tls-cert chain.pem \\
                  --tls-key key.pem                  for other machines

  curl -X PUT localhost:7280/v1/collections/pages -H 'Content-Type: application/json' \\
       -d '{}'
  curl localhost:7280/v1/collections/pages/check-and-insert \\
       -H 'Content-Type: application/json' \\
       -d '{\"id\":\"http://a.example/\",\"html\":\"<p>...\"}'

http://localhost:7280/ in a browser lists all operations and lets you try them. Flags with
[env: ..] can also be set in the environment. SIGHUP reloads the files of keys and of TLS.
The pages \"The HTTP interface\" and \"Operate the service\" of the book explain them.";

#[derive(clap::Args)]
#[command(after_help = SHORT_EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct ServeArguments {
    /// TOML file with these flags, without the dashes: max-body = "8M". The environment overrides it, flags override both
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_CONFIG")]
    config: Option<PathBuf>,

    /// Data directory; created if missing
    #[arg(long, value_name = "DIR", env = "LOOKALIKE_DATA")]
    data: Option<PathBuf>,

    /// Refuse to create a store: the directory must hold one already
    #[arg(long, env = "LOOKALIKE_REQUIRE_EXISTING")]
    require_existing: bool,

    /// Refuse to open any store but this one; `lookalike store info DIR` shows the identity
    #[arg(
        long,
        hide_short_help = true,
        value_name = "IDENTITY",
        env = "LOOKALIKE_STORE_ID"
    )]
    store_id: Option<StoreId>,

    /// Directory for snapshots that clients request, best on the file system of the data; without it they cannot make any
    #[arg(long, value_name = "DIR", env = "LOOKALIKE_SNAPSHOTS")]
    snapshots: Option<PathBuf>,

    /// Address to listen on; one that other machines can reach requires --keys
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "LOOKALIKE_LISTEN",
        default_value = "127.0.0.1:7280",
        value_parser = socket_address
    )]
    listen: SocketAddr,

    /// Extra address for /healthz and /readyz only, without TLS and outside --max-connections
    #[arg(long, value_name = "ADDRESS:PORT", env = "LOOKALIKE_HEALTH_LISTEN", value_parser = socket_address)]
    health_listen: Option<SocketAddr>,

    /// File with the hashes of API keys, one per line; without it, anyone who can reach the address may do everything
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_KEYS")]
    keys: Option<PathBuf>,

    /// Make a key with the role read, write or admin: print it once, and append its hash to --keys
    ///
    /// The key is valid for all collections, or only for those named.
    #[arg(long, value_name = "ROLE:NAME[:COLLECTION,...]")]
    make_key: Option<String>,

    /// TLS certificate chain in PEM, the certificate of the service first
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_TLS_CERT")]
    tls_cert: Option<PathBuf>,

    /// Private key of the first certificate, in PEM
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_TLS_KEY")]
    tls_key: Option<PathBuf>,

    /// Trust the system clock even if it is more than an hour ahead of the newest record, as after a long stop
    #[arg(long, hide_short_help = true, env = "LOOKALIKE_TRUST_CLOCK")]
    trust_clock: bool,

    /// Number of threads that extract, hash and search; as many again serve connections [default: number of processors]
    #[arg(long, value_name = "N", env = "LOOKALIKE_THREADS", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Maximum size of a request body
    #[arg(long, value_name = "SIZE", env = "LOOKALIKE_MAX_BODY", default_value = "8M", value_parser = size::parse, help_heading = "Limits")]
    max_body: u64,

    /// Maximum number of items in a batch
    #[arg(long, value_name = "N", env = "LOOKALIKE_MAX_BATCH", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Limits")]
    max_batch: u32,

    /// Maximum number of connections; allow a few hundred more open files (ulimit -n)
    #[arg(long, value_name = "N", env = "LOOKALIKE_MAX_CONNECTIONS", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    max_connections: u32,

    /// Maximum number of connections from one address, or from one /64 of IPv6; behind a proxy, set it to --max-connections
    /// [default: half of that]
    #[arg(long, hide_short_help = true, value_name = "N", env = "LOOKALIKE_MAX_ADDRESS_CONNECTIONS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    max_address_connections: Option<u32>,

    /// Maximum number of collections
    #[arg(long, hide_short_help = true, value_name = "N", env = "LOOKALIKE_MAX_COLLECTIONS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    max_collections: u32,

    /// Memory for all requests in progress; incomplete bodies of one key, or of one address without keys, get at most half of their part
    #[arg(long, value_name = "SIZE", env = "LOOKALIKE_REQUEST_MEMORY", default_value = "256M", value_parser = size::parse, help_heading = "Limits")]
    request_memory: u64,

    /// Time limit for the headers of a request, and for an idle connection
    #[arg(long, hide_short_help = true, value_name = "SECONDS", env = "LOOKALIKE_HEADER_TIMEOUT", default_value = "10", value_parser = seconds, help_heading = "Limits")]
    header_timeout: Duration,

    /// Time limit for the body of a request
    #[arg(long, hide_short_help = true, value_name = "SECONDS", env = "LOOKALIKE_BODY_TIMEOUT", default_value = "30", value_parser = seconds, help_heading = "Limits")]
    body_timeout: Duration,

    /// Minimum rate of the body of a request in bytes per second, measured over 5 seconds
    #[arg(long, hide_short_help = true, value_name = "SIZE", env = "LOOKALIKE_MIN_BODY_RATE", default_value = "1K", value_parser = size::parse, help_heading = "Limits")]
    min_body_rate: u64,

    /// Maximum time that a request waits for memory and for a thread; then it gets 503 with `Retry-After`
    #[arg(long, value_name = "SECONDS", env = "LOOKALIKE_QUEUE_TIMEOUT", default_value = "1", value_parser = seconds, help_heading = "Limits")]
    queue_timeout: Duration,

    /// Maximum time that a thread spends on one request to `query`, `rerank`, `paragraphs` or `get`; then it gets 413
    #[arg(long, hide_short_help = true, value_name = "SECONDS", env = "LOOKALIKE_WORK_TIMEOUT", default_value = "10", value_parser = seconds, help_heading = "Limits")]
    work_timeout: Duration,

    /// Time limit for requests in progress after SIGTERM or SIGINT; a second signal ends the service at once
    #[arg(long, hide_short_help = true, value_name = "SECONDS", env = "LOOKALIKE_DRAIN", default_value = "10", value_parser = seconds, help_heading = "Limits")]
    drain: Duration,

    /// Level of the log on standard error, one JSON object per line: error, warn, info, or debug (every request)
    #[arg(
        long,
        value_name = "LEVEL",
        env = "LOOKALIKE_LOG",
        default_value = "info",
        value_parser = PossibleValuesParser::new(["error", "warn", "info", "debug"])
            .try_map(|level| level.parse::<LogLevel>())
    )]
    log: LogLevel,

    /// Print the configuration from flags, environment and file as JSON, and exit
    #[arg(long, hide_short_help = true)]
    print_config: bool,
}

/// Parses a number of seconds, above 0 and up to a day.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    const DAY: f64 = 86_400.0;
    match text.parse() {
        // The comparisons also refuse NaN, on which the conversion would panic.
        Ok(seconds) if seconds > 0.0 && seconds <= DAY => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!(
            "{text:?} is not a duration: write seconds above 0 and up to {DAY}, for example 0.5"
        )),
    }
}

fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let wrong = "write an IP address and a port, for example 127.0.0.1:7280 or [::1]:7280";
    text.parse().map_err(|_| wrong.to_owned())
}

pub(crate) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    if let Some(wanted) = &arguments.make_key {
        // clap's `requires` does not see a default, and a value in the file of --config is one.
        let missing = "the file of the keys is missing: give --keys FILE, LOOKALIKE_KEYS, or keys in the file of --config";
        let file = arguments.keys.as_deref();
        return keys::make(
            wanted,
            file.ok_or_else(|| Failure::Usage(missing.to_owned()))?,
        );
    }
    // Read the files of keys and certificates first: an error in one must not be noticed only after opening a store for hours.
    let keys = keys::read(arguments.keys.as_deref())?;
    let limits = arguments.limits();
    let pem = arguments.pem()?;
    // Before the store is opened: a service that is open to the network must not exist even for a moment.
    check_address(arguments.listen, &keys).map_err(exposed_address_failure)?;
    if arguments.print_config {
        return print_config(arguments, &limits, keys.len());
    }
    let data = arguments.data.as_deref().ok_or_else(|| {
        Failure::Usage(
            "the directory of the data is missing: give --data DIR, LOOKALIKE_DATA, or data in the file of --config"
                .to_owned(),
        )
    })?;
    // Before anything is created in the wrong place.
    refuse_nested(data)?;
    if let Some(folder) = &arguments.snapshots {
        refuse_within(data, folder)?;
    }
    let tls = pem.map(tls).transpose()?;
    // A separate thread writes the log, so that a full pipe on standard error does not delay requests.
    let queue = LogQueue::start().map_err(refused_thread)?;
    let log = arguments.log(&queue);
    // Before threads start. From here on, every panic is a line of the log.
    log_panics(&log);
    if keys.are_required() && keys.is_empty() {
        log.record(&no_keys_entry());
    }
    // Canonical, because `::ffff:127.0.0.1` is this machine, too.
    if tls.is_none() && !arguments.listen.ip().to_canonical().is_loopback() {
        let entry = LogEntry::new(LogLevel::Warn, "no-tls");
        let remedy =
            "keys can be intercepted: give --tls-cert and --tls-key, or put a TLS proxy in front";
        log.record(&entry.with("remedy", remedy));
    }
    let (connections, health) = (limits.connections, arguments.health_connections());
    // Checked twice: first without the store, since opening it needs files, too, and may take long.
    open_files::ensure_enough(connections, health, 0)?;
    let runtime = runtime(&limits).map_err(refused_thread)?;
    let options = StoreOptions::default()
        .create(!arguments.require_existing)
        .identity(arguments.store_id);
    let store = Store::open(data, options).map_err(open_failure)?;
    let collections = store.collections().len();
    let entry =
        LogEntry::new(LogLevel::Info, "store").with("identity", store.identity().to_string());
    log.record(&entry.with("collections", collections));
    open_files::ensure_enough(connections, health, collections)?;
    if let Some(folder) = &arguments.snapshots {
        private_folder(folder).map_err(failed(folder.display()))?;
    }
    let clock: WallClock = Arc::new(crate::store::now);
    let config = ServiceConfig::new(clock, log.clone())
        .keys(keys)
        .limits(limits)
        .trust_clock(arguments.trust_clock)
        .snapshots(arguments.snapshots.clone());
    let app = AppState::new(store, config).map_err(refused_thread)?;
    // Shared: a reload replaces the certificates while it is used for connections.
    let tls = tls.map(Arc::new);
    let served = serve(&runtime, arguments, Arc::new(app), tls, &log, &queue);
    // Does not wait for blocking tasks: the store is already closed, or closing it was given up.
    runtime.shutdown_background();
    queue.flush(LOG_FLUSH_TIMEOUT);
    served
}

/// Starts the threads that wait for the network, as many as those that search.
fn runtime(limits: &ServiceLimits) -> std::io::Result<Runtime> {
    // First, because tokio panics without its first thread, and leaves work waiting for ever without another.
    ensure_startable(2 * limits.workers)?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(limits.workers)
        .enable_all()
        .build()
}

/// Time limit for writing the last lines of the log.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit for closing the store after a second signal.
const FORCED_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the log entry for a file without keys, from which all were revoked.
fn no_keys_entry() -> LogEntry {
    let remedy = "nobody has access: add a key with --make-key ROLE:NAME and send SIGHUP";
    LogEntry::new(LogLevel::Warn, "no-keys").with("remedy", remedy)
}

/// Creates a folder that only its owner can read, and its parents.
fn private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

/// Number of connections that the system completes before they are accepted, if its own limit allows. A client beyond that believes that it is
/// connected, and retransmits for ten seconds or more.
const ACCEPT_BACKLOG: u32 = 4096;

/// Serves until a signal, then closes the store.
fn serve(
    runtime: &Runtime,
    arguments: &ServeArguments,
    app: Arc<AppState>,
    tls: Option<Arc<ServerTls>>,
    log: &EventLog,
    queue: &LogQueue,
) -> Result<(), Failure> {
    runtime.block_on(async {
        let address = arguments.listen;
        // Open all sockets before the first request: a wrong second address must not be noticed while clients are already served.
        let main = listen(address, "--listen")?;
        let health = arguments.health_listen;
        let health = health.map(|address| listen(address, "--health-listen"));
        let health = health.transpose()?;
        // The actual address: if the port was 0, the system chose one.
        let address = main.local_addr().map_err(failed(address))?;
        // Handlers are set before the service reports that it listens: a program that waits for that line may send a signal at once.
        let mut signals = Signals::new().map_err(failed("signals"))?;
        let mut hangups = signal(SignalKind::hangup()).map_err(failed("signals"))?;
        let entry = LogEntry::new(LogLevel::Info, "listening").with("address", address.to_string());
        let entry = entry.with("tls", tls.is_some());
        let health_address = health
            .as_ref()
            .and_then(|listener| listener.local_addr().ok());
        let entry = match health_address {
            Some(address) => entry.with("health_address", address.to_string()),
            None => entry,
        };
        let listeners = ServiceListeners { main, health };
        log.record(&entry.with("version", env!("CARGO_PKG_VERSION")));
        let (force_shutdown, forced) = tokio::sync::oneshot::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (watching, lines) = (log.clone(), queue.clone());
        // A separate task, because the one that serves may be waiting for requests when the second signal arrives.
        tokio::spawn(async move {
            let signal = signals.next().await;
            watching.record(&LogEntry::new(LogLevel::Info, "stopping").with("signal", signal));
            // The receiver is gone if the service has ended otherwise.
            let _ = stop.send(());
            signals.next().await;
            let _ = force_shutdown.send(());
            // Closing the store may wait for a merge that takes hours; acknowledged writes are safe without it.
            tokio::select! {
                () = tokio::time::sleep(FORCED_CLOSE_TIMEOUT) => {}
                _ = signals.next() => {}
            }
            exit_now(&watching, &lines);
        });
        // In either case: if the watching task is gone, the service must end as well.
        let first = async { drop(stopped.await) };
        let second = async move {
            // A dropped sender means that no second signal came.
            if forced.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let reloading = async {
            while hangups.recv().await.is_some() {
                arguments.reload(&app, tls.as_deref(), log);
            }
            // No more signals can arrive, which must not end the service.
            std::future::pending::<Infallible>().await
        };
        // A task of its own, because the other reads files, and meanwhile no connection would be accepted.
        let (served, secured) = (Arc::clone(&app), tls.clone());
        let serving = tokio::spawn(async move {
            lookalike_server::serve(listeners, &served, secured.as_ref(), first, second).await
        });
        let ended = tokio::select! {
            // The other never completes; it is dropped when this one does, at its next await.
            ended = serving => ended,
            never = reloading => match never {},
        };
        let cut_off = ended.map_err(|error| Failure::Failed(format!("connections: {error}")))?;
        if !app.close().await.map_err(store::failed)? {
            return Err(Failure::Failed(format!(
                "requests in progress did not end within {} s, so the store was left as after a crash: nothing that was acknowledged is lost",
                arguments.drain.as_secs_f64()
            )));
        }
        log.record(&LogEntry::new(LogLevel::Info, "stopped"));
        match cut_off {
            0 => Ok(()),
            _ => Err(Failure::Failed(format!(
                "{} cut off before the end of a request; the store is closed, and nothing that was acknowledged is lost",
                counted(cut_off as u64, "connection")
            ))),
        }
    })
}

fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    let listener = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A restarted service then gets its port at once.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(ACCEPT_BACKLOG)
    };
    listener().map_err(failed(format!(
        "{address}: cannot listen on this address; choose another with {flag}"
    )))
}

/// Ends the process without closing the store, as a crash would.
#[expect(
    clippy::exit,
    reason = "threads that close the store cannot be stopped in another way"
)]
fn exit_now(log: &EventLog, lines: &LogQueue) {
    log.record(
        &LogEntry::new(LogLevel::Warn, "not-closed")
            .with("remedy", "nothing that was acknowledged is lost"),
    );
    lines.flush(LOG_FLUSH_TIMEOUT);
    std::process::exit(1);
}

/// Returns the failure for an address that other machines can reach without a key.
fn exposed_address_failure(error: ConfigError) -> Failure {
    Failure::Usage(format!(
        "{error}: listen on 127.0.0.1, or make a key with `lookalike serve --keys FILE --make-key admin:NAME` and start with --keys FILE"
    ))
}

/// Returns the failure to open the store, with a remedy.
fn open_failure(error: StoreError) -> Failure {
    let remedy = match error {
        StoreError::NoStore { .. } => {
            "; check that the volume is mounted, or start without --require-existing and --store-id to create an empty store"
        }
        StoreError::Io { .. } => "; check that the directory of --data can be read and written",
        _ => "",
    };
    Failure::Failed(format!("{error}{remedy}"))
}

/// Logs only the location of panics, because their messages may quote texts.
fn log_panics(log: &EventLog) {
    let log = log.clone();
    std::panic::set_hook(Box::new(move |panic| {
        if lookalike_corpus::panic_is_handled() {
            return;
        }
        // Only the place: the message of a panic may contain a text or an id, which the log never does.
        let place = panic.location().map(ToString::to_string);
        let thread = std::thread::current()
            .name()
            .unwrap_or("unnamed")
            .to_owned();
        let entry = LogEntry::new(LogLevel::Error, "panic").with("thread", thread);
        log.record(&entry.with("at", place.unwrap_or_default()));
    }));
}

/// A certificate chain, and the key of the first certificate.
struct PemFiles {
    chain: Vec<u8>,
    key: Vec<u8>,
}

fn unusable(error: TlsError) -> Failure {
    Failure::Failed(format!("--tls-cert, --tls-key: {error}"))
}

/// Creates the TLS configuration of connections.
fn tls(pem: PemFiles) -> Result<ServerTls, Failure> {
    ServerTls::new(&pem.chain, &pem.key).map_err(unusable)
}

impl ServeArguments {
    /// Reads the certificates and their key. Only one of the two is an error, wherever it is set.
    fn pem(&self) -> Result<Option<PemFiles>, Failure> {
        let half = |set: &str, missing: &str, what: &str| {
            Err(Failure::Usage(format!(
                "{set} is set without {missing}, so there would be no TLS: give {what} with --{missing}, LOOKALIKE_{} or {missing} in the file of --config, or leave out both",
                missing.replace('-', "_").to_uppercase()
            )))
        };
        let (chain, key) = match (&self.tls_cert, &self.tls_key) {
            (None, None) => return Ok(None),
            (Some(chain), Some(key)) => (chain, key),
            (Some(_), None) => return half("tls-cert", "tls-key", "its private key"),
            (None, Some(_)) => return half("tls-key", "tls-cert", "its certificate"),
        };
        let read = |path: &Path| std::fs::read(path).map_err(failed(path.display()));
        let (chain, key) = (read(chain)?, read(key)?);
        Ok(Some(PemFiles { chain, key }))
    }

    /// Reads the files of keys and TLS again. An error in one of them leaves its old contents in effect, but does not hold back a change of the
    /// other.
    fn reload(&self, app: &AppState, tls: Option<&ServerTls>, log: &EventLog) {
        // Both are tried before either result is logged, because the flag for monitoring covers both.
        let keys = self.reload_keys(app);
        let tls = tls.map_or(Ok(()), |tls| self.reload_tls(tls));
        app.set_reload_failed(keys.is_err() || tls.is_err());
        let part = |part: &str, failure: Failure| {
            let entry = LogEntry::new(LogLevel::Error, "not-reloaded").with("part", part);
            log.record(&entry.with("reason", failure.to_string()));
        };
        match keys {
            Ok(keys) => {
                log.record(&LogEntry::new(LogLevel::Info, "reloaded").with("keys", keys));
                if keys == Some(0) {
                    log.record(&no_keys_entry());
                }
            }
            Err(failure) => part("keys", failure),
        }
        if let Err(failure) = tls {
            part("tls", failure);
        }
    }

    /// Reloads the keys. Returns their number, or `None` if no keys are required.
    fn reload_keys(&self, app: &AppState) -> Result<Option<usize>, Failure> {
        let keys = keys::read(self.keys.as_deref())?;
        let count = keys.are_required().then_some(keys.len());
        app.set_keys(keys);
        Ok(count)
    }

    fn reload_tls(&self, tls: &ServerTls) -> Result<(), Failure> {
        match self.pem()? {
            Some(PemFiles { chain, key }) => tls.replace(&chain, &key).map_err(unusable),
            None => Ok(()),
        }
    }

    /// Returns the number of connections that --health-listen accepts.
    fn health_connections(&self) -> usize {
        self.health_listen
            .map_or(0, |_| lookalike_server::HEALTH_CONNECTIONS)
    }

    fn limits(&self) -> ServiceLimits {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        // A single address cannot take all connections from the others.
        let half = self.max_connections.div_ceil(2);
        let threads = self.threads.map_or_else(machine::processors, usize::from);
        ServiceLimits::default()
            .body_bytes(size(self.max_body))
            .batch(self.max_batch as usize)
            .connections(self.max_connections as usize)
            .address_connections(self.max_address_connections.unwrap_or(half) as usize)
            .header_timeout(self.header_timeout)
            .body_timeout(self.body_timeout)
            .body_rate(size(self.min_body_rate))
            .queue_timeout(self.queue_timeout)
            .work_timeout(self.work_timeout)
            .drain(self.drain)
            .request_memory(size(self.request_memory))
            .workers(threads)
            .collections(self.max_collections as usize)
    }

    fn log(&self, queue: &LogQueue) -> EventLog {
        let queue = queue.clone();
        EventLog::new(self.log, move |entry| queue.push(entry))
    }
}

fn print_config(
    arguments: &ServeArguments,
    limits: &ServiceLimits,
    keys: usize,
) -> Result<(), Failure> {
    // JSON has no place for bytes that are not UTF-8.
    let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let config = serde_json::json!({
        "config": shown(&arguments.config),
        "data": shown(&arguments.data),
        "require-existing": arguments.require_existing,
        "store-id": arguments.store_id.map(|id| id.to_string()),
        "snapshots": shown(&arguments.snapshots),
        "tls-cert": shown(&arguments.tls_cert),
        "tls-key": shown(&arguments.tls_key),
        "trust-clock": arguments.trust_clock,
        "listen": arguments.listen,
        "health-listen": arguments.health_listen,
        "keys": shown(&arguments.keys),
        "number-of-keys": keys,
        "threads": limits.workers,
        "max-body": limits.body_bytes,
        "max-batch": limits.batch,
        "max-connections": limits.connections,
        "max-address-connections": limits.address_connections,
        "max-collections": limits.collections,
        "request-memory": limits.request_memory,
        "header-timeout": limits.header_timeout.as_secs_f64(),
        "min-body-rate": limits.body_rate,
        "body-timeout": limits.body_timeout.as_secs_f64(),
        "queue-timeout": limits.queue_timeout.as_secs_f64(),
        "work-timeout": limits.work_timeout.as_secs_f64(),
        "drain": limits.drain.as_secs_f64(),
        "log": arguments.log.to_string(),
    });
    writeln!(std::io::stdout(), "{config:#}")?;
    Ok(())
}
