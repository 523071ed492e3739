//! Gathers short writes of a connection, so that the responses to pipelined requests are sent by one system call rather
//! than by one each.
//!
//! hyper flushes after each response. Here, a flush does nothing: the connection's task sends what was gathered when it
//! has nothing else to do, that is, before it waits for anything. So no response waits for a later request.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes that are gathered; longer writes are passed on at once.
const MOST: usize = 16 << 10;

/// A connection whose writes are gathered. Clones are the same connection: one is for hyper, the other for the
/// connection's task.
pub(crate) struct Gathering<S>(Arc<Mutex<Gathered<S>>>);

struct Gathered<S> {
    stream: S,
    unsent: Vec<u8>,
    /// Number of bytes of `unsent` that were sent.
    sent: usize,
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.unsent.len() {
            let rest = &self.unsent[self.sent..];
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => self.sent += n,
            }
        }
        self.unsent.clear();
        self.sent = 0;
        Pin::new(&mut self.stream).poll_flush(context)
    }
}

impl<S> Clone for Gathering<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Gathering<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(Gathered {
            stream,
            unsent: Vec::new(),
            sent: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Gathered<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncWrite + Unpin> Gathering<S> {
    /// Sends what was gathered.
    pub(crate) fn poll_send(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lock().poll_send(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathering<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathering<S> {
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
        if this.unsent.len() + length > MOST {
            ready!(this.poll_send(context))?;
        }
        if length > MOST {
            return Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
        }
        for slice in bytes {
            this.unsent.extend_from_slice(slice);
        }
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
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
    use std::future::poll_fn;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[test]
    fn writes_are_gathered_up_to_a_limit() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (here, mut there) = duplex(1000);
            let mut here = Gathering::new(here);
            let (mut text, mut read) = (vec![], [0; 1000]);
            for n in 0..100_u8 {
                text.extend([n; 100]);
                here.write_all(&[n; 100]).await.unwrap();
                here.flush().await.unwrap();
            }
            let short = Duration::from_millis(20);
            let early = tokio::time::timeout(short, there.read(&mut read)).await;
            assert!(early.is_err(), "{early:?}");
            // The pipe has room for 1,000 bytes, so a write that exceeds the limit of both must wait.
            text.extend([7; MOST]);
            let late = tokio::time::timeout(short, here.write_all(&[7; MOST])).await;
            assert!(late.is_err());
            let mut here = here.clone();
            let sender = async {
                here.write_all(&[7; MOST]).await.unwrap();
                poll_fn(|context| here.poll_send(context)).await.unwrap();
                here.shutdown().await.unwrap();
            };
            let mut all = vec![];
            let (_, read) = tokio::join!(sender, there.read_to_end(&mut all));
            read.unwrap();
            assert!(all == text, "{} bytes", all.len());
        });
    }
}
