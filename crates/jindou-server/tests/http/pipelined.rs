//! Requests that a client sends before it has read the answers to earlier ones.

use crate::{ENDLESS, assert_answers, metric, options, serve, thousand, until};
use jindou_testing::http::{Answer, connect, escape, receive, send, try_receive};
use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

fn query(text: &str) -> String {
    let text = escape(text);
    format!("GET /query?query={text} HTTP/1.1\r\nhost: localhost\r\naccept: text/csv\r\n\r\n")
}

/// Reads answers until the connection ends. [`receive`] reads more than one answer at a time, so all must share a
/// buffer.
fn answers(stream: TcpStream) -> Vec<Answer> {
    let mut all = vec![];
    let mut text = vec![];
    (&stream).take(64 << 20).read_to_end(&mut text).unwrap();
    let mut rest = &text[..];
    while !rest.is_empty() {
        // A reader that returns one byte at a time keeps the following answers.
        let mut bytes = OneByOne(&mut rest);
        all.push(try_receive(&mut bytes, "GET").unwrap());
    }
    all
}

/// Returns one byte for each call, so that a buffered reader does not take more than it needs.
struct OneByOne<'a, 'b>(&'a mut &'b [u8]);

impl Read for OneByOne<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = into.len().min(1);
        self.0.read(&mut into[..length])
    }
}

#[test]
fn ten_thousand_requests_are_answered_in_order() {
    let server = serve(thousand(), options());
    let mut stream = connect(server.address());
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let sender = std::thread::spawn(move || {
        let requests = (0..10_000).map(|n| query(&format!("ASK {{ <http://e/s{n}> ?p ?o }}")));
        let all: Vec<String> = requests.collect();
        stream.write_all(all.concat().as_bytes()).unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    });
    // Nothing is read at first, so that the connection's buffers fill up.
    std::thread::sleep(Duration::from_millis(500));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    sender.join().unwrap().unwrap();
    let bodies: Vec<&str> = text
        .split("\r\n\r\n")
        .filter_map(|part| part.split("HTTP/1.1").next())
        .filter(|body| !body.is_empty())
        .collect();
    assert_eq!(bodies.len(), 10_001);
    for (n, body) in bodies[..10_000].iter().enumerate() {
        assert_eq!(*body, if n < 1000 { "true\n" } else { "false\n" }, "{n}");
    }
}

#[test]
fn answers_that_nobody_reads_are_not_made() {
    let server = serve(thousand(), options());
    let stream = connect(server.address());
    let mut sender = stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        // Each answer has some 40 KB, and all together have 400 MB. The server stops reading, so the write does not end.
        let one = query("SELECT * { ?s ?p ?o }");
        let _ = sender.write_all(one.repeat(10_000).as_bytes());
    });
    let answered = || {
        metric(
            &server,
            "jindou_http_requests_total{route=\"/query\",status=\"200\"}",
        )
    };
    until("the first answers are made", || answered() > 0.0);
    let mut before = 0.0;
    until("no more answers are made", || {
        std::thread::sleep(Duration::from_millis(300));
        std::mem::replace(&mut before, answered()) == before
    });
    // What is made fits in the operating system's buffers.
    assert!(before < 1000.0, "{before}");
    assert_answers(&server);
    stream.shutdown(Shutdown::Both).unwrap();
    sending.join().unwrap();
    drop(stream);
    until("the connection is gone", || {
        metric(&server, "jindou_connections") == 1.0
    });
    assert_eq!(server.live_queries(), 0);
}

#[test]
fn errors_leave_other_requests_alone_unless_the_text_is_not_http() {
    let server = serve(thousand(), options());
    let mut stream = connect(server.address());
    let good = query("ASK { <http://e/s7> ?p ?o }");
    let all = [
        &*good,
        &query("ASK {"),
        &good,
        "GET /nowhere HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "POST /query HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\nASK",
        &good,
        "GET /query HTTP/1.1\r\nhost: a b\r\n\r\n",
        &good,
        "no request\r\n\r\n",
        &good,
    ];
    stream.write_all(all.concat().as_bytes()).unwrap();
    let all = answers(stream);
    let statuses: Vec<u16> = all.iter().map(|a| a.status).collect();
    assert_eq!(statuses, [200, 400, 200, 404, 415, 200, 400, 200, 400]);
    for good in [0, 2, 5, 7] {
        assert_eq!(all[good].text(), "true\n");
    }
    assert_eq!(all[1].problem(), "syntax");
}

#[test]
fn an_answer_waits_neither_for_the_next_query_nor_for_the_rest_of_its_text() {
    let server = serve(thousand(), options());
    for next in [
        // A query that has no answer before its time is over.
        query(&format!(
            "SELECT (COUNT(*) AS ?n) {}",
            &ENDLESS["SELECT * ".len()..]
        )),
        // A request that has not arrived completely.
        "GET /query?query=ASK".to_owned(),
    ] {
        let mut stream = connect(server.address());
        let first = query("ASK { <http://e/s7> ?p ?o }");
        stream
            .write_all(format!("{first}{next}").as_bytes())
            .unwrap();
        let mut one = OneByte(&stream);
        assert_eq!(receive(&mut one, "GET").text(), "true\n");
    }
    until("the queries are gone", || server.live_queries() == 0);
}

/// As [`OneByOne`], for a connection.
struct OneByte<'a>(&'a TcpStream);

impl Read for OneByte<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = into.len().min(1);
        self.0.read(&mut into[..length])
    }
}

#[test]
fn a_body_with_two_lengths_hides_no_request() {
    let server = serve(thousand(), options());
    // By its length, the body ends before `0\r\n\r\n`; by its chunks, after it.
    let heads = [
        "content-length: 4\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 4",
        "content-length: 4\r\ncontent-length: 5",
        "content-length: 4, 5",
        "transfer-encoding: identity\r\ncontent-length: 4",
        "transfer-encoding: chunked, identity\r\ncontent-length: 4",
    ];
    for head in heads {
        let mut stream = connect(server.address());
        let post =
            "POST /query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/sparql-query";
        let hidden = "GET /nowhere HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let text = format!("{post}\r\n{head}\r\n\r\n0\r\n\r\n{hidden}");
        stream.write_all(text.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let all = answers(stream);
        let statuses: Vec<u16> = all.iter().map(|a| a.status).collect();
        assert_eq!(statuses, [400], "{head}");
    }
    let mut stream = connect(server.address());
    send(&mut stream, "GET", "/health", &[], b"");
    assert_eq!(receive(&mut stream, "GET").status, 200);
}
