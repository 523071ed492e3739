//! Sends an answer from the query's threads to the HTTP response: compressed, in chunks, through a bounded channel. The
//! response's status is sent with the first chunk, so an error before that becomes an ordinary error response.

use crate::live::{CancelCause, LiveQuery, QueryState};
use crate::negotiate::Coding;
use crate::shared::AppState;
use crate::sinks::AnswerDestination;
use crate::slots::QuerySlot;
use crate::stalled::{SLOW, is_short};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body::Frame;
use jindou::{Charge, Error, Holder, MemoryBudget, Resource, Result};
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Size of a chunk in bytes while there are few answers: large enough that waking the other side for each costs little.
const CHUNK: usize = 1 << 16;
/// Size of a chunk in bytes when there are thousands of answers.
const SMALL_CHUNK: usize = 1 << 13;
/// Total bytes that the chunks of all answers should not exceed.
const ALL_CHUNKS: usize = 32 << 20;
/// Capacity of the channel, in chunks.
const WAITING: usize = 2;
/// Bytes charged for an answer in addition to its chunks: the touched part of its thread's stack, its columns' cached
/// cells, and the allocator's overhead. Measured with 2,000 slow readers.
const BESIDE: u64 = 512 << 10;
/// Bytes that a compressor allocates.
const COMPRESSOR: u64 = 1 << 20;
/// Answers of at most this many bytes are not compressed.
const WORTH_CODING: usize = 1 << 10;
/// Longest time for which the first byte of a chunk is held: the next write after that sends the chunk, even if it is
/// not full. The head of a table therefore waits for the first row. If it were sent earlier, an error of a query that
/// sorts for seconds could not be reported by the status, and could only break the answer off.
const LATEST: Duration = Duration::from_millis(100);

/// Compresses a whole body, if it is long enough. Returns the body and its coding.
///
/// # Errors
/// Errors of the compressor.
pub(crate) fn coded(text: Vec<u8>, wanted: Coding) -> io::Result<(Vec<u8>, Coding)> {
    if text.len() <= WORTH_CODING {
        return Ok((text, Coding::Identity));
    }
    let mut coder = Coder::decided(wanted)?;
    if let Coder::Plain(out) = &mut coder {
        *out = text;
    } else {
        coder.write_all(&text)?;
    }
    let coding = coder.coding();
    Ok((coder.finish()?, coding))
}

/// The error for an answer that is longer than the server allows.
pub(crate) fn too_long(most: u64) -> Error {
    Error::limit(
        Resource::Answer,
        format!(
            "the answer is longer than the server's limit of {most} bytes; narrow the query or use LIMIT"
        ),
    )
}

/// The part of the response that is known before its body.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) content_type: &'static str,
    pub(crate) coding: Coding,
    /// Length of the body, if the whole answer was made before the response began.
    pub(crate) length: Option<usize>,
}

/// One item of a body's stream.
enum BodyItem {
    Data(Bytes),
    /// The last bytes, after which the answer is complete.
    Last(Bytes),
}

enum Coder {
    /// Holds the text until there is enough to decide whether compressing it is worthwhile.
    Undecided(Vec<u8>),
    Plain(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Coder {
    fn decided(coding: Coding) -> io::Result<Self> {
        Ok(match coding {
            Coding::Identity => Self::Plain(Vec::new()),
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast())),
            Coding::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), 1)?),
        })
    }

    fn coding(&self) -> Coding {
        match self {
            Self::Undecided(_) | Self::Plain(_) => Coding::Identity,
            Self::Gzip(_) => Coding::Gzip,
            Self::Zstd(_) => Coding::Zstd,
        }
    }

    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Undecided(out) | Self::Plain(out) => out.write_all(text),
            Self::Gzip(coder) => coder.write_all(text),
            Self::Zstd(coder) => coder.write_all(text),
        }
    }

    fn out(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Undecided(out) | Self::Plain(out) => out,
            Self::Gzip(coder) => coder.get_mut(),
            Self::Zstd(coder) => coder.get_mut(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Undecided(_) | Self::Plain(_) => Ok(()),
            Self::Gzip(coder) => coder.flush(),
            Self::Zstd(coder) => coder.flush(),
        }
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Undecided(out) | Self::Plain(out) => Ok(out),
            Self::Gzip(coder) => coder.finish(),
            Self::Zstd(coder) => coder.finish(),
        }
    }
}

/// The query's end of the channel: compresses the answer, and sends it in chunks.
pub(crate) struct ResponseWriter {
    query: Arc<LiveQuery>,
    slot: QuerySlot,
    head: Option<oneshot::Sender<ResponseHead>>,
    items: mpsc::Sender<BodyItem>,
    content_type: &'static str,
    wanted: Coding,
    coder: Coder,
    /// Time since which the oldest unsent byte is held; `None` if there is none.
    waits_since: Option<Instant>,
    most_bytes: u64,
    chunk: usize,
    /// Charge for the buffers, to the query's budget.
    charge: Charge,
    /// The budget of all queries, which tells if memory is short.
    all: MemoryBudget,
    /// The first failure; nothing is sent after it.
    failure: Option<Error>,
}

/// The response's end of the channel.
pub(crate) struct ResponseBody {
    pub(crate) head: oneshot::Receiver<ResponseHead>,
    pub(crate) body: AnswerBody,
}

/// Both ends of a new channel, whose buffers are charged to the query.
///
/// # Errors
/// If there is no memory for the buffers.
pub(crate) fn pair(
    shared: &AppState,
    query: &Arc<LiveQuery>,
    wanted: Coding,
) -> Result<(ResponseWriter, ResponseBody)> {
    // The chunks in the channel, one that is being filled, and one that is being sent.
    let chunks = WAITING + 2;
    let each = ALL_CHUNKS / chunks / shared.live.len().max(1);
    let chunk = each.clamp(SMALL_CHUNK, CHUNK);
    let mut charge = Charge::new(Holder::Rest, &query.memory);
    charge.set((chunks * chunk) as u64 + BESIDE)?;
    let (head, on_head) = oneshot::channel();
    let (items, on_items) = mpsc::channel(WAITING);
    let writer = ResponseWriter {
        query: Arc::clone(query),
        slot: shared.slots.slot(true),
        head: Some(head),
        items,
        content_type: "application/octet-stream",
        wanted,
        coder: Coder::Undecided(Vec::new()),
        waits_since: None,
        most_bytes: shared.options.max_result_bytes.unwrap_or(u64::MAX),
        chunk,
        charge,
        all: shared.memory.clone(),
        failure: None,
    };
    let response = ResponseBody {
        head: on_head,
        body: AnswerBody {
            pieces: AnswerPieces::new(on_items),
            query: Arc::clone(query),
        },
    };
    Ok((writer, response))
}

impl ResponseWriter {
    /// Sets the slot that the query releases while it waits for its reader.
    pub(crate) fn set_slot(&mut self, slot: QuerySlot) {
        self.slot = slot;
    }

    /// Removes and returns the reason why writing failed, which is more precise than the I/O error that `write`
    /// returned.
    pub(crate) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// True once the response's status has been sent.
    pub(crate) fn is_started(&self) -> bool {
        self.head.is_none()
    }

    fn begin(&mut self) {
        if let Some(head) = self.head.take() {
            let coding = self.coder.coding();
            // If the receiver was dropped, the next send reports that.
            let _ = head.send(ResponseHead {
                content_type: self.content_type,
                coding,
                length: None,
            });
        }
    }

    fn send(&mut self, item: BodyItem) -> Result<()> {
        self.waits_since = None;
        let item = match self.items.try_send(item) {
            Ok(()) => return Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(Error::SinkClosed),
            Err(mpsc::error::TrySendError::Full(item)) => item,
        };
        let is_last = matches!(item, BodyItem::Last(_));
        self.query.set_state(QueryState::Sending);
        self.slot.give_back();
        loop {
            // The timer is created inside `wait_for`, which enters the runtime; this may be a helper thread outside of
            // it.
            let room = async { tokio::time::timeout(SLOW, self.items.reserve()).await };
            match self.query.wait_for(room)? {
                Ok(Ok(room)) => {
                    room.send(item);
                    break;
                }
                Ok(Err(_)) => return Err(Error::SinkClosed),
                // A client that does not read must not keep memory from others.
                Err(_) if is_short(&self.all) => {
                    return Err(Error::limit(
                        Resource::Answer,
                        "the answer was read too slowly while other queries needed the memory of its buffers",
                    ));
                }
                Err(_) => {}
            }
        }
        if is_last {
            return Ok(());
        }
        self.query.set_state(QueryState::Queued);
        self.slot.take(&self.query)?;
        self.query.set_state(QueryState::Running);
        Ok(())
    }

    fn add(&mut self, text: &[u8]) -> Result<()> {
        let before = self
            .query
            .bytes
            .fetch_add(text.len() as u64, Ordering::Relaxed);
        if before + text.len() as u64 > self.most_bytes {
            return Err(too_long(self.most_bytes));
        }
        let write = |e: io::Error| Error::io("<response>", e);
        if let Coder::Undecided(held) = &mut self.coder
            && held.len() + text.len() > WORTH_CODING
        {
            let held = std::mem::take(held);
            if self.wanted != Coding::Identity {
                self.charge.add(COMPRESSOR)?;
            }
            self.coder = Coder::decided(self.wanted).map_err(write)?;
            self.coder.write_all(&held).map_err(write)?;
        }
        self.coder.write_all(text).map_err(write)?;
        let late = self.waits_since.get_or_insert_with(Instant::now).elapsed() >= LATEST;
        if late {
            self.coder.flush().map_err(write)?;
        }
        if self.coder.out().len() >= self.chunk || (late && !self.coder.out().is_empty()) {
            self.begin();
            let out = std::mem::replace(self.coder.out(), Vec::with_capacity(self.chunk));
            self.send(BodyItem::Data(out.into()))?;
        }
        Ok(())
    }

    /// Sends the remaining bytes, and marks the answer as complete.
    pub(crate) fn finish(mut self) -> Result<()> {
        if let Some(e) = self.failure.take() {
            return Err(e);
        }
        let coder = std::mem::replace(&mut self.coder, Coder::Undecided(Vec::new()));
        let coding = coder.coding();
        let out = coder.finish().map_err(|e| Error::io("<response>", e))?;
        if let Some(head) = self.head.take() {
            let _ = head.send(ResponseHead {
                content_type: self.content_type,
                coding,
                length: Some(out.len()),
            });
        }
        self.send(BodyItem::Last(out.into()))
    }
}

impl AnswerDestination for ResponseWriter {
    fn set_content_type(&mut self, content_type: &'static str) {
        self.content_type = content_type;
    }
}

impl Write for ResponseWriter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.failure.is_none()
            && let Err(e) = self.add(text)
        {
            self.failure = Some(e);
        }
        match &self.failure {
            // The reason is in `failure`; the answer's writers treat this kind of I/O error as a reader that went away.
            Some(_) => Err(io::ErrorKind::BrokenPipe.into()),
            None => Ok(text.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The body of a response. If it is dropped early, since the client has disconnected, it cancels its query. If the
/// query ends without marking the answer as complete, the body fails, so that the connection is closed and the client
/// notices that the answer is incomplete.
pub(crate) struct AnswerBody {
    pieces: AnswerPieces,
    query: Arc<LiveQuery>,
}

/// The chunks of an answer, as they arrive from the query.
struct AnswerPieces {
    items: mpsc::Receiver<BodyItem>,
    ended: bool,
    /// True if the next poll returns the error.
    breaks: bool,
}

/// The error of an answer that broke off. The reason is in the log.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut off")]
pub(crate) struct BrokenOff;

impl AnswerPieces {
    fn new(items: mpsc::Receiver<BodyItem>) -> Self {
        Self {
            items,
            ended: false,
            breaks: false,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        Poll::Ready(match ready!(self.items.poll_recv(cx)) {
            Some(BodyItem::Data(data)) => Some(Ok(Frame::data(data))),
            Some(BodyItem::Last(data)) => {
                self.ended = true;
                (!data.is_empty()).then(|| Ok(Frame::data(data)))
            }
            // On an error, hyper discards everything that it has not written yet, even the status. So the body is
            // pending once before the error, and hyper writes that first.
            None if !self.breaks => {
                self.breaks = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            None => Some(Err(BrokenOff)),
        })
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        self.pieces.poll(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.ended
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        if !self.pieces.ended {
            self.query.cancel(CancelCause::ClientGone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Wake, Waker};

    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_answer_that_breaks_off_lets_its_beginning_out_before_it_fails() {
        let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&wakes));
        let mut cx = Context::from_waker(&waker);
        let (items, on_items) = mpsc::channel(2);
        let mut pieces = AnswerPieces::new(on_items);
        assert!(
            items
                .try_send(BodyItem::Data(Bytes::from_static(b"a")))
                .is_ok()
        );
        drop(items);
        assert!(matches!(pieces.poll(&mut cx), Poll::Ready(Some(Ok(_)))));
        // The body is pending once, and wakes its task at once, so that earlier data is written first.
        assert!(pieces.poll(&mut cx).is_pending());
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert!(matches!(
            pieces.poll(&mut cx),
            Poll::Ready(Some(Err(BrokenOff)))
        ));

        let (items, on_items) = mpsc::channel(2);
        let mut pieces = AnswerPieces::new(on_items);
        assert!(items.try_send(BodyItem::Last(Bytes::new())).is_ok());
        assert!(matches!(pieces.poll(&mut cx), Poll::Ready(None)));
        assert!(matches!(pieces.poll(&mut cx), Poll::Ready(None)));
    }
}
