//! Updates and graphs that are put, as clients see them.

use crate::{ENDLESS, ask, options, serve, store, thousand, until};
use jindou_server::{Server, ServerOptions};
use jindou_testing::http::{Answer, request};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const UPDATE: (&str, &str) = ("content-type", "application/sparql-update");
const TURTLE: (&str, &str) = ("content-type", "text/turtle");

fn writable() -> ServerOptions {
    options().with_writable(true)
}

fn update(server: &Server, text: &str) -> Answer {
    request(
        server.address(),
        "POST",
        "/update",
        &[UPDATE],
        text.as_bytes(),
    )
}

fn count(server: &Server, pattern: &str) -> String {
    let query = format!("SELECT (COUNT(*) AS ?n) {{ {pattern} }}");
    let answer = ask(server, &query, &[("accept", "text/csv")]);
    answer.text().lines().nth(1).unwrap().to_owned()
}

#[test]
fn changes_are_merged_when_asked_to() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(&data, writable());
    let merge = |method| request(server.address(), method, "/admin/merge", &[], b"");
    assert_eq!(merge("GET").json()["edits"], 0);
    update(
        &server,
        "INSERT DATA { <http://e/b> <http://e/q> 2 . <http://e/a> <http://e/p> 3 }",
    );
    assert_eq!(merge("GET").json()["edits"], 2);
    let done = merge("POST");
    assert_eq!(done.status, 200, "{}", done.text());
    let json = done.json();
    assert_eq!(
        (&json["snapshot"], &json["edits"], &json["predicates"]),
        (&1.into(), &2.into(), &2.into())
    );
    let status = merge("GET").json();
    assert_eq!(
        (&status["edits"], &status["merged"], &status["done"]),
        (&0.into(), &1.into(), &1.into())
    );
    assert_eq!(count(&server, "?s ?p ?o"), "3");
    update(&server, "DELETE WHERE { <http://e/a> ?p ?o }");
    assert_eq!(count(&server, "?s ?p ?o"), "1");
    assert_eq!(merge("PUT").status, 405);
    let metrics = request(server.address(), "GET", "/metrics", &[], b"");
    for line in [
        "jindou_merges_done_total 1",
        "jindou_merged_snapshot 1",
        "jindou_merge_running 0",
        "jindou_delta_edits 2",
    ] {
        assert!(metrics.text().contains(line), "{line}");
    }
    // A read-only store cannot be merged.
    let reading = serve(&store("<http://e/a> <http://e/p> 1 ."), options());
    assert_eq!(
        request(reading.address(), "POST", "/admin/merge", &[], b"").status,
        403
    );
}

#[test]
fn an_update_is_seen_by_the_next_query_and_counted() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(&data, writable());
    let done = update(
        &server,
        "PREFIX : <http://e/> INSERT DATA { :b :p 2 . :c :new 3 } ; DELETE WHERE { :a :p ?x }",
    );
    assert_eq!(done.status, 200, "{}", done.text());
    let json = done.json();
    assert_eq!(
        (&json["added"], &json["removed"], &json["operations"]),
        (&2.into(), &1.into(), &2.into())
    );
    assert_eq!(count(&server, "?s ?p ?o"), "2");
    assert_eq!(count(&server, "?s <http://e/new> 3"), "1");
    let metrics = request(server.address(), "GET", "/metrics", &[], b"");
    for line in [
        "jindou_updates_total{outcome=\"ok\"} 1",
        "jindou_update_quads_total{change=\"added\"} 2",
        "jindou_snapshot 1",
    ] {
        assert!(metrics.text().contains(line), "{line}");
    }
}

#[test]
fn bad_updates_change_nothing_and_say_where() {
    let data = store("<http://e/a> <http://e/p> 1 . <http://e/g> { <http://e/a> <http://e/p> 1 }");
    let server = serve(&data, writable());
    let bad = update(
        &server,
        "CLEAR ALL ;\nINSERT DATA { <http://e/a> <http://e/p> }",
    );
    assert_eq!((bad.status, &*bad.problem()), (400, "syntax"));
    assert_eq!(bad.json()["line"], 2);
    let bad = update(&server, "CLEAR DEFAULT ;\n CREATE GRAPH <http://e/g>");
    assert_eq!((bad.status, &*bad.problem()), (409, "conflict"));
    assert!(bad.text().contains("line 2, column 2"), "{}", bad.text());
    let bad = update(&server, "CLEAR DEFAULT ; LOAD <file:///etc/passwd>");
    assert_eq!((bad.status, &*bad.problem()), (502, "document"));
    let bad = request(
        server.address(),
        "PUT",
        "/store?default",
        &[TURTLE],
        b"<http://e/x> <http://e/y> 1 .\n<http://e/x> oops 2 .",
    );
    assert_eq!((bad.status, &*bad.problem()), (400, "syntax"));
    assert_eq!(bad.json()["line"], 2);
    assert_eq!(count(&server, "?s ?p ?o"), "1");
    assert_eq!(count(&server, "GRAPH ?g { ?s ?p ?o }"), "1");
    assert_eq!(
        update(&server, "LOAD SILENT <file:///etc/passwd>").status,
        200
    );
}

#[test]
fn graphs_are_put_patched_and_deleted() {
    let data = store("<http://e/a> <http://e/p> 1 . <http://e/g> { <http://e/a> <http://e/p> 1 }");
    let server = serve(&data, writable());
    let at = "/store?graph=http://e/new";
    let send = |method: &str, target: &str, kind: (&str, &str), body: &str| {
        request(server.address(), method, target, &[kind], body.as_bytes())
    };
    assert_eq!(send("PUT", at, TURTLE, "<x> <y> <z>, 1 .").status, 201);
    assert_eq!(send("PUT", at, TURTLE, "<x> <y> <z>, 1 .").status, 200);
    assert_eq!(
        count(
            &server,
            "GRAPH <http://e/new> { <http://e/x> <http://e/y> ?o }"
        ),
        "2"
    );
    let patch = "DELETE { ?s ?p 1 } INSERT { ?s ?p 2, 3 } WHERE { ?s ?p 1 }";
    assert_eq!(send("PATCH", at, UPDATE, patch).status, 200);
    assert_eq!(count(&server, "GRAPH <http://e/new> { ?s ?p ?o }"), "3");
    // The default graph has a triple with 1 as well, and the request was not sent to it.
    assert_eq!(count(&server, "?s ?p 1"), "1");
    for elsewhere in [
        "CLEAR ALL",
        "INSERT DATA { GRAPH <http://e/g> { <a:a> <a:b> 1 } }",
        "DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o } }",
        "MOVE <http://e/g> TO <http://e/new>",
    ] {
        assert_eq!(
            send("PATCH", at, UPDATE, elsewhere).status,
            409,
            "{elsewhere}"
        );
    }
    let other = ("content-type", "application/n-quads");
    let quads = "<a:a> <a:b> <a:c> <http://e/other> .\n";
    assert_eq!(send("PUT", at, other, quads).status, 409);
    assert_eq!(send("POST", "/store", other, quads).status, 200);
    assert_eq!(count(&server, "GRAPH <http://e/other> { ?s ?p ?o }"), "1");
    assert_eq!(send("DELETE", at, TURTLE, "").status, 200);
    assert_eq!(send("DELETE", at, TURTLE, "").status, 404);
    assert_eq!(count(&server, "GRAPH <http://e/g> { ?s ?p ?o }"), "1");
    assert_eq!(send("DELETE", "/store", TURTLE, "").status, 400);
    assert_eq!(
        send("PUT", at, ("content-type", "image/png"), "").status,
        415
    );
}

#[test]
fn blank_nodes_of_two_documents_are_never_one() {
    let data = store("_:b <http://e/p> 1 .");
    let server = serve(&data, writable());
    let post = |body: &str| {
        let at = "/store?default";
        request(server.address(), "POST", at, &[TURTLE], body.as_bytes()).status
    };
    assert_eq!(post("_:b <http://e/p> 2 ."), 200);
    assert_eq!(post("_:b <http://e/p> 3 ."), 200);
    assert_eq!(
        update(&server, "INSERT DATA { _:b <http://e/p> 4 , 5 }").status,
        200
    );
    let subjects = "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s ?p ?o }";
    let answer = ask(&server, subjects, &[("accept", "text/csv")]);
    assert_eq!(answer.text().lines().nth(1), Some("4"));
}

#[test]
fn strangers_pages_write_nothing() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(&data, writable());
    let form = ("content-type", "application/x-www-form-urlencoded");
    let from = |origin: &str| {
        let headers = [form, ("origin", origin)];
        request(
            server.address(),
            "POST",
            "/update",
            &headers,
            b"update=CLEAR+ALL",
        )
        .status
    };
    assert_eq!(from("http://evil.example"), 403);
    assert_eq!(from("null"), 403);
    assert_eq!(count(&server, "?s ?p ?o"), "1");
    assert_eq!(from("http://localhost:3000"), 200);
    assert_eq!(count(&server, "?s ?p ?o"), "0");
}

#[test]
fn limits_refuse_before_anything_changes() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(
        &data,
        writable()
            .with_max_update_bytes(10_000)
            .with_query_memory(1 << 20),
    );
    let long = format!(
        "INSERT DATA {{ <http://e/a> <http://e/p> '{}' }}",
        "x".repeat(20_000)
    );
    assert_eq!(update(&server, &long).status, 413);
    // 10^6 rows that do not fit.
    let wide = "INSERT { ?a <http://e/q> ?c } WHERE { VALUES ?a { 1 } }";
    assert_eq!(update(&server, wide).status, 200);
    let many: String = (0..100).map(|i| format!("<http://e/{i}> ")).collect();
    let text = format!(
        "INSERT {{ ?a ?b ?c }} WHERE {{ VALUES ?a {{ {many} }} VALUES ?b {{ {many} }} VALUES ?c {{ {many} }} }}"
    );
    let refused = update(&server, &text);
    assert_eq!((refused.status, &*refused.problem()), (507, "limit"));
    assert_eq!(count(&server, "?s ?p ?o"), "1");
    until("no update is left", || server.live_queries() == 0);
}

#[test]
fn queries_go_on_while_an_update_runs_and_it_can_be_cancelled() {
    let data = thousand();
    let server = serve(data, writable());
    let slow = format!(
        "INSERT {{ <a:a> <a:b> ?a }} WHERE {{ {} }}",
        &ENDLESS["SELECT * {".len()..ENDLESS.len() - 1]
    );
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let answer = update(&server, &slow);
            over.store(true, Ordering::Relaxed);
            answer
        });
        until("the update runs", || server.live_queries() > 0);
        let begun = Instant::now();
        for _ in 0..20 {
            assert_eq!(count(&server, "<http://e/s1> ?p ?o"), "1");
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert!(!over.load(Ordering::Relaxed));
        let list = request(server.address(), "GET", "/admin/queries", &[], b"").json();
        let id = list["queries"][0]["id"].as_u64().unwrap();
        assert!(
            list["queries"][0]["query"]
                .as_str()
                .unwrap()
                .contains("INSERT")
        );
        let target = format!("/admin/queries/{id}");
        assert_eq!(
            request(server.address(), "DELETE", &target, &[], b"").status,
            202
        );
        let answer = running.join().unwrap();
        assert_eq!((answer.status, &*answer.problem()), (503, "cancelled"));
    });
    assert_eq!(count(&server, "<a:a> ?p ?o"), "0");
}
