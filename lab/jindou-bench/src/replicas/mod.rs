//! `jindou bench replicas`: several servers of one store over a shared log, each a process of its own on this machine, or
//! simulated.

pub(crate) mod check;
pub(crate) mod client;
pub(crate) mod commits;
pub(crate) mod faults;
mod follow;
mod isolated;
pub(crate) mod lubm;
mod queries;
pub(crate) mod reads;
pub(crate) mod relay;
pub(crate) mod roll;
pub(crate) mod servers;
pub(crate) mod simulate;
mod soak;
mod steps;
mod suites;
mod upset;

use crate::args::replicas::BenchReplicas;
use jindou::Result;
use std::process::ExitCode;

pub fn run(a: &BenchReplicas) -> Result<ExitCode> {
    match a {
        BenchReplicas::Check(a) => check::run(a),
        BenchReplicas::Faults(a) => faults::run(a),
        BenchReplicas::Commits(a) => commits::run(a),
        BenchReplicas::Reads(a) => reads::run(a),
        BenchReplicas::Roll(a) => roll::run(a),
        BenchReplicas::Follow(a) => follow::run(a),
        BenchReplicas::Simulate(a) => simulate::run(a, false),
        BenchReplicas::Soak(a) => soak::run(a),
    }
}
