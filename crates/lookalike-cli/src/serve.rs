//! `lookalike serve`: the online service.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lookalike_server::{
    App, Clock, Entry, Keys, Level, Limits, Log, NewKey, Role, Setup, Tls, TlsError, check_address,
};
use lookalike_store::{OpenOptions as StoreOptions, Store, StoreError};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::{console, machine, size};

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
SIGHUP reads the files of keys and of TLS again. docs/operations.md describes the operations, monitoring and backup.")]
pub(crate) struct Arguments {
    /// TOML file of these flags, without the dashes: max-body = "8M". The environment wins over it, and flags over both
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_CONFIG")]
    config: Option<PathBuf>,

    /// Directory of the data; made when there is none
    #[arg(long, value_name = "DIR", env = "LOOKALIKE_DATA")]
    data: Option<PathBuf>,

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

    /// File with the hashes of API keys, one a line; without it whoever reaches the address may do everything
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_KEYS")]
    keys: Option<PathBuf>,

    /// Make a key of the role read, write or admin: it is printed once, its hash added to the file of --keys
    #[arg(long, value_name = "ROLE:NAME", requires = "keys")]
    make_key: Option<String>,

    /// Certificates in PEM, the service's own first, to speak TLS with
    #[arg(
        long,
        value_name = "FILE",
        env = "LOOKALIKE_TLS_CERT",
        requires = "tls_key"
    )]
    tls_cert: Option<PathBuf>,

    /// Private key of the first certificate, in PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "LOOKALIKE_TLS_KEY",
        requires = "tls_cert"
    )]
    tls_key: Option<PathBuf>,

    /// Believe the clock though it is more than a year ahead of the data
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

    /// Most collections
    #[arg(long, value_name = "N", env = "LOOKALIKE_MAX_COLLECTIONS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    max_collections: u32,

    /// Memory for requests in progress, all together
    #[arg(long, value_name = "SIZE", env = "LOOKALIKE_REQUEST_MEMORY", default_value = "256M", value_parser = size::parse, help_heading = "Limits")]
    request_memory: u64,

    /// How long the head of a request may take, and how long a connection may do nothing
    #[arg(long, value_name = "SECONDS", env = "LOOKALIKE_HEADER_TIMEOUT", default_value = "10", value_parser = seconds, help_heading = "Limits")]
    header_timeout: Duration,

    /// How long the body of a request may take
    #[arg(long, value_name = "SECONDS", env = "LOOKALIKE_BODY_TIMEOUT", default_value = "30", value_parser = seconds, help_heading = "Limits")]
    body_timeout: Duration,

    /// How long a request waits for memory and for a thread before it is told to come again
    #[arg(long, value_name = "SECONDS", env = "LOOKALIKE_PATIENCE", default_value = "1", value_parser = seconds, help_heading = "Limits")]
    patience: Duration,

    /// How long requests in progress may take to end at a SIGTERM or SIGINT; a second one ends them at once
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
        return make_key(wanted, file);
    }
    let keys = read_keys(arguments.keys.as_deref())?;
    let limits = arguments.limits();
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
    let tls = arguments.tls()?;
    check_files()?;
    let log = arguments.log();
    tell_of_panics(&log);
    if tls.is_none() && !arguments.listen.ip().to_canonical().is_loopback() {
        let entry = Entry::new(Level::Warn, "no-tls");
        let remedy = "keys can be overheard: give --tls-cert and --tls-key, or put a proxy that speaks TLS before it";
        log.say(&entry.with("remedy", remedy));
    }
    let options = StoreOptions {
        create: true,
        ..StoreOptions::default()
    };
    let store = Store::open(data, options).map_err(store_failed)?;
    if let Some(folder) = &arguments.snapshots {
        std::fs::create_dir_all(folder).map_err(failed(folder.display()))?;
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
    let served = serve(&runtime, arguments, Arc::new(app), tls.map(Arc::new), &log);
    runtime.shutdown_background();
    served
}

/// Open files without which nothing can begin: those of the runtime, the store and the log.
#[cfg(unix)]
const FILES: u64 = 32;

/// The runtime panics in the middle of its start when it gets no files: that there are too few is told before.
#[cfg(unix)]
fn check_files() -> Result<(), Failure> {
    use rustix::process::{Resource, getrlimit};
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < FILES => Err(Failure::Failed(format!(
            "too many open files for this process: it may have {most} (ulimit -n), and needs {FILES}, one for each connection (--max-connections), \
             and one for each run of the collections"
        ))),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn check_files() -> Result<(), Failure> {
    Ok(())
}

/// Serves until a signal, then closes the store.
fn serve(
    runtime: &Runtime,
    arguments: &Arguments,
    app: Arc<App>,
    tls: Option<Arc<Tls>>,
    log: &Log,
) -> Result<(), Failure> {
    runtime.block_on(async {
        let address = arguments.listen;
        let listener = TcpListener::bind(address).await.map_err(failed(format!(
            "{address}: cannot listen there, choose another address with --listen"
        )))?;
        let address = listener.local_addr().map_err(failed(address))?;
        let mut signals = Signals::new().map_err(failed("signals"))?;
        let mut hangups = Hangups::new().map_err(failed("signals"))?;
        let entry = Entry::new(Level::Info, "listening").with("address", address.to_string());
        let entry = entry.with("tls", tls.is_some());
        log.say(&entry.with("version", env!("CARGO_PKG_VERSION")));
        let (hurry, hurried) = tokio::sync::oneshot::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let watching = log.clone();
        let watcher = tokio::spawn(async move {
            let signal = signals.next().await;
            watching.say(&Entry::new(Level::Info, "stopping").with("signal", signal));
            let _ = stop.send(());
            signals.next().await;
            let _ = hurry.send(());
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
                log.say(&arguments.reload(&app, tls.as_deref()));
            }
        };
        tokio::select! {
            () = lookalike_server::serve(listener, &app, tls.as_ref(), first, second) => {}
            () = reloading => {}
        }
        watcher.abort();
        app.close().await.map_err(store_failed)?;
        log.say(&Entry::new(Level::Info, "stopped"));
        Ok(())
    })
}

fn store_failed(error: StoreError) -> Failure {
    Failure::Failed(error.to_string())
}

/// The signals that end the service.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> &'static str {
        // Without a handler nothing can be waited for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}

/// The signal to read the files of keys and TLS again.
#[cfg(unix)]
struct Hangups(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Hangups {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::hangup()).map(Self)
    }

    async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        std::future::pending::<()>().await;
    }
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

impl Arguments {
    /// What connections are secured with.
    fn tls(&self) -> Result<Option<Tls>, Failure> {
        let Some(Pem { chain, key }) = self.pem()? else {
            return Ok(None);
        };
        let wrong = |error: TlsError| Failure::Failed(format!("--tls-cert, --tls-key: {error}"));
        Tls::new(&chain, &key).map(Some).map_err(wrong)
    }

    /// Certificates and their key, as they are in their files.
    fn pem(&self) -> Result<Option<Pem>, Failure> {
        let (Some(chain), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        let read = |path: &Path| std::fs::read(path).map_err(failed(path.display()));
        let (chain, key) = (read(chain)?, read(key)?);
        Ok(Some(Pem { chain, key }))
    }

    /// Reads the files of keys and TLS again; what is wrong with them leaves all as it is.
    fn reload(&self, app: &App, tls: Option<&Tls>) -> Entry {
        match self.reload_all(app, tls) {
            Ok(keys) => Entry::new(Level::Info, "reloaded").with("keys", keys),
            Err(Failure::Failed(reason) | Failure::Usage(reason)) => {
                Entry::new(Level::Error, "not-reloaded").with("reason", reason)
            }
            Err(Failure::ReaderGone) => Entry::new(Level::Error, "not-reloaded"),
        }
    }

    fn reload_all(&self, app: &App, tls: Option<&Tls>) -> Result<usize, Failure> {
        let keys = read_keys(self.keys.as_deref())?;
        if let (Some(tls), Some(Pem { chain, key })) = (tls, self.pem()?) {
            tls.replace(&chain, &key)
                .map_err(|error| Failure::Failed(format!("--tls-cert, --tls-key: {error}")))?;
        }
        let count = keys.len();
        app.set_keys(keys);
        Ok(count)
    }

    fn limits(&self) -> Limits {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Limits {
            body_bytes: size(self.max_body),
            batch: self.max_batch as usize,
            connections: self.max_connections as usize,
            header_timeout: self.header_timeout,
            body_timeout: self.body_timeout,
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

    fn log(&self) -> Log {
        let level = match self.log {
            LogLevel::Error => Level::Error,
            LogLevel::Warn => Level::Warn,
            LogLevel::Info => Level::Info,
            LogLevel::Debug => Level::Debug,
        };
        Log::new(level, |entry| {
            let mut line = serde_json::json!({
                "time": jiff::Timestamp::now().to_string(),
                "level": entry.level.to_string(),
                "event": entry.event,
            });
            if let Some(object) = line.as_object_mut() {
                object.extend(entry.fields.clone());
            }
            console::json_beside(&line);
        })
    }
}

fn print_config(arguments: &Arguments, limits: &Limits, keys: usize) -> Result<(), Failure> {
    let config = serde_json::json!({
        "config": arguments.config,
        "data": arguments.data,
        "snapshots": arguments.snapshots,
        "tls_cert": arguments.tls_cert,
        "tls_key": arguments.tls_key,
        "trust_clock": arguments.trust_clock,
        "listen": arguments.listen,
        "keys": arguments.keys,
        "number_of_keys": keys,
        "threads": limits.workers,
        "max_body": limits.body_bytes,
        "max_batch": limits.batch,
        "max_connections": limits.connections,
        "max_collections": limits.collections,
        "request_memory": limits.request_memory,
        "header_timeout": limits.header_timeout.as_secs_f64(),
        "body_timeout": limits.body_timeout.as_secs_f64(),
        "patience": limits.patience.as_secs_f64(),
        "drain": limits.drain.as_secs_f64(),
        "log": format!("{:?}", arguments.log).to_lowercase(),
    });
    writeln!(std::io::stdout(), "{config:#}")?;
    Ok(())
}

/// The keys of a file, which nobody else may change.
fn read_keys(file: Option<&Path>) -> Result<Keys, Failure> {
    let Some(file) = file else {
        return Ok(Keys::default());
    };
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(failed(format!(
        "{shown}: make a key with --make-key ROLE:NAME, which makes the file"
    )))?;
    check_mode(file)?;
    let keys: Keys = text
        .parse()
        .map_err(|error| Failure::Failed(format!("{shown}: {error}")))?;
    if keys.is_empty() {
        return Err(Failure::Failed(format!(
            "{shown}: no key in this file: make one with --make-key ROLE:NAME"
        )));
    }
    Ok(keys)
}

#[cfg(unix)]
fn check_mode(file: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let shown = file.display();
    let mode = std::fs::metadata(file)
        .map_err(failed(shown))?
        .permissions()
        .mode();
    if mode & 0o022 == 0 {
        return Ok(());
    }
    let shown = file.display();
    Err(Failure::Failed(format!(
        "{shown}: others may write to this file and give themselves keys: chmod go-w {shown}"
    )))
}

#[cfg(not(unix))]
fn check_mode(_file: &Path) -> Result<(), Failure> {
    Ok(())
}

/// Makes a key, adds its hash to the file, and prints it.
fn make_key(wanted: &str, file: &Path) -> Result<(), Failure> {
    let usage = |error: String| Failure::Usage(format!("--make-key {wanted}: {error}"));
    let (role, name) = wanted
        .split_once(':')
        .ok_or_else(|| usage("write ROLE:NAME, for example write:crawler".to_owned()))?;
    let role: Role = role
        .parse()
        .map_err(|error: lookalike_server::KeyError| usage(error.to_string()))?;
    let mut chance = [0; 32];
    getrandom::fill(&mut chance)
        .map_err(|error| Failure::Failed(format!("the system gives no random numbers: {error}")))?;
    let key = NewKey::make(role, name, chance).map_err(|error| usage(error.to_string()))?;
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let shown = file.display();
    let mut lines = options.open(file).map_err(failed(&shown))?;
    lines
        .write_all(key.line.as_bytes())
        .and_then(|()| lines.sync_all())
        .map_err(failed(&shown))?;
    writeln!(std::io::stdout(), "{}", key.secret)?;
    Ok(())
}
