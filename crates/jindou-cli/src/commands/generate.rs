//! `jindou generate`.

use jindou::{Error, QuadSource, Result};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::ntriples::{TagCase, write_source};
use jindou_workloads::ugly::Ugly;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

pub fn lubm(universities: u32, seed: i64, out: &Path) -> Result<ExitCode> {
    write(&Lubm::new(universities, seed), TagCase::Lower, out)
}

pub fn ugly(quads: u64, seed: u64, out: &Path) -> Result<ExitCode> {
    write(&Ugly::new(quads, seed), TagCase::Mixed, out)
}

fn write(source: &dyn QuadSource, tags: TagCase, out: &Path) -> Result<ExitCode> {
    let to: Box<dyn Write> = if out.as_os_str() == "-" {
        Box::new(std::io::stdout().lock())
    } else {
        Box::new(File::create(out).map_err(|e| Error::io(out, e))?)
    };
    let mut to = BufWriter::with_capacity(1 << 20, to);
    let quads = write_source(source, tags, &mut to)?;
    to.flush().map_err(|e| {
        if e.kind() == std::io::ErrorKind::BrokenPipe {
            Error::SinkClosed
        } else {
            Error::io(out, e)
        }
    })?;
    eprintln!("{quads} statements");
    Ok(ExitCode::SUCCESS)
}
