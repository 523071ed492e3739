//! Decoding of request bodies with content codings (RFC 9110, section 8.4): gzip, deflate, br and zstd, also several of
//! them.
//!
//! A body is decoded piece by piece while it is read, so that a few bytes that expand to gibibytes cost no more than a
//! plain body of that length. The decoders' memory is charged, and a network thread decodes only a limited amount
//! before it handles other requests.

mod read;

use crate::problem::Problem;
use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use http_body::{Body as HttpBody, Frame};
use jindou::{Charge, Holder, MemoryBudget};
use read::{DecodeTurn, EncodedBytes};
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The supported codings, for `Accept-Encoding` in responses.
pub(crate) const READ: &str = "gzip, deflate, br, zstd";
/// Largest number of codings of one body.
const MOST: usize = 4;
/// Size of the pieces of decoded text, in bytes.
const PIECE: usize = 1 << 16;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Content {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Largest number of bytes that a decoder allocates for its window, tables and input.
    fn held(self) -> u64 {
        match self {
            Self::Gzip | Self::Deflate => 128 << 10,
            Self::Brotli => (1 << read::BROTLI_WINDOW) + (1 << 20),
            Self::Zstd => (1 << read::ZSTD_WINDOW) + (1 << 20),
        }
    }
}

/// The codings in the header `Content-Encoding`, in the order in which they were applied.
///
/// # Errors
/// 415 for a coding that is not supported, and for too many codings.
pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Vec<Content>, Problem> {
    let mut all = vec![];
    for line in headers.get_all(CONTENT_ENCODING) {
        let line = line
            .to_str()
            .map_err(|_| Problem::content_coding("the Content-Encoding header is malformed"))?;
        for name in line.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            all.push(match &*name.to_ascii_lowercase() {
                "identity" => continue,
                "gzip" | "x-gzip" => Content::Gzip,
                "deflate" => Content::Deflate,
                "br" => Content::Brotli,
                "zstd" => Content::Zstd,
                _ => {
                    return Err(Problem::content_coding(format!(
                        "unsupported Content-Encoding {name}; supported are {READ}, also several in sequence"
                    )));
                }
            });
        }
    }
    if all.len() > MOST {
        return Err(Problem::content_coding(format!(
            "the body has {} content codings; at most {MOST} are supported",
            all.len()
        )));
    }
    Ok(all)
}

/// The decoded body. The decoders' memory is charged to `memory`.
pub(crate) fn undone(body: Body, codings: &[Content], memory: &MemoryBudget) -> Body {
    if codings.is_empty() {
        return body;
    }
    Body::new(Undone {
        body,
        codings: codings.to_vec(),
        charge: Charge::new(Holder::Rest, memory),
        turn: DecodeTurn::default(),
        input: EncodedBytes::default(),
        decoder: None,
        piece: vec![0; PIECE],
        over: false,
    })
}

/// Reason why a body cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The bytes do not match the body's Content-Encoding.
    #[error("{0}")]
    Damaged(String),
    /// No memory is left for a decoder at the moment.
    #[error("{0}")]
    NoRoom(String),
}

/// The error response for a body that could not be read completely.
pub(crate) fn broken(error: &axum::Error) -> Problem {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        match error.downcast_ref::<Trouble>() {
            Some(Trouble::Damaged(why)) => return Problem::bad_request(why.clone()),
            Some(Trouble::NoRoom(why)) => return Problem::busy(why.clone()),
            None => cause = error.source(),
        }
    }
    Problem::bad_request(format!("the request's body was cut off: {error}"))
}

struct Undone {
    body: Body,
    codings: Vec<Content>,
    charge: Charge,
    turn: DecodeTurn,
    input: EncodedBytes,
    /// The decoder; `None` until the first byte arrives, since an empty body needs none.
    decoder: Option<Box<dyn Read + Send>>,
    piece: Vec<u8>,
    over: bool,
}

impl Undone {
    fn damaged(&self, e: &io::Error) -> Trouble {
        let names: Vec<&str> = self.codings.iter().map(|c| c.name()).collect();
        let why = match e.kind() {
            io::ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
            _ => e.to_string(),
        };
        Trouble::Damaged(format!(
            "the body is not {} as its Content-Encoding says, near byte {} of it: {why}",
            names.join(", "),
            self.input.taken()
        ))
    }

    fn decoder(&mut self) -> Result<&mut (dyn Read + Send), Trouble> {
        if self.decoder.is_none() {
            let held = self.codings.iter().map(|c| c.held()).sum();
            self.charge
                .set(held)
                .map_err(|e| Trouble::NoRoom(e.to_string()))?;
            let made = read::chain(&self.codings, &self.input, &self.turn);
            self.decoder = Some(made.map_err(|e| self.damaged(&e))?);
        }
        match &mut self.decoder {
            Some(decoder) => Ok(&mut **decoder),
            None => Err(Trouble::Damaged("there is no decoder".into())),
        }
    }
}

impl HttpBody for Undone {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = &mut *self;
        if this.over {
            return Poll::Ready(None);
        }
        loop {
            if this.input.is_empty() && !this.input.has_ended() {
                match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            this.input.add(data);
                        }
                        continue;
                    }
                    Some(Err(e)) => {
                        this.over = true;
                        return Poll::Ready(Some(Err(e.into())));
                    }
                    None => this.input.end(),
                }
            }
            if this.decoder.is_none() && this.input.is_empty() {
                // The body is empty, which is valid in every coding.
                this.over = true;
                return Poll::Ready(None);
            }
            this.turn.begin();
            let mut piece = std::mem::take(&mut this.piece);
            let read = match this.decoder() {
                Ok(decoder) => decoder.read(&mut piece),
                Err(trouble) => {
                    this.over = true;
                    return Poll::Ready(Some(Err(trouble.into())));
                }
            };
            this.piece = piece;
            match read {
                Ok(0) => {
                    this.over = true;
                    this.decoder = None;
                    return Poll::Ready(None);
                }
                Ok(n) => {
                    let data = Bytes::copy_from_slice(&this.piece[..n]);
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if this.turn.is_over() {
                        // Enough was decoded in this turn: other tasks of this thread run before decoding continues.
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                Err(e) => {
                    this.over = true;
                    this.decoder = None;
                    return Poll::Ready(Some(Err(this.damaged(&e).into())));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
