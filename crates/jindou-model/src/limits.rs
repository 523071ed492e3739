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

/// Holder of bytes of a budget, as a refusal names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Everything without a name of its own: batches of rows, texts under way.
    Rest,
    /// The held sides of hash joins, with their tables.
    HashJoin,
    /// Searches of property paths.
    Path,
    /// Groups and their aggregates.
    GroupBy,
    /// Groups that only count.
    Count,
    /// Rows to sort.
    OrderBy,
    /// Rows that were seen.
    Distinct,
    /// Rows of a part that runs once for each outer row.
    Correlated,
    /// Terms that expressions made.
    Terms,
    /// Inline data.
    Values,
    /// Answers of other endpoints.
    Service,
    /// Rows that another executor made.
    Offload,
    /// A text, its algebra and its plan.
    Text,
}

impl Holder {
    const ALL: [Self; 13] = [
        Self::Rest,
        Self::HashJoin,
        Self::Path,
        Self::GroupBy,
        Self::Count,
        Self::OrderBy,
        Self::Distinct,
        Self::Correlated,
        Self::Terms,
        Self::Values,
        Self::Service,
        Self::Offload,
        Self::Text,
    ];
    // Budgets count by a holder's place in it.
    const _WHOLE: () = assert!(Self::ALL.len() == Self::Text as usize + 1);

    /// As messages have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rest => "batches of rows",
            Self::HashJoin => "hash join",
            Self::Path => "property path",
            Self::GroupBy => "GROUP BY",
            Self::Count => "COUNT",
            Self::OrderBy => "ORDER BY",
            Self::Distinct => "DISTINCT",
            Self::Correlated => "correlated part",
            Self::Terms => "terms that the query makes",
            Self::Values => "VALUES",
            Self::Service => "SERVICE",
            Self::Offload => "the rows of another executor",
            Self::Text => "the text and its plan",
        }
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
    /// Of `used`, by [`Holder`].
    held: [AtomicU64; Holder::ALL.len()],
    /// The budget to which this one's bytes are charged as well.
    whole: Option<MemoryBudget>,
}

impl Drop for BudgetInner {
    /// Gives back to the whole what a part still holds when its last owner goes.
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
                held: Default::default(),
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
        self.charge_for(Holder::Rest, bytes)
    }

    /// Takes `bytes` on behalf of a holder. A refusal names who holds most, which need not be the one who asks.
    pub fn charge_for(&self, holder: Holder, bytes: u64) -> Result<()> {
        if self.take(bytes) {
            self.held(holder).fetch_add(bytes, Ordering::Relaxed);
            return Ok(());
        }
        Err(self.refusal(holder, bytes))
    }

    #[cold]
    fn refusal(&self, holder: Holder, bytes: u64) -> Error {
        let own = self.used().saturating_add(bytes) > self.inner.limit;
        if let Some(whole) = &self.inner.whole
            && !own
        {
            // Alone it would not fit either.
            if self.used().saturating_add(bytes) > whole.inner.limit {
                return whole.refusal(holder, bytes);
            }
            return Error::Busy(format!(
                "all queries together reached their memory limit of {}; try again later",
                size(whole.inner.limit)
            ));
        }
        let with = |h: Holder| {
            let asked = if h == holder { bytes } else { 0 };
            self.held(h).load(Ordering::Relaxed).saturating_add(asked)
        };
        let named = Holder::ALL.into_iter().filter(|h| *h != Holder::Rest);
        let who = match named.max_by_key(|h| with(*h)) {
            // What holds less is not why.
            Some(most) if with(most) >= self.inner.limit / 8 => {
                format!("; {} would hold {} of it", most.name(), size(with(most)))
            }
            _ => String::new(),
        };
        Error::Limit(format!(
            "the memory limit of {} is reached{who}; raise --memory or narrow the query",
            size(self.inner.limit)
        ))
    }

    fn held(&self, holder: Holder) -> &AtomicU64 {
        &self.inner.held[holder as usize]
    }

    /// Takes `bytes` if they fit.
    #[must_use]
    pub fn try_charge(&self, bytes: u64) -> bool {
        let taken = self.take(bytes);
        if taken {
            self.held(Holder::Rest).fetch_add(bytes, Ordering::Relaxed);
        }
        taken
    }

    fn take(&self, bytes: u64) -> bool {
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

    /// Gives `bytes` back that were charged without a name.
    pub fn release(&self, bytes: u64) {
        self.release_for(Holder::Rest, bytes);
    }

    /// Gives `bytes` of a holder back.
    pub fn release_for(&self, holder: Holder, bytes: u64) {
        self.held(holder).fetch_sub(bytes, Ordering::Relaxed);
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

/// A size as messages have it, rounded down.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_who_holds_most() {
        let b = MemoryBudget::new(1 << 20);
        b.charge_for(Holder::HashJoin, 600 << 10).unwrap();
        b.charge_for(Holder::OrderBy, 100 << 10).unwrap();
        let refused = |h, n| b.charge_for(h, n).unwrap_err().to_string();
        let said = refused(Holder::OrderBy, 400 << 10);
        assert!(
            said.contains("limit of 1 MiB is reached; hash join would hold 600 KiB"),
            "{said}"
        );
        let said = refused(Holder::OrderBy, 501 << 10);
        assert!(said.contains("ORDER BY would hold 601 KiB"), "{said}");
        b.release_for(Holder::HashJoin, 600 << 10);
        b.charge(900 << 10).unwrap();
        assert!(!refused(Holder::OrderBy, 25 << 10).contains("ORDER BY"));
        b.release_for(Holder::OrderBy, 100 << 10);
        assert_eq!(b.used(), 900 << 10);
    }

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
