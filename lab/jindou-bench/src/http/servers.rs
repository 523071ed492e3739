//! The servers that `jindou bench http` compares, each a process of its own.

use crate::args::http::BenchHttp;
use crate::jindou_program;
use crate::process::Process;
use jindou::{Database, Error, LoadOptions, Progress, Result};
use jindou_parse::write::{TagCase, write_source};
use jindou_peers::install::{Peer, default_folder};
use jindou_testing::{Served, free_port};
use jindou_workloads::client::{Client, Connection, failed};
use jindou_workloads::lubm::Lubm;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time in which Oxigraph must begin to listen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where clients reach a server.
#[derive(Clone, Debug)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Address {
    pub fn connect(&self) -> Result<Client> {
        match self {
            Self::Tcp(address) => Client::connect(*address),
            Self::Unix(path) => {
                let stream = UnixStream::connect(path).map_err(|e| Error::io(path, e))?;
                Ok(Client::new(Connection::Unix(stream)))
            }
        }
    }
}

/// A server with its name in the report.
pub struct Server {
    pub name: &'static str,
    pub address: Address,
    /// The id of its process.
    pub process: u32,
    /// True if it answers queries; false for one that returns fixed bytes.
    pub answers: bool,
    /// True if it answers a request that comes before the client has read the answer to an earlier one.
    pub pipelines: bool,
}

/// All servers, which end when this is dropped.
pub struct Servers {
    pub all: Vec<Server>,
    _served: Vec<Served>,
    _oxigraph: Option<Process>,
    _folder: TempDir,
}

impl Servers {
    /// Loads LUBM(1, 0) for each server that needs data, and starts all.
    pub fn start(a: &BenchHttp, folder: TempDir) -> Result<Self> {
        let store = folder.path().join("store");
        let (options, progress) = (LoadOptions::default(), Progress::default());
        Database::load(&store, &Lubm::new(1, 0), &options, &progress)?;
        let own = std::env::current_exe().map_err(|e| Error::io("/proc/self/exe", e))?;
        let (mut all, mut served) = (vec![], vec![]);
        let mut start = |name, command: &mut Command, answers| {
            let one = Served::try_start(command).map_err(|e| failed(name, e))?;
            all.push(Server {
                name,
                address: Address::Tcp(one.address),
                process: one.child.id(),
                answers,
                pipelines: true,
            });
            let process = one.child.id();
            served.push(one);
            Ok::<_, Error>(process)
        };
        start("hyper", Command::new(own).arg("http-bare"), false)?;
        let serve = |program: &Path| {
            let mut command = Command::new(program);
            command.arg("serve").arg(&store).args(["--port", "0"]);
            command
        };
        let socket = folder.path().join("socket");
        let mut command = serve(&jindou_program()?);
        let process = start("jindou", command.arg("--unix-socket").arg(&socket), true)?;
        if let Some(before) = &a.before {
            start("before", &mut serve(before), true)?;
        }
        all.push(Server {
            name: "socket",
            address: Address::Unix(socket),
            process,
            answers: true,
            pipelines: true,
        });
        let oxigraph = match &a.oxigraph {
            None => None,
            Some(engines) => {
                let (process, server) = oxigraph(engines, folder.path())?;
                all.push(server);
                Some(process)
            }
        };
        Ok(Self {
            all,
            _served: served,
            _oxigraph: oxigraph,
            _folder: folder,
        })
    }
}

/// Loads the data into Oxigraph, and serves it.
fn oxigraph(engines: &Path, folder: &Path) -> Result<(Process, Server)> {
    let engines = match engines.as_os_str().is_empty() {
        true => default_folder(),
        false => engines.to_owned(),
    };
    let peer = Peer::named("oxigraph").map_err(|e| Error::external(e.to_string()))?;
    let program = peer.installed(&engines).ok_or_else(|| {
        Error::external(format!(
            "no Oxigraph in {}: run `jindou peers install oxigraph`",
            engines.display()
        ))
    })?;
    let program = program.join("bin/oxigraph");
    let (data, store) = (folder.join("data.nt"), folder.join("oxigraph"));
    let mut text = vec![];
    // A generator yields its data once, so this is another one than that of the load.
    write_source(&Lubm::new(1, 0), TagCase::Lower, &mut text)?;
    std::fs::write(&data, text).map_err(|e| Error::io(&data, e))?;
    let command = |name: &str| {
        let mut command = Command::new(&program);
        command.args([name, "--location"]).arg(&store);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let loaded = command("load").arg("--file").arg(&data).status();
    let loaded = loaded.map_err(|e| Error::io(&program, e))?;
    if !loaded.success() {
        return Err(Error::external(format!("oxigraph load: {loaded}")));
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let mut serve = command("serve-read-only");
    let process = Process::start(serve.args(["--bind", &address.to_string()]))?;
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        if begun.elapsed() > PATIENCE {
            return Err(failed("oxigraph", "it does not listen"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let server = Server {
        name: "oxigraph",
        address: Address::Tcp(address),
        process: process.id(),
        answers: true,
        // Version 0.5.13 answers the first of several requests only.
        pipelines: false,
    };
    Ok((process, server))
}
