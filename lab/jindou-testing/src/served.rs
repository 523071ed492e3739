//! Servers in processes of their own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// A process of `jindou serve`, killed when dropped.
pub struct Served {
    /// The process.
    pub child: Child,
    /// The line that says where it listens.
    pub line: String,
    /// The address in it.
    pub address: SocketAddr,
}

impl Served {
    /// Starts a command, and waits until it says where it listens.
    ///
    /// # Panics
    ///
    /// If it ends before.
    pub fn start(command: &mut Command) -> Self {
        Self::try_start(command).unwrap_or_else(|e| panic!("{e}"))
    }

    /// As [`Self::start`].
    ///
    /// # Errors
    ///
    /// If it ends before.
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

    /// Ends it by SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// True if it has not ended.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The content of a file of its directory in `/proc`.
    pub fn proc(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap_or_default()
    }

    /// A value of `/proc/PID/status` in bytes.
    fn status(&self, name: &str) -> u64 {
        let text = self.proc("status");
        let line = text
            .lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    }

    /// Resident bytes.
    pub fn resident(&self) -> u64 {
        self.status("VmRSS")
    }

    /// Most resident bytes since [`Self::reset_peak`].
    pub fn peak(&self) -> u64 {
        self.status("VmHWM")
    }

    /// Starts a new [`Self::peak`].
    pub fn reset_peak(&self) {
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}
