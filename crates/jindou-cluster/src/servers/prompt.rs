//! Threads that peers wait for come before threads that compute, where they share a core.

/// Nanoseconds of a turn of a thread that answers peers: the least that Linux gives.
#[cfg(target_os = "linux")]
const TURN: u64 = 100_000;

/// The beginning of Linux's `struct sched_attr`, all of its first version.
#[cfg(target_os = "linux")]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Asks for short turns on the processor for this thread, and not for those that it starts. From Linux 6.12 on a thread with short turns that
/// wakes up takes the core from one with longer turns, rather than waiting until that has computed for milliseconds; neither gets more of the
/// core. Elsewhere nothing changes.
pub fn take_short_turns() {
    #[cfg(target_os = "linux")]
    {
        let mut attributes = Attributes {
            size: size_of::<Attributes>() as u32,
            policy: libc::SCHED_OTHER as u32,
            flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
            nice: 0,
            priority: 0,
            runtime: TURN,
            deadline: 0,
            period: 0,
        };
        // SAFETY: `getpriority` reads nothing but its arguments; 0 is this thread.
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        attributes.nice = nice;
        // SAFETY: the structure lives through the call, is as long as it says, and is only read.
        let _refused =
            unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The turn of this thread in nanoseconds, its nice value, and whether threads that it starts are like others.
    fn attributes() -> Option<(u64, i32, bool)> {
        // SAFETY: plain numbers, for which zeros are values.
        let mut a: Attributes = unsafe { std::mem::zeroed() };
        let size = size_of::<Attributes>() as u32;
        // SAFETY: the call writes at most `size` bytes of the structure.
        let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut a, size, 0) };
        let reset = a.flags & libc::SCHED_FLAG_RESET_ON_FORK as u64 != 0;
        (got == 0).then_some((a.runtime, a.nice, reset))
    }

    #[test]
    fn turns_are_short_and_the_share_stays() {
        let Some((_, nice, _)) = attributes() else {
            return;
        };
        let (here, there) = std::thread::spawn(|| {
            take_short_turns();
            let started = std::thread::spawn(attributes).join().unwrap();
            (attributes().unwrap(), started.unwrap())
        })
        .join()
        .unwrap();
        assert_eq!((here.1, here.2), (nice, true));
        // Kernels before 6.12 know one length of turns.
        assert!(
            here.0 == TURN || here.0 == 0 || here.0 == there.0,
            "{here:?}"
        );
        assert_ne!((there.0, there.2), (TURN, true));
    }
}
