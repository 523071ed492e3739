//! `jindou update`.

use super::{
    cancel_on_interrupt, counted, documents, request_text, runtime, service, show_recovery,
};
use crate::args::UpdateArgs;
use crate::say::say;
use jindou::{Access, Database, OpenOptions, Result, UpdateOptions, UpdateReport};
use std::process::ExitCode;

pub fn run(a: &UpdateArgs) -> Result<ExitCode> {
    let text = request_text("update", a.text.as_ref(), a.file.as_ref())?;
    let documents = documents(&a.documents)?;
    let db = Database::open_with(
        &a.store,
        &OpenOptions::default()
            .with_access(Access::Write)
            .with_durability(a.durability.durability)
            .with_verify(a.verify.verify)
            .with_runtime(runtime(a.threads, a.memory)),
    )?;
    show_recovery(&db);
    let mut options = UpdateOptions::default()
        .with_cancel(cancel_on_interrupt())
        .with_timeout(a.timeout)
        .with_common_prefixes(!a.no_prefixes)
        .with_store_prefixes(!a.no_prefixes);
    options.base.clone_from(&a.base);
    options.service = service(&a.service_allow);
    options.documents = documents;
    let report = db.update(&text, &options)?;
    if a.json {
        say!(
            "{{\"snapshot\": {}, \"operations\": {}, \"added\": {}, \"removed\": {}}}",
            report.snapshot,
            report.operations,
            report.added,
            report.removed
        );
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the results of an update in one line.
pub fn print(report: &UpdateReport) {
    let time = report.parse_time + report.wait_time + report.run_time + report.commit_time;
    say!(
        "snapshot {}: {} added, {} removed by {} in {:.3} s ({:.3} ms to commit)",
        report.snapshot,
        counted(report.added, "quad"),
        report.removed,
        counted(report.operations as u64, "operation"),
        time.as_secs_f64(),
        report.commit_time.as_secs_f64() * 1e3,
    );
}
