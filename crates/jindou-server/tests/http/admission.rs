//! Every route that parses a text, plans or explores counts as a query: for the limits and shares, in the list at
//! `/admin/queries`, for DELETE, and when its client disconnects.

use crate::{
    ENDLESS, ask, assert_answers, csv, get, metric, options, serve, store, thousand, until,
};
use jindou_server::{Server, ServerOptions};
use jindou_testing::http::{Answer, connect, escape, receive, request, send};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const FORM: &str = "application/x-www-form-urlencoded";

/// A request: method, target, media type, body.
type Asked = (&'static str, String, &'static str, String);

/// The requests by which a route accesses the data; empty for a route that does not.
fn asked(path: &str) -> Vec<Asked> {
    let get = |target: &str| ("GET", target.to_owned(), "", String::new());
    let post = |target: &str, media: &'static str, body: &str| {
        ("POST", target.to_owned(), media, body.to_owned())
    };
    match path {
        "/" => vec![get("/?query=ASK%7B%7D")],
        "/sparql" => vec![
            get("/sparql?query=ASK%7B%7D"),
            get("/sparql"),
            post("/sparql", FORM, "query=ASK%7B%7D"),
            post("/sparql", FORM, "update=CLEAR+ALL"),
        ],
        "/query" => vec![
            get("/query"),
            get("/query?query=ASK%7B%7D"),
            get("/query?explain=true&query=ASK%7B%7D"),
            get("/query?profile=true&query=ASK%7B%7D"),
            get("/query?why-empty=true&query=ASK%7B%7D"),
            get("/query?query=ASK%7B%3Fs%20%3Fp%201%7D&$s=%3Curn:a%3E"),
            post("/query", FORM, "query=ASK%7B%7D&explain=true"),
            post("/query", "application/sparql-query", "ASK {}"),
        ],
        "/prepared" => vec![
            post("/prepared", "application/sparql-query", "ASK {}"),
            post("/prepared", FORM, "query=ASK%7B%7D"),
        ],
        "/prepared/{id}" => vec![get("/prepared/ID"), post("/prepared/ID", FORM, "a=b")],
        "/batch" => vec![post("/batch", "application/x-ndjson", "{\"id\": \"ID\"}")],
        "/complete" => vec![
            get("/complete?text=ASK%7B"),
            post("/complete", FORM, "text=ASK%7B"),
        ],
        "/search" => vec![get("/search?q=a"), post("/search", FORM, "q=a")],
        "/labels" => vec![get("/labels?iri=urn:a"), post("/labels", FORM, "iri=urn:a")],
        "/update" => vec![
            post("/update", FORM, "update=CLEAR+ALL"),
            post("/update", "application/sparql-update", "CLEAR ALL"),
        ],
        "/store" | "/store/{*graph}" => ["/store?default", "/store?graph=urn:g", "/store/g"]
            .iter()
            .flat_map(|target| {
                let put = (
                    "PUT",
                    (*target).to_owned(),
                    "text/turtle",
                    "# none".to_owned(),
                );
                let delete = ("DELETE", (*target).to_owned(), "", String::new());
                let patch = (
                    "PATCH",
                    (*target).to_owned(),
                    "application/sparql-update",
                    "CLEAR ALL".to_owned(),
                );
                [
                    get(target),
                    put,
                    delete,
                    patch,
                    post(target, "text/turtle", "# none"),
                ]
            })
            .chain([
                get("/store"),
                post("/store", "application/n-quads", "# none"),
            ])
            .collect(),
        "/prefixes" => vec![get("/prefixes")],
        "/prefixes/" | "/prefixes/{name}" => vec![
            (
                "PUT",
                "/prefixes/x".to_owned(),
                "text/plain",
                "http://e/".to_owned(),
            ),
            ("DELETE", "/prefixes/x".to_owned(), "", String::new()),
        ],
        "/page.js"
        | "/page.css"
        | "/worker.js"
        | "/icon.svg"
        | "/ready"
        | "/health"
        | "/metrics"
        | "/admin/queries"
        | "/admin/queries/{id}"
        | "/admin/recluster"
        | "/admin/backup"
        | "/admin/merge"
        | "/admin/drain" => vec![],
        new => panic!("{new} is a new route: list here how it asks for data"),
    }
}

#[test]
fn every_route_that_asks_for_data_is_admitted() {
    let store = store("<http://e/s> <http://e/p> 1 .");
    let server = serve(&store, options().with_max_queries(1).with_writable(true));
    let direct = [("content-type", "application/sparql-query")];
    let made = request(
        server.address(),
        "POST",
        "/prepared",
        &direct,
        b"ASK { ?s ?p 7 }",
    );
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let mut taken = connect(server.address());
    // The only allowed query is an update whose body does not arrive.
    let head = b"POST /update HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/sparql-update\r\ncontent-length: 9\r\n\r\n";
    std::io::Write::write_all(&mut taken, head).unwrap();
    until("the place is taken", || server.live_queries() == 1);
    let mut seen = 0;
    for path in jindou_server::routes() {
        for (method, target, media, body) in asked(path) {
            let (target, body) = (target.replace("ID", &id), body.replace("ID", &id));
            let headers = [("content-type", media)];
            let answer = request(server.address(), method, &target, &headers, body.as_bytes());
            let what = format!("{method} {target}: {}", answer.text());
            assert_eq!((answer.status, &*answer.problem()), (503, "busy"), "{what}");
            seen += 1;
        }
        if asked(path).is_empty() {
            let target = path.replace("{id}", "1");
            let answer = get(&server, &target);
            assert_ne!(answer.status, 503, "{path}: {}", answer.text());
        }
    }
    assert!(seen > 30, "{seen}");
    drop(taken);
    until("the place is free", || server.live_queries() == 0);
    assert_eq!(ask(&server, "ASK {}", &[]).status, 200);
}

/// Options with enough memory for many long texts, whose charge is much more than they use.
fn roomy() -> ServerOptions {
    options().with_memory(1 << 36).with_query_memory(1 << 30)
}

/// A text of half a megabyte, so that parsing and planning it takes a while in any case.
fn long_text(n: usize) -> String {
    let values: Vec<String> = (0..50_000).map(|i| format!("({i} {n})")).collect();
    format!(
        "SELECT * {{ VALUES (?a ?n) {{ {} }} ?a <http://e/p> ?n }}",
        values.join(" ")
    )
}

fn listed(server: &Server) -> Vec<serde_json::Value> {
    let answer = get(server, "/admin/queries");
    answer.json()["queries"].as_array().unwrap().clone()
}

/// Sends a long text in many requests at the same time, without reading their answers.
fn crowd(server: &Server, targets: &[&str], text: &str, n: usize) -> Vec<TcpStream> {
    let direct = [("content-type", "application/sparql-query")];
    std::thread::scope(|scope| {
        let one = |i: usize| {
            let target = targets[i % targets.len()];
            scope.spawn(move || {
                let mut stream = connect(server.address());
                send(&mut stream, "POST", target, &direct, text.as_bytes());
                stream
            })
        };
        let all: Vec<_> = (0..n).map(one).collect();
        all.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

#[test]
fn texts_that_are_expensive_to_plan_are_limited_and_keep_nobody_waiting() {
    let limited = roomy()
        .with_max_queries(64)
        .with_max_client_queries(40)
        .with_heavy_slots(1);
    let server = serve(thousand(), limited);
    assert_eq!(ask(&server, "ASK { <http://e/s7> ?p ?o }", &[]).status, 200);
    let text = long_text(1);
    let targets = [
        "/prepared?timeout=60",
        "/query?explain=true",
        "/prepared?parameter=n&timeout=60",
    ];
    let crowd = crowd(&server, &targets, &text, 120);
    until("they are listed", || !listed(&server).is_empty());
    let mut most = 0;
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        most = most.max(server.live_queries());
        let begin = Instant::now();
        let light = csv(&server, "ASK { <http://e/s7> ?p ?o }");
        // All requests come from one address, so the light query may be refused when the client's share is used up.
        if light.status == 200 {
            assert_eq!(light.text(), "true\n");
        } else {
            assert_eq!(&*light.problem(), "busy");
        }
        slowest = slowest.max(begin.elapsed());
    }
    assert!(most <= 40, "{most} at once");
    // Less than the time that the long queries take together.
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
    let all = listed(&server);
    assert!(
        all.iter()
            .all(|q| q["query"].as_str().unwrap().starts_with("SELECT * {"))
    );
    assert!(metric(&server, "jindou_queries_refused_total") > 0.0);
    // A query whose client disconnects is cancelled.
    drop(crowd);
    until("nobody is left", || server.live_queries() == 0);
}

#[test]
fn light_queries_go_on_beside_expensive_plans() {
    let server = serve(
        thousand(),
        roomy().with_max_queries(256).with_heavy_slots(1),
    );
    let text = long_text(2);
    let crowd = crowd(&server, &["/prepared?timeout=60"], &text, 60);
    until("they are listed", || !listed(&server).is_empty());
    for _ in 0..20 {
        let begin = Instant::now();
        assert_answers(&server);
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{:?}",
            begin.elapsed()
        );
    }
    drop(crowd);
    until("nobody is left", || server.live_queries() == 0);
}

/// The response to a request that is cancelled by DELETE as soon as it is listed.
fn deleted(server: &Server, target: &str, text: &str) -> Answer {
    let direct = [("content-type", "application/sparql-query")];
    let mut stream = connect(server.address());
    send(&mut stream, "POST", target, &direct, text.as_bytes());
    until("it is listed", || !listed(server).is_empty());
    let id = listed(server)[0]["id"].to_string();
    let gone = request(
        server.address(),
        "DELETE",
        &format!("/admin/queries/{id}"),
        &[],
        b"",
    );
    assert_eq!(gone.status, 202);
    receive(&mut stream, "POST")
}

#[test]
fn whoever_plans_can_be_deleted() {
    let server = serve(thousand(), roomy());
    for target in ["/prepared", "/query?explain=true", "/query?$n=%221%22"] {
        let text = long_text(3);
        let answer = deleted(&server, target, &text);
        assert_eq!(
            (answer.status, &*answer.problem()),
            (503, "cancelled"),
            "{target}"
        );
        assert!(
            answer.text().contains("/admin/queries"),
            "{}",
            answer.text()
        );
        until("it is gone", || server.live_queries() == 0);
    }
}

#[test]
fn plans_have_the_requests_own_time_limit() {
    let server = serve(thousand(), roomy());
    let direct = [("content-type", "application/sparql-query")];
    let text = long_text(4);
    for target in ["/prepared?timeout=20ms", "/query?explain=true&timeout=20ms"] {
        let answer = request(server.address(), "POST", target, &direct, text.as_bytes());
        let told = answer.text().to_owned();
        assert_eq!(
            (answer.status, &*answer.problem()),
            (503, "timeout"),
            "{target}: {told}"
        );
        assert!(answer.text().contains("20ms"), "{}", answer.text());
    }
    let target = format!("/query?explain=true&query={}", escape(ENDLESS));
    assert_eq!(get(&server, &target).status, 200);
}
