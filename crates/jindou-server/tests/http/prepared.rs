//! Prepared queries over HTTP: alone, by values in the URL, and many in a request.

use crate::{ENDLESS, Store, options, serve, store, thousand, until};
use jindou_server::Server;
use jindou_testing::http::{Answer, escape, request};
use std::fmt::Write as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

fn small() -> &'static Store {
    static STORE: OnceLock<Store> = OnceLock::new();
    STORE.get_or_init(|| {
        store(
            "@prefix : <http://e/> . :a :p :b, :c, \"x\\ny\"@en . :b :p :c . :c :q 5 . :d :q \"5\" .",
        )
    })
}

fn post(server: &Server, target: &str, media: &str, body: &str) -> Answer {
    let headers = [("content-type", media)];
    request(server.address(), "POST", target, &headers, body.as_bytes())
}

/// Prepares a query; gives its id.
fn prepare(server: &Server, text: &str, parameters: &[&str]) -> String {
    let names: Vec<String> = parameters
        .iter()
        .map(|p| format!("parameter={p}"))
        .collect();
    let target = format!("/prepared?{}", names.join("&"));
    let answer = post(server, &target, "application/sparql-query", text);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let json = answer.json();
    assert_eq!(json["parameters"], serde_json::json!(parameters));
    json["id"].as_str().unwrap().to_owned()
}

fn rows(answer: &Answer) -> usize {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["results"]["bindings"]
        .as_array()
        .unwrap()
        .len()
}

#[test]
fn values_come_in_the_url_as_rdf4j_has_it() {
    let server = serve(small(), options());
    let ask = |query: &str, values: &str| {
        let target = format!("/query?query={}{values}", escape(query));
        request(server.address(), "GET", &target, &[], b"")
    };
    let objects = "SELECT ?o { ?s <http://e/p> ?o }";
    assert_eq!(rows(&ask(objects, "")), 4);
    assert_eq!(rows(&ask(objects, "&$s=%3Chttp://e/a%3E")), 3);
    assert_eq!(rows(&ask(objects, "&%24s=%3Chttp://e/b%3E")), 1);
    assert_eq!(rows(&ask(objects, "&$s=%3Chttp://e/nowhere%3E")), 0);
    assert_eq!(
        rows(&ask(objects, "&$s=%3Chttp://e/a%3E&$o=%3Chttp://e/b%3E")),
        1
    );
    let by_value = "SELECT ?s { ?s <http://e/q> ?v }";
    let five = escape("\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>");
    let answer = ask(by_value, &format!("&$v={five}"));
    assert_eq!(
        answer.json()["results"]["bindings"][0]["s"]["value"],
        "http://e/c"
    );
    let answer = ask(by_value, &format!("&$v={}", escape("\"5\"")));
    assert_eq!(
        answer.json()["results"]["bindings"][0]["s"]["value"],
        "http://e/d"
    );
    for bad in [
        "&$s=a",
        "&$s=%3Cno%20iri%3E",
        "&$none=%22%22",
        "&$s=%22a%22&$s=%22b%22",
        "&$s=_:b",
    ] {
        let answer = ask(objects, bad);
        assert_eq!(answer.status, 400, "{bad}: {}", answer.text());
    }
}

#[test]
fn a_query_is_prepared_once_and_asked_by_its_id() {
    let server = serve(small(), options());
    let text = "SELECT ?o { $s <http://e/p> ?o }";
    let id = prepare(&server, text, &["s"]);
    assert_eq!(prepare(&server, text, &["s"]), id);
    assert_ne!(prepare(&server, &format!("{text} "), &["s"]), id);
    let one = |id: &str, values: &str, accept: &str| {
        let target = format!("/prepared/{id}?{values}");
        request(server.address(), "GET", &target, &[("accept", accept)], b"")
    };
    let answer = one(&id, "$s=%3Chttp://e/b%3E", "text/csv");
    assert_eq!(answer.text(), "o\r\nhttp://e/c\r\n");
    let form = post(
        &server,
        &format!("/prepared/{id}"),
        "application/x-www-form-urlencoded",
        "$s=%3Chttp://e/a%3E",
    );
    assert_eq!(rows(&form), 3);
    assert_eq!(one(&id, "", "*/*").status, 400);
    assert_eq!(one(&id, "$s=%3Chttp://e/a%3E&$t=%22%22", "*/*").status, 400);
    assert_eq!(one("0123456789abcdef", "", "*/*").status, 404);
    assert_eq!(one("no", "", "*/*").status, 404);
    for (text, target) in [
        ("SELECT", "/prepared"),
        ("ASK { ?s ?p ?o }", "/prepared?parameter=x"),
        ("SELECT (1 AS ?x) {}", "/prepared?parameter=x"),
    ] {
        let answer = post(&server, target, "application/sparql-query", text);
        assert_eq!(
            (answer.status, &*answer.problem()),
            (400, "syntax"),
            "{text}"
        );
    }
}

#[test]
fn a_batch_is_answered_line_by_line() {
    let server = serve(small(), options());
    let objects = prepare(&server, "SELECT ?o { $s <http://e/p> ?o }", &["s"]);
    let edge = prepare(&server, "ASK { $s <http://e/p> $o }", &["s", "o"]);
    let lines = [
        format!(r#"{{"id":"{objects}","values":{{"s":"<http://e/a>"}}}}"#),
        format!(r#"{{"id":"{edge}","values":{{"s":"<http://e/a>","o":"<http://e/b>"}}}}"#),
        format!(r#"{{"id":"{objects}","values":{{}}}}"#),
        r#"{"id":"ffffffffffffffff"}"#.to_owned(),
        "not JSON".to_owned(),
        format!(r#"{{"id":"{edge}","values":{{"s":"<http://e/b>","o":"\"x\""}}}}"#),
    ];
    let check = |answer: &Answer, n: usize| {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("content-type"), "application/x-ndjson");
        let out: Vec<serde_json::Value> = answer
            .text()
            .lines()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
            .collect();
        assert_eq!(out.len(), n, "a line each, whatever is in it");
        out
    };
    let answer = post(&server, "/batch", "application/x-ndjson", &lines.join("\n"));
    let out = check(&answer, 6);
    let values: Vec<&str> = out[0]["results"]["bindings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["o"]["value"].as_str().unwrap())
        .collect();
    assert_eq!(values.len(), 3);
    assert!(values.contains(&"x\ny"));
    assert_eq!(out[1]["boolean"], true);
    assert_eq!(out[2]["error"]["status"], 400);
    assert_eq!(out[3]["error"]["status"], 404);
    assert_eq!(out[4]["error"]["status"], 400);
    assert_eq!(out[5]["boolean"], false);
    let array = format!("[{},{}]", lines[1], lines[0]);
    let out = check(&post(&server, "/batch", "application/json", &array), 2);
    assert_eq!(out[0]["boolean"], true);
    assert_eq!(post(&server, "/batch", "text/plain", "").status, 415);
    assert_eq!(
        post(&server, "/batch", "application/json", "[1").status,
        400
    );
    assert!(check(&post(&server, "/batch", "application/x-ndjson", "\n \n"), 0).is_empty());
    until("no query is left", || server.live_queries() == 0);
}

#[test]
fn a_batch_ends_at_its_limits() {
    let server = serve(thousand(), options().with_max_result_bytes(1 << 20));
    // Light once, heavy after a moment, too long for the room.
    let endless = prepare(&server, ENDLESS, &[] as &[&str]);
    let one = prepare(&server, "SELECT ?v { $s <http://e/p> ?v }", &["s"]);
    let line = format!(r#"{{"id":"{one}","values":{{"s":"<http://e/s7>"}}}}"#);
    let mixed = format!("{line}\n{{\"id\":\"{endless}\"}}\n{line}\n");
    let answer = post(&server, "/batch", "application/x-ndjson", &mixed);
    assert_eq!(answer.status, 200);
    let lines: Vec<&str> = answer.text().lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].contains("value 7") && lines[2].contains("value 7"));
    assert!(
        lines[1].contains("urn:jindou:problem:limit"),
        "{}",
        lines[1]
    );
    // Of the time.
    let count = "SELECT (COUNT(*) AS ?n) { ?a <http://e/p> ?b . ?c <http://e/p> ?d . ?e <http://e/p> ?f FILTER(?b < ?d && ?d < ?f) }";
    let slow = prepare(&server, count, &[] as &[&str]);
    let start = Instant::now();
    let answer = post(
        &server,
        "/batch?timeout=300ms",
        "application/x-ndjson",
        &format!("{line}\n{{\"id\":\"{slow}\"}}\n{line}\n"),
    );
    assert_eq!((answer.status, &*answer.problem()), (503, "timeout"));
    assert!(start.elapsed() < Duration::from_secs(20));
    // Many.
    let mut many = String::new();
    for i in 0..20_000 {
        let _ = writeln!(
            many,
            r#"{{"id":"{one}","values":{{"s":"<http://e/s{}>"}}}}"#,
            i % 1000
        );
    }
    let answer = post(&server, "/batch", "application/x-ndjson", &many);
    assert_eq!(
        answer.status, 507,
        "20,000 answers of 100 bytes are more than a mebibyte"
    );
    until("no query is left", || server.live_queries() == 0);
}
