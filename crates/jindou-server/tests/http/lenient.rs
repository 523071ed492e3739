//! Uploads that skip malformed statements.

use crate::{Store, ask, options, serve, store, until};
use flate2::write::GzEncoder;
use jindou_server::{Server, ServerOptions};
use jindou_testing::http::{Answer, request};
use serde_json::{Value, json};
use std::io::Write;

fn data() -> Store {
    store("<http://e/a> <http://e/p> 1 .")
}

fn writable() -> ServerOptions {
    options().with_writable(true)
}

fn send(server: &Server, method: &str, target: &str, media: &str, body: &[u8]) -> Answer {
    let headers = [("content-type", media)];
    request(server.address(), method, target, &headers, body)
}

fn triples(server: &Server) -> String {
    let query = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    let answer = ask(server, query, &[("accept", "text/csv")]);
    answer.text().lines().nth(1).unwrap().to_owned()
}

fn gz(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The report of skipped statements in an answer, which must be a good one.
fn skipped(answer: &Answer) -> Value {
    assert!(answer.status < 300, "{}", answer.text());
    answer.json()["skipped"].clone()
}

const TURTLE: &str =
    "@prefix : <http://e/> .\n:b :p 2 .\n:b oops 3 .\n:b :p 4 ; :q <a b> .\n:b :p 5 .\n";

#[test]
fn malformed_statements_are_skipped_and_named_where_that_is_asked_for() {
    let store = data();
    let server = serve(&store, writable());
    let at = "/store?default";
    let strict = send(&server, "POST", at, "text/turtle", TURTLE.as_bytes());
    assert_eq!((strict.status, &*strict.problem()), (400, "syntax"));
    assert_eq!(strict.json()["line"], 3);
    assert!(strict.text().contains("lenient=true"), "{}", strict.text());
    assert_eq!(triples(&server), "1");
    let lenient = "/store?default&lenient=true";
    for body in [TURTLE.as_bytes().to_vec(), gz(TURTLE.as_bytes())] {
        let done = send(&server, "POST", lenient, "text/turtle", &body);
        let skipped = skipped(&done);
        assert_eq!(skipped["statements"], 2, "{skipped}");
        let first = &skipped["first"][0];
        assert_eq!(
            (&first["document"], &first["line"], &first["text"]),
            (&json!("<body>"), &json!(3), &json!(":b oops 3 ."))
        );
        assert!(first["column"].as_u64() >= Some(4), "{first}");
        assert_ne!(first["message"], "");
        assert_eq!(skipped["first"][1]["line"], 4);
        // The statements round them are here.
        assert_eq!(triples(&server), "4");
    }
    // Without anything to skip, and without the parameter.
    let done = send(
        &server,
        "POST",
        lenient,
        "text/turtle",
        b"<http://e/x> <http://e/p> 1 .",
    );
    assert_eq!(skipped(&done), json!({ "statements": 0, "first": [] }));
    let done = send(
        &server,
        "POST",
        at,
        "text/turtle",
        b"<http://e/y> <http://e/p> 1 .",
    );
    assert_eq!(skipped(&done), Value::Null);
    let wrong = send(
        &server,
        "POST",
        "/store?default&lenient=much",
        "text/turtle",
        b"",
    );
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("lenient=much"), "{}", wrong.text());
}

#[test]
fn every_format_and_way_can_skip() {
    let store = data();
    let server = serve(&store, writable());
    let lines = "<http://e/l1> <http://e/p> \"1\" .\n<http://e/l2> no .\n<http://e/l3> <http://e/p> \"1\" .\n";
    let xml = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\"><rdf:Description rdf:about=\"http://e/x\"><e:p rdf:resource=\"a b\"/><e:p>1</e:p></rdf:Description></rdf:RDF>";
    let trig = "<http://e/t1> <http://e/p> 1 .\nno .\n<http://e/t2> <http://e/p> 1 .\n";
    let jsonld = "[{\"@id\":\"http://e/j1\",\"http://e/p\":1},{\"@id\":\"http://e/j2\",\"http://e/p\":{\"@value\":{}}}]";
    for (media, text, name) in [
        ("application/n-triples", lines, "l1"),
        ("application/rdf+xml", xml, "x"),
        ("application/trig", trig, "t1"),
        ("application/ld+json", jsonld, "j1"),
    ] {
        let done = send(
            &server,
            "PUT",
            "/store?graph=http://e/g&lenient=true",
            media,
            text.as_bytes(),
        );
        let skipped = skipped(&done);
        let n = skipped["statements"].as_u64().unwrap();
        // A JSON-LD parser may say more than one thing of a value.
        assert!(
            n == 1 || n > 1 && media.ends_with("json"),
            "{media}: {skipped}"
        );
        let there = format!("ASK {{ GRAPH <http://e/g> {{ <http://e/{name}> ?p ?o }} }}");
        let answer = ask(&server, &there, &[("accept", "text/csv")]);
        assert_eq!(answer.text().trim(), "true", "{media}");
        if media == "application/trig" {
            // What follows may belong to any graph.
            assert_eq!(skipped["rest"]["documents"], 1, "{skipped}");
            assert!(skipped["rest"]["bytes"].as_u64() >= Some(30), "{skipped}");
        }
    }
    // N-Quads to the graphs that they name, several documents by their names, many errors.
    let quads = "<http://e/q> <http://e/p> \"1\" <http://e/h> .\n".to_owned() + &"no\n".repeat(500);
    let done = send(
        &server,
        "POST",
        "/store?lenient",
        "application/n-quads",
        quads.as_bytes(),
    );
    let all = skipped(&done);
    assert_eq!(all["statements"], 500);
    assert_eq!(all["first"].as_array().unwrap().len(), 10);
    let part = |name: &str, text: &str| {
        format!(
            "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\nContent-Type: text/turtle\r\n\r\n{text}\r\n"
        )
    };
    let body = part("good.ttl", "<http://e/m> <http://e/p> 1 .")
        + &part("bad.ttl", "no .\n<http://e/n> <http://e/p> 1 .")
        + "--b--\r\n";
    let media = "multipart/form-data; boundary=b";
    let done = send(
        &server,
        "POST",
        "/store?default&lenient=true",
        media,
        body.as_bytes(),
    );
    assert_eq!(done.json()["added"], 2, "{}", done.text());
    assert_eq!(skipped(&done)["first"][0]["document"], "bad.ttl");
    let strict = send(&server, "POST", "/store?default", media, body.as_bytes());
    assert!(strict.text().contains("bad.ttl:1:"), "{}", strict.text());
}

#[test]
fn a_graph_is_not_replaced_by_a_document_without_a_valid_statement() {
    let store = data();
    let server = serve(&store, writable());
    let at = "/store?default&lenient=true";
    let html = "<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n";
    let xml = "<?xml version=\"1.0\"?>\n<feed/>\n";
    let many = "no .\n".repeat(50_000);
    for (media, text) in [
        ("text/turtle", html),
        ("application/n-triples", html),
        ("application/n-triples", &*many),
        ("application/rdf+xml", xml),
        ("application/trig", html),
        ("application/ld+json", html),
        ("text/turtle", "@prefix p: <http://e/> .\np:x p:y .\n"),
    ] {
        let refused = send(&server, "PUT", at, media, text.as_bytes());
        assert_eq!(
            (refused.status, &*refused.problem()),
            (400, "syntax"),
            "{media}: {}",
            refused.text()
        );
        let said = refused.text();
        assert!(said.contains("no statement is valid"), "{said}");
        assert!(!said.contains("lenient=true"), "{said}");
        assert_eq!(triples(&server), "1", "{media}");
        // POST adds nothing, and says so.
        let done = send(&server, "POST", at, media, text.as_bytes());
        assert_eq!(done.json()["added"], 0, "{}", done.text());
    }
    let refused = send(&server, "PUT", at, "application/n-triples", b"a .\nb .\n");
    let document = refused.json();
    assert_eq!(
        (&document["line"], &document["column"]),
        (&json!(1), &json!(1)),
        "{document}"
    );
    assert!(refused.text().contains("2 malformed"), "{document}");
    // A new graph is not made, and prefixes of the document are not kept.
    let new = "/store?graph=http://e/new&lenient=true";
    let refused = send(
        &server,
        "PUT",
        new,
        "text/turtle",
        b"@prefix q: <http://e/q#> .\nno .",
    );
    assert_eq!(refused.status, 400, "{}", refused.text());
    let prefixes = request(server.address(), "GET", "/prefixes", &[], b"");
    assert!(!prefixes.text().contains("e/q#"), "{}", prefixes.text());
    // An empty document, or one of comments, means what it says.
    let done = send(&server, "PUT", at, "text/turtle", b"# nothing\n");
    assert_eq!(skipped(&done)["statements"], 0);
    assert_eq!(triples(&server), "0");
}

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
    // Text of 24 MB that is never held as a whole, unless reading may have to start again.
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
    // Bad statements one after the other do not count as a long one.
    let bad = "no .\n".repeat(20_000) + "<http://e/last> <http://e/p> 1 .";
    let done = send(&server, "POST", lenient, "text/turtle", bad.as_bytes());
    assert_eq!(skipped(&done)["statements"], 20_000);
    // A message does not repeat a term of a megabyte.
    let iri = format!(
        "<http://e/s> <http://e/p> <http://e/{} > .\n",
        "x".repeat(1 << 20)
    );
    for media in ["text/turtle", "application/n-triples"] {
        let done = send(&server, "POST", lenient, media, iri.as_bytes());
        assert!(done.text().len() < 3_000, "{}", done.text().len());
        assert_eq!(skipped(&done)["statements"], 1);
    }
    // Very many prefixes, taken over at each of very many errors, end at the time limit.
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
