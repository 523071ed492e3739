//! Memory and disk space of the system.

/// Returns freed memory to the system between phases, so that the heap of one phase does not add to the peak of the
/// next.
pub(super) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no pointers and may be called from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// A field in KiB of the file `/proc/<file>`, converted to bytes; 0 if it is missing.
fn proc_bytes(file: &str, field: &str) -> u64 {
    std::fs::read_to_string(file)
        .unwrap_or_default()
        .lines()
        .find_map(|l| {
            l.strip_prefix(field)?
                .trim_start_matches(':')
                .trim()
                .trim_end_matches("kB")
                .trim()
                .parse::<u64>()
                .ok()
        })
        .map_or(0, |k| k << 10)
}

/// Peak memory of this process, in bytes; 0 if the system does not report it.
pub(super) fn peak_bytes() -> u64 {
    proc_bytes("/proc/self/status", "VmHWM")
}

/// Returns an error unless `bytes` fit on the file system of `path`.
pub(crate) fn need_room(
    path: &std::path::Path,
    bytes: u64,
    what: &str,
) -> jindou_model::Result<()> {
    let free = jindou_model::machine::free_space(path);
    if bytes <= free {
        return Ok(());
    }
    Err(jindou_model::Error::limit(
        jindou_model::Resource::Disk,
        format!(
            "{what} needs about {} MiB in {}, but only {} MiB are free; free some space or load elsewhere",
            (bytes >> 20) + 1,
            path.display(),
            free >> 20
        ),
    ))
}
