//! Files that are queried without a store.

use crate::args::QueryArgs;
use crate::progress::Bar;
use jindou::parse::{Input, Limits, Sources};
use jindou::{CancelToken, Database, MemoryBudget, Progress, QuadSource, Result, UpdateOptions};
use std::sync::Arc;

/// Reads the files of `--data` into memory.
///
/// # Errors
/// Errors of reading the files; [`jindou::Error::Limit`] if they do not fit into memory.
pub fn read(a: &QueryArgs, cancel: &CancelToken) -> Result<Database> {
    let db = Database::in_memory();
    let memory = match a.memory {
        Some(bytes) => MemoryBudget::new(bytes),
        None => db.runtime().memory().clone(),
    };
    let mut builder = Sources::builder()
        .format(a.data_format)
        .contexts(super::contexts(&[]))
        .documents_from(Database::document_number())
        .limits(Limits {
            cancel: cancel.clone(),
            memory: memory.clone(),
        });
    for path in &a.data {
        builder = builder.input(Input {
            path: path.clone(),
            format: a.data_format,
            graph: None,
        });
    }
    let sources = builder.build()?;
    for warning in sources.warnings() {
        eprintln!("jindou: {warning}");
    }
    let options = UpdateOptions::default()
        .with_cancel(cancel.clone())
        .with_threads(a.threads)
        .with_memory(memory);
    let progress = Arc::new(Progress::default());
    let _bar = Bar::start(Arc::clone(&progress), sources.size_hint(), false);
    db.insert(&sources, &options, &progress)?;
    Ok(db)
}
