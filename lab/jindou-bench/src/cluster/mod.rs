//! `jindou bench cluster`: several servers over the shards of one store, each a process of its own on this machine.

mod counting;
mod faults;
mod light;
mod modes;
mod projection;
mod pruning;
mod relay;
mod servers;
mod updates;

use crate::args::cluster::{BenchCluster, ClusterSetup};
use jindou::{Database, Error, LoadOptions, Progress, Result, Sharding};
use jindou_workloads::lubm::Lubm;
use std::path::PathBuf;
use std::process::ExitCode;
use tempfile::TempDir;

pub fn run(a: &BenchCluster) -> Result<ExitCode> {
    match a {
        BenchCluster::Faults(a) => faults::run(a),
        BenchCluster::Light(a) => light::run(a),
        BenchCluster::Modes(a) => modes::run(a),
        BenchCluster::Projection(a) => projection::run(a),
        BenchCluster::Pruning(a) => pruning::run(a),
        BenchCluster::Updates(a) => updates::run(a.clone()),
    }
}

/// LUBM's data as one store and cut into shards.
struct Stores {
    whole: PathBuf,
    cut: PathBuf,
    folder: TempDir,
}

fn stores(a: &ClusterSetup) -> Result<Stores> {
    let folder = match &a.dir {
        Some(dir) => tempfile::tempdir_in(dir).map_err(|e| Error::io(dir, e))?,
        None => tempfile::tempdir().map_err(|e| Error::io("a temporary folder", e))?,
    };
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    let load = |to, sharding| {
        let options = LoadOptions::default().with_sharding(sharding);
        let data = Lubm::new(a.universities, 0);
        Database::load(to, &data, &options, &Progress::default())
    };
    load(&whole, None)?;
    load(&cut, Some(Sharding::new(a.shards)))?;
    Ok(Stores { whole, cut, folder })
}
