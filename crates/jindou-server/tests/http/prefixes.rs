//! `/prefixes`: what is known, and who may change it.

use crate::{Store, options, serve, store};
use jindou_server::Server;
use jindou_testing::http::{Answer, escape, request};
use oxrdfio::{RdfFormat, RdfParser};

fn planets() -> Store {
    store(
        "@prefix acme: <http://acme.example/terms#> . @prefix : <http://acme.example/d/> .
        :mars a acme:Planet ; acme:moons 2 . :earth a acme:Planet ; acme:moons 1 .",
    )
}

fn send(server: &Server, method: &str, target: &str, body: &[u8]) -> Answer {
    let head: &[(&str, &str)] = match method {
        "PUT" => &[("Content-Type", "text/plain")],
        _ => &[],
    };
    request(server.address(), method, target, head, body)
}

/// IRI and origin of a prefix.
fn known(server: &Server, name: &str) -> Option<(String, String)> {
    let answer = send(server, "GET", "/prefixes", b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    let all = json["prefixes"].as_array().unwrap();
    let found = all.iter().find(|p| p["prefix"] == name)?;
    let text = |key: &str| found[key].as_str().unwrap().to_owned();
    Some((text("iri"), text("from")))
}

fn moons(server: &Server) -> String {
    let query = escape("SELECT (COUNT(*) AS ?n) { ?x acme:moons ?m }");
    let answer = send(
        server,
        "GET",
        &format!("/query?format=csv&query={query}"),
        b"",
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().lines().nth(1).unwrap().to_owned()
}

fn pair(iri: &str, from: &str) -> Option<(String, String)> {
    Some((iri.to_owned(), from.to_owned()))
}

#[test]
fn prefixes_are_listed_set_and_removed() {
    let data = planets();
    let server = serve(&data, options().with_writable(true));
    let terms = "http://acme.example/terms#";
    assert_eq!(known(&server, "acme"), pair(terms, "data"));
    assert_eq!(known(&server, ""), pair("http://acme.example/d/", "data"));
    assert_eq!(known(&server, "foaf").unwrap().1, "common");
    assert_eq!(moons(&server), "2");
    let answer = send(&server, "PUT", "/prefixes/acme", b"http://other.example/");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(known(&server, "acme"), pair("http://other.example/", "set"));
    assert_eq!(moons(&server), "0");
    assert_eq!(send(&server, "DELETE", "/prefixes/acme", b"").status, 200);
    assert_eq!(known(&server, "acme"), pair(terms, "data"));
    assert_eq!(moons(&server), "2");
    let answer = send(&server, "PUT", "/prefixes/%C3%A9", b"<http://e/>\n");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(known(&server, "é"), pair("http://e/", "set"));
    assert_eq!(send(&server, "PUT", "/prefixes/", b"http://f/").status, 200);
    assert_eq!(known(&server, ""), pair("http://f/", "set"));
    for (method, target, body, status) in [
        ("DELETE", "/prefixes/nothing", "", 404),
        ("DELETE", "/prefixes/foaf", "", 404),
        ("PUT", "/prefixes/1x", "http://e/", 400),
        ("PUT", "/prefixes/x", "nowhere", 400),
        ("PUT", "/prefixes/x", "", 400),
        ("PUT", "/prefixes/%ff", "http://e/", 400),
        ("GET", "/prefixes/acme", "", 405),
        ("PUT", "/prefixes", "http://e/", 405),
    ] {
        let answer = send(&server, method, target, body.as_bytes());
        assert_eq!(
            answer.status,
            status,
            "{method} {target}: {}",
            answer.text()
        );
    }
    // An upload brings its own; one that is refused brings none.
    let upload = |text: &str| {
        let head = [("Content-Type", "text/turtle")];
        request(
            server.address(),
            "POST",
            "/store?default",
            &head,
            text.as_bytes(),
        )
        .status
    };
    assert_eq!(upload("@prefix bad: <http://bad/> . bad:a bad:b"), 400);
    assert_eq!(known(&server, "bad"), None);
    let good = "@prefix zoo: <http://zoo/> . @prefix acme: <http://late/> . zoo:leo zoo:legs 4 .";
    assert_eq!(upload(good) / 100, 2);
    assert_eq!(known(&server, "zoo"), pair("http://zoo/", "data"));
    assert_eq!(known(&server, "acme"), pair(terms, "data"));
    // Graphs are written with them.
    let query = escape("CONSTRUCT { ?x acme:has ?m } { ?x acme:moons ?m }");
    let answer = send(
        &server,
        "GET",
        &format!("/query?format=ttl&query={query}"),
        b"",
    );
    let text = answer.text();
    assert!(
        text.contains("@prefix acme: <http://acme.example/terms#>"),
        "{text}"
    );
    assert!(text.contains("acme:has 2"), "{text}");
}

#[test]
fn who_may_not_write_changes_nothing_and_strict_servers_know_none() {
    let data = planets();
    let server = serve(&data, options());
    assert_eq!(
        send(&server, "PUT", "/prefixes/x", b"http://e/").status,
        403
    );
    assert_eq!(send(&server, "DELETE", "/prefixes/acme", b"").status, 403);
    assert_eq!(known(&server, "acme").unwrap().1, "data");
    let strict = options()
        .with_common_prefixes(false)
        .with_store_prefixes(false);
    let server = serve(&data, strict);
    assert_eq!(known(&server, "acme"), None);
    for prefix in ["acme", "foaf"] {
        let query = escape(&format!("ASK {{ ?x {prefix}:moons ?m }}"));
        let answer = send(&server, "GET", &format!("/query?query={query}"), b"");
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
}

#[test]
fn a_graph_declares_the_prefixes_that_it_uses() {
    // More than a document may declare, and names of the data's own for what has a common one.
    let mut text: String = (0..300)
        .map(|n| format!("@prefix p{n}: <http://e/{n}/> .\n"))
        .collect();
    text += "@prefix own: <http://xmlns.com/foaf/0.1/> .\n";
    // Rows come by predicate: the last ones are far behind the first.
    for n in 0..3000 {
        text += &format!("p7:s{n} p140:q {n} ; own:name \"{n}\"^^p3:t .\n");
    }
    text += "p299:last a p200:C .";
    let data = store(&text);
    let server = serve(&data, options());
    let query = escape("CONSTRUCT WHERE { ?s ?p ?o }");
    for target in [
        "/store?default&format=ttl".to_owned(),
        format!("/query?format=ttl&query={query}"),
        "/store?format=trig".to_owned(),
    ] {
        let answer = send(&server, "GET", &target, b"");
        let text = answer.text();
        let is_declared = |line: &&str| line.starts_with("@prefix ");
        let mut declared: Vec<&str> = text.lines().filter(is_declared).collect();
        declared.sort_unstable();
        let wanted = [
            "@prefix own: <http://xmlns.com/foaf/0.1/> .",
            "@prefix p140: <http://e/140/> .",
            "@prefix p200: <http://e/200/> .",
            "@prefix p299: <http://e/299/> .",
            "@prefix p3: <http://e/3/> .",
            "@prefix p7: <http://e/7/> .",
        ];
        assert_eq!(declared, wanted, "{target}");
        let rest: Vec<&str> = text.lines().filter(|l| !is_declared(l)).collect();
        assert!(!rest.join("\n").contains("http://"), "{target}");
        let format = match target.contains("trig") {
            true => RdfFormat::TriG,
            false => RdfFormat::Turtle,
        };
        let read = RdfParser::from_format(format).for_slice(text.as_bytes());
        assert_eq!(read.map(Result::unwrap).count(), 6001, "{target}");
    }
}
