//! Processor time of this thread, of this process and of others, and the core that a thread may use.

use jindou::{Error, Result};

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a timespec that lives through the call.
    let done = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (done == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Nanoseconds of processor time that this thread has used.
pub fn thread_time() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// Nanoseconds of processor time that this process has used.
pub fn process_time() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// Nanoseconds of processor time that another process has used.
pub fn time_of(process: u32) -> Result<u64> {
    let mut clock = 0;
    // SAFETY: `clock` is a clock id that lives through the call.
    let found = unsafe { libc::clock_getcpuclockid(process as libc::pid_t, &raw mut clock) };
    let time = (found == 0).then(|| read(clock)).flatten();
    time.ok_or_else(|| {
        Error::external(format!("process {process} has ended, so its clock is gone"))
    })
}

/// The cores that this thread may use, given back to it when this is dropped. Threads and processes that it starts meanwhile have those
/// that it has then.
pub struct Cores(libc::cpu_set_t);

impl Cores {
    pub fn of_this_thread() -> Result<Self> {
        // SAFETY: a set of cores is plain bits, for which zeros are a value; the call writes into it no more than its size.
        let (set, done) = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            let size = size_of::<libc::cpu_set_t>();
            let done = libc::sched_getaffinity(0, size, &raw mut set);
            (set, done)
        };
        if done != 0 {
            let why = std::io::Error::last_os_error();
            return Err(Error::external(format!(
                "cannot read the cores of this thread: {why}"
            )));
        }
        Ok(Self(set))
    }

    /// The numbers of the cores.
    pub fn numbers(&self) -> Vec<usize> {
        let all = 0..libc::CPU_SETSIZE as usize;
        // SAFETY: the set is one that the system wrote, and the numbers are below its size.
        all.filter(|&c| unsafe { libc::CPU_ISSET(c, &self.0) })
            .collect()
    }

    /// Leaves one core to this thread.
    pub fn only(&self, core: usize) -> Result<()> {
        // SAFETY: as above; the number comes from the set.
        let set = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            set
        };
        restrict(&set)
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        let _ = restrict(&self.0);
    }
}

fn restrict(set: &libc::cpu_set_t) -> Result<()> {
    // SAFETY: the call reads the set, which lives through it, no further than its size.
    let done = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
    if done != 0 {
        let why = std::io::Error::last_os_error();
        return Err(Error::external(format!(
            "cannot start a thread on one core: {why}"
        )));
    }
    Ok(())
}
