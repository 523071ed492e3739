//! The W3C's tests of the SPARQL 1.1 Protocol and of the Graph Store Protocol as their manifests describe them: each test's
//! requests are sent to a server of its own, and every answer must be what the manifest expects.

use crate::client::{Answer, request};
use crate::{Store, options, serve, store};
use jindou_server::Server;
use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::vocab::rdf;
use oxrdf::{Dataset, Graph, GraphName, NamedNode, NamedOrBlankNode, Term};
use oxrdfio::{RdfFormat, RdfParser};
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};
use std::path::{Path, PathBuf};

const HT: &str = "http://www.w3.org/2011/http#";
const HTS: &str = "http://www.w3.org/2011/http-statusCodes#";
const CNT: &str = "http://www.w3.org/2011/content#";
const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";

fn suite(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("JINDOU_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = root.join("w3c/sparql/sparql11").join(part);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: there is no {}; set JINDOU_SHARED", path.display());
    None
}

struct Manifest(Graph);

impl Manifest {
    fn read(path: &Path) -> Self {
        let text = std::fs::read(path).unwrap();
        let parser = RdfParser::from_format(RdfFormat::Turtle)
            .with_base_iri("http://example.org/manifest")
            .unwrap();
        let triples = parser
            .for_slice(&text)
            .map(|q| oxrdf::Triple::from(q.unwrap()));
        Self(triples.collect())
    }

    fn all(&self, node: &NamedOrBlankNode, name: &str) -> Vec<Term> {
        let name = NamedNode::new_unchecked(name);
        let found = self.0.objects_for_subject_predicate(node, &name);
        found.map(|t| t.into_owned()).collect()
    }

    fn node(&self, node: &NamedOrBlankNode, name: &str) -> Option<NamedOrBlankNode> {
        self.all(node, name).into_iter().next().and_then(subject)
    }

    fn text(&self, node: &NamedOrBlankNode, name: &str) -> Option<String> {
        match self.all(node, name).into_iter().next()? {
            Term::Literal(l) => Some(l.value().to_owned()),
            other => panic!("{name} is {other}"),
        }
    }

    fn list(&self, node: &NamedOrBlankNode, name: &str) -> Vec<NamedOrBlankNode> {
        let mut out = vec![];
        let mut at = self.node(node, name);
        while let Some(n) = at {
            out.extend(self.node(&n, rdf::FIRST.as_str()));
            at = self.node(&n, rdf::REST.as_str());
        }
        out
    }

    fn headers(&self, node: &NamedOrBlankNode) -> Vec<(String, String)> {
        let one = |h: &NamedOrBlankNode, n: &str| self.text(h, &format!("{HT}{n}")).unwrap();
        self.list(node, &format!("{HT}headers"))
            .iter()
            .map(|h| (one(h, "fieldName"), one(h, "fieldValue")))
            .collect()
    }

    fn body(&self, node: &NamedOrBlankNode) -> Option<Vec<u8>> {
        let body = self.node(node, &format!("{HT}body"))?;
        let text = self.text(&body, &format!("{CNT}chars"))?;
        let encoding = self.text(&body, &format!("{CNT}characterEncoding"));
        Some(match encoding.as_deref() {
            Some("UTF-16") => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            _ => text.into_bytes(),
        })
    }

    /// Tests by their names.
    fn tests(&self, kind: &str) -> Vec<NamedOrBlankNode> {
        let kind = NamedNode::new_unchecked(format!("{MF}{kind}"));
        let found = self.0.subjects_for_predicate_object(rdf::TYPE, &kind);
        let mut all: Vec<_> = found.map(|s| s.into_owned()).collect();
        all.sort_by_key(|s| s.to_string());
        all
    }
}

fn subject(t: Term) -> Option<NamedOrBlankNode> {
    match t {
        Term::NamedNode(n) => Some(n.into()),
        Term::BlankNode(b) => Some(b.into()),
        _ => None,
    }
}

fn is_expected(status: u16, expected: &Term) -> bool {
    let name = expected.to_string();
    let name = name.trim_matches(['<', '>']).trim_start_matches(HTS);
    match name {
        "StatusCode2xx" => (200..300).contains(&status),
        "StatusCode3xx" => (300..400).contains(&status),
        "StatusCode4xx" => (400..500).contains(&status),
        "OK" => status == 200,
        "Created" => status == 201,
        "NoContent" => status == 204,
        "NotFound" => status == 404,
        other => panic!("what is {other}?"),
    }
}

/// A graph up to the labels of its blank nodes.
fn canonical(text: &[u8], format: RdfFormat) -> Dataset {
    let parser = RdfParser::from_format(format)
        .with_base_iri("http://localhost/")
        .unwrap()
        .with_default_graph(GraphName::DefaultGraph);
    let mut graph: Dataset = parser.for_slice(text).map(|q| q.unwrap()).collect();
    graph.canonicalize(CanonicalizationAlgorithm::Unstable);
    graph
}

/// The suite's one address, replaced by ours.
fn target(path: &str, headers: &[(String, String)], body: &[u8]) -> String {
    if let Some(rest) = path.strip_prefix("/gsp") {
        return format!("/store{rest}");
    }
    let rest = path.strip_prefix("/sparql/").expect("a path of the suite");
    let updates = rest.contains("update=")
        || body.starts_with(b"update=")
        || body.starts_with(b"CLEAR")
        || body.starts_with(
            "CLEAR"
                .encode_utf16()
                .flat_map(u16::to_be_bytes)
                .collect::<Vec<_>>()
                .as_slice(),
        )
        || headers.iter().any(|h| h.1.contains("sparql-update"));
    format!("/{}{rest}", if updates { "update" } else { "query" })
}

fn check(m: &Manifest, response: &NamedOrBlankNode, answer: &Answer) {
    let expected = m.all(response, &format!("{MF}expectedStatus"));
    assert!(!expected.is_empty());
    assert!(
        expected.iter().any(|e| is_expected(answer.status, e)),
        "status {} where {expected:?} is expected: {}",
        answer.status,
        String::from_utf8_lossy(&answer.body)
    );
    if let Some(want) = m.text(response, &format!("{MF}expectedBoolean")) {
        let format = QueryResultsFormat::from_media_type(answer.header("content-type")).unwrap();
        match QueryResultsParser::from_format(format).for_slice(&answer.body) {
            Ok(SliceQueryResultsParserOutput::Boolean(b)) => assert_eq!(b.to_string(), want),
            _ => panic!("not a boolean: {}", answer.text()),
        }
    }
    let media = m
        .headers(response)
        .into_iter()
        .find(|h| h.0 == "content-type");
    if let (Some((_, media)), Some(body)) = (media, m.body(response)) {
        let format = |media: &str| RdfFormat::from_media_type(media).expect("RDF");
        assert_eq!(
            canonical(&answer.body, format(answer.header("content-type"))),
            canonical(&body, format(&media)),
            "{}",
            answer.text()
        );
    }
}

fn run(m: &Manifest, test: &NamedOrBlankNode, server: &Server) {
    let action = m.node(test, &format!("{MF}action")).expect("an action");
    let mut location: Option<(String, String)> = None;
    let requests = m.list(&action, &format!("{HT}requests"));
    assert!(!requests.is_empty());
    for r in &requests {
        let method = m.text(r, &format!("{HT}methodName")).unwrap();
        let mut path = m.text(r, &format!("{HT}absolutePath")).unwrap();
        if let Some((name, value)) = &location {
            path = path.replace(name, value);
        }
        let headers = m.headers(r);
        let body = m.body(r).unwrap_or_default();
        let target = target(&path, &headers, &body);
        let pairs: Vec<(&str, &str)> = headers.iter().map(|h| (&*h.0, &*h.1)).collect();
        let answer = request(server.address(), &method, &target, &pairs, &body);
        let response = m.node(r, &format!("{HT}resp")).expect("a response");
        check(m, &response, &answer);
        if let Some(name) = m.text(&response, &format!("{MF}expectedLocation")) {
            let value = answer.header("location").to_owned();
            assert!(!value.is_empty(), "no Location");
            location = Some((name, value));
        }
    }
}

/// Runs all tests of a manifest, each on a server of its own.
fn all_pass(part: &str, kind: &str, data: impl Fn() -> Store) -> usize {
    let Some(path) = suite(part) else { return 0 };
    let m = Manifest::read(&path);
    let tests = m.tests(kind);
    let mut failed = vec![];
    for test in &tests {
        let data = data();
        let server = serve(&data, options().with_writable(true));
        let one = std::panic::AssertUnwindSafe(|| run(&m, test, &server));
        if std::panic::catch_unwind(one).is_err() {
            failed.push(test.to_string());
        }
    }
    println!(
        "{part}: {} of {} passed",
        tests.len() - failed.len(),
        tests.len()
    );
    assert!(failed.is_empty(), "failed: {failed:#?}");
    tests.len()
}

#[test]
fn protocol() {
    let data = || {
        let graphs = (1..=3).map(|i| {
            let data = "http://kasei.us/2009/09/sparql/data/data";
            format!(
                "<{data}{i}.rdf> {{ <{data}{i}.rdf> a <http://xmlns.com/foaf/0.1/Document> }}\n"
            )
        });
        store(&graphs.collect::<String>())
    };
    let n = all_pass("protocol/manifest.ttl", "ProtocolTest", data);
    assert!(n == 0 || n == 34, "{n}");
}

#[test]
fn graph_store_protocol() {
    for (part, tests) in [("manifest-indirect.ttl", 9), ("manifest-direct.ttl", 5)] {
        let n = all_pass(
            &format!("graph-store-protocol/{part}"),
            "GraphStoreProtocolTest",
            || store("<http://e/a> <http://e/b> <http://e/c> ."),
        );
        assert!(n == 0 || n == tests, "{n}");
    }
}
