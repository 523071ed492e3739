//! Running the command in a folder.

use std::path::Path;
use std::process::{Command, Output};

pub fn jindou(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jindou"))
        .current_dir(folder)
        .args(args)
        .output()
        .expect("the program")
}

/// Standard output of a run that succeeds.
pub fn good(folder: &Path, args: &[&str]) -> String {
    let o = jindou(folder, args);
    let err = String::from_utf8_lossy(&o.stderr);
    assert!(o.status.success(), "{args:?}: {err}");
    String::from_utf8(o.stdout).expect("UTF-8")
}

/// Standard error of a run that fails.
pub fn bad(folder: &Path, args: &[&str]) -> String {
    let o = jindou(folder, args);
    assert!(!o.status.success(), "{args:?}");
    String::from_utf8_lossy(&o.stderr).into_owned()
}
