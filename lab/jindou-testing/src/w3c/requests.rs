//! Manifests of the SPARQL 1.1 Protocol and of the Graph Store Protocol: their tests consist of requests and expected
//! answers.

use super::manifest::{MF, graph_of, subject_of};
use super::{quads_of, same};
use oxrdf::vocab::rdf;
use oxrdf::{Graph, NamedNode, NamedOrBlankNode, Term};
use oxrdfio::RdfFormat;
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};
use std::path::Path;

const HT: &str = "http://www.w3.org/2011/http#";
const HTS: &str = "http://www.w3.org/2011/http-statusCodes#";
const CNT: &str = "http://www.w3.org/2011/content#";

/// One test: a sequence of requests.
#[derive(Debug)]
pub struct Test {
    /// IRI of the test, for reports.
    pub name: String,
    /// Requests, to be sent in this order.
    pub exchanges: Vec<Exchange>,
}

/// A request and its expected answer.
#[derive(Debug)]
pub struct Exchange {
    /// The request's method.
    pub method: String,
    /// The path of the request. It may contain names for locations that earlier answers returned; [`Self::target`]
    /// converts it to a path of the server under test.
    pub path: String,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// The body, in the character encoding that the headers name.
    pub body: Vec<u8>,
    /// The answer's status must be one of these.
    statuses: Vec<String>,
    boolean: Option<String>,
    /// The answer must contain this RDF document, in this format.
    document: Option<(RdfFormat, Vec<u8>)>,
    /// The name by which later paths refer to the `Location` header of this request's answer.
    pub location: Option<String>,
}

/// The parts of an answer that are compared.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// The value of the header `Content-Type`.
    pub content_type: &'a str,
    /// The whole body.
    pub body: &'a [u8],
}

impl Exchange {
    /// Compares an answer with the expected one. The error describes the difference.
    pub fn check(&self, answer: &Answer<'_>) -> Result<(), String> {
        let text = String::from_utf8_lossy(answer.body);
        if !self.statuses.iter().any(|s| is_expected(answer.status, s)) {
            return Err(format!(
                "status {} where {:?} is expected: {text}",
                answer.status, self.statuses
            ));
        }
        if let Some(want) = &self.boolean {
            let format = QueryResultsFormat::from_media_type(answer.content_type);
            let parser = QueryResultsParser::from_format(format.ok_or("no boolean")?);
            match parser.for_slice(answer.body) {
                Ok(SliceQueryResultsParserOutput::Boolean(b)) if b.to_string() == *want => {}
                _ => return Err(format!("{text} where {want} is expected")),
            }
        }
        if let Some((format, want)) = &self.document {
            let got = RdfFormat::from_media_type(answer.content_type);
            let got = quads_of(answer.body, got.ok_or("no RDF")?)?;
            if !same(&got, &quads_of(want, *format)?) {
                return Err(format!("another graph: {text}"));
            }
        }
        Ok(())
    }

    /// The path on the server under test, with `/store`, `/query` or `/update` in place of the suite's address. An
    /// error for unknown paths.
    pub fn target(&self, path: &str) -> Result<String, String> {
        if let Some(rest) = path.strip_prefix("/gsp") {
            return Ok(format!("/store{rest}"));
        }
        let rest = path
            .strip_prefix("/sparql/")
            .ok_or("no path of the suite")?;
        let wide: Vec<u8> = "CLEAR".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let updates = rest.contains("update=")
            || [b"update=".as_slice(), b"CLEAR", &wide]
                .iter()
                .any(|start| self.body.starts_with(start))
            || self.headers.iter().any(|h| h.1.contains("sparql-update"));
        Ok(format!(
            "/{}{rest}",
            if updates { "update" } else { "query" }
        ))
    }
}

fn is_expected(status: u16, expected: &str) -> bool {
    match expected {
        "StatusCode2xx" => (200..300).contains(&status),
        "StatusCode3xx" => (300..400).contains(&status),
        "StatusCode4xx" => (400..500).contains(&status),
        "OK" => status == 200,
        "Created" => status == 201,
        "NoContent" => status == 204,
        "NotFound" => status == 404,
        _ => false,
    }
}

/// Reads all tests of a kind in a manifest, sorted by name.
pub fn read(path: &Path, kind: &str) -> Result<Vec<Test>, String> {
    let manifest = Manifest(graph_of(path, "http://example.org/manifest")?);
    let kind = NamedNode::new_unchecked(format!("{MF}{kind}"));
    let found = (manifest.0).subjects_for_predicate_object(rdf::TYPE, &kind);
    let mut nodes: Vec<_> = found.map(|s| s.into_owned()).collect();
    nodes.sort_by_key(ToString::to_string);
    let test = |node: &NamedOrBlankNode| {
        let test = manifest.test(node);
        test.map_err(|why| format!("{}: {node}: {why}", path.display()))
    };
    nodes.iter().map(test).collect()
}

struct Manifest(Graph);

impl Manifest {
    fn all(&self, node: &NamedOrBlankNode, name: &str) -> Vec<Term> {
        let name = NamedNode::new_unchecked(name);
        let found = self.0.objects_for_subject_predicate(node, &name);
        found.map(|t| t.into_owned()).collect()
    }

    fn node(&self, node: &NamedOrBlankNode, name: &str) -> Option<NamedOrBlankNode> {
        subject_of(self.all(node, name).first()?.as_ref())
    }

    fn text(&self, node: &NamedOrBlankNode, name: &str) -> Option<String> {
        match self.all(node, name).into_iter().next()? {
            Term::Literal(l) => Some(l.value().to_owned()),
            _ => None,
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

    fn headers(&self, node: &NamedOrBlankNode) -> Result<Vec<(String, String)>, String> {
        let one = |h: &NamedOrBlankNode, name: &str| {
            let text = self.text(h, &format!("{HT}{name}"));
            text.ok_or_else(|| format!("a header without {name}"))
        };
        self.list(node, &format!("{HT}headers"))
            .iter()
            .map(|h| Ok((one(h, "fieldName")?, one(h, "fieldValue")?)))
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

    fn test(&self, node: &NamedOrBlankNode) -> Result<Test, String> {
        let action = self.node(node, &format!("{MF}action")).ok_or("no action")?;
        let requests = self.list(&action, &format!("{HT}requests"));
        let exchanges: Result<Vec<_>, String> = requests.iter().map(|r| self.exchange(r)).collect();
        let exchanges = exchanges?;
        if exchanges.is_empty() {
            return Err("no requests".into());
        }
        Ok(Test {
            name: node.to_string(),
            exchanges,
        })
    }

    fn exchange(&self, request: &NamedOrBlankNode) -> Result<Exchange, String> {
        let text = |name: &str| {
            let text = self.text(request, &format!("{HT}{name}"));
            text.ok_or_else(|| format!("a request without {name}"))
        };
        let response = self.node(request, &format!("{HT}resp"));
        let response = response.ok_or("a request without a response")?;
        let mut statuses = Vec::new();
        for status in self.all(&response, &format!("{MF}expectedStatus")) {
            let iri = status.to_string();
            let name = iri.trim_matches(['<', '>']).strip_prefix(HTS);
            statuses.push(name.ok_or_else(|| format!("what is {iri}?"))?.to_owned());
        }
        if statuses.is_empty() {
            return Err("a response without a status".into());
        }
        let headers = self.headers(&response)?;
        let media = headers.iter().find(|h| h.0 == "content-type");
        let document = match (media, self.body(&response)) {
            (Some((_, media)), Some(body)) => {
                let format = RdfFormat::from_media_type(media);
                Some((format.ok_or_else(|| format!("what is {media}?"))?, body))
            }
            _ => None,
        };
        Ok(Exchange {
            method: text("methodName")?,
            path: text("absolutePath")?,
            headers: self.headers(request)?,
            body: self.body(request).unwrap_or_default(),
            statuses,
            boolean: self.text(&response, &format!("{MF}expectedBoolean")),
            document,
            location: self.text(&response, &format!("{MF}expectedLocation")),
        })
    }
}
