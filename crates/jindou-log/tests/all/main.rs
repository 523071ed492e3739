//! Tests of the log: its format, real and faulty disks, object stores.

use jindou_log::{Files, Log, LogOptions, Recovery};
use jindou_model::Result;
use std::sync::Arc;

mod faulty;
mod format;
mod objects;
mod real;

/// Opens the log of an epoch, and returns it with the records after number `after`.
fn open(
    files: Arc<dyn Files>,
    epoch: u64,
    after: u64,
    options: LogOptions,
) -> Result<(Log, Recovery, Vec<Vec<u8>>)> {
    let mut records = Vec::new();
    let (log, found) = Log::open(files, epoch, after, options, &mut |_, bytes| {
        records.push(bytes.to_vec());
        Ok(())
    })?;
    Ok((log, found, records))
}

/// Names of the log's files in order, without the record of the newest file.
fn log_files(files: &dyn Files) -> Vec<String> {
    let mut names = files.list().expect("list");
    names.retain(|name| name.ends_with(".log"));
    names.sort();
    names
}

/// Appends a record and waits until it is acknowledged.
fn append(log: &Log, number: u64, record: Vec<u8>) -> Result<()> {
    log.append(number, record).expect("append").wait()
}
