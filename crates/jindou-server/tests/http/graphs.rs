//! A request's choice of the default graph, and the description's information about graphs.

use crate::{options, serve, store};
use jindou::Database;
use jindou_server::Server;
use jindou_testing::http::{Answer, escape, request};

const CSV: (&str, &str) = ("accept", "text/csv");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const COUNT: &str = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";

fn send(server: &Server, method: &str, target: &str, body: &str) -> Answer {
    request(
        server.address(),
        method,
        target,
        &[CSV, FORM],
        body.as_bytes(),
    )
}

fn counted(server: &Server, more: &str) -> String {
    let answer = send(
        server,
        "GET",
        &format!("/query?query={}{more}", escape(COUNT)),
        "",
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().lines().nth(1).unwrap().trim().to_owned()
}

#[test]
fn a_request_chooses_the_default_graph() {
    let data =
        store("<http://e/g> { <http://e/a> <http://e/p> 1 . <http://e/b> <http://e/p> 2 . }");
    let server = serve(&data, options());
    for (more, n) in [
        ("", "0"),
        ("&graphs=default", "0"),
        ("&graphs=all", "2"),
        ("&graphs=", "0"),
        // With a value for a variable, kept or not.
        ("&$s=%3Chttp%3A%2F%2Fe%2Fa%3E", "0"),
        ("&$s=%3Chttp%3A%2F%2Fe%2Fa%3E&graphs=all", "1"),
        ("&$s=%3Chttp%3A%2F%2Fe%2Fa%3E", "0"),
        // A dataset of the request's own takes precedence.
        ("&graphs=all&default-graph-uri=http%3A%2F%2Fe%2Fnone", "0"),
    ] {
        assert_eq!(counted(&server, more), n, "{more}");
    }
    let form = format!("query={}&graphs=all", escape(COUNT));
    let answer = send(&server, "POST", "/query", &form);
    assert!(answer.text().contains('2'), "{}", answer.text());
    let refused = send(&server, "GET", "/query?query=ASK%7B%7D&graphs=some", "");
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("graphs=some"), "{}", refused.text());
    let plan = |more: &str| {
        let target = format!("/query?explain=true&query={}{more}", escape(COUNT));
        send(&server, "GET", &target, "").text().to_owned()
    };
    assert_ne!(plan(""), plan("&graphs=all"));
    let refused = send(
        &server,
        "POST",
        "/prepared",
        &format!("graphs=all&query={}", escape(COUNT)),
    );
    assert_eq!(refused.status, 400, "{}", refused.text());
    let server = serve(&data, options().with_union_default(true));
    assert_eq!(counted(&server, ""), "2");
    assert_eq!(counted(&server, "&graphs=default"), "0");
}

#[test]
fn an_updates_patterns_read_the_chosen_graph() {
    let data = store("<http://e/g> { <http://e/a> <http://e/p> 1 . }");
    let server = serve(&data, options().with_writable(true));
    let update = escape("INSERT { ?s <http://e/q> 2 } WHERE { ?s <http://e/p> 1 }");
    for (more, quads) in [("", "0"), ("&graphs=default", "0"), ("&graphs=all", "1")] {
        let done = send(
            &server,
            "POST",
            "/update",
            &format!("update={update}{more}"),
        );
        assert_eq!(done.status, 200, "{}", done.text());
        assert_eq!(counted(&server, ""), quads, "{more}");
    }
}

/// The service description as N-Triples.
fn described(server: &Server) -> String {
    let accept = [("accept", "application/n-triples")];
    let answer = request(server.address(), "GET", "/query", &accept, b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().to_owned()
}

/// Checks that a description has a number of VoID.
fn assert_says(text: &str, node: &str, name: &str, n: u64) {
    let line = format!(
        "_:{node} <http://rdfs.org/ns/void#{name}> \"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer> ."
    );
    assert!(text.contains(&line), "{line}\n{text}");
}

#[test]
fn the_description_says_where_quads_are() {
    let data = store(
        "<http://e/c> <http://e/p> 0 . <http://e/g> { <http://e/a> <http://e/p> 1 . } <http://e/h> { <http://e/b> <http://e/p> 2, 3 . }",
    );
    let text = described(&serve(&data, options()));
    for (node, name, n) in [
        ("dataset", "triples", 4),
        ("default", "triples", 1),
        ("named", "triples", 3),
        ("named", "documents", 2),
    ] {
        assert_says(&text, node, name, n);
    }
    assert!(!text.contains("UnionDefaultGraph"), "{text}");
    let text = described(&serve(&data, options().with_union_default(true)));
    assert!(text.contains("UnionDefaultGraph"), "{text}");
}

#[test]
fn the_description_counts_what_came_since_the_last_merge() {
    let database = Database::in_memory();
    let server = Server::start(database, options().with_writable(true)).unwrap();
    let send = |method: &str, target: &str, media: &str, body: &str| {
        let headers = [("content-type", media)];
        let done = request(server.address(), method, target, &headers, body.as_bytes());
        assert!(done.status < 300, "{}", done.text());
    };
    assert_says(&described(&server), "dataset", "classes", 0);
    send(
        "POST",
        "/store",
        "application/trig",
        "@prefix : <http://e/> . :a a :C ; :p 1 . :b a :C , :D . :g { :b a :C . :c a :C , :E ; :q :d . } :h { :c a :E }",
    );
    let text = described(&server);
    for (name, n) in [
        ("triples", 9),
        ("distinctSubjects", 3),
        ("properties", 3),
        ("classes", 3),
    ] {
        assert_says(&text, "dataset", name, n);
    }
    // Who is a member in two graphs is one member.
    for (i, (class, n)) in [("C", 3), ("D", 1), ("E", 1)].into_iter().enumerate() {
        let node = format!("c{i}");
        let line = format!("_:{node} <http://rdfs.org/ns/void#class> <http://e/{class}> .");
        assert!(text.contains(&line), "{line}\n{text}");
        assert_says(&text, &node, "entities", n);
    }
    send(
        "POST",
        "/update",
        "application/sparql-update",
        "PREFIX : <http://e/> DELETE DATA { :b a :D . :a :p 1 . GRAPH :g { :b a :C } }",
    );
    let text = described(&server);
    assert_says(&text, "dataset", "classes", 2);
    assert_says(&text, "dataset", "properties", 2);
    assert_says(&text, "c0", "entities", 3);
    assert!(!text.contains("http://e/D"), "{text}");
}

#[test]
fn the_description_has_the_stores_name() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let title = "_:dataset <http://purl.org/dc/terms/title>";
    let text = described(&serve(&data, options()));
    assert!(!text.contains(title), "{text}");
    let named = options().with_store_name("my \"own\"\n.store".to_owned());
    let text = described(&serve(&data, named));
    let line = format!("{title} \"my \\\"own\\\"\\n.store\" .");
    assert!(text.contains(&line), "{text}");
}
