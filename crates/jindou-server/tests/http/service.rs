//! SERVICE between two servers, and with endpoints that misbehave.

use crate::{ask, options, serve, store};
use jindou::service::{AllowList, Allowed, HttpCaller};
use jindou_server::{Server, ServerOptions};
use jindou_testing::http::Answer;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub fn allowing(entries: &[String]) -> ServerOptions {
    let list: AllowList = entries
        .iter()
        .map(|e| e.parse::<Allowed>().expect("an entry"))
        .collect();
    options().with_service(Arc::new(HttpCaller::new(list)))
}

const FAR: &str = "<http://e/a> <http://e/name> \"A\", \"Ä\"@de . <http://e/b> <http://e/name> \"01\"^^<http://www.w3.org/2001/XMLSchema#integer> . _:x <http://e/name> _:x .";

/// The sorted rows of a TSV answer, without its header.
fn rows(a: &Answer) -> Vec<String> {
    assert_eq!(a.status, 200, "{}", a.text());
    let mut rows: Vec<String> = a.text().lines().skip(1).map(str::to_owned).collect();
    rows.sort();
    rows
}

fn tsv(server: &Server, query: &str) -> Answer {
    ask(server, query, &[("Accept", "text/tab-separated-values")])
}

#[test]
fn rows_of_another_server_are_joined() {
    let far = serve(&store(FAR), options());
    let near = store(
        "<http://e/a> <http://e/p> 1 . <http://e/b> <http://e/p> 2 . <http://e/c> <http://e/p> 3 .",
    );
    let near = serve(&near, allowing(&[far.address().to_string()]));
    let endpoint = format!("<http://{}/query>", far.address());
    let inner = "{ ?s <http://e/name> ?n }";
    let joined = [
        "<http://e/a>\t1\t\"A\"",
        "<http://e/a>\t1\t\"Ä\"@de",
        "<http://e/b>\t2\t01",
    ];
    let query = format!("SELECT ?s ?o ?n {{ ?s <http://e/p> ?o SERVICE {endpoint} {inner} }}");
    assert_eq!(rows(&tsv(&near, &query)), joined);
    // The endpoint is a variable, bound before or after the SERVICE.
    for query in [
        format!(
            "SELECT ?s ?o ?n {{ VALUES ?e {{ {endpoint} }} ?s <http://e/p> ?o SERVICE ?e {inner} }}"
        ),
        format!(
            "SELECT ?s ?o ?n {{ SERVICE ?e {inner} {{ ?s <http://e/p> ?o BIND({endpoint} AS ?e) }} }}"
        ),
    ] {
        assert_eq!(rows(&tsv(&near, &query)), joined, "{query}");
    }
    let query = format!(
        "SELECT ?s ?n {{ VALUES ?e {{ {endpoint} }} ?s <http://e/p> ?o OPTIONAL {{ SERVICE ?e {inner} }} }}"
    );
    let optional = rows(&tsv(&near, &query));
    assert_eq!(optional.len(), 4, "{optional:?}");
    assert!(
        optional.contains(&"<http://e/c>\t".to_owned()),
        "{optional:?}"
    );
    // Within one answer, equal labels mean the same blank node, which is in no other graph.
    let query =
        format!("SELECT ?s ?n {{ SERVICE {endpoint} {inner} FILTER(isBlank(?s) && ?s = ?n) }}");
    assert_eq!(rows(&tsv(&near, &query)).len(), 1);
    let plan = near_plan(&near, &query);
    assert!(plan.contains("ask <http://"), "{plan}");
}

fn near_plan(server: &Server, query: &str) -> String {
    let target = format!("/query?profile=true&query={}", crate::escape(query));
    let a = crate::get(server, &target);
    a.json()["text"].to_string()
}

#[test]
fn endpoints_off_the_list_are_not_asked() {
    let far = serve(&store(FAR), options());
    let near = store("<http://e/a> <http://e/p> 1 .");
    let of = |endpoint: &str, silent: &str| {
        format!(
            "SELECT * {{ ?s <http://e/p> ?o SERVICE {silent} <{endpoint}> {{ ?s <http://e/name> ?n }} }}"
        )
    };
    let there = format!("http://{}/query", far.address());
    for (server, word) in [
        (serve(&near, options()), "not allowed here"),
        (serve(&near, allowing(&["e.org".into()])), "--service-allow"),
        // An entry without a port allows only the default ports.
        (
            serve(&near, allowing(&["127.0.0.1".into()])),
            "--service-allow",
        ),
    ] {
        let a = tsv(&server, &of(&there, ""));
        assert!(
            a.status == 502 && a.problem() == "service" && a.text().contains(word),
            "{} {}",
            a.status,
            a.text()
        );
        assert_eq!(rows(&tsv(&server, &of(&there, "SILENT"))).len(), 1);
    }
    assert_eq!(far_requests(&far), 0);
    let server = serve(&near, allowing(&[far.address().to_string()]));
    for bad in [
        "ftp://e.org/",
        "urn:x",
        &format!("http://u@{}/query", far.address()),
    ] {
        let a = tsv(&server, &of(bad, ""));
        assert_eq!(a.status, 502, "{bad}: {}", a.text());
    }
    assert_eq!(rows(&tsv(&server, &of(&there, ""))).len(), 2);
    assert_eq!(far_requests(&far), 1);
    // Nothing binds the variable of the endpoint.
    let a = tsv(
        &server,
        "SELECT * { ?s <http://e/p> ?o { SERVICE ?e { ?s <http://e/name> ?n } ?s ?p 2 } }",
    );
    assert!(
        a.status == 501 && a.text().contains("?e"),
        "{} {}",
        a.status,
        a.text()
    );
    let a = tsv(
        &server,
        "SELECT * { ?s <http://e/p> ?o SERVICE ?o { ?s <http://e/name> ?n } }",
    );
    assert!(
        a.status == 400 && a.text().contains("not an IRI"),
        "{} {}",
        a.status,
        a.text()
    );
}

fn far_requests(server: &Server) -> u64 {
    let a = crate::get(server, "/metrics");
    a.text()
        .lines()
        .filter(|l| l.starts_with("jindou_query") && l.contains("_count"))
        .filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// Starts a server that answers every request in the same way.
pub fn answering(
    answer: impl Fn(&mut dyn Write) + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            count.fetch_add(1, Ordering::SeqCst);
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                let _ = stream.read(&mut buffer);
                answer(&mut stream);
            });
        }
    });
    (at, seen)
}

/// Starts a server that answers every request with these bytes.
pub fn saying(answer: impl Into<Vec<u8>>) -> SocketAddr {
    let answer = answer.into();
    let (at, _) = answering(move |out| {
        let _ = out.write_all(&answer);
    });
    at
}

fn failing(at: SocketAddr, more: &[String]) -> (u16, String, Duration) {
    failing_within("2s", at, more)
}

fn failing_within(limit: &str, at: SocketAddr, more: &[String]) -> (u16, String, Duration) {
    let mut list = vec![at.to_string()];
    list.extend_from_slice(more);
    let server = serve(&store("<http://e/a> <http://e/p> 1 ."), allowing(&list));
    let query = format!("SELECT * {{ SERVICE <http://{at}/x> {{ ?s <http://e/name> ?n }} }}");
    let target = format!("/query?timeout={limit}&query={}", crate::escape(&query));
    let start = Instant::now();
    let a = crate::get(&server, &target);
    (a.status, a.text().to_owned(), start.elapsed())
}

#[test]
fn a_redirect_is_followed_on_the_list_only() {
    let far = serve(&store(FAR), options());
    let to = format!("http://{}/query", far.address());
    let head =
        format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    let at = saying(head);
    let (status, text, _) = failing(at, &[]);
    assert!(
        status == 502 && text.contains("redirects"),
        "{status} {text}"
    );
    let (status, text, _) = failing(at, &[far.address().to_string()]);
    assert!(status == 200 && text.contains("Ä"), "{status} {text}");
    // The endpoint redirects to itself.
    let (at, seen) = answering(|out| {
        let _ = out.write_all(
            b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    });
    let (status, text, _) = failing(at, &[]);
    assert!(
        status == 502 && text.contains("redirects"),
        "{status} {text}"
    );
    assert!(seen.load(Ordering::SeqCst) < 10);
}

#[test]
fn what_is_no_answer_is_an_error_that_names_the_endpoint() {
    const OK: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: ";
    for (answer, word) in [
        (
            "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nsick".to_owned(),
            "sick",
        ),
        (format!("{OK}text/html\r\n\r\n<html>"), "text/html"),
        (
            format!(
                "{OK}application/sparql-results+json\r\n\r\n{{\"head\":{{\"vars\":[\"s\"]}},\"results\":{{\"bindings\":[{{"
            ),
            "SERVICE",
        ),
        (
            format!(
                "{OK}application/sparql-results+json\r\n\r\n{{\"head\":{{}},\"boolean\":true}}"
            ),
            "true or false",
        ),
        (
            format!(
                "{OK}application/sparql-results+xml\r\nContent-Length: 1000\r\n\r\n<?xml version=\"1.0\"?>"
            ),
            "SERVICE",
        ),
        ("nonsense\r\n\r\n".to_owned(), "SERVICE"),
        (String::new(), "SERVICE"),
    ] {
        let at = saying(answer.clone());
        let (status, text, _) = failing(at, &[]);
        assert!(
            status == 502 && text.contains(word) && text.contains(&at.to_string()),
            "{answer}: {status} {text}"
        );
    }
    // No server listens at the endpoint's port.
    let at = SocketAddr::from(([127, 0, 0, 1], jindou_testing::free_port()));
    let (status, text, _) = failing(at, &[]);
    assert_eq!(status, 502, "{text}");
}

#[test]
fn an_endpoint_that_says_nothing_or_never_ends_meets_the_querys_limits() {
    let (at, _) = answering(|_| std::thread::sleep(Duration::from_secs(20)));
    let (status, text, took) = failing(at, &[]);
    assert!(
        status == 503 && text.contains("time limit"),
        "{status} {text}"
    );
    assert!(took < Duration::from_secs(10), "{took:?}");
    // The endpoint sends rows without end: the memory limit or the time limit ends the query.
    let (at, _) = answering(|out| {
        let _ = out.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/tab-separated-values\r\n\r\n?s\t?n\n");
        let mut i = 0u64;
        while out
            .write_all(format!("<http://e/{i}>\t\"{}\"\n", "x".repeat(1000)).as_bytes())
            .is_ok()
        {
            i += 1;
        }
    });
    let (status, text, _) = failing(at, &[]);
    assert!(
        status == 507 || status == 503 && text.contains("time limit"),
        "{status} {text}"
    );
    // The endpoint sends a row without end.
    let (at, _) = answering(|out| {
        let _ = out.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/tab-separated-values\r\n\r\n?s\t?n\n<http://e/");
        while out.write_all(&[b'x'; 1 << 16]).is_ok() {}
    });
    let (status, text, _) = failing(at, &[]);
    assert!(
        status == 502 || status == 503 && text.contains("time limit"),
        "{status} {text}"
    );
}

/// A head with 300,000 variables once kept the parser busy for a quarter of an hour, during which it checked no time
/// limit.
#[test]
fn an_answer_of_too_many_variables_is_refused_before_it_is_read() {
    let named = |open: &str, close: &str, between: &str| {
        let all: Vec<String> = (0..300_000).map(|i| format!("{open}v{i}{close}")).collect();
        all.join(between)
    };
    for (media, body) in [
        (
            "application/sparql-results+json",
            format!(
                "{{\"head\":{{\"vars\":[{}]}},\"results\":{{\"bindings\":[]}}}}",
                named("\"", "\"", ",")
            ),
        ),
        (
            "application/sparql-results+xml",
            format!(
                "<sparql><head>{}</head><results/></sparql>",
                named("<variable name=\"", "\"/>", "")
            ),
        ),
        ("text/tab-separated-values", named("?", "", "\t") + "\n"),
        ("text/csv", named("", "", ",") + "\r\n"),
    ] {
        let answer =
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {media}\r\n\r\n{body}");
        let at = saying(answer);
        let (status, text, took) = failing_within("50s", at, &[]);
        let word = if media == "text/csv" { "CSV" } else { "10000" };
        assert!(
            status == 502 && text.contains(word) && text.contains(&at.to_string()),
            "{media}: {status} {text}"
        );
        assert!(took < Duration::from_secs(50), "{media}: {took:?}");
    }
}
