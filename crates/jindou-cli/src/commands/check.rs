//! `jindou check`.

use super::{counted, indexes};
use crate::args::StoreArg;
use jindou::{Database, Result};
use std::io::Write;
use std::process::ExitCode;

pub fn run(a: &StoreArg) -> Result<ExitCode> {
    let report = Database::check_with(&a.store, &indexes()?)?;
    // The exit status reports damage even if the reader closes the output after its first line.
    let mut out = std::io::stdout();
    for d in &report.damages {
        let _ = writeln!(out, "damaged: {d}");
    }
    if report.damages.is_empty() {
        let _ = writeln!(
            out,
            "{}: no damage found in {} files, {} bytes",
            a.store.display(),
            report.files,
            report.bytes
        );
        Ok(ExitCode::SUCCESS)
    } else {
        let _ = writeln!(
            out,
            "{}: {}; restore the store from a backup (`jindou restore`), or load it again from its sources",
            a.store.display(),
            counted(
                report.damages.len() as u64 + report.unlisted,
                "damaged place"
            )
        );
        Ok(ExitCode::from(2))
    }
}
