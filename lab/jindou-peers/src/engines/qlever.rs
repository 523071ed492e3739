//! QLever, which no registry has: the user builds it, and names the folder of its programs.

use super::server::Server;
use super::{Setup, free_port, version_of};
use crate::process::{disk_usage, run_to_end};
use crate::{About, Engine, Error, Loaded, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of the program that writes an index, and of the server: those of 2025 and later, and the earlier ones.
const PROGRAMS: [[&str; 2]; 2] = [
    ["qlever-index", "qlever-server"],
    ["IndexBuilderMain", "ServerMain"],
];

pub struct Qlever {
    index: PathBuf,
    serve: PathBuf,
    setup: Setup,
    server: Server,
}

impl Qlever {
    /// # Errors
    /// [`Error::Engine`] for a folder without its programs.
    pub fn new(at: &Path, setup: Setup) -> Result<Self> {
        let programs = PROGRAMS.map(|names| names.map(|name| at.join(name)));
        let there = |both: &[PathBuf; 2]| both.iter().all(|program| program.is_file());
        let Some([index, serve]) = programs.into_iter().find(there) else {
            return Err(Error::Engine(format!(
                "{} has no qlever-index and qlever-server; build QLever, and name the folder of these programs: qlever=DIR",
                at.display()
            )));
        };
        Ok(Self {
            index,
            serve,
            setup,
            server: Server::default(),
        })
    }

    /// Path with which the names of the index's files begin.
    fn base(&self) -> PathBuf {
        self.setup.store().join("data")
    }

    fn memory_limit(&self) -> String {
        format!("{}MB", self.setup.memory / 1_000_000)
    }
}

impl Engine for Qlever {
    fn about(&self) -> About {
        let memory = self.memory_limit();
        About {
            name: "qlever".into(),
            version: version_of(&self.serve, &["--version"], None)
                .unwrap_or_else(|| "as built".into()),
            licence: "Apache-2.0".into(),
            how: format!(
                "`qlever-index --stxxl-memory {memory}`; `qlever-server -m {memory} -j {} -k 0`: it keeps no results.",
                self.setup.threads
            ),
            over_http: true,
        }
    }

    fn load(&mut self, data: &Path) -> Result<Loaded> {
        let store = self.setup.fresh_store()?;
        let (seconds, memory) = run_to_end(
            Command::new(&self.index)
                .arg("-i")
                .arg(self.base())
                .args(["-F", "nt", "-f"])
                .arg(data)
                .args(["--stxxl-memory", &self.memory_limit()]),
            &self.setup.log("load"),
        )?;
        Ok(Loaded {
            seconds,
            disk: disk_usage(&store),
            memory,
        })
    }

    fn start(&mut self) -> Result<()> {
        let port = free_port()?.to_string();
        // The client has a time limit of its own, which may be longer than QLever's.
        self.server.start(
            Command::new(&self.serve)
                .arg("-i")
                .arg(self.base())
                .args(["-p", &port, "-m", &self.memory_limit()])
                .args(["-j", &self.setup.threads.to_string(), "-k", "0"])
                .args(["-s", "3600s"]),
            &self.setup.log("serve"),
            format!("http://127.0.0.1:{port}/"),
            &[],
        )
    }

    fn server(&mut self) -> Option<&mut Server> {
        Some(&mut self.server)
    }
}
