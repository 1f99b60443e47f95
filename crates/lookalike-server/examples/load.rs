//! Load for a service, in an open loop: requests are due at a fixed rate whatever became of the earlier ones, and each is
//! timed from the moment it was due, so that a service which stands still is not asked less (no coordinated omission).
//!
//! ```text
//! load codes N FILE                                     N fingerprints as raw numbers, for `lookalike store load`
//! load ADDRESS KIND RATE SECONDS CONNECTIONS STORED [PID] [HALF-OPEN]
//! ```
//!
//! KIND: `healthz`; `check`, `check-and-insert` (one fingerprint, JSON); `check-batch` (100 fingerprints, compact);
//! `check-text`, `check-html` (about 5 kB). Half of the fingerprints are up to four bits from a stored one, half are not.
//! With a PID, the processor time of the service for each answered request. One line of JSON comes out.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measuring tool, not a library"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
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

/// What the n-th request asks for.
fn code(n: u64, stored: u64) -> u64 {
    let dice = mix(n ^ 1 << 50);
    if dice & 1 == 0 {
        return mix(dice ^ 1 << 51);
    }
    let flips = (0..dice >> 1 & 3).fold(0, |flips, at| flips ^ 1 << (mix(dice ^ at) & 63));
    mix(mix(dice) % stored.max(1)) ^ flips
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
    /// Answers below 400, refusals with 503, everything else.
    done: [AtomicU64; 3],
}

impl Plan {
    fn request(&self, n: u64) -> Vec<u8> {
        let (path, kind, body) = match self.kind.as_str() {
            "healthz" => return b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
            "check" => {
                let body = format!("{{\"fingerprint\":\"{:016x}\"}}", code(n, self.stored));
                ("check", "json", body.into_bytes())
            }
            "check-and-insert" => {
                // Others every time the tool runs.
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

    /// One connection: takes the next request that is due, again and again.
    async fn connection(self: Arc<Self>, times: usize) -> Vec<u32> {
        let mut taken = Vec::with_capacity(times);
        let mut stream = None;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let n = self.next.fetch_add(1, Relaxed);
            if n >= self.all {
                return taken;
            }
            let due = self.begin + self.gap.mul_f64(n as f64);
            sleep_until(due).await;
            let request = self.request(n);
            let asked = timeout(
                Duration::from_secs(20),
                ask(&mut stream, &self.address, &request, &mut buffer),
            );
            let status = asked.await.unwrap_or(None);
            let place = match status {
                Some(200..=299) => 0,
                Some(503) => 1,
                _ => 2,
            };
            self.done[place].fetch_add(1, Relaxed);
            if place == 0 {
                taken.push(due.elapsed().as_micros() as u32);
            }
            if status.is_none() || status == Some(503) {
                stream = None;
                // Whoever is told to come again does not come at once.
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// The status of an answer; none when the connection broke.
async fn ask(
    stream: &mut Option<TcpStream>,
    address: &str,
    request: &[u8],
    buffer: &mut [u8],
) -> Option<u16> {
    if stream.is_none() {
        let new = TcpStream::connect(address).await.ok()?;
        new.set_nodelay(true).ok()?;
        *stream = Some(new);
    }
    let open = stream.as_mut()?;
    let answer = async {
        open.write_all(request).await.ok()?;
        let (mut have, mut wanted) = (0, usize::MAX);
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
                wanted = end + 4 + length.split("\r\n").next()?.trim().parse::<usize>().ok()?;
            }
        }
        std::str::from_utf8(&buffer[9..12]).ok()?.parse().ok()
    };
    let status = answer.await;
    if status.is_none() {
        *stream = None;
    }
    status
}

/// Processor seconds and resident bytes of a process.
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
        let codes: Vec<u8> = (0..number(1)).flat_map(|n| mix(n).to_le_bytes()).collect();
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
        for _ in 0..words.get(7).map_or(0, |count| count.parse().unwrap()) {
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
            done: Default::default(),
        });
        let tasks = (0..connections).map(|_| tokio::spawn(Arc::clone(&plan).connection(1024)));
        let mut times = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            times.extend(task.await.unwrap());
        }
        let took = plan.begin.elapsed().as_secs_f64();
        times.sort_unstable();
        let share = |part: f64| times.get((times.len() as f64 * part) as usize).or(times.last()).map_or(0.0, |micros| f64::from(*micros) / 1000.0);
        let [done, refused, failed] = [0, 1, 2].map(|at: usize| plan.done[at].load(Relaxed));
        let after = measured(pid);
        let cpu = before.zip(after).map(|(before, after)| (after.0 - before.0) * 1e6 / done.max(1) as f64);
        let line = serde_json::json!({
            "kind": words[1], "rate": rate, "connections": connections, "half_open": half_open.len(),
            "answered_a_second": done as f64 / took, "refused": refused, "failed": failed,
            "p50_ms": share(0.5), "p99_ms": share(0.99), "p999_ms": share(0.999), "max_ms": share(1.0),
            "cpu_micros_a_request": cpu, "resident_mib": after.map(|after| after.1 >> 20),
        });
        println!("{line}");
    });
}
