//! `jindou update`.

use super::{
    cancel_on_interrupt, counted, documents, request_text, runtime, service, show_recovery,
};
use crate::args::Update;
use jindou::{Access, Database, OpenOptions, Result, UpdateOptions, UpdateReport};
use std::process::ExitCode;

pub fn run(a: &Update) -> Result<ExitCode> {
    let text = request_text(a.text.as_ref(), a.file.as_ref())?;
    let documents = documents(&a.documents)?;
    let db = Database::open_with(
        &a.store,
        &OpenOptions {
            access: Access::Write,
            durability: a.durability.durability,
            verify: a.verify.verify,
            runtime: Some(runtime(a.threads, a.memory)),
        },
    )?;
    show_recovery(&db);
    let options = UpdateOptions {
        cancel: cancel_on_interrupt(),
        timeout: a.timeout,
        base: a.base.clone(),
        service: service(&a.service_allow),
        documents,
        common_prefixes: !a.no_common_prefixes,
        ..UpdateOptions::default()
    };
    let report = db.update(&text, &options)?;
    if a.json {
        println!(
            "{{\"snapshot\": {}, \"operations\": {}, \"added\": {}, \"removed\": {}}}",
            report.snapshot, report.operations, report.added, report.removed
        );
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what an update did in one line.
pub fn print(report: &UpdateReport) {
    let time = report.parse_time + report.wait_time + report.run_time + report.commit_time;
    println!(
        "snapshot {}: {} added, {} removed by {} in {:.3} s ({:.3} ms until it lasted)",
        report.snapshot,
        counted(report.added, "quad"),
        report.removed,
        counted(report.operations as u64, "operation"),
        time.as_secs_f64(),
        report.commit_time.as_secs_f64() * 1e3,
    );
}
