//! `jindou bench parallel`: repeats the study "Performance of RDF query processing on the Intel SCC" (Slavov, Rao,
//! Barenkala, Paturi) with worker processes on one machine.
//!
//! ```text
//! study      classify the queries, run every model
//!   ├── workload    the store and the queries
//!   ├── task        algorithm 1: a pool of queries, one whole store
//!   ├── data        algorithm 2: parts of a query, parts of the graph
//!   │     ├── algebra    patterns of a query, and what is left of it
//!   │     ├── decompose  a pattern in parts that are complete inside a partition
//!   │     ├── join       the parts' rows
//!   │     └── build, partition/   the partitions' stores
//!   ├── processes, worker, wire   processes and what they say to each other
//!   ├── footprint   bytes touched; cold files
//!   └── fit, report, plot   the projection, tables, plots
//! ```

mod algebra;
mod build;
mod data;
mod decompose;
mod fit;
mod footprint;
mod join;
mod partition;
mod plot;
mod processes;
mod report;
mod study;
mod task;
#[cfg(test)]
mod tests;
mod wire;
pub mod worker;
mod workload;

use crate::args::parallel::{BenchParallel, Model};
use crate::measure::Folder;
use fit::Line;
use jindou::{Error, Result};
use std::process::ExitCode;

pub fn run(a: &BenchParallel) -> Result<ExitCode> {
    let folder = Folder::new(a.work.as_deref())?;
    let work = &folder.dir;
    std::fs::create_dir_all(work).map_err(|e| Error::io(work, e))?;
    let workload = workload::workload(a, work)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{}; {cores} cores here: with {cores} workers the master shares one with a worker",
        workload.title
    );
    let queries = study::classify(&workload, a)?;
    let mut lines: Vec<Line> = vec![];
    if a.model != Model::Data {
        study::tasks(&workload, &queries, a, &mut lines)?;
        let of_tasks: Vec<&Line> = lines.iter().collect();
        report::lines(
            "Task parallelism (figures 1 to 4): ST and LT",
            "tasks a worker",
            &of_tasks,
        );
    }
    if a.model != Model::Task {
        let before = lines.len();
        study::data(&workload, &queries, work, a, &mut lines)?;
        let of_data: Vec<&Line> = lines[before..].iter().collect();
        report::lines(
            "Data parallelism (figures 4 and 5): SD and LD; no result is missed",
            "rows a worker",
            &of_data,
        );
    }
    report::projection(&lines, a.project);
    for (to, text) in [
        (&a.csv, report::csv(&lines, a.project)),
        (&a.svg, plot::svg(&workload.title, &lines, a.project)),
    ] {
        if let Some(to) = to {
            std::fs::write(to, text).map_err(|e| Error::io(to, e))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
