//! Streamed answers: slow readers, readers that disconnect, cancellation, shutdown.

use crate::{
    ENDLESS, MILLION, ask, assert_answers, csv, get, metric, options, serve, thousand, until,
};
use jindou_testing::http::{connect, escape, receive, request, send};
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn open(server: &jindou_server::Server, query: &str, parameters: &str) -> TcpStream {
    let mut stream = connect(server.address());
    let target = format!("/query?{parameters}query={}", escape(query));
    send(&mut stream, "GET", &target, &[("accept", "text/csv")], b"");
    stream
}

#[test]
fn the_first_rows_come_while_the_rest_is_made() {
    let server = serve(thousand(), options());
    let mut stream = open(&server, ENDLESS, "");
    let mut some = [0; 100_000];
    stream.read_exact(&mut some).unwrap();
    assert_eq!(server.live_queries(), 1);
    drop(stream);
    until("the query of a reader that left is gone", || {
        server.live_queries() == 0
    });
}

#[test]
fn a_reader_that_leaves_before_the_first_row_ends_its_query() {
    let server = serve(thousand(), options());
    let silent = "SELECT (COUNT(*) AS ?n) { ?a <http://e/p> ?b . ?c <http://e/p> ?d . ?e <http://e/p> ?f . ?g <http://e/p> ?h FILTER(?b < ?d && ?d < ?f && ?f < ?h) }";
    let stream = open(&server, silent, "");
    until("it runs", || server.live_queries() == 1);
    drop(stream);
    until("it is gone", || server.live_queries() == 0);
}

#[test]
fn a_reader_that_stops_reading_is_cut_off_at_its_deadline() {
    let server = serve(thousand(), options());
    let start = Instant::now();
    let mut stream = open(&server, ENDLESS, "timeout=500ms&");
    until("it runs", || server.live_queries() == 1);
    until("its time is over", || server.live_queries() == 0);
    assert!(start.elapsed() >= Duration::from_millis(400));
    // The connection is closed as well: the client gets the data that the operating system still holds, and then an end
    // without the marker of a complete answer.
    std::thread::sleep(Duration::from_millis(1500));
    let answer = receive(&mut stream, "GET");
    assert!(!answer.is_whole());
    until("the connection is gone", || {
        let metrics = get(&server, "/metrics");
        // The only connection left is that of this request.
        metrics.text().lines().any(|l| l == "jindou_connections 1")
    });
}

#[test]
fn slow_readers_do_not_keep_others_waiting() {
    let server = serve(
        thousand(),
        options().with_light_slots(1).with_heavy_slots(1),
    );
    // More stalled readers than there are light and heavy slots.
    let mut slow: Vec<_> = (0..20)
        .map(|_| open(&server, ENDLESS, "timeout=30&"))
        .collect();
    until("all wait for their readers", || {
        let page = get(&server, "/admin/queries");
        let json = page.json();
        let all = json["queries"].as_array().unwrap();
        all.len() == 20 && all.iter().all(|q| q["state"] == "waiting for its reader")
    });
    let heavy = csv(&server, MILLION);
    assert!(heavy.is_whole());
    assert_eq!(heavy.text().lines().count(), 1_000_001);
    assert_answers(&server);
    // A stalled query continues when its client reads again.
    let mut some = [0; 300_000];
    slow[0].read_exact(&mut some).unwrap();
    drop(slow);
    until("all are gone", || server.live_queries() == 0);
}

#[test]
fn a_query_is_seen_and_cancelled() {
    let server = serve(thousand(), options());
    let to = server.address();
    let mut stream = open(&server, ENDLESS, "timeout=30&");
    until("it runs", || server.live_queries() == 1);
    let page = request(to, "GET", "/admin/queries", &[], b"").json();
    let q = &page["queries"][0];
    assert_eq!(q["query"], ENDLESS);
    assert_eq!(q["timeout"], 30.0);
    let one = format!("/admin/queries/{}", q["id"]);
    assert_eq!(request(to, "GET", &one, &[], b"").json()["id"], q["id"]);
    assert_eq!(request(to, "POST", &one, &[], b"").status, 405);
    assert_eq!(request(to, "DELETE", &one, &[], b"").status, 202);
    until("it is gone", || server.live_queries() == 0);
    // The query may have been cancelled before its answer began.
    let answer = receive(&mut stream, "GET");
    assert!(
        !answer.is_whole() || answer.status == 503,
        "{}",
        answer.status
    );
    assert_eq!(request(to, "DELETE", &one, &[], b"").status, 404);
    assert_eq!(
        request(to, "DELETE", "/admin/queries/x", &[], b"").status,
        404
    );
}

#[test]
fn a_shutdown_lets_answers_end_and_cancels_after_its_grace() {
    let server = serve(thousand(), options());
    let to = server.address();
    let mut stream = open(&server, MILLION, "");
    let mut idle = connect(to);
    send(&mut idle, "GET", "/health", &[], b"");
    assert_eq!(receive(&mut idle, "GET").status, 200);
    until("it runs", || server.live_queries() == 1);
    server.shut_down();
    until("nobody is let in", || TcpStream::connect(to).is_err());
    let answer = receive(&mut stream, "GET");
    assert!(answer.is_whole());
    assert_eq!(answer.text().lines().count(), 1_000_001);
    server.stop();

    let server = serve(thousand(), options().with_grace(Duration::from_millis(200)));
    let mut stream = open(&server, ENDLESS, "");
    until("it runs", || server.live_queries() == 1);
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() < Duration::from_secs(30));
    assert!(!receive(&mut stream, "GET").is_whole());
}

#[test]
#[ignore = "2,000 connections; see docs/testing.md"]
fn two_thousand_connections_half_of_them_slow_a_tenth_leaving() {
    // Enough memory for all slow readers, up to 2 MiB for each query, so that no connection is closed for lack of
    // memory.
    let limited = options()
        .with_memory(4 << 30)
        .with_query_memory(16 << 20)
        .with_max_result_rows(500_000);
    let server = serve(thousand(), limited);
    let to = server.address();
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let mut slow: Vec<TcpStream> = Vec::new();
    let mut quick = Vec::new();
    for i in 0..2000 {
        match i % 2 {
            0 => slow.push(open(&server, ENDLESS, "timeout=60&")),
            _ => quick.push(connect(to)),
        }
    }
    until("the slow ones have their queries", || {
        server.live_queries() == 1000
    });
    // A tenth of all clients disconnect in the middle of their answers.
    for _ in 0..200 {
        drop(slow.pop());
    }
    let target = format!("/query?query={}", escape("ASK { <http://e/s7> ?p ?o }"));
    let mut longest = Duration::ZERO;
    for round in 0..3 {
        for stream in &mut quick {
            let start = Instant::now();
            send(stream, "GET", &target, &[("accept", "text/csv")], b"");
            let answer = receive(stream, "GET");
            assert_eq!(answer.text(), "true\n", "round {round}");
            longest = longest.max(start.elapsed());
        }
    }
    println!("3,000 light queries among 800 slow readers: the longest took {longest:?}");
    assert!(longest < Duration::from_secs(10));
    // At the same time, queries that exceed each kind of limit; each ends with its own error.
    let silent = "SELECT (COUNT(*) AS ?n) { ?a <http://e/p> ?b . ?c <http://e/p> ?d . ?e <http://e/p> ?f . ?g <http://e/p> ?h FILTER(?b < ?d && ?d < ?f && ?f < ?h) }";
    let sorted = format!("{MILLION} ORDER BY ?b ?d");
    let deep = format!("ASK {}", "{".repeat(1000));
    let kinds = [
        ("timeout=300ms&", silent, 503, "timeout", "300ms"),
        ("", &*sorted, 507, "limit", "memory"),
        // With a profile the rows are discarded, so the limit of rows is reached before the answer begins.
        ("profile=true&", MILLION, 507, "limit", "500000"),
        ("", &*deep, 400, "query-limit", "nest more than"),
    ];
    std::thread::scope(|scope| {
        for _ in 0..5 {
            for (parameters, query, status, kind, word) in kinds {
                scope.spawn(move || {
                    let target = format!("/query?{parameters}query={}", escape(query));
                    let mut answer = request(to, "GET", &target, &[], b"");
                    // A query whose expected wait exceeds its time limit is refused, and sent again.
                    let begun = Instant::now();
                    while answer.problem() == "busy" && begun.elapsed() < Duration::from_secs(60) {
                        assert_eq!(answer.status, 503);
                        std::thread::sleep(Duration::from_millis(100));
                        answer = request(to, "GET", &target, &[], b"");
                    }
                    assert_eq!(
                        (answer.status, &*answer.problem()),
                        (status, kind),
                        "{query}: {}",
                        &answer.text()[..answer.text().len().min(300)]
                    );
                    assert!(answer.text().contains(word), "{}", answer.text());
                });
            }
        }
    });
    until("those that left are gone", || server.live_queries() == 800);
    drop(slow);
    drop(quick);
    until("all are gone", || server.live_queries() == 0);
    until("their connections too", || {
        let metrics = request(to, "GET", "/metrics", &[], b"");
        metrics.text().lines().any(|l| l == "jindou_connections 1")
            && metrics
                .text()
                .lines()
                .any(|l| l == "jindou_query_memory_bytes 0")
    });
    println!("{} threads are left, idle", threads());
    assert_answers(&server);
}

#[test]
fn readers_that_stopped_are_charged_and_go_when_others_need_the_memory() {
    let memory = 24 << 20;
    let limited = options().with_memory(memory).with_query_memory(16 << 20);
    let server = serve(thousand(), limited);
    let target = format!("/query?query={}", escape(ENDLESS));
    let mut readers = Vec::new();
    let mut most = 0;
    // Together more queries than the memory allows, sent one after the other, so that each has its buffers before the
    // next one is sent.
    for _ in 0..150 {
        let mut stream = connect(server.address());
        send(&mut stream, "GET", &target, &[("accept", "text/csv")], b"");
        readers.push(stream);
        most = most.max(server.live_queries());
        std::thread::sleep(Duration::from_millis(5));
    }
    let used = metric(&server, "jindou_query_memory_bytes") as u64;
    assert!(used > 4 << 20, "{used}");
    assert!(used <= memory, "{used}");
    assert!(most < 100, "{most} at once");
    // The connections of clients that do not read are closed, so that other queries are answered again.
    until("there is room again", || {
        csv(&server, MILLION).is_whole()
            && ask(&server, "ASK { <http://e/s7> ?p ?o }", &[]).status == 200
    });
    drop(readers);
    until("all are gone", || server.live_queries() == 0);
    until("nothing is held", || {
        metric(&server, "jindou_query_memory_bytes") == 0.0
    });
}
