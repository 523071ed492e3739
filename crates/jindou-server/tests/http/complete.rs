//! Completion while heavy queries run.

use crate::{ENDLESS, ask, get, options, serve, thousand, until};
use jindou_server::Server;
use jindou_testing::http::{Answer, escape, request};
use std::time::{Duration, Instant};

fn complete(server: &Server, before: &str, more: &str) -> Answer {
    let target = format!("/complete?text={}{more}", escape(before));
    get(server, &target)
}

fn texts(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    let items = json["items"].as_array().unwrap().iter();
    items
        .map(|i| i["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn heavy_queries_do_not_keep_it_waiting() {
    let server = serve(thousand(), options().with_heavy_slots(2));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| ask(&server, ENDLESS, &[]));
        }
        until("both run", || server.live_queries() == 2);
        for _ in 0..10 {
            let begin = Instant::now();
            let answer = complete(&server, "SELECT * { ?x <http://e/p> ?y . ?y ", "");
            assert_eq!(answer.status, 200);
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "{:?}",
                begin.elapsed()
            );
            assert!(
                texts(&complete(&server, "SELECT * { ?x ", ""))
                    .contains(&"<http://e/p>".to_owned())
            );
        }
        let list = get(&server, "/admin/queries").json();
        for q in list["queries"].as_array().unwrap() {
            let target = format!("/admin/queries/{}", q["id"]);
            request(server.address(), "DELETE", &target, &[], b"");
        }
    });
}
