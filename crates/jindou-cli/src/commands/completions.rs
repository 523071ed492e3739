//! `jindou completions` and `jindou man`: generated from the definition of the command line.

use crate::args::{self, Completions, Man};
use crate::say::say;
use jindou::{Error, Result};
use std::process::ExitCode;

pub fn run(a: &Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(a.shell, &mut args::command(), "jindou", &mut script);
    say!("{}", String::from_utf8_lossy(&script).trim_end());
    Ok(ExitCode::SUCCESS)
}

pub fn man(a: &Man) -> Result<ExitCode> {
    std::fs::create_dir_all(&a.folder).map_err(|e| Error::io(&a.folder, e))?;
    // The pages show the version without the commit, so that every build of a release makes the same pages. clap_mangen
    // omits the descriptions of options that are hidden from `-h`, so none is hidden here.
    let shown = |sub: clap::Command| sub.mut_args(|arg| arg.hide_short_help(false));
    let command = args::command()
        .version(env!("CARGO_PKG_VERSION"))
        .mut_subcommands(shown);
    clap_mangen::generate_to(command, &a.folder).map_err(|e| Error::io(&a.folder, e))?;
    Ok(ExitCode::SUCCESS)
}
