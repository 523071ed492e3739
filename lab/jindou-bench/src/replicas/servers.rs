//! Servers of a shared log as processes of `jindou serve`.

use super::client::{Client, Request};
use crate::args::replicas::ReplicasSetup;
use crate::jindou_program;
use crate::process::Process;
use jindou::{Error, Result};
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Patience with a server that starts, loads or downloads.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The servers' names.
const NAMES: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

pub fn wrong(what: impl Into<String>) -> Error {
    Error::external(what.into())
}

/// A free port, below those that the system gives to connections: a server that comes back finds its own free.
fn free_port() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = (std::process::id() % 400) as u16 * 20;
    for _ in 0..8000 {
        let port = 20_000 + first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(wrong("no free port"))
}

/// A server's place: it may run or not.
pub struct Server {
    pub name: &'static str,
    /// Its copy of the store.
    pub store: PathBuf,
    pub port: u16,
    pub process: Option<Process>,
    /// Its standard error.
    pub said: PathBuf,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Server {
    /// Starts it; [`Self::ready`] waits for it.
    pub fn start(&mut self) -> Result<()> {
        let said = File::options().create(true).append(true).open(&self.said);
        let mut command = Command::new(&self.program);
        command
            .arg("serve")
            .args(&self.arguments)
            .args(["--writable", "--log-level", "warn", "--port"])
            .arg(self.port.to_string())
            .arg("--store")
            .arg(&self.store)
            .stdout(Stdio::null())
            .stderr(said.map_err(|e| Error::io(&self.said, e))?);
        self.process = Some(Process::start(&mut command)?);
        Ok(())
    }

    /// Waits until it is ready.
    pub fn ready(&mut self, patience: Duration) -> Result<()> {
        let begun = Instant::now();
        let mut client = Client::new(self.port, Duration::from_secs(5));
        loop {
            let answer = client.send(&Request::new("GET", "/ready"));
            if answer.as_ref().is_ok_and(|a| a.status == 200) {
                return Ok(());
            }
            let ended = self.process.as_mut().is_none_or(Process::has_ended);
            if ended || begun.elapsed() > patience {
                let state = if ended { "has ended" } else { "is not ready" };
                let said = std::fs::read_to_string(&self.said).unwrap_or_default();
                let end: Vec<&str> = said.lines().rev().take(5).collect();
                return Err(wrong(format!(
                    "server {} {state} ({:?}): {end:?}",
                    self.name,
                    answer.map(|a| a.text())
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it if it runs.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    pub fn client(&self, limit: Duration) -> Client {
        Client::new(self.port, limit)
    }
}

/// Where everything lies.
pub struct Place {
    folder: TempDir,
    pub program: PathBuf,
    log: String,
}

impl Place {
    pub fn new(setup: &ReplicasSetup) -> Result<Self> {
        let folder = match &setup.dir {
            Some(dir) => tempfile::tempdir_in(dir).map_err(|e| Error::io(dir, e))?,
            None => tempfile::tempdir().map_err(|e| Error::io("a temporary folder", e))?,
        };
        if setup.servers == 0 || setup.servers > NAMES.len() {
            return Err(Error::Usage(format!("1 to {} servers", NAMES.len())));
        }
        let log = match &setup.log {
            Some(log) => log.clone(),
            None => folder.path().join("log").display().to_string(),
        };
        let program = match &setup.program {
            Some(program) => program.clone(),
            None => jindou_program()?,
        };
        Ok(Self {
            folder,
            program,
            log,
        })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The log's folder, if it is one.
    pub fn log_folder(&self) -> Option<&Path> {
        (!self.log.contains("://")).then(|| Path::new(&self.log))
    }

    /// Loads a document in Turtle into a store.
    pub fn load(&self, store: &str, turtle: &str) -> Result<()> {
        let file = self.path("data.ttl");
        std::fs::write(&file, turtle).map_err(|e| Error::io(&file, e))?;
        let done = Command::new(&self.program)
            .args(["load", "--store"])
            .arg(self.path(store))
            .arg(&file)
            .output()
            .map_err(|e| Error::io(&self.program, e))?;
        match done.status.success() {
            true => Ok(()),
            false => Err(wrong(String::from_utf8_lossy(&done.stderr))),
        }
    }

    /// A server without a shared log, over a store that is there.
    pub fn alone(&self, name: &'static str, more: &[String]) -> Result<Server> {
        let mut server = self.server(name, more.to_vec())?;
        server.start()?;
        server.ready(PATIENCE)?;
        Ok(server)
    }

    fn server(&self, name: &'static str, arguments: Vec<String>) -> Result<Server> {
        Ok(Server {
            name,
            store: self.path(name),
            port: free_port()?,
            process: None,
            said: self.path(&format!("{name}.said")),
            program: self.program.clone(),
            arguments,
        })
    }

    /// Servers of the shared log, all ready. The first one may have a store already.
    pub fn replicas(&self, servers: usize, more: &[String]) -> Result<Vec<Server>> {
        let mut all = Vec::new();
        for name in &NAMES[..servers] {
            let mut arguments = more.to_vec();
            arguments.extend(["--log".into(), self.log.clone()]);
            arguments.extend(["--name".into(), (*name).into()]);
            let peers = format!("127.0.0.1:{}", free_port()?);
            arguments.extend(["--peer-address".into(), peers]);
            let mut server = self.server(name, arguments)?;
            server.start()?;
            if all.is_empty() {
                // Its store is the log's.
                server.ready(PATIENCE)?;
            }
            all.push(server);
        }
        for server in &mut all {
            server.ready(PATIENCE)?;
        }
        Ok(all)
    }
}
