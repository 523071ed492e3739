//! Formats and codings.

use crate::{MILLION, ask, options, serve, store, thousand};
use jindou_testing::http::request;
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};
use std::io::Read;

const FEW: &str = "SELECT ?b { <http://e/s1> <http://e/p> ?b }";

#[test]
fn every_result_format_is_served_and_read_back() {
    let server = serve(thousand(), options());
    for (accept, format) in [
        ("application/sparql-results+json", QueryResultsFormat::Json),
        ("application/sparql-results+xml", QueryResultsFormat::Xml),
        ("text/tab-separated-values", QueryResultsFormat::Tsv),
    ] {
        let answer = ask(&server, FEW, &[("accept", accept)]);
        assert_eq!(answer.status, 200);
        assert!(answer.header("content-type").starts_with(accept));
        let parsed = QueryResultsParser::from_format(format).for_slice(&answer.body);
        let SliceQueryResultsParserOutput::Solutions(rows) = parsed.unwrap() else {
            panic!("not a table");
        };
        let rows: Vec<String> = rows.map(|r| r.unwrap()["b"].to_string()).collect();
        assert_eq!(rows, ["\"value 1\""], "{accept}");
    }
    let csv = ask(&server, FEW, &[("accept", "text/csv")]);
    assert_eq!(csv.text(), "b\r\nvalue 1\r\n");
    for (accept, yes) in [
        (
            "application/sparql-results+json",
            "{\"head\":{},\"boolean\":true}",
        ),
        ("text/csv", "true\n"),
    ] {
        assert_eq!(
            ask(&server, "ASK { ?s ?p ?o }", &[("accept", accept)]).text(),
            yes
        );
    }
}

#[test]
fn what_nobody_can_write_is_406_and_says_what_there_is() {
    let server = serve(thousand(), options());
    let table = ask(&server, FEW, &[("accept", "image/png")]);
    assert_eq!((table.status, &*table.problem()), (406, "not-acceptable"));
    assert!(table.text().contains("application/sparql-results+json"));
    let graph = ask(
        &server,
        "CONSTRUCT WHERE { ?s ?p ?o }",
        &[("accept", "application/sparql-results+xml")],
    );
    assert_eq!((graph.status, &*graph.problem()), (406, "not-acceptable"));
    assert!(graph.text().contains("text/turtle"));
    // The first of several that suits the form is taken.
    let both = "text/turtle, application/sparql-results+xml;q=0.5";
    let table = ask(&server, FEW, &[("accept", both)]);
    assert_eq!(
        table.header("content-type"),
        "application/sparql-results+xml"
    );
    let graph = ask(
        &server,
        "CONSTRUCT WHERE { <http://e/s1> ?p ?o }",
        &[("accept", both)],
    );
    assert_eq!(graph.header("content-type"), "text/turtle");
    assert_eq!(graph.text(), "<http://e/s1> <http://e/p> \"value 1\" .\n");
}

#[test]
fn what_a_format_cannot_say_is_an_error_and_no_document() {
    let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
    for (object, format, word) in [
        ("<http://e/> 1", "application/rdf+xml", "predicates"),
        ("<http://e/1> 1", "application/rdf+xml", "predicates"),
        (
            &*format!("<{rdf}li> 1"),
            "application/rdf+xml",
            "predicates",
        ),
        (
            "<http://www.w3.org/2000/xmlns/a> 1",
            "application/rdf+xml",
            "predicates",
        ),
        ("a <http://e/1>", "application/rdf+xml", "classes"),
        (
            "<http://e/p> \"\\u0001\"",
            "application/rdf+xml",
            "character",
        ),
        (
            "<http://e/p> <<( <http://e/s> <http://e/p> \"\\u0001\" )>>",
            "application/rdf+xml",
            "character",
        ),
        (
            "<http://e/p> <<( <http://e/s> <http://e/p> 1 )>>",
            "application/ld+json",
            "triple terms",
        ),
    ] {
        let store = store(&format!(
            "<http://e/s> <http://e/p> <http://e/o> ; {object} . "
        ));
        let server = serve(&store, options());
        let accept = [("accept", format)];
        let construct = ask(&server, "CONSTRUCT WHERE { ?s ?p ?o }", &accept);
        let describe = ask(&server, "DESCRIBE <http://e/s>", &accept);
        let graph = request(server.address(), "GET", "/store?default", &accept, b"");
        for answer in [construct, describe, graph] {
            assert_eq!(
                (answer.status, &*answer.problem()),
                (501, "unsupported"),
                "{object}"
            );
            assert!(answer.text().contains(word), "{object}: {}", answer.text());
        }
        let turtle = ask(
            &server,
            "CONSTRUCT WHERE { ?s ?p ?o }",
            &[("accept", "text/turtle")],
        );
        assert_eq!(turtle.status, 200, "{object}");
    }
}

#[test]
fn labels_that_are_no_names_become_names_in_rdf_xml() {
    let server = serve(&store("<http://e/s> <http://e/p> _:1 . "), options());
    let accept = [("accept", "application/rdf+xml")];
    let construct = ask(&server, "CONSTRUCT WHERE { ?s ?p ?o }", &accept);
    let describe = ask(&server, "DESCRIBE <http://e/s>", &accept);
    let graph = request(server.address(), "GET", "/store?default", &accept, b"");
    for answer in [construct, describe, graph] {
        assert_eq!(answer.status, 200);
        let text = answer.text();
        let mut quads = oxrdfio::RdfParser::from_format(oxrdfio::RdfFormat::RdfXml)
            .for_slice(text.as_bytes())
            .map(|quad| quad.unwrap_or_else(|e| panic!("{e}: {text}")));
        let quad = quads.next().unwrap();
        assert!(
            quad.object.is_blank_node() && quads.next().is_none(),
            "{text}"
        );
    }
}

#[test]
fn a_document_that_has_begun_is_cut_off_where_its_format_ends() {
    let many = (0..20_000).map(|i| format!("<http://e/s{i}> <http://e/p> \"{i}\" .\n"));
    let store = store(&(many.collect::<String>() + "<http://e/z> <http://e/1> 1 ."));
    let server = serve(&store, options());
    let accept = [("accept", "application/rdf+xml")];
    let query = "CONSTRUCT { ?s ?p ?o } WHERE { { ?s <http://e/p> ?o . ?s ?p ?o } UNION { ?s <http://e/1> ?o . ?s ?p ?o } }";
    let answer = ask(&server, query, &accept);
    assert_eq!(answer.status, 200);
    assert!(!answer.whole && !answer.text().contains("</rdf:RDF>"));
}

#[test]
fn answers_are_compressed_on_demand_and_equal_the_plain_ones() {
    let server = serve(thousand(), options());
    let query = format!("{MILLION} LIMIT 30000");
    let plain = ask(&server, &query, &[("accept", "text/csv")]);
    assert!(plain.whole && plain.header("content-encoding").is_empty());
    assert_eq!(plain.text().lines().count(), 30_001);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for coding in ["gzip", "zstd"] {
        let coded = ask(
            &server,
            &query,
            &[("accept", "text/csv"), ("accept-encoding", coding)],
        );
        assert_eq!(coded.header("content-encoding"), coding);
        assert!(coded.whole && coded.body.len() < plain.body.len() / 4);
        let mut text = String::new();
        if coding == "gzip" {
            flate2::read::MultiGzDecoder::new(&coded.body[..])
                .read_to_string(&mut text)
                .unwrap();
        } else {
            zstd::stream::read::Decoder::new(&coded.body[..])
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
        }
        assert_eq!(text.lines().count(), 30_001);
        // LIMIT may keep other rows in another run; the head and the form of rows are the same.
        assert_eq!(
            sorted(&text)[0].split(',').count(),
            sorted(plain.text())[0].split(',').count()
        );
    }
    // Not worthwhile.
    let small = ask(&server, FEW, &[("accept-encoding", "gzip")]);
    assert!(small.header("content-encoding").is_empty());
    assert_eq!(small.header("content-length"), small.body.len().to_string());
}

#[test]
fn parallel_pieces_make_whole_documents() {
    let server = serve(thousand(), options());
    for (accept, format) in [
        ("application/sparql-results+json", QueryResultsFormat::Json),
        ("application/sparql-results+xml", QueryResultsFormat::Xml),
        ("text/tab-separated-values", QueryResultsFormat::Tsv),
    ] {
        let answer = ask(
            &server,
            &format!("{MILLION} LIMIT 100000"),
            &[("accept", accept)],
        );
        assert!(answer.whole);
        assert_eq!(answer.header("transfer-encoding"), "chunked");
        let parsed = QueryResultsParser::from_format(format).for_slice(&answer.body);
        let SliceQueryResultsParserOutput::Solutions(rows) = parsed.unwrap() else {
            panic!("not a table");
        };
        assert_eq!(
            rows.map(|r| r.unwrap().len()).filter(|n| *n == 4).count(),
            100_000
        );
    }
}

#[test]
fn errors_are_text_for_who_asks() {
    let data = store("<http://e/a> <http://e/b> <http://e/c> .");
    let server = serve(&data, options());
    let text = ask(&server, "ASK {", &[("accept", "text/plain")]);
    assert_eq!(text.status, 400);
    assert!(text.header("content-type").starts_with("text/plain"));
    assert!(text.text().contains("not valid SPARQL"));
    let problem = ask(&server, "SELECT * {\n ?s ?p }", &[]);
    assert_eq!((problem.status, &*problem.problem()), (400, "syntax"));
    // The parser's own position.
    let json = problem.json();
    let place = format!("line {}, column {}:", json["line"], json["column"]);
    assert!(json["detail"].as_str().unwrap().contains(&place), "{json}");
    assert_eq!(json["line"], 2);
    let head = request(server.address(), "HEAD", "/query?query=ASK%7B%7D", &[], b"");
    assert_eq!(head.status, 200);
}
