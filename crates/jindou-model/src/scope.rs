//! Limits on memory and time for work whose allocations are too many and too varied to be charged one by one: parsing,
//! planning, compiling.
//!
//! A [`Scope`] belongs to a query. The program's global allocator, [`Tracked`](crate::Tracked), counts the allocations
//! of a thread while it runs inside the scope, and charges them to the query's budget in steps of 64 KiB. An allocator
//! cannot fail without ending the process. So allocations that do not fit are charged anyway, and the scope records
//! that it is over: every loop of such work calls [`is_over`] or [`look`], and ends early if so. Between two such calls
//! the work must allocate little, or large pieces that it has not written to yet.
//!
//! Some work also charges part of its memory itself, in advance. It runs inside a scope [alongside these
//! charges](Scope::beside_charges), which are subtracted from its allocations, so that the scope charges only the
//! difference.

use crate::budget::Full;
use crate::{CancelToken, Charge, Error, Holder, MemoryBudget, Result};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// Net number of allocated bytes after which a thread reports to its scope.
const STEP: isize = 64 << 10;
/// Number of allocated bytes, ignoring freed ones, after which a thread checks the clock.
const CLOCK: usize = 1 << 20;

/// If nothing is measured, parsing and planning a text is assumed to need this many times its length in bytes, which is
/// more than nearly all texts need.
const FACTOR: u64 = 256;
/// Bytes that are added to that for any text.
const LEAST: u64 = 16 << 10;
/// Share (1/n) of the charge by length that is kept for the result after the work.
const KEPT_SHARE: u64 = 8;

/// Values of [`ScopeShared::over`]: not over, cancelled or timed out, own budget exhausted, whole budget exhausted.
const GOING: u8 = 0;
const ENDED: u8 = 1;
const FULL: u8 = 2;
const WHOLE_FULL: u8 = 3;

/// Work for one query, on one or several threads, whose memory is measured and whose time is limited. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Scope {
    shared: Arc<ScopeShared>,
}

#[derive(Debug)]
struct ScopeShared {
    budget: MemoryBudget,
    holder: Holder,
    cancel: CancelToken,
    /// True if the query's own charges to the budget are subtracted from its allocations.
    beside_charges: bool,
    /// Bytes allocated minus bytes freed, and minus the query's own charges if `beside_charges`. Negative while the
    /// work has freed more than it allocated, or has charged bytes that it has not allocated yet.
    ///
    /// While it is positive, this number of bytes is charged to the budget: before it grows, and released after it
    /// shrinks.
    net: AtomicI64,
    /// Bytes that were charged for a text's length because nothing is measured.
    by_length: u64,
    over: AtomicU8,
}

/// State and counters of a thread, for the scope and the query that it works for.
struct ThreadState {
    /// The scope that the thread is inside, or null. Points into an [`Arc`] that lives until the thread has left the
    /// scope.
    scope: Cell<*const ScopeShared>,
    /// Bytes allocated minus bytes freed that have not been reported to the scope yet.
    pending: Cell<isize>,
    /// Bytes allocated since the last check of the clock.
    work: Cell<usize>,
    /// Bytes of text [worked on](worked) since the last check of the token.
    text: Cell<usize>,
    /// Token of the query that the thread works for, or null. Points to a token that lives until the thread has left
    /// [`Scope::run`] or [`timed`].
    token: Cell<*const CancelToken>,
    /// Counters since the thread began ([`ThreadAccount`]): checks of tokens, checks of the measured memory, scopes
    /// entered or left, and bytes charged minus bytes released.
    checks: Cell<u64>,
    looks: Cell<u64>,
    stay: Cell<u64>,
    charged: Cell<i64>,
    /// Value of `charged` when the current scope was entered.
    charged_before: Cell<i64>,
    /// True if the allocator has checked the clock since the last call of [`was_over`].
    has_looked: Cell<bool>,
}

thread_local! {
    // Initialized at compile time and without a destructor, so that accessing it never allocates, and is allowed until
    // the thread has ended.
    static LOCAL: ThreadState = const {
        ThreadState {
            scope: Cell::new(ptr::null()),
            pending: Cell::new(0),
            work: Cell::new(0),
            text: Cell::new(0),
            token: Cell::new(ptr::null()),
            checks: Cell::new(0),
            looks: Cell::new(0),
            stay: Cell::new(0),
            charged: Cell::new(0),
            charged_before: Cell::new(0),
            has_looked: Cell::new(false),
        }
    };
}

/// Counts `size` bytes that this thread has allocated.
#[inline(always)]
pub(crate) fn took(size: usize) {
    LOCAL.with(|local| {
        if !local.scope.get().is_null() {
            local.took(size);
        }
    });
}

/// Counts `size` bytes that this thread has freed.
#[inline(always)]
pub(crate) fn gave(size: usize) {
    LOCAL.with(|local| {
        if !local.scope.get().is_null() {
            local.gave(size);
        }
    });
}

/// Counts bytes that the thread has charged to a budget; negative if it has released them.
pub(crate) fn charged(budget: &MemoryBudget, bytes: isize) {
    LOCAL.with(|local| {
        local.charged.set(local.charged.get() + bytes as i64);
        if bytes > 0 {
            local.looks.set(local.looks.get().wrapping_add(1));
        }
        // SAFETY: as in `ThreadState::tell`.
        if let Some(shared) = unsafe { local.scope.get().as_ref() }
            && shared.beside_charges
            && shared.budget.is(budget)
        {
            local.pending.set(local.pending.get() - bytes);
            if local.pending.get().unsigned_abs() >= STEP as usize {
                local.tell();
            }
        }
    });
}

/// Heap bytes that an allocation takes, including the allocator's overhead. This is glibc's rule; that of other
/// allocators is similar.
#[inline(always)]
fn piece(size: usize) -> isize {
    const OWN: usize = 8;
    const LEAST: usize = 32;
    const MASK: usize = 15;
    // Sizes of layouts are below `isize::MAX`.
    ((size + OWN + MASK) & !MASK).max(LEAST) as isize
}

impl ThreadState {
    /// Counts that a scope is entered or left.
    fn turn(&self) {
        self.stay.set(self.stay.get() + 1);
        self.charged_before.set(self.charged.get());
    }

    #[inline(always)]
    fn took(&self, size: usize) {
        let pending = self.pending.get() + piece(size);
        let work = self.work.get().wrapping_add(size);
        self.pending.set(pending);
        self.work.set(work);
        if pending >= STEP || work >= CLOCK {
            self.tell();
        }
    }

    #[inline(always)]
    fn gave(&self, size: usize) {
        let pending = self.pending.get() - piece(size);
        self.pending.set(pending);
        if pending <= -STEP {
            self.tell();
        }
    }

    /// Checks the token of the thread's query.
    #[cold]
    #[inline(never)]
    fn check(&self) -> Result<()> {
        // SAFETY: each pointer is null, or points to a value that outlives the `Stay` or the call of `timed` that set
        // it.
        let (scope, token) = unsafe { (self.scope.get().as_ref(), self.token.get().as_ref()) };
        match (scope, token) {
            (Some(shared), _) => shared.look(),
            (None, Some(token)) => token.check(),
            (None, None) => Ok(()),
        }?;
        // After an error `text` is not reset, so the next call checks again: work that cannot return errors ends early,
        // and its caller's check then gets the error.
        self.text.set(0);
        Ok(())
    }

    /// Reports the pending bytes to the scope. Called inside the allocator: must not allocate, block or panic.
    #[cold]
    #[inline(never)]
    fn tell(&self) {
        let scope = self.scope.get();
        // SAFETY: `scope` is null, or points to a scope whose `run` is on this thread's stack and owns it.
        let Some(shared) = (unsafe { scope.as_ref() }) else {
            return;
        };
        shared.add(self.pending.take());
        if self.work.get() >= CLOCK {
            self.work.set(0);
            self.has_looked.set(true);
            if shared.cancel.is_over() {
                shared.end_by(ENDED);
            }
        }
    }
}

/// The time that a thread spends inside a scope, or outside of all; restores the previous state on drop. Never leaves
/// [`inside`], so a thread drops its own ones in reverse order.
struct Stay {
    scope: *const ScopeShared,
    pending: isize,
    work: usize,
    token: *const CancelToken,
}

impl Stay {
    /// Enters a scope; null means none, in which case the thread still works for the same query.
    fn begin(scope: *const ScopeShared) -> Self {
        // SAFETY: a scope that is entered lives until it is left.
        let token = unsafe { scope.as_ref() }.map(|shared| ptr::from_ref(&shared.cancel));
        LOCAL.with(|local| {
            local.turn();
            Self {
                scope: local.scope.replace(scope),
                pending: local.pending.take(),
                work: local.work.take(),
                token: local.token.replace(token.unwrap_or(local.token.get())),
            }
        })
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            local.tell();
            local.scope.set(self.scope);
            local.pending.set(self.pending);
            local.work.set(self.work);
            local.token.set(self.token);
            local.turn();
        });
    }
}

/// Runs work for a query outside of any scope; [`worked`] checks the token meanwhile.
pub fn timed<T>(cancel: &CancelToken, run: impl FnOnce() -> T) -> T {
    struct Restored(*const CancelToken);
    impl Drop for Restored {
        fn drop(&mut self) {
            LOCAL.with(|local| {
                local.token.set(self.0);
                local.turn();
            });
        }
    }
    let _restored = LOCAL.with(|local| {
        local.turn();
        Restored(local.token.replace(ptr::from_ref(cancel)))
    });
    run()
}

/// Counts bytes of text that the thread has read, compared, converted or written for its query, and checks the query's
/// token after every mebibyte. Called for each block of a text that may be long, *before* the work. If the work is
/// slower than copying, callers pass a multiple of the block's length.
///
/// # Errors
/// As [`look`]; for a query without a scope, the errors of its token.
#[inline]
pub fn worked(bytes: usize) -> Result<()> {
    LOCAL.with(|local| {
        let text = local.text.get().saturating_add(bytes);
        local.text.set(text);
        match text < CLOCK {
            true => Ok(()),
            false => local.check(),
        }
    })
}

/// Counts a check of a token.
#[inline]
pub(crate) fn checked() {
    LOCAL.with(|local| local.checks.set(local.checks.get().wrapping_add(1)));
}

/// Counts a check of the measured memory.
fn looked() {
    LOCAL.with(|local| local.looks.set(local.looks.get().wrapping_add(1)));
}

/// Counters of a thread, for tools that search for memory that is not charged and for long work without checks.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ThreadAccount {
    /// True while the thread works for a query.
    pub has_token: bool,
    /// Number of checks of tokens so far.
    pub checks: u64,
    /// Number of times so far that the thread would have noticed if its memory had exceeded a limit.
    pub looks: u64,
    /// Changes whenever the thread enters or leaves a scope, or a call of [`outside`].
    pub stay: u64,
    /// Bytes charged minus bytes released so far, to any budget.
    pub charged: i64,
    /// The value of `charged` when the current scope was entered.
    pub charged_before: i64,
    /// State of the scope that the thread is inside, if any.
    pub scope: Option<ScopeAccount>,
}

/// State of a scope.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ScopeAccount {
    /// Bytes by which the budget's limit is exceeded, since they were allocated before they were charged.
    pub beyond_limit: i64,
}

/// The counters of this thread. Neither allocates nor blocks.
#[must_use]
pub fn account() -> ThreadAccount {
    let scope = with_current(|shared| ScopeAccount {
        beyond_limit: shared.budget.used().saturating_sub(shared.budget.limit()) as i64,
    });
    LOCAL.with(|local| ThreadAccount {
        has_token: !local.token.get().is_null(),
        checks: local.checks.get(),
        looks: local.looks.get(),
        stay: local.stay.get(),
        charged: local.charged.get(),
        charged_before: local.charged_before.get(),
        scope,
    })
}

fn inside<T>(scope: *const ScopeShared, run: impl FnOnce() -> T) -> T {
    if LOCAL.with(|local| local.scope.get()) == scope {
        // Each call of [`outside`] counts as entering and leaving, also if the thread is in no scope.
        LOCAL.with(ThreadState::turn);
        let done = run();
        LOCAL.with(ThreadState::turn);
        return done;
    }
    let _stay = Stay::begin(scope);
    run()
}

/// Runs work whose allocations are not counted for the scope, since they are charged elsewhere or outlive the query.
pub fn outside<T>(run: impl FnOnce() -> T) -> T {
    inside(ptr::null(), run)
}

/// Wraps a function that another thread will call, so that it runs inside the scope of the present thread.
pub fn carry<T>(run: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let scope = Scope::current();
    move || match scope {
        Some(scope) => scope.run(run),
        None => run(),
    }
}

/// Runs work that needs `bytes` in addition to its allocations, such as a thread's stack; charges them meanwhile.
pub fn beside<T>(bytes: u64, run: impl FnOnce() -> T) -> T {
    let Some(scope) = Scope::current() else {
        return run();
    };
    struct TakenMemory(Scope, isize);
    impl Drop for TakenMemory {
        fn drop(&mut self) {
            self.0.shared.add(-self.1);
        }
    }
    let bytes = clamped(bytes);
    scope.shared.add(bytes);
    let _taken = TakenMemory(scope, bytes);
    run()
}

/// A number of bytes, limited so that the counters can add thousands of them without overflow.
fn clamped(bytes: u64) -> isize {
    bytes.min(1 << 50) as isize
}

fn with_current<T>(ask: impl FnOnce(&ScopeShared) -> T) -> Option<T> {
    let scope = LOCAL.with(|local| local.scope.get());
    // SAFETY: as in `ThreadState::tell`.
    let shared = unsafe { scope.as_ref() };
    shared.map(ask)
}

/// True if the thread's scope has no memory or no time left, or its query was cancelled. Reads the clock (about 25 ns).
/// If it returns true, the caller skips the remaining work; a later [`look`] returns the error.
#[must_use]
pub fn is_over() -> bool {
    with_current(ScopeShared::is_over).unwrap_or(false)
}

/// As [`is_over`] without reading the clock, which the allocator does after every mebibyte. For loops each iteration of
/// which may allocate much memory, but few do.
#[inline]
#[must_use]
pub fn was_over() -> bool {
    looked();
    LOCAL.with(|local| {
        if local.has_looked.get() {
            local.has_looked.set(false);
            checked();
        }
    });
    with_current(|s| s.over.load(Ordering::Relaxed) != GOING).unwrap_or(false)
}

/// Returns an error if the thread's scope [is over](is_over).
///
/// # Errors
/// [`Error::Limit`] if the query's own memory is exhausted, [`Error::Busy`] if that of all queries is, and those of
/// [`CancelToken::check`].
pub fn look() -> Result<()> {
    with_current(ScopeShared::look).unwrap_or(Ok(()))
}

/// Checks that memory is available. Called before a large piece is allocated and written to.
///
/// # Errors
/// As [`look`], and also if `bytes` more are not available.
pub fn look_for(bytes: u64) -> Result<()> {
    with_current(|s| s.look_for(bytes)).unwrap_or(Ok(()))
}

/// Makes a value and also returns the number of bytes that remain allocated: measured, or, if nothing is measured, the
/// share of the scope's charge by length that is kept for the result. 0 outside of scopes.
pub fn measure<T>(make: impl FnOnce() -> T) -> (T, u64) {
    let taken = || {
        let known = with_current(|s| s.net.load(Ordering::Relaxed));
        known.unwrap_or(0) + LOCAL.with(|local| local.pending.get()) as i64
    };
    let before = taken();
    let made = make();
    let grown = u64::try_from(taken() - before).unwrap_or(0);
    let by_length = with_current(|s| s.by_length).unwrap_or(0);
    (made, grown + by_length / KEPT_SHARE)
}

/// True if the program's global allocator is [`Tracked`](crate::Tracked). Otherwise scopes limit time only, and charge
/// memory by the length of texts ([`Scope::for_text`]).
#[must_use]
pub fn is_measured() -> bool {
    const UNKNOWN: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;
    static IS: AtomicU8 = AtomicU8::new(UNKNOWN);
    if IS.load(Ordering::Relaxed) == UNKNOWN {
        let (budget, cancel) = (MemoryBudget::unlimited(), CancelToken::new());
        let probe = Scope::new(Holder::Rest, &budget, &cancel);
        // `black_box`, so that the compiler does not remove the allocation.
        let piece = probe.run(|| std::hint::black_box(Box::new(std::hint::black_box(0u64))));
        let seen = probe.bytes() > 0;
        drop(piece);
        IS.store(if seen { YES } else { NO }, Ordering::Relaxed);
    }
    IS.load(Ordering::Relaxed) == YES
}

impl Scope {
    /// A scope whose memory is charged to a budget for `holder`, and whose work ends when the token says so.
    #[must_use]
    pub fn new(holder: Holder, budget: &MemoryBudget, cancel: &CancelToken) -> Self {
        Self {
            shared: Arc::new(ScopeShared {
                budget: budget.clone(),
                holder,
                cancel: cancel.clone(),
                beside_charges: false,
                net: AtomicI64::new(0),
                by_length: 0,
                over: AtomicU8::new(GOING),
            }),
        }
    }

    /// As [`Self::new`]; charges that the work itself makes to the budget are subtracted from its allocations.
    #[must_use]
    pub fn beside_charges(holder: Holder, budget: &MemoryBudget, cancel: &CancelToken) -> Self {
        let mut scope = Self::new(holder, budget, cancel);
        if let Some(shared) = Arc::get_mut(&mut scope.shared) {
            shared.beside_charges = true;
        }
        scope
    }

    /// A scope for parsing and planning a text of `length` bytes. If memory is not measured, it charges 256 times the
    /// length during the work, which is more than nearly all texts need, and an eighth of that for the result of
    /// [`make`](Self::make).
    ///
    /// # Errors
    /// As [`look`].
    pub fn for_text(length: usize, budget: &MemoryBudget, cancel: &CancelToken) -> Result<Self> {
        let mut scope = Self::new(Holder::Text, budget, cancel);
        if !is_measured() {
            let bytes = (length as u64).saturating_mul(FACTOR);
            let bytes = clamped(bytes.saturating_add(LEAST));
            scope.shared.look_for(bytes as u64)?;
            scope.shared.add(bytes);
            if let Some(shared) = Arc::get_mut(&mut scope.shared) {
                shared.by_length = bytes as u64;
            }
        }
        scope.look()?;
        Ok(scope)
    }

    /// The scope that this thread is inside; `None` outside of all.
    #[must_use]
    pub fn current() -> Option<Self> {
        let scope = LOCAL.with(|local| local.scope.get());
        if scope.is_null() {
            return None;
        }
        // SAFETY: the pointer comes from an `Arc` that is alive (see `ThreadState::scope`); the count is increased for
        // the new one.
        let shared = unsafe {
            Arc::increment_strong_count(scope);
            Arc::from_raw(scope)
        };
        Some(Self { shared })
    }

    /// Runs work inside the scope: memory that this thread allocates meanwhile is charged, and memory that it frees is
    /// released. A scope that the thread was inside before is suspended.
    pub fn run<T>(&self, run: impl FnOnce() -> T) -> T {
        inside(Arc::as_ptr(&self.shared), run)
    }

    /// As [`Self::run`]; returns an error if the scope is over before or after the work.
    ///
    /// # Errors
    /// As [`look`], and the function's own errors.
    pub fn try_run<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        self.look()?;
        let done = self.run(run);
        // Work that ended early because the scope was over need not have returned an error itself.
        self.look()?;
        done
    }

    /// As [`Self::try_run`], and ends the scope: returns the result, and a charge for the memory that remains
    /// allocated.
    ///
    /// # Errors
    /// As [`Self::try_run`].
    pub fn make<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<(T, Charge)> {
        let made = self.try_run(run)?;
        Ok((made, self.take()))
    }

    /// Returns an error if the scope is over.
    ///
    /// # Errors
    /// As [`look`].
    pub fn look(&self) -> Result<()> {
        self.shared.look()
    }

    /// As the function [`was_over`] for this scope, which the thread need not be inside.
    #[must_use]
    pub fn was_over(&self) -> bool {
        self.shared.over.load(Ordering::Relaxed) != GOING
    }

    /// Bytes allocated and not freed; what threads inside the scope have not reported yet is missing.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.shared.net.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Ends the scope: the bytes that are still allocated are transferred to a charge.
    fn take(&self) -> Charge {
        let shared = &self.shared;
        let net = shared.net.swap(0, Ordering::AcqRel);
        let bytes = u64::try_from(net).unwrap_or(0);
        let mut charge = Charge::charged(shared.holder, &shared.budget, bytes);
        let unkept = shared.by_length / KEPT_SHARE * (KEPT_SHARE - 1);
        // Reducing a charge cannot fail.
        let _ = charge.set(bytes.saturating_sub(unkept));
        charge
    }
}

impl ScopeShared {
    /// Adds bytes to `net`, negative ones for freed memory, and charges or releases them. Called inside the allocator.
    fn add(&self, bytes: isize) {
        if bytes == 0 {
            return;
        }
        let held = |net: i64| u64::try_from(net).unwrap_or(0);
        let mut before = self.net.load(Ordering::Relaxed);
        // Bytes that this call has charged so far.
        let mut paid = 0;
        let after = loop {
            let after = before + bytes as i64;
            let owed = held(after).saturating_sub(held(before));
            if owed > paid {
                if let Some(full) = self.budget.take_measured(self.holder, owed - paid) {
                    self.end_by(match full {
                        Full::Own => FULL,
                        Full::Whole => WHOLE_FULL,
                    });
                }
                paid = owed;
            }
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            let net = &self.net;
            match net.compare_exchange_weak(before, after, success, failure) {
                Ok(_) => break after,
                Err(now) => before = now,
            }
        };
        let surplus = (paid + held(before)).saturating_sub(held(after));
        if surplus > 0 {
            self.budget.return_measured(self.holder, surplus);
        }
    }

    fn end_by(&self, why: u8) {
        // The first reason is kept.
        let _ = self
            .over
            .compare_exchange(GOING, why, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        looked();
        if self.over.load(Ordering::Relaxed) != GOING {
            return true;
        }
        let ended = self.cancel.check().is_err();
        if ended {
            self.end_by(ENDED);
        }
        ended
    }

    fn look(&self) -> Result<()> {
        looked();
        let over = self.over.load(Ordering::Relaxed);
        match over {
            FULL => Err(self.budget.refusal(Full::Own, self.holder, 0)),
            WHOLE_FULL => Err(self.budget.refusal(Full::Whole, self.holder, 0)),
            ENDED => self.cancel.check().and(Err(Error::Cancelled)),
            _ => self.cancel.check().inspect_err(|_| self.end_by(ENDED)),
        }
    }

    fn look_for(&self, bytes: u64) -> Result<()> {
        self.look()?;
        if self.budget.has_room(bytes) {
            return Ok(());
        }
        // They do not fit: charging them yields the right error. If they fit now, the charge is released again.
        self.budget.charge_for(self.holder, bytes)?;
        self.budget.release_for(self.holder, bytes);
        Ok(())
    }
}

impl Drop for ScopeShared {
    fn drop(&mut self) {
        let held = u64::try_from(*self.net.get_mut()).unwrap_or(0);
        self.budget.return_measured(self.holder, held);
    }
}

#[cfg(test)]
mod tests;
