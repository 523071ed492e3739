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
use crate::measure::temporary_folder;
use jindou::{Database, LoadOptions, Progress, Result, Sharding};
use jindou_workloads::lubm::Lubm;
use std::path::{Path, PathBuf};
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
    let folder = temporary_folder(a.dir.as_deref())?;
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    load(&whole, a.universities, None)?;
    load(&cut, a.universities, Some(Sharding::new(a.shards)))?;
    Ok(Stores { whole, cut, folder })
}

/// Loads LUBM's data into a new store.
fn load(to: &Path, universities: u32, sharding: Option<Sharding>) -> Result<()> {
    let options = LoadOptions::default().with_sharding(sharding);
    let data = Lubm::new(universities, 0);
    Database::load(to, &data, &options, &Progress::default()).map(drop)
}
