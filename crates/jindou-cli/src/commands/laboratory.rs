//! `jindou generate`, `bench` and `peers`: they belong to the program `jindou-bench`, which is installed next to this one.

use jindou::{Error, Result};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The path of `jindou-bench`.
pub fn program() -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(|e| Error::io("/proc/self/exe", e))?;
    Ok(own.with_file_name(format!("jindou-bench{}", std::env::consts::EXE_SUFFIX)))
}

/// Runs `jindou-bench` with the argument `first`, if there is one, and then the other arguments. Exits with its status.
pub fn run(first: Option<&str>, arguments: &[OsString]) -> Result<ExitCode> {
    let program = program()?;
    if !program.is_file() {
        return Err(Error::Unsupported(format!(
            "benchmarks, their data and comparisons need the program jindou-bench, which was not found: {}; build it \
                with `cargo build --release -p jindou-bench`, or install it next to jindou",
            program.display()
        )));
    }
    let mut command = Command::new(&program);
    command.args(first).args(arguments);
    end_as(&mut command).map_err(|e| Error::io(&program, e))
}

/// Replaces this process by the other program (exec), so that signals reach that program.
#[cfg(unix)]
fn end_as(command: &mut Command) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

#[cfg(not(unix))]
fn end_as(command: &mut Command) -> std::io::Result<ExitCode> {
    let code = command.status()?.code().and_then(|c| u8::try_from(c).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
