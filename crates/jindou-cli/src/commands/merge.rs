//! `jindou merge`.

use super::{cancel_on_interrupt, counted, show_recovery, threads_or_all};
use crate::args::{Merge, MergeBudget};
use jindou::{Access, Database, MergeOptions, MergeReport, OpenOptions, Progress, Result};
use std::process::ExitCode;

pub fn run(a: &Merge) -> Result<ExitCode> {
    let db = Database::open_with(
        &a.store,
        &OpenOptions {
            access: Access::Write,
            verify: a.verify.verify,
            ..OpenOptions::default()
        },
    )?;
    show_recovery(&db);
    let options = MergeOptions {
        threads: threads_or_all(a.threads),
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
        println!("{}", sentence(&report));
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

/// What a merge did, in one line.
pub fn sentence(r: &MergeReport) -> String {
    if r.bytes == 0 {
        return format!("snapshot {}: nothing to merge", r.snapshot);
    }
    format!(
        "merged snapshot {}: {}, {} with {}, {} bytes in {:.3} s; updates waited {:.3} ms at the end; {} generation{}",
        r.snapshot,
        counted(r.edits, "edit"),
        counted(r.predicates as u64, "predicate"),
        counted(r.edges, "edge"),
        r.bytes,
        r.time.as_secs_f64(),
        r.pause.as_secs_f64() * 1e3,
        r.generations,
        if r.generations == 1 { "" } else { "s" },
    )
}
