//! One call of an endpoint: sends the request, and reads the answer as it arrives.
//!
//! A separate thread talks to the endpoint, so that the query's thread can check its time limit and its cancel token
//! while it waits. A channel of a few pieces of the body connects them. If the query ends early, the thread ends when
//! it next sends a piece.

use super::allow::{AllowList, NotAllowed, UrlTarget};
use super::answer::AnswerError;
use super::rows::{EndpointAnswer, answer_format};
use super::tls::tls_config;
use jindou_engine::{ServiceCaller, TakeRow};
use jindou_model::{CancelToken, Error, Resource, Result, iri};
use jindou_parse::Format;
use jindou_plan::oxiri::Iri;
use oxrdf::BlankNode;
use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use ureq::http::{Method, StatusCode, Uri, header};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// Size of the pieces of the body, in bytes, and the capacity of the channel, in pieces.
const PIECE: usize = 64 << 10;
const PIECES: usize = 4;
/// Time between two checks of the time limit and the cancel token while a query waits.
const CHECK_EVERY: Duration = Duration::from_millis(20);
/// Longest wait for a connection, and for the next bytes. Without a limit, a thread whose query has ended could wait
/// for ever.
const CONNECT: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(600);
/// Time limits from this on are treated as none: the HTTP client adds the limit to the current time, which could
/// overflow.
const FOREVER: Duration = Duration::from_secs(1 << 32);
/// Largest number of redirects that are followed.
const MAX_REDIRECTS: usize = 5;
/// Largest number of bytes between two rows, since the parser keeps a whole row in memory.
const ROW: u64 = 64 << 20;
const ACCEPT: &str = "application/sparql-results+json, application/sparql-results+xml;q=0.9, text/tab-separated-values;q=0.5";

/// HTTP client that sends queries to the endpoints of an allow-list.
#[derive(Clone, Debug)]
pub struct HttpCaller {
    list: Arc<AllowList>,
    agent: ureq::Agent,
}

impl HttpCaller {
    /// A client for these endpoints. TLS certificates are checked against this machine's root certificates.
    #[must_use]
    pub fn new(list: AllowList) -> Self {
        let list = Arc::new(list);
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // Redirects are followed by the code below, which checks each target against the list.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .tls_config(tls_config())
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(SILENCE))
            .timeout_recv_response(None)
            .user_agent(concat!("jindou/", env!("CARGO_PKG_VERSION")))
            .build();
        let resolver = AllowedResolver {
            list: Arc::clone(&list),
            names: DefaultResolver::default(),
        };
        let agent = ureq::Agent::with_parts(config, DefaultConnector::default(), resolver);
        Self { list, agent }
    }
}

/// Resolves names to addresses that may be contacted. The connection uses one of these addresses, so resolving the name
/// a second time cannot bypass the check.
#[derive(Debug)]
struct AllowedResolver {
    list: Arc<AllowList>,
    names: DefaultResolver,
}

impl Resolver for AllowedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> std::result::Result<ResolvedSocketAddrs, ureq::Error> {
        let other = |e: NotAllowed| ureq::Error::Other(Box::new(e));
        let target = self.list.check(uri).map_err(other)?;
        let found = self.names.resolve(uri, config, timeout)?;
        let mut kept = self.empty();
        let mut refused = None;
        for at in found.iter() {
            match self.list.check_address(&target, at) {
                Ok(()) => kept.push(*at),
                Err(e) => refused = Some(e),
            }
        }
        match refused {
            Some(e) if kept.is_empty() => Err(other(e)),
            _ => Ok(kept),
        }
    }
}

/// Message from the connection's thread: first the media type, then pieces of the body.
pub(crate) enum ReplyPiece {
    Head(String),
    /// A piece of the body; an empty one marks the end.
    Bytes(Vec<u8>),
    Failed(EndpointFailure),
}

/// Reason why an endpoint gave no answer.
pub(crate) struct EndpointFailure {
    pub message: String,
    /// False if the endpoint must not be contacted at all.
    pub allowed: bool,
}

impl From<String> for EndpointFailure {
    fn from(message: String) -> Self {
        Self {
            message,
            allowed: true,
        }
    }
}

impl From<&str> for EndpointFailure {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<NotAllowed> for EndpointFailure {
    fn from(e: NotAllowed) -> Self {
        Self {
            message: e.to_string(),
            allowed: false,
        }
    }
}

impl EndpointFailure {
    fn into_error(self, endpoint: &str) -> Error {
        Error::Service {
            endpoint: endpoint.to_owned(),
            message: self.message,
            allowed: self.allowed,
        }
    }
}

impl ServiceCaller for HttpCaller {
    fn call(
        &self,
        endpoint: &str,
        query: &str,
        variables: &[&str],
        cancel: &CancelToken,
        row: TakeRow<'_>,
    ) -> Result<()> {
        let failed = |failure: EndpointFailure| failure.into_error(endpoint);
        let url: Uri = endpoint
            .parse()
            .map_err(|_| failed(NotAllowed::NoUrl.into()))?;
        self.list.check(&url).map_err(|e| failed(e.into()))?;
        let ask = RequestKind::Query(query.to_owned());
        let mut body = self.start(url, ask, cancel)?;
        let (since_row, why) = (Rc::clone(&body.since_row), Rc::clone(&body.why));
        // If reading the body failed, the body's error is more precise than the parser's.
        let explain = |e: AnswerError| {
            let why = why
                .take()
                .unwrap_or_else(|| EndReason::Said(describe_error(&e).into()));
            why.error(endpoint)
        };
        let (format, charset) = match body.next() {
            Ok(Some(ReplyPiece::Head(media))) => {
                let format = answer_format(&media).ok_or_else(|| {
                    failed(format!("it answered with {media}, which is not a result format").into())
                })?;
                (format, Format::charset(&media))
            }
            Ok(Some(ReplyPiece::Failed(failure))) => return Err(failed(failure)),
            Ok(_) => return Err(failed("the connection ended before an answer".into())),
            Err(e) => return Err(e),
        };
        // A label identifies a blank node within one answer only, so the labels of each answer get a prefix of their
        // own.
        let own = BlankNode::default();
        let named = |names: Vec<&str>| -> Vec<Option<usize>> {
            let named: HashMap<&str, usize> = names.into_iter().zip(0..).collect();
            variables.iter().map(|v| named.get(v).copied()).collect()
        };
        let own = format!("{}x", own.as_str());
        let mut answer = EndpointAnswer::open(format, body, &own, charset).map_err(explain)?;
        if answer.boolean().is_some() {
            return Err(failed(
                "it answered with true or false, not with rows".into(),
            ));
        }
        let mut cells: Vec<Option<Vec<u8>>> = vec![None; variables.len()];
        let places = named(answer.variables().iter().map(String::as_str).collect());
        while let Some(terms) = answer.row().map_err(explain)? {
            since_row.set(0);
            for (cell, place) in cells.iter_mut().zip(&places) {
                *cell = place.and_then(|place| terms.get_mut(place)?.take());
            }
            row(&cells)?;
        }
        Ok(())
    }
}

/// The reason why an answer could not be read, for a message that names the endpoint.
fn describe_error(e: &AnswerError) -> String {
    match e {
        AnswerError::Xml(jindou_parse::xml::Error::Syntax(fault)) => {
            format!("its answer cannot be read, {fault}")
        }
        AnswerError::Json(fault) => format!("its answer cannot be read: {fault}"),
        e => e.to_string(),
    }
}

/// Kind of the request.
pub(crate) enum RequestKind {
    /// POST this query and expect rows.
    Query(String),
    /// GET a document in one of these media types.
    Document(&'static str),
}

impl HttpCaller {
    /// The list of endpoints that may be contacted.
    pub(crate) fn list(&self) -> &AllowList {
        &self.list
    }

    /// Starts a thread that sends the request; returns the body, which yields what the thread receives.
    pub(crate) fn start<'c>(
        &self,
        url: Uri,
        ask: RequestKind,
        cancel: &'c CancelToken,
    ) -> Result<Body<'c>> {
        let (send, receive) = sync_channel(PIECES);
        // The query reports its timeout itself. The thread's limit is a second longer, so that the thread ends soon
        // after.
        let left = cancel.left().filter(|left| *left < FOREVER);
        let limit = left.map(|left| left + Duration::from_secs(1));
        let caller = self.clone();
        std::thread::Builder::new()
            .name("service".into())
            .spawn(move || {
                if let Err(failure) = caller.talk(url, &ask, limit, &send) {
                    // If the receiver was dropped, the failure is ignored.
                    let _ = send.send(ReplyPiece::Failed(failure));
                }
            })
            .map_err(|e| {
                let why = format!("cannot start a thread to call an endpoint: {e}");
                Error::limit(Resource::Threads, why)
            })?;
        Ok(Body {
            parts: receive,
            cancel,
            piece: vec![],
            at: 0,
            ended: false,
            since_row: Rc::new(Cell::new(0)),
            why: Rc::new(Cell::new(None)),
        })
    }

    /// Sends the request and passes on the answer, until it ends or the receiver was dropped.
    fn talk(
        &self,
        mut url: Uri,
        ask: &RequestKind,
        limit: Option<Duration>,
        send: &SyncSender<ReplyPiece>,
    ) -> std::result::Result<(), EndpointFailure> {
        let accept = match ask {
            RequestKind::Query(_) => ACCEPT,
            RequestKind::Document(types) => types,
        };
        let mut method = match ask {
            RequestKind::Query(_) => Method::POST,
            RequestKind::Document(_) => Method::GET,
        };
        for _ in 0..=MAX_REDIRECTS {
            let answer = if let RequestKind::Query(query) = ask
                && method == Method::POST
            {
                self.agent
                    .post(&url)
                    .config()
                    .timeout_global(limit)
                    .build()
                    .header(header::ACCEPT, accept)
                    .send_form([("query", query.as_str())])
            } else {
                self.agent
                    .get(&url)
                    .config()
                    .timeout_global(limit)
                    .build()
                    .header(header::ACCEPT, accept)
                    .call()
            };
            let mut answer = answer.map_err(|e| match e {
                ureq::Error::Other(e) => match e.downcast::<NotAllowed>() {
                    Ok(e) => EndpointFailure::from(*e),
                    Err(e) => e.to_string().into(),
                },
                e => e.to_string().into(),
            })?;
            let text = |name| answer.headers().get(name).and_then(|v| v.to_str().ok());
            match answer.status() {
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT
                | StatusCode::SEE_OTHER => {
                    let to = text(header::LOCATION)
                        .ok_or("it redirects without naming a destination")?;
                    let next = target_of(&url, to)
                        .ok_or_else(|| format!("it redirects to {to}, which is not a URL"))?;
                    self.list.check(&next).map_err(|e| EndpointFailure {
                        message: format!("it redirects to {next}: {e}"),
                        allowed: false,
                    })?;
                    if answer.status() == StatusCode::SEE_OTHER {
                        method = Method::GET;
                    }
                    url = next;
                }
                status if status.is_success() => {
                    let media = text(header::CONTENT_TYPE).unwrap_or("an unnamed media type");
                    if send.send(ReplyPiece::Head(media.to_owned())).is_err() {
                        return Ok(());
                    }
                    return pass_on(answer.body_mut().as_reader(), send);
                }
                status => {
                    let mut said = Vec::new();
                    // The message includes the beginning of the endpoint's explanation, as far as it can be read.
                    let _ = answer
                        .body_mut()
                        .as_reader()
                        .take(400)
                        .read_to_end(&mut said);
                    let said = String::from_utf8_lossy(&said);
                    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
                    return Err(format!("it answered {status}: {said}").into());
                }
            }
        }
        Err(format!("it redirects more than {MAX_REDIRECTS} times").into())
    }
}

fn pass_on(
    mut from: impl Read,
    send: &SyncSender<ReplyPiece>,
) -> std::result::Result<(), EndpointFailure> {
    loop {
        let mut piece = vec![0; PIECE];
        let n = from.read(&mut piece).map_err(|e| e.to_string())?;
        piece.truncate(n);
        let ended = n == 0;
        if send.send(ReplyPiece::Bytes(piece)).is_err() || ended {
            return Ok(());
        }
    }
}

/// The URL to which a redirect leads; `None` if it is not an http or https URL.
fn target_of(from: &Uri, to: &str) -> Option<Uri> {
    let from = Iri::parse(from.to_string()).ok()?;
    let next: Uri = iri::resolve(&from, to).ok()?.parse().ok()?;
    UrlTarget::from_url(&next).is_ok().then_some(next)
}

/// Reason why a body ended early: an error of the query (such as its time limit), or of the endpoint.
enum EndReason {
    Own(Error),
    Said(EndpointFailure),
}

impl EndReason {
    fn error(self, endpoint: &str) -> Error {
        match self {
            Self::Own(e) => e,
            Self::Said(failure) => failure.into_error(endpoint),
        }
    }
}

/// The body of an answer, read as it arrives. Reading fails when the query must end.
pub(crate) struct Body<'c> {
    parts: Receiver<ReplyPiece>,
    cancel: &'c CancelToken,
    piece: Vec<u8>,
    at: usize,
    ended: bool,
    /// Number of bytes since the last row.
    since_row: Rc<Cell<u64>>,
    why: Rc<Cell<Option<EndReason>>>,
}

impl Body<'_> {
    /// Waits for the next piece; `None` if the connection's thread has ended.
    pub(crate) fn next(&mut self) -> Result<Option<ReplyPiece>> {
        loop {
            self.cancel.check()?;
            match self.parts.recv_timeout(CHECK_EVERY) {
                Ok(part) => return Ok(Some(part)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    fn fail(&self, why: EndReason) -> io::Error {
        self.why.set(Some(why));
        io::Error::other("the answer ends early")
    }
}

impl Read for Body<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() && !self.ended {
            match self.next() {
                Ok(Some(ReplyPiece::Bytes(piece))) => {
                    self.ended = piece.is_empty();
                    (self.piece, self.at) = (piece, 0);
                }
                Ok(Some(ReplyPiece::Failed(failure))) => {
                    return Err(self.fail(EndReason::Said(failure)));
                }
                Ok(Some(ReplyPiece::Head(_)) | None) => {
                    return Err(self.fail(EndReason::Said("the connection ended early".into())));
                }
                Err(e) => return Err(self.fail(EndReason::Own(e))),
            }
        }
        let rest = self.piece.get(self.at..).unwrap_or(&[]);
        let n = rest.len().min(out.len());
        let seen = self.since_row.get() + n as u64;
        if seen > ROW {
            let long = format!("it sends a row of more than {} MiB", ROW >> 20);
            return Err(self.fail(EndReason::Said(long.into())));
        }
        self.since_row.set(seen);
        out[..n].copy_from_slice(&rest[..n]);
        self.at += n;
        Ok(n)
    }
}
