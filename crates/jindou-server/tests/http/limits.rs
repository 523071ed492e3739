//! Limits of every kind end their own query with the right error, and affect no other query.

use crate::{ENDLESS, MILLION, ask, assert_answers, csv, get, options, serve, thousand, until};
use jindou_server::Server;
use jindou_testing::http::{connect, escape, receive, send};
use std::time::{Duration, Instant};

fn still_answers(server: &Server) {
    assert_answers(server);
    until("no query is left", || server.live_queries() == 0);
}

#[test]
fn time_before_the_first_byte() {
    let server = serve(thousand(), options());
    let query = "SELECT (COUNT(*) AS ?n) { ?a <http://e/p> ?b . ?c <http://e/p> ?d . ?e <http://e/p> ?f . ?g <http://e/p> ?h FILTER(?b < ?d && ?d < ?f && ?f < ?h) }";
    let start = Instant::now();
    let target = format!("/query?timeout=300ms&query={}", escape(query));
    let answer = get(&server, &target);
    assert_eq!((answer.status, &*answer.problem()), (503, "timeout"));
    assert!(answer.text().contains("300ms"), "{}", answer.text());
    assert!(start.elapsed() < Duration::from_secs(20));
    still_answers(&server);
}

#[test]
fn time_in_the_middle_breaks_the_answer_off() {
    let server = serve(thousand(), options());
    let target = format!("/query?timeout=0.3&query={}", escape(ENDLESS));
    let answer = get(&server, &target);
    assert_eq!(answer.status, 200);
    assert!(!answer.is_whole() && !answer.body.is_empty());
    still_answers(&server);
}

#[test]
fn a_request_cannot_ask_for_more_than_the_cap() {
    let server = serve(
        thousand(),
        options().with_max_timeout(Duration::from_millis(200)),
    );
    let target = format!("/query?timeout=3600&query={}", escape(ENDLESS));
    let start = Instant::now();
    assert!(!get(&server, &target).is_whole());
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn enormous_time_limits_are_none() {
    let server = serve(
        thousand(),
        options()
            .with_timeout(Duration::MAX)
            .with_max_timeout(Duration::MAX)
            .with_grace(Duration::MAX),
    );
    let million = format!("SELECT (COUNT(*) AS ?n) {}", &MILLION["SELECT * ".len()..]);
    for limit in ["", "timeout=1e19&", "timeout=9e18s&"] {
        for query in ["ASK { <http://e/s7> ?p ?o }", &million] {
            let target = format!("/query?{limit}query={}", escape(query));
            let answer = get(&server, &target);
            assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        }
    }
    still_answers(&server);
    server.stop();
}

#[test]
fn bytes_of_a_long_answer() {
    // Once the status has been sent, the answer can only break off.
    let large = serve(thousand(), options().with_max_result_bytes(1 << 20));
    let answer = csv(&large, MILLION);
    assert!(answer.status == 200 && !answer.is_whole() && answer.body.len() <= 1 << 20);
    still_answers(&large);
}

#[test]
fn a_body_that_never_comes() {
    let server = serve(thousand(), options());
    // A client announces a body, sends only a part of it, and disconnects.
    let mut stream = connect(server.address());
    let head = b"POST /query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/sparql-query\r\ncontent-length: 100\r\n\r\nASK";
    std::io::Write::write_all(&mut stream, head).unwrap();
    drop(stream);
    still_answers(&server);
}

#[test]
fn too_many_queries_are_told_to_come_back() {
    let server = serve(thousand(), options().with_max_queries(2));
    let target = format!("/query?query={}", escape(ENDLESS));
    let mut readers: Vec<_> = (0..2).map(|_| connect(server.address())).collect();
    for r in &mut readers {
        send(r, "GET", &target, &[], b"");
    }
    until("both exist", || server.live_queries() == 2);
    let answer = ask(&server, "ASK {}", &[]);
    assert_eq!((answer.status, &*answer.problem()), (503, "busy"));
    assert_eq!(answer.header("retry-after"), "1");
    drop(readers);
    until("both are gone", || server.live_queries() == 0);
    still_answers(&server);
    let mut stream = connect(server.address());
    send(&mut stream, "GET", "/metrics", &[], b"");
    let metrics = receive(&mut stream, "GET");
    assert!(metrics.text().contains("jindou_queries_refused_total 1"));
}
