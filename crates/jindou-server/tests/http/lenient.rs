//! Documents with malformed statements that are skipped: documents that LOAD reads, and limits.

use crate::{Store, csv, serve, store, until, writable};
use flate2::write::GzEncoder;
use jindou_server::Server;
use jindou_testing::http::{Answer, request};
use serde_json::{Value, json};
use std::io::Write;

fn data() -> Store {
    store("<http://e/a> <http://e/p> 1 .")
}

fn send(server: &Server, method: &str, target: &str, media: &str, body: &[u8]) -> Answer {
    let headers = [("content-type", media)];
    request(server.address(), method, target, &headers, body)
}

fn triples(server: &Server) -> String {
    let query = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    let answer = csv(server, query);
    answer.text().lines().nth(1).unwrap().to_owned()
}

fn gz(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The report of skipped statements in a successful response.
fn skipped(answer: &Answer) -> Value {
    assert!(answer.status < 300, "{}", answer.text());
    answer.json()["skipped"].clone()
}

const TURTLE: &str =
    "@prefix : <http://e/> .\n:b :p 2 .\n:b oops 3 .\n:b :p 4 ; :q <a b> .\n:b :p 5 .\n";

#[test]
fn documents_of_load_can_skip() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (folder.path().join("good.nt"), folder.path().join("bad.ttl"));
    std::fs::write(&good, "<http://e/good> <http://e/p> \"1\" .\n").unwrap();
    std::fs::write(&bad, TURTLE).unwrap();
    let documents = jindou::Documents::new().folder(folder.path()).unwrap();
    let store = data();
    let server = serve(
        &store,
        writable().with_documents(std::sync::Arc::new(documents)),
    );
    let text = format!(
        "LOAD <file://{}> ; LOAD <file://{}>",
        good.display(),
        bad.display()
    );
    let update = "application/sparql-update";
    let strict = send(&server, "POST", "/update", update, text.as_bytes());
    assert_eq!(strict.status, 400, "{}", strict.text());
    assert!(strict.text().contains("lenient=true"), "{}", strict.text());
    assert_eq!(triples(&server), "1");
    let done = send(
        &server,
        "POST",
        "/update?lenient=true",
        update,
        text.as_bytes(),
    );
    let skipped = skipped(&done);
    assert_eq!(
        (&skipped["statements"], &skipped["first"][0]["line"]),
        (&json!(2), &json!(3))
    );
    assert_eq!(triples(&server), "5");
}

#[test]
fn limits_hold_for_what_is_skipped() {
    let store = data();
    let server = serve(&store, writable().with_query_memory(32 << 20));
    let lenient = "/store?default&lenient=true";
    // A text of 24 MB. Strict parsing holds a piece of it at a time; lenient parsing holds all of it, since it may have
    // to start again.
    let comments = format!("# {}\n", "x".repeat(1000)).repeat(800);
    let long = format!("{comments}<http://e/z> <http://e/p> 1 .\n").repeat(30);
    let long = gz(long.as_bytes());
    let done = send(&server, "POST", "/store?default", "text/turtle", &long);
    assert_eq!(done.status, 200, "{}", done.text());
    let refused = send(&server, "POST", lenient, "text/turtle", &long);
    assert_eq!(
        (refused.status, &*refused.problem()),
        (507, "limit"),
        "{}",
        refused.text()
    );
    // Many malformed statements in a row do not count as one long statement.
    let bad = "no .\n".repeat(20_000) + "<http://e/last> <http://e/p> 1 .";
    let done = send(&server, "POST", lenient, "text/turtle", bad.as_bytes());
    assert_eq!(skipped(&done)["statements"], 20_000);
    // A message about a term of a megabyte is short.
    let iri = format!(
        "<http://e/s> <http://e/p> <http://e/{} > .\n",
        "x".repeat(1 << 20)
    );
    for media in ["text/turtle", "application/n-triples"] {
        let done = send(&server, "POST", lenient, media, iri.as_bytes());
        assert!(done.text().len() < 3_000, "{}", done.text().len());
        assert_eq!(skipped(&done)["statements"], 1);
    }
    // Copying very many prefixes after each of very many errors must end at the time limit.
    let prefixes: String = (0..100_000)
        .map(|i| format!("@prefix p{i}: <http://e/{i}/> .\n"))
        .collect();
    let text = prefixes + &"no .\n".repeat(100_000);
    let begun = std::time::Instant::now();
    let roomy = serve(&store, writable());
    let ended = send(
        &roomy,
        "POST",
        "/store?default&lenient=true&timeout=1",
        "text/turtle",
        text.as_bytes(),
    );
    assert_eq!(
        (ended.status, &*ended.problem()),
        (503, "timeout"),
        "{}",
        ended.text()
    );
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    until("nothing is left", || {
        roomy.live_queries() + server.live_queries() == 0
    });
}
