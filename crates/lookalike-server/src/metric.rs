//! What the service counts, and its text for Prometheus. Labels are operations, statuses, verdicts and names of collections:
//! never ids.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use lookalike_store::{Health, Stats, StoreError};

use crate::operation::Operation;

const OPERATIONS: usize = Operation::ALL.len();

/// Statuses that are told apart; all others count as the last.
const STATUSES: [u16; 18] = [
    200, 201, 202, 204, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 500, 503, 507, 0,
];

/// Upper ends of the buckets of times, in microseconds.
const BUCKETS: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 5_000_000,
];

const VERDICTS: [&str; 3] = ["new", "near", "exact"];

/// Codes of refusals that more room would have avoided.
const SHED: [&str; 10] = [
    "overload",
    "memory",
    "client-memory",
    "queue",
    "waited",
    "writes",
    "exports",
    "stopping",
    "connections",
    "address-connections",
];

/// All counters.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: [[AtomicU64; STATUSES.len()]; OPERATIONS],
    times: [[AtomicU64; BUCKETS.len()]; OPERATIONS],
    micros: [AtomicU64; OPERATIONS],
    documents: [AtomicU64; OPERATIONS],
    verdicts: [AtomicU64; VERDICTS.len()],
    shed: [AtomicU64; SHED.len()],
    /// Open connections.
    pub(crate) connections: AtomicUsize,
    /// Connections that never came to speak TLS with us.
    pub(crate) unsecured: AtomicU64,
    /// Whether the last reading of files of keys and TLS left something as it was.
    pub(crate) reload_failed: AtomicBool,
}

/// Of a collection: what it takes, how it is, and requests that wait to be written.
pub(crate) type Measured = (Stats, Health, usize);

/// What is measured at the moment of asking.
pub(crate) struct Gauges<'a> {
    pub(crate) waiting: usize,
    pub(crate) request_memory: usize,
    /// Whether the clock jumped ahead and is not believed.
    pub(crate) clock_held: bool,
    /// How far time is ahead of the clock.
    pub(crate) time_ahead: Duration,
    /// By name; none of one that could not be opened.
    pub(crate) collections: &'a [(String, Option<Measured>)],
}

impl Metrics {
    /// A request was answered.
    pub(crate) fn request(&self, operation: Operation, status: u16, took: Duration) {
        let operation = operation as usize;
        let column = STATUSES.iter().position(|known| *known == status);
        self.requests[operation][column.unwrap_or(STATUSES.len() - 1)].fetch_add(1, Relaxed);
        let micros = took.as_micros() as u64;
        self.micros[operation].fetch_add(micros, Relaxed);
        if let Some(bucket) = BUCKETS.iter().position(|end| micros <= *end) {
            self.times[operation][bucket].fetch_add(1, Relaxed);
        }
    }

    /// Documents of a request that was carried out.
    pub(crate) fn documents(&self, operation: Operation, count: usize) {
        self.documents[operation as usize].fetch_add(count as u64, Relaxed);
    }

    /// Verdicts that were given.
    pub(crate) fn verdicts<'a>(&self, given: impl Iterator<Item = &'a str>) {
        // Counted here first: threads that count one by one in the same place wait for each other.
        let mut counts = [0; VERDICTS.len()];
        for verdict in given {
            if let Some(place) = VERDICTS.iter().position(|known| *known == verdict) {
                counts[place] += 1;
            }
        }
        for (all, count) in self.verdicts.iter().zip(counts) {
            all.fetch_add(count, Relaxed);
        }
    }

    /// A refusal, if it was one that more room would have avoided.
    pub(crate) fn refused(&self, code: &str) {
        bump(&self.shed, &SHED, code);
    }

    /// The text that Prometheus reads.
    pub(crate) fn text(&self, gauges: &Gauges<'_>) -> String {
        let mut page = Page::default();
        self.requests_text(&mut page);
        page.family(
            "lookalike_documents_total",
            "counter",
            "Documents of requests that were carried out.",
        );
        for operation in Operation::ALL {
            let count = self.documents[operation as usize].load(Relaxed);
            page.some(&[("operation", operation.name())], count);
        }
        page.family(
            "lookalike_verdicts_total",
            "counter",
            "Verdicts that were given.",
        );
        for (verdict, count) in VERDICTS.iter().zip(&self.verdicts) {
            page.line("", &[("verdict", verdict)], count.load(Relaxed));
        }
        page.family(
            "lookalike_refused_total",
            "counter",
            "Requests and connections that were told to come again, by what was short.",
        );
        for (reason, count) in SHED.iter().zip(&self.shed) {
            page.line("", &[("reason", reason)], count.load(Relaxed));
        }
        page.family(
            "lookalike_tls_failures_total",
            "counter",
            "Connections that were closed because TLS could not be agreed on in time.",
        );
        page.line("", &[], self.unsecured.load(Relaxed));
        page.gauge(
            "lookalike_connections",
            "Open connections.",
            self.connections.load(Relaxed),
        );
        page.gauge(
            "lookalike_waiting_requests",
            "Requests that wait for a worker.",
            gauges.waiting,
        );
        page.gauge(
            "lookalike_request_memory_bytes",
            "Memory that requests in progress have taken.",
            gauges.request_memory,
        );
        page.gauge(
            "lookalike_clock_held",
            "1 while the clock is ahead of what went by, and nothing expires by it.",
            gauges.clock_held.into(),
        );
        page.gauge(
            "lookalike_time_ahead_seconds",
            "How far the data is ahead of the clock: documents live that much longer.",
            gauges.time_ahead.as_secs() as usize,
        );
        page.gauge(
            "lookalike_reload_failed",
            "1 while files of keys or TLS say something else than what is in force, because of what is wrong with them.",
            self.reload_failed.load(Relaxed).into(),
        );
        collections_text(&mut page, gauges);
        page.text
    }

    fn requests_text(&self, page: &mut Page) {
        page.family(
            "lookalike_requests_total",
            "counter",
            "Requests by operation and status.",
        );
        for operation in Operation::ALL {
            for (status, count) in STATUSES.iter().zip(&self.requests[operation as usize]) {
                let status = if *status == 0 {
                    "other".to_owned()
                } else {
                    status.to_string()
                };
                let labels = [("operation", operation.name()), ("status", &status)];
                page.some(&labels, count.load(Relaxed));
            }
        }
        page.family(
            "lookalike_request_seconds",
            "histogram",
            "Time from the head of a request to its answer.",
        );
        for operation in Operation::ALL {
            let index = operation as usize;
            let all: u64 = self.requests[index]
                .iter()
                .map(|count| count.load(Relaxed))
                .sum();
            if all == 0 {
                continue;
            }
            let mut within = 0;
            for (end, count) in BUCKETS.iter().zip(&self.times[index]) {
                within += count.load(Relaxed);
                let end = (*end as f64 / 1e6).to_string();
                page.line(
                    "_bucket",
                    &[("operation", operation.name()), ("le", &end)],
                    within.min(all),
                );
            }
            page.line(
                "_bucket",
                &[("operation", operation.name()), ("le", "+Inf")],
                all,
            );
            let seconds = self.micros[index].load(Relaxed) as f64 / 1e6;
            page.line("_sum", &[("operation", operation.name())], seconds);
            page.line("_count", &[("operation", operation.name())], all);
        }
    }
}

/// One more for the place of a word.
fn bump(counts: &[AtomicU64], words: &[&str], word: &str) {
    if let Some(place) = words.iter().position(|known| *known == word) {
        counts[place].fetch_add(1, Relaxed);
    }
}

/// A number of a collection: its name, what it means, and where it is.
type Column = (&'static str, &'static str, fn(&Measured) -> u64);

/// Whether a collection is short of room: for writes, or for the runs that they go to.
pub(crate) fn is_disk_full(health: &Health) -> bool {
    let behind = [&health.flush_error, &health.merge_error];
    health.disk_full
        || behind
            .iter()
            .any(|error| error.as_ref().is_some_and(StoreError::is_disk_full))
}

const COLUMNS: [Column; 10] = [
    (
        "lookalike_collection_documents",
        "Documents, expired ones included until they are dropped.",
        |(stats, ..)| stats.documents,
    ),
    (
        "lookalike_collection_memory_documents",
        "Documents that are not in a run yet.",
        |(stats, ..)| stats.in_memory,
    ),
    (
        "lookalike_collection_dead_documents",
        "Deleted or replaced documents of runs that still take space.",
        |(stats, ..)| stats.dead,
    ),
    ("lookalike_collection_runs", "Runs.", |(stats, ..)| {
        stats.runs.len() as u64
    }),
    (
        "lookalike_collection_resident_bytes",
        "Memory of tables and of documents that are not in a run yet.",
        |(stats, ..)| stats.run_bytes + stats.memory_bytes,
    ),
    ("lookalike_collection_logs", "Log files.", |(stats, ..)| {
        stats.logs as u64
    }),
    (
        "lookalike_collection_waiting_writes",
        "Requests that wait to be written.",
        |(_, _, queued)| *queued as u64,
    ),
    (
        "lookalike_collection_writable",
        "1 while the collection takes writes.",
        |(_, health, _)| u64::from(health.stopped.is_none()),
    ),
    (
        "lookalike_collection_disk_full",
        "1 while there is no room for what is to be written.",
        |(_, health, _)| u64::from(is_disk_full(health)),
    ),
    (
        "lookalike_collection_failing",
        "1 while runs cannot be made or merged.",
        |(_, health, _)| u64::from(health.flush_error.is_some() || health.merge_error.is_some()),
    ),
];

fn collections_text(page: &mut Page, gauges: &Gauges<'_>) {
    page.family(
        "lookalike_collection_open",
        "gauge",
        "1 for a collection that could be opened.",
    );
    for (name, open) in gauges.collections {
        page.line("", &[("collection", name)], u8::from(open.is_some()));
    }
    for (family, help, value) in COLUMNS {
        page.family(family, "gauge", help);
        for (name, open) in gauges.collections {
            if let Some(open) = open {
                page.line("", &[("collection", name)], value(open));
            }
        }
    }
}

/// The text as it grows.
#[derive(Default)]
struct Page {
    text: String,
    family: &'static str,
}

impl Page {
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family = name;
        // A string takes every line.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn gauge(&mut self, name: &'static str, help: &str, value: usize) {
        self.family(name, "gauge", help);
        self.line("", &[], value);
    }

    /// A line, unless it counts nothing.
    fn some(&mut self, labels: &[(&str, &str)], count: u64) {
        if count > 0 {
            self.line("", labels, count);
        }
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let _ = write!(self.text, "{}{suffix}", self.family);
        // Values of labels are our own words and names of a-z, 0-9, - and _: nothing to escape.
        let pairs: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .collect();
        if !pairs.is_empty() {
            let _ = write!(self.text, "{{{}}}", pairs.join(","));
        }
        let _ = writeln!(self.text, " {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_in_its_bucket_and_all_above() {
        let metrics = Metrics::default();
        metrics.request(Operation::Check, 200, Duration::from_micros(300));
        metrics.request(Operation::Check, 200, Duration::from_secs(60));
        metrics.request(Operation::Check, 418, Duration::ZERO);
        metrics.verdicts(["near", "near"].into_iter());
        let text = metrics.text(&Gauges {
            waiting: 3,
            request_memory: 0,
            clock_held: false,
            time_ahead: Duration::ZERO,
            collections: &[],
        });
        for line in [
            "lookalike_requests_total{operation=\"check\",status=\"200\"} 2",
            "lookalike_requests_total{operation=\"check\",status=\"other\"} 1",
            "lookalike_request_seconds_bucket{operation=\"check\",le=\"0.00025\"} 1",
            "lookalike_request_seconds_bucket{operation=\"check\",le=\"0.0005\"} 2",
            "lookalike_request_seconds_bucket{operation=\"check\",le=\"5\"} 2",
            "lookalike_request_seconds_bucket{operation=\"check\",le=\"+Inf\"} 3",
            "lookalike_request_seconds_count{operation=\"check\"} 3",
            "lookalike_verdicts_total{verdict=\"near\"} 2",
            "lookalike_waiting_requests 3",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
    }
}
