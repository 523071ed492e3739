//! Connections whose readers stall: their unsent output is charged to the memory of all queries, and when that is
//! short, such connections are closed.

use crate::listen::MAX_HEAD;
use crate::write_buffer::CAPACITY;
use jindou::{Charge, Holder, MemoryBudget};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Largest number of bytes that a connection holds for its reader: hyper's buffer, the next chunk, and short responses.
const HELD: u64 = MAX_HEAD as u64 + (64 << 10) + CAPACITY as u64;
/// Time for which a reader may stall while memory is short.
pub(crate) const SLOW: Duration = Duration::from_secs(2);

/// True if so much memory is charged that stalled connections are closed.
pub(crate) fn is_short(memory: &MemoryBudget) -> bool {
    memory.used() > memory.limit() / 4 * 3
}

/// A connection whose unsent output is charged to the memory of all queries.
pub(crate) struct Stalling<S> {
    stream: S,
    memory: MemoryBudget,
    /// The charge; `None` if no output is pending.
    charge: Option<Charge>,
    patience: Pin<Box<Sleep>>,
}

impl<S> Stalling<S> {
    pub(crate) fn new(stream: S, memory: &MemoryBudget) -> Self {
        Self {
            stream,
            memory: memory.clone(),
            charge: None,
            patience: Box::pin(sleep(SLOW)),
        }
    }

    /// Handles the result of a write: starts or resets the timer, and returns an error if the connection must be
    /// closed.
    fn written<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            // The reader takes data again. The charge stays until everything has been sent.
            if self.charge.is_some() {
                self.patience.as_mut().reset(Instant::now() + SLOW);
            }
            return written;
        }
        if self.charge.is_none() {
            let mut charge = Charge::new(Holder::Rest, &self.memory);
            if charge.set(HELD).is_err() {
                return Poll::Ready(Err(Self::cut()));
            }
            self.charge = Some(charge);
            self.patience.as_mut().reset(Instant::now() + SLOW);
        }
        while self.patience.as_mut().poll(context).is_ready() {
            if is_short(&self.memory) {
                return Poll::Ready(Err(Self::cut()));
            }
            self.patience.as_mut().reset(Instant::now() + SLOW);
        }
        Poll::Pending
    }

    #[cold]
    fn cut() -> io::Error {
        tracing::debug!("closed a connection that was read too slowly: memory is short");
        io::Error::new(
            io::ErrorKind::TimedOut,
            "the answer was read too slowly while memory was short",
        )
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if let Poll::Ready(Ok(())) = flushed {
            // A flush that is ready means that no output is pending any more.
            self.charge = None;
        }
        self.written(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(test);
    }

    #[test]
    fn what_waits_is_charged_until_it_is_sent() {
        run(async {
            let memory = MemoryBudget::new(16 << 20);
            let (here, mut there) = duplex(1000);
            let mut here = Stalling::new(here, &memory);
            here.write_all(&[1; 1000]).await.unwrap();
            assert_eq!(memory.used(), 0, "nothing waits");
            let writing = tokio::time::timeout(Duration::from_millis(50), here.write_all(&[2; 10]));
            assert!(writing.await.is_err());
            assert_eq!(memory.used(), HELD);
            let mut read = [0; 1000];
            there.read_exact(&mut read).await.unwrap();
            here.write_all(&[2; 10]).await.unwrap();
            here.flush().await.unwrap();
            assert_eq!(memory.used(), 0);
        });
    }

    #[test]
    fn slow_readers_go_when_memory_is_short() {
        run(async {
            let memory = MemoryBudget::new(16 << 20);
            let (here, _there) = duplex(1000);
            let mut here = Stalling::new(here, &memory);
            let begun = std::time::Instant::now();
            {
                let writing = here.write_all(&[1; 2000]);
                assert!(
                    tokio::time::timeout(SLOW + SLOW / 2, writing)
                        .await
                        .is_err()
                );
            }
            let others = memory.part(u64::MAX);
            others.charge(13 << 20).unwrap();
            let e = here.write_all(&[1; 2000]).await.unwrap_err();
            assert_eq!(e.kind(), io::ErrorKind::TimedOut);
            assert!(begun.elapsed() < 4 * SLOW);
            // If there is no memory at all, the connection is closed at once.
            others.charge((3 << 20) - HELD).unwrap();
            let (here, _there) = duplex(1000);
            let mut here = Stalling::new(here, &memory);
            let e = here.write_all(&[1; 2000]).await.unwrap_err();
            assert_eq!(e.kind(), io::ErrorKind::TimedOut);
        });
    }
}
