//! Queries and updates to a SPARQL endpoint (SPARQL 1.1 Protocol).

use super::{
    BodyPieces, MAX_REDIRECTS, agent, answered, encrypted, failed, is_redirect, own, redirect,
    said, text, url_of,
};
use jindou::oxrdf::{Term, Triple};
use jindou::results::{AnswerSink, Rows};
use jindou::service::{AnswerError, EndpointAnswer, answer_format};
use jindou::{COMMON_PREFIXES, CancelToken, Error, Result, prefixes_of};
use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource, term};
use jindou_parse::{Format, Limits, Sources};
use sparesults::QueryResultsFormat;
use std::io::BufReader;
use std::time::Duration;
use ureq::Agent;
use ureq::http::{Method, Uri, header};

const TABLES: &str = "application/sparql-results+json, application/sparql-results+xml;q=0.9, text/tab-separated-values;q=0.5";
const GRAPHS: &str = "application/n-triples, text/turtle;q=0.9, application/rdf+xml;q=0.7, application/n-quads;q=0.6, \
                      application/trig;q=0.5, application/ld+json;q=0.3";
/// Number of rows per batch that is passed to the sink.
const ROWS: usize = 256;

/// A SPARQL endpoint.
pub struct SparqlEndpoint {
    url: Uri,
    agent: Agent,
    token: Option<String>,
    /// True if declarations are added for common prefixes that a text uses without declaring them.
    common_prefixes: bool,
}

/// The form of a query's answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerForm {
    Table,
    Graph,
}

impl SparqlEndpoint {
    /// The endpoint at a URL.
    ///
    /// # Errors
    /// If the URL has no host or is invalid, or if a token would be sent over the network unencrypted.
    pub fn new(
        url: &str,
        token: Option<&str>,
        limit: Option<Duration>,
        common_prefixes: bool,
    ) -> Result<Self> {
        let url = url_of(url)?;
        encrypted(&url, token)?;
        Ok(Self {
            agent: agent(limit),
            url,
            token: token.map(str::to_owned),
            common_prefixes,
        })
    }

    /// Sends a query, and writes its answer while it arrives. Returns the number of rows or triples.
    ///
    /// # Errors
    /// The server's reason if it refuses the query; an answer that cannot be parsed; errors of the sink;
    /// [`Error::Cancelled`].
    pub fn query(
        &self,
        query: &str,
        prefixes: &[(String, String)],
        cancel: &CancelToken,
        sink: &mut dyn AnswerSink,
    ) -> Result<u64> {
        let text = self.with_prefixes(query, prefixes);
        let form = form(&text);
        let accept = match form {
            AnswerForm::Table => TABLES,
            AnswerForm::Graph => GRAPHS,
        };
        let (media, body) = self.send("query", text, accept, None, cancel)?;
        if let Some(format) = answer_format(&media)
            && form == AnswerForm::Table
        {
            return self.table(body, &media, format, sink);
        }
        match (form, Format::from_media_type(&media)) {
            (AnswerForm::Graph, Some(format)) => self.graph(body, &media, format, cancel, sink),
            _ => Err(failed(format!(
                "{} answered with {media}, which is not a format for this query's results; is it a SPARQL endpoint?",
                self.url
            ))),
        }
    }

    /// Sends an update request, with `key` as its idempotency key, and returns the server's response text.
    ///
    /// # Errors
    /// The server's reason if it refuses the update; [`Error::Cancelled`].
    pub fn update(
        &self,
        request: &str,
        prefixes: &[(String, String)],
        key: Option<&str>,
        cancel: &CancelToken,
    ) -> Result<String> {
        use std::io::Read;
        let text = self.with_prefixes(request, prefixes);
        let (_, body) = self.send("update", text, "application/json, */*;q=0.5", key, cancel)?;
        let mut all = Vec::new();
        let read = body.take(super::SHOWN).read_to_end(&mut all);
        read.map_err(|e| self.unread(e))?;
        Ok(super::visible(String::from_utf8_lossy(&all).trim()))
    }

    /// Adds declarations of known prefixes that the text uses without declaring them. They are put on the text's first
    /// line, so that line numbers in the server's messages stay correct.
    fn with_prefixes(&self, query: &str, own: &[(String, String)]) -> String {
        let found = prefixes_of(query);
        let declared = |name: &String| found.declared.iter().any(|d| d.0 == *name);
        let known = |name: &String| {
            let common = COMMON_PREFIXES.iter().filter(|_| self.common_prefixes);
            let own = own.iter().map(|(n, i)| (n.as_str(), i.as_str()));
            let mut all = own.chain(common.copied());
            all.find(|p| p.0 == name).map(|p| p.1.to_owned())
        };
        let mut text = String::new();
        for name in found.used.iter().filter(|n| !declared(n)) {
            if let Some(iri) = known(name) {
                text.push_str(&format!("PREFIX {name}: <{iri}> "));
            }
        }
        text + query
    }

    /// Sends a text as the parameter of a form, and returns the media type and the body of the response.
    fn send(
        &self,
        parameter: &'static str,
        body: String,
        accept: &'static str,
        key: Option<&str>,
        cancel: &CancelToken,
    ) -> Result<(String, BufReader<BodyPieces>)> {
        let mut url = self.url.clone();
        let mut method = Method::POST;
        for _ in 0..=MAX_REDIRECTS {
            let same = url.authority() == self.url.authority() && url.scheme() == self.url.scheme();
            let token = self.token.clone().filter(|_| same);
            let (agent, to, how, form, key) = (
                self.agent.clone(),
                url.clone(),
                method.clone(),
                body.clone(),
                key.map(str::to_owned),
            );
            let answer = answered(cancel, move || {
                if how == Method::POST {
                    let mut request = agent.post(&to).header(header::ACCEPT, accept);
                    if let Some(token) = token {
                        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
                    }
                    if let Some(key) = key {
                        request = request.header("idempotency-key", key);
                    }
                    request.send_form([(parameter, form.as_str())])
                } else {
                    let mut request = agent.get(&to).header(header::ACCEPT, accept);
                    if let Some(token) = token {
                        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
                    }
                    request.query(parameter, &form).call()
                }
            })?;
            let mut answer = answer.map_err(|e| self.unasked(&e))?;
            let status = answer.status();
            if is_redirect(status) {
                if status.as_u16() == 303 {
                    if parameter == "update" {
                        return Err(failed(format!("{url} redirects an update ({status})")));
                    }
                    method = Method::GET;
                }
                url = redirect(&url, &answer)?;
                continue;
            }
            if !status.is_success() {
                let said = said(&mut answer);
                let hint = match (status.as_u16(), &self.token) {
                    (401 | 403, None) => "\nhelp: send a token with --token",
                    _ => "",
                };
                let mark = if said.is_empty() { "" } else { ": " };
                return Err(failed(format!("{url} answered {status}{mark}{said}{hint}")));
            }
            let media = text(answer.headers(), header::CONTENT_TYPE).unwrap_or("no media type");
            let media = media.to_owned();
            let pieces = BodyPieces::read(answer.into_body(), cancel)?;
            return Ok((media, BufReader::with_capacity(1 << 16, pieces)));
        }
        Err(failed(format!(
            "{} redirects more than {MAX_REDIRECTS} times",
            self.url
        )))
    }

    fn unasked(&self, e: &ureq::Error) -> Error {
        match e {
            ureq::Error::Timeout(_) => {
                failed(format!("{}: no answer within the time limit", self.url))
            }
            e => failed(format!("cannot reach {}: {e}", self.url)),
        }
    }

    fn unread(&self, e: std::io::Error) -> Error {
        own(e).unwrap_or_else(|e| failed(format!("the answer of {} ended early: {e}", self.url)))
    }

    fn table(
        &self,
        body: BufReader<BodyPieces>,
        media: &str,
        format: QueryResultsFormat,
        sink: &mut dyn AnswerSink,
    ) -> Result<u64> {
        let wrong = |e: AnswerError| match e {
            AnswerError::Xml(jindou_parse::xml::Error::Io(e)) | AnswerError::Io(e) => {
                self.unread(e)
            }
            AnswerError::Wide(wide) => failed(format!("the answer of {} {wide}", self.url)),
            e => failed(format!("the answer of {} cannot be read: {e}", self.url)),
        };
        let charset = Format::charset(media);
        let mut answer = EndpointAnswer::open(format, body, "", charset).map_err(wrong)?;
        if let Some(value) = answer.boolean() {
            sink.boolean(value)?;
            return sink.finish().map(|()| 1);
        }
        let names = answer.variables().to_vec();
        sink.solutions(&names)?;
        let mut rows = Rows::default();
        rows.clear(names.len());
        let mut count = 0;
        while let Some(cells) = answer.row().map_err(wrong)? {
            for cell in cells {
                if let Some(cell) = cell {
                    rows.bytes.extend_from_slice(cell);
                }
                rows.end_cell();
            }
            rows.rows += 1;
            count += 1;
            if rows.rows == ROWS {
                sink.rows(&rows)?;
                rows.clear(names.len());
            }
        }
        sink.rows(&rows)?;
        sink.finish()?;
        Ok(count)
    }

    fn graph(
        &self,
        body: BufReader<BodyPieces>,
        media: &str,
        format: Format,
        cancel: &CancelToken,
        sink: &mut dyn AnswerSink,
    ) -> Result<u64> {
        sink.graph()?;
        let limits = Limits {
            cancel: cancel.clone(),
            ..Limits::default()
        };
        let source = Sources::builder()
            .stream(self.url.to_string(), body, None, format, None)
            .charset(Format::charset(media))
            .all_labels()
            .limits(limits)
            .build()?;
        let mut triples = TripleSink {
            sink,
            count: 0,
            failed: false,
        };
        let run = source.run(0, 1, &mut triples, &Progress::default());
        let (count, own) = (triples.count, triples.failed);
        run.map_err(|e| match e {
            e if own => e,
            Error::Io { source, .. } => self.unread(source),
            e @ (Error::Cancelled | Error::Timeout(_)) => e,
            e => failed(format!("the answer of {} cannot be read: {e}", self.url)),
        })?;
        sink.finish()?;
        Ok(count)
    }
}

/// Passes the triples of an answer on to `sink`.
struct TripleSink<'s> {
    sink: &'s mut dyn AnswerSink,
    count: u64,
    /// True if the sink returned an error. That error is then reported instead of one of the endpoint's answer.
    failed: bool,
}

impl QuadSink for TripleSink<'_> {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        for &[subject, predicate, object, _] in &batch.quads {
            let term = |span| term::decode(batch.term(span));
            let triple = match (term(subject), term(predicate), term(object)) {
                (Some(Term::NamedNode(s)), Some(Term::NamedNode(p)), Some(o)) => {
                    Triple::new(s, p, o)
                }
                (Some(Term::BlankNode(s)), Some(Term::NamedNode(p)), Some(o)) => {
                    Triple::new(s, p, o)
                }
                _ => return Err(Error::Internal("a parsed triple is none".into())),
            };
            let handed = self.sink.triple(&triple);
            self.failed |= handed.is_err();
            handed?;
            self.count += 1;
        }
        Ok(())
    }
}

/// The form of a query. If this program cannot parse the query, since the server may know extensions of SPARQL, its
/// first keyword that names a form decides.
fn form(query: &str) -> AnswerForm {
    if let Ok(parsed) = jindou::parse_query(query) {
        use jindou::algebra::Query;
        return match parsed {
            Query::Construct { .. } | Query::Describe { .. } => AnswerForm::Graph,
            Query::Select { .. } | Query::Ask { .. } => AnswerForm::Table,
        };
    }
    let lines = query
        .lines()
        .map(|l| match l.trim_start().starts_with('#') {
            true => "",
            false => l,
        });
    let words = lines.flat_map(|l| l.split(|c: char| !c.is_alphanumeric()));
    for word in words {
        match word.to_ascii_uppercase().as_str() {
            "SELECT" | "ASK" => return AnswerForm::Table,
            "CONSTRUCT" | "DESCRIBE" => return AnswerForm::Graph,
            _ => {}
        }
    }
    AnswerForm::Table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_says_what_is_accepted() {
        for (text, graph) in [
            ("SELECT * { ?s ?p ?o }", false),
            (
                "PREFIX construct: <http://e/> ASK { ?s construct:p 1 }",
                false,
            ),
            ("# SELECT\nPREFIX a: <http://a/> describe <x>", true),
            ("PREFIX a: <http://a/> CONSTRUCT WHERE { ?s ?p ?o }", true),
            (
                "define input:inference 'x' CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }",
                true,
            ),
            ("define input:inference 'x' SELECT * { ?s ?p ?o }", false),
        ] {
            assert_eq!(form(text) == AnswerForm::Graph, graph, "{text}");
        }
    }

    #[test]
    fn prefixes_are_sent_where_they_are_needed() {
        let e = SparqlEndpoint::new("http://localhost:1/query", Some("t"), None, true).unwrap();
        let own = [("e".to_owned(), "http://e/".to_owned())];
        assert_eq!(
            e.with_prefixes(
                "PREFIX skos: <http://s/>\nASK { e:a foaf:b skos:c, no:x }",
                &own
            ),
            "PREFIX e: <http://e/> PREFIX foaf: <http://xmlns.com/foaf/0.1/> PREFIX skos: <http://s/>\nASK { e:a foaf:b skos:c, no:x }"
        );
        assert!(SparqlEndpoint::new("http://example.org/", Some("t"), None, true).is_err());
        assert!(SparqlEndpoint::new("https://example.org/", Some("t"), None, true).is_ok());
        assert!(SparqlEndpoint::new("ftp://example.org/", None, None, true).is_err());
    }
}
