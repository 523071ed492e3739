//! RDF/XML that clients send, and results in XML that endpoints answer with: whole, or an error.

use crate::client::{Answer, request};
use crate::service::{allowing, answering};
use crate::{ask, options, serve, store};
use jindou_server::Server;

const DOCUMENT: &str = "<?xml version='1.0'?><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'><rdf:Description rdf:about='http://e/s'><e:p>1</e:p><e:p>2</e:p></rdf:Description></rdf:RDF>";

fn send(server: &Server, method: &str, body: &[u8]) -> Answer {
    let media = [("content-type", "application/rdf+xml")];
    request(
        server.address(),
        method,
        "/store?graph=http://e/g",
        &media,
        body,
    )
}

fn kept(server: &Server) -> Vec<String> {
    let query = "SELECT ?o { GRAPH <http://e/g> { ?s ?p ?o } } ORDER BY ?o";
    let answer = ask(server, query, &[("Accept", "text/csv")]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_document_that_is_cut_off_or_empty_changes_nothing() {
    let server = serve(
        &store("<http://e/a> <http://e/p> 1 ."),
        options().with_writable(true),
    );
    let put = send(&server, "PUT", DOCUMENT.as_bytes());
    assert_eq!(put.status, 201, "{}", put.text());
    assert_eq!(kept(&server), ["1", "2"]);
    let other = DOCUMENT.replace(">1<", ">3<");
    for cut in (0..other.len()).step_by(7).chain([0, other.len() - 1]) {
        for method in ["PUT", "POST"] {
            let answer = send(&server, method, &other.as_bytes()[..cut]);
            assert_eq!(answer.status, 400, "{method}, {cut}: {}", answer.text());
            assert!(answer.text().contains("expected"), "{}", answer.text());
        }
    }
    assert_eq!(kept(&server), ["1", "2"]);
    // An empty Turtle document is one.
    let turtle = [("content-type", "text/turtle")];
    let empty = request(
        server.address(),
        "PUT",
        "/store?graph=http://e/g",
        &turtle,
        b"",
    );
    assert!(empty.status < 300, "{}", empty.text());
    assert!(kept(&server).is_empty());
}

#[test]
fn an_endpoints_xml_is_what_it_says_or_an_error() {
    let results = |inside: &str| {
        format!(
            "<?xml version='1.0'?><sparql xmlns='http://www.w3.org/2005/sparql-results#'><head><variable name='v'/></head><results>{inside}</results></sparql>"
        )
    };
    let row = |literal: &str| format!("<result><binding name='v'>{literal}</binding></result>");
    let asked = |body: &str| {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/sparql-results+xml\r\n\r\n{body}"
        );
        let (at, _) = answering(move |out| {
            let _ = out.write_all(answer.as_bytes());
        });
        let server = serve(
            &store("<http://e/a> <http://e/p> 1 ."),
            allowing(&[at.to_string()]),
        );
        let query = format!("SELECT ?v {{ SERVICE <http://{at}/x> {{ ?s <http://e/p> ?v }} }}");
        let answer = ask(
            &server,
            &query,
            &[("Accept", "application/sparql-results+json")],
        );
        (answer.status, answer.text().to_owned())
    };
    for (literal, expected) in [
        ("<literal> a </literal>", "\" a \""),
        ("<literal>x<!-- c -->y</literal>", "\"xy\""),
        ("<literal><![CDATA[<&>]]></literal>", "\"<&>\""),
        ("<literal xml:lang=''>z</literal>", "\"z\"}"),
    ] {
        let (status, text) = asked(&results(&row(literal)));
        assert!(
            status == 200 && text.contains(expected),
            "{literal}: {status} {text}"
        );
    }
    let whole = results(&format!(
        "{}{}",
        row("<literal>a</literal>"),
        row("<literal>b</literal>")
    ));
    for cut in (0..whole.len())
        .step_by(23)
        .chain([whole.len() - 1, whole.find("</results>").unwrap()])
    {
        let (status, text) = asked(&whole[..cut]);
        assert_eq!(status, 502, "{cut}: {text}");
    }
}
