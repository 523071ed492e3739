//! Metrics and profiles.

use crate::{ENDLESS, MILLION, ask, csv, get, options, serve, thousand, until};
use jindou_testing::http::{escape, request};

#[test]
fn metrics_count_what_happened() {
    let server = serve(thousand(), options());
    let light = "SELECT * { <http://e/s7> ?p ?o }";
    for _ in 0..3 {
        assert_eq!(ask(&server, light, &[]).status, 200);
    }
    assert_eq!(ask(&server, "ASK {", &[]).status, 400);
    assert!(csv(&server, MILLION).is_whole());
    until("all have been counted", || server.live_queries() == 0);
    let metrics = get(&server, "/metrics");
    assert!(
        metrics
            .header("content-type")
            .starts_with("text/plain; version=0.0.4")
    );
    let text = metrics.text();
    let value = |name: &str| -> f64 {
        let line = text
            .lines()
            .find(|l| l.strip_prefix(name).is_some_and(|r| r.starts_with(' ')));
        let line = line.unwrap_or_else(|| panic!("no {name} in\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert_eq!(
        value("jindou_queries_total{class=\"light\",outcome=\"ok\"}"),
        3.0
    );
    assert_eq!(
        value("jindou_queries_total{class=\"heavy\",outcome=\"ok\"}"),
        1.0
    );
    assert_eq!(
        value("jindou_queries_total{class=\"unplanned\",outcome=\"syntax\"}"),
        1.0
    );
    assert_eq!(value("jindou_query_seconds_count{class=\"light\"}"), 3.0);
    // Other tests with the same store may have cached these plans already.
    let (hits, misses) = (
        value("jindou_plan_cache_hits_total"),
        value("jindou_plan_cache_misses_total"),
    );
    assert!(hits >= 2.0 && hits + misses == 4.0, "{hits} and {misses}");
    assert_eq!(value("jindou_result_rows_total"), 1_000_003.0);
    assert_eq!(value("jindou_queries_running"), 0.0);
    assert!(value("jindou_connections") >= 1.0);
    assert_eq!(
        value("jindou_http_requests_total{route=\"/query\",status=\"400\"}"),
        1.0
    );
    assert!(value("jindou_result_bytes_total") > 2e7);
}

#[test]
fn a_query_that_is_measured_shows_its_steps_while_it_runs() {
    let server = serve(thousand(), options());
    let get = |target: &str| get(&server, target);
    let long = format!("/query?profile=true&tag={}&query=x", "t".repeat(65));
    assert_eq!(get(&long).status, 400);
    std::thread::scope(|scope| {
        let endless = format!("/query?profile=true&tag=mine&query={}", escape(ENDLESS));
        let asked = scope.spawn(move || get(&endless));
        let other = scope.spawn(|| ask(&server, ENDLESS, &[]));
        // A watched query whose answer is returned as well.
        let target = format!("/query?watch=true&tag=watched&query={}", escape(ENDLESS));
        let watched = scope.spawn(move || get(&target));
        until("all run", || server.live_queries() == 3);
        until("the steps of the watched one are seen", || {
            let queries = get("/admin/queries?tag=watched").json();
            let target = format!("/admin/queries/{}", queries["queries"][0]["id"]);
            let seen = get(&target).json();
            seen["rows"].as_u64() > Some(0)
                && seen["profile"]["tree"]["inputs"][0]["rows_out"].as_u64() > Some(0)
        });
        let mine = || {
            get("/admin/queries?tag=mine").json()["queries"]
                .as_array()
                .unwrap()
                .clone()
        };
        assert_eq!(mine().len(), 1);
        assert_eq!(mine()[0]["tag"], "mine");
        let target = format!("/admin/queries/{}", mine()[0]["id"]);
        // The number of rows of the last step, which grows.
        let rows = || {
            get(&target).json()["profile"]["tree"]["inputs"][0]["rows_out"]
                .as_u64()
                .unwrap_or(0)
        };
        until("rows come", || rows() > 0);
        let first = rows();
        until("more rows come", || rows() > first);
        let seen = get(&target).json();
        let leaf = &seen["profile"]["tree"]["inputs"][0];
        assert!(leaf["ms"].as_f64().unwrap() > 0.0);
        let steps = &leaf["inputs"][0];
        assert!(
            steps["name"].as_str().unwrap().starts_with("step "),
            "{seen}"
        );
        assert!(seen["profile"]["text"].to_string().contains("native"));
        // The query that is neither profiled nor watched has no profile.
        for q in get("/admin/queries").json()["queries"].as_array().unwrap() {
            let target = format!("/admin/queries/{}", q["id"]);
            assert_eq!(
                get(&target).json()["profile"].is_object(),
                q["tag"] == "mine" || q["tag"] == "watched"
            );
            request(server.address(), "DELETE", &target, &[], b"");
        }
        assert_eq!(asked.join().unwrap().status, 503);
        drop((other.join(), watched.join()));
    });
}

#[test]
fn a_profile_is_a_tree_that_adds_up() {
    let server = serve(thousand(), options());
    let target = format!("/query?profile=true&query={}", escape(MILLION));
    let answer = get(&server, &target);
    assert_eq!(answer.header("content-type"), "application/json");
    let json = answer.json();
    assert_eq!(json["rows"], 1_000_000);
    assert!(json["text"].to_string().contains("native"));
    let mut node = &json["tree"];
    assert_eq!(
        (&node["name"], &node["rows_out"]),
        (&"result".into(), &1_000_000.into())
    );
    let mut depth = 0;
    while let Some(input) = node["inputs"].get(0) {
        let is_step = |n: &serde_json::Value| n["name"].as_str().unwrap().starts_with("step");
        if is_step(node) || (depth > 0 && !is_step(input)) {
            assert_eq!(node["rows_in"], input["rows_out"]);
        } else if is_step(input) {
            // An operator returns the rows of the last step of its exploration.
            assert_eq!(node["rows_out"], input["rows_out"]);
        }
        assert_eq!(input["place"], "cpu");
        (node, depth) = (input, depth + 1);
    }
    assert!(depth >= 2);
    let by_header = ask(&server, "ASK {}", &[("x-jindou-profile", "1")]);
    assert_eq!(by_header.json()["rows"], 1);
}
