//! Work on the whole store: begun, watched and ended over HTTP.

use crate::{ask, options, serve, store, until};
use jindou::BackupTarget;
use jindou_server::Server;
use jindou_testing::http::{Answer, request};

fn call(server: &Server, method: &str, target: &str) -> Answer {
    request(server.address(), method, target, &[], b"")
}

fn count(server: &Server) -> String {
    let query = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    let answer = ask(server, query, &[("accept", "text/csv")]);
    answer.text().lines().nth(1).unwrap().to_owned()
}

/// Waits for the end of a job and returns its document.
fn ended(server: &Server, target: &str) -> serde_json::Value {
    let state = || call(server, "GET", target).json();
    until("the job's end", || state()["state"] != "running");
    state()
}

#[test]
fn a_store_is_reclustered_and_backed_up_while_it_is_served() {
    let data = store("<http://e/a> <http://e/p> 1 , 2 .");
    let places = tempfile::tempdir().unwrap();
    let target = BackupTarget::folder(places.path().to_str().unwrap()).unwrap();
    let server = serve(
        &data,
        options().with_writable(true).with_backup_to(target.clone()),
    );
    let update = || {
        request(
            server.address(),
            "POST",
            "/update",
            &[("content-type", "application/sparql-update")],
            b"INSERT DATA { [] <http://e/new> 3 }",
        )
        .status
    };
    assert_eq!(update(), 200);
    let recluster = "/admin/recluster";
    assert_eq!(call(&server, "GET", recluster).json()["state"], "idle");
    assert_eq!(call(&server, "DELETE", recluster).status, 404);
    assert_eq!(call(&server, "PUT", recluster).status, 405);
    let wrong = call(&server, "POST", "/admin/recluster?memory=much");
    assert_eq!((wrong.status, &*wrong.problem()), (400, "bad-request"));
    let begun = call(&server, "POST", "/admin/recluster?memory=33554432");
    assert_eq!(begun.status, 202, "{}", begun.text());
    let done = ended(&server, recluster);
    assert_eq!(done["state"], "done", "{done}");
    assert_eq!(done["report"]["quads"], 3);
    assert_eq!(count(&server), "3");
    assert_eq!(update(), 200);
    assert_eq!(call(&server, "POST", "/admin/backup").status, 202);
    let done = ended(&server, "/admin/backup");
    assert_eq!(
        (&done["state"], &done["report"]["snapshot"]),
        (&"done".into(), &2.into())
    );
    assert_eq!(target.list().unwrap().len(), 1);
    assert_eq!(count(&server), "4");
    let metrics = call(&server, "GET", "/metrics");
    for line in [
        "jindou_jobs_total{job=\"backup\",outcome=\"ok\"} 1",
        "jindou_jobs_total{job=\"recluster\",outcome=\"ok\"} 1",
        "jindou_jobs_running 0",
    ] {
        assert!(metrics.text().contains(line), "{line}");
    }
}

#[test]
fn who_may_not_write_may_not_do_that() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(&data, options());
    let refused = call(&server, "POST", "/admin/recluster");
    assert_eq!((refused.status, &*refused.problem()), (403, "read-only"));
    // Without a folder for backups none can be made; asking for the state is allowed.
    assert_eq!(call(&server, "POST", "/admin/backup").status, 404);
    let state = call(&server, "GET", "/admin/backup");
    assert_eq!(
        (state.status, state.json()["state"].as_str()),
        (200, Some("unavailable"))
    );
    let tokens = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        tokens.path(),
        "read 0123456789abcdef\nwrite fedcba9876543210\n",
    )
    .unwrap();
    let server = serve(&data, options().with_token_file(tokens.path().to_owned()));
    let post = |token: &str| {
        let header = format!("Bearer {token}");
        let headers = [("authorization", header.as_str())];
        request(server.address(), "POST", "/admin/recluster", &headers, b"").status
    };
    assert_eq!(post("0123456789abcdef"), 403);
    assert_eq!(post("fedcba9876543210"), 202);
}
