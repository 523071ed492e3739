//! Servers as processes, which are stopped, ended and killed.

use jindou::{Error, Result};
use std::process::{Child, ChildStdout, Command};
use std::time::{Duration, Instant};

/// A process that is killed when it is dropped.
pub struct Process(Child);

impl Process {
    /// Starts it.
    pub fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn();
        child
            .map(Self)
            .map_err(|e| Error::io(command.get_program(), e))
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its standard output, if that was piped.
    pub fn output(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the call takes no memory, and a child that was not waited for keeps its number.
        unsafe {
            libc::kill(self.0.id() as libc::pid_t, signal);
        }
    }

    /// Stops it until [`Self::go_on`].
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal(libc::SIGCONT);
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.signal(libc::SIGTERM);
    }

    /// True once it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Result<()> {
        let ended = self.0.wait();
        ended.map(drop).map_err(|e| Error::io("a process", e))
    }

    /// Waits for its end for at most so long; true if it has ended.
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

    /// Kills it.
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
