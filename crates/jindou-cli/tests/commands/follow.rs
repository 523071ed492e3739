//! Two processes with one store: a read-only server, and commands that change the store while it runs.

use super::run::{eventually, good, jindou};
use jindou_testing::Served;
use jindou_testing::http::request;
use std::path::Path;

fn start(folder: &Path, more: &[&str]) -> Served {
    let mut command = jindou(folder);
    command.args(["serve", "s", "--port", "0", "--log-level", "error"]);
    Served::start(command.args(more))
}

fn count(served: &Served) -> u64 {
    let path = "/query?query=SELECT%20(COUNT(*)%20AS%20%3Fn)%20%7B%3Fs%20%3Fp%20%3Fo%7D";
    let answer = request(served.address, "GET", path, &[("accept", "text/csv")], b"");
    let counted = answer.text().trim().strip_prefix("n\r\n");
    counted
        .and_then(|n| n.parse().ok())
        .unwrap_or_else(|| panic!("{answer:?}"))
}

/// Waits until the server answers that the store has this many quads.
fn shows(served: &Served, quads: u64, after: &str) {
    eventually(|| match count(served) {
        now if now == quads => Ok(()),
        now => Err(format!("{now} quads after {after}, not {quads}")),
    });
}

#[test]
fn a_server_that_only_reads_shows_what_other_processes_change() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let data = "<http://e/a> <http://e/p> <http://e/b> .\n";
    std::fs::write(folder.join("data.nt"), data).unwrap();
    let update = |text: &str| good(folder, &["update", "--store", "s", text]);
    good(folder, &["load", "--quiet", "--store", "s", "data.nt"]);
    let served = start(folder, &[]);
    assert!(
        served.line.contains(" read-only at http://"),
        "{}",
        served.line
    );
    assert_eq!(count(&served), 1);
    let insert = |i: u32| {
        let text = format!(
            "INSERT DATA {{ <http://e/s{i}> <http://e/p> {i} . <http://e/s{i}> <http://e/q> <http://e/t{i}> }}"
        );
        update(&text);
    };
    for i in 0..3 {
        insert(i);
        shows(&served, 3 + 2 * u64::from(i), "an update");
    }
    good(folder, &["merge", "--store", "s"]);
    insert(10);
    shows(&served, 9, "a merge and an update");
    update("DELETE WHERE { ?s <http://e/q> ?o }");
    shows(&served, 5, "a deletion");
    good(folder, &["recluster", "--quiet", "--store", "s"]);
    insert(11);
    shows(&served, 7, "a reclustering and an update");
    let load = ["load", "--quiet", "--replace", "--store", "s", "data.nt"];
    good(folder, &load);
    shows(&served, 1, "another load");
    insert(12);
    shows(&served, 3, "an update of what was loaded");
    // The read-only server also sees the changes of another server.
    let writer = start(folder, &["--writable"]);
    assert!(!writer.line.contains("read-only"), "{}", writer.line);
    let text = b"INSERT DATA { <http://e/last> <http://e/p> 1 }";
    let headers = [("content-type", "application/sparql-update")];
    let answer = request(writer.address, "POST", "/update", &headers, text);
    assert_eq!(answer.status, 200, "{answer:?}");
    shows(&served, 4, "an update of another server");
}
