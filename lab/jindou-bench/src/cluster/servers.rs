//! Servers with some shards of one store each, over one log in a folder, as processes of `jindou serve`; with a relay in front
//! of each for the connections of the others.

use super::relay::Relay;
use crate::jindou_program;
use crate::process::Process;
use jindou::replica::{Bucket, BucketLimits, HeldShards, SharedLog, shards_in};
use jindou::{Database, Error, OpenOptions, Result};
use jindou_peers::http::Endpoint;
use jindou_store::shard::{CLUSTER, shard_folder};
use jindou_testing::free_port;
use std::fs;
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
    let port = free_port();
    let process = Process::start(
        Command::new(jindou_program()?)
            .args(["serve", "--log-level", "error"])
            .args(["--port", &port.to_string(), "--store"])
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

/// A server's place.
pub struct Place {
    pub name: String,
    /// Where clients ask.
    pub url: String,
    store: PathBuf,
    /// Where the others dial it, and where it listens for them.
    peers: [String; 2],
}

/// The servers of one log, each of which has the same number of shards, and each shard once.
pub struct Servers {
    program: PathBuf,
    log: PathBuf,
    reads: String,
    pub known: Vec<Place>,
    /// By server: the way of the others to it.
    pub links: Vec<Option<Relay>>,
    pub running: Vec<Process>,
}

/// Gives a server its shards of a loaded store, in a folder of its own.
fn link_shards(store: &Path, own: &Path, shards: &[u32]) -> std::io::Result<()> {
    for shard in shards {
        let (from, to) = (
            store.join(shard_folder(*shard)),
            own.join(shard_folder(*shard)),
        );
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            let file = entry?.file_name();
            fs::hard_link(from.join(&file), to.join(&file))?;
        }
    }
    fs::copy(store.join(CLUSTER), own.join(CLUSTER)).map(drop)
}

impl Servers {
    /// Starts servers in a new folder over the shards of a store, which reach one another through relays, or directly, and read
    /// each other's memory in this way (`--peer-reads`).
    pub fn start(
        store: &Path,
        folder: &Path,
        servers: usize,
        relayed: bool,
        reads: &str,
    ) -> Result<Self> {
        let shards = shards_in(store)?.ok_or_else(|| wrong("the store is not sharded"))?;
        let (mut known, mut links) = (Vec::new(), Vec::new());
        for number in 0..servers as u32 {
            let name = format!("server-{number}");
            let own = folder.join(&name);
            let part = HeldShards::Part {
                number,
                of: servers as u32,
                replicas: 1,
            };
            link_shards(store, &own, &part.among(shards)?).map_err(|e| Error::io(&own, e))?;
            let listens = format!("127.0.0.1:{}", free_port());
            let relay = relayed.then(|| Relay::start(listens.clone()));
            let relay = relay
                .transpose()
                .map_err(|e| wrong(format!("no relay: {e}")))?;
            let dialled = relay.as_ref().map(|relay| relay.address.to_string());
            known.push(Place {
                name,
                url: format!("http://127.0.0.1:{}/query", free_port()),
                store: own,
                peers: [dialled.unwrap_or_else(|| listens.clone()), listens],
            });
            links.push(relay);
        }
        let mut all = Self {
            program: jindou_program()?,
            log: folder.join("log"),
            reads: reads.to_owned(),
            known,
            links,
            running: Vec::new(),
        };
        for i in 0..servers {
            let process = all.process(i)?;
            all.running.push(process);
        }
        for place in &all.known {
            ready(&place.url)?;
            reaches_all(&place.url)?;
        }
        Ok(all)
    }

    fn process(&self, i: usize) -> Result<Process> {
        let place = &self.known[i];
        let [dialled, listens] = &place.peers;
        let port = place
            .url
            .trim_end_matches("/query")
            .rsplit(':')
            .next()
            .unwrap_or_default();
        let mut command = Command::new(&self.program);
        command
            .args(["serve", "--port", port, "--log-level", "error"])
            .args(["--name", &place.name])
            .args(["--peer-address", dialled, "--peer-listen", listens])
            .args(["--peer-reads", &self.reads])
            .arg("--store")
            .arg(&place.store)
            .arg("--log")
            .arg(&self.log)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Process::start(&mut command)
    }

    /// Opens a server in this process, in place of one that was killed.
    pub fn open(&self, i: usize, options: &OpenOptions) -> Result<Database> {
        let place = &self.known[i];
        let bucket = Bucket::directory(&self.log, BucketLimits::default());
        let bucket = bucket.map_err(|e| Error::io(&self.log, e))?;
        let mut log = SharedLog::new(bucket, &*place.name);
        log.peer_address = Some(place.peers[0].clone());
        Database::open_with(&place.store, &options.clone().with_log(log))
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
