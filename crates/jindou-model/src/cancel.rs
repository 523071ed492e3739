//! Cancellation and deadlines, which queries and loads check.

use crate::{Error, Result, scope, sync};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// A condition that must hold while a query runs, such as that the files it reads are intact; the query ends if it
/// fails.
pub trait Watch: std::fmt::Debug + Send + Sync {
    /// Ok to continue, or the error to return. Called once per batch, so it must take well below a microsecond.
    ///
    /// # Errors
    /// The error for the query.
    fn check(&self) -> Result<()>;
}

/// Tells a running query to stop, because it was cancelled, its deadline passed, or its [`Watch`] failed. Cheap to
/// clone. Checked once per batch, never once per row.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    flag: Arc<Flag>,
    deadline: Option<(Instant, Duration)>,
    watch: Option<Arc<dyn Watch>>,
}

#[derive(Debug, Default)]
struct Flag {
    is_set: AtomicBool,
    /// Threads that sleep until the flag is set or another thread wakes them.
    sleepers: Mutex<Vec<Thread>>,
}

impl Flag {
    fn sleepers(&self) -> MutexGuard<'_, Vec<Thread>> {
        sync::lock(&self.sleepers)
    }
}

impl CancelToken {
    /// A token without a deadline.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A token whose deadline is `limit` from now; no deadline if that is beyond the range of the clock.
    #[must_use]
    pub fn with_deadline(limit: Duration) -> Self {
        Self::new().limited(limit)
    }

    /// A token with the same cancellation flag and a deadline `limit` from now; no deadline if that is beyond the range
    /// of the clock.
    #[must_use]
    pub fn limited(&self, limit: Duration) -> Self {
        Self {
            deadline: Instant::now().checked_add(limit).map(|at| (at, limit)),
            ..self.clone()
        }
    }

    /// The same token, whose [check](Self::check) also fails when `watch` does.
    #[must_use]
    pub fn watching(self, watch: Arc<dyn Watch>) -> Self {
        Self {
            watch: Some(watch),
            ..self
        }
    }

    /// The same token without its watch.
    #[must_use]
    pub fn unwatched(&self) -> Self {
        Self {
            watch: None,
            ..self.clone()
        }
    }

    /// Makes all clones of this token report cancellation, and wakes the threads that sleep on one.
    pub fn cancel(&self) {
        self.flag.is_set.store(true, Ordering::SeqCst);
        for thread in &*self.flag.sleepers() {
            thread.unpark();
        }
    }

    /// Sleeps until this thread is unparked, the token is cancelled or its deadline passes. Does not sleep if `ready`
    /// returns true. May wake spuriously, like [`std::thread::park`].
    pub fn park_unless(&self, ready: impl FnOnce() -> bool) {
        self.park_at_most(None, ready);
    }

    /// As [`Self::park_unless`], for at most `limit`; `None` for no limit.
    pub fn park_at_most(&self, limit: Option<Duration>, ready: impl FnOnce() -> bool) {
        let this = std::thread::current();
        self.flag.sleepers().push(this.clone());
        if !ready() && !self.flag.is_set.load(Ordering::SeqCst) {
            match self.left().into_iter().chain(limit).min() {
                Some(left) => std::thread::park_timeout(left),
                None => std::thread::park(),
            }
        }
        let mut sleepers = self.flag.sleepers();
        if let Some(at) = sleepers.iter().position(|t| t.id() == this.id()) {
            sleepers.swap_remove(at);
        }
    }

    /// True if the token was cancelled. Ignores the deadline, so that the clock need not be read.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.flag.is_set.load(Ordering::Relaxed)
    }

    /// True if the token was cancelled or its deadline has passed. Neither allocates nor blocks nor checks the watch,
    /// since allocators call it.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled() || self.deadline.is_some_and(|(at, _)| Instant::now() >= at)
    }

    /// Time until the deadline; `None` without a deadline.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.deadline
            .map(|(at, _)| at.saturating_duration_since(Instant::now()))
    }

    /// Ok to continue, or the error to return if the token was cancelled, its deadline passed, or its watch failed.
    /// Reads the clock if there is a deadline (about 25 ns).
    pub fn check(&self) -> Result<()> {
        scope::checked();
        if self.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some((at, limit)) = self.deadline
            && Instant::now() >= at
        {
            return Err(Error::Timeout(limit));
        }
        match &self.watch {
            Some(watch) => watch.check(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enormous_time_limits_are_none() {
        for limit in [Duration::MAX, Duration::from_secs_f64(1e19)] {
            let token = CancelToken::with_deadline(limit);
            assert!(token.check().is_ok() && token.left().is_none());
            let token = token.limited(Duration::ZERO);
            assert!(matches!(token.check(), Err(Error::Timeout(_))));
        }
    }

    #[test]
    fn a_token_says_why_it_ended() {
        let t = CancelToken::with_deadline(Duration::ZERO);
        assert!(matches!(t.check(), Err(Error::Timeout(_))));
        t.cancel();
        assert!(matches!(t.check(), Err(Error::Cancelled)));
    }
}
