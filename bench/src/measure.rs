//! Measurements of the running process, from the Linux `/proc` files.

use std::fs;
use std::time::Instant;

/// Measures CPU and wall seconds of one thread since a start.
pub struct Stopwatch {
    wall: Instant,
    cpu: f64,
}

impl Stopwatch {
    /// Starts measuring.
    #[must_use]
    pub fn start() -> Stopwatch {
        Stopwatch {
            wall: Instant::now(),
            cpu: cpu_seconds(),
        }
    }

    /// Returns the CPU seconds since the start.
    #[must_use]
    pub fn cpu(&self) -> f64 {
        cpu_seconds() - self.cpu
    }

    /// Returns the wall seconds since the start.
    #[must_use]
    pub fn wall(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }
}

/// Returns the CPU seconds of the calling thread so far, or 0 if the kernel does not report them.
#[must_use]
pub fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// Returns the peak resident size of the process in bytes, or 0 if the kernel does not report it.
#[must_use]
pub fn peak_rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Returns the minimum and the median of some figures.
#[must_use]
pub fn best_and_median(mut figures: Vec<f64>) -> (f64, f64) {
    figures.sort_by(f64::total_cmp);
    (figures[0], figures[figures.len() / 2])
}
