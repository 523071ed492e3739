//! Deadlines, cancellation and memory budgets that every path of a query and a load charges.

use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Tells a running query to stop: because it was cancelled or because its deadline passed. Cheap
/// to clone; checked once a batch, never once a row.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    flag: Arc<AtomicBool>,
    deadline: Option<(Instant, Duration)>,
}

impl CancelToken {
    /// A token without a deadline.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that also ends `limit` from now.
    #[must_use]
    pub fn with_deadline(limit: Duration) -> Self {
        Self {
            flag: Arc::default(),
            deadline: Some((Instant::now() + limit, limit)),
        }
    }

    /// The same cancellation flag with a deadline `limit` from now.
    #[must_use]
    pub fn limited(&self, limit: Duration) -> Self {
        Self {
            flag: Arc::clone(&self.flag),
            deadline: Some((Instant::now() + limit, limit)),
        }
    }

    /// Asks everyone who holds a clone to stop at the next batch.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// True once cancelled (deadlines not looked at: no clock is read).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Time until the deadline; `None` without one.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.deadline
            .map(|(at, _)| at.saturating_duration_since(Instant::now()))
    }

    /// Ok to go on, or the error to return. Reads the clock when there is a deadline (about 25 ns).
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some((at, limit)) = self.deadline
            && Instant::now() >= at
        {
            return Err(Error::Timeout(limit));
        }
        Ok(())
    }
}

/// A byte budget shared by all operators of one query, or all phases of one load.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    inner: Arc<BudgetInner>,
}

#[derive(Debug)]
struct BudgetInner {
    limit: u64,
    used: AtomicU64,
    peak: AtomicU64,
    /// What this budget's bytes are charged to as well.
    whole: Option<MemoryBudget>,
}

impl Drop for BudgetInner {
    /// What a part still holds when its last owner goes is given back to the whole.
    fn drop(&mut self) {
        if let Some(whole) = &self.whole {
            whole.release(*self.used.get_mut());
        }
    }
}

impl MemoryBudget {
    /// A budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self::of(limit, None)
    }

    /// A budget of `limit` bytes that is a part of this one: what is charged to the part is charged to the whole, and
    /// refused where either has no room. For many queries that share a process.
    #[must_use]
    pub fn part(&self, limit: u64) -> Self {
        Self::of(limit, Some(self.clone()))
    }

    fn of(limit: u64, whole: Option<Self>) -> Self {
        Self {
            inner: Arc::new(BudgetInner {
                limit,
                used: AtomicU64::new(0),
                peak: AtomicU64::new(0),
                whole,
            }),
        }
    }

    /// No limit.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Takes `bytes`, or says that the limit is reached (and takes nothing).
    pub fn charge(&self, bytes: u64) -> Result<()> {
        if self.try_charge(bytes) {
            return Ok(());
        }
        let own = self.used().saturating_add(bytes) > self.inner.limit;
        Err(Error::Limit(match &self.inner.whole {
            Some(whole) if !own => format!(
                "all queries together reached their memory limit of {} MiB; try again later",
                whole.inner.limit >> 20
            ),
            _ => format!(
                "the memory limit of {} MiB is reached; raise --memory or narrow the query",
                self.inner.limit >> 20
            ),
        }))
    }

    /// Takes `bytes` if they fit.
    #[must_use]
    pub fn try_charge(&self, bytes: u64) -> bool {
        let before = self.inner.used.fetch_add(bytes, Ordering::Relaxed);
        let after = before.saturating_add(bytes);
        if after > self.inner.limit {
            self.inner.used.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        if let Some(whole) = &self.inner.whole
            && !whole.try_charge(bytes)
        {
            self.inner.used.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.inner.peak.fetch_max(after, Ordering::Relaxed);
        true
    }

    /// Gives `bytes` back.
    pub fn release(&self, bytes: u64) {
        self.inner.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.inner.whole {
            whole.release(bytes);
        }
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.inner.limit
    }

    /// Bytes taken now.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.inner.used.load(Ordering::Relaxed)
    }

    /// Most bytes ever taken at once.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.inner.peak.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_refuses_what_does_not_fit_and_takes_nothing() {
        let b = MemoryBudget::new(10);
        assert!(b.try_charge(8));
        assert!(b.charge(3).is_err());
        assert_eq!(b.used(), 8);
        b.release(8);
        assert_eq!((b.used(), b.peak()), (0, 8));
    }

    #[test]
    fn a_part_is_charged_to_the_whole() {
        let whole = MemoryBudget::new(10);
        let (a, b) = (whole.part(8), whole.part(8));
        assert!(a.try_charge(6) && !a.try_charge(3));
        assert!(!b.try_charge(5) && b.try_charge(4));
        assert_eq!((a.used(), b.used(), whole.used()), (6, 4, 10));
        assert!(b.charge(1).unwrap_err().to_string().contains("together"));
        a.release(6);
        assert_eq!(whole.used(), 4);
        drop(b);
        assert_eq!(whole.used(), 0);
    }

    #[test]
    fn a_token_says_why_it_ended() {
        let t = CancelToken::with_deadline(Duration::ZERO);
        assert!(matches!(t.check(), Err(Error::Timeout(_))));
        t.cancel();
        assert!(matches!(t.check(), Err(Error::Cancelled)));
    }
}
