//! `jindou merge`.

use super::{cancel_on_interrupt, runtime, show_recovery};
use crate::args::{Merge, MergeBudget};
use jindou::{Access, Database, MergeOptions, OpenOptions, Progress, Result};
use std::process::ExitCode;

pub fn run(a: &Merge) -> Result<ExitCode> {
    let db = Database::open_with(
        &a.store,
        &OpenOptions {
            access: Access::Write,
            verify: a.verify.verify,
            runtime: Some(runtime(a.threads, None)),
            ..OpenOptions::default()
        },
    )?;
    show_recovery(&db);
    let options = MergeOptions {
        threads: db.runtime().threads(),
        cancel: cancel_on_interrupt(),
        ..options(&a.budget)
    };
    let report = db.merge(&options, &Progress::default())?;
    if a.json {
        println!(
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
        println!("{report}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The budget as options; one thread.
pub fn options(budget: &MergeBudget) -> MergeOptions {
    MergeOptions {
        memory: budget.merge_memory,
        bytes_per_second: budget.merge_rate,
        threads: 1,
        ..MergeOptions::default()
    }
}
