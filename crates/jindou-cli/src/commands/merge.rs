//! `jindou merge`.

use super::{cancel_on_interrupt, runtime, show_recovery};
use crate::args::{Merge, MergeBudget};
use crate::say::say;
use jindou::{Access, Database, MergeOptions, OpenOptions, Progress, Result};
use std::process::ExitCode;

pub fn run(a: &Merge) -> Result<ExitCode> {
    let db = Database::open_with(
        &a.store,
        &OpenOptions::default()
            .with_access(Access::Write)
            .with_verify(a.verify.verify)
            .with_runtime(runtime(a.threads, None)),
    )?;
    show_recovery(&db);
    let options = options(&a.budget)
        .with_threads(db.runtime().threads())
        .with_cancel(cancel_on_interrupt());
    let report = db.merge(&options, &Progress::default())?;
    if a.json {
        say!(
            "{{\"snapshot\": {}, \"edits\": {}, \"predicates\": {}, \"edges\": {}, \"bytes\": {}, \"generations\": {}, \"seconds\": {:.6}}}",
            report.snapshot,
            report.edits,
            report.predicates,
            report.edges,
            report.bytes,
            report.generations,
            report.time.as_secs_f64()
        );
    } else {
        say!("{report}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Options of a merge on one thread with the limits of `budget`.
pub fn options(budget: &MergeBudget) -> MergeOptions {
    MergeOptions::default()
        .with_memory(budget.merge_memory)
        .with_bytes_per_second(budget.merge_rate)
        .with_threads(1)
}
