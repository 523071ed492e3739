//! The endpoint as clients of other engines expect it.

use crate::{MILLION, ask, options, serve, store, thousand, until};
use jindou_server::{Server, ServerOptions};
use jindou_testing::http::{Answer, escape, request};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const UPDATE: (&str, &str) = ("content-type", "application/sparql-update");
const QUERY: (&str, &str) = ("content-type", "application/sparql-query");
const CSV: (&str, &str) = ("accept", "text/csv");
const BROWSER: (&str, &str) = (
    "accept",
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
);

fn writable() -> ServerOptions {
    options().with_writable(true)
}

fn send(
    server: &Server,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    request(server.address(), method, target, headers, body.as_bytes())
}

fn get(server: &Server, target: &str, headers: &[(&str, &str)]) -> Answer {
    send(server, "GET", target, headers, "")
}

#[test]
fn one_address_takes_queries_and_updates() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(&data, writable());
    let count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    for (path, before) in [("/sparql", 1), ("/", 3)] {
        let counted = |answer: &Answer| -> u32 {
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.text().lines().nth(1).unwrap().parse().unwrap()
        };
        let by_get = || {
            counted(&get(
                &server,
                &format!("{path}?query={}", escape(count)),
                &[CSV],
            ))
        };
        assert_eq!(by_get(), before);
        let form = format!("query={}", escape(count));
        assert_eq!(
            counted(&send(&server, "POST", path, &[FORM, CSV], &form)),
            before
        );
        assert_eq!(
            counted(&send(&server, "POST", path, &[QUERY, CSV], count)),
            before
        );
        let insert = |n: u32| format!("INSERT DATA {{ <http://e{path}> <http://e/p> {n} }}");
        assert_eq!(
            send(&server, "POST", path, &[UPDATE], &insert(2)).status,
            200
        );
        let form = format!("update={}", escape(&insert(3)));
        assert_eq!(send(&server, "POST", path, &[FORM], &form).status, 200);
        assert_eq!(by_get(), before + 2);
        let both = format!("{form}&query=ASK%7B%7D");
        let refused = [
            (send(&server, "POST", path, &[FORM], &both), 400),
            (send(&server, "POST", path, &[FORM], "a=b"), 400),
            (
                send(&server, "POST", path, &[("content-type", "text/csv")], "a"),
                415,
            ),
            (send(&server, "POST", path, &[], "a"), 415),
            (get(&server, &format!("{path}?{form}"), &[]), 400),
            (send(&server, "PUT", path, &[QUERY], count), 405),
        ];
        for (answer, status) in &refused {
            assert_eq!(answer.status, *status, "{}", answer.text());
        }
        assert_eq!(by_get(), before + 2);
    }
    // Without a query the endpoint is described, at its own address.
    let described = get(&server, "/sparql", &[]);
    assert!(
        described.text().contains("/sparql>"),
        "{}",
        described.text()
    );
}

#[test]
fn updates_at_the_common_address_need_the_same_rights() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        "read reading-0123456789\nwrite writing-0123456789\n",
    )
    .unwrap();
    let server = serve(&data, options().with_token_file(file.path()));
    let reading = ("authorization", "Bearer reading-0123456789");
    let writing = ("authorization", "Bearer writing-0123456789");
    for path in ["/sparql", "/"] {
        for (kind, body) in [(UPDATE, "CLEAR ALL"), (FORM, "update=CLEAR+ALL")] {
            assert_eq!(
                send(&server, "POST", path, &[kind, reading], body).status,
                403
            );
            assert_eq!(send(&server, "POST", path, &[kind], body).status, 401);
        }
        let form = send(
            &server,
            "POST",
            path,
            &[FORM, reading, CSV],
            "query=ASK%7B%3Fs+%3Fp+%3Fo%7D",
        );
        assert_eq!(form.text(), "true\n");
    }
    assert_eq!(
        send(&server, "POST", "/sparql", &[UPDATE, writing], "CLEAR ALL").status,
        200
    );
    // A server without write access for anyone, and pages of other origins.
    let closed = serve(&data, options());
    assert_eq!(
        send(&closed, "POST", "/sparql", &[UPDATE], "CLEAR ALL").status,
        403
    );
    let open = serve(&data, writable().with_cors_origins(["*"]));
    for path in ["/sparql", "/"] {
        let evil = ("origin", "http://evil.example");
        let answer = send(&open, "POST", path, &[FORM, evil], "update=CLEAR+ALL");
        assert_eq!((answer.status, &*answer.problem()), (403, "origin"));
    }
}

#[test]
fn what_is_sent_to_the_wrong_place_is_told_the_right_one() {
    let server = serve(thousand(), writable());
    let told = |target: &str, kind, body: &str| {
        let answer = send(&server, "POST", target, &[kind], body);
        assert!((400..500).contains(&answer.status));
        answer.json()["detail"].as_str().unwrap().to_owned()
    };
    for (kind, body) in [(FORM, "update=CLEAR+ALL"), (UPDATE, "CLEAR ALL")] {
        let sentence = told("/query", kind, body);
        assert_eq!(sentence, "this is an update: send it to /update or /sparql");
    }
    for (kind, body) in [(FORM, "query=ASK%7B%7D"), (QUERY, "ASK {}")] {
        let sentence = told("/update", kind, body);
        assert_eq!(sentence, "this is a query: send it to /query or /sparql");
    }
    let by_get = get(&server, "/query?update=CLEAR+ALL", &[]);
    assert!(
        by_get.text().contains("send it by POST"),
        "{}",
        by_get.text()
    );
}

#[test]
fn head_is_get_without_its_body() {
    let server = serve(thousand(), options());
    let few = format!(
        "/query?query={}",
        escape("SELECT * { <http://e/s1> ?p ?o }")
    );
    for target in [
        "/health",
        "/ready",
        "/metrics",
        "/",
        "/sparql",
        "/page.js",
        &few,
        "/store?default",
        "/query?query=nonsense",
        "/store?graph=http://e/none",
    ] {
        let (g, h) = (
            get(&server, target, &[]),
            send(&server, "HEAD", target, &[], ""),
        );
        assert_eq!(g.status, h.status, "{target}");
        for name in ["content-type", "content-length", "vary", "content-encoding"] {
            // The numbers of metrics move.
            if (target, name) != ("/metrics", "content-length") {
                assert_eq!(g.header(name), h.header(name), "{target}: {name}");
            }
        }
        assert!(h.body.is_empty());
    }
    // An unknown length is not invented.
    let long = format!("/query?query={}", escape(MILLION));
    assert_eq!(
        send(&server, "HEAD", &long, &[], "").header("content-length"),
        ""
    );
}

#[test]
fn every_route_says_what_it_takes() {
    let server = serve(thousand(), writable());
    for path in [
        "/",
        "/sparql",
        "/query",
        "/prepared",
        "/prepared/0123456789abcdef",
        "/batch",
        "/complete",
        "/search",
        "/labels",
        "/update",
        "/store",
        "/store/a",
        "/health",
        "/ready",
        "/metrics",
        "/page.js",
        "/worker.js",
        "/icon.svg",
        "/admin/queries",
        "/admin/merge",
        "/admin/recluster",
        "/admin/drain",
    ] {
        let options = send(&server, "OPTIONS", path, &[], "");
        assert_eq!(options.status, 204, "{path}");
        let listed = |answer: &Answer| -> Vec<String> {
            let names = answer
                .header("allow")
                .split(", ")
                .filter(|m| *m != "OPTIONS");
            names.map(str::to_owned).collect()
        };
        let refused = send(&server, "BREW", path, &[], "");
        assert_eq!(refused.status, 405, "{path}");
        assert_eq!(listed(&options), listed(&refused), "{path}");
        assert!(options.header("allow").ends_with("OPTIONS"), "{path}");
    }
    assert_eq!(send(&server, "OPTIONS", "/nowhere", &[], "").status, 404);
}

#[test]
fn a_parameter_names_the_format() {
    let data = store("<http://e/a> <http://e/p> \"x, y\"@en . <http://e/b> <http://e/p> 2 .");
    let server = serve(&data, options());
    let with = |query: &str, parameter: &str, accept: &str| {
        let target = format!("/sparql?query={}&{parameter}", escape(query));
        get(&server, &target, &[("accept", accept)])
    };
    let select = "SELECT ?o { <http://e/a> ?p ?o }";
    let construct = "CONSTRUCT WHERE { <http://e/a> ?p ?o }";
    for (query, name, media) in [
        (select, "json", "application/sparql-results+json"),
        (select, "xml", "application/sparql-results+xml"),
        (select, "csv", "text/csv; charset=utf-8"),
        (select, "tsv", "text/tab-separated-values; charset=utf-8"),
        (select, "ndjson", "application/x-ndjson"),
        (select, "text/csv", "text/csv; charset=utf-8"),
        ("ASK {}", "json", "application/sparql-results+json"),
        (construct, "ttl", "text/turtle"),
        (construct, "turtle", "text/turtle"),
        (construct, "nt", "application/n-triples"),
        (construct, "json", "application/ld+json"),
        (construct, "jsonld", "application/ld+json"),
        (construct, "xml", "application/rdf+xml"),
        (construct, "rdf%2Bxml", "application/rdf+xml"),
        (construct, "csv", "text/csv; charset=utf-8"),
        (construct, "ndjson", "application/x-ndjson"),
    ] {
        for alias in ["format", "output", "results"] {
            // It takes precedence over Accept.
            for accept in ["*/*", "image/png", "text/turtle, text/csv"] {
                let answer = with(query, &format!("{alias}={name}"), accept);
                assert_eq!(
                    answer.status,
                    200,
                    "{query} {alias}={name}: {}",
                    answer.text()
                );
                assert_eq!(
                    answer.header("content-type"),
                    media,
                    "{query} {alias}={name}"
                );
            }
        }
    }
    // A graph as rows.
    let rows = with(construct, "format=csv", "*/*");
    assert_eq!(
        rows.text(),
        "subject,predicate,object\r\nhttp://e/a,http://e/p,\"x, y\"\r\n"
    );
    let rows = with(construct, "format=tsv", "*/*");
    assert_eq!(
        rows.text(),
        "?subject\t?predicate\t?object\n<http://e/a>\t<http://e/p>\t\"x, y\"@en\n"
    );
    let rows = with(construct, "format=ndjson", "*/*");
    let rows: Vec<serde_json::Value> = rows
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let object = serde_json::json!({"type": "literal", "value": "x, y", "xml:lang": "en"});
    assert!(rows.len() == 1 && rows[0]["object"] == object, "{rows:?}");
    assert_eq!(
        with("ASK {}", "format=jsonl", "*/*").text(),
        "{\"boolean\":true}\n"
    );
    assert_eq!(
        with("DESCRIBE <http://e/b>", "format=csv", "*/*")
            .text()
            .lines()
            .count(),
        2
    );
    // Data that a format cannot express is refused with a message.
    for (query, parameter, word) in [
        ("ASK {}", "format=ttl", "ASK true or false"),
        (select, "format=ttl", "SELECT returns rows"),
        (select, "format=pdf", "is not a format"),
    ] {
        let answer = with(query, parameter, "*/*");
        assert_eq!((answer.status, &*answer.problem()), (406, "not-acceptable"));
        assert!(answer.text().contains(word), "{}", answer.text());
    }
    let graph = get(
        &server,
        "/store?default&format=nt",
        &[("accept", "text/turtle")],
    );
    assert_eq!(graph.header("content-type"), "application/n-triples");
    // By POST as well.
    let form = format!("format=csv&query={}", escape(select));
    let posted = send(&server, "POST", "/query", &[FORM], &form);
    assert_eq!(posted.text(), "o\r\n\"x, y\"\r\n");
}

#[test]
fn browsers_get_a_page() {
    let server = serve(thousand(), options());
    let asking = "/query?query=ASK%7B%7D";
    let document = get(&server, &format!("{asking}&format=json"), &[BROWSER]);
    assert_eq!(document.json()["boolean"], true);
    for path in ["/", "/sparql", "/query", asking] {
        let page = get(&server, path, &[BROWSER]);
        assert_eq!(page.status, 200);
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        assert_eq!(page.header("cross-origin-opener-policy"), "same-origin");
        let text = page.text();
        assert!(text.contains("<form") && text.contains("name=\"query\""));
        // Nothing from other servers, no inline script or style.
        assert!(!text.contains("://") && !text.contains("<style") && !text.contains("style="));
        assert!(text.matches("<script").count() == text.matches("<script src=\"page.js\"").count());
    }
    let script = get(&server, "/page.js", &[]);
    assert!(script.header("content-type").starts_with("text/javascript"));
    // Answers become text, never markup.
    for way in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
    ] {
        assert!(!script.text().contains(way), "{way}");
    }
    assert!(
        get(&server, "/page.css", &[])
            .header("content-type")
            .starts_with("text/css")
    );
    // The page's worker may only send requests to this server, and cannot create markup either.
    let worker = get(&server, "/worker.js", &[]);
    assert!(worker.header("content-type").starts_with("text/javascript"));
    assert_eq!(
        worker.header("content-security-policy"),
        "default-src 'none'; connect-src 'self'"
    );
    assert!(!worker.text().contains("innerHTML") && !worker.text().contains("eval("));
    assert_eq!(
        get(&server, "/icon.svg", &[]).header("content-type"),
        "image/svg+xml"
    );
    // It is compressed as well as gzip can, and a browser that has it gets no more than that answer.
    let gzip = get(&server, "/page.js", &[("accept-encoding", "gzip")]);
    assert_eq!(gzip.header("content-encoding"), "gzip");
    assert!(gzip.body.len() * 2 < script.body.len());
    let mut best = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut best, &script.body).unwrap();
    assert_eq!(gzip.body, best.finish().unwrap());
    for path in ["/page.js", "/worker.js", "/page.css", "/icon.svg"] {
        let coded: &[_] = &[("accept-encoding", "gzip, deflate, br, zstd")];
        for accepted in [&[], coded] {
            let first = get(&server, path, accepted);
            assert_eq!(first.header("cache-control"), "no-cache", "{path}");
            let tag = first.header("etag").to_owned();
            let known = [accepted, &[("if-none-match", &*tag)]].concat();
            let again = get(&server, path, &known);
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
            assert_eq!(again.header("etag"), tag);
            assert_eq!(again.header("cache-control"), "no-cache");
            let other = [accepted, &[("if-none-match", "\"0123456789abcdef-page\"")]].concat();
            assert_eq!(get(&server, path, &other).status, 200, "{path}");
        }
    }
    let mut unpacked = String::new();
    std::io::Read::read_to_string(
        &mut flate2::read::GzDecoder::new(&*gzip.body),
        &mut unpacked,
    )
    .unwrap();
    assert_eq!(unpacked, script.text());
    // A client that asks for data gets data, and so does a browser that names a format.
    assert_eq!(
        get(&server, "/sparql", &[]).header("content-type"),
        "text/turtle"
    );
    assert!(get(&server, "/", &[]).text().contains("/query"));
    let answer = get(&server, "/sparql?query=ASK%7B%7D&format=xml", &[BROWSER]);
    assert!(answer.text().contains("<boolean>true</boolean>"));
}

#[test]
fn a_plan_is_explained_without_running() {
    let server = serve(thousand(), options());
    let explain = |query: &str| {
        let target = format!("/query?explain=true&query={}", escape(query));
        get(&server, &target, &[])
    };
    let plan = explain("SELECT ?s { ?s <http://e/p> ?o } LIMIT 7").json();
    let text = plan["text"].as_array().unwrap();
    assert!(text[0].as_str().unwrap().starts_with("SELECT"), "{plan}");
    assert!(text.iter().any(|l| l.as_str().unwrap().contains("take 7")));
    // Nothing runs: a query that would never end is explained as well.
    let product = "{ ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o }";
    let endless = format!("SELECT (COUNT(*) AS ?n) {product}");
    assert_eq!(explain(&endless).status, 200);
    let wrong = explain("SELECT * { ?s unknown:name }");
    assert_eq!(wrong.status, 400);
    assert_eq!(wrong.json()["faults"].as_array().unwrap().len(), 2);
    assert_eq!(explain("SELECT * { ?s ?p ?o ").status, 400);
}

#[test]
fn an_empty_answer_is_explained() {
    let server = serve(thousand(), options());
    let why = |query: &str| {
        let target = format!("/query?why-empty=true&query={}", escape(query));
        get(&server, &target, &[])
    };
    let found = why("SELECT ?s { ?s <http://e/pp> ?o }");
    assert_eq!(found.status, 200);
    let document = found.json();
    let reason = &document["reasons"][0];
    assert_eq!(reason["kind"], "unknown-term", "{document}");
    assert_eq!(
        (&reason["line"], &reason["column"]),
        (&1.into(), &16.into())
    );
    assert_eq!((&reason["start"], &reason["end"]), (&15.into(), &28.into()));
    assert!(reason["suggestions"].is_array());
    let form = "query=SELECT+*+%7B+%3Fs+%3Chttp%3A%2F%2Fe%2Fpp%3E+%3Fo+%7D&why-empty=true";
    let posted = send(&server, "POST", "/query", &[FORM], form).json();
    assert_eq!(posted["reasons"].as_array().map(Vec::len), Some(1));
    // The graphs are those of the request.
    let named = store("<http://e/g> { <http://e/s> <http://e/p> 1 }");
    let server_of_named = serve(&named, options());
    let in_graphs = |graphs: &str| {
        let target = format!(
            "/query?why-empty=true&graphs={graphs}&query={}",
            escape("SELECT ?s { ?s <http://e/p> ?o }")
        );
        let found = get(&server_of_named, &target, &[]).json();
        found["reasons"].as_array().map(Vec::len)
    };
    assert_eq!((in_graphs("default"), in_graphs("all")), (Some(1), Some(0)));
    let none = why("SELECT ?s { ?s <http://e/p> ?o }").json();
    assert_eq!(none["reasons"].as_array().map(Vec::len), Some(0));
    assert_eq!(why("SELECT ?s {").status, 400);
    let bound = get(
        &server,
        "/query?why-empty=true&query=ASK%7B%3Fs%20%3Fp%201%7D&$s=%3Curn:a%3E",
        &[],
    );
    assert_eq!(bound.status, 400);
}

#[test]
fn functions_that_nobody_registered_have_a_place() {
    let server = serve(thousand(), options());
    for (query, name, iri) in [
        (
            "SELECT * {\n  ?s ?p ?o FILTER(<http://e/f>(?o)) }",
            "<http://e/f>",
            "<http://e/f>",
        ),
        (
            "PREFIX e: <http://e/>\nASK { FILTER(e:f(1)) }",
            "e:f",
            "<http://e/f>",
        ),
        // Resolved against the address to which the query was sent.
        (
            "#\nSELECT (<f>(1) AS ?x) {}",
            "<f>",
            "http://localhost:81/f>",
        ),
        (
            "#\nSELECT (<f>(IRI('x')) AS ?x) {}",
            "<f>",
            "http://localhost:81/f>",
        ),
    ] {
        let target = format!("/query?explain=true&query={}", escape(query));
        let answer = get(&server, &target, &[("host", "localhost:81")]);
        assert_eq!(answer.status, 400, "{}", answer.text());
        let json = answer.json();
        let start = query.rfind(name).unwrap();
        let column = start - query.rfind('\n').unwrap();
        assert_eq!(json["line"], 2, "{json}");
        assert_eq!(json["column"], column, "{json}");
        let faults = json["faults"].as_array().unwrap();
        assert_eq!(faults.len(), 1, "{json}");
        assert_eq!(faults[0]["start"], start, "{json}");
        assert_eq!(faults[0]["end"], start + name.len(), "{json}");
        assert_eq!(faults[0]["kind"], "function", "{json}");
        let message = faults[0]["message"].as_str().unwrap();
        assert!(message.contains(iri), "{json}");
        assert!(
            json["detail"]
                .as_str()
                .unwrap()
                .starts_with("the query cannot be run\nline 2,")
        );
    }
}

#[test]
fn ready_means_that_requests_are_answered() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(&data, writable());
    let ready = || get(&server, "/ready", &[]);
    assert_eq!(
        (ready().status, &ready().json()["status"]),
        (200, &"ready".into())
    );
    // The log is removed, and the next update finds out.
    std::fs::remove_dir_all(data.folder().join("store").join("log")).unwrap();
    let refused = send(
        &server,
        "POST",
        "/update",
        &[UPDATE],
        "INSERT DATA { <a:a> <a:b> 1 }",
    );
    assert!(refused.status >= 500, "{}", refused.text());
    let not = ready();
    assert_eq!((not.status, &*not.problem()), (503, "not-ready"));
    assert!(not.text().contains("log") && !not.text().contains(data.folder().to_str().unwrap()));
    assert_eq!(get(&server, "/health", &[]).status, 200);
    assert_eq!(ask(&server, "ASK { ?s ?p 1 }", &[CSV]).text(), "true\n");
}

#[test]
fn a_drained_server_answers_until_it_ends() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let reading = serve(&data, options());
    assert_eq!(send(&reading, "POST", "/admin/drain", &[], "").status, 403);
    drop(reading);
    let server = serve(&data, writable());
    let drain = |wait: &str| send(&server, "POST", &format!("/admin/drain{wait}"), &[], "");
    for wait in ["?wait=-1", "?wait=x", "?wait=3601"] {
        assert_eq!(drain(wait).status, 400, "{wait}");
    }
    assert_eq!(get(&server, "/ready", &[]).status, 200);
    let begun = Instant::now();
    assert_eq!(drain("?wait=2").status, 202);
    // Its end stays where it was.
    assert_eq!(drain("?wait=3000").status, 202);
    let not = get(&server, "/ready", &[]);
    assert_eq!((not.status, &*not.problem()), (503, "not-ready"));
    assert_eq!(ask(&server, "ASK { ?s ?p 1 }", &[CSV]).text(), "true\n");
    let update = "INSERT DATA { <a:a> <a:b> 1 }";
    let done = send(&server, "POST", "/update", &[UPDATE], update);
    assert_eq!(done.status, 200);
    until("it has ended", || {
        TcpStream::connect(server.address()).is_err()
    });
    assert!(begun.elapsed() >= Duration::from_secs(2));
}

#[test]
fn relative_iris_stand_under_the_endpoints_address() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(&data, writable());
    let at = |path: &str, query: &str| {
        let target = format!("{path}?query={}", escape(query));
        let answer = get(&server, &target, &[CSV, ("host", "localhost:81")]);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text().lines().nth(1).unwrap().to_owned()
    };
    for call in [
        "IRI(\"x\")",
        "uri (\"x\")",
        "IRI(CONCAT(\"\", \"x\"))",
        "?y",
    ] {
        let query = format!("SELECT ({call} AS ?i) {{ VALUES ?y {{ <x> }} }}");
        assert_eq!(at("/query", &query), "http://localhost:81/x", "{call}");
    }
    assert_eq!(
        at("/sparql", "SELECT (IRI(\"\") AS ?i) {}"),
        "http://localhost:81/sparql"
    );
    let own = "BASE <http://e/d/> SELECT (IRI(\"x\") AS ?i) {}";
    assert_eq!(at("/query", own), "http://e/d/x");
    assert_eq!(
        at("/query", "SELECT (IRI(\"http://e/y\") AS ?i) {}"),
        "http://e/y"
    );
    // With values for variables, prepared, and in updates.
    let bound = "SELECT (IRI(?v) AS ?i) { ?s ?p ?o }";
    let target = format!("/query?query={}&$v=%22x%22", escape(bound));
    let answer = get(&server, &target, &[CSV, ("host", "localhost:81")]);
    assert_eq!(answer.text().lines().nth(1), Some("http://localhost:81/x"));
    let prepared = send(&server, "POST", "/prepared", &[QUERY], "ASK { <x> ?p ?o }");
    assert_eq!(prepared.status, 201, "{}", prepared.text());
    let update = "INSERT { <http://e/b> <http://e/q> ?i } WHERE { BIND(IRI('z') AS ?i) }";
    let headers = [UPDATE, ("host", "localhost:81")];
    assert_eq!(
        send(&server, "POST", "/update", &headers, update).status,
        200
    );
    let asked = at("/query", "SELECT ?o { <http://e/b> ?p ?o }");
    assert_eq!(asked, "http://localhost:81/z");
    // An error keeps the position in the text as it was sent.
    let bad = ask(&server, "SELECT (IRI(\"x\") AS ?i) { ?s ?p }", &[]);
    assert_eq!((bad.status, bad.json()["line"].as_u64()), (400, Some(1)));
    assert!(
        bad.json()["column"].as_u64().unwrap() <= 34,
        "{}",
        bad.text()
    );
}

#[test]
fn byte_order_marks_are_passed_over() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(&data, writable());
    let query = "\u{feff}ASK { ?s ?p 1 }";
    assert_eq!(ask(&server, query, &[CSV]).text(), "true\n");
    for path in ["/query", "/sparql"] {
        assert_eq!(
            send(&server, "POST", path, &[QUERY, CSV], query).text(),
            "true\n"
        );
        let form = format!("query={}", escape(query));
        assert_eq!(
            send(&server, "POST", path, &[FORM, CSV], &form).text(),
            "true\n"
        );
    }
    let update = "\u{feff}INSERT DATA { <a:a> <a:b> 2 }";
    assert_eq!(
        send(&server, "POST", "/update", &[UPDATE], update).status,
        200
    );
    let form = format!("update={}", escape(update));
    assert_eq!(send(&server, "POST", "/sparql", &[FORM], &form).status, 200);
    for (i, (media, text)) in [
        ("text/turtle", "@prefix e: <http://e/> . e:s e:p 1 ."),
        ("application/trig", "@prefix e: <http://e/> . e:s e:p 1 ."),
        ("application/n-triples", "<http://e/s> <http://e/p> \"1\" ."),
        ("application/n-quads", "<http://e/s> <http://e/p> \"1\" ."),
        ("application/ld+json", "{\"@id\":\"http://e/s\",\"http://e/p\":\"1\"}"),
        ("application/rdf+xml", "<?xml version=\"1.0\"?><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\"><rdf:Description rdf:about=\"http://e/s\"><e:p>1</e:p></rdf:Description></rdf:RDF>"),
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("/store?graph=http://e/g{i}");
        let answer = send(&server, "PUT", &target, &[("content-type", media)], &format!("\u{feff}{text}"));
        assert_eq!(answer.status, 201, "{media}: {}", answer.text());
        assert_eq!(answer.json()["added"], 1, "{media}");
    }
}
