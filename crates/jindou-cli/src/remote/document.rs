//! Documents from the web, loaded while they arrive.

use super::{
    BodyPieces, MAX_REDIRECTS, agent, answered, failed, is_redirect, own, redirect, said, text,
    url_of,
};
use jindou::{CancelToken, Result};
use jindou_parse::{Format, from_name};
use std::io::{self, Read};
use std::path::Path;
use ureq::http::header;

const ACCEPT: &str = "application/n-quads, application/n-triples;q=0.9, application/trig;q=0.9, text/turtle;q=0.9, \
                      application/rdf+xml;q=0.7, application/ld+json;q=0.5, */*;q=0.1";

/// Limits of a document.
#[derive(Clone, Debug)]
pub struct DocumentLimits {
    /// Maximum number of bytes, before decompression.
    pub bytes: u64,
    /// Cancelling this token ends the reading.
    pub cancel: CancelToken,
}

/// A document that is being fetched.
pub struct FetchedDocument {
    /// The document's address after redirects.
    pub url: String,
    /// The body of the response.
    pub reader: Box<dyn Read + Send>,
    /// The length of the body, if the server states it.
    pub size: Option<u64>,
    /// The document's format, according to the media type or the address.
    pub format: Format,
    /// The character encoding that the server declares.
    pub charset: Option<String>,
}

/// Requests a document and reads the status and headers of the response. `format` takes precedence over the media type
/// that the server declares.
///
/// # Errors
/// An invalid URL, a failed connection, an unsuccessful status, too many redirects, content other than RDF, or more
/// bytes than allowed.
pub fn fetch(
    address: &str,
    format: Option<Format>,
    limits: &DocumentLimits,
) -> Result<FetchedDocument> {
    // The fragment only names a part of the document, so it is not sent.
    let mut url = url_of(address.split('#').next().unwrap_or(address))?;
    let agent = agent(None);
    for _ in 0..=MAX_REDIRECTS {
        let (client, to) = (agent.clone(), url.clone());
        let answer = answered(&limits.cancel, move || {
            client.get(&to).header(header::ACCEPT, ACCEPT).call()
        })?;
        let mut answer = answer.map_err(|e| failed(format!("{url} cannot be fetched: {e}")))?;
        let status = answer.status();
        if is_redirect(status) {
            url = redirect(&url, &answer)?;
            continue;
        }
        if !status.is_success() {
            let said = said(&mut answer);
            let mark = if said.is_empty() { "" } else { ": " };
            return Err(failed(format!("{url} answered {status}{mark}{said}")));
        }
        let media = text(answer.headers(), header::CONTENT_TYPE).unwrap_or("");
        let name = url.path().rsplit('/').next().unwrap_or_default();
        let by_answer = || Format::of_document(media, from_name(Path::new(name)).0);
        let charset = Format::charset(media);
        let format = format.or_else(by_answer).ok_or_else(|| {
            let media = if media.is_empty() { "no media type" } else { media };
            failed(format!(
                "the server declares {url} as {media}, which is not an RDF format, and its name does not tell the format either; choose one with --format nt|nq|ttl|trig|rdf|jsonld"
            ))
        })?;
        let size = answer.body().content_length();
        let too_long = || {
            format!(
                "{url} is longer than the {} bytes that --max-url-bytes allows",
                limits.bytes
            )
        };
        if size.is_some_and(|n| n > limits.bytes) {
            return Err(failed(too_long()));
        }
        let reader = Limited {
            inner: BodyPieces::read(answer.into_body(), &limits.cancel)?,
            left: limits.bytes,
            too_long: too_long(),
        };
        return Ok(FetchedDocument {
            url: url.to_string(),
            reader: Box::new(reader),
            size,
            format,
            charset,
        });
    }
    Err(failed(format!(
        "{address} redirects more than {MAX_REDIRECTS} times"
    )))
}

/// A body of limited length.
struct Limited {
    inner: BodyPieces,
    left: u64,
    too_long: String,
}

impl Read for Limited {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out);
        let n = read.map_err(|e| match own(e) {
            Ok(own) => io::Error::other(own.to_string()),
            Err(e) => e,
        })?;
        self.left = match self.left.checked_sub(n as u64) {
            Some(left) => left,
            None => return Err(io::Error::other(self.too_long.clone())),
        };
        Ok(n)
    }
}
