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

/// Bytes free for this user on the file system of `path`; `u64::MAX` if the system does not report them.
pub(super) fn room_on_disk(path: &std::path::Path) -> u64 {
    use std::os::unix::ffi::OsStrExt;
    let Ok(c) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return u64::MAX;
    };
    let mut s = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `c` is a terminated string and `s` has room for the answer.
    if unsafe { libc::statvfs(c.as_ptr(), s.as_mut_ptr()) } != 0 {
        return u64::MAX;
    }
    // SAFETY: the call succeeded and filled it (and all-zero is a valid value).
    let s = unsafe { s.assume_init() };
    s.f_bavail.saturating_mul(s.f_frsize)
}

/// Returns an error unless `bytes` fit on the file system of `path`.
pub(crate) fn need_room(
    path: &std::path::Path,
    bytes: u64,
    what: &str,
) -> jindou_model::Result<()> {
    let free = room_on_disk(path);
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
