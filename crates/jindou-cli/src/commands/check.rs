//! `jindou check`.

use super::counted;
use crate::args::StoreArg;
use jindou::{Database, Result};
use std::process::ExitCode;

pub fn run(a: &StoreArg) -> Result<ExitCode> {
    let report = Database::check(&a.store)?;
    for d in &report.damages {
        println!("damaged: {d}");
    }
    if report.damages.is_empty() {
        println!(
            "{}: no damage found in {} files, {} bytes",
            a.store.display(),
            report.files,
            report.bytes
        );
        Ok(ExitCode::SUCCESS)
    } else {
        println!(
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
