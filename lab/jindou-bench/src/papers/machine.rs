//! A description of this machine, and how much of its memory and disk is free.

use crate::measure::size_in;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// One line: processor, cores, memory, system, load.
pub fn describe() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .and_then(|l| l.split_once(':'))
        .map_or("unknown processor", |(_, m)| m.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field("MemTotal:").map_or("unknown memory".into(), |b| {
        format!("{:.0} GiB", b as f64 / (1u64 << 30) as f64)
    });
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    format!(
        "{model}, {cores} cores, {memory}, Linux {}; load average at the start {}",
        kernel.trim(),
        load.split_whitespace().next().unwrap_or("unknown")
    )
}

/// Bytes that programs could still allocate without swapping; `None` if the system does not tell.
pub fn free_memory() -> Option<u64> {
    field("MemAvailable:")
}

fn field(name: &str) -> Option<u64> {
    size_in("/proc/meminfo", name)
}

/// Bytes free on the disk of a folder; `None` if the system does not tell.
pub fn free_disk(folder: &Path) -> Option<u64> {
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: `statvfs` has only integer fields, for which all zeros are valid.
    let mut s: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in a zero byte, and `s` is valid for writes.
    let rc = unsafe { libc::statvfs(path.as_ptr(), &raw mut s) };
    (rc == 0).then(|| s.f_bavail.saturating_mul(s.f_frsize))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_linux_machine_is_described() {
        let d = super::describe();
        assert!(d.contains("cores") && d.contains("GiB"), "{d}");
        assert!(super::free_memory().is_some_and(|b| b > 1 << 20));
        assert!(super::free_disk(&std::env::temp_dir()).is_some());
    }
}
