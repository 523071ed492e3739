//! Tells the command which commit it is built of, where git knows; a source archive may say so by `JINDOU_COMMIT`.

use std::process::Command;

fn git(args: &[&str]) -> Option<String> {
    let out = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    (out.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-env-changed=JINDOU_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let given = std::env::var("JINDOU_COMMIT").ok();
    // Of this project, and not of one that its folder happens to lie in.
    let ours = || {
        let top = git(&["rev-parse", "--show-toplevel"])?;
        let here = std::env::var("CARGO_MANIFEST_DIR").ok()?;
        let crates = std::path::Path::new(&top).join("crates/jindou-cli");
        (crates.canonicalize().ok()? == std::path::Path::new(&here).canonicalize().ok()?)
            .then_some(())?;
        for name in ["HEAD", "logs/HEAD"] {
            if let Some(path) = git(&["rev-parse", "--git-path", name]) {
                println!("cargo::rerun-if-changed={path}");
            }
        }
        git(&["log", "-1", "--format=commit %h of %cs"])
    };
    let commit = given
        .filter(|c| !c.trim().is_empty())
        .map(|c| format!("commit {}", c.trim()))
        .or_else(ours)
        .unwrap_or_else(|| "commit unknown".into());
    println!("cargo::rustc-env=JINDOU_COMMIT={commit}");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    println!("cargo::rustc-env=JINDOU_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=JINDOU_PROFILE={}", variable("PROFILE"));
    // None of it is left out by any option of the build; what a machine lacks is found when the program runs.
    println!(
        "cargo::rustc-env=JINDOU_FEATURES=HTTP, TLS, SERVICE, gzip, bzip2, xz, zstd, GPU (CUDA driver found at run time)"
    );
}
