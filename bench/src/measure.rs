//! Figures of the running process, from the Linux `/proc` files.

use std::fs;
use std::time::Instant;

/// CPU and wall seconds between two moments of one thread.
pub struct Stopwatch {
    wall: Instant,
    cpu: f64,
}

impl Stopwatch {
    /// Start to count.
    #[must_use]
    pub fn start() -> Stopwatch {
        Stopwatch {
            wall: Instant::now(),
            cpu: cpu_seconds(),
        }
    }

    /// CPU seconds since the start.
    #[must_use]
    pub fn cpu(&self) -> f64 {
        cpu_seconds() - self.cpu
    }

    /// Wall seconds since the start.
    #[must_use]
    pub fn wall(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }
}

/// CPU seconds of the calling thread so far; 0 where the kernel does not tell.
#[must_use]
pub fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// The largest resident size of the process so far, in bytes; 0 where the kernel does not tell.
#[must_use]
pub fn peak_rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The least and the middle of some figures: (best, median).
#[must_use]
pub fn best_and_median(mut figures: Vec<f64>) -> (f64, f64) {
    figures.sort_by(f64::total_cmp);
    (figures[0], figures[figures.len() / 2])
}
