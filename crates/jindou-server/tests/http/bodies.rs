//! Bodies of requests and query strings: their encodings, their codings, their parts.

use crate::{Store, ask, options, serve, store, until};
use jindou_server::Server;
use jindou_testing::http::{Answer, request};
use std::io::Write;

const FORM: &str = "application/x-www-form-urlencoded";
const UPDATE: &str = "application/sparql-update";

fn writable(store: &Store) -> Server {
    serve(store, options().with_writable(true))
}

fn empty() -> Store {
    store("")
}

fn post(server: &Server, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    request(server.address(), "POST", target, headers, body)
}

fn count(server: &Server) -> u64 {
    let query = "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
    let answer = ask(server, query, &[("accept", "text/csv")]);
    answer.text().lines().nth(1).unwrap().parse().unwrap()
}

#[test]
fn forms_and_query_strings_that_are_not_utf8_are_refused() {
    let store = empty();
    let server = writable(&store);
    let form = [("content-type", FORM)];
    for body in [
        &b"update=INSERT DATA {<urn:a> <urn:p> \"caf%E9\"}"[..],
        b"update=INSERT DATA {<urn:a> <urn:p> \"caf\xe9\"}",
        b"update=INSERT DATA {<urn:a> <urn:p> \"%ED%A0%80\"}",
        b"using-graph-uri=urn:%FF&update=INSERT {<urn:a> <urn:p> 1} WHERE {}",
    ] {
        for target in ["/update", "/sparql", "/"] {
            let answer = post(&server, target, &form, body);
            assert_eq!((answer.status, &*answer.problem()), (400, "bad-request"));
            assert!(answer.text().contains("is not UTF-8"), "{}", answer.text());
        }
    }
    assert_eq!(count(&server), 0);
    let get = |target: &str| request(server.address(), "GET", target, &[], b"");
    for target in [
        "/query?query=ASK%7B%3Fs%20%3Fp%20%22caf%E9%22%7D",
        "/sparql?query=ASK%7B%3Fs%20%3Fp%20%22caf%E9%22%7D",
        "/?query=ASK%7B%3Fs%20%3Fp%20%22caf%E9%22%7D",
        "/query?explain=true&query=ASK%7B%3Fs%20%3Fp%20%22caf%E9%22%7D",
        "/query?query=ASK%7B%3Fs%20%3Fp%20%3Fo%7D&$o=%22caf%E9%22",
        "/query?query=ASK%7B%7D&default-graph-uri=urn:caf%E9",
        "/store?graph=urn:caf%E9",
        "/complete?text=ASK%7B%3Fs%20%E9",
        "/admin/queries?tag=%E9",
    ] {
        let answer = get(target);
        assert_eq!(
            (answer.status, &*answer.problem()),
            (400, "bad-request"),
            "{target}"
        );
        assert!(answer.text().contains("is not UTF-8"), "{}", answer.text());
    }
    for (target, body) in [
        ("/query", "query=ASK%7B%3Fs%20%3Fp%20%22%E9%22%7D"),
        ("/prepared", "query=ASK%7B%3Fs%20%3Fp%20%22%E9%22%7D"),
        ("/complete", "text=%E9"),
        ("/search", "q=%E9"),
        ("/labels", "iri=%E9"),
    ] {
        let answer = post(&server, target, &form, body.as_bytes());
        assert_eq!(
            (answer.status, &*answer.problem()),
            (400, "bad-request"),
            "{target}"
        );
    }
    // The same in UTF-8.
    let right = b"update=INSERT DATA {<urn:a> <urn:p> \"caf%C3%A9\"}";
    assert_eq!(post(&server, "/update", &form, right).status, 200);
    let found = ask(
        &server,
        "ASK { ?s ?p \"caf\u{e9}\" }",
        &[("accept", "text/csv")],
    );
    assert_eq!(found.text(), "true\n");
}

#[test]
fn an_empty_name_is_the_default_graph() {
    let store = store("<urn:a> <urn:p> 1 . <urn:g> { <urn:b> <urn:p> 2, 3 }");
    let server = writable(&store);
    let rows = |parameters: &str, query: &str| {
        let target = format!("/query?{parameters}query={}", crate::escape(query));
        let answer = request(
            server.address(),
            "GET",
            &target,
            &[("accept", "text/csv")],
            b"",
        );
        assert_eq!(answer.status, 200, "{parameters}: {}", answer.text());
        answer.text().lines().count() - 1
    };
    let (default, named) = (
        "SELECT * { ?s ?p ?o }",
        "SELECT * { GRAPH ?g { ?s ?p ?o } }",
    );
    for empty in [
        "",
        "default-graph-uri=&",
        "default-graph-uri=&default-graph-uri=&named-graph-uri=&",
    ] {
        assert_eq!(
            (rows(empty, default), rows(empty, named)),
            (1, 2),
            "{empty}"
        );
    }
    let both = "default-graph-uri=&named-graph-uri=urn:g&";
    assert_eq!((rows(both, default), rows(both, named)), (1, 2));
    let other = "default-graph-uri=&named-graph-uri=urn:none&";
    assert_eq!((rows(other, default), rows(other, named)), (1, 0));
    assert_eq!(rows("default-graph-uri=urn:g&", default), 2);
    assert_eq!(rows(both, "DESCRIBE <urn:a>"), 1);
    // A dataset that merges the two is not possible, and is not guessed.
    let target = "/query?query=ASK%7B%7D&default-graph-uri=&default-graph-uri=urn:g";
    let answer = request(server.address(), "GET", target, &[], b"");
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("default graph"), "{}", answer.text());
    let update = "using-graph-uri=&update=DELETE%20%7B%3Fs%20%3Fp%20%3Fo%7D%20WHERE%20%7B%3Fs%20%3Fp%20%3Fo%7D";
    let answer = post(
        &server,
        "/update",
        &[("content-type", FORM)],
        update.as_bytes(),
    );
    assert_eq!(answer.json()["removed"], 1, "{}", answer.text());
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    e.write_all(text).unwrap();
    e.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::default());
    e.write_all(text).unwrap();
    e.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 3).unwrap()
}

#[test]
fn bodies_that_say_how_they_are_compressed_are_read() {
    let store = empty();
    let server = writable(&store);
    let send = |method: &str, target: &str, media: &str, coding: &str, body: &[u8]| {
        let headers = [("content-type", media), ("content-encoding", coding)];
        request(server.address(), method, target, &headers, body)
    };
    let turtle = |n: u32| format!("<urn:a> <urn:p> {n} .").into_bytes();
    // `<urn:a> <urn:p> 7 .` by Node's encoder.
    let br = [
        0x0b, 0x09, 0x80, 0x3c, 0x75, 0x72, 0x6e, 0x3a, 0x61, 0x3e, 0x20, 0x3c, 0x75, 0x72, 0x6e,
        0x3a, 0x70, 0x3e, 0x20, 0x37, 0x20, 0x2e, 0x03,
    ];
    for (coding, body) in [
        ("identity", turtle(0)),
        ("gzip", gzip(&turtle(1))),
        ("x-GZIP", gzip(&turtle(2))),
        ("deflate", zlib(&turtle(3))),
        ("zstd", zstd(&turtle(4))),
        ("gzip, gzip", gzip(&gzip(&turtle(5)))),
        ("deflate, zstd, identity", zstd(&zlib(&turtle(6)))),
        ("br", br.to_vec()),
        ("br, gzip", gzip(&br)),
        ("gzip, zstd, deflate", zlib(&zstd(&gzip(&turtle(8))))),
    ] {
        for target in ["/store?graph=urn:g", "/store/g"] {
            let answer = send("PUT", target, "text/turtle", coding, &body);
            assert!(
                matches!(answer.status, 200 | 201),
                "{coding}: {}",
                answer.text()
            );
        }
    }
    let last = ask(
        &server,
        "SELECT ?o { GRAPH <urn:g> { ?s ?p ?o } }",
        &[("accept", "text/csv")],
    );
    assert_eq!(last.text(), "o\r\n8\r\n");
    let update = b"INSERT DATA { <urn:u> <urn:p> 1 }";
    assert_eq!(
        send("POST", "/update", UPDATE, "zstd", &zstd(update)).status,
        200
    );
    let form = b"update=INSERT DATA { <urn:u> <urn:p> 2 }";
    assert_eq!(
        send("POST", "/sparql", FORM, "deflate", &zlib(form)).status,
        200
    );
    assert_eq!(
        send("POST", "/update", FORM, "gzip", &gzip(form)).status,
        200
    );
    let query = gzip(b"SELECT * { <urn:u> ?p ?o }");
    let answer = send("POST", "/query", "application/sparql-query", "gzip", &query);
    assert_eq!(
        answer.json()["results"]["bindings"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let prepared = send(
        "POST",
        "/prepared",
        "application/sparql-query",
        "gzip",
        &query,
    );
    assert_eq!(prepared.status, 201);
    let line = format!("{{\"id\": {}}}", prepared.json()["id"]);
    let answer = send(
        "POST",
        "/batch",
        "application/x-ndjson",
        "zstd",
        &zstd(line.as_bytes()),
    );
    assert!(answer.text().contains("bindings"), "{}", answer.text());
}

#[test]
fn codings_that_are_not_known_are_refused_with_those_that_are() {
    let store = empty();
    let server = writable(&store);
    for (method, target, media) in [
        ("PUT", "/store?graph=urn:g", "text/turtle"),
        ("POST", "/store?default", "text/turtle"),
        ("POST", "/update", UPDATE),
        ("POST", "/query", "application/sparql-query"),
        ("POST", "/sparql", FORM),
        ("POST", "/prepared", FORM),
        ("POST", "/batch", "application/json"),
        ("POST", "/complete", FORM),
    ] {
        for coding in [
            "compress",
            "gzip, aws-chunked",
            "utf-8",
            "gzip,gzip,gzip,gzip,gzip",
        ] {
            let headers = [("content-type", media), ("content-encoding", coding)];
            let body = b"<urn:a> <urn:p> 1 .";
            let answer = request(server.address(), method, target, &headers, body);
            assert_eq!(
                (answer.status, &*answer.problem()),
                (415, "content-encoding"),
                "{target}"
            );
            assert_eq!(answer.header("accept-encoding"), "gzip, deflate, br, zstd");
        }
    }
    assert_eq!(count(&server), 0);
}

/// Compressed texts that are damaged, with the expected word in the error.
fn damaged() -> Vec<(&'static str, Vec<u8>)> {
    let text: String = (0..2000)
        .map(|i| format!("<urn:s{i}> <urn:p> {} .\n", i * 7919))
        .collect();
    let text = text.as_bytes();
    let mut bz = bzip2::write::BzEncoder::new(vec![], bzip2::Compression::fast());
    bz.write_all(text).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(vec![], 1);
    xz.write_all(text).unwrap();
    let whole = [
        ("gzip", gzip(text)),
        ("zstd", zstd(text)),
        ("bzip2", bz.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
    ];
    let mut all = vec![];
    for (name, body) in whole {
        all.push((name, body[..body.len() / 2].to_vec()));
        all.push((name, body[..body.len() - 3].to_vec()));
        all.push((name, [&body[..], b"trailing text"].concat()));
    }
    all
}

#[test]
fn damaged_bodies_are_the_clients_fault() {
    let store = empty();
    let server = writable(&store);
    for (name, body) in damaged() {
        for media in ["application/n-triples", "text/turtle"] {
            let headers = [("content-type", media)];
            let answer = request(
                server.address(),
                "PUT",
                "/store?graph=urn:g",
                &headers,
                &body,
            );
            let told = answer.text().to_owned();
            assert_eq!(
                (answer.status, &*answer.problem()),
                (400, "syntax"),
                "{name}: {told}"
            );
            assert!(told.contains(name) && told.contains("byte"), "{told}");
        }
        // The same, as the transport's compression.
        if matches!(name, "gzip" | "zstd") {
            let coded = [("content-type", UPDATE), ("content-encoding", name)];
            let answer = post(&server, "/update", &coded, &body);
            assert_eq!((answer.status, &*answer.problem()), (400, "bad-request"));
            let coded = [("content-type", "text/turtle"), ("content-encoding", name)];
            assert_eq!(post(&server, "/store?default", &coded, &body).status, 400);
        }
    }
    assert_eq!(count(&server), 0);
    // A body that is not compressed at all.
    let plain = [
        ("content-type", "text/turtle"),
        ("content-encoding", "gzip"),
    ];
    let answer = post(&server, "/store?default", &plain, b"<urn:a> <urn:p> 1 .");
    assert_eq!((answer.status, &*answer.problem()), (400, "bad-request"));
}

#[test]
fn little_that_stands_for_much_meets_the_limits() {
    let store = empty();
    let limited = options()
        .with_writable(true)
        .with_max_request_bytes(1 << 20)
        .with_max_update_bytes(4 << 20);
    let server = serve(&store, limited);
    let long = vec![b' '; 64 << 20];
    for (coding, body) in [
        ("gzip", gzip(&long)),
        ("deflate", zlib(&long)),
        ("zstd", zstd(&long)),
        ("gzip, zstd", zstd(&gzip(&long))),
    ] {
        for (target, media) in [
            ("/query", "application/sparql-query"),
            ("/update", UPDATE),
            ("/prepared", "application/sparql-query"),
        ] {
            let headers = [("content-type", media), ("content-encoding", coding)];
            let answer = post(&server, target, &headers, &body);
            let problem = answer.problem();
            assert_eq!(
                (answer.status, &*problem),
                (413, "request-size"),
                "{coding} {target}"
            );
        }
    }
    until("nothing is left", || server.live_queries() == 0);
}

fn multipart(parts: usize, part: &str) -> Vec<u8> {
    let mut body = "--b\r\n".to_owned() + &format!("{part}\r\n--b\r\n").repeat(parts);
    body.truncate(body.len() - 2);
    body += "--\r\n";
    body.into_bytes()
}

#[test]
fn bodies_of_many_parts_are_bounded() {
    let store = empty();
    let server = writable(&store);
    let media = [("content-type", "multipart/form-data; boundary=b")];
    let typed = "Content-Type: text/turtle\r\n\r\n";
    let few = multipart(300, &format!("{typed}<urn:a> <urn:p> _:b ."));
    let answer = post(&server, "/store?default", &media, &few);
    assert_eq!(answer.json()["added"], 300, "{}", answer.text());
    for (body, status, kind) in [
        (multipart(100_000, typed), 400, "query-limit"),
        (multipart(2_000_000, "\r\n"), 415, "media-type"),
    ] {
        let answer = post(&server, "/store?default", &media, &body);
        assert_eq!(
            (answer.status, &*answer.problem()),
            (status, kind),
            "{}",
            answer.text()
        );
    }
    assert_eq!(count(&server), 300);
    // Parts cost memory, whatever is in them.
    let server = serve(
        &store,
        options().with_writable(true).with_query_memory(32 << 20),
    );
    let answer = post(&server, "/store?default", &media, &multipart(60_000, typed));
    assert_eq!((answer.status, &*answer.problem()), (507, "limit"));
}
