//! Buffers short writes of a connection, so that the responses to pipelined requests are sent by one system call rather
//! than by one each.
//!
//! hyper flushes after each response. Here, a flush sends only what has waited for some time, [`LONGEST`]; the
//! connection's task sends the rest before it waits for anything. So a response waits at most for that time and one more
//! response.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Largest number of bytes that are buffered; longer writes are passed on at once.
pub(crate) const CAPACITY: usize = 16 << 10;
/// Capacity in bytes that an idle connection keeps.
const KEPT: usize = 4 << 10;
/// Time after which a flush sends what is buffered.
const LONGEST: Duration = Duration::from_micros(200);

/// A connection whose writes are buffered. Clones are the same connection: one is for hyper, the other for the
/// connection's task.
pub(crate) struct WriteBuffer<S>(Arc<Mutex<Buffered<S>>>);

struct Buffered<S> {
    stream: S,
    unsent: Vec<u8>,
    /// Number of bytes of `unsent` that were sent.
    sent: usize,
    /// When the first byte of `unsent` was buffered.
    since: Option<Instant>,
    /// True if the stream did not take the last long write, so that hyper still has its bytes.
    is_blocked: bool,
}

impl<S: AsyncWrite + Unpin> Buffered<S> {
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.unsent.len() {
            let rest = &self.unsent[self.sent..];
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => self.sent += n,
            }
        }
        self.unsent.clear();
        self.unsent.shrink_to(KEPT);
        self.sent = 0;
        self.since = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }
}

impl<S> Clone for WriteBuffer<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> WriteBuffer<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(Buffered {
            stream,
            unsent: Vec::new(),
            sent: 0,
            since: None,
            is_blocked: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Buffered<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncWrite + Unpin> WriteBuffer<S> {
    /// Sends what is buffered.
    pub(crate) fn poll_send(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.lock();
        // The stream must not take the end of this as the end of all output. It has the task's waker from the write.
        if this.is_blocked {
            return Poll::Pending;
        }
        this.poll_send(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteBuffer<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteBuffer<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut this = self.lock();
        let length = bytes.iter().map(|slice| slice.len()).sum::<usize>();
        this.is_blocked = false;
        if this.unsent.len() + length > CAPACITY {
            ready!(this.poll_send(context))?;
        }
        if length > CAPACITY {
            let written = Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
            this.is_blocked = written.is_pending();
            return written;
        }
        this.since.get_or_insert_with(Instant::now);
        for slice in bytes {
            this.unsent.extend_from_slice(slice);
        }
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.lock();
        match this.since.is_some_and(|since| since.elapsed() > LONGEST) {
            true => this.poll_send(context),
            false => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.lock();
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stalled::Stalling;
    use jindou::MemoryBudget;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    const SHORT: Duration = Duration::from_millis(20);

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(test);
    }

    /// Writes that a long pipe with a small buffer cannot take.
    async fn write_in_vain(to: &mut WriteBuffer<impl AsyncWrite + Unpin>, bytes: &[u8]) {
        let written = tokio::time::timeout(SHORT, to.write(bytes)).await;
        assert!(written.is_err());
    }

    async fn is_silent(from: &mut DuplexStream) -> bool {
        let mut read = [0; 1000];
        let read = tokio::time::timeout(SHORT, from.read(&mut read)).await;
        read.is_err()
    }

    #[test]
    fn writes_are_buffered_up_to_a_limit() {
        run(async {
            let (here, mut there) = duplex(1000);
            let mut here = WriteBuffer::new(here);
            let mut text = vec![];
            for n in 0..100_u8 {
                text.extend([n; 100]);
                here.write_all(&[n; 100]).await.unwrap();
            }
            assert!(is_silent(&mut there).await);
            // The pipe has room for 1,000 bytes, so a write that exceeds the limit of both must wait.
            text.extend([7; CAPACITY]);
            write_in_vain(&mut here, &[7; CAPACITY]).await;
            let mut here = here.clone();
            let sender = async {
                here.write_all(&[7; CAPACITY]).await.unwrap();
                poll_fn(|context| here.poll_send(context)).await.unwrap();
                here.shutdown().await.unwrap();
            };
            let mut all = vec![];
            let (_, read) = tokio::join!(sender, there.read_to_end(&mut all));
            read.unwrap();
            assert!(all == text, "{} bytes", all.len());
        });
    }

    #[test]
    fn a_flush_sends_what_has_waited() {
        run(async {
            let (here, mut there) = duplex(1000);
            let mut here = WriteBuffer::new(here);
            here.write_all(b"first").await.unwrap();
            assert!(is_silent(&mut there).await);
            // By now, the first response has waited longer than it may.
            here.write_all(b"second").await.unwrap();
            here.flush().await.unwrap();
            let mut read = [0; 11];
            there.read_exact(&mut read).await.unwrap();
            assert_eq!(&read, b"firstsecond");
        });
    }

    #[test]
    fn output_that_its_writer_still_has_remains_charged() {
        run(async {
            let memory = MemoryBudget::new(16 << 20);
            let (here, mut there) = duplex(1000);
            let mut here = WriteBuffer::new(Stalling::new(here, &memory));
            let long = vec![1; 64 << 10];
            let taken = here.write(&long).await.unwrap();
            write_in_vain(&mut here, &long[taken..]).await;
            let charged = memory.used();
            assert!(charged > 0);
            let sent = poll_fn(|context| Poll::Ready(here.poll_send(context))).await;
            assert!(sent.is_pending());
            assert_eq!(memory.used(), charged, "the rest is not sent yet");
            let sender = async {
                here.write_all(&long[taken..]).await.unwrap();
                poll_fn(|context| here.poll_send(context)).await.unwrap();
                assert_eq!(memory.used(), 0, "all is sent");
                here.shutdown().await.unwrap();
            };
            let mut all = vec![];
            let (_, read) = tokio::join!(sender, there.read_to_end(&mut all));
            read.unwrap();
            assert_eq!(all.len(), long.len());
        });
    }
}
