//! Runs the command in a folder.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A command in a folder, which is also the home folder of its user.
pub fn jindou(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder).env("HOME", folder);
    command
}

pub fn run(folder: &Path, args: &[&str]) -> Output {
    jindou(folder).args(args).output().expect("the program")
}

/// Runs a command that must succeed. Returns its standard output and standard error.
pub fn said(folder: &Path, args: &[&str]) -> (String, String) {
    let o = run(folder, args);
    let [out, err] = [o.stdout, o.stderr].map(|b| String::from_utf8(b).expect("UTF-8"));
    assert!(
        o.status.success() && !err.contains("panicked"),
        "{args:?}: {err}"
    );
    (out, err)
}

/// Runs a command that must succeed. Returns its standard output.
pub fn good(folder: &Path, args: &[&str]) -> String {
    said(folder, args).0
}

/// Runs a command that must fail. Returns its standard error.
pub fn bad(folder: &Path, args: &[&str]) -> String {
    let o = run(folder, args);
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(!o.status.success(), "{args:?}: {err}");
    assert!(!err.contains("panicked"), "{args:?}: {err}");
    err
}

/// The output of a command at a terminal of 80 columns; `None` if the program `script` is not installed.
pub fn at_terminal(folder: &Path, args: &str) -> Option<String> {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: script (util-linux) is not installed");
        return None;
    }
    let command = format!(
        "stty rows 24 cols 80; exec {} {args}",
        env!("CARGO_BIN_EXE_jindou")
    );
    let o = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(folder)
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Some(String::from_utf8_lossy(&o.stdout).replace('\r', ""))
}
