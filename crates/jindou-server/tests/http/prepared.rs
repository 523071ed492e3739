//! Limits of batches.

use crate::{ENDLESS, options, send, serve, thousand, until};
use jindou_server::Server;
use jindou_testing::http::Answer;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

fn post(server: &Server, target: &str, media: &str, body: &str) -> Answer {
    send(server, "POST", target, &[("content-type", media)], body)
}

/// Prepares a query, and returns its id.
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

#[test]
fn a_batch_ends_at_its_limits() {
    let server = serve(thousand(), options().with_max_result_bytes(1 << 20));
    // A light query, then one that becomes heavy and exceeds the limit of the answer's length, then a light one.
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
    // The time limit of the batch ends it.
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
    // Many answers together exceed the limit of the answer's length.
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
