//! `jindou recluster`.

use super::{cancel_on_interrupt, indexes, runtime, show_recovery};
use crate::args::Recluster;
use crate::progress::Bar;
use crate::say::say;
use jindou::{Access, Database, OpenOptions, Progress, ReclusterOptions, Result};
use std::process::ExitCode;
use std::sync::Arc;

pub fn run(a: &Recluster) -> Result<ExitCode> {
    let db = Database::open_with(
        &a.store,
        &OpenOptions::default()
            .with_access(Access::Write)
            .with_verify(a.verify.verify)
            .with_indexes(indexes()?)
            .with_runtime(runtime(a.threads, a.memory)),
    )?;
    show_recovery(&db);
    let load = db.runtime().load_options();
    let options = ReclusterOptions::default()
        .with_memory(load.memory)
        .with_threads(load.threads)
        .with_indexes(if a.text { Some(indexes()?) } else { None })
        .with_cancel(cancel_on_interrupt());
    let progress = Arc::new(Progress::default());
    let report = {
        let _bar = Bar::start(Arc::clone(&progress), Some(db.quads()), a.quiet);
        db.recluster(&options, &progress)?
    };
    say!(
        "{}: {} quads, {} terms renumbered in {:.2} s; {:.1} MiB; snapshot {}, id epoch {:016x}",
        a.store.display(),
        report.quads,
        report.terms,
        (report.load_time + report.catch_up_time).as_secs_f64(),
        report.bytes as f64 / (1 << 20) as f64,
        report.snapshot,
        report.epoch
    );
    if let Some(why) = report.left {
        eprintln!("jindou: files of the old base stay until the store is next opened: {why}");
    }
    Ok(ExitCode::SUCCESS)
}
