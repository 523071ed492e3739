//! The W3C's tests of the SPARQL 1.1 Protocol, of service descriptions and of the Graph Store Protocol, each by its
//! name. They are descriptions of requests, so those that only read are written out here; if the suite is available,
//! its manifest is read to check that no test is left out, and all of them are run from their manifests, those that
//! write included (`w3c`).

use crate::{Store, options, serve, store};
use jindou_server::Server;
use jindou_testing::http::{Answer, escape, request};
use oxrdf::{Dataset, Graph};
use oxrdfio::{RdfFormat, RdfParser};
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};
use std::collections::BTreeSet;
use std::path::PathBuf;

const PROTOCOL: [&str; 34] = [
    "query_post_form",
    "query_dataset_default_graphs_get",
    "query_dataset_default_graphs_post",
    "query_dataset_named_graphs_post",
    "query_dataset_named_graphs_get",
    "query_dataset_full",
    "query_multiple_dataset",
    "query_get",
    "query_content_type_select",
    "query_content_type_ask",
    "query_content_type_describe",
    "query_content_type_construct",
    "query_post_direct",
    "bad_query_method",
    "bad_multiple_queries",
    "bad_query_wrong_media_type",
    "bad_query_missing_form_type",
    "bad_query_missing_direct_type",
    "bad_query_non_utf8",
    "bad_query_syntax",
    "bad_update_get",
    "bad_multiple_updates",
    "bad_update_wrong_media_type",
    "bad_update_missing_form_type",
    "bad_update_non_utf8",
    // In `w3c` only.
    "update_dataset_default_graph",
    "update_dataset_default_graphs",
    "update_dataset_named_graphs",
    "update_dataset_full",
    "update_post_form",
    "update_post_direct",
    "update_base_uri",
    "bad_update_syntax",
    "bad_update_dataset_conflict",
];

fn suite(part: &str) -> Option<PathBuf> {
    jindou_testing::shared(&format!("w3c/sparql/sparql11/{part}"))
}

#[test]
fn no_test_of_the_suite_is_left_out() {
    let Some(path) = suite("protocol/manifest.ttl") else {
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let there: BTreeSet<&str> = text
        .lines()
        .filter_map(|l| l.strip_prefix(':')?.split_once(" rdf:type mf:ProtocolTest"))
        .map(|(name, _)| name)
        .collect();
    let here: BTreeSet<&str> = PROTOCOL.into_iter().collect();
    assert_eq!(there, here);
}

const DATA: &str = "http://kasei.us/2009/09/sparql/data/data";

/// The suite's data1 to data3, each one triple about itself, as graphs of these names.
fn data() -> Store {
    let graphs = (1..=3).map(|i| {
        format!("<{DATA}{i}.rdf> {{ <{DATA}{i}.rdf> a <http://xmlns.com/foaf/0.1/Document> }}\n")
    });
    store(&graphs.collect::<String>())
}

fn data_server() -> (Store, Server) {
    let data = data();
    let server = serve(&data, options());
    (data, server)
}

fn graphs(parameter: &str, numbers: &[u8]) -> String {
    let one = |n: &u8| format!("{parameter}={}", escape(&format!("{DATA}{n}.rdf")));
    numbers.iter().map(one).collect::<Vec<_>>().join("&")
}

fn results(answer: &Answer) -> QueryResultsFormat {
    QueryResultsFormat::from_media_type(answer.header("content-type"))
        .unwrap_or_else(|| panic!("not a result format: {answer:?}"))
}

fn boolean(answer: &Answer) -> bool {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let parser = QueryResultsParser::from_format(results(answer));
    match parser.for_slice(&answer.body).unwrap() {
        SliceQueryResultsParserOutput::Boolean(b) => b,
        SliceQueryResultsParserOutput::Solutions(_) => panic!("not a boolean"),
    }
}

fn triples(answer: &Answer) -> Graph {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let format = RdfFormat::from_media_type(answer.header("content-type"))
        .unwrap_or_else(|| panic!("not RDF: {answer:?}"));
    RdfParser::from_format(format)
        .for_slice(&answer.body)
        .map(|q| oxrdf::Triple::from(q.unwrap()))
        .collect()
}

const TWO_IN_DEFAULT: &str = "ASK { <http://kasei.us/2009/09/sparql/data/data1.rdf> a ?type . <http://kasei.us/2009/09/sparql/data/data2.rdf> a ?type . }";
const TWO_NAMED: &str = "ASK { GRAPH ?g1 { <http://kasei.us/2009/09/sparql/data/data1.rdf> a ?type } GRAPH ?g2 { <http://kasei.us/2009/09/sparql/data/data2.rdf> a ?type } }";
const DIRECT: (&str, &str) = ("content-type", "application/sparql-query");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

#[test]
fn queries_that_succeed() {
    let (_data, server) = data_server();
    let to = server.address();
    let data0 = graphs("default-graph-uri", &[0]);
    let get = |target: &str| request(to, "GET", target, &[], b"");
    let post =
        |target: &str, kind, body: &str| request(to, "POST", target, &[kind], body.as_bytes());
    let checks: [(&str, Answer); 9] = [
        (
            "query_post_form",
            post(&format!("/query?{data0}"), FORM, "query=ASK%20%7B%7D"),
        ),
        (
            "query_dataset_default_graphs_get",
            get(&format!(
                "/query?query={}&{}",
                escape(TWO_IN_DEFAULT),
                graphs("default-graph-uri", &[1, 2])
            )),
        ),
        (
            "query_dataset_default_graphs_post",
            post(
                &format!("/query?{}", graphs("default-graph-uri", &[1, 2])),
                DIRECT,
                TWO_IN_DEFAULT,
            ),
        ),
        (
            "query_dataset_named_graphs_post",
            post(
                &format!("/query?{}", graphs("named-graph-uri", &[1, 2])),
                DIRECT,
                TWO_NAMED,
            ),
        ),
        (
            "query_dataset_named_graphs_get",
            get(&format!(
                "/query?query={}&{}",
                escape(TWO_NAMED),
                graphs("named-graph-uri", &[1, 2])
            )),
        ),
        (
            "query_dataset_full",
            post(
                &format!(
                    "/query?{}&{}",
                    graphs("default-graph-uri", &[3]),
                    graphs("named-graph-uri", &[1, 2])
                ),
                DIRECT,
                "ASK {\n  <http://kasei.us/2009/09/sparql/data/data3.rdf> a ?type\n  GRAPH ?g1 { <http://kasei.us/2009/09/sparql/data/data1.rdf> a ?type }\n  GRAPH ?g2 { <http://kasei.us/2009/09/sparql/data/data2.rdf> a ?type }\n}",
            ),
        ),
        (
            "query_multiple_dataset",
            post(
                &format!("/query?{}", graphs("named-graph-uri", &[1, 2])),
                DIRECT,
                &TWO_NAMED.replace(
                    "ASK",
                    "ASK FROM <http://kasei.us/2009/09/sparql/data/data3.rdf>",
                ),
            ),
        ),
        (
            "query_get",
            get(&format!("/query?query=ASK%20%7B%7D&{data0}")),
        ),
        ("query_post_direct", post("/query", DIRECT, "ASK {}")),
    ];
    for (name, answer) in &checks {
        assert!(boolean(answer), "{name}");
    }
    // Graphs that the dataset leaves out do not exist for it.
    let one = post(
        &format!("/query?{}", graphs("default-graph-uri", &[1])),
        DIRECT,
        TWO_IN_DEFAULT,
    );
    assert!(!boolean(&one));
    let none = post(
        &format!("/query?{}", graphs("default-graph-uri", &[1, 2])),
        DIRECT,
        TWO_NAMED,
    );
    assert!(!boolean(&none));
    // The same text over another dataset has another plan.
    assert!(!boolean(&post("/query", DIRECT, TWO_IN_DEFAULT)));
    assert!(boolean(&post("/query", DIRECT, TWO_NAMED)));
}

#[test]
fn content_types_suit_the_form() {
    let (_data, server) = data_server();
    let target = format!("/query?{}", graphs("default-graph-uri", &[0]));
    let post = |query: &str| {
        request(
            server.address(),
            "POST",
            &target,
            &[DIRECT],
            query.as_bytes(),
        )
    };
    // query_content_type_select
    let select = post("SELECT (1 AS ?value) {}");
    let parser = QueryResultsParser::from_format(results(&select));
    let SliceQueryResultsParserOutput::Solutions(rows) = parser.for_slice(&select.body).unwrap()
    else {
        panic!("not a table");
    };
    assert_eq!(rows.map(|r| r.unwrap().len()).collect::<Vec<_>>(), [1]);
    // query_content_type_ask
    assert!(boolean(&post("ASK {}")));
    // query_content_type_describe
    triples(&post("DESCRIBE <http://example.org/>"));
    // query_content_type_construct, whose relative IRIs are resolved against the endpoint's address
    let made = triples(&post("CONSTRUCT { <s> <p> 1 } WHERE {}"));
    let subject = made.iter().next().unwrap().subject.to_string();
    assert_eq!((made.len(), &*subject), (1, "<http://localhost/s>"));
}

#[test]
fn bad_requests_are_refused() {
    let data = data();
    let server = serve(&data, options().with_writable(true));
    let to = server.address();
    let data0 = graphs("default-graph-uri", &[0]);
    let utf16: Vec<u8> = "ASK {}".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let clear16: Vec<u8> = "CLEAR NAMED"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    type Case<'a> = (
        &'a str,
        u16,
        &'a str,
        String,
        &'a [(&'a str, &'a str)],
        &'a [u8],
    );
    let cases: [Case; 12] = [
        (
            "bad_query_method",
            405,
            "PUT",
            format!("/query?query=ASK%20%7B%7D&{data0}"),
            &[FORM],
            b"",
        ),
        (
            "bad_multiple_queries",
            400,
            "GET",
            "/query?query=ASK%20%7B%7D&query=SELECT%20%2A%20%7B%7D".into(),
            &[],
            b"",
        ),
        (
            "bad_query_wrong_media_type",
            415,
            "POST",
            "/query".into(),
            &[("content-type", "text/plain")],
            b"ASK {}",
        ),
        (
            "bad_query_missing_form_type",
            415,
            "POST",
            "/query".into(),
            &[],
            b"query=ASK%20%7B%7D",
        ),
        (
            "bad_query_missing_direct_type",
            415,
            "POST",
            "/query".into(),
            &[],
            b"ASK {}",
        ),
        (
            "bad_query_non_utf8",
            415,
            "POST",
            "/query".into(),
            &[("content-type", "application/sparql-query; charset=UTF-16")],
            &utf16,
        ),
        (
            "bad_query_syntax",
            400,
            "GET",
            "/query?query=ASK%20%7B".into(),
            &[],
            b"",
        ),
        (
            "bad_update_get",
            405,
            "GET",
            "/update?update=CLEAR%20ALL".into(),
            &[],
            b"",
        ),
        (
            "bad_multiple_updates",
            400,
            "POST",
            "/update".into(),
            &[FORM],
            b"update=CLEAR%20NAMED&update=CLEAR%20DEFAULT",
        ),
        (
            "bad_update_wrong_media_type",
            415,
            "POST",
            "/update".into(),
            &[("content-type", "text/plain")],
            b"CLEAR NAMED",
        ),
        (
            "bad_update_missing_form_type",
            415,
            "POST",
            "/update".into(),
            &[],
            b"update=CLEAR%20NAMED",
        ),
        (
            "bad_update_non_utf8",
            415,
            "POST",
            "/update".into(),
            &[("content-type", "application/sparql-update; charset=UTF-16")],
            &clear16,
        ),
    ];
    for (name, status, method, target, headers, body) in &cases {
        let answer = request(to, method, target, headers, body);
        assert_eq!(answer.status, *status, "{name}: {}", answer.text());
        assert!(
            answer.json()["detail"]
                .as_str()
                .is_some_and(|d| !d.is_empty()),
            "{name}"
        );
    }
    // An update is equally invalid at the query's address.
    assert_eq!(
        request(to, "GET", "/query?update=CLEAR%20ALL", &[], b"").status,
        400
    );
    // An encoding that is correct in name only.
    let latin = request(to, "POST", "/query", &[DIRECT], b"ASK { ?s ?p \"\xe9\" }");
    assert_eq!(latin.status, 400);
    // A valid update is refused too without write access.
    let (_data, server) = data_server();
    let to = server.address();
    let update = request(to, "POST", "/update", &[FORM], b"update=CLEAR%20NAMED");
    assert_eq!((update.status, &*update.problem()), (403, "read-only"));
}

#[test]
fn the_service_describes_itself() {
    let (_data, server) = data_server();
    let to = server.address();
    // returns-rdf, has-endpoint-triple
    let host = ("host", &*to.to_string());
    for accept in [
        "text/turtle",
        "application/n-triples",
        "application/rdf+xml",
        "application/ld+json",
    ] {
        let answer = request(to, "GET", "/query", &[host, ("accept", accept)], b"");
        assert_eq!(answer.header("content-type"), accept);
        let graph = triples(&answer);
        let sd = |l: &str| format!("<http://www.w3.org/ns/sparql-service-description#{l}>");
        let objects = |p: &str| -> Vec<String> {
            let all = graph
                .iter()
                .filter(|t| format!("<{}>", t.predicate.as_str()) == p);
            all.map(|t| t.object.to_string()).collect()
        };
        assert_eq!(objects(&sd("endpoint")), [format!("<http://{to}/query>")]);
        // conforms-to-schema: the vocabulary's requirements for a service and its dataset.
        assert!(
            objects("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>").contains(&sd("Service"))
        );
        assert!(objects(&sd("supportedLanguage")).contains(&sd("SPARQL11Query")));
        assert_eq!(objects(&sd("defaultDataset")).len(), 1);
        assert_eq!(objects(&sd("defaultGraph")).len(), 1);
        assert!(objects(&sd("resultFormat")).len() >= 8);
        let three = "\"3\"^^<http://www.w3.org/2001/XMLSchema#integer>".to_owned();
        assert!(objects("<http://rdfs.org/ns/void#triples>").contains(&three));
        assert!(objects("<http://rdfs.org/ns/void#entities>").contains(&three));
    }
    assert_eq!(
        request(to, "GET", "/query", &[("accept", "image/png")], b"").status,
        406
    );
}

/// The states that the suite's requests would make: `direct` and `indirect` graphs, and a default graph.
fn person_store() -> Store {
    let person = |iri: &str, name: &str| {
        format!(
            "<{iri}> {{ <{iri}> a foaf:Person ; foaf:businessCard [ a v:VCard ; v:fn \"{name}\" ] }}\n"
        )
    };
    store(&format!(
        "@prefix foaf: <http://xmlns.com/foaf/0.1/> .\n@prefix v: <http://www.w3.org/2006/vcard/ns#> .\n\
         {}{}{}{}[] a foaf:Person ; foaf:businessCard [ a v:VCard ; v:given-name \"Alice\" ] .\n",
        person("http://localhost/store/person/1.ttl", "Direct"),
        person("http://www.example/gsp/person/1.ttl", "John Doe"),
        person("http://www.example/gsp/person/%31.ttl", "Jane Doe"),
        person("http://example.org/nobody", "Nobody"),
    ))
}

fn literals(graph: &Graph) -> Vec<String> {
    let all = graph.iter().filter(|t| t.object.is_literal());
    let mut all: Vec<_> = all.map(|t| t.object.to_string()).collect();
    all.sort();
    all
}

#[test]
fn graphs_are_read() {
    let data = person_store();
    let server = serve(&data, options());
    let turtle = ("accept", "text/turtle");
    let get = |target: &str| request(server.address(), "GET", target, &[turtle], b"");
    let names = |target: &str| {
        let answer = get(target);
        assert_eq!(answer.header("content-type"), "text/turtle");
        let graph = triples(&answer);
        assert_eq!(graph.len(), 4, "{target}");
        literals(&graph)
    };
    // GET of PUT - Initial state (indirect, then direct)
    let indirect = "/store?graph=http%3A%2F%2Fwww.example%2Fgsp%2Fperson%2F1.ttl";
    assert_eq!(names(indirect), ["\"John Doe\""]);
    assert_eq!(names("/store/person/1.ttl"), ["\"Direct\""]);
    // Varying percent-encoding of the same IRI, decoded once and not twice.
    assert_eq!(
        names("/store?graph=http://www.example/gsp/person/1.ttl"),
        ["\"John Doe\""]
    );
    assert_eq!(
        names("/store?graph=http://www.example/gsp/person/%31.ttl"),
        ["\"John Doe\""]
    );
    assert_eq!(
        names("/store?graph=http://www.example/gsp/person/%2531.ttl"),
        ["\"Jane Doe\""]
    );
    // GET of PUT - default graph
    assert_eq!(names("/store?default"), ["\"Alice\""]);
    // GET of DELETE - existing graph
    for gone in [
        "/store?graph=http%3A%2F%2Fwww.example%2Fgsp%2Fperson%2F2.ttl",
        "/store/person/2.ttl",
    ] {
        assert_eq!(get(gone).status, 404);
    }
    // HEAD on an existing graph, HEAD on a non-existing graph
    let head = |target: &str| request(server.address(), "HEAD", target, &[turtle], b"");
    let there = head(indirect);
    assert_eq!(
        (there.status, there.header("content-type")),
        (200, "text/turtle")
    );
    assert_eq!(head("/store/person/1.ttl").status, 200);
    assert_eq!(
        head("/store?graph=http%3A%2F%2Fwww.example%2Fgsp%2Fperson%2F4.ttl").status,
        404
    );
    assert_eq!(head("/store/person/4.ttl").status, 404);
    // Requests that write are refused.
    for method in ["PUT", "POST", "DELETE", "PATCH"] {
        let answer = request(
            server.address(),
            method,
            indirect,
            &[("content-type", "text/turtle")],
            b"<a:a> <a:b> 1 .",
        );
        assert_eq!(
            (answer.status, &*answer.problem()),
            (403, "read-only"),
            "{method}"
        );
    }
    assert_eq!(get("/store?default&graph=http://e/").status, 400);
    assert_eq!(get("/store?graph=relative").status, 400);
}

#[test]
fn a_whole_dataset_is_read() {
    let data = person_store();
    let server = serve(&data, options());
    for accept in ["application/n-quads", "application/trig"] {
        let answer = request(
            server.address(),
            "GET",
            "/store",
            &[("accept", accept)],
            b"",
        );
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, accept)
        );
        let format = RdfFormat::from_media_type(accept).unwrap();
        let quads: Dataset = RdfParser::from_format(format)
            .for_slice(&answer.body)
            .map(Result::unwrap)
            .collect();
        assert_eq!(quads.len(), 20);
        let graphs: BTreeSet<String> = quads.iter().map(|q| q.graph_name.to_string()).collect();
        assert_eq!(graphs.len(), 5, "{graphs:?}");
    }
    assert_eq!(
        request(
            server.address(),
            "GET",
            "/store",
            &[("accept", "text/turtle")],
            b""
        )
        .status,
        406
    );
}
