//! Blocks a thread on a future. Works on any thread, also on one of another tokio runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks until the future completes; `None` if `limit` passes first. The future must not need a tokio runtime on this
/// thread.
pub(super) fn wait_for<T>(future: impl Future<Output = T>, limit: Option<Duration>) -> Option<T> {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Some(done);
        }
        match end {
            None => std::thread::park(),
            Some(end) => match end.checked_duration_since(Instant::now()) {
                Some(rest) if !rest.is_zero() => std::thread::park_timeout(rest),
                _ => return None,
            },
        }
    }
}
