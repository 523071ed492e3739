//! The command `jindou`.

mod advice;
mod args;
#[cfg(feature = "audit")]
mod audit;
mod commands;
mod empty;
mod log;
mod mistakes;
mod overlooked;
mod pages;
mod progress;
mod rdf;
mod remote;
mod say;
mod settings;
mod shell;

use clap::FromArgMatches;
use jindou_model::program::{end_with_the_reader, exit_status};
use jindou_model::{BySize, Tracked};
use mimalloc::MiMalloc;
use std::ffi::OsString;
use std::process::ExitCode;

/// Measures the memory for parsing and planning a query, which allocate many small pieces.
type Measured = Tracked<BySize<MiMalloc>>;
const MEASURED: Measured = Tracked::over(BySize::new(MiMalloc));

#[cfg(not(feature = "audit"))]
#[global_allocator]
static ALLOCATOR: Measured = MEASURED;

#[cfg(feature = "audit")]
#[global_allocator]
static ALLOCATOR: audit::Auditing<Measured> = audit::Auditing(MEASURED);

/// Sets up logging, and turns an error into a message and an exit status.
fn main() -> ExitCode {
    end_with_the_reader();
    match run() {
        Ok(code) => code,
        Err(jindou::Error::SinkClosed) => ExitCode::SUCCESS,
        Err(e) => ExitCode::from(exit_status(&e)),
    }
}

/// Reads settings from environment and file, then the command line, and runs the command.
fn run() -> jindou::Result<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let bare = args::command();
    let file = settings::find(&arguments, &bare).inspect_err(tell)?;
    let matches = settings::apply(bare.clone(), file.as_ref())
        .try_get_matches_from(&arguments)
        .unwrap_or_else(|e| {
            let variable = settings::variable_at_fault(&e, &arguments);
            let e = mistakes::advised(e, &arguments);
            let (code, _) = (e.exit_code(), e.print());
            if let Some(name) = variable {
                eprintln!("note: the value comes from the environment variable {name}");
            }
            std::process::exit(code)
        });
    let args = args::Args::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    let (command, given) = matches.subcommand().unwrap_or(("", &matches));
    let done = mistakes::named_twice(command, given).and_then(|()| match &args.command {
        args::Command::Settings(a) => settings::show(a, &bare, file.as_ref()),
        args::Command::Health(a) => health(a, file.as_ref()),
        _ => commands::run(args),
    });
    done.map_err(|e| advice::meant(e, command))
        .inspect_err(|e| {
            if matches!(e, jindou::Error::SinkClosed) {
                return;
            }
            tell(e);
            let is_lenient = matches!(given.try_get_one::<bool>("lenient"), Ok(Some(true)));
            for line in advice::help(e, command, is_lenient) {
                eprintln!("help: {line}");
            }
        })
}

/// Asks a server whether it is ready: the one at the address, or this machine's own.
fn health(a: &args::Health, file: Option<&settings::SettingsFile>) -> jindou::Result<ExitCode> {
    let ready = match &a.url {
        Some(url) => remote::ready(url, a.timeout)?,
        None => remote::ready_here(&settings::own_address(file), a.timeout)?,
    };
    say::say!("{ready}");
    Ok(ExitCode::SUCCESS)
}

/// Prints an error, and possible remedies.
fn tell(e: &jindou::Error) {
    match advice::advice_for(e) {
        Some(advice) => eprintln!("jindou: {e}; {advice}"),
        None => eprintln!("jindou: {e}"),
    }
    if let jindou::Error::Sparql(faults) = e {
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
}
