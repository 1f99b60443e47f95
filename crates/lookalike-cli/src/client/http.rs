//! Requests to a service, repeated while it is busy or restarts.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use ureq::http::{Request, Response};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::{Agent, AsSendBody, Body};

use crate::failure::Failure;
use crate::{console, remedy};

/// The media type of the compact form.
pub(crate) const PACKED: &str = "application/vnd.lookalike.packed";

/// Files with trusted certificates on common systems.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// Number of bytes above which a body is sent only after the service has agreed to accept it.
const EXPECT_CONTINUE_BYTES: usize = 1 << 20;
/// Time limit until an answer begins.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Minimum time between two requests.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// Time between attempts to reach a service that restarts.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);
/// Maximum number of bytes of an answer that is read into memory.
const MAX_ANSWER_BYTES: u64 = 1 << 30;

/// A connection to a service.
#[derive(Clone)]
pub(crate) struct ServiceClient {
    agent: Agent,
    /// Time limit until an answer begins, that is, until its head is complete; `None` means no limit.
    answer_timeout: Option<Duration>,
    url: String,
    key: Option<String>,
    retry_for: Duration,
    /// True once the service has answered. Before that, a refused connection rather means that the URL is wrong.
    was_reached: Arc<AtomicBool>,
}

/// The reason why a request has no answer.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The service refused it.
    Refused(Refusal),
    /// Something else went wrong.
    Failed(Failure),
}

/// The answer of a service that refuses a request.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// Number of the item concerned in a batch, from 0.
    pub(crate) item: Option<usize>,
    /// Short name of the error.
    pub(crate) code: String,
    /// Description of the error and its remedy, in terms of the command line where the service speaks of requests.
    pub(crate) reason: String,
    pub(super) url: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.url, self.status, self.reason)
    }
}

impl From<Failure> for RequestError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Failed(failure) => failure,
            RequestError::Refused(refusal) => {
                let item = refusal.item;
                let item =
                    item.map_or(String::new(), |item| format!(" (item {item} of the batch)"));
                Self::Failed(format!("{refusal}{item}"))
            }
        }
    }
}

/// Returns the path of a collection, followed by `below`.
pub(crate) fn collection(name: &str, below: &str) -> String {
    format!("/v1/collections/{}{below}", escaped(name))
}

/// Escapes a name as a part of a path. The service decides which names are valid.
pub(crate) fn escaped(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        // RFC 3986, section 2.3: all but the unreserved characters, so that no name ends a path or begins a query.
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}

/// Options after the `?` of a path.
#[derive(Default)]
pub(crate) struct UrlOptions(pub(crate) String);

impl UrlOptions {
    /// Adds an option if it has a value.
    pub(crate) fn with(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            let mark = if self.0.is_empty() { '?' } else { '&' };
            self.0 += &format!("{mark}{name}={}", escaped(&value.to_string()));
        }
        self
    }
}

impl ServiceClient {
    pub(crate) fn new(
        url: &str,
        key_file: Option<&Path>,
        ca: Option<&Path>,
        retry_for: Duration,
    ) -> Result<Self, Failure> {
        let mut config = Agent::config_builder()
            // The body of an error has its reason and remedy.
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            // The client would send the key to wherever it is redirected.
            .max_redirects(0)
            // A service near its users is contacted directly. Proxy variables are meant for the web, and a proxy would see the key.
            .proxy(None);
        if !["http://", "https://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            return Err(Failure::Usage(format!(
                "--url {url}: write it with http:// or https:// before the host"
            )));
        }
        if url.starts_with("https:") {
            config = config.tls_config(tls(ca)?);
        }
        Ok(Self {
            agent: config.build().into(),
            answer_timeout: Some(ANSWER_TIMEOUT),
            url: url.trim_end_matches('/').to_owned(),
            key: key(key_file)?,
            retry_for,
            was_reached: Arc::default(),
        })
    }

    /// Returns a client that waits for an answer as long as the service works on it, for requests that read a whole collection.
    pub(crate) fn without_answer_timeout(&self) -> Self {
        Self {
            answer_timeout: None,
            ..self.clone()
        }
    }

    /// Sends a request, optionally with JSON, and returns the JSON of the answer.
    pub(crate) fn json(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let body = body.map(|body| ("application/json", body.to_string().into_bytes()));
        let bytes = self.send(method, path, body)?;
        self.parse(path, &bytes)
    }

    /// Requests a document with a JSON body. Returns `null` if it does not exist.
    pub(crate) fn json_if_there(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let body = ("application/json", body.to_string().into_bytes());
        match self.send("POST", path, Some(body)) {
            Err(RequestError::Refused(refusal)) if refusal.code == "no-document" => Ok(Value::Null),
            answer => self.parse(path, &answer?),
        }
    }

    fn parse(&self, path: &str, bytes: &[u8]) -> Result<Value, Failure> {
        serde_json::from_slice(bytes).map_err(|error| {
            Failure::Failed(format!(
                "{}{path}: the response is not from a lookalike service: {error}",
                self.url
            ))
        })
    }

    /// Sends items, and returns the answer to each.
    pub(crate) fn items(
        &self,
        path: &str,
        items: &[impl Serialize],
    ) -> Result<Vec<Value>, RequestError> {
        let body = serde_json::to_vec(items).map_err(|error| Failure::Failed(error.to_string()))?;
        self.written_items(path, body, items.len())
    }

    /// Works like `items`, for a given number of items that are already serialized as an array.
    pub(crate) fn written_items(
        &self,
        path: &str,
        body: Vec<u8>,
        asked: usize,
    ) -> Result<Vec<Value>, RequestError> {
        let bytes = self.send("POST", path, Some(("application/json", body)))?;
        let answers = match self.parse(path, &bytes)? {
            Value::Array(answers) => answers,
            _ => Vec::new(),
        };
        if answers.len() == asked {
            return Ok(answers);
        }
        // Otherwise some items would silently lack an answer.
        Err(RequestError::Failed(Failure::Failed(format!(
            "{}{path}: {} answers to {asked} items: the response is not from a lookalike service",
            self.url,
            answers.len()
        ))))
    }

    /// Sends a batch in the compact form.
    pub(crate) fn packed(&self, path: &str, body: Vec<u8>) -> Result<Vec<u8>, RequestError> {
        self.send("POST", path, Some((PACKED, body)))
    }

    /// Returns status and answer of a request that is sent only once.
    pub(crate) fn status(&self, path: &str) -> Result<(u16, Value), Failure> {
        let answer = self.once("GET", path, None);
        let mut answer = answer.map_err(|error| self.failure(path, &error))?;
        let bytes = self.read(path, &mut answer)?;
        let status = answer.status().as_u16();
        // An answer that is not JSON is shown as `null`; its status says enough.
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    /// Sends a request whose answer has no body of interest.
    pub(crate) fn empty(&self, method: &str, path: &str) -> Result<(), Failure> {
        Ok(self.send(method, path, None).map(drop)?)
    }

    /// Sends a request and returns a reader of its answer, which may be long.
    pub(crate) fn stream(&self, path: &str) -> Result<impl Read + use<>, Failure> {
        Ok(self.answer("GET", path, None)?.into_body().into_reader())
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Vec<u8>, RequestError> {
        let mut answer = self.answer(method, path, body)?;
        Ok(self.read(path, &mut answer)?)
    }

    fn read(&self, path: &str, answer: &mut Response<Body>) -> Result<Vec<u8>, Failure> {
        let whole = answer
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER_BYTES)
            .read_to_vec();
        whole.map_err(|error| Failure::Failed(format!("{}{path}: {error}", self.url)))
    }

    fn answer(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Response<Body>, RequestError> {
        // Of all attempts together: `--retry-for` limits the whole request.
        let (begun, mut is_told) = (Instant::now(), false);
        loop {
            let mut answer = match self.once(method, path, body.as_ref()) {
                Ok(answer) => answer,
                Err(error) if self.may_resend(&error, begun.elapsed(), method, path) => {
                    if !is_told {
                        self.warn_of_restart(&error);
                    }
                    is_told = true;
                    std::thread::sleep(RECONNECT_PAUSE);
                    continue;
                }
                Err(error) => return Err(self.failure(path, &error).into()),
            };
            self.was_reached.store(true, Ordering::Relaxed);
            let status = answer.status().as_u16();
            if status < 300 {
                return Ok(answer);
            }
            let header = |name: &str| answer.headers().get(name)?.to_str().ok();
            // The service did nothing, and the answer does not contain the result.
            if status < 400 {
                return Err(self.redirection(path, status, header("location")).into());
            }
            match pause(header("retry-after"), begun.elapsed(), self.retry_for) {
                Some(wait) => std::thread::sleep(wait),
                None => {
                    let bytes = self.read(path, &mut answer)?;
                    return Err(RequestError::Refused(self.refusal(path, status, &bytes)));
                }
            }
        }
    }

    /// Returns true if a request that got no answer may be sent again.
    fn may_resend(&self, error: &ureq::Error, spent: Duration, method: &str, path: &str) -> bool {
        let ureq::Error::Io(error) = error else {
            return false;
        };
        let may = match error.kind() {
            // Nothing was sent.
            ErrorKind::ConnectionRefused => true,
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof => is_repeatable(method, path),
            _ => false,
        };
        may && self.was_reached.load(Ordering::Relaxed) && spent + RECONNECT_PAUSE < self.retry_for
    }

    fn warn_of_restart(&self, error: &ureq::Error) {
        let most = self.retry_for.as_secs_f64();
        console::warning(&format!(
            "{}: {error}; trying again for up to {most} s, as the service may be restarting",
            self.url
        ));
    }

    /// Returns the failure for a request that got no answer.
    fn failure(&self, path: &str, error: &ureq::Error) -> Failure {
        let (url, error) = (format!("{}{path}", self.url), error.to_string());
        let said = |part: &str| error.contains(part);
        let reason = if said("InvalidContentType") {
            // The first bytes come from a server without TLS, but the client expects it.
            "the server does not speak TLS: use http://".to_owned()
        } else if said("HTTP version") {
            format!("{error}: the server does not speak plain HTTP: use https:// if it speaks TLS")
        } else if said("CaUsedAsEndEntity") {
            "the certificate of the service is that of an authority: make one with basicConstraints=CA:FALSE for it".to_owned()
        } else if said("invalid peer certificate") {
            format!(
                "{error}; trust the certificate with --ca, use the name that it is for in --url, or renew it if it has expired"
            )
        } else {
            format!("{error}; check that the service is running, or name another with --url")
        };
        Failure::Failed(format!("{url}: {reason}"))
    }

    fn once(
        &self,
        method: &str,
        path: &str,
        body: Option<&(&str, Vec<u8>)>,
    ) -> Result<Response<Body>, ureq::Error> {
        let url = format!("{}{path}", self.url);
        let mut request = Request::builder().method(method).uri(&url);
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let body = match body {
            Some((kind, bytes)) => Some((*kind, bytes.as_slice())),
            // Nothing has a length, too: without one it would be sent in chunks, which services refuse. The type tells that no
            // page of another site sends it.
            None if method == "POST" => Some(("application/json", [].as_slice())),
            None => None,
        };
        match body {
            Some((kind, bytes)) => {
                request = request.header("content-type", kind);
                if bytes.len() > EXPECT_CONTINUE_BYTES {
                    // A refusal then arrives before the body is sent.
                    request = request.header("expect", "100-continue");
                }
                self.run(request.body(bytes)?)
            }
            None => self.run(request.body(())?),
        }
    }

    fn run(&self, request: Request<impl AsSendBody>) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.configure_request(request);
        // Of the head alone: the body of an export may take any time.
        let request = request.timeout_recv_response(self.answer_timeout);
        self.agent.run(request.build())
    }

    /// Returns the failure for a redirection, which is not followed, because the key is for this service.
    fn redirection(&self, path: &str, status: u16, location: Option<&str>) -> Failure {
        let url = &self.url;
        let elsewhere = location.unwrap_or("another address");
        Failure::Failed(format!(
            "{url}{path}: {status}: nothing was done, because the response redirects to {elsewhere}; name the service there with --url"
        ))
    }

    /// Parses the refusal that the service reports.
    fn refusal(&self, path: &str, status: u16, body: &[u8]) -> Refusal {
        let problem: Value = serde_json::from_slice(body).unwrap_or_default();
        let word = |name: &str| problem[name].as_str().unwrap_or("?").to_owned();
        let code = word("code");
        let remedy = remedy::of_service_code(&code).map_or_else(|| word("remedy"), str::to_owned);
        let option = problem["field"].as_str().and_then(remedy::of_service_field);
        let option = option.map_or(String::new(), |option| format!(" ({option})"));
        Refusal {
            status,
            item: problem["item"].as_u64().map(|item| item as usize),
            code,
            reason: format!("{}: {remedy}{option}", word("detail")),
            url: format!("{}{path}", self.url),
        }
    }
}

/// Returns true if a request may be sent again although the service may have done it. A repeated `delete` would find nothing, and a repeated
/// `check-and-insert` its own documents.
fn is_repeatable(method: &str, path: &str) -> bool {
    const OPERATIONS: [&str; 8] = [
        "check",
        "query",
        "paragraphs",
        "get",
        "rerank",
        "copies-of",
        "insert",
        "load",
    ];
    let path = path.split('?').next().unwrap_or_default();
    let operation = path.rsplit('/').next().unwrap_or_default();
    method == "GET" || method == "POST" && OPERATIONS.contains(&operation)
}

/// Returns the time before a refused request is sent again, or `None` if the service names none, or more than remains.
fn pause(retry_after: Option<&str>, spent: Duration, retry_for: Duration) -> Option<Duration> {
    let asked = Duration::from_secs(retry_after?.trim().parse().ok()?);
    // A service that says 0 would be asked again without a pause.
    let wait = asked.max(MIN_PAUSE);
    (wait < retry_for.checked_sub(spent)?).then_some(wait)
}

fn key(file: Option<&Path>) -> Result<Option<String>, Failure> {
    // From a file or the environment, never from an option: other users can see the command lines of processes.
    let (text, place) = match file {
        None => match std::env::var("LOOKALIKE_KEY") {
            Ok(key) if !key.is_empty() => (key, "LOOKALIKE_KEY".to_owned()),
            _ => return Ok(None),
        },
        Some(file) => {
            let shown = file.display().to_string();
            let text = std::fs::read_to_string(file).map_err(|error| {
                Failure::Failed(format!(
                    "{shown}: {error}; name the file of the key with --key-file"
                ))
            })?;
            (text, shown)
        }
    };
    let key = text.trim();
    let unusable = |reason: &str| {
        Err(Failure::Failed(format!(
            "{place}: {reason}: give the key alone, not the file of the service's --keys"
        )))
    };
    match key.lines().count() {
        // Otherwise the service would refuse every request, and its answer could not name the file.
        0 => unusable("is empty"),
        1 => Ok(Some(key.to_owned())),
        // A key with line ends cannot be sent as a header, and the error of the HTTP library would not name the file.
        _ => unusable("has several lines"),
    }
}

/// Configures TLS with the trusted certificates.
fn tls(ca: Option<&Path>) -> Result<TlsConfig, Failure> {
    let system = SYSTEM.iter().map(Path::new).find(|path| path.exists());
    let path = ca.or(system).ok_or_else(|| {
        Failure::Failed("no system certificates found: name trusted ones with --ca".to_owned())
    })?;
    let failed = |error: String| {
        let shown = path.display();
        Failure::Failed(format!(
            "{shown}: {error}; name certificates in PEM with --ca"
        ))
    };
    let pem = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    // Other items and errors are skipped; a file without any certificate is refused below.
    let items = parse_pem(&pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let trusted: Vec<Certificate<'static>> = items.collect();
    if trusted.is_empty() {
        return Err(failed("no certificate in this file".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::Specific(Arc::new(trusted)))
        .unversioned_rustls_crypto_provider(provider)
        .build())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    type SendRequest<'a> = &'a dyn Fn(&ServiceClient) -> Result<(), Failure>;

    /// Sends a request to a service that gives this answer, and returns the error as text.
    fn asked(answer: &str, ask: SendRequest<'_>) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = format!("HTTP/1.1 {answer}").into_bytes();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            if request.starts_with(b"POST") {
                // The only body that a test sends.
                stream.read_exact(&mut [0; "[7,8]".len()]).unwrap();
            }
            stream.write_all(&answer).unwrap();
        });
        let client = ServiceClient::new(&url, None, None, Duration::ZERO).unwrap();
        let done = ask(&client).map_err(|error| error.to_string());
        server.join().unwrap();
        done
    }

    #[test]
    fn an_answer_that_led_elsewhere_was_a_success() {
        let elsewhere = "301 Moved\r\nLocation: https://b.example/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let none = "204 No Content\r\nConnection: close\r\n\r\n";
        let asks: [SendRequest<'_>; 2] = [
            &|client| client.empty("DELETE", "/v1/collections/x"),
            &|client| client.stream("/v1/collections/x/export").map(drop),
        ];
        for ask in asks {
            let said = asked(elsewhere, ask).unwrap_err();
            for word in ["301", "https://b.example/", "--url"] {
                assert!(said.contains(word), "{said}");
            }
            assert_eq!(asked(none, ask), Ok(()));
        }
    }

    #[test]
    fn a_request_that_reads_a_whole_collection_had_a_minute() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = [0; 1024];
                assert!(stream.read(&mut head).unwrap() > 0);
                std::thread::sleep(Duration::from_millis(500));
                // The first client has hung up.
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
                let _ = stream.write_all(answer);
            }
        });
        let mut client = ServiceClient::new(&url, None, None, Duration::ZERO).unwrap();
        assert_eq!(client.answer_timeout, Some(ANSWER_TIMEOUT));
        client.answer_timeout = Some(Duration::from_millis(50));
        let get = |client: &ServiceClient| client.json("GET", "/v1/x", None);
        assert!(get(&client).unwrap_err().to_string().contains("timeout"));
        assert_eq!(
            get(&client.without_answer_timeout()).unwrap(),
            serde_json::json!({})
        );
        server.join().unwrap();
    }

    /// Accepts a connection, and reads a request without a body.
    fn accepted(listener: &TcpListener) -> TcpStream {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 1024];
        assert!(stream.read(&mut head).unwrap() > 0);
        stream
    }

    /// Answers with an empty object.
    fn answer(mut stream: TcpStream) {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        stream.write_all(answer).unwrap();
    }

    #[test]
    fn a_restart_of_the_service_ended_its_clients() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let first = accepted(&listener);
            drop(listener);
            answer(first);
            // Meanwhile the second request is refused.
            std::thread::sleep(2 * RECONNECT_PAUSE);
            answer(accepted(&TcpListener::bind(address).unwrap()));
        });
        let url = format!("http://{address}");
        let client = ServiceClient::new(&url, None, None, Duration::from_secs(60)).unwrap();
        for _ in 0..2 {
            assert!(client.json("POST", "/v1/c/check-and-insert", None).is_ok());
        }
        server.join().unwrap();
        // Without an answer before, the URL is wrong, so nothing is gained by waiting.
        let other = ServiceClient::new(&url, None, None, Duration::from_secs(3600)).unwrap();
        assert!(other.json("GET", "/v1/c", None).is_err());
    }

    #[test]
    fn a_request_whose_connection_broke_is_sent_again_if_that_does_no_harm() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            answer(accepted(&listener));
            drop(accepted(&listener));
            answer(accepted(&listener));
            drop(accepted(&listener));
        });
        let client = ServiceClient::new(&url, None, None, Duration::from_secs(60)).unwrap();
        assert!(client.json("GET", "/v1/c", None).is_ok());
        assert!(client.json("POST", "/v1/c/insert?x=1", None).is_ok());
        let twice = client.json("POST", "/v1/c/check-and-insert", None);
        assert!(twice.is_err());
        server.join().unwrap();
    }

    #[test]
    fn an_empty_file_of_a_key_was_sent_as_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        for (text, expected) in [
            ("", Err("is empty")),
            (" \n\n", Err("is empty")),
            ("lk_a\nlk_b\n", Err("has several lines")),
            ("lk_a\n", Ok("lk_a")),
        ] {
            std::fs::write(&file, text).unwrap();
            match (key(Some(&file)), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.as_deref(), Some(expected)),
                (Err(failure), Err(expected)) => {
                    let said = failure.to_string();
                    assert!(said.contains(expected) && said.contains("key: "), "{said}");
                }
                (found, _) => panic!("{text:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn items_without_an_answer_were_left_out() {
        let send: SendRequest<'_> = &|client| {
            client.items("/v1/x", &[7, 8])?;
            Ok(())
        };
        for (answer, is_whole) in [
            ("[]", false),
            ("{}", false),
            ("[1]", false),
            ("[1,2]", true),
        ] {
            let length = answer.len();
            let answer =
                format!("200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}");
            let said = asked(&answer, send);
            assert_eq!(said.is_ok(), is_whole, "{said:?}");
        }
    }

    #[test]
    fn a_pause_without_an_end_was_a_panic_and_one_of_nothing_none() {
        let (spent, most) = (Duration::from_secs(2), Duration::from_secs(60));
        assert_eq!(pause(Some("18446744073709551615"), spent, most), None);
        assert_eq!(pause(Some("0"), spent, most), Some(MIN_PAUSE));
        assert_eq!(pause(Some("5"), spent, most), Some(Duration::from_secs(5)));
        assert_eq!(pause(Some("58"), spent, most), None);
        assert_eq!(pause(Some("soon"), spent, most), None);
        assert_eq!(pause(Some("0"), spent, Duration::ZERO), None);
    }
}
