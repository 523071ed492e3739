//! `jindou query --endpoint` and `jindou load https://…` with servers that send wrong or unusual answers.

use super::run::{good, run};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

fn bad(folder: &Path, args: &[&str]) -> String {
    let o = run(folder, args);
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(1), "{args:?}: {err}");
    assert!(!err.contains("panicked"), "{err}");
    err
}

/// Starts a server that answers each path with the given status, headers and body. Returns its address.
fn web(answers: &'static [(&'static str, &'static str, &'static [u8])]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream: TcpStream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut first = String::new();
            reader.read_line(&mut first).unwrap();
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
                    length = n.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            reader.take(length).read_to_end(&mut vec![]).unwrap();
            let path = first.split(' ').nth(1).unwrap();
            let found = answers.iter().find(|a| a.0 == path);
            let (head, body) = found.map_or(
                (
                    "404 Not Found\r\nContent-Type: text/html",
                    &b"<h1>No</h1> such <b>page</b>"[..],
                ),
                |a| (a.1, a.2),
            );
            let length = match head.contains("Content-Length") {
                true => String::new(),
                false => format!("\r\nContent-Length: {}", body.len()),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {head}{length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(body);
        }
    });
    url
}

/// A graph that an endpoint sends as RDF/XML is parsed as XML: with entities, comments and encodings, and only up to
/// its end.
#[test]
fn an_endpoints_graph_is_read_by_our_own_readers() {
    const XML: &str = "<?xml version='1.0'?><!DOCTYPE r [<!ENTITY e 'x<!-- c -->y'>]><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'><rdf:Description rdf:about='http://e/s'><e:p>&e;\r\nz<![CDATA[&]]></e:p><e:q rdf:nodeID='d0..0'/></rdf:Description></rdf:RDF>";
    const CUT: &[u8] = XML.as_bytes().split_at(XML.len() - 1).0;
    const HEAD: &str = "200 OK\r\nContent-Type: application/rdf+xml";
    const ANSWERS: &[(&str, &str, &[u8])] = &[
        ("/whole", HEAD, XML.as_bytes()),
        ("/cut", HEAD, CUT),
        ("/latin", "200 OK\r\nContent-Type: application/rdf+xml; charset=iso-8859-1", b"<?xml version='1.0' encoding='utf-8'?><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'><e:C rdf:about='http://e/s' e:p='\xE9'/></rdf:RDF>"),
        ("/json", "200 OK\r\nContent-Type: application/ld+json", br#"{"@id":"http://e/s","http://e/p":1e20}"#),
        ("/bad", "200 OK\r\nContent-Type: application/n-triples", b"<http://e/b> <http://e/p> <http://e/o> .\n<http://e/b> oops .\n"),
        ("/short", "200 OK\r\nContent-Type: application/n-triples\r\nContent-Length: 1000", b"<http://e/b> <http://e/p> <http://e/o> .\n"),
    ];
    let url = web(ANSWERS);
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let asked = |path: &str, of: fn(&Path, &[&str]) -> String| {
        let endpoint = format!("{url}{path}");
        let query = ["query", "--format", "nt", "CONSTRUCT WHERE { ?s ?p ?o }"];
        of(at, &[&query[..], &["--endpoint", &endpoint]].concat())
    };
    let ask = |path: &str| asked(path, good);
    assert_eq!(
        ask("/whole"),
        "<http://e/s> <http://e/p> \"xy\\nz&\" .\n<http://e/s> <http://e/q> _:d0..0 .\n"
    );
    assert!(ask("/latin").contains("\"é\""));
    assert!(
        ask("/json")
            .contains("\"100000000000000000000\"^^<http://www.w3.org/2001/XMLSchema#integer>")
    );
    for (path, words) in [
        ("/cut", "cannot be read"),
        ("/bad", ":2:14"),
        ("/short", "ended early"),
    ] {
        let error = asked(path, bad);
        assert!(error.contains(words), "{path}: {error}");
    }
}

/// gzip of "<http://e/gz> <http://e/p> <http://e/o> .\n", made by gzip(1).
const GZ: &[u8] = include_bytes!("../data/one.nt.gz");

/// Pages: path, status and headers, body.
#[rustfmt::skip]
const PAGES: [(&str, &str, &[u8]); 14] = [
    ("/a", "200 OK\r\nContent-Type: text/turtle; charset=utf-8", b"<x> <http://e/p> <#y> ."),
    ("/b.nt", "200 OK\r\nContent-Type: text/plain", b"<http://e/b> <http://e/p> <http://e/o> .\n"),
    ("/c.nt.gz", "200 OK\r\nContent-Type: application/octet-stream", GZ),
    ("/d.ttl", "200 OK\r\nContent-Type: text/plain; charset=utf-8", b"<http://e/d> a <#d> ."),
    ("/moved", "302 Found\r\nLocation: /deep/a", b""),
    ("/deep/a", "200 OK\r\nContent-Type: text/turtle", b"<x> <http://e/p> 1 ."),
    ("/round", "302 Found\r\nLocation: /round", b""),
    ("/page", "200 OK\r\nContent-Type: text/html", b"<html>"),
    ("/cut", "200 OK\r\nContent-Type: application/n-triples\r\nContent-Length: 1000", b"<http://e/b> <http://e/p> <http://e/o> .\n"),
    ("/bad", "200 OK\r\nContent-Type: application/n-triples", b"<http://e/b> <http://e/p> <http://e/o> .\n<http://e/b> oops .\n"),
    ("/endless", "200 OK\r\nContent-Type: application/n-triples\r\nTransfer-Encoding: chunked\r\nContent-Length-Not: 1", b"29\r\n<http://e/b> <http://e/p> <http://e/o> .\n\r\n29\r\n<http://e/c> <http://e/p> <http://e/o> .\n\r\n0\r\n\r\n"),
    ("/answer", "200 OK\r\nContent-Type: text/html", b"<html>"),
    ("/broken", "200 OK\r\nContent-Type: application/sparql-results+json", b"{\"head\":{\"vars\":[\"x\"]},\"results\":{\"bindings\":["),
    ("/down", "503 Service Unavailable\r\nContent-Type: application/problem+json", b"{\"title\":\"busy\",\"detail\":\"come \\u001b back\"}"),
];

const LOAD: [&str; 3] = ["load", "-q", "--allow-url"];

#[test]
fn documents_of_the_web_are_loaded_when_asked_to() {
    let url = web(&PAGES);
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let of = |path: &str| format!("{url}{path}");
    let err = bad(at, &["load", "-q", "--store", "s", &of("/a")]);
    assert!(err.contains("--allow-url"), "{err}");
    let all = ["/a", "/b.nt", "/c.nt.gz", "/d.ttl", "/moved"].map(of);
    let all = all.each_ref().map(String::as_str);
    let out = good(at, &[&LOAD[..], &["--store", "s"], &all].concat());
    assert!(out.contains("5 quads"), "{out}");
    let query = "SELECT ?s { ?s ?p ?o } ORDER BY ?s";
    let subjects = good(at, &["query", "--store", "s", query, "--format", "csv"]);
    let expected = [
        "s",
        &of("/deep/x"),
        &of("/x"),
        "http://e/b",
        "http://e/d",
        "http://e/gz",
    ]
    .map(str::to_owned);
    let mut found: Vec<&str> = subjects.lines().collect();
    let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    found[1..].sort();
    expected[1..].sort();
    assert_eq!(found, expected);
    let into = ["--format", "ttl", "--into", "s", "--graph", "http://e/g"];
    good(at, &[&LOAD[..], &into, &[&of("/a")]].concat());
    let ask = "ASK { GRAPH <http://e/g> { ?s ?p ?o } }";
    assert_eq!(good(at, &["query", "--store", "s", ask]), "true\n");
}

#[test]
fn documents_of_the_web_that_cannot_be_loaded_are_named() {
    let url = web(&PAGES);
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let of = |path: &str| format!("{url}{path}");
    let load = |more: &[&str]| bad(at, &[&LOAD[..], &["--store", "t"], more].concat());
    for (path, words) in [
        ("/none", &["404", "No such page"][..]),
        ("/round", &["redirects more than 5 times"]),
        ("/page", &["text/html", "not an RDF format", "--format"]),
        ("/cut", &["/cut"]),
        ("/bad", &["/bad:2:14"]),
    ] {
        let err = load(&[&of(path)]);
        for word in words {
            assert!(err.contains(word), "{path}: no '{word}' in {err}");
        }
        assert!(!at.join("t").exists(), "{path}");
    }
    for path in ["/b.nt", "/endless"] {
        let err = load(&["--max-url-bytes", "40", &of(path)]);
        assert!(
            err.contains("--max-url-bytes") && err.contains(path),
            "{err}"
        );
    }
    let err = load(&["http://127.0.0.1:1/a.nt"]);
    assert!(err.contains("127.0.0.1:1"), "{err}");
    // These addresses answer, but are not SPARQL endpoints.
    for (path, words) in [
        ("/answer", &["text/html", "SPARQL endpoint"][..]),
        ("/broken", &["cannot be read"]),
        ("/down", &["503", "come \u{fffd} back"]),
        ("/none", &["404"]),
    ] {
        let err = bad(
            at,
            &["query", "--endpoint", &of(path), "SELECT ?x { ?x ?y ?z }"],
        );
        for word in words {
            assert!(err.contains(word), "{path}: no '{word}' in {err}");
        }
    }
}

/// Virtuoso sends labels of blank nodes that SPARQL does not allow.
#[test]
fn labels_of_other_engines_are_read() {
    let url = web(&[
        ("/json", "200 OK\r\nContent-Type: application/sparql-results+json", br#"{ "head": { "link": [], "vars": ["x", "y"] }, "results": { "distinct": false, "ordered": true, "bindings": [
            { "x": { "type": "bnode", "value": "nodeID://b10001" }, "y": { "type": "literal", "value": "nodeID://b10001" }},
            { "x": { "type": "bnode", "value": "nodeID://b10002" }, "y": { "type": "bnode", "value": "nodeID://b10001" }} ] } }"#),
        ("/xml", "200 OK\r\nContent-Type: application/sparql-results+xml", br#"<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="x"/><variable name="y"/></head><results distinct="false" ordered="true">
            <result><binding name="x"><bnode>nodeID://b10001</bnode></binding><binding name="y"><literal>nodeID://b10001</literal></binding></result>
            <result><binding name="x"><bnode>nodeID://b10002</bnode></binding><binding name="y"><bnode>nodeID://b10001</bnode></binding></result></results></sparql>"#),
    ]);
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    fs::write(at.join("d.ttl"), "<http://e/a> <http://e/b> 1 .").unwrap();
    good(at, &["load", "-q", "--store", "s", "d.ttl"]);
    for path in ["/json", "/xml"] {
        let endpoint = format!("{url}{path}");
        let query = "SELECT ?x ?y { ?x <http://e/p> ?y }";
        let rows = good(
            at,
            &["query", "--endpoint", &endpoint, query, "--format", "tsv"],
        );
        let expected =
            "?x\t?y\n_:nodeID.b10001\t\"nodeID://b10001\"\n_:nodeID.b10002\t_:nodeID.b10001\n";
        assert_eq!(rows, expected, "{path}");
        let host = url.trim_start_matches("http://");
        let query = format!(
            "ASK {{ SERVICE <{endpoint}> {{ ?x <http://e/p> ?y }} SERVICE <{endpoint}> {{ ?x <http://e/p> ?z }} }}"
        );
        let ask = |query: &str| {
            good(
                at,
                &["query", "--store", "s", "--service-allow", host, query],
            )
        };
        // Two calls of SERVICE never return the same blank node.
        assert_eq!(ask(&query), "false\n", "{path}");
        // Within one call, equal labels are one node: the three values are two nodes.
        let query = format!(
            "ASK {{ SELECT (COUNT(DISTINCT ?n) AS ?all) {{ SERVICE <{endpoint}> {{ ?x <http://e/p> ?y }} VALUES ?which {{ 0 1 }} BIND(IF(?which = 0, ?x, ?y) AS ?n) FILTER(isBlank(?n)) }} HAVING (?all = 2) }}"
        );
        assert_eq!(ask(&query), "true\n", "{path}");
    }
}

/// Answers that name 300,000 variables once took a quarter of an hour to parse, during which the process ignored every
/// signal.
#[test]
fn an_answer_of_too_many_variables_is_refused() {
    let named = |open: &str, close: &str, between: &str| {
        let all: Vec<String> = (0..300_000).map(|i| format!("{open}v{i}{close}")).collect();
        all.join(between)
    };
    let json = format!(
        "{{\"head\":{{\"vars\":[{}]}},\"results\":{{\"bindings\":[]}}}}",
        named("\"", "\"", ",")
    );
    let xml = format!(
        "<sparql><head>{}</head><results/></sparql>",
        named("<variable name=\"", "\"/>", "")
    );
    let tsv = named("?", "", "\t") + "\n";
    let answers = [
        ("/json", "application/sparql-results+json", json),
        ("/xml", "application/sparql-results+xml", xml),
        ("/tsv", "text/tab-separated-values", tsv),
    ]
    .map(|(path, media, text)| {
        let head: &'static str = format!("200 OK\r\nContent-Type: {media}").leak();
        (path, head, text.leak().as_bytes())
    });
    let url = web(answers.to_vec().leak());
    let t = tempfile::tempdir().unwrap();
    for path in ["/json", "/xml", "/tsv"] {
        let endpoint = format!("{url}{path}");
        let start = Instant::now();
        let said = bad(
            t.path(),
            &["query", "--endpoint", &endpoint, "SELECT * { ?s ?p ?o }"],
        );
        assert!(
            said.contains(&endpoint) && said.contains("10000") && said.contains("SELECT"),
            "{path}: {said}"
        );
        let took = start.elapsed();
        assert!(took < Duration::from_secs(20), "{path}: {took:?}");
    }
}
