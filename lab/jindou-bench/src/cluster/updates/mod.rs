//! `jindou bench cluster updates`: the servers of `jindou bench replicas`, each with some shards of the store.

mod bounds;
mod live;
mod merging;
mod moving;
mod restoring;

use crate::args::updates::BenchUpdates;
use crate::replicas::{check, commits, faults, roll, simulate};
use jindou::Result;
use std::process::ExitCode;

/// Number of shards without `--shards`.
const SHARDS: u32 = 6;

pub fn run(mut a: BenchUpdates) -> Result<ExitCode> {
    if let Some(setup) = a.setup() {
        setup.shards.get_or_insert(SHARDS);
    }
    match &a {
        BenchUpdates::Check(a) => check::run(a),
        BenchUpdates::Faults(a) => faults::run(a),
        BenchUpdates::Commits(a) => commits::run(a),
        BenchUpdates::Bounds(a) => bounds::run(a),
        BenchUpdates::Live(a) => live::run(a),
        BenchUpdates::Merge(a) => merging::run(a),
        BenchUpdates::Move(a) => moving::run(a),
        BenchUpdates::Roll(a) => roll::run(a),
        BenchUpdates::Restore(a) => restoring::run(a),
        BenchUpdates::Simulate(a) => simulate::run(a, true),
    }
}

/// Status 3 with a line for each mistake, if there are some.
fn outcome(mistakes: &[String]) -> ExitCode {
    mistakes.iter().for_each(|what| println!("bad: {what}"));
    ExitCode::from(if mistakes.is_empty() { 0 } else { 3 })
}
