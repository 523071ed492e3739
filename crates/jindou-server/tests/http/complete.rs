//! Completion over HTTP.

use crate::{ENDLESS, Store, ask, options, serve, store, thousand, until};
use jindou_server::Server;
use jindou_testing::http::{Answer, escape, request};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

fn people() -> &'static Store {
    static STORE: OnceLock<Store> = OnceLock::new();
    STORE.get_or_init(|| {
        store(
            "@prefix f: <http://xmlns.com/foaf/0.1/> . @prefix : <http://e/> .
            :ann a f:Person ; f:name \"Ann\" ; f:knows :bob , :cy . :bob a f:Person ; f:knows :cy . :cy a f:Agent .
            :g { :ann :only :there }",
        )
    })
}

fn complete(server: &Server, before: &str, more: &str) -> Answer {
    let target = format!("/complete?text={}{more}", escape(before));
    request(server.address(), "GET", &target, &[], b"")
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
fn predicates_and_objects_are_offered_with_counts() {
    let server = serve(people(), options());
    let answer = complete(&server, "SELECT * { ?x a foaf:Person . ?x ", "&limit=2");
    let json = answer.json();
    assert_eq!(json["slot"], "predicate");
    assert_eq!(json["from"], json["to"]);
    assert_eq!(json["word"], "");
    let first = &json["items"][0];
    assert_eq!(first["text"], "foaf:knows");
    assert_eq!(first["iri"], "http://xmlns.com/foaf/0.1/knows");
    assert_eq!(
        (&first["kind"], &first["count"]),
        (&"predicate".into(), &2.into())
    );
    assert_eq!(first["prefix"]["name"], "foaf");
    assert_eq!(json["items"].as_array().unwrap().len(), 2);
    // The text after the cursor counts; positions are bytes.
    let answer = complete(
        &server,
        "# ä\nSELECT * { ?x foaf:n",
        &format!("&after={}", escape(" . ?x a foaf:Person }")),
    );
    assert_eq!(texts(&answer), ["foaf:name", "foaf:knows"]);
    assert_eq!(answer.json()["from"], "# ä\nSELECT * { ?x ".len());
    assert_eq!(answer.json()["word"], "foaf:n");
    // A form works in the same way, and graphs can be chosen.
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let body = format!(
        "text={}&default-graph-uri={}",
        escape("SELECT * { <http://e/ann> "),
        escape("http://e/g")
    );
    let answer = request(
        server.address(),
        "POST",
        "/complete",
        &form,
        body.as_bytes(),
    );
    assert_eq!(texts(&answer), [":only"]);
    until("nothing is left", || server.live_queries() == 0);
}

#[test]
fn requests_that_say_nothing_are_refused() {
    let server = serve(people(), options());
    let get = |target: &str| request(server.address(), "GET", target, &[], b"").status;
    assert_eq!(get("/complete"), 400);
    assert_eq!(get("/complete?text=a&text=b"), 400);
    assert_eq!(get("/complete?text=a&limit=many"), 400);
    assert_eq!(get("/complete?text=a&timeout=soon"), 400);
    assert_eq!(
        request(server.address(), "PUT", "/complete", &[], b"").status,
        405
    );
    let plain = [("content-type", "text/plain")];
    assert_eq!(
        request(server.address(), "POST", "/complete", &plain, b"x").status,
        415
    );
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let long = format!("text={}", "x".repeat(jindou::complete::LONGEST_TEXT + 1));
    assert_eq!(
        request(
            server.address(),
            "POST",
            "/complete",
            &form,
            long.as_bytes()
        )
        .status,
        400
    );
    assert!(
        complete(&server, "SELECT * { ?x ", "&limit=0").json()["items"]
            .as_array()
            .unwrap()
            .is_empty()
    );
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
        let list = request(server.address(), "GET", "/admin/queries", &[], b"").json();
        for q in list["queries"].as_array().unwrap() {
            let target = format!("/admin/queries/{}", q["id"]);
            request(server.address(), "DELETE", &target, &[], b"");
        }
    });
}

#[test]
fn words_of_labels_find_predicates_and_resources() {
    let data = store(
        "@prefix l: <http://www.w3.org/2000/01/rdf-schema#> . @prefix wdt: <http://www.wikidata.org/prop/direct/> . @prefix : <http://e/> .
        :x wdt:P31 :Q5 . wdt:P31 l:label \"instance of\"@en ; :title \"kind\" . :Q5 l:label \"human\"@en .",
    );
    let server = serve(&data, options());
    let answer = complete(&server, "SELECT * { ?x instance", "");
    let first = &answer.json()["items"][0];
    assert_eq!(
        (
            &first["text"],
            &first["kind"],
            &first["label"],
            &first["count"]
        ),
        (
            &"wdt:P31".into(),
            &"predicate".into(),
            &"instance of".into(),
            &1.into()
        )
    );
    let answer = complete(&server, "SELECT * { ?x wdt:P31 hum", "");
    assert_eq!(answer.json()["items"][0]["label"], "human");
    assert_eq!(answer.json()["items"][0]["iri"], "http://e/Q5");
    // Names have no label here, and labels can be left out.
    let answer = complete(&server, "SELECT * { ?x P3", "");
    assert!(answer.json()["items"][0].get("label").is_none());
    let none = complete(&server, "SELECT * { ?x instance", "&labels=false");
    assert!(texts(&none).is_empty(), "{}", none.text());
    let bad = complete(&server, "SELECT * { ?x instance", "&labels=some");
    assert_eq!(bad.status, 400);
    // Labels are what the server was started with.
    let titles = options().with_label_properties(vec!["http://e/title".to_owned()]);
    let server = serve(&data, titles);
    assert_eq!(
        texts(&complete(&server, "SELECT * { ?x kind", "")),
        ["wdt:P31"]
    );
    assert!(texts(&complete(&server, "SELECT * { ?x instance", "")).is_empty());
    until("nothing is left", || server.live_queries() == 0);
}
