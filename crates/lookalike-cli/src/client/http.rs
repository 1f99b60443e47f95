//! Requests to a service, repeated while it is busy.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::http::{Request, Response};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::{Agent, Body};

use crate::failure::Failure;

/// The media type of the compact form.
pub(crate) const PACKED: &str = "application/vnd.lookalike.packed";

/// Files of trusted certificates on common systems.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// Bodies of more bytes are sent when the service has said that it takes them.
const ASK_FIRST: usize = 1 << 20;
/// Time limit on one answer.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Most bytes of an answer that is read whole.
const LARGEST: u64 = 1 << 30;

/// A service.
pub(crate) struct ServiceClient {
    agent: Agent,
    url: String,
    key: Option<String>,
    retry_for: Duration,
}

/// The path of a collection, and what is below it.
pub(crate) fn collection(name: &str, below: &str) -> String {
    format!("/v1/collections/{}{below}", escaped(name))
}

/// A name as a part of a path; the service tells what names are no names.
pub(crate) fn escaped(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        // RFC 3986, section 2.3: all but the unreserved characters, so that no name ends a path or begins a
        // query.
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}

impl ServiceClient {
    pub(crate) fn new(
        url: &str,
        key_file: Option<&Path>,
        ca: Option<&Path>,
        retry_for: Duration,
    ) -> Result<Self, Failure> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            // Until the head of the answer; the body of an export may take as long as it likes.
            .timeout_recv_response(Some(TIMEOUT))
            .max_redirects(0)
            // A service beside its users is asked directly. The variables of proxies are for the web, and would
            // get the key.
            .proxy(None);
        if url.starts_with("https:") {
            config = config.tls_config(tls(ca)?);
        }
        Ok(Self {
            agent: config.build().into(),
            url: url.trim_end_matches('/').to_owned(),
            key: key(key_file)?,
            retry_for,
        })
    }

    /// Asks for JSON, with JSON.
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

    fn parse(&self, path: &str, bytes: &[u8]) -> Result<Value, Failure> {
        serde_json::from_slice(bytes).map_err(|error| {
            Failure::Failed(format!(
                "{}{path}: the answer is not from this service: {error}",
                self.url
            ))
        })
    }

    /// Asks for JSON, with JSON that is written already.
    pub(crate) fn json_bytes(
        &self,
        method: &str,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Value, Failure> {
        let bytes = self.send(method, path, Some(("application/json", body)))?;
        self.parse(path, &bytes)
    }

    /// Sends a batch in the compact form.
    pub(crate) fn packed(&self, path: &str, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        self.send("POST", path, Some((PACKED, body)))
    }

    /// Status and answer of a request that is asked once.
    pub(crate) fn status(&self, path: &str) -> Result<(u16, Value), Failure> {
        let mut answer = self.once("GET", path, None)?;
        let bytes = self.read(path, &mut answer)?;
        let status = answer.status().as_u16();
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    /// Asks for an answer without a body.
    pub(crate) fn empty(&self, method: &str, path: &str) -> Result<(), Failure> {
        self.send(method, path, None).map(drop)
    }

    /// Asks for an answer that may be long.
    pub(crate) fn stream(&self, path: &str) -> Result<impl Read + use<>, Failure> {
        Ok(self.answer("GET", path, None)?.into_body().into_reader())
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Vec<u8>, Failure> {
        let mut answer = self.answer(method, path, body)?;
        self.read(path, &mut answer)
    }

    fn read(&self, path: &str, answer: &mut Response<Body>) -> Result<Vec<u8>, Failure> {
        let whole = answer.body_mut().with_config().limit(LARGEST).read_to_vec();
        whole.map_err(|error| Failure::Failed(format!("{}{path}: {error}", self.url)))
    }

    fn answer(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Response<Body>, Failure> {
        let begun = Instant::now();
        loop {
            let mut answer = self.once(method, path, body.as_ref())?;
            let status = answer.status().as_u16();
            if status < 400 {
                return Ok(answer);
            }
            let wait = answer.headers().get("retry-after");
            let wait = wait.and_then(|wait| wait.to_str().ok()?.parse().ok());
            match wait.map(Duration::from_secs) {
                Some(wait) if begun.elapsed() + wait < self.retry_for => std::thread::sleep(wait),
                _ => {
                    let bytes = self.read(path, &mut answer)?;
                    return Err(self.refusal(path, status, &bytes));
                }
            }
        }
    }

    fn once(
        &self,
        method: &str,
        path: &str,
        body: Option<&(&str, Vec<u8>)>,
    ) -> Result<Response<Body>, Failure> {
        let url = format!("{}{path}", self.url);
        let failed = |error: String| {
            Failure::Failed(format!(
                "{url}: {error}; check that the service is running, or name another with --url"
            ))
        };
        let mut request = Request::builder().method(method).uri(&url);
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let sent = match body {
            Some((kind, bytes)) => {
                let mut request = request.header("content-type", *kind);
                if bytes.len() > ASK_FIRST {
                    // A refusal then arrives before the body is sent.
                    request = request.header("expect", "100-continue");
                }
                let request = request.body(bytes.as_slice());
                self.agent
                    .run(request.map_err(|error| failed(error.to_string()))?)
            }
            None if method == "POST" => {
                // Nothing has a length, too: without one it would be sent in chunks, which services refuse. The type tells that no
                // page of another site sends it.
                let request = request
                    .header("content-type", "application/json")
                    .body([].as_slice());
                self.agent
                    .run(request.map_err(|error| failed(error.to_string()))?)
            }
            None => {
                let request = request.body(());
                self.agent
                    .run(request.map_err(|error| failed(error.to_string()))?)
            }
        };
        sent.map_err(|error| failed(error.to_string()))
    }

    /// The failure that the service reports.
    fn refusal(&self, path: &str, status: u16, body: &[u8]) -> Failure {
        let url = &self.url;
        let problem: Value = serde_json::from_slice(body).unwrap_or_default();
        let word = |name: &str| problem[name].as_str().unwrap_or("?").to_owned();
        let (detail, remedy) = (word("detail"), word("remedy"));
        let item = problem["item"].as_u64();
        let item = item.map_or(String::new(), |item| format!(" (item {item} of the batch)"));
        Failure::Failed(format!("{url}{path}: {status}: {detail}{item}: {remedy}"))
    }
}

fn key(file: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(file) = file else {
        let key = std::env::var("LOOKALIKE_KEY").ok();
        return Ok(key.filter(|key| !key.is_empty()));
    };
    let text = std::fs::read_to_string(file).map_err(|error| {
        let shown = file.display();
        Failure::Failed(format!(
            "{shown}: {error}; name the file of the key with --key-file"
        ))
    })?;
    Ok(Some(text.trim().to_owned()))
}

/// TLS with the trusted certificates.
fn tls(ca: Option<&Path>) -> Result<TlsConfig, Failure> {
    let system = SYSTEM.iter().map(Path::new).find(|path| path.exists());
    let path = ca.or(system).ok_or_else(|| {
        Failure::Failed(
            "no certificates of the system found: name trusted ones with --ca".to_owned(),
        )
    })?;
    let failed = |error: String| {
        let shown = path.display();
        Failure::Failed(format!(
            "{shown}: {error}; name certificates in PEM with --ca"
        ))
    };
    let pem = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let items = parse_pem(&pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let trusted: Vec<Certificate<'static>> = items.collect();
    if trusted.is_empty() {
        return Err(failed("no certificate".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::Specific(Arc::new(trusted)))
        .unversioned_rustls_crypto_provider(provider)
        .build())
}
