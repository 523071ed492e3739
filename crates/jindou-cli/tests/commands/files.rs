//! A backup whose newest list of files cannot be read in time, and the permissions of a cluster's files.

use super::run::{good, jindou};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn bad(folder: &Path, args: &[&str]) -> String {
    let err = super::run::bad(folder, args);
    assert!(err.starts_with("jindou: "), "{args:?}: {err}");
    err
}

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn an_older_backup_is_restored_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("d.ttl"), "<urn:a> <urn:p> 1 .").unwrap();
    good(folder, &["load", "--quiet", "--store", "s", "d.ttl"]);
    let backup = || {
        let line = good(folder, &["backup", "--store", "s", "--to", "backups"]);
        line.split(" of ").next().unwrap().to_owned()
    };
    let older = backup();
    good(
        folder,
        &[
            "update",
            "--store",
            "s",
            "INSERT DATA { <urn:b> <urn:p> 2 }",
        ],
    );
    let newest = backup();
    let list = folder.join("backups").join(&newest);
    fs::remove_file(&list).unwrap();
    pipe(&list);
    let begun = Instant::now();
    let told = bad(folder, &["restore", "--from", "backups", "--store", "r"]);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(
        told.contains(&newest) && told.contains(&format!("--backup {older}")),
        "{told}"
    );
    good(
        folder,
        &[
            "restore", "--from", "backups", "--store", "r", "--backup", &older,
        ],
    );
    let count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    let rows = good(folder, &["query", "--store", "r", "--format", "csv", count]);
    assert_eq!(rows, "n\r\n1\r\n");
}

#[test]
fn what_a_cluster_needs_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lines: String = (0..50)
        .map(|i| format!("<urn:s{i}> <urn:p> <urn:o{i}> .\n"))
        .collect();
    fs::write(folder.join("d.nt"), lines).unwrap();
    good(
        folder,
        &["load", "--quiet", "--shards", "2", "--store", "s", "d.nt"],
    );
    let mut command = jindou(folder);
    command.args([
        "cluster",
        "start",
        "--store",
        "s",
        "--servers",
        "2",
        "--port",
        "0",
    ]);
    command.args(["--files", "new/cluster"]);
    // SAFETY: umask only sets a number of the new process, before it runs the command.
    unsafe {
        command.pre_exec(|| {
            libc::umask(0);
            Ok(())
        })
    };
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let made = folder.join("new/cluster");
    let end = Instant::now() + Duration::from_secs(60);
    while !made.join("cluster.toml").exists() {
        assert!(Instant::now() < end, "no cluster file");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let modes: Vec<_> = fs::read_dir(&made)
        .unwrap()
        .map(|e| e.unwrap().path())
        .map(|p| (mode(&p), p))
        .collect();
    // SAFETY: the process is a child that was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    child.wait().unwrap();
    assert_eq!(mode(&made), 0o700);
    assert!(modes.len() > 5);
    for (mode, path) in modes {
        assert_eq!(mode, 0o600, "{}", path.display());
    }
}
