//! Fetches documents for LOAD over HTTP. Hosts must be on an allow-list, as for SERVICE.

use super::NotAllowed;
use super::call::{EndpointFailure, HttpCaller, ReplyPiece, RequestKind};
use jindou_model::{CancelToken, Error, MemoryBudget, Result};
use jindou_parse::{Document, DocumentSource, Format};
use ureq::http::Uri;

/// The media types that LOAD accepts, best first.
const ACCEPT: &str = "application/n-triples, application/n-quads;q=0.9, text/turtle;q=0.8, application/trig;q=0.7, application/rdf+xml;q=0.6, application/ld+json;q=0.5";

/// Charge for the bytes of a document that is being received; released when the document is complete or fails.
struct DocumentCharge<'b> {
    budget: &'b MemoryBudget,
    bytes: u64,
}

impl Drop for DocumentCharge<'_> {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

impl DocumentSource for HttpCaller {
    fn fetch(&self, iri: &str, cancel: &CancelToken, memory: &MemoryBudget) -> Result<Document> {
        let failed = |failure: EndpointFailure| Error::Document {
            iri: iri.to_owned(),
            message: failure.message,
            allowed: failure.allowed,
        };
        // The fragment is not part of the request's URL.
        let address = iri.split('#').next().unwrap_or(iri);
        let url: Uri = address
            .parse()
            .map_err(|_| failed(NotAllowed::NoUrl.into()))?;
        self.list().check(&url).map_err(|e| failed(e.into()))?;
        let mut body = self.start(url, RequestKind::Document(ACCEPT), cancel)?;
        let mut charge = DocumentCharge {
            budget: memory,
            bytes: 0,
        };
        let mut text: Vec<u8> = Vec::new();
        let (mut format, mut charset) = (None, None);
        loop {
            match body.next()? {
                Some(ReplyPiece::Head(media)) => {
                    let by_name = || {
                        let name = address.rsplit('/').next()?;
                        Format::from_extension(name.rsplit_once('.')?.1)
                    };
                    format = Format::of_document(&media, by_name());
                    charset = Format::charset(&media);
                    if format.is_none() {
                        return Err(failed(
                            format!("it is served as {media}, which is not RDF").into(),
                        ));
                    }
                }
                Some(ReplyPiece::Bytes(piece)) if piece.is_empty() => break,
                Some(ReplyPiece::Bytes(piece)) => {
                    // Three times the length: a growing vector may have twice the capacity, and the complete text is
                    // copied once.
                    let more = piece.len() as u64 * 3;
                    memory.charge(more)?;
                    charge.bytes += more;
                    text.extend_from_slice(&piece);
                }
                Some(ReplyPiece::Failed(failure)) => return Err(failed(failure)),
                None => return Err(failed("the connection ended early".into())),
            }
        }
        let format =
            format.ok_or_else(|| failed("the connection ended before an answer".into()))?;
        Ok(Document::Text(text.into(), format, charset))
    }
}
