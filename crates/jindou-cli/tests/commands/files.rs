//! A backup whose newest list hangs.

use super::run::good;
use std::fs;
use std::path::Path;
use std::process::Command;
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
