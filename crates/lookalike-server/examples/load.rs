//! Generates load for a service in an open loop: requests are due at a fixed rate, whatever became of earlier ones, and each is timed from
//! when it was due. So a service that stalls does not get fewer requests (no coordinated omission).
//!
//! ```text
//! load codes N FILE                                     N fingerprints as raw numbers, for `lookalike store load`
//! load ADDRESS KIND RATE SECONDS CONNECTIONS STORED [PID] [HALF-OPEN] [RETRY-MS]
//! load ADDRESS soak RATE SECONDS CONNECTIONS STORED PID DATA
//! ```
//!
//! KIND: `healthz`; `check`, `check-and-insert` (one fingerprint, JSON); `check-batch` (100 fingerprints, compact), `check-batch-json` (the
//! same as JSON); `check-text`, `check-html` (about 5 kB). Half of the fingerprints differ from a stored one in up to four bits; the other
//! half are unrelated. With a PID, the output includes the processor time of the service for each answered request. The output is one line
//! of JSON. A refused connection is retried after the time that the refusal names, or after RETRY-MS. With SHARED_BITS=N in the
//! environment, all fingerprints, stored and requested, agree in their first N bits (except for flipped ones), to produce a hot bucket.
//!
//! `soak` mixes checks (half), inserts after a check and replacements of documents that live for two minutes (a third), queries and
//! deletes. It reports six times the resources of the service (memory, descriptors, bytes in DATA), and the response times in each sixth.
//! If the whole machine or both processes stop for more than a second, due times are shifted by the length of the stop.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measuring tool, not a library"
)]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};

fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Mask of the bits in which all fingerprints agree.
static SHARED: LazyLock<u64> = LazyLock::new(|| {
    let bits = std::env::var("SHARED_BITS").map_or(0, |bits| bits.parse().unwrap());
    !u64::MAX.checked_shr(bits).unwrap_or(0)
});

/// Returns the fingerprint for a number.
fn fingerprint(n: u64) -> u64 {
    mix(n) & !*SHARED | 0xa5a5_a5a5_a5a5_a5a5 & *SHARED
}

/// Returns the fingerprint that the n-th request asks for.
fn code(n: u64, stored: u64) -> u64 {
    let dice = mix(n ^ 1 << 50);
    if dice & 1 == 0 {
        return fingerprint(dice ^ 1 << 51);
    }
    let flips = (0..dice >> 1 & 3).fold(0, |flips, at| flips ^ 1 << (mix(dice ^ at) & 63));
    fingerprint(mix(dice) % stored.max(1)) ^ flips
}

fn words(n: u64) -> String {
    let words = (0..800).map(|at| format!("w{:x} ", mix(n * 1000 + at) % 0xffff));
    words.collect()
}

struct Plan {
    address: String,
    kind: String,
    stored: u64,
    begin: Instant,
    gap: Duration,
    all: u64,
    next: AtomicU64,
    /// Total microseconds by which stops have shifted due times.
    stopped: AtomicU64,
    /// Delay after a refusal; if `None`, the delay that the refusal names.
    retry: Option<Duration>,
    /// Counts of answers below 400, of refusals with 503, and of everything else.
    done: [AtomicU64; 3],
}

/// Lifetime of the documents of a soak in seconds.
const LIFE_SECONDS: u64 = 120;
/// Number of parts of a soak.
const PARTS: u64 = 6;

impl Plan {
    fn request(&self, n: u64) -> Vec<u8> {
        let (path, kind, body) = match self.kind.as_str() {
            "healthz" => return b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
            "check" => {
                let body = format!("{{\"fingerprint\":\"{:016x}\"}}", code(n, self.stored));
                ("check", "json", body.into_bytes())
            }
            "check-and-insert" => {
                // Different ids in every run of the tool.
                let salt = u64::from(std::process::id()) << 32;
                let body = format!(
                    "{{\"id\":\"{:016x}\",\"fingerprint\":\"{:016x}\"}}",
                    n | salt,
                    code(n ^ salt, self.stored)
                );
                ("check-and-insert?limit=1", "json", body.into_bytes())
            }
            "check-batch" => {
                let codes = (0..100).flat_map(|at| code(n * 100 + at, self.stored).to_le_bytes());
                ("check", "vnd.lookalike.packed", codes.collect())
            }
            "check-batch-json" => {
                let codes = (0..100).map(|at| {
                    let code = code(n * 100 + at, self.stored);
                    format!("{{\"fingerprint\":\"{code:016x}\"}}")
                });
                let all: Vec<String> = codes.collect();
                ("check", "json", format!("[{}]", all.join(",")).into_bytes())
            }
            "soak" => {
                let code = code(n, self.stored);
                let document = |n: u64| {
                    format!(
                        "{{\"id\":\"soak {n}\",\"fingerprint\":\"{code:016x}\",\"ttl_seconds\":{LIFE_SECONDS}}}"
                    )
                };
                let asked = format!("{{\"fingerprint\":\"{code:016x}\"}}");
                let (path, body) = match n % 20 {
                    0..=9 => ("check", asked),
                    10..=15 => ("check-and-insert?insert=always&limit=1", document(n)),
                    16 | 17 => ("query", asked),
                    18 => (
                        "delete",
                        format!("{{\"id\":\"soak {}\"}}", n.saturating_sub(2007)),
                    ),
                    _ => ("insert", document(n.saturating_sub(4008))),
                };
                (path, "json", body.into_bytes())
            }
            "check-text" => (
                "check",
                "json",
                format!("{{\"text\":\"{}\"}}", words(n)).into_bytes(),
            ),
            _ => {
                let page = format!(
                    "<html><title>x</title><body><nav><a href=x>home</a></nav><p>{}</p></body>",
                    words(n)
                );
                (
                    "check",
                    "json",
                    format!("{{\"html\":\"{page}\"}}").into_bytes(),
                )
            }
        };
        let length = body.len();
        let mut request = format!(
            "POST /v1/collections/pages/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/{kind}\r\nContent-Length: {length}\r\n\r\n"
        )
        .into_bytes();
        request.extend(body);
        request
    }

    /// Runs one connection, which repeatedly takes the next request that is due.
    async fn connection(self: Arc<Self>) -> Vec<(u64, u32)> {
        let mut taken = Vec::with_capacity(1024);
        let mut stream = None;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let n = self.next.fetch_add(1, Relaxed);
            if n >= self.all {
                return taken;
            }
            let stopped = self.stopped.load(Relaxed);
            let due = self.begin + self.gap.mul_f64(n as f64) + Duration::from_micros(stopped);
            sleep_until(due).await;
            let request = self.request(n);
            let asked = timeout(
                Duration::from_secs(20),
                ask(&mut stream, &self.address, &request, &mut buffer),
            );
            let answer = asked.await.unwrap_or(None);
            let status = answer.map(|(status, _)| status);
            let place = match status {
                Some(200..=299) => 0,
                Some(503) => 1,
                _ => 2,
            };
            self.done[place].fetch_add(1, Relaxed);
            if place == 0 && self.stopped.load(Relaxed) == stopped {
                taken.push((n, due.elapsed().as_micros() as u32));
            }
            if status.is_none() || status == Some(503) {
                // Retry after the time named in the refusal, with some variation so that connections do not retry all at once.
                let told = answer.and_then(|(_, seconds)| seconds).unwrap_or(0.1);
                let wait = self.retry.unwrap_or(Duration::from_secs_f64(told));
                sleep(wait.mul_f64(1.0 + (mix(n) % 64) as f64 / 256.0)).await;
            }
        }
    }

    /// Records stops of the machine until all requests are done.
    async fn watch(self: Arc<Self>) {
        const TICK: Duration = Duration::from_millis(100);
        while self.next.load(Relaxed) < self.all {
            let begun = Instant::now();
            sleep(TICK).await;
            let late = begun.elapsed().saturating_sub(TICK);
            if self.kind == "soak" && late > Duration::from_secs(1) {
                self.stopped.fetch_add(late.as_micros() as u64, Relaxed);
            }
        }
    }
}

/// Returns percentiles of times in milliseconds.
fn shares(mut micros: Vec<u32>) -> [f64; 4] {
    micros.sort_unstable();
    [0.5, 0.99, 0.999, 1.0].map(|share| {
        let at = (micros.len() as f64 * share) as usize;
        let found = micros.get(at).or(micros.last());
        found.map_or(0.0, |micros| f64::from(*micros) / 1000.0)
    })
}

/// Returns the total size in bytes and the number of all files below a directory.
fn files(folder: &std::path::Path) -> (u64, u64) {
    let (mut bytes, mut count) = (0, 0);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // A file that was removed meanwhile does not count.
        match entry.metadata() {
            Ok(found) if found.is_dir() => {
                let below = files(&entry.path());
                (bytes, count) = (bytes + below.0, count + below.1);
            }
            Ok(found) => (bytes, count) = (bytes + found.len(), count + 1),
            Err(_) => {}
        }
    }
    (bytes, count)
}

/// Reports the resources of the service at the beginning of each part and at the end.
async fn sample(plan: Arc<Plan>, seconds: u64, pid: String, data: String) {
    for part in 0..=PARTS {
        let after = Duration::from_secs(seconds * part / PARTS);
        loop {
            let due = plan.begin + after + Duration::from_micros(plan.stopped.load(Relaxed));
            if due <= Instant::now() {
                break;
            }
            sleep_until(due).await;
        }
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        let (bytes, count) = files(std::path::Path::new(&data));
        let line = serde_json::json!({
            "at_seconds": after.as_secs(), "resident_mib": measured(Some(&pid)).map(|found| found.1 >> 20),
            "descriptors": descriptors, "data_mib": bytes >> 20, "files": count,
            "stopped_seconds": plan.stopped.load(Relaxed) / 1_000_000,
        });
        println!("{line}");
    }
}

/// Sends a request. Returns the status of the answer and the seconds in its Retry-After, or `None` if the connection broke.
async fn ask(
    stream: &mut Option<TcpStream>,
    address: &str,
    request: &[u8],
    buffer: &mut [u8],
) -> Option<(u16, Option<f64>)> {
    if stream.is_none() {
        let new = TcpStream::connect(address).await.ok()?;
        new.set_nodelay(true).ok()?;
        *stream = Some(new);
    }
    let open = stream.as_mut()?;
    let answer = async {
        open.write_all(request).await.ok()?;
        let (mut have, mut wanted) = (0, usize::MAX);
        let (mut retry, mut closes) = (None, false);
        while have < wanted {
            let count = open.read(&mut buffer[have..]).await.ok()?;
            if count == 0 {
                return None;
            }
            have += count;
            if wanted == usize::MAX
                && let Some(end) = buffer[..have]
                    .windows(4)
                    .position(|four| four == b"\r\n\r\n")
            {
                let head = std::str::from_utf8(&buffer[..end])
                    .ok()?
                    .to_ascii_lowercase();
                let length = head.split("content-length:").nth(1)?;
                closes = head.contains("\r\nconnection: close");
                let after = head.split("retry-after:").nth(1);
                retry = after.and_then(|after| after.split("\r\n").next()?.trim().parse().ok());
                wanted = end + 4 + length.split("\r\n").next()?.trim().parse::<usize>().ok()?;
            }
        }
        let status = std::str::from_utf8(&buffer[9..12]).ok()?.parse().ok()?;
        Some((status, retry, closes))
    };
    let answer = answer.await;
    // A refused request leaves its connection open; a refused connection is closed.
    if answer.is_none_or(|(.., closes)| closes) {
        *stream = None;
    }
    answer.map(|(status, retry, _)| (status, retry))
}

/// Returns the processor time in seconds and the resident memory in bytes of a process.
fn measured(pid: Option<&str>) -> Option<(f64, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid?)).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some((ticks / 100.0, fields.get(21)?.parse::<u64>().ok()? * 4096))
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    if words[0] == "codes" {
        let codes: Vec<u8> = (0..number(1))
            .flat_map(|n| fingerprint(n).to_le_bytes())
            .collect();
        return std::fs::write(&words[2], codes).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (rate, seconds, connections) = (number(2), number(3), number(4) as usize);
        let pid = words.get(6).map(String::as_str);
        let mut half_open = Vec::new();
        let is_soak = words[1] == "soak";
        let count = words.get(7).filter(|_| !is_soak);
        for _ in 0..count.map_or(0, |count| count.parse().unwrap()) {
            if let Ok(mut stream) = TcpStream::connect(&words[0]).await {
                let _ = stream.write_all(b"POST /v1/collections/pages/check HTTP/1.1\r\nHost: loc").await;
                half_open.push(stream);
            }
        }
        let before = measured(pid);
        let plan = Arc::new(Plan {
            address: words[0].clone(),
            kind: words[1].clone(),
            stored: number(5),
            begin: Instant::now() + Duration::from_millis(100),
            gap: Duration::from_secs_f64(1.0 / rate as f64),
            all: rate * seconds,
            next: AtomicU64::new(0),
            stopped: AtomicU64::new(0),
            retry: words.get(8).map(|wait| Duration::from_millis(wait.parse().unwrap())),
            done: Default::default(),
        });
        let watch = tokio::spawn(Arc::clone(&plan).watch());
        let sampler = is_soak.then(|| tokio::spawn(sample(Arc::clone(&plan), seconds, words[6].clone(), words[7].clone())));
        let tasks = (0..connections).map(|_| tokio::spawn(Arc::clone(&plan).connection()));
        let mut times = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            times.extend(task.await.unwrap());
        }
        let took = plan.begin.elapsed().as_secs_f64() - plan.stopped.load(Relaxed) as f64 / 1e6;
        watch.await.unwrap();
        if let Some(sampler) = sampler {
            sampler.await.unwrap();
            for part in 0..PARTS {
                let ours = times.iter().filter(|(n, _)| n * PARTS / plan.all == part);
                let [half, p99, p999, max] = shares(ours.map(|(_, micros)| *micros).collect());
                let line = serde_json::json!({"part": part, "p50_ms": half, "p99_ms": p99, "p999_ms": p999, "max_ms": max});
                println!("{line}");
            }
        }
        let [half, p99, p999, max] = shares(times.into_iter().map(|(_, micros)| micros).collect());
        let [done, refused, failed] = [0, 1, 2].map(|at: usize| plan.done[at].load(Relaxed));
        let after = measured(pid);
        let cpu = before.zip(after).map(|(before, after)| (after.0 - before.0) * 1e6 / done.max(1) as f64);
        let line = serde_json::json!({
            "kind": words[1], "rate": rate, "connections": connections, "half_open": half_open.len(),
            "answered_a_second": done as f64 / took, "refused": refused, "failed": failed,
            "p50_ms": half, "p99_ms": p99, "p999_ms": p999, "max_ms": max,
            "cpu_micros_a_request": cpu, "resident_mib": after.map(|after| after.1 >> 20),
        });
        println!("{line}");
    });
}
