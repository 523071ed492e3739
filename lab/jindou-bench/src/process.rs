//! Server processes that the benchmarks suspend, terminate and kill, and the processor time of processes.

use jindou::{Error, Result};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A process that is killed when it is dropped.
pub struct Process(Child);

impl Process {
    /// Starts a process.
    pub fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn();
        child
            .map(Self)
            .map_err(|e| Error::io(command.get_program(), e))
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the call accesses no memory. The process id stays valid, since the child has not been waited for.
        unsafe {
            libc::kill(self.0.id() as libc::pid_t, signal);
        }
    }

    /// Suspends the process until [`Self::go_on`].
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// Continues a suspended process.
    pub fn go_on(&self) {
        self.signal(libc::SIGCONT);
    }

    /// True if the process has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Sends SIGTERM, and waits at most `patience` for the process to end; true if it has.
    pub fn terminate(&mut self, patience: Duration) -> bool {
        self.signal(libc::SIGTERM);
        let begun = Instant::now();
        while !self.has_ended() {
            if begun.elapsed() > patience {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Kills the process, and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Processor time that a process has used so far.
pub fn time_of(process: u32) -> Result<Duration> {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the calls only write to the clock's id and the time, which live through them.
    let failed = unsafe {
        libc::clock_getcpuclockid(process as libc::pid_t, &raw mut clock) != 0
            || libc::clock_gettime(clock, &raw mut time) != 0
    };
    match failed {
        true => Err(Error::external(format!(
            "process {process} has ended, so its clock is gone"
        ))),
        false => Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32)),
    }
}
