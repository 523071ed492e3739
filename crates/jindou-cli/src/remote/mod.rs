//! HTTP requests to other machines: to SPARQL endpoints, and for documents to load.

mod document;
mod endpoint;

pub use document::{DocumentLimits, fetch};
pub use endpoint::SparqlEndpoint;

use jindou::service::{tls_config, unverified_tls_config};
use jindou::{CancelToken, Error};
use jindou_model::iri;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use ureq::http::{HeaderMap, Response, StatusCode, Uri, header};
use ureq::tls::TlsConfig;
use ureq::{Agent, Body};

/// Maximum times of waiting for a connection, and for the next bytes of a response.
const CONNECT: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(600);
/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;
/// Maximum number of bytes of a server's reason that are shown.
const SHOWN: u64 = 4 << 10;
/// Time between two checks whether the user has pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);
/// Size of the pieces in which a body is passed on, in bytes, and the number of pieces that may wait to be read.
const PIECE: usize = 64 << 10;
const PIECES: usize = 8;

/// An error for a failure of another machine or of the connection to it.
fn failed(message: impl Into<String>) -> Error {
    Error::external(message.into())
}

/// An HTTP client that checks certificates against this machine's root certificates and does not follow redirects.
/// Proxies are taken from the environment (`HTTPS_PROXY`, `NO_PROXY`).
fn agent(limit: Option<Duration>) -> Agent {
    agent_with(limit, tls_config())
}

fn agent_with(limit: Option<Duration>, tls: TlsConfig) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .tls_config(tls)
        .timeout_connect(Some(CONNECT))
        .timeout_per_read(Some(SILENCE))
        .timeout_global(limit)
        .user_agent(concat!("jindou/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// Parses a URL to which requests can be sent.
fn url_of(text: &str) -> Result<Uri, Error> {
    if !text.contains("://") && !text.is_empty() {
        return Err(failed(format!(
            "{text} is not a URL; did you mean http://{text}?"
        )));
    }
    let url: Uri = text
        .parse()
        .map_err(|e| failed(format!("{text} is not a URL: {e}")))?;
    match url.scheme_str() {
        Some("http" | "https") if url.host().is_some_and(|h| !h.is_empty()) => Ok(url),
        _ => Err(failed(format!(
            "{text} is not an http or https URL with a host"
        ))),
    }
}

/// The target of a redirect; an error if the redirect must not be followed.
fn redirect(from: &Uri, answer: &Response<Body>) -> Result<Uri, Error> {
    let to = text(answer.headers(), header::LOCATION)
        .ok_or_else(|| failed(format!("{from} redirects without naming a destination")))?;
    let bad = || failed(format!("{from} redirects to {to}, which is not a URL"));
    // The fragment only names a part of the document, so it is not sent.
    let to = to.split('#').next().unwrap_or_default();
    let base = jindou::oxiri::Iri::parse(from.to_string()).map_err(|_| bad())?;
    let next = iri::resolve(&base, to).map_err(|_| bad())?;
    let next = url_of(&next).map_err(|_| bad())?;
    if from.scheme_str() == Some("https") && next.scheme_str() == Some("http") {
        return Err(failed(format!(
            "{from} redirects to {next}, which is not encrypted; if you want that, use the second address directly"
        )));
    }
    Ok(next)
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|v| v.to_str().ok())
}

/// The server's reason for a refusal: `detail` of a problem document (RFC 9457), or the beginning of the response's
/// text without markup.
fn said(answer: &mut Response<Body>) -> String {
    let media = text(answer.headers(), header::CONTENT_TYPE).unwrap_or_default();
    let (json, html) = (media.contains("json"), media.contains("html"));
    let mut bytes = Vec::new();
    // If the response breaks off, the part that has arrived is used.
    let _ = answer
        .body_mut()
        .as_reader()
        .take(SHOWN)
        .read_to_end(&mut bytes);
    let all = String::from_utf8_lossy(&bytes);
    if json && let Ok(value) = serde_json::from_str::<serde_json::Value>(&all) {
        let found = ["detail", "message", "error", "title"];
        let found = found.iter().find_map(|k| value.get(k)?.as_str());
        if let Some(found) = found {
            return visible(found);
        }
    }
    if html {
        let mut inside = false;
        let bare = all.chars().filter(|&c| {
            inside |= c == '<';
            let keep = !inside;
            inside &= c != '>';
            keep
        });
        let bare: String = bare.collect();
        let words: Vec<&str> = bare.split_whitespace().collect();
        return visible(&words.join(" "));
    }
    visible(all.trim())
}

/// The text with control characters other than line ends replaced, so that it is safe to print at a terminal.
fn visible(text: &str) -> String {
    let shown = |c: char| {
        if c.is_control() && c != '\n' {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    };
    text.chars().map(shown).collect()
}

/// The body of a response, read by a separate thread while it arrives, so that the reader can notice Ctrl-C and the
/// time limit while it waits.
struct BodyPieces {
    parts: Receiver<io::Result<Vec<u8>>>,
    cancel: CancelToken,
    piece: Vec<u8>,
    at: usize,
    ended: bool,
}

impl BodyPieces {
    fn read(body: Body, cancel: &CancelToken) -> Result<Self, Error> {
        let (send, parts) = sync_channel(PIECES);
        spawn(move || hand_on(body, &send))?;
        Ok(Self {
            parts,
            cancel: cancel.clone(),
            piece: vec![],
            at: 0,
            ended: false,
        })
    }
}

fn hand_on(body: Body, send: &SyncSender<io::Result<Vec<u8>>>) {
    let mut from = body.into_with_config().limit(u64::MAX).reader();
    loop {
        let mut piece = vec![0; PIECE];
        let read = from.read(&mut piece).map(|n| {
            piece.truncate(n);
            piece
        });
        let ended = !matches!(&read, Ok(piece) if !piece.is_empty());
        if send.send(read).is_err() || ended {
            return;
        }
    }
}

impl Read for BodyPieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() && !self.ended {
            self.piece = wait(&self.parts, &self.cancel).map_err(io::Error::other)??;
            self.at = 0;
            self.ended = self.piece.is_empty();
        }
        let n = out.len().min(self.piece.len() - self.at);
        out[..n].copy_from_slice(&self.piece[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name("remote".into());
    let spawned = thread.spawn(work);
    spawned.map(drop).map_err(|e| {
        Error::Internal(format!(
            "cannot start a thread to contact another machine: {e}"
        ))
    })
}

/// Waits for a message of a thread, or until the token is cancelled.
fn wait<T>(parts: &Receiver<T>, cancel: &CancelToken) -> Result<T, Error> {
    loop {
        cancel.check()?;
        match parts.recv_timeout(LOOK) {
            Ok(part) => return Ok(part),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed("the connection ended early"));
            }
        }
    }
}

/// Sends a request on a separate thread, and waits for the status and headers of the response.
fn answered(
    cancel: &CancelToken,
    ask: impl FnOnce() -> Result<Response<Body>, ureq::Error> + Send + 'static,
) -> Result<Result<Response<Body>, ureq::Error>, Error> {
    let (send, receive) = sync_channel(1);
    spawn(move || {
        // The receiver no longer exists if the request was cancelled.
        let _ = send.send(ask());
    })?;
    wait(&receive, cancel)
}

/// Asks a server whether it is ready, and returns its response.
///
/// # Errors
/// If the server does not answer in time, or reports that it is not ready.
pub fn ready(server: &str, limit: Duration) -> Result<String, Error> {
    asked_ready(server, agent(Some(limit)))
}

/// Like [`ready`], for a server on this machine. Its certificate is not verified, since it may be for another name.
pub fn ready_here(server: &str, limit: Duration) -> Result<String, Error> {
    asked_ready(server, agent_with(Some(limit), unverified_tls_config()))
}

fn asked_ready(server: &str, agent: Agent) -> Result<String, Error> {
    let url = url_of(&format!("{}/ready", server.trim_end_matches('/')))?;
    let answer = agent.get(&url).call();
    let mut answer = answer.map_err(|e| failed(format!("{url}: {e}")))?;
    let status = answer.status();
    let said = said(&mut answer);
    match status.is_success() {
        true => Ok(said),
        false => Err(failed(format!("{url} answered {status}: {said}"))),
    }
}

/// Takes a server out of service. It shuts down after `wait`, which is rounded to seconds.
///
/// # Errors
/// If the server does not answer, or refuses the request.
pub fn drain(server: &str, wait: Duration, token: Option<&str>) -> Result<(), Error> {
    let server = server.trim_end_matches('/');
    let url = url_of(&format!("{server}/admin/drain?wait={}", wait.as_secs()))?;
    encrypted(&url, token)?;
    let mut request = agent(Some(CONNECT)).post(&url);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let answer = request.send_empty();
    let mut answer = answer.map_err(|e| failed(format!("{url}: {e}")))?;
    let status = answer.status();
    match status.is_success() {
        true => Ok(()),
        false => Err(failed(format!(
            "{url} answered {status}: {}",
            said(&mut answer)
        ))),
    }
}

/// Returns an error if a token would be sent over the network unencrypted.
fn encrypted(url: &Uri, token: Option<&str>) -> Result<(), Error> {
    let host = url.host().unwrap_or_default();
    let here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    if token.is_some() && url.scheme_str() == Some("http") && !here {
        return Err(failed(format!(
            "{url}: tokens are not sent unencrypted to another machine; use its https address"
        )));
    }
    Ok(())
}

/// The [`Error`] inside an I/O error. Readers report a cancellation as such an error.
fn own(e: io::Error) -> Result<Error, io::Error> {
    e.downcast::<Error>()
}
