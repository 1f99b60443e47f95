//! `lookalike serve`: the online service.

mod keys;
mod log;
mod signals;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lookalike_server::{
    App, Clock, Entry, Level, Limits, Listeners, Log, Setup, Tls, TlsError, check_address,
};
use lookalike_store::{OpenOptions as StoreOptions, Store, StoreError, StoreId};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use self::log::LogQueue;
use self::signals::{Hangups, Signals};
use crate::failure::Failure;
use crate::{machine, open_files, size};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  lookalike serve --data store                                   on 127.0.0.1:7280, for this machine
  lookalike serve --keys keys --make-key admin:me                prints a new key once, and adds its hash to the file
  lookalike serve --data store --listen 0.0.0.0:7280 --keys keys --tls-cert chain.pem --tls-key key.pem   for others
  lookalike serve --config lookalike.toml                        the same flags from a file: data = \"store\" ...

  curl -X PUT localhost:7280/v1/collections/pages -H 'Content-Type: application/json' -d '{}'
  curl localhost:7280/v1/collections/pages/check-and-insert -H 'Content-Type: application/json' \\
       -d '{\"id\":\"http://a.example/\",\"html\":\"<p>...\"}'

http://localhost:7280/ in a browser shows all operations, to be tried. Every flag can be given in the environment, too.
SIGHUP reads the files of keys and of TLS again. docs/how-to/operations.md describes the operations, monitoring and backup.")]
pub(crate) struct Arguments {
    /// TOML file of these flags, without the dashes: max-body = "8M". The environment wins over it, and flags over both
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_CONFIG")]
    config: Option<PathBuf>,

    /// Directory of the data; made when there is none
    #[arg(long, value_name = "DIR", env = "LOOKALIKE_DATA")]
    data: Option<PathBuf>,

    /// Refuse to start with a new store: the directory must hold one already
    #[arg(long, env = "LOOKALIKE_REQUIRE_EXISTING")]
    require_existing: bool,

    /// Refuse to start with another store than this one; `lookalike store info DIR` shows the identity
    #[arg(long, value_name = "IDENTITY", env = "LOOKALIKE_STORE_ID")]
    store_id: Option<StoreId>,

    /// Directory for snapshots that clients ask for, best on the file system of the data; none are made without it
    #[arg(long, value_name = "DIR", env = "LOOKALIKE_SNAPSHOTS")]
    snapshots: Option<PathBuf>,

    /// Where to listen; an address that other machines can reach needs --keys
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "LOOKALIKE_LISTEN",
        default_value = "127.0.0.1:7280"
    )]
    listen: SocketAddr,

    /// Where to listen for /healthz and /readyz alone, without TLS and beyond the reach of --max-connections
    #[arg(long, value_name = "ADDRESS:PORT", env = "LOOKALIKE_HEALTH_LISTEN")]
    health_listen: Option<SocketAddr>,

    /// File with the hashes of API keys, one a line; without it whoever reaches the address may do everything
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_KEYS")]
    keys: Option<PathBuf>,

    /// Make a key of the role read, write or admin: it is printed once, its hash added to the file of --keys
    #[arg(long, value_name = "ROLE:NAME", requires = "keys")]
    make_key: Option<String>,

    /// Certificates in PEM, the service's own first, to speak TLS with
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_TLS_CERT")]
    tls_cert: Option<PathBuf>,

    /// Private key of the first certificate, in PEM
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_TLS_KEY")]
    tls_key: Option<PathBuf>,

    /// Believe the clock at the start though it is more than an hour ahead of the data: after a rest of that long
    #[arg(long, env = "LOOKALIKE_TRUST_CLOCK")]
    trust_clock: bool,

    /// Threads that extract, hash and search, and as many that serve connections [default: as many as processors]
    #[arg(long, value_name = "N", env = "LOOKALIKE_THREADS", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Largest body of a request
    #[arg(long, value_name = "SIZE", env = "LOOKALIKE_MAX_BODY", default_value = "8M", value_parser = size::parse, help_heading = "Limits")]
    max_body: u64,

    /// Most items of a batch
    #[arg(long, value_name = "N", env = "LOOKALIKE_MAX_BATCH", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Limits")]
    max_batch: u32,

    /// Most connections at a time; allow as many open files (ulimit -n) and some hundred more
    #[arg(long, value_name = "N", env = "LOOKALIKE_MAX_CONNECTIONS", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    max_connections: u32,

    /// Most connections of one address, in IPv6 of one /64; behind a proxy give as many as --max-connections [default: half of these]
    #[arg(long, value_name = "N", env = "LOOKALIKE_MAX_ADDRESS_CONNECTIONS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    max_address_connections: Option<u32>,

    /// Most collections
    #[arg(long, value_name = "N", env = "LOOKALIKE_MAX_COLLECTIONS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    max_collections: u32,

    /// Memory for requests in progress, all together; of bodies that are still to come one key, or one address without keys, has at most half
    #[arg(long, value_name = "SIZE", env = "LOOKALIKE_REQUEST_MEMORY", default_value = "256M", value_parser = size::parse, help_heading = "Limits")]
    request_memory: u64,

    /// How long the head of a request may take, and how long a connection may do nothing
    #[arg(long, value_name = "SECONDS", env = "LOOKALIKE_HEADER_TIMEOUT", default_value = "10", value_parser = seconds, help_heading = "Limits")]
    header_timeout: Duration,

    /// How long the body of a request may take
    #[arg(long, value_name = "SECONDS", env = "LOOKALIKE_BODY_TIMEOUT", default_value = "30", value_parser = seconds, help_heading = "Limits")]
    body_timeout: Duration,

    /// Bytes a second that the body of a request must bring at least, over each 5 seconds
    #[arg(long, value_name = "SIZE", env = "LOOKALIKE_MIN_BODY_RATE", default_value = "1K", value_parser = size::parse, help_heading = "Limits")]
    min_body_rate: u64,

    /// How long a request may wait for memory and for a thread before it is refused with 503 and `Retry-After`; where many wait to be read, a fiftieth of it
    #[arg(long, value_name = "SECONDS", env = "LOOKALIKE_PATIENCE", default_value = "1", value_parser = seconds, help_heading = "Limits")]
    patience: Duration,

    /// How long requests in progress may take to end at a SIGTERM or SIGINT; a second one ends everything at once
    #[arg(long, value_name = "SECONDS", env = "LOOKALIKE_DRAIN", default_value = "10", value_parser = seconds, help_heading = "Limits")]
    drain: Duration,

    /// What is logged to standard error, a JSON object a line: error, warn, info, or debug (every request)
    #[arg(
        long,
        value_name = "LEVEL",
        env = "LOOKALIKE_LOG",
        default_value = "info"
    )]
    log: LogLevel,

    /// Print the configuration that results from flags, environment and file as JSON, and end
    #[arg(long)]
    print_config: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// Reads a number of seconds, above 0 and up to a day.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    const DAY: f64 = 86_400.0;
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= DAY => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!(
            "{text:?} is no time: write seconds, above 0 and at most {DAY}, for example 0.5"
        )),
    }
}

fn failed(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::Failed(format!("{what}: {error}"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let (Some(wanted), Some(file)) = (&arguments.make_key, &arguments.keys) {
        return keys::make(wanted, file);
    }
    let keys = keys::read(arguments.keys.as_deref())?;
    let limits = arguments.limits();
    let pem = arguments.pem()?;
    check_address(arguments.listen, &keys).map_err(|error| Failure::Usage(error.to_string()))?;
    if arguments.print_config {
        return print_config(arguments, &limits, keys.len());
    }
    let data = arguments.data.as_deref().ok_or_else(|| {
        Failure::Usage(
            "where is the data? give --data DIR, LOOKALIKE_DATA or data in the file of --config"
                .to_owned(),
        )
    })?;
    let tls = pem.map(tls).transpose()?;
    open_files::raise_limit();
    let queue = LogQueue::start().map_err(failed("threads"))?;
    let log = arguments.log(&queue);
    tell_of_panics(&log);
    if keys.are_required() && keys.is_empty() {
        log.say(&nobody_may_ask());
    }
    if tls.is_none() && !arguments.listen.ip().to_canonical().is_loopback() {
        let entry = Entry::new(Level::Warn, "no-tls");
        let remedy = "keys can be overheard: give --tls-cert and --tls-key, or put a proxy that speaks TLS before it";
        log.say(&entry.with("remedy", remedy));
    }
    let connections = limits.connections + arguments.health_connections();
    open_files::ensure_enough(connections, 0)?;
    let options = StoreOptions {
        create: !arguments.require_existing,
        identity: arguments.store_id,
        ..StoreOptions::default()
    };
    let store = Store::open(data, options).map_err(not_opened)?;
    let collections = store.collections().len();
    let entry = Entry::new(Level::Info, "store").with("identity", store.identity().to_string());
    log.say(&entry.with("collections", collections));
    open_files::ensure_enough(connections, collections)?;
    if let Some(folder) = &arguments.snapshots {
        private_folder(folder).map_err(failed(folder.display()))?;
    }
    let clock: Clock = Arc::new(crate::store::now);
    let setup = Setup {
        keys,
        limits,
        clock,
        trust_clock: arguments.trust_clock,
        log: log.clone(),
        snapshots: arguments.snapshots.clone(),
    };
    let app = App::new(store, setup).map_err(failed("threads"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(limits.workers)
        .enable_all()
        .build()
        .map_err(failed("threads"))?;
    let outlets = (&log, &queue);
    let served = serve(
        &runtime,
        arguments,
        Arc::new(app),
        tls.map(Arc::new),
        outlets,
    );
    runtime.shutdown_background();
    queue.flush(LAST_WORDS);
    served
}

/// How long the last lines of the log may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long the store may take to close once it is told to hurry.
const LAST_CHANCE: Duration = Duration::from_secs(1);

/// A file of keys without a key: all were revoked.
fn nobody_may_ask() -> Entry {
    let remedy = "nobody may ask: add a key with --make-key ROLE:NAME and send SIGHUP";
    Entry::new(Level::Warn, "no-keys").with("remedy", remedy)
}

/// Makes a folder that only its owner may look into, and those above it.
fn private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

/// How often the store is told the time.
const TELL_TIME: Duration = Duration::from_secs(60);

/// Serves until a signal, then closes the store.
fn serve(
    runtime: &Runtime,
    arguments: &Arguments,
    app: Arc<App>,
    tls: Option<Arc<Tls>>,
    (log, queue): (&Log, &LogQueue),
) -> Result<(), Failure> {
    runtime.block_on(async {
        let address = arguments.listen;
        let main = listen(address, "--listen").await?;
        let health = match arguments.health_listen {
            Some(address) => Some(listen(address, "--health-listen").await?),
            None => None,
        };
        let address = main.local_addr().map_err(failed(address))?;
        let mut signals = Signals::new().map_err(failed("signals"))?;
        let mut hangups = Hangups::new().map_err(failed("signals"))?;
        let entry = Entry::new(Level::Info, "listening").with("address", address.to_string());
        let entry = entry.with("tls", tls.is_some());
        let health_address = health
            .as_ref()
            .and_then(|listener| listener.local_addr().ok());
        let entry = match health_address {
            Some(address) => entry.with("health_address", address.to_string()),
            None => entry,
        };
        let listeners = Listeners { main, health };
        log.say(&entry.with("version", env!("CARGO_PKG_VERSION")));
        let (hurry, hurried) = tokio::sync::oneshot::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (watching, lines) = (log.clone(), queue.clone());
        tokio::spawn(async move {
            let signal = signals.next().await;
            watching.say(&Entry::new(Level::Info, "stopping").with("signal", signal));
            let _ = stop.send(());
            signals.next().await;
            let _ = hurry.send(());
            // Closing the store may wait for a merge of hours; what was acknowledged is safe without it.
            tokio::select! {
                () = tokio::time::sleep(LAST_CHANCE) => {}
                _ = signals.next() => {}
            }
            end_at_once(&watching, &lines);
        });
        let first = async { drop(stopped.await) };
        let second = async {
            // A sender that is gone has not hurried.
            if hurried.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let reloading = async {
            loop {
                hangups.next().await;
                arguments.reload(&app, tls.as_deref(), log);
            }
        };
        let telling_time = async {
            loop {
                app.observe_time();
                tokio::time::sleep(TELL_TIME).await;
            }
        };
        tokio::select! {
            () = lookalike_server::serve(listeners, &app, tls.as_ref(), first, second) => {}
            () = reloading => {}
            () = telling_time => {}
        }
        app.close().await.map_err(store_failed)?;
        log.say(&Entry::new(Level::Info, "stopped"));
        Ok(())
    })
}

async fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(failed(format!(
        "{address}: cannot listen there, choose another address with {flag}"
    )))
}

/// Ends the process without closing the store, as a crash would.
#[expect(
    clippy::exit,
    reason = "threads that close the store cannot be stopped in another way"
)]
fn end_at_once(log: &Log, lines: &LogQueue) {
    log.say(
        &Entry::new(Level::Warn, "not-closed")
            .with("remedy", "nothing that was acknowledged is lost"),
    );
    lines.flush(LAST_WORDS);
    std::process::exit(1);
}

/// Why there is no store to serve.
fn not_opened(error: StoreError) -> Failure {
    let remedy = match error {
        StoreError::NoStore { .. } => {
            "; is the medium mounted? without --require-existing and --store-id an empty one is made"
        }
        _ => "",
    };
    Failure::Failed(format!("{error}{remedy}"))
}

fn store_failed(error: StoreError) -> Failure {
    Failure::Failed(error.to_string())
}

/// Messages of panics may quote texts: the log gets the place only.
fn tell_of_panics(log: &Log) {
    let log = log.clone();
    std::panic::set_hook(Box::new(move |panic| {
        if lookalike_corpus::panic_is_handled() {
            return;
        }
        let place = panic.location().map(ToString::to_string);
        let thread = std::thread::current()
            .name()
            .unwrap_or("unnamed")
            .to_owned();
        let entry = Entry::new(Level::Error, "panic").with("thread", thread);
        log.say(&entry.with("at", place.unwrap_or_default()));
    }));
}

/// Certificates and the key of the first.
struct Pem {
    chain: Vec<u8>,
    key: Vec<u8>,
}

fn unusable(error: TlsError) -> Failure {
    Failure::Failed(format!("--tls-cert, --tls-key: {error}"))
}

/// What connections are secured with.
fn tls(pem: Pem) -> Result<Tls, Failure> {
    Tls::new(&pem.chain, &pem.key).map_err(unusable)
}

impl Arguments {
    /// Certificates and their key, as they are in their files. One of the two alone is a mistake, wherever it is set.
    fn pem(&self) -> Result<Option<Pem>, Failure> {
        let half = |set: &str, missing: &str, what: &str| {
            Err(Failure::Usage(format!(
                "{set} is set without {missing}, and the service would speak no TLS: name {what} with --{missing}, LOOKALIKE_{} or {missing} in the file of --config, or leave out both",
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
        Ok(Some(Pem { chain, key }))
    }

    /// Reads the files of keys and TLS again. What is wrong with one of them leaves that one as it is, and keeps no change of the
    /// other back.
    fn reload(&self, app: &App, tls: Option<&Tls>, log: &Log) {
        let keys = self.reload_keys(app);
        let tls = tls.map_or(Ok(()), |tls| self.reload_tls(tls));
        app.set_reload_failed(keys.is_err() || tls.is_err());
        let part = |part: &str, failure: Failure| {
            let entry = Entry::new(Level::Error, "not-reloaded").with("part", part);
            log.say(&entry.with("reason", failure.to_string()));
        };
        match keys {
            Ok(keys) => {
                log.say(&Entry::new(Level::Info, "reloaded").with("keys", keys));
                if keys == Some(0) {
                    log.say(&nobody_may_ask());
                }
            }
            Err(failure) => part("keys", failure),
        }
        if let Err(failure) = tls {
            part("tls", failure);
        }
    }

    /// How many keys there are now; none where no key is asked for.
    fn reload_keys(&self, app: &App) -> Result<Option<usize>, Failure> {
        let keys = keys::read(self.keys.as_deref())?;
        let count = keys.are_required().then_some(keys.len());
        app.set_keys(keys);
        Ok(count)
    }

    fn reload_tls(&self, tls: &Tls) -> Result<(), Failure> {
        match self.pem()? {
            Some(Pem { chain, key }) => tls.replace(&chain, &key).map_err(unusable),
            None => Ok(()),
        }
    }

    /// Connections that --health-listen takes.
    fn health_connections(&self) -> usize {
        self.health_listen
            .map_or(0, |_| lookalike_server::HEALTH_CONNECTIONS)
    }

    fn limits(&self) -> Limits {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Limits {
            body_bytes: size(self.max_body),
            batch: self.max_batch as usize,
            connections: self.max_connections as usize,
            address_connections: self
                .max_address_connections
                .unwrap_or_else(|| self.max_connections.div_ceil(2))
                as usize,
            header_timeout: self.header_timeout,
            body_timeout: self.body_timeout,
            body_rate: size(self.min_body_rate),
            patience: self.patience,
            drain: self.drain,
            request_memory: size(self.request_memory),
            workers: self
                .threads
                .map_or_else(machine::default_threads, usize::from),
            collections: self.max_collections as usize,
            ..Limits::default()
        }
    }

    fn log(&self, queue: &LogQueue) -> Log {
        let level = match self.log {
            LogLevel::Error => Level::Error,
            LogLevel::Warn => Level::Warn,
            LogLevel::Info => Level::Info,
            LogLevel::Debug => Level::Debug,
        };
        let queue = queue.clone();
        Log::new(level, move |entry| queue.push(entry))
    }
}

fn print_config(arguments: &Arguments, limits: &Limits, keys: usize) -> Result<(), Failure> {
    let config = serde_json::json!({
        "config": arguments.config,
        "data": arguments.data,
        "require_existing": arguments.require_existing,
        "store_id": arguments.store_id.map(|id| id.to_string()),
        "snapshots": arguments.snapshots,
        "tls_cert": arguments.tls_cert,
        "tls_key": arguments.tls_key,
        "trust_clock": arguments.trust_clock,
        "listen": arguments.listen,
        "health_listen": arguments.health_listen,
        "keys": arguments.keys,
        "number_of_keys": keys,
        "threads": limits.workers,
        "max_body": limits.body_bytes,
        "max_batch": limits.batch,
        "max_connections": limits.connections,
        "max_address_connections": limits.address_connections,
        "max_collections": limits.collections,
        "request_memory": limits.request_memory,
        "header_timeout": limits.header_timeout.as_secs_f64(),
        "min_body_rate": limits.body_rate,
        "body_timeout": limits.body_timeout.as_secs_f64(),
        "patience": limits.patience.as_secs_f64(),
        "drain": limits.drain.as_secs_f64(),
        "log": format!("{:?}", arguments.log).to_lowercase(),
    });
    writeln!(std::io::stdout(), "{config:#}")?;
    Ok(())
}
