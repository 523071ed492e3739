//! Reading of the store into memory after the start.

use crate::{ask, get, options, serve, store, until};
use jindou::Warm;

#[test]
fn the_store_is_read_and_what_queries_ask_for_is_kept() {
    let triples =
        (0..500).map(|i| format!("<http://e/s{i}> <http://e/p> <http://e/o{}> .\n", i % 7));
    let store = store(&triples.collect::<String>());
    let kept = store.folder().join("store").join("use.txt");
    let server = serve(&store, options().with_warm(Warm::BeforeReady));
    let get = |target: &str| get(&server, target);
    until("the store is in memory", || {
        let ready = get("/ready");
        assert!(
            ready.status == 200 || ready.text().contains("is being read into memory"),
            "{}",
            ready.text()
        );
        ready.status == 200
    });
    let metrics = get("/metrics").text().to_owned();
    let number = |name: &str| -> u64 {
        let line = metrics.lines().find_map(|l| l.strip_prefix(name));
        line.and_then(|n| n.trim().parse().ok()).expect("a number")
    };
    let wanted = number("jindou_warm_wanted_bytes ");
    assert!(wanted > 4_000, "{wanted}");
    assert_eq!(number("jindou_warm_read_bytes "), wanted);
    for i in 0..300 {
        let query = format!(
            "SELECT ?s {{ ?s <http://e/p> <http://e/o{}> }} LIMIT {}",
            i % 7,
            1 + i
        );
        assert_eq!(ask(&server, &query, &[]).status, 200);
    }
    assert!(!kept.exists());
    drop(server);
    let kept = std::fs::read_to_string(kept).expect("the counts");
    let requests = kept.lines().nth(1).expect("a predicate");
    let requests: Vec<u64> = requests
        .split(' ')
        .map(|n| n.parse().expect("a number"))
        .collect();
    assert!(
        requests.len() == 3 && requests[1] + requests[2] >= 64,
        "{kept}"
    );
}

#[test]
fn nothing_is_read_or_kept_unless_it_is_asked_for() {
    let store = store("<http://e/s> <http://e/p> 1 .");
    let server = serve(&store, options());
    let answer = get(&server, "/metrics").text().to_owned();
    assert!(answer.contains("jindou_warm_wanted_bytes 0"), "{answer}");
    drop(server);
    assert!(!store.folder().join("store").join("use.txt").exists());
}
