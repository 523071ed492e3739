//! Servers that tests run in separate processes.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// A process of `jindou serve`, killed when dropped.
pub struct Served {
    /// The process.
    pub child: Child,
    /// The line in which the server printed its address.
    pub line: String,
    /// The server's address.
    pub address: SocketAddr,
}

impl Served {
    /// Starts a command, and waits until it prints its address.
    pub fn start(command: &mut Command) -> Self {
        Self::try_start(command).unwrap_or_else(|e| panic!("{e}"))
    }

    /// As [`Self::start`].
    pub fn try_start(command: &mut Command) -> Result<Self, String> {
        let started = command.stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|e| e.to_string())?;
        let mut line = String::new();
        let out = child.stdout.take().expect("standard output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let url = line.split("http://").nth(1);
        let address = url.and_then(|rest| rest.split('/').next()?.parse().ok());
        let Some(address) = address else {
            let _ = child.kill();
            return Err(format!("no address in {line:?}, {:?}", child.wait()));
        };
        Ok(Self {
            child,
            line,
            address,
        })
    }

    /// Ends the process by SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// True if the process has not ended.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The content of a file in the process's directory in `/proc`; empty if it cannot be read.
    pub fn proc(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap_or_default()
    }

    /// A size from `/proc/PID/status`, in bytes.
    fn status(&self, name: &str) -> u64 {
        let text = self.proc("status");
        let line = text
            .lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> u64 {
        self.status("VmRSS")
    }

    /// Largest resident memory in bytes since [`Self::reset_peak`].
    pub fn peak(&self) -> u64 {
        self.status("VmHWM")
    }

    /// Resets [`Self::peak`] to the current resident memory.
    pub fn reset_peak(&self) {
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}
