//! Charges request bodies to the memory of all queries, from their arrival until the answer has been sent.

use crate::codings;
use crate::problem::Problem;
use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::request::Parts;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use jindou::{Charge, Holder, MemoryBudget};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

/// Bodies of at most this many bytes are not charged. Most are shorter, and then no lock is needed.
const FREE: u64 = 64 << 10;
/// Memory charged per byte of a body; two, since the capacity of its vector doubles.
const COPIES: u64 = 2;
/// Number of bytes of a rejected body that are read and discarded, since many clients send the whole body before they
/// read the answer.
const DISCARDED: u64 = 64 << 20;

/// The head of a request, and its decoded body, whose bytes are charged as they arrive. The hold is for the response;
/// `None` if nothing is charged here.
pub(crate) fn received(
    request: Request<Incoming>,
    memory: &MemoryBudget,
) -> (Parts, Body, Option<Hold>) {
    let (mut parts, body) = request.into_parts();
    if body.is_end_stream() && !parts.headers.contains_key(CONTENT_ENCODING) {
        return (parts, Body::empty(), None);
    }
    // These routes charge their bodies themselves, since they need several times their length.
    let changes = ["/update", "/store"];
    if changes.iter().any(|c| parts.uri.path().starts_with(c)) {
        return (parts, Body::new(body), None);
    }
    // The guard refuses unknown codings later.
    let coded = codings::from_headers(&parts.headers).unwrap_or_default();
    if !coded.is_empty() {
        // The body is decoded here, so the routes must not decode it again.
        parts.headers.remove(CONTENT_ENCODING);
    }
    let hold = Hold::new(memory);
    let body = codings::undone(Body::new(body), &coded, memory);
    (
        parts,
        Body::new(Charged::new(body, hold.clone())),
        Some(hold),
    )
}

/// The charge for a request's body, held until its answer has been sent.
#[derive(Clone)]
pub(crate) struct Hold(Arc<Mutex<HeldBody>>);

struct HeldBody {
    charge: Charge,
    /// Message of the error, if there was no memory for the body.
    refused: Option<String>,
}

impl Hold {
    /// A hold that charges nothing yet.
    pub(crate) fn new(memory: &MemoryBudget) -> Self {
        Self(Arc::new(Mutex::new(HeldBody {
            charge: Charge::new(Holder::Rest, memory),
            refused: None,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, HeldBody> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The response to send: this one, which then holds the charge until it is sent, or an error if there was no memory
    /// for the body.
    pub(crate) fn answer(self, response: Response<Body>) -> Response<Body> {
        let held = self.lock();
        if let Some(why) = held.refused.clone() {
            return Problem::busy(why).response(&http::HeaderMap::new());
        }
        if held.charge.bytes() == 0 {
            drop(held);
            return response;
        }
        drop(held);
        response.map(|body| Body::new(KeptAnswer { body, _hold: self }))
    }
}

/// A request's body whose bytes are charged as they arrive.
pub(crate) struct Charged<B> {
    body: B,
    hold: Hold,
    seen: u64,
    refused: bool,
}

impl<B> Charged<B> {
    pub(crate) fn new(body: B, hold: Hold) -> Self {
        Self {
            body,
            hold,
            seen: 0,
            refused: false,
        }
    }

    /// Counts further bytes; false if there is no memory for them.
    fn take(&mut self, bytes: u64) -> bool {
        self.seen = self.seen.saturating_add(bytes);
        if self.refused {
            return false;
        }
        if self.seen <= FREE {
            return true;
        }
        let mut held = self.hold.lock();
        if let Err(e) = held.charge.set(self.seen * COPIES) {
            held.refused = Some(e.to_string());
            self.refused = true;
        }
        !self.refused
    }
}

impl<B> HttpBody for Charged<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = &mut *self;
        loop {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
            let Some(frame) = frame else {
                let no_room =
                    || io::Error::other("not enough memory for the request's body").into();
                return Poll::Ready(this.refused.then(|| Err(no_room())));
            };
            let frame = frame.map_err(Into::into)?;
            let bytes = frame.data_ref().map_or(0, |d| d.len() as u64);
            if this.take(bytes) {
                return Poll::Ready(Some(Ok(frame)));
            }
            if this.seen > DISCARDED {
                let error = io::Error::other("not enough memory for the request's body");
                return Poll::Ready(Some(Err(error.into())));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        !self.refused && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response, which holds the charge for its request's body.
struct KeptAnswer {
    body: Body,
    _hold: Hold,
}

impl HttpBody for KeptAnswer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
