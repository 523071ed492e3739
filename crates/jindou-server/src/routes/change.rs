//! `/store`: writes by the SPARQL 1.1 Graph Store HTTP Protocol (sections 5.3 to 5.7). Each request is one transaction.

use super::input::{Parameters, in_utf8, media_and_charset, utf8};
use super::multipart::{self, FormPart, FormParts};
use super::update::reported;
use crate::conditions::{self, Conditions};
use crate::problem::Problem;
use crate::run::Connection;
use crate::shared::AppState;
use crate::write::{LiveUpdate, refusal};
use axum::body::Body;
use axum::extract::Request;
use http::header::{CONTENT_RANGE, CONTENT_TYPE, ETAG, LOCATION};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use jindou::parse::{Format, Limits, Replacement, Sources};
use jindou::{Condition, Database, GraphName, Progress, UpdateOptions, UpdateReport};
use std::sync::Arc;

/// Largest number of documents in one body.
const MOST_DOCUMENTS: usize = 1 << 16;
/// Bytes charged for a document in addition to its text.
const DOCUMENT: u64 = 1 << 10;

/// The report; if skipping was allowed, with the skipped statements.
fn with_skips(mut report: UpdateReport, source: &Sources, lenient: bool) -> UpdateReport {
    report.skipped = lenient.then(|| source.skip_report());
    report
}

/// One RDF document of a body.
struct BodyDocument {
    /// The document's name in messages.
    name: String,
    text: Vec<u8>,
    format: Format,
    /// The encoding that its Content-Type declares.
    charset: Option<String>,
}

type Documents = Vec<BodyDocument>;

/// Longest name of a file in messages, in characters.
const LONGEST_NAME: usize = 200;
/// Name in messages of a document without a name.
const NAMELESS: &str = "<body>";

/// Changes a graph. Without a graph (POST to the store itself) the body's statements become a new graph or, in a format
/// with named graphs, are added to the graphs that they name. `base` is the address of the request, against which
/// relative IRIs are resolved.
pub(super) async fn answer(
    shared: &Arc<AppState>,
    connection: &Connection,
    parameters: &Parameters,
    graph: Option<GraphName>,
    base: String,
    request: Request,
) -> Result<Response<Body>, Problem> {
    if let Some(problem) = refusal(shared) {
        return Err(problem);
    }
    let (head, body) = request.into_parts();
    if head.headers.contains_key(CONTENT_RANGE) {
        return Err(Problem::bad_request(
            "a graph cannot be written in part: Content-Range is not supported",
        ));
    }
    let conditions = Conditions::from_headers(&head.headers)?;
    let change = Change {
        shared,
        connection,
        parameters,
        condition: conditions.on(graph.clone()),
        conditions,
        graph,
        base,
        head,
    };
    if change.head.method == Method::DELETE {
        return change.delete().await;
    }
    let declared = media_and_charset(&change.head.headers)?;
    if change.head.method == Method::PATCH {
        let (media, charset) = declared.unwrap_or_default();
        return change.patch(&media, charset.as_deref(), body).await;
    }
    let read = BodyReading::from_headers(declared, &change.head.headers)?;
    let lenient = parameters.switch("lenient")?;
    if change.head.method == Method::PUT {
        return change.put(&read, body, lenient).await;
    }
    change.post(&read, body, lenient).await
}

/// A request to change a graph, without its body.
struct Change<'a> {
    shared: &'a Arc<AppState>,
    connection: &'a Connection,
    parameters: &'a Parameters,
    graph: Option<GraphName>,
    conditions: Conditions,
    condition: Condition,
    /// The address of the request, for relative IRIs.
    base: String,
    head: Parts,
}

impl Change<'_> {
    fn admit(&self) -> Result<LiveUpdate, Problem> {
        let shown = format!("{} {}", self.head.method, self.head.uri);
        let timeout = self.parameters.timeout()?;
        LiveUpdate::admit(self.shared, self.connection, &shown, timeout)?
            .named(self.connection, &self.head)
    }

    /// DELETE: removes the graph.
    async fn delete(self) -> Result<Response<Body>, Problem> {
        let Some(graph) = self.graph.clone() else {
            return Err(nameless());
        };
        let update = self.admit()?;
        let is_default = graph == GraphName::Default;
        let name = graph.clone();
        let report = update
            .run(move |db, mut options| {
                options.condition = Some(self.condition);
                db.clear_graph(&graph, &options)
            })
            .await?;
        if report.graph_was_there == Some(false) && !is_default {
            return Err(missing(&name));
        }
        Ok(done(StatusCode::OK, &report))
    }

    /// PATCH: runs a SPARQL update that may only change the graph.
    async fn patch(
        self,
        media: &str,
        charset: Option<&str>,
        body: Body,
    ) -> Result<Response<Body>, Problem> {
        if self.graph.is_none() {
            return Err(nameless());
        }
        if media != "application/sparql-update" {
            return Err(Problem::media_type(
                "PATCH needs a body of application/sparql-update",
            ));
        }
        in_utf8(charset)?;
        let update = self.admit()?;
        let request = utf8(update.body(body, &self.head.headers).await?)?;
        update.show(&request);
        let report = update
            .run(move |db, mut options| {
                (options.only, options.base) = (self.graph, Some(self.base));
                options.condition = Some(self.condition);
                db.update(&request, &options)
            })
            .await?;
        Ok(done(StatusCode::OK, &report))
    }

    /// PUT: replaces the graph by the body's statements.
    async fn put(
        self,
        read: &BodyReading,
        body: Body,
        lenient: bool,
    ) -> Result<Response<Body>, Problem> {
        let Some(graph) = self.graph.clone() else {
            return Err(nameless());
        };
        let update = self.admit()?;
        let documents = read.documents(&update, body, &self.head.headers).await?;
        let report = update
            .run(move |db, mut options| {
                options.condition = Some(self.condition);
                let source = sources(documents, &graph, &self.base, lenient, db, &options)?;
                let read = Replacement::new(&source, &source, "the graph");
                let report = db.replace_graph(&graph, &read, &options, &Progress::default());
                Ok(with_skips(report?, &source, lenient))
            })
            .await?;
        Ok(made(&report, None))
    }

    /// POST: adds the body's statements to the graph.
    async fn post(
        self,
        read: &BodyReading,
        body: Body,
        lenient: bool,
    ) -> Result<Response<Body>, Problem> {
        let update = self.admit()?;
        let documents = read.documents(&update, body, &self.head.headers).await?;
        let fresh = self.graph.is_none();
        let dataset = |d: &BodyDocument| matches!(d.format, Format::NQuads | Format::TriG);
        if fresh && documents.iter().all(dataset) {
            return self.post_dataset(update, documents, lenient).await;
        }
        let graph = self.graph.unwrap_or_else(|| {
            let number = update.graph_number();
            let base = self.base.trim_end_matches('/');
            GraphName::Named(format!("{base}/{number:016x}"))
        });
        let location = match &graph {
            GraphName::Named(iri) if fresh => Some(iri.clone()),
            _ => None,
        };
        // A request for a new graph is sent to the store's address, so its conditions are about the whole store.
        let is_new = fresh && self.conditions.is_empty();
        let condition = match is_new {
            true => Condition::on(graph.clone()),
            false => self.condition,
        };
        let base = self.base;
        let mut report = update
            .run(move |db, mut options| {
                let source = sources(documents, &graph, &base, lenient, db, &options)?;
                (options.only, options.condition) = (Some(graph), Some(condition));
                let report = db.insert(&source, &options, &Progress::default());
                Ok(with_skips(report?, &source, lenient))
            })
            .await?;
        report.revision = report.revision.filter(|_| is_new || !fresh);
        Ok(made(&report, location))
    }

    /// POST of a dataset: adds statements to the graphs that they name.
    async fn post_dataset(
        self,
        update: LiveUpdate,
        documents: Documents,
        lenient: bool,
    ) -> Result<Response<Body>, Problem> {
        let report = update
            .run(move |db, mut options| {
                options.condition = Some(self.condition);
                let graph = GraphName::Default;
                let source = sources(documents, &graph, &self.base, lenient, db, &options)?;
                let report = db.insert(&source, &options, &Progress::default());
                Ok(with_skips(report?, &source, lenient))
            })
            .await?;
        Ok(done(StatusCode::OK, &report))
    }
}

fn nameless() -> Problem {
    Problem::bad_request("name the graph: 'default', 'graph=IRI', or its own address below /store/")
}

fn missing(graph: &GraphName) -> Problem {
    let name = match graph {
        GraphName::Named(iri) => format!("<{iri}>"),
        GraphName::Default => "by default".into(),
    };
    Problem::new(
        StatusCode::NOT_FOUND,
        "no-graph",
        format!("no graph {name}"),
    )
}

fn done(status: StatusCode, report: &UpdateReport) -> Response<Body> {
    let mut response = reported(report);
    *response.status_mut() = status;
    if let Some(revision) = report.revision {
        let tag = conditions::content(revision);
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// The response to a successful write: 201 if the graph did not exist before, otherwise 200.
fn made(report: &UpdateReport, location: Option<String>) -> Response<Body> {
    let new = report.graph_was_there == Some(false) || location.is_some();
    let mut response = done(
        if new {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        },
        report,
    );
    if let Some(at) = location.and_then(|l| HeaderValue::try_from(l).ok()) {
        response.headers_mut().insert(LOCATION, at);
    }
    response
}

/// Kind of a body: one document (with its format and encoding), or several (with their boundary).
enum BodyReading {
    One(Format, Option<String>),
    Multipart(String),
}

impl BodyReading {
    fn from_headers(
        declared: Option<(String, Option<String>)>,
        headers: &http::HeaderMap,
    ) -> Result<Self, Problem> {
        let Some((media, charset)) = declared else {
            return Err(Problem::media_type(
                "name the RDF format in Content-Type, for example with curl -H 'Content-Type: text/turtle'",
            ));
        };
        if media == "multipart/form-data" {
            let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
            return value
                .and_then(multipart::boundary)
                .map(Self::Multipart)
                .ok_or_else(|| Problem::bad_request("multipart/form-data without a boundary"));
        }
        let format = format(&media)?;
        Ok(Self::One(format, charset_of(format, charset)?))
    }

    /// Reads the documents of a request's body.
    async fn documents(
        &self,
        update: &LiveUpdate,
        body: Body,
        headers: &http::HeaderMap,
    ) -> Result<Documents, Problem> {
        let boundary = match self {
            Self::One(format, charset) => {
                let text = update.document(body, headers).await?;
                return Ok(vec![BodyDocument {
                    name: NAMELESS.into(),
                    text,
                    format: *format,
                    charset: charset.clone(),
                }]);
            }
            Self::Multipart(boundary) => boundary,
        };
        let body = update.body(body, headers).await?;
        // Parsing a long body must not delay other requests of this thread.
        tokio::task::block_in_place(|| {
            let mut documents = Documents::new();
            for part in FormParts::parse(&body, boundary)? {
                let mut part = part?;
                let format = Self::format_of(&part)?;
                let charset = charset_of(format, part.charset.take())?;
                if documents.len() >= MOST_DOCUMENTS {
                    return Err(Problem::new(
                        StatusCode::BAD_REQUEST,
                        "query-limit",
                        format!(
                            "the body has more than the {MOST_DOCUMENTS} parts allowed; send several requests, or longer documents"
                        ),
                    ));
                }
                let name = name_of(part.file_name.take());
                update.hold((part.content.len() + name.len()) as u64 + DOCUMENT)?;
                documents.push(BodyDocument {
                    name,
                    text: part.content.to_vec(),
                    format,
                    charset,
                });
            }
            Ok(documents)
        })
    }

    /// The format of a part, by its media type or the extension of its file name.
    fn format_of(part: &FormPart<'_>) -> Result<Format, Problem> {
        let by_name = part
            .file_name
            .as_deref()
            .and_then(|n| Format::from_extension(n.rsplit_once('.')?.1));
        match part.media_type.as_deref() {
            Some(media) => match Format::of_document(media, by_name) {
                Some(format) => Ok(format),
                None => format(media),
            },
            None => by_name.ok_or_else(|| {
                Problem::media_type(
                    "a part has no Content-Type and no file name that tells the format",
                )
            }),
        }
    }
}

/// The name of a document in messages: that of its file, truncated if it is long.
fn name_of(file: Option<String>) -> String {
    match file {
        Some(mut name) if !name.is_empty() => {
            if let Some((end, _)) = name.char_indices().nth(LONGEST_NAME) {
                name.truncate(end);
            }
            name
        }
        _ => NAMELESS.into(),
    }
}

/// The encoding that was declared for a document, if its format allows another one than UTF-8 (only RDF/XML does).
fn charset_of(format: Format, charset: Option<String>) -> Result<Option<String>, Problem> {
    if format == Format::RdfXml {
        return Ok(charset);
    }
    in_utf8(charset.as_deref())?;
    Ok(None)
}

fn format(media: &str) -> Result<Format, Problem> {
    Format::from_media_type(media).ok_or_else(|| {
        Problem::media_type(format!(
            "{media} is not a supported RDF format; supported are text/turtle, application/n-triples, application/rdf+xml, application/ld+json, application/n-quads and application/trig"
        ))
    })
}

/// The documents of a body as one source. Blank nodes are new, and different documents have different ones.
fn sources(
    documents: Documents,
    graph: &GraphName,
    base: &str,
    lenient: bool,
    db: &Database,
    options: &UpdateOptions,
) -> jindou::Result<Sources> {
    let into = match graph {
        GraphName::Named(iri) => Some(iri.clone()),
        GraphName::Default => None,
    };
    let mut builder = Sources::builder()
        .base_iri(Some(base.to_owned()))
        .graph(into)
        .lenient(lenient)
        .contexts(options.documents.clone())
        .limits(Limits {
            cancel: options.token(),
            memory: match &options.memory {
                Some(memory) => memory.clone(),
                None => db.runtime().memory().clone(),
            },
        })
        .documents_from(Database::document_number());
    for BodyDocument {
        name,
        text,
        format,
        charset,
    } in documents
    {
        builder = builder.text(name, text, format).charset(charset);
    }
    builder.build()
}
