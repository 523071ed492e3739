//! Servers of a cluster as processes of `jindou serve`, with a relay on each way from one to another.

use super::relay::Relay;
use crate::jindou_program;
use crate::process::Process;
use jindou::cluster::servers::ClusterFile;
use jindou::{Error, Result};
use jindou_peers::http::Endpoint;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Patience with a server that starts.
const PATIENCE: Duration = Duration::from_secs(30);

fn wrong(what: impl Into<String>) -> Error {
    Error::external(what.into())
}

/// `jindou serve` over a whole store, and its URL.
pub fn alone(store: &Path) -> Result<(Process, String)> {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .map_err(|e| wrong(format!("no free port: {e}")))?
        .port();
    let program = jindou_program()?;
    let process = Process::start(
        Command::new(&program)
            .args([
                "serve",
                "--log-level",
                "error",
                "--port",
                &port.to_string(),
                "--store",
            ])
            .arg(store)
            .stdout(Stdio::null()),
    )?;
    let url = format!("http://127.0.0.1:{port}/query");
    ready(&url)?;
    Ok((process, url))
}

/// Waits until a server answers `ASK {}`.
pub fn ready(url: &str) -> Result<()> {
    let up = Endpoint::new(url, &[]).wait(PATIENCE, || true);
    up.map_err(|e| wrong(format!("{url} does not answer: {e}")))
}

/// Waits until a server answers a query that needs all others: each of them may have a term that it does not know. Short on any data.
fn reaches_all(url: &str) -> Result<()> {
    let mut endpoint = Endpoint::new(url, &[]);
    let begun = Instant::now();
    loop {
        match endpoint.check("SELECT * { <http://nowhere.example/> ?p ?o }", PATIENCE) {
            Ok(_) => return Ok(()),
            Err(e) if begun.elapsed() > PATIENCE => {
                return Err(wrong(format!(
                    "{url} does not reach the other servers: {e}"
                )));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// A cluster's servers.
pub struct Servers {
    program: PathBuf,
    store: PathBuf,
    /// By server: its name, its own cluster file, its URL.
    pub known: Vec<(String, PathBuf, String)>,
    /// By server that asks and server that is asked.
    pub links: Vec<Vec<Option<Relay>>>,
    pub running: Vec<Process>,
}

impl Servers {
    /// Makes certificates and a cluster file with `jindou cluster start`, and starts servers that reach one another through
    /// relays, or directly, over the fabric of this name.
    pub fn start(
        store: &Path,
        folder: &Path,
        servers: usize,
        relayed: bool,
        fabric: &str,
    ) -> Result<Self> {
        let program = jindou_program()?;
        let files = folder.join(format!("files-{fabric}"));
        // The command makes the files and starts servers of its own, which end with it.
        let mut starting = Command::new(&program);
        starting
            .args([
                "cluster",
                "start",
                "--port",
                "0",
                "--servers",
                &servers.to_string(),
                "--fabric",
                fabric,
                "--store",
            ])
            .arg(store)
            .arg("--files")
            .arg(&files)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut made = Process::start(&mut starting)?;
        if let Some(out) = made.output() {
            let mut lines = BufReader::new(out).lines().map_while(std::io::Result::ok);
            lines.by_ref().find(|l| l.contains(": http"));
            made.terminate();
            lines.for_each(drop);
        }
        made.wait()?;
        let path = files.join("cluster.toml");
        let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
        let file = ClusterFile::read(&path)?;
        let (mut known, mut links) = (Vec::new(), Vec::new());
        for server in &file.servers {
            let (mut own_text, mut own_links) = (text.clone(), Vec::new());
            for other in &file.servers {
                if !relayed || other.name == server.name {
                    own_links.push(None);
                    continue;
                }
                let relay = Relay::start(other.address.clone());
                let relay = relay.map_err(|e| wrong(format!("no relay: {e}")))?;
                own_text = own_text.replace(
                    &format!("address = \"{}\"", other.address),
                    &format!("address = \"{}\"", relay.address),
                );
                own_links.push(Some(relay));
            }
            let own = files.join(format!("{}.toml", server.name));
            std::fs::write(&own, own_text).map_err(|e| Error::io(&own, e))?;
            known.push((
                server.name.clone(),
                own,
                format!("http://{}/query", server.http),
            ));
            links.push(own_links);
        }
        let mut all = Self {
            program,
            store: store.to_owned(),
            known,
            links,
            running: Vec::new(),
        };
        for i in 0..servers {
            let process = all.process(i)?;
            all.running.push(process);
        }
        for (_, _, url) in &all.known {
            ready(url)?;
            reaches_all(url)?;
        }
        Ok(all)
    }

    fn process(&self, i: usize) -> Result<Process> {
        let (name, file, url) = &self.known[i];
        let port = url
            .trim_end_matches("/query")
            .rsplit(':')
            .next()
            .unwrap_or_default();
        let mut command = Command::new(&self.program);
        command
            .arg("serve")
            .arg("--store")
            .arg(&self.store)
            .arg("--cluster")
            .arg(file)
            .args(["--server", name, "--port", port, "--log-level", "error"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Process::start(&mut command)
    }

    /// The number of a server's process.
    pub fn process_id(&self, i: usize) -> u32 {
        self.running[i].id()
    }

    /// Kills a server and starts it again after a while.
    pub fn replace(&mut self, i: usize, after: Duration) -> Result<()> {
        self.running[i].kill();
        std::thread::sleep(after);
        self.running[i] = self.process(i)?;
        Ok(())
    }
}
