//! Apache Jena: TDB2's loader and statistics, Fuseki as the server; one jar has all three.

use super::server::Server;
use super::{Setup, free_port};
use crate::process::{disk_usage, run_to_end};
use crate::{About, Engine, Error, Loaded, Result, install};
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Jena {
    jar: PathBuf,
    setup: Setup,
    server: Server,
}

impl Jena {
    pub fn new(at: PathBuf, setup: Setup) -> Self {
        Self {
            jar: install::jar_in(&at),
            setup,
            server: Server::default(),
        }
    }

    fn java(&self) -> Command {
        let mut c = Command::new(install::java());
        c.arg(format!("-Xmx{}m", self.setup.mebibytes()))
            .arg("-cp")
            .arg(&self.jar)
            .current_dir(&self.setup.work)
            .env("FUSEKI_BASE", self.setup.work.join("fuseki"));
        c
    }
}

/// The newest `Data-NNNN` of a TDB2 folder.
fn data_folder(store: &Path) -> Result<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(store)
        .map_err(|e| Error::io(store, e))?
        .flatten()
        .map(|e| e.path())
        .filter(|p| {
            p.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("Data-"))
        })
        .collect();
    folders.sort();
    folders.pop().ok_or_else(|| {
        Error::Engine(format!(
            "{} holds no TDB2 database after the load",
            store.display()
        ))
    })
}

impl Engine for Jena {
    fn about(&self) -> About {
        About {
            name: "jena".into(),
            version: format!(
                "{}, {}",
                install::version_in(&self.jar),
                install::java_version()
            ),
            licence: "Apache-2.0".into(),
            how: format!(
                "TDB2: `tdb2.tdbloader --loader=parallel`, then `tdb2.tdbstats` for its optimizer; Fuseki with a heap of {} MiB \
                 (TDB2 maps its files beside the heap).",
                self.setup.mebibytes()
            ),
            over_http: true,
        }
    }

    fn load(&mut self, data: &Path) -> Result<Loaded> {
        let store = self.setup.fresh_store()?;
        let data = std::path::absolute(data).map_err(|e| Error::io(data, e))?;
        let (load_s, load_m) = run_to_end(
            self.java()
                .args(["tdb2.tdbloader", "--loader=parallel", "--loc"])
                .arg(&store)
                .arg(&data),
            &self.setup.log("load"),
        )?;
        // The statistics go to standard output, and among the database's files under this name.
        let log = self.setup.log("stats");
        let (stats_s, stats_m) = run_to_end(
            self.java().args(["tdb2.tdbstats", "--loc"]).arg(&store),
            &log,
        )?;
        let text = std::fs::read_to_string(&log).map_err(|e| Error::io(&log, e))?;
        let at = text.find("(stats").ok_or_else(|| {
            Error::Engine(format!(
                "tdb2.tdbstats printed no statistics; see {}",
                log.display()
            ))
        })?;
        let file = data_folder(&store)?.join("stats.opt");
        std::fs::write(&file, &text[at..]).map_err(|e| Error::io(&file, e))?;
        Ok(Loaded {
            seconds: load_s + stats_s,
            disk: disk_usage(&store),
            memory: load_m.max(stats_m),
        })
    }

    fn start(&mut self) -> Result<()> {
        let port = free_port()?;
        self.server.start(
            self.java()
                .args([
                    "org.apache.jena.fuseki.main.cmds.FusekiServerCmd",
                    "--quiet",
                    "--localhost",
                    "--port",
                    &port.to_string(),
                    "--loc",
                ])
                .arg(self.setup.store())
                .arg("/data"),
            &self.setup.log("serve"),
            format!("http://127.0.0.1:{port}/data/query"),
            &[],
        )
    }

    fn server(&mut self) -> Option<&mut Server> {
        Some(&mut self.server)
    }
}
