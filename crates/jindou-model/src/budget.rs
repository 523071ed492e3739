//! Memory budgets, to which queries and loads charge the memory that they allocate.

use crate::{Error, Limit, Resource, Result, scope};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

crate::named_enum! {
    /// The kind of use that some of a budget's bytes are charged for; error messages name the largest.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Holder {
        /// Everything that has no name of its own, such as batches of rows and texts being written.
        Rest = "batches of rows",
        /// Stored sides of hash joins, with their tables.
        HashJoin = "hash join",
        /// Searches of property paths.
        Path = "property path",
        /// Groups and their aggregates.
        GroupBy = "GROUP BY",
        /// Groups with counts only.
        Count = "COUNT",
        /// Rows to sort.
        OrderBy = "ORDER BY",
        /// Distinct rows seen so far.
        Distinct = "DISTINCT",
        /// Rows of a part of a query that runs once for each outer row.
        Correlated = "correlated part",
        /// Terms that expressions compute.
        Terms = "terms that the query creates",
        /// Inline data.
        Values = "VALUES",
        /// Answers of other endpoints.
        Service = "SERVICE",
        /// Rows that another executor, such as a GPU, has computed.
        Offload = "rows of another executor",
        /// Neighbour lists sent by other shards.
        Shards = "lists of other shards",
        /// A query's text, algebra and plan.
        Text = "the query's text and plan",
    }
    /// The name in error messages.
    pub fn name;
}

impl Holder {
    const ALL: [Self; 14] = [
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
        Self::Shards,
        Self::Text,
    ];
    // Budgets index their counters by the holder's number, so the list must be complete.
    const _WHOLE: () = assert!(Self::ALL.len() == Self::Text as usize + 1);
}

/// The budget that is exhausted: the one that was charged, or the whole that it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Own,
    Whole,
}

/// A limit of bytes that all operators of one query, or all phases of one load, share.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    inner: Arc<BudgetInner>,
}

/// Largest number of bytes that a part charges to its whole in advance: enough for a small query.
const ADVANCE: u64 = 64 << 10;
/// A part charges at most 1/1024 of the whole's limit in advance.
const ADVANCE_SHARE: u64 = 1024;
/// Once more than 1/8 of a whole is used, parts charge nothing in advance: parts that use nothing must not take memory
/// from others.
const ADVANCED_SHARE: u64 = 8;
/// The last 1/16 of a whole is the *reserve*: among [modest parts](MemoryBudget::modest_part), only small ones may use
/// it.
const LAST_SHARE: u64 = 16;
/// A part is small while it uses at most 1/256 of the whole's limit.
const SMALL_SHARE: u64 = 256;

/// Memory that [`MemoryBudget::charge_with_headroom`] leaves to other operators: a share (1/n) of the limit, and these
/// bytes for the batches of all threads, but at most three quarters.
const HEADROOM_SHARE: u64 = 8;
const HEADROOM: u64 = 4 << 20;

#[derive(Debug)]
struct BudgetInner {
    limit: u64,
    /// True for [`MemoryBudget::scarce`].
    scarce: bool,
    used: AtomicU64,
    /// Largest `used` before any release so far. The actual peak is the larger of this and the present `used`.
    peak: AtomicU64,
    /// Bytes in `used` by [`Holder`].
    held: [AtomicU64; Holder::ALL.len()],
    /// Bytes of the reserve that small parts use.
    reserve: AtomicU64,
    /// The budget that this one is a part of, if any; bytes are charged to both.
    whole: Option<ParentBudget>,
}

/// The whole that a budget is a part of. The part charged `advance` to it when it was created, and charges its use
/// above that, so that small queries do not contend for the whole's counters.
#[derive(Debug)]
struct ParentBudget {
    budget: MemoryBudget,
    advance: u64,
    /// True for a [modest part](MemoryBudget::modest_part), which leaves the reserve to small parts.
    leaves: bool,
    /// Bytes of the whole's reserve that this part uses; they are also in the whole's `used`.
    from_reserve: AtomicU64,
}

impl ParentBudget {
    /// Bytes that are charged to the whole when the part uses `used` bytes.
    fn charged(&self, used: u64) -> u64 {
        used.max(self.advance)
    }

    /// True for a modest part that is small when it uses `used` bytes.
    fn is_small(&self, used: u64) -> bool {
        self.leaves && used <= self.budget.inner.limit / SMALL_SHARE
    }

    /// Limit of the whole for this part, without the reserve if the part is modest.
    fn open(&self) -> u64 {
        let limit = self.budget.inner.limit;
        match self.leaves {
            true => limit - limit / LAST_SHARE,
            false => limit,
        }
    }

    /// True if `bytes` fit into the reserve when `reserved` bytes of it are used already.
    fn reserve_fits(&self, reserved: u64, bytes: u64) -> bool {
        let last = self.budget.inner.limit / LAST_SHARE;
        reserved.saturating_add(bytes) <= last
    }

    /// Charges the part's bytes to the whole; a small part may use the reserve. `after` is the part's use with these
    /// bytes. If `held`, the bytes are allocated already and charged even if they do not fit, so large parts may
    /// temporarily exceed their limit.
    fn charge(&self, bytes: u64, held: bool, after: u64) -> std::result::Result<(), Full> {
        let is_small = self.is_small(after);
        if !is_small {
            self.leave_reserve(u64::MAX);
        }
        let charged = self.budget.take(bytes, held, self.open());
        if charged.is_ok() || !is_small {
            return charged;
        }
        let taken = |reserved| self.reserve_fits(reserved, bytes).then(|| reserved + bytes);
        let reserve = &self.budget.inner.reserve;
        if reserve
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken)
            .is_err()
        {
            return charged;
        }
        self.from_reserve.fetch_add(bytes, Ordering::Relaxed);
        if !held {
            let _ = self.budget.take(bytes, true, u64::MAX);
        }
        Ok(())
    }

    /// Frees up to `bytes` of the reserve that the part uses; they remain charged to the whole.
    fn leave_reserve(&self, bytes: u64) {
        if self.from_reserve.load(Ordering::Relaxed) == 0 {
            return;
        }
        let less = |from: u64| Some(from.saturating_sub(bytes));
        let from = (self.from_reserve)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .unwrap_or_default();
        let reserve = &self.budget.inner.reserve;
        reserve.fetch_sub(from.min(bytes), Ordering::Relaxed);
    }

    fn give_back(&self, bytes: u64) {
        self.leave_reserve(bytes);
        self.budget.give_back(bytes);
    }
}

impl Drop for BudgetInner {
    /// Releases the bytes charged to the whole when the part's last clone is dropped.
    fn drop(&mut self) {
        if let Some(whole) = &self.whole {
            whole.give_back(whole.charged(*self.used.get_mut()));
        }
    }
}

impl MemoryBudget {
    /// A budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self::build(limit, None)
    }

    /// A budget for tests, of which operators that can write rows to temporary files get as little as possible.
    #[doc(hidden)]
    #[must_use]
    pub fn scarce(limit: u64) -> Self {
        let mut inner = Self::inner(limit, None);
        inner.scarce = true;
        Self {
            inner: Arc::new(inner),
        }
    }

    /// True for [`Self::scarce`].
    #[doc(hidden)]
    #[must_use]
    pub fn is_scarce(&self) -> bool {
        self.inner.scarce
    }

    /// A budget of `limit` bytes that is a part of this one, the *whole*: bytes charged to the part are also charged to
    /// the whole, and rejected if either is exhausted. Meant for many queries that share a process. While less than an
    /// eighth of the whole is used, the part charges some bytes in advance: 64 KiB, or a thousandth of the whole's
    /// limit if that is less.
    #[must_use]
    pub fn part(&self, limit: u64) -> Self {
        self.part_that(limit, false)
    }

    /// As [`Self::part`], but if the part uses more than a 256th of the whole, it cannot use the last sixteenth. So
    /// small queries are answered while a few large ones use all that they can, even in moments when these exceed their
    /// limits. If ordinary parts (such as bodies being received) fill the whole, small modest parts may exceed its
    /// limit by up to that sixteenth.
    #[must_use]
    pub fn modest_part(&self, limit: u64) -> Self {
        self.part_that(limit, true)
    }

    fn part_that(&self, limit: u64, leaves: bool) -> Self {
        let advance = ADVANCE.min(limit).min(self.inner.limit / ADVANCE_SHARE);
        let has_plenty = self.used() < self.inner.limit / ADVANCED_SHARE;
        let advance = if has_plenty && self.take(advance, false, self.inner.limit).is_ok() {
            advance
        } else {
            0
        };
        let budget = self.clone();
        let whole = ParentBudget {
            budget,
            advance,
            leaves,
            from_reserve: AtomicU64::new(0),
        };
        Self::build(limit, Some(whole))
    }

    fn build(limit: u64, whole: Option<ParentBudget>) -> Self {
        Self {
            inner: Arc::new(Self::inner(limit, whole)),
        }
    }

    fn inner(limit: u64, whole: Option<ParentBudget>) -> BudgetInner {
        BudgetInner {
            limit,
            scarce: false,
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            held: Default::default(),
            reserve: AtomicU64::new(0),
            whole,
        }
    }

    /// A budget without a limit.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Charges `bytes`, or returns an error and charges nothing if they do not fit.
    pub fn charge(&self, bytes: u64) -> Result<()> {
        self.charge_for(Holder::Rest, bytes)
    }

    /// Charges `bytes` for a holder. The error names the holder with the most bytes, which may be another one.
    pub fn charge_for(&self, holder: Holder, bytes: u64) -> Result<()> {
        if !self.try_charge(bytes) {
            let own = self.used().saturating_add(bytes) > self.inner.limit;
            let full = if own { Full::Own } else { Full::Whole };
            return Err(self.refusal(full, holder, bytes));
        }
        if let Some(held) = self.held(holder) {
            held.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// As [`Self::charge_for`], but also fails if less than the *headroom*, memory for other operators, would remain. For
    /// operators that then write rows to temporary files.
    ///
    /// # Errors
    /// Those of [`Self::charge_for`].
    pub fn charge_with_headroom(&self, holder: Holder, bytes: u64) -> Result<()> {
        match self.has_headroom(bytes) {
            true => self.charge_for(holder, bytes),
            false => Err(self.refusal(Full::Own, holder, bytes)),
        }
    }

    /// True if `bytes` would fit at present and leave the headroom. Charges nothing.
    #[must_use]
    pub fn has_headroom(&self, bytes: u64) -> bool {
        let whole = self.inner.whole.as_ref().map(|w| w.budget.inner.limit);
        let limit = self.inner.limit.min(whole.unwrap_or(u64::MAX));
        let headroom = (limit / HEADROOM_SHARE + HEADROOM).min(limit / 4 * 3);
        !self.inner.scarce && self.has_room(bytes.saturating_add(headroom))
    }

    /// True if both are clones of one budget.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Charges bytes that are allocated already, whether they fit or not. Returns the budget whose limit they exceed,
    /// if any. Neither allocates nor blocks, since allocators call it.
    pub(crate) fn take_measured(&self, holder: Holder, bytes: u64) -> Option<Full> {
        if let Some(held) = self.held(holder) {
            held.fetch_add(bytes, Ordering::Relaxed);
        }
        self.take(bytes, true, self.inner.limit).err()
    }

    /// Releases bytes that were charged by [`Self::take_measured`].
    pub(crate) fn return_measured(&self, holder: Holder, bytes: u64) {
        if let Some(held) = self.held(holder) {
            held.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.give_back(bytes);
    }

    /// True if `bytes` would fit at present. Charges nothing.
    #[must_use]
    pub fn has_room(&self, bytes: u64) -> bool {
        let after = self.used().saturating_add(bytes);
        let whole = self.inner.whole.as_ref();
        after <= self.inner.limit
            && whole.is_none_or(|whole| {
                let reserved = whole.budget.inner.reserve.load(Ordering::Relaxed);
                whole.budget.used().saturating_add(bytes) <= whole.open()
                    || (whole.is_small(after) && whole.reserve_fits(reserved, bytes))
            })
    }

    /// The error for `bytes` that did not fit in addition to the present use; `full` is the exhausted budget.
    #[cold]
    pub(crate) fn refusal(&self, full: Full, holder: Holder, bytes: u64) -> Error {
        if let (Some(parent), Full::Whole) = (&self.inner.whole, full) {
            let whole = &parent.budget;
            // If the charge does not fit into the whole even without other parts, retrying later does not help.
            let after = self.used().saturating_add(bytes);
            if after > parent.open() {
                return whole.refusal(Full::Own, holder, bytes);
            }
            let whole = whole.inner.limit;
            let message = format!(
                "all queries together reached their memory limit of {}",
                size(whole)
            );
            return Error::Busy(Limit::new(Resource::Memory, message).of(whole));
        }
        let with = |h: Holder| {
            let asked = if h == holder { bytes } else { 0 };
            let held = self.held(h)?.load(Ordering::Relaxed);
            Some((h, held.saturating_add(asked)))
        };
        let named = Holder::ALL.into_iter().filter_map(with);
        let most = named.max_by_key(|(_, held)| *held);
        // A holder of less than an eighth is not named as the reason.
        let most = most.filter(|(_, held)| *held >= self.inner.limit / 8);
        let who = most.map_or(String::new(), |(most, held)| {
            format!("; {} would hold {} of it", most.name(), size(held))
        });
        let limit = self.inner.limit;
        let message = format!("the memory limit of {} is reached{who}", size(limit));
        Error::Limit(
            Limit::new(Resource::Memory, message)
                .of(limit)
                .held_by(most),
        )
    }

    /// The counter of a holder; `None` for [`Holder::Rest`], which errors do not name.
    fn held(&self, holder: Holder) -> Option<&AtomicU64> {
        let counter = || &self.inner.held[holder as usize];
        (holder != Holder::Rest).then(counter)
    }

    /// Charges `bytes` and returns true, or returns false if they do not fit.
    #[must_use]
    pub fn try_charge(&self, bytes: u64) -> bool {
        let taken = self.take(bytes, false, self.inner.limit).is_ok();
        if taken {
            scope::charged(self, bytes as isize);
        }
        taken
    }

    /// Charges `bytes` to this budget and to its whole, or to neither. A charge that fails in one of them never
    /// occupies bytes of the other, so it cannot make other charges fail. Takes one compare-and-swap per budget, or a
    /// single one if the bytes were charged to the whole in advance.
    ///
    /// `limit` is this budget's limit or less. Bytes that are allocated already (`held`) are charged in any case; the
    /// error is the same.
    fn take(&self, bytes: u64, held: bool, limit: u64) -> std::result::Result<(), Full> {
        let used = &self.inner.used;
        let mut before = used.load(Ordering::Relaxed);
        // Bytes that this call has charged to the whole so far.
        let mut paid = 0;
        let mut full = None;
        let taken = loop {
            let after = before.checked_add(bytes);
            let fits = after.is_some_and(|after| after <= limit);
            if !fits {
                full = Some(Full::Own);
            }
            let Some(after) = after.filter(|_| fits || held) else {
                break false;
            };
            let owed = match &self.inner.whole {
                Some(whole) => whole.charged(after) - whole.charged(before),
                None => 0,
            };
            if owed > paid {
                if self.charge_whole(owed - paid, held, after).is_err() {
                    full = full.or(Some(Full::Whole));
                    if !held {
                        break false;
                    }
                }
                paid = owed;
            }
            match used.compare_exchange_weak(before, after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    paid -= owed;
                    break true;
                }
                Err(now) => before = now,
            }
        };
        if paid > 0 {
            self.release_whole(paid);
        }
        debug_assert!(taken || full.is_some());
        full.map_or(Ok(()), Err)
    }

    /// Charges bytes to the whole for this part, whose own use is `after` with these bytes.
    fn charge_whole(&self, bytes: u64, held: bool, after: u64) -> std::result::Result<(), Full> {
        let whole = self.inner.whole.as_ref();
        whole.map_or(Ok(()), |whole| whole.charge(bytes, held, after))
    }

    fn release_whole(&self, bytes: u64) {
        if let Some(whole) = &self.inner.whole {
            whole.give_back(bytes);
        }
    }

    /// Releases `bytes` that were charged for a holder.
    pub fn release_for(&self, holder: Holder, bytes: u64) {
        if let Some(held) = self.held(holder) {
            held.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.release(bytes);
    }

    /// Releases `bytes` that were charged without a holder.
    pub fn release(&self, bytes: u64) {
        scope::charged(self, -(bytes as isize));
        self.give_back(bytes);
    }

    fn give_back(&self, bytes: u64) {
        let before = self.inner.used.fetch_sub(bytes, Ordering::Relaxed);
        // Between two releases the use only grows, so it suffices to record the peak here.
        if before > self.inner.peak.load(Ordering::Relaxed) {
            self.inner.peak.fetch_max(before, Ordering::Relaxed);
        }
        if let Some(whole) = &self.inner.whole {
            let surplus = whole.charged(before) - whole.charged(before.saturating_sub(bytes));
            if surplus > 0 {
                whole.give_back(surplus);
            }
        }
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.inner.limit
    }

    /// Bytes charged at present.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.inner.used.load(Ordering::Relaxed)
    }

    /// Most bytes ever charged at once.
    #[must_use]
    pub fn peak(&self) -> u64 {
        let used = self.used();
        used.max(self.inner.peak.load(Ordering::Relaxed))
    }
}

/// A size as shown in messages, rounded down.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests;
