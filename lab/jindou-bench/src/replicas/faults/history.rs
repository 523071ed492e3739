//! The updates and strict reads of all counts as lines of JSON. A count is a register, and `scripts/porcupine.sh` checks that each is
//! linearizable.

use jindou::{Error, Result};
use jindou_model::sync::lock;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

pub(super) struct History {
    path: PathBuf,
    /// Counts, each of which one client updates; strict reads are of any.
    pub(super) registers: usize,
    begun: Instant,
    file: Mutex<BufWriter<File>>,
}

impl History {
    pub(super) fn create(path: &Path, registers: usize) -> Result<Self> {
        let file = File::create(path).map_err(|e| Error::io(path, e))?;
        Ok(Self {
            path: path.to_owned(),
            registers,
            begun: Instant::now(),
            file: Mutex::new(BufWriter::new(file)),
        })
    }

    /// Adds an operation of a client that ended just now. `kind` is `update` or `read`; `outcome` is `ok`, `failed` (it had no effect),
    /// or `unknown` (it may still have an effect later).
    pub(super) fn add(
        &self,
        (client, register): (usize, usize),
        (kind, value): (&str, Option<u64>),
        called: Instant,
        outcome: &str,
    ) {
        let value = value.map_or_else(|| "null".into(), |v| v.to_string());
        let call = called.duration_since(self.begun).as_nanos();
        let end = self.begun.elapsed().as_nanos();
        // `finish` fails again if this fails.
        let _ = writeln!(
            lock(&self.file),
            r#"{{"client":{client},"register":{register},"kind":"{kind}","value":{value},"call":{call},"return":{end},"outcome":"{outcome}"}}"#
        );
    }

    pub(super) fn finish(&self) -> Result<()> {
        let flushed = lock(&self.file).flush();
        flushed.map_err(|e| Error::io(&self.path, e))
    }
}
