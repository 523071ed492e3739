//! RDF/XML in requests, and XML results from endpoints: they are read completely, or there is an error.

use crate::service::{allowing, saying};
use crate::{ask, csv, options, serve, store};
use jindou_server::Server;
use jindou_testing::http::{Answer, request};

const DOCUMENT: &str = "<?xml version='1.0'?><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'><rdf:Description rdf:about='http://e/s'><e:p>1</e:p><e:p>2</e:p></rdf:Description></rdf:RDF>";

const GRAPH: &str = "/store?graph=http://e/g";

fn send(server: &Server, method: &str, body: &[u8]) -> Answer {
    let media = [("content-type", "application/rdf+xml")];
    request(server.address(), method, GRAPH, &media, body)
}

fn kept(server: &Server) -> Vec<String> {
    let query = "SELECT ?o { GRAPH <http://e/g> { ?s ?p ?o } } ORDER BY ?o";
    let answer = csv(server, query);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_document_that_is_cut_off_or_empty_changes_nothing() {
    let store = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(&store, options().with_writable(true));
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
    // An empty text is a valid Turtle document.
    let turtle = [("content-type", "text/turtle")];
    let empty = request(server.address(), "PUT", GRAPH, &turtle, b"");
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
        let at = saying(answer);
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

/// The text, encoded in ISO-8859-1.
fn latin(text: &str) -> Vec<u8> {
    text.chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap())
        .collect()
}

/// A document whose XML declaration names this encoding.
fn declaring(encoding: &str) -> String {
    DOCUMENT
        .replace(
            "version='1.0'",
            &format!("version='1.0' encoding='{encoding}'"),
        )
        .replace(">1<", ">é<")
}

/// RFC 7303, section 3: a byte order mark takes precedence, then the charset of HTTP, then the declaration.
#[test]
fn the_charset_of_http_counts_more_than_the_declaration() {
    let store = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(&store, options().with_writable(true));
    let sent = |method: &str, media: &str, body: &[u8]| {
        let media = [("content-type", media)];
        request(server.address(), method, GRAPH, &media, body)
    };
    let utf16: Vec<u8> = declaring("utf-8")
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    let marked = [b"\xEF\xBB\xBF", declaring("utf-8").as_bytes()].concat();
    for (media, body) in [
        ("application/rdf+xml", latin(&declaring("iso-8859-1"))),
        (
            "application/rdf+xml; charset=iso-8859-1",
            latin(&declaring("utf-8")),
        ),
        (
            "application/rdf+xml;charset=\"ISO-8859-1\"",
            latin(&declaring("utf-8")),
        ),
        (
            "application/rdf+xml; charset=utf-8",
            declaring("iso-8859-1").into_bytes(),
        ),
        ("application/rdf+xml; charset=utf-16", utf16),
        ("application/rdf+xml; charset=iso-8859-1", marked),
    ] {
        for method in ["PUT", "POST"] {
            let answer = sent(method, media, &body);
            assert!(answer.status < 300, "{method} {media}: {}", answer.text());
            assert_eq!(kept(&server), ["2", "é"], "{method} {media}");
        }
    }
    let boundary = "multipart/form-data; boundary=x";
    let head = "--x\r\nContent-Disposition: form-data; name=a\r\nContent-Type: application/rdf+xml; charset=latin1\r\n\r\n";
    let parts = [
        head.as_bytes(),
        &latin(&declaring("utf-8")),
        b"\r\n--x--\r\n",
    ]
    .concat();
    let answer = sent("PUT", boundary, &parts);
    assert!(answer.status < 300, "{}", answer.text());
    assert_eq!(kept(&server), ["2", "é"]);
    for (media, body, status) in [
        (
            "application/rdf+xml; charset=utf-8",
            latin(&declaring("iso-8859-1")),
            400,
        ),
        (
            "application/rdf+xml; charset=us-ascii",
            declaring("utf-8").into_bytes(),
            400,
        ),
        (
            "application/rdf+xml; charset=klingon",
            declaring("utf-8").into_bytes(),
            400,
        ),
        (
            "text/turtle; charset=iso-8859-1",
            b"<x> <http://e/p> 1 .".to_vec(),
            415,
        ),
    ] {
        let answer = sent("PUT", media, &body);
        assert_eq!(answer.status, status, "{media}: {}", answer.text());
    }
    assert_eq!(kept(&server), ["2", "é"]);
}

#[test]
fn the_charset_of_far_servers_counts_more_than_the_declaration() {
    let answered = |media: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {media}; charset=iso-8859-1\r\n\r\n"
        );
        saying([head.as_bytes(), body].concat())
    };
    let results = "<?xml version='1.0' encoding='utf-8'?><sparql xmlns='http://www.w3.org/2005/sparql-results#'><head><variable name='v'/></head><results><result><binding name='v'><literal>é</literal></binding></result></results></sparql>";
    let far = answered("application/sparql-results+xml", &latin(results));
    let document = answered("application/rdf+xml", &latin(&declaring("utf-8")));
    let caller = jindou::service::HttpCaller::new(
        [far, document]
            .iter()
            .map(|at| at.to_string().parse::<jindou::service::Allowed>().unwrap())
            .collect(),
    );
    let caller = std::sync::Arc::new(caller);
    let documents = jindou::Documents::new().others(caller.clone());
    let store = store("<http://e/a> <http://e/p> 1 .");
    let options = options()
        .with_writable(true)
        .with_service(caller)
        .with_documents(std::sync::Arc::new(documents));
    let server = serve(&store, options);
    let query = format!("SELECT ?v {{ SERVICE <http://{far}/x> {{ ?s <http://e/p> ?v }} }}");
    let answer = csv(&server, &query);
    assert_eq!(answer.text().lines().nth(1), Some("é"), "{}", answer.text());
    let load = format!("LOAD <http://{document}/d> INTO GRAPH <http://e/g>");
    let loaded = crate::update(&server, &load);
    assert!(loaded.status < 300, "{}", loaded.text());
    assert_eq!(kept(&server), ["2", "é"]);
}
