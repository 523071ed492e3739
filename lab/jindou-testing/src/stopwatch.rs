//! Measurement of times in tests, on machines that also do other work.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Measures a time without the part in which the process had to wait for a processor, so that limits also hold on a
/// busy machine.
#[derive(Debug)]
pub struct Stopwatch {
    begun: Instant,
    /// Nanoseconds that each thread had waited for a processor when the stopwatch started.
    waited: HashMap<u64, u64>,
}

impl Stopwatch {
    /// Starts a stopwatch.
    pub fn start() -> Self {
        let waited = waits().collect();
        let begun = Instant::now();
        Self { begun, waited }
    }

    /// Longest time that one of the process's threads has waited for a processor since the start. Threads that have
    /// ended do not count. Zero on systems that do not report waiting times (all but Linux).
    pub fn waited(&self) -> Duration {
        let since = |(thread, now): (u64, u64)| {
            now.saturating_sub(self.waited.get(&thread).copied().unwrap_or(0))
        };
        Duration::from_nanos(waits().map(since).max().unwrap_or(0))
    }

    /// Time since the start, minus [`Self::waited`].
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed().saturating_sub(self.waited())
    }
}

/// Processor time that the process has used so far. Unlike elapsed time, it hardly depends on the machine's other work.
pub fn process_time() -> Duration {
    time_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time that another process used so far; zero if it has ended.
#[must_use]
pub fn time_of_process(id: u32) -> Duration {
    let mut clock = 0;
    // SAFETY: the call only writes to `clock`.
    let failed = unsafe { libc::clock_getcpuclockid(id as libc::pid_t, &raw mut clock) };
    match failed {
        0 => time_of(clock),
        _ => Duration::ZERO,
    }
}

/// Processor time that this thread used so far.
pub fn thread_time() -> Duration {
    time_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn time_of(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call only fills the structure.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(failed, 0, "no clock {clock}");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The ids of the process's threads, and for each the nanoseconds in which it was ready to run but had no processor.
fn waits() -> impl Iterator<Item = (u64, u64)> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    threads.filter_map(|entry| {
        let entry = entry.ok()?;
        let thread = entry.file_name().to_str()?.parse().ok()?;
        // The file has three numbers: time on a processor, time waiting for one, number of time slices.
        let times = std::fs::read_to_string(entry.path().join("schedstat")).ok()?;
        Some((thread, times.split(' ').nth(1)?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_counts_and_waiting_for_a_processor_does_not() {
        let watch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(50));
        let (slept, waited) = (watch.elapsed(), watch.waited());
        assert!(slept + waited >= Duration::from_millis(50) || waited.is_zero());
        // Keeps more threads busy than there are processors.
        let some = std::thread::available_parallelism().map_or(2, usize::from);
        let watch = Stopwatch::start();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..4 * some {
                scope.spawn(|| {
                    let end = Instant::now() + Duration::from_millis(200);
                    while Instant::now() < end {
                        std::hint::spin_loop();
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(150));
            let waited = watch.waited();
            let all = begun.elapsed();
            assert!(watch.elapsed() <= begun.elapsed());
            if cfg!(target_os = "linux") && !waited.is_zero() {
                assert!(
                    waited > Duration::from_millis(30) && waited <= all,
                    "{waited:?}"
                );
            }
        });
    }
}
