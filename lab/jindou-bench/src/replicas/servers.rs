//! Servers of a shared log as processes of `jindou serve`.

use super::client::{Address, Client, Request};
use super::isolated::{Disk, Network};
use super::relay::Relay;
use crate::args::replicas::ReplicasSetup;
use crate::jindou_program;
use crate::measure::{copy, temporary_folder};
use crate::process::Process;
use jindou::parse::{Format, Sources};
use jindou::replica::HeldShards;
use jindou::{Database, Error, LoadOptions, Progress, QuadSource, Result, Sharding};
use jindou_testing::free_port;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Patience with a server that starts, loads or downloads.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The servers' names.
const NAMES: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

/// The store in shards of which each server of its log gets some.
pub const LOADED: &str = "loaded";

pub fn wrong(what: impl Into<String>) -> Error {
    Error::external(what.into())
}

/// A server's place: it may run or not.
pub struct Server {
    pub name: &'static str,
    /// Its copy of the store.
    pub store: PathBuf,
    pub address: Address,
    pub process: Option<Process>,
    /// Where other servers of the log dial it.
    pub peers: String,
    /// The way of the other servers to it, if that can be cut.
    pub link: Option<Relay>,
    /// Its standard error.
    pub said: PathBuf,
    program: PathBuf,
    /// The program and its arguments before `serve`, if another one starts it.
    within: Vec<String>,
    arguments: Vec<String>,
}

impl Server {
    /// Starts it; [`Self::ready`] waits for it.
    pub fn start(&mut self) -> Result<()> {
        let said = File::options().create(true).append(true).open(&self.said);
        let mut command = match self.within.split_first() {
            None => Command::new(&self.program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
        };
        let socket = self.address.socket;
        command
            .arg("serve")
            .args(&self.arguments)
            .args(["--log-level", "warn", "--host"])
            .arg(socket.ip().to_string())
            .arg("--port")
            .arg(socket.port().to_string())
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
        let mut client = self.client(Duration::from_secs(5));
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

    /// Stops the server by SIGTERM, if it runs. Returns false if it has not exited after [`PATIENCE`].
    pub fn end(&mut self) -> bool {
        let process = self.process.as_mut();
        process.is_none_or(|process| process.terminate(PATIENCE))
    }

    /// Kills it if it runs.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Where SPARQL queries are sent.
    pub fn url(&self) -> String {
        format!("http://{}/query", self.address.socket)
    }

    pub fn client(&self, limit: Duration) -> Client {
        Client::new(self.address.clone(), limit)
    }

    /// Removes its files.
    pub fn empty_folder(&self) -> Result<()> {
        std::fs::remove_dir_all(&self.store).map_err(|e| Error::io(&self.store, e))
    }
}

/// Counts how often something went away and came back; odd while it is away.
#[derive(Default)]
pub struct Moves(AtomicU64);

impl Moves {
    /// Counts that it goes, or comes back.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub fn is_away(&self) -> bool {
        !self.count().is_multiple_of(2)
    }

    /// True if the server was down at any time since [`Self::count`] returned `moves`.
    pub fn was_away(&self, moves: u64) -> bool {
        !moves.is_multiple_of(2) || self.count() != moves
    }
}

/// Folders of the servers, the log and the data of a benchmark.
pub struct Place {
    // Before the folder in which its disks are.
    isolated: Option<Isolated>,
    folder: TempDir,
    pub program: PathBuf,
    pub log: String,
    /// Number of shards of the store, if it is sharded, and of the servers that have each.
    pub shards: Option<u32>,
    holders: u32,
    /// True if the servers take updates.
    pub is_writable: bool,
    /// True if the servers of the log reach each other through relays.
    pub is_relayed: bool,
}

/// A network and disks of their own.
pub struct Isolated {
    pub network: Network,
    pub log: Disk,
    /// By server.
    pub stores: Vec<Disk>,
}

/// The token of isolated servers, whose addresses are not this machine's own.
const TOKEN: &str = "isolated-servers";

impl Place {
    pub fn new(setup: &ReplicasSetup) -> Result<Self> {
        let folder = temporary_folder(setup.dir.as_deref())?;
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
            isolated: None,
            shards: setup.shards,
            holders: setup.replicas,
            is_writable: true,
            is_relayed: false,
        })
    }

    /// A place whose servers are in network namespaces, and they and their log on small disks of their own. Needs root.
    pub fn isolated(setup: &ReplicasSetup) -> Result<Self> {
        let mut place = Self::new(setup)?;
        if setup.log.is_some() {
            return Err(Error::Usage(
                "--isolated makes a directory for the log itself".into(),
            ));
        }
        let log = Disk::new(&place.path("log-disk"), 3)?;
        place.log = log.path().join("log").display().to_string();
        let stores = (NAMES[..setup.servers].iter()).map(|name| Disk::new(&place.path(name), 1));
        place.isolated = Some(Isolated {
            stores: stores.collect::<Result<_>>()?,
            network: Network::new(setup.servers)?,
            log,
        });
        let tokens = place.path("tokens");
        std::fs::write(&tokens, format!("write {TOKEN}\n")).map_err(|e| Error::io(&tokens, e))?;
        Ok(place)
    }

    pub fn isolation(&self) -> Option<&Isolated> {
        self.isolated.as_ref()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The log's folder, if it is one.
    pub fn log_folder(&self) -> Option<&Path> {
        (!self.log.contains("://")).then(|| Path::new(&self.log))
    }

    /// Loads a document in Turtle into a store.
    pub fn load(&self, store: &str, text: &str) -> Result<()> {
        let (to, options) = (self.path(store), LoadOptions::default());
        Database::load(to, &turtle(text)?, &options, &Progress::default())?;
        Ok(())
    }

    /// Loads the store with which the log begins: in shards, unless it is not sharded.
    pub fn load_log(&self, data: &dyn QuadSource) -> Result<()> {
        let sharding = |shards| Sharding::new(shards).with_block_shift(Some(0));
        let options = LoadOptions::default().with_sharding(self.shards.map(sharding));
        let to = match (&self.isolated, self.shards) {
            (_, Some(_)) => self.path(LOADED),
            (Some(isolated), None) => isolated.stores[0].path().join("store"),
            (None, None) => self.path(NAMES[0]),
        };
        Database::load(to, data, &options, &Progress::default())?;
        Ok(())
    }

    /// The shards that server `i` of these many has.
    pub fn held(&self, i: usize, servers: usize) -> Result<Vec<u32>> {
        let part = HeldShards::Part {
            number: i as u32,
            of: servers as u32,
            replicas: self.holders,
        };
        self.shards.map_or(Ok(Vec::new()), |n| part.among(n))
    }

    /// Copies a server's shards of the loaded store into its folder.
    fn give_shards(&self, store: &Path, held: &[u32]) -> Result<()> {
        let loaded = self.path(LOADED);
        let copied = held.iter().try_for_each(|shard| {
            let name = format!("shard-{shard}");
            copy(&loaded.join(&name), &store.join(&name))
        });
        let name = "cluster.jd";
        let all = copied.and_then(|()| std::fs::copy(loaded.join(name), store.join(name)));
        all.map(drop).map_err(|e| Error::io(store, e))
    }

    /// A server without a shared log, over a store that is there.
    pub fn alone(&self, name: &'static str, more: &[String]) -> Result<Server> {
        let mut server = self.server(name, more);
        server.start()?;
        server.ready(PATIENCE)?;
        Ok(server)
    }

    fn server(&self, name: &'static str, arguments: &[String]) -> Server {
        let mut arguments = arguments.to_vec();
        if self.is_writable && self.isolated.is_none() {
            arguments.push("--writable".into());
        }
        let socket = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        Server {
            name,
            store: self.path(name),
            address: Address {
                socket,
                token: None,
            },
            process: None,
            peers: String::new(),
            link: None,
            said: self.path(&format!("{name}.said")),
            program: self.program.clone(),
            within: Vec::new(),
            arguments,
        }
    }

    /// A server of the shared log that does not run yet.
    pub fn replica(&self, i: usize, more: &[String]) -> Result<Server> {
        let mut arguments = more.to_vec();
        arguments.extend(["--log".into(), self.log.clone()]);
        arguments.extend(["--name".into(), NAMES[i].into()]);
        let (ip, port) = match &self.isolated {
            None => (IpAddr::from(Ipv4Addr::LOCALHOST), free_port()),
            Some(isolated) => (isolated.network.address(i).into(), 7979),
        };
        let listens = format!("{ip}:{port}");
        let link = self.is_relayed.then(|| Relay::start(listens.clone()));
        let link = link.transpose().map_err(|e| Error::io("a relay", e))?;
        let peers = match &link {
            Some(link) => {
                arguments.extend(["--peer-listen".into(), listens]);
                link.address.to_string()
            }
            None => listens,
        };
        arguments.extend(["--peer-address".into(), peers.clone()]);
        let Some(isolated) = &self.isolated else {
            return Ok(Server {
                peers,
                link,
                ..self.server(NAMES[i], &arguments)
            });
        };
        let tokens = self.path("tokens").display().to_string();
        arguments.extend(["--token-file".into(), tokens]);
        Ok(Server {
            store: isolated.stores[i].path().join("store"),
            address: Address {
                socket: (ip, 7878).into(),
                token: Some(TOKEN),
            },
            peers,
            link,
            within: isolated.network.within(i),
            ..self.server(NAMES[i], &arguments)
        })
    }

    /// Servers of the shared log, all ready. The first one may have a store already; a sharded store that was not loaded is now, with
    /// one quad.
    pub fn replicas(&self, servers: usize, more: &[String]) -> Result<Vec<Server>> {
        if self.shards.is_some() && !self.path(LOADED).exists() {
            self.load_log(&turtle(NOTHING)?)?;
        }
        let mut all = Vec::new();
        for i in 0..servers {
            let mut more = more.to_vec();
            if self.shards.is_some() {
                more.extend(["--part".into(), format!("{i}/{servers}")]);
                more.extend(["--replicas".into(), self.holders.to_string()]);
            }
            let mut server = self.replica(i, &more)?;
            if self.shards.is_some() {
                self.give_shards(&server.store, &self.held(i, servers)?)?;
            }
            server.start()?;
            if all.is_empty() && self.shards.is_none() {
                // The log begins with the first server's store, which the other servers then download.
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

/// The quad of a store that must not be empty.
pub const NOTHING: &str = "<http://e/s> <http://e/p> <http://e/o> .";

/// A document in Turtle.
pub fn turtle(text: &str) -> Result<Sources> {
    let source = Sources::builder().text("data.ttl", text.as_bytes(), Format::Turtle);
    source.build()
}
