//! Metrics of the service, and their text for Prometheus. Labels are operations, statuses, verdicts and names of collections, never ids.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use lookalike_store::{CollectionHealth, CollectionStats};

use crate::operation::ApiOperation;

const OPERATIONS: usize = ApiOperation::COUNT;

/// Statuses that are counted separately; all others are counted under the last.
const STATUSES: [u16; 18] = [
    200, 201, 202, 204, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 500, 503, 507, 0,
];

/// Upper bounds of the histogram's buckets in microseconds.
const BUCKETS: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 5_000_000,
];

// The words of `verdict_name`.
const VERDICTS: [&str; 4] = ["new", "near", "same-fingerprint", "exact"];

/// Outcomes of resketch jobs.
const JOB_ENDS: [&str; 3] = ["done", "failed", "cancelled"];

/// Codes of refusals that more resources would have avoided.
const SHED: [&str; 12] = [
    "overload",
    "memory",
    "client-memory",
    "queue",
    "waited",
    "writes",
    "exports",
    "snapshots",
    "stopping",
    "connections",
    "address-connections",
    "out-of-files",
];

/// All counters of the service.
#[derive(Debug, Default)]
pub(crate) struct ServiceMetrics {
    requests: [[AtomicU64; STATUSES.len()]; OPERATIONS],
    times: [[AtomicU64; BUCKETS.len()]; OPERATIONS],
    micros: [AtomicU64; OPERATIONS],
    documents: [AtomicU64; OPERATIONS],
    verdicts: [AtomicU64; VERDICTS.len()],
    /// Verdicts on paragraphs.
    paragraphs: [AtomicU64; VERDICTS.len()],
    resketches: [AtomicU64; JOB_ENDS.len()],
    shed: [AtomicU64; SHED.len()],
    /// Open connections.
    pub(crate) connections: AtomicUsize,
    /// Connections that never completed a TLS handshake.
    pub(crate) unsecured: AtomicU64,
    /// True if the last reload found an invalid file of keys or certificates.
    pub(crate) reload_failed: AtomicBool,
}

/// Adds verdicts to their counters.
fn count_verdicts<'a>(all: &[AtomicU64; VERDICTS.len()], given: impl Iterator<Item = &'a str>) {
    // Count locally first: threads that increment the same counter one by one slow each other down.
    let mut counts = [0; VERDICTS.len()];
    for verdict in given {
        if let Some(place) = VERDICTS.iter().position(|known| *known == verdict) {
            counts[place] += 1;
        }
    }
    for (all, count) in all.iter().zip(counts) {
        all.fetch_add(count, Relaxed);
    }
}

/// Measurements of a collection.
#[derive(Debug)]
pub(crate) struct CollectionMeasurement {
    pub(crate) stats: CollectionStats,
    pub(crate) health: CollectionHealth,
    /// Number of requests that wait to be written.
    pub(crate) queued: usize,
}

/// Values that are measured when metrics are requested.
pub(crate) struct GaugeValues<'a> {
    pub(crate) waiting: usize,
    pub(crate) request_memory: usize,
    /// True if the clock jumped ahead and is not trusted.
    pub(crate) clock_held: bool,
    /// Lead of the service's time over the clock.
    pub(crate) time_ahead: Duration,
    /// Measurements of each collection by name; `None` for one that could not be opened.
    pub(crate) collections: &'a [(String, Option<CollectionMeasurement>)],
}

impl ServiceMetrics {
    /// Counts a request that was answered.
    pub(crate) fn request(&self, operation: ApiOperation, status: u16, took: Duration) {
        // `Relaxed` is enough for all counters: nothing is concluded from the order of two of them.
        let operation = operation as usize;
        // Arrays of atomics instead of a map: requests take no lock, and the set of series is fixed.
        let column = STATUSES.iter().position(|known| *known == status);
        self.requests[operation][column.unwrap_or(STATUSES.len() - 1)].fetch_add(1, Relaxed);
        let micros = took.as_micros() as u64;
        self.micros[operation].fetch_add(micros, Relaxed);
        // Counted in a single bucket; the text has cumulative counts, as Prometheus expects.
        // Times beyond the last bound are in no bucket; `+Inf` is written as the number of all requests.
        if let Some(bucket) = BUCKETS.iter().position(|end| micros <= *end) {
            self.times[operation][bucket].fetch_add(1, Relaxed);
        }
    }

    /// Counts the documents of a request that was carried out.
    pub(crate) fn documents(&self, operation: ApiOperation, count: usize) {
        self.documents[operation as usize].fetch_add(count as u64, Relaxed);
    }

    /// Counts verdicts.
    pub(crate) fn verdicts<'a>(&self, given: impl Iterator<Item = &'a str>) {
        count_verdicts(&self.verdicts, given);
    }

    /// Counts verdicts on paragraphs.
    pub(crate) fn paragraphs<'a>(&self, given: impl Iterator<Item = &'a str>) {
        count_verdicts(&self.paragraphs, given);
    }

    /// Counts a finished resketch job by its outcome.
    pub(crate) fn resketched(&self, end: &str) {
        bump(&self.resketches, &JOB_ENDS, end);
    }

    /// Counts a refusal if more resources would have avoided it.
    pub(crate) fn refused(&self, code: &str) {
        bump(&self.shed, &SHED, code);
    }

    /// Returns the text for Prometheus.
    pub(crate) fn text(&self, gauges: &GaugeValues<'_>) -> String {
        let mut page = MetricsText::default();
        self.requests_text(&mut page);
        page.family(
            "lookalike_documents_total",
            "counter",
            "Documents of requests that were carried out.",
        );
        for operation in ApiOperation::all() {
            let count = self.documents[operation as usize].load(Relaxed);
            page.nonzero(&[("operation", operation.name())], count);
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
            "lookalike_paragraphs_total",
            "counter",
            "Paragraphs that were looked up, by verdict.",
        );
        for (verdict, count) in VERDICTS.iter().zip(&self.paragraphs) {
            page.line("", &[("verdict", verdict)], count.load(Relaxed));
        }
        page.family(
            "lookalike_resketches_total",
            "counter",
            "Jobs that sketched a collection anew, by how they ended.",
        );
        for (end, count) in JOB_ENDS.iter().zip(&self.resketches) {
            page.line("", &[("end", end)], count.load(Relaxed));
        }
        page.family(
            "lookalike_refused_total",
            "counter",
            "Requests and connections that were refused as busy, by exhausted resource.",
        );
        for (reason, count) in SHED.iter().zip(&self.shed) {
            page.line("", &[("reason", reason)], count.load(Relaxed));
        }
        page.family(
            "lookalike_tls_failures_total",
            "counter",
            "Connections that were closed because the TLS handshake failed.",
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
            "1 while the clock is not trusted and nothing expires.",
            gauges.clock_held.into(),
        );
        page.gauge(
            "lookalike_time_ahead_seconds",
            "Lead of the data over the clock: documents live that much longer.",
            gauges.time_ahead.as_secs() as usize,
        );
        page.gauge(
            "lookalike_reload_failed",
            "1 while a file of keys or TLS is invalid and not in force.",
            self.reload_failed.load(Relaxed).into(),
        );
        collections_text(&mut page, gauges);
        page.text
    }

    fn requests_text(&self, page: &mut MetricsText) {
        page.family(
            "lookalike_requests_total",
            "counter",
            "Requests by operation and status.",
        );
        for operation in ApiOperation::all() {
            for (status, count) in STATUSES.iter().zip(&self.requests[operation as usize]) {
                let status = if *status == 0 {
                    "other".to_owned()
                } else {
                    status.to_string()
                };
                let labels = [("operation", operation.name()), ("status", &status)];
                // Most of the hundreds of pairs of operation and status never occur.
                page.nonzero(&labels, count.load(Relaxed));
            }
        }
        page.family(
            "lookalike_request_seconds",
            "histogram",
            "Time from the head of a request to its answer.",
        );
        for operation in ApiOperation::all() {
            let index = operation as usize;
            let all: u64 = self.requests[index]
                .iter()
                .map(|count| count.load(Relaxed))
                .sum();
            if all == 0 {
                continue;
            }
            // Other threads count requests meanwhile, so the sum of buckets may exceed the total. A bucket beyond `+Inf` would not be a histogram.
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

/// Increments the counter of a word.
fn bump(counts: &[AtomicU64], words: &[&str], word: &str) {
    if let Some(place) = words.iter().position(|known| *known == word) {
        counts[place].fetch_add(1, Relaxed);
    }
}

/// A gauge that each collection has.
struct CollectionGauge {
    name: &'static str,
    help: &'static str,
    value: fn(&CollectionMeasurement) -> u64,
}

const COLLECTION_GAUGES: [CollectionGauge; 11] = [
    CollectionGauge {
        name: "lookalike_collection_documents",
        help: "Documents that live.",
        value: |collection| collection.stats.documents,
    },
    CollectionGauge {
        name: "lookalike_collection_stored_documents",
        help: "Documents that take space, deleted and expired ones included until they are dropped.",
        value: |collection| collection.stats.stored,
    },
    CollectionGauge {
        name: "lookalike_collection_memory_documents",
        help: "Documents that are not in a run yet.",
        value: |collection| collection.stats.in_memory,
    },
    CollectionGauge {
        name: "lookalike_collection_tombstones",
        help: "Deleted or replaced documents of runs that still take space.",
        value: |collection| collection.stats.tombstones,
    },
    CollectionGauge {
        name: "lookalike_collection_runs",
        help: "Runs.",
        value: |collection| collection.stats.runs.len() as u64,
    },
    CollectionGauge {
        name: "lookalike_collection_resident_bytes",
        help: "Memory of tables and of documents that are not in a run yet.",
        value: |collection| collection.stats.run_bytes + collection.stats.memory_bytes,
    },
    CollectionGauge {
        name: "lookalike_collection_logs",
        help: "Log files.",
        value: |collection| collection.stats.logs as u64,
    },
    CollectionGauge {
        name: "lookalike_collection_waiting_writes",
        help: "Requests that wait to be written.",
        value: |collection| collection.queued as u64,
    },
    CollectionGauge {
        name: "lookalike_collection_writable",
        help: "1 while the collection takes writes.",
        value: |collection| u64::from(collection.health.stopped.is_none()),
    },
    CollectionGauge {
        name: "lookalike_collection_disk_full",
        help: "1 while the disk is full.",
        value: |collection| u64::from(collection.health.disk_full),
    },
    CollectionGauge {
        name: "lookalike_collection_failing",
        help: "1 while flushes or merges fail.",
        value: |collection| {
            u64::from(
                collection.health.flush_error.is_some() || collection.health.merge_error.is_some(),
            )
        },
    },
];

fn collections_text(page: &mut MetricsText, gauges: &GaugeValues<'_>) {
    page.family(
        "lookalike_collection_open",
        "gauge",
        "1 for a collection that could be opened.",
    );
    for (name, open) in gauges.collections {
        page.line("", &[("collection", name)], u8::from(open.is_some()));
    }
    for gauge in COLLECTION_GAUGES {
        page.family(gauge.name, "gauge", gauge.help);
        for (name, open) in gauges.collections {
            if let Some(open) = open {
                page.line("", &[("collection", name)], (gauge.value)(open));
            }
        }
    }
}

/// The text while it is being written.
#[derive(Default)]
struct MetricsText {
    text: String,
    family: &'static str,
}

impl MetricsText {
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family = name;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn gauge(&mut self, name: &'static str, help: &str, value: usize) {
        self.family(name, "gauge", help);
        self.line("", &[], value);
    }

    /// Writes a line unless the count is zero.
    fn nonzero(&mut self, labels: &[(&str, &str)], count: u64) {
        if count > 0 {
            self.line("", labels, count);
        }
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let _ = write!(self.text, "{}{suffix}", self.family);
        // Values of labels are the service's own words, or names of a-z, 0-9, - and _, so there is nothing to escape.
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
    fn refusals_for_lack_of_files_were_not_counted() {
        let metrics = ServiceMetrics::default();
        metrics.refused("out-of-files");
        // The collection is to blame, not the resources.
        metrics.refused("replaced");
        let counts: Vec<u64> = metrics
            .shed
            .iter()
            .map(|count| count.load(Relaxed))
            .collect();
        assert_eq!(counts, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_request_is_counted_in_its_bucket_and_all_above() {
        let metrics = ServiceMetrics::default();
        metrics.request(ApiOperation::Check, 200, Duration::from_micros(300));
        metrics.request(ApiOperation::Check, 200, Duration::from_secs(60));
        metrics.request(ApiOperation::Check, 418, Duration::ZERO);
        metrics.verdicts(["near", "near"].into_iter());
        let text = metrics.text(&GaugeValues {
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
