//! The command `jindou`.

mod advice;
mod args;
mod commands;
mod log;
mod progress;

use clap::Parser;
use jindou_model::program::{end_with_the_reader, exit_status};
use std::process::ExitCode;

/// One buffer of events and one place that turns an error into words and an exit status.
fn main() -> ExitCode {
    end_with_the_reader();
    let args = args::Args::parse();
    match commands::run(args) {
        Ok(code) => code,
        Err(jindou::Error::SinkClosed) => ExitCode::SUCCESS,
        Err(e) => {
            match advice::of(&e) {
                Some(advice) => eprintln!("jindou: {e}; {advice}"),
                None => eprintln!("jindou: {e}"),
            }
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
            ExitCode::from(exit_status(&e))
        }
    }
}
