//! One file an engine: how it is loaded, started and asked.

mod duckdb;
mod jena;
mod jindou;
mod oxigraph;
mod qlever;
mod server;
mod virtuoso;

pub use jindou::Jindou;
pub use server::Server;

use crate::install::Peer;
use crate::{Engine, Error, Result};
use std::path::{Path, PathBuf};

/// Folders and limits that every engine is given.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Folder with the installed engines.
    pub engines: PathBuf,
    /// Folder for this engine's store and logs; made if it is not there.
    pub work: PathBuf,
    /// Memory that it may use, in bytes, as far as it can be told.
    pub memory: u64,
    /// Threads that a query may use, as far as it can be told.
    pub threads: usize,
}

impl Setup {
    fn mebibytes(&self) -> u64 {
        (self.memory >> 20).max(256)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.work.join(format!("{name}.log"))
    }

    fn store(&self) -> PathBuf {
        self.work.join("store")
    }

    /// An empty folder for the store.
    fn fresh_store(&self) -> Result<PathBuf> {
        let store = self.store();
        if store.exists() {
            std::fs::remove_dir_all(&store).map_err(|e| Error::io(&store, e))?;
        }
        std::fs::create_dir_all(&store).map_err(|e| Error::io(&store, e))?;
        Ok(store)
    }
}

/// A peer by its name: one that is installed, or `qlever=DIR`.
///
/// # Errors
/// When there is no such peer or it is not installed, with what to do.
pub fn open(name: &str, setup: &Setup) -> Result<Box<dyn Engine>> {
    let built = name.strip_prefix("qlever=");
    let at = match built {
        Some(folder) => folder.into(),
        None => installed(name, &setup.engines)?,
    };
    std::fs::create_dir_all(&setup.work).map_err(|e| Error::io(&setup.work, e))?;
    // Java servers run in their own folder.
    let at = std::path::absolute(&at).map_err(|e| Error::io(&at, e))?;
    let setup = Setup {
        work: std::path::absolute(&setup.work).map_err(|e| Error::io(&setup.work, e))?,
        ..setup.clone()
    };
    Ok(match name {
        _ if built.is_some() => Box::new(qlever::Qlever::new(&at, setup)?),
        "oxigraph" => Box::new(oxigraph::Oxigraph::new(at, setup)),
        "virtuoso" => Box::new(virtuoso::Virtuoso::new(at, setup)),
        "jena" => Box::new(jena::Jena::new(at, setup)),
        "duckdb" | "duckdb-text" => Box::new(duckdb::DuckDb::new(at, setup, name == "duckdb-text")),
        other => return Err(Error::Engine(format!("{other} has no driver"))),
    })
}

/// The folder of an installed peer.
fn installed(name: &str, engines: &Path) -> Result<PathBuf> {
    let there = Peer::named(name)?.installed(engines);
    there.ok_or_else(|| {
        let engines = engines.display();
        Error::Engine(format!(
            "{name} is not installed in {engines}; run `jindou peers install {name} --into {engines}`"
        ))
    })
}

/// A free port of the loopback interface. Another program could take it before the server does; the server then
/// does not come up, and says so.
fn free_port() -> Result<u16> {
    std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .map(|a| a.port())
        .map_err(|e| Error::io("127.0.0.1", e))
}

/// The first line with a digit that a program prints about its version. It must begin the line's first word or follow
/// a name, as in `oxigraph 0.5` or `Version 7.2`: not every program that prints its version ends with success.
fn version_of(program: &Path, arguments: &[&str], libraries: Option<&str>) -> Option<String> {
    let mut command = std::process::Command::new(program);
    command.args(arguments);
    if let Some(l) = libraries {
        command.env("LD_LIBRARY_PATH", l);
    }
    let out = command.output().ok()?;
    let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.push('\n');
    text += &String::from_utf8_lossy(&out.stderr);
    text.lines()
        .map(str::trim)
        .find(|l| {
            l.split_whitespace().take(2).any(|w| {
                w.trim_start_matches('v')
                    .starts_with(|c: char| c.is_ascii_digit())
            })
        })
        .map(str::to_owned)
}
