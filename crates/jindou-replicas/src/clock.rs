//! The server's clock, which includes time during which the machine was suspended.

use crate::machine::Time;

/// Time since the system was booted, by `CLOCK_BOOTTIME`.
pub fn now() -> Time {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for writes: it is to the local variable `time`.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) } != 0;
    // Linux has had this clock since 2.6.39.
    assert!(!failed, "the system has no CLOCK_BOOTTIME");
    Time(time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1000)
}
