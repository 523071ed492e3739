//! The command `jindou`.

mod args;
mod commands;
mod log;
mod progress;

use clap::Parser;
use std::process::ExitCode;

/// One buffer of events and one place that turns an error into words and an exit status.
fn main() -> ExitCode {
    let args = args::Args::parse();
    match commands::run(args) {
        Ok(code) => code,
        Err(jindou::Error::SinkClosed) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("jindou: {e}");
            if let jindou::Error::Sparql(faults) = &e {
                match faults.first().kind {
                    jindou::DiagnosticKind::UpdateNotQuery => {
                        eprintln!("help: run it with 'jindou update'");
                    }
                    jindou::DiagnosticKind::QueryNotUpdate => {
                        eprintln!("help: run it with 'jindou query'");
                    }
                    _ => {}
                }
            }
            ExitCode::from(match e {
                jindou::Error::Cancelled => 130,
                jindou::Error::Timeout(_) => 124,
                _ => 1,
            })
        }
    }
}
