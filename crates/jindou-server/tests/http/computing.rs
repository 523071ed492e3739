//! Threads that compute: heavy queries never use more than the runtime's computing slots, and network threads are never
//! occupied for long.

use crate::{MILLION, Store, ask, csv, get, options, serve, store, thousand, until};
use jindou::{Database, OpenOptions, Runtime};
use jindou_testing::Stopwatch;
use jindou_testing::http::{connect, escape, send};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A heavy query with a single row, so that nearly all its time is computing.
const HEAVY: &str = "SELECT (COUNT(*) AS ?n) { ?a <http://e/p> ?b . ?c <http://e/p> ?d FILTER(STRLEN(CONCAT(?b, ?d)) > 5) }";

/// Number of clients that send the query at the same time.
const CLIENTS: usize = 5;

/// Opens the store with a runtime that has this many computing slots.
fn with_places(store: &Store, places: usize) -> Database {
    let options = OpenOptions::default().with_runtime(Runtime::builder().threads(places).build());
    Database::open_with(store.folder().join("store"), &options).expect("a store")
}

#[test]
fn heavy_queries_of_many_clients_compute_in_the_places_that_there_are() {
    for places in [1, 2] {
        let db = with_places(thousand(), places);
        let workers = db.runtime().workers().clone();
        let server = jindou_server::Server::start(db, options().with_threads(2)).expect("a server");
        let mut most = (0, 0);
        std::thread::scope(|scope| {
            let client = || {
                let answer = csv(&server, HEAVY);
                assert_eq!(answer.text(), "n\r\n1000000\r\n");
            };
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
            // A client that panicked has ended as well, so this does not wait for ever.
            while !clients.iter().all(|c| c.is_finished()) {
                let (computing, waiting) = workers.load();
                most = (most.0.max(computing), most.1.max(waiting));
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        assert_eq!(most.0, places);
        assert!(most.1 >= CLIENTS - places - 1, "only {} waited", most.1);
        until("all places are free", || workers.load() == (0, 0));
    }
}

#[test]
fn readers_that_stop_reading_hold_no_place() {
    let db = with_places(thousand(), 1);
    let workers = db.runtime().workers().clone();
    let server = jindou_server::Server::start(db, options()).expect("a server");
    let target = format!("/query?query={}", escape(MILLION));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = connect(server.address());
            send(&mut stream, "GET", &target, &[("accept", "text/csv")], b"");
            stream
        })
        .collect();
    until("all wait for their readers", || {
        server.live_queries() == 3 && workers.load() == (0, 0)
    });
    let answer = csv(&server, HEAVY);
    assert_eq!(answer.text(), "n\r\n1000000\r\n");
    drop(readers);
    until("they are gone", || server.live_queries() == 0);
    until("all places are free", || workers.load() == (0, 0));
}

/// A store with subjects that have all of this many predicates.
fn star(predicates: usize) -> Store {
    let mut text = String::new();
    for s in 0..20 {
        for p in 0..predicates {
            writeln!(text, "<http://e/s{s}> <http://e/p{p}> {} .", (s * p) % 7).expect("a line");
        }
    }
    store(&text)
}

/// Sets the flag that ends other threads when it is dropped, so that they also end after a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Sends large queries that are never in the plan cache, some of them short enough to be planned on network threads,
/// and small queries at the same time.
#[test]
fn planning_keeps_no_small_query_waiting() {
    let star = star(300);
    let server = serve(&star, options());
    let ended = AtomicBool::new(false);
    let large = |patterns: usize, n: u64| {
        let mut text = format!("PREFIX e:<http://e/>ASK{{?s{n} e:p0 9");
        for p in 1..patterns {
            write!(text, ";e:p{p} ?{p}").expect("a text");
        }
        text + "}"
    };
    assert!(large(280, 0).len() < 4 << 10 && large(300, 0).len() > 2 << 10);
    let (mut slowest, mut waited, mut small) = (Duration::ZERO, Duration::ZERO, 0);
    std::thread::scope(|scope| {
        let _end = Ends(&ended);
        for client in 0..4u64 {
            let (server, ended, large) = (&server, &ended, &large);
            scope.spawn(move || {
                let mut n = client << 32;
                while !ended.load(Ordering::SeqCst) {
                    n += 1;
                    let target = format!("/query?query={}", escape(&large(280, n)));
                    let answer = get(server, &target);
                    assert_eq!(answer.status, 200, "{}", answer.text());
                }
            });
        }
        let begun = Instant::now();
        let watch = Stopwatch::start();
        let mut times = Vec::new();
        while begun.elapsed() < Duration::from_secs(3) {
            let asked = Instant::now();
            let answer = ask(&server, "ASK { <http://e/s1> <http://e/p1> 1 }", &[]);
            assert_eq!(answer.status, 200);
            times.push(asked.elapsed());
        }
        times.sort_unstable();
        (slowest, small) = (times[times.len() * 9 / 10], times.len());
        waited = watch.waited();
    });
    // One small query in ten took longer than `LATE`; if these account for all the waiting for a core, each waited this
    // long.
    let each = 10 * waited / small as u32;
    assert!(
        slowest < Duration::from_millis(200) + each,
        "{slowest:?}, {small} small queries, {waited:?} without a core"
    );
}
