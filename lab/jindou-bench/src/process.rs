//! Server processes that the benchmarks suspend, terminate and kill.

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

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.signal(libc::SIGTERM);
    }

    /// True if the process has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Waits at most `patience` for the process to end; true if it has.
    pub fn ends_within(&mut self, patience: Duration) -> bool {
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
