//! Tests of the log: its format, real and faulty disks, object stores.

use jindou_log::{Files, Log, LogOptions, Recovery};
use jindou_model::Result;
use std::sync::Arc;

/// The methods of `Files` that only ask `self.inner`.
macro_rules! ask_inner {
    () => {
        fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
            self.inner.read(name, limit)
        }
        fn len(&self, name: &str) -> io::Result<u64> {
            self.inner.len(name)
        }
        fn create(&self, name: &str) -> io::Result<Box<dyn jindou_log::File>> {
            self.inner.create(name)
        }
        fn open(&self, name: &str) -> io::Result<Box<dyn jindou_log::File>> {
            self.inner.open(name)
        }
        fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            self.inner.rename(from, to)
        }
        fn remove(&self, name: &str) -> io::Result<()> {
            self.inner.remove(name)
        }
        fn sync_directory(&self) -> io::Result<()> {
            self.inner.sync_directory()
        }
        fn path(&self, name: &str) -> std::path::PathBuf {
            self.inner.path(name)
        }
    };
}

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
