//! Queries while a long update runs.

use crate::{ENDLESS, csv, get, serve, thousand, until, update, writable};
use jindou_server::Server;
use jindou_testing::http::request;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn count(server: &Server, pattern: &str) -> String {
    let query = format!("SELECT (COUNT(*) AS ?n) {{ {pattern} }}");
    let answer = csv(server, &query);
    answer.text().lines().nth(1).unwrap().to_owned()
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
        let list = get(&server, "/admin/queries").json();
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
