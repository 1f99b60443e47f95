//! Resources of the machine, and the share that this process took. Linux tells through `/proc`; elsewhere the answers are
//! cautious guesses.

use std::fs;

/// Memory limit when none is given: half of the memory.
pub(crate) fn default_memory() -> u64 {
    memory() / 2
}

/// The machine's memory, or the control group's.
pub(crate) fn memory() -> u64 {
    const UNKNOWN: u64 = 8 << 30;
    let machine = meminfo("MemTotal:").unwrap_or(UNKNOWN);
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        // `max` where there is no limit, which is no number.
        .and_then(|text| text.trim().parse().ok());
    group.map_or(machine, |group: u64| group.min(machine))
}

/// Processors that this process may use.
pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Largest resident size of this process so far, in bytes; 0 where the system does not tell.
pub(crate) fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&status, "VmHWM:").unwrap_or(0)
}

fn meminfo(name: &str) -> Option<u64> {
    field(&fs::read_to_string("/proc/meminfo").ok()?, name)
}

/// The value of a line `NAME  123 kB`, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
