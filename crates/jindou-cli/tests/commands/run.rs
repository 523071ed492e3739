//! Runs the command in a folder.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A command in a folder, which is also the home folder of its user.
pub fn jindou(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder).env("HOME", folder);
    command.env("NO_PROXY", "*").env("no_proxy", "*");
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

/// Runs a command line, whose arguments contain no spaces. It must end with this status and write all `parts` to
/// standard output. Returns that.
pub fn writes(folder: &Path, line: &str, status: i32, parts: &[&str]) -> String {
    let args: Vec<&str> = line.split(' ').collect();
    let o = run(folder, &args);
    let [out, err] = [&o.stdout, &o.stderr].map(|b| String::from_utf8_lossy(b).into_owned());
    let has_all = parts.iter().all(|part| out.contains(part));
    assert!(
        o.status.code() == Some(status) && has_all,
        "{line}: {:?}, no {parts:?} in {out}{err}",
        o.status
    );
    out
}

/// Runs a command line, whose arguments contain no spaces. It must fail and write all `parts` to standard error. Returns
/// that.
pub fn refuses(folder: &Path, line: &str, parts: &[&str]) -> String {
    let args: Vec<&str> = line.split(' ').collect();
    let err = bad(folder, &args);
    let has_all = parts.iter().all(|part| err.contains(part));
    assert!(has_all, "{line}: no {parts:?} in {err}");
    err
}

/// Tries again until an attempt succeeds. Returns its result; panics with the last error after half a minute.
pub fn eventually<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(why) => assert!(begun.elapsed() < Duration::from_secs(30), "{why}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a condition holds.
pub fn until(mut holds: impl FnMut() -> bool) {
    eventually(|| holds().then_some(()).ok_or_else(|| "it never holds".into()));
}

/// Changes the byte in the middle of a file.
pub fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).expect("the file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).expect("a file");
}

/// The command at a terminal of 24 lines and this many columns; `None` if the program `script` is not installed.
pub fn script(folder: &Path, columns: u32, args: &str) -> Option<Command> {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: script (util-linux) is not installed");
        return None;
    }
    let jindou = env!("CARGO_BIN_EXE_jindou");
    let line = format!("stty rows 24 cols {columns}; exec {jindou} {args}");
    let mut command = Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .current_dir(folder)
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh");
    Some(command)
}

/// The output of a command at a terminal of 80 columns; `None` if the program `script` is not installed.
pub fn at_terminal(folder: &Path, args: &str) -> Option<String> {
    let mut command = script(folder, 80, args)?;
    let o = command.stdin(Stdio::null()).output().unwrap();
    Some(String::from_utf8_lossy(&o.stdout).replace('\r', ""))
}
