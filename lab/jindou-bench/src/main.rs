//! The program `jindou-bench`: measurements with checked answers, generators of their data, and comparisons with other
//! engines. `jindou bench …`, `jindou generate …` and `jindou peers …` start it.

mod args;
mod cluster;
mod commits;
mod complete;
mod engines;
mod files;
mod generate;
mod gpu;
mod http;
mod light;
mod live;
mod lookup;
mod lubm;
mod measure;
mod merge;
mod mix;
mod mixed;
mod obliger;
mod operators;
mod papers;
mod parallel;
mod peers;
mod process;
mod replicas;
mod set;
mod stream;
mod svg;
mod ugly;
mod updates;
mod warm;

use args::{Args, Bench, Command};
use clap::Parser;
use jindou::{Error, Result};
use jindou_model::program::{end_with_the_reader, exit_status};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    end_with_the_reader();
    match run(Args::parse().command) {
        Ok(code) => code,
        Err(Error::SinkClosed) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("jindou-bench: {e}");
            ExitCode::from(exit_status(&e))
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Bench(bench) => measure_by(*bench),
        Command::Peers(a) => engines::run(a),
        Command::Generate(a) => generate::run(a),
    }
}

fn measure_by(bench: Bench) -> Result<ExitCode> {
    match bench {
        Bench::Lubm(a) => lubm::run(&a),
        Bench::Watdiv(a) => mix::watdiv(&a),
        Bench::Bsbm(a) => mix::bsbm(&a),
        Bench::Sp2b(a) => mix::sp2b(&a),
        Bench::Ugly(a) => ugly::run(&a),
        Bench::Papers(a) => papers::run(&a),
        Bench::Files(a) => files::run(&a),
        Bench::Operators(a) => operators::run(&a),
        Bench::Stream(a) => stream::run(&a),
        Bench::Live(a) => live::run(&a),
        Bench::Commits(a) => commits::run(&a),
        Bench::Complete(a) => complete::run(&a),
        Bench::Merge(a) => merge::run(&a),
        Bench::Mixed(a) => mixed::run(&a),
        Bench::Parallel(a) => parallel::run(&a),
        Bench::Cluster(a) => cluster::run(&a),
        Bench::Gpu(a) => gpu::run(&a),
        Bench::Replicas(a) => replicas::run(&a),
        Bench::Http(a) => http::run(&a),
        Bench::HttpBare => http::bare::run(),
        Bench::ParallelWorker(a) => parallel::worker::run(&a),
        Bench::Updates(a) => updates::run(&a),
        Bench::Warm(a) => warm::run(&a),
    }
}

/// Path of the program `jindou`, which is in the same folder as this program (in tests, one folder above).
fn jindou_program() -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(|e| Error::io("/proc/self/exe", e))?;
    let name = format!("jindou{}", std::env::consts::EXE_SUFFIX);
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(&name))
        .find(|p| p.is_file())
        .ok_or_else(|| {
            Error::external(format!(
                "no command jindou next to {}: build or install both",
                own.display()
            ))
        })
}
