//! The command `jindou`.

mod advice;
mod args;
mod commands;
mod log;
mod progress;

use clap::Parser;
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
            ExitCode::from(match e {
                jindou::Error::Cancelled => 130,
                jindou::Error::Timeout(_) => 124,
                _ => 1,
            })
        }
    }
}

/// Makes the command end quietly when the reader of its output does (`jindou info | head`): `println!` panics then.
fn end_with_the_reader() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>();
        let pipe = |t: &String| t.starts_with("failed printing to stdout: Broken pipe");
        if text.is_some_and(pipe) {
            std::process::exit(0);
        }
        before(panic);
    }));
}
