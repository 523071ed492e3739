//! `jindou bench cluster`: several servers over the shards of one store, each a process of its own on this machine.

mod counting;
mod faults;
mod light;
mod modes;
mod projection;
mod pruning;
mod servers;
mod updates;

use crate::args::cluster::BenchCluster;
use jindou::{Database, LoadOptions, Progress, Result, Sharding};
use jindou_workloads::lubm::Lubm;
use std::path::Path;
use std::process::ExitCode;

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

/// Loads LUBM's data into a new store.
fn load(to: &Path, universities: u32, sharding: Option<Sharding>) -> Result<()> {
    let options = LoadOptions::default().with_sharding(sharding);
    let data = Lubm::new(universities, 0);
    Database::load(to, &data, &options, &Progress::default()).map(drop)
}
