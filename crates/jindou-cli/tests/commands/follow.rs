//! Two processes with one store: a read-only server, and commands that change the store while it runs.

use super::run::good;
use jindou_testing::Served;
use jindou_testing::http::request;
use std::process::Command;
use std::time::{Duration, Instant};

fn start(store: &str, more: &[&str]) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.args(["serve", "--port", "0", "--log-level", "error", "--store"]);
    Served::start(command.arg(store).args(more))
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
    let begun = Instant::now();
    loop {
        let now = count(served);
        if now == quads {
            return;
        }
        let waited = begun.elapsed();
        assert!(
            waited < Duration::from_secs(30),
            "{now} quads after {after}, not {quads}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_that_only_reads_shows_what_other_processes_change() {
    let folder = tempfile::tempdir().unwrap();
    let jindou = |args: &[&str]| good(folder.path(), args);
    let data = folder.path().join("data.nt");
    std::fs::write(&data, "<http://e/a> <http://e/p> <http://e/b> .\n").unwrap();
    let store = folder.path().join("store");
    let (store, data) = (store.to_str().unwrap(), data.to_str().unwrap());
    jindou(&["load", "--quiet", "--store", store, data]);
    let served = start(store, &[]);
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
        jindou(&["update", "--store", store, &text]);
    };
    for i in 0..3 {
        insert(i);
        shows(&served, 3 + 2 * u64::from(i), "an update");
    }
    jindou(&["merge", "--store", store]);
    insert(10);
    shows(&served, 9, "a merge and an update");
    jindou(&[
        "update",
        "--store",
        store,
        "DELETE WHERE { ?s <http://e/q> ?o }",
    ]);
    shows(&served, 5, "a deletion");
    jindou(&["recluster", "--quiet", "--store", store]);
    insert(11);
    shows(&served, 7, "a reclustering and an update");
    jindou(&["load", "--quiet", "--replace", "--store", store, data]);
    shows(&served, 1, "another load");
    insert(12);
    shows(&served, 3, "an update of what was loaded");
    // The read-only server also sees the changes of another server.
    let writer = start(store, &["--writable"]);
    assert!(!writer.line.contains("read-only"), "{}", writer.line);
    let text = b"INSERT DATA { <http://e/last> <http://e/p> 1 }";
    let headers = [("content-type", "application/sparql-update")];
    let answer = request(writer.address, "POST", "/update", &headers, text);
    assert_eq!(answer.status, 200, "{answer:?}");
    shows(&served, 4, "an update of another server");
}
