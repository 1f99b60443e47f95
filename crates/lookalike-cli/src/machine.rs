//! Resources of the machine, and their use by this process. On Linux they come from `/proc`; elsewhere they are cautious guesses.

use std::fs;
use std::path::Path;

use lookalike_batch::JobLimits;

/// Returns the default memory limit: half of the memory.
pub(crate) fn default_memory() -> u64 {
    memory() / 2
}

/// Returns the memory of the machine, or the limit of its control group if that is lower.
pub(crate) fn memory() -> u64 {
    // For systems without /proc.
    const UNKNOWN: u64 = 8 << 30;
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = field(&meminfo, "MemTotal:").unwrap_or(UNKNOWN);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_memory(&groups, &|path| fs::read_to_string(path).ok());
    group.map_or(machine, |group| group.min(machine))
}

/// Returns the smallest limit of the control groups of a process and their parents, for both versions (cgroups(7)).
fn group_memory(groups: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers) = (parts.next(), parts.next().unwrap_or_default());
        let (root, file) = match (number, controllers) {
            // Version 2 has one hierarchy, with the number 0 and without names of controllers.
            (Some("0"), "") => ("/sys/fs/cgroup", "memory.max"),
            (_, controllers) if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        let group = Path::new(parts.next().unwrap_or_default());
        // Up to the root, which in a container is the container's group, whatever its name outside.
        let files = group.ancestors().map(|group| {
            let group = group.display().to_string();
            format!("{root}{}/{file}", group.trim_end_matches('/'))
        });
        files.collect()
    });
    // Without a limit the file contains `max`, which does not parse as a number.
    limits
        .filter_map(|path| read(&path)?.trim().parse().ok())
        // A process is bound by every group above it.
        .min()
}

/// Returns limits for a job: those given, or else half of the memory, and as many threads as there are processors and room for their buffers.
pub(crate) fn limits(threads: Option<usize>, memory: Option<u64>) -> JobLimits {
    let memory = memory.unwrap_or_else(default_memory);
    let threads = threads.unwrap_or_else(|| processors().min(threads_within(memory)));
    JobLimits::default().threads(threads).memory(memory)
}

/// Returns the number of processors that this process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of threads whose buffers leave most of the memory to a job. A container often has little memory on a machine of many processors.
fn threads_within(memory: u64) -> usize {
    // Reading takes about 10 MiB a thread, and an archive 150 MiB before the first.
    const SHARED: u64 = 160 << 20;
    const THREAD: u64 = 16 << 20;
    // Four at least: jobs that read no documents take less for each.
    (memory.saturating_sub(SHARED) / THREAD).clamp(4, 1024) as usize
}

/// Returns true if this process ignores a signal because its caller did: `nohup` ignores SIGHUP, and a shell SIGINT for a job in the background.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is signal 1.
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Returns the peak resident size of this process in bytes, or 0 if the system does not report it.
pub(crate) fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&status, "VmHWM:").unwrap_or(0)
}

/// Returns the value of a line `NAME  123 kB`, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_processors_with_little_memory_refused_every_job() {
        let mib = |mib: u64| threads_within(mib << 20);
        assert_eq!([0, 64, 256, 512, 4096].map(mib), [4, 4, 6, 22, 246]);
    }

    #[test]
    fn limits_of_groups_below_the_root_were_not_seen() {
        let read = |path: &str| match path {
            "/sys/fs/cgroup/a.slice/b.scope/memory.max" => Some("max\n".to_owned()),
            "/sys/fs/cgroup/a.slice/memory.max" => Some("2000\n".to_owned()),
            "/sys/fs/cgroup/memory.max" => Some("3000\n".to_owned()),
            "/sys/fs/cgroup/memory/c/memory.limit_in_bytes" => Some("1000\n".to_owned()),
            _ => None,
        };
        assert_eq!(group_memory("0::/a.slice/b.scope\n", &read), Some(2000));
        assert_eq!(group_memory("0::/\n", &read), Some(3000));
        let first = "5:cpu,cpuacct:/c\n4:memory:/c\n";
        assert_eq!(group_memory(first, &read), Some(1000));
        assert_eq!(group_memory("1:name=systemd:/c\n", &read), None);
        assert_eq!(group_memory("", &read), None);
    }
}
