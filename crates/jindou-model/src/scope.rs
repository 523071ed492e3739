//! Memory and time of work whose allocations are too numerous and too varied to be charged one by one: parsing,
//! planning, compiling.
//!
//! A [`Scope`] belongs to a query. Allocations of a thread while it runs inside the scope are counted by the program's
//! global allocator, [`Tracked`](crate::Tracked), and charged to the query's budget in steps of 64 KiB. An allocator
//! cannot refuse without ending the process, so allocations that do not fit are charged anyway, and this is remembered:
//! every loop of such work calls [`is_over`] or [`look`], and gives up. Between two such calls it allocates little, or
//! large pieces that it has not written to yet.
//!
//! Work that charges some of its memory itself, in advance, runs inside a scope [alongside these
//! charges](Scope::beside_charges): its charges to the same budget are offset against its allocations, so that the
//! scope charges only the difference.

use crate::budget::Full;
use crate::{CancelToken, Charge, Error, Holder, MemoryBudget, Result};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// Net bytes allocated after which a thread reports to its scope.
const STEP: isize = 64 << 10;
/// Bytes allocated in total after which a thread checks the clock.
const CLOCK: usize = 1 << 20;

/// Factor between a text's length and the assumed memory for parsing and planning it, if nothing is measured: more than
/// nearly all texts need.
const FACTOR: u64 = 256;
/// Bytes that are added for any text.
const LEAST: u64 = 16 << 10;
/// Divisor for the charge by length: the share that is kept for the result.
const KEPT_SHARE: u64 = 8;

/// Reasons why a scope is over, in [`ScopeShared::over`].
const GOING: u8 = 0;
const ENDED: u8 = 1;
const FULL: u8 = 2;
const WHOLE_FULL: u8 = 3;

/// Work for one query, on one thread or several, whose memory is measured and whose time is limited. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Scope {
    shared: Arc<ScopeShared>,
}

#[derive(Debug)]
struct ScopeShared {
    budget: MemoryBudget,
    holder: Holder,
    cancel: CancelToken,
    /// True if charges to the budget are offset against allocations.
    beside_charges: bool,
    /// Bytes allocated minus bytes freed. Negative while bytes are freed that were not allocated here, or that were
    /// charged and are not allocated yet.
    ///
    /// If it is positive, the budget is charged for this number: before it grows, and released after it shrinks.
    net: AtomicI64,
    /// The part that was charged for a text's length because nothing is measured.
    by_length: u64,
    over: AtomicU8,
}

/// State of a thread.
struct ThreadState {
    /// The scope that the thread is in; null outside of all. Points into an [`Arc`] that lives until the thread has
    /// left.
    scope: Cell<*const ScopeShared>,
    /// Bytes that have not been reported to the scope.
    pending: Cell<isize>,
    /// Bytes allocated since the last check of the clock.
    work: Cell<usize>,
    /// Bytes [worked on](worked) since the last check of the token.
    text: Cell<usize>,
    /// Token of the query that the thread works for; null without one. Points to a token that lives until the thread
    /// has left [`Scope::run`] or [`timed`].
    token: Cell<*const CancelToken>,
    /// Counters of a thread so far: checks of tokens, checks of the measured memory, scopes entered and left, and bytes
    /// charged minus those released.
    checks: Cell<u64>,
    looks: Cell<u64>,
    stay: Cell<u64>,
    charged: Cell<i64>,
    /// Bytes charged minus those released when the current scope was entered.
    charged_before: Cell<i64>,
    /// True if the allocator has checked the clock since the last call of [`was_over`].
    has_looked: Cell<bool>,
}

thread_local! {
    // Constant and without a destructor: reading it never allocates, and is allowed until the thread's end.
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

/// Counts bytes that the thread has charged to a budget, or released.
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

/// Bytes of the heap that an allocation takes, including the allocator's overhead: glibc's rule, which is close to that
/// of other allocators.
#[inline(always)]
fn piece(size: usize) -> isize {
    const OWN: usize = 8;
    const LEAST: usize = 32;
    const MASK: usize = 15;
    // Sizes of layouts are below `isize::MAX`.
    ((size + OWN + MASK) & !MASK).max(LEAST) as isize
}

impl ThreadState {
    /// Counts that a scope is entered, or entered again.
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

    /// Looks at the token of the thread's query.
    #[cold]
    #[inline(never)]
    fn check(&self) -> Result<()> {
        // SAFETY: both pointers are null or point to what outlives the stay that set them.
        let (scope, token) = unsafe { (self.scope.get().as_ref(), self.token.get().as_ref()) };
        match (scope, token) {
            (Some(shared), _) => shared.look(),
            (None, Some(token)) => token.check(),
            (None, None) => Ok(()),
        }?;
        // After an error the next call looks again: work that cannot return it is given up, and its caller finds it.
        self.text.set(0);
        Ok(())
    }

    /// Reports the pending bytes to the scope. Called inside the allocator: must not allocate, block or panic.
    #[cold]
    #[inline(never)]
    fn tell(&self) {
        let scope = self.scope.get();
        // SAFETY: `scope` is null or points to the scope whose `run` is on this thread's stack, which holds it.
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

/// Stay of a thread in a scope, or outside of all. Stays are dropped on the thread that made them, in reverse order:
/// they never leave [`inside`].
struct Stay {
    scope: *const ScopeShared,
    pending: isize,
    work: usize,
    token: *const CancelToken,
}

impl Stay {
    /// Outside of all scopes, the thread still works for the same query.
    fn begin(scope: *const ScopeShared) -> Self {
        // SAFETY: a scope that is entered lives until the stay ends.
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

/// Runs work for a query without a scope, whose time [`worked`] limits.
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
/// token after every mebibyte. Called for each block of a text that may be long, *before* the work, with a multiple of
/// the block's length if the work is slower than copying.
///
/// # Errors
/// As [`look`], or those of the token for a query without a scope.
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

/// Statistics of a thread, for tools that look for memory that is not charged and for long work without checks.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ThreadAccount {
    /// True while the thread works for a query.
    pub has_token: bool,
    /// Number of checks of tokens so far.
    pub checks: u64,
    /// Number of times so far that the thread would have noticed that the memory it took is too much.
    pub looks: u64,
    /// Changes whenever the thread enters or leaves a scope, or [the outside](outside).
    pub stay: u64,
    /// Bytes charged minus bytes released so far, to any budget.
    pub charged: i64,
    /// The same when the current scope was entered.
    pub charged_before: i64,
    /// The scope that the thread is in.
    pub scope: Option<ScopeAccount>,
}

/// Account of a scope.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ScopeAccount {
    /// Bytes charged in excess of the budget's limit, since they were allocated already.
    pub beyond_limit: i64,
}

/// The account of this thread. Neither allocates nor blocks.
#[must_use]
pub fn account() -> ThreadAccount {
    LOCAL.with(|local| {
        // SAFETY: as in `ThreadState::tell`.
        let scope = unsafe { local.scope.get().as_ref() }.map(|shared| ScopeAccount {
            beyond_limit: shared.budget.used().saturating_sub(shared.budget.limit()) as i64,
        });
        ThreadAccount {
            has_token: !local.token.get().is_null(),
            checks: local.checks.get(),
            looks: local.looks.get(),
            stay: local.stay.get(),
            charged: local.charged.get(),
            charged_before: local.charged_before.get(),
            scope,
        }
    })
}

fn inside<T>(scope: *const ScopeShared, run: impl FnOnce() -> T) -> T {
    if LOCAL.with(|local| local.scope.get()) == scope {
        // What happens outside is one stay each, also for a query that has no scope.
        LOCAL.with(ThreadState::turn);
        let done = run();
        LOCAL.with(ThreadState::turn);
        return done;
    }
    let _stay = Stay::begin(scope);
    run()
}

/// Runs work whose allocations are charged to no scope, since they are charged elsewhere or outlive the query.
pub fn outside<T>(run: impl FnOnce() -> T) -> T {
    inside(ptr::null(), run)
}

/// Wraps a function for another thread, which then runs it inside the scope of the calling thread.
pub fn carry<T>(run: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let scope = Scope::current();
    move || match scope {
        Some(scope) => scope.run(run),
        None => run(),
    }
}

/// Runs work that takes this many bytes in addition to its allocations, such as a thread's stack.
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

/// A number of bytes, limited so that counters can hold it some thousand times.
fn clamped(bytes: u64) -> isize {
    bytes.min(1 << 50) as isize
}

fn with_current<T>(ask: impl FnOnce(&ScopeShared) -> T) -> Option<T> {
    let scope = LOCAL.with(|local| local.scope.get());
    // SAFETY: as in `ThreadState::tell`.
    let shared = unsafe { scope.as_ref() };
    shared.map(ask)
}

/// True once the thread's scope has no memory or no time left, or its result is no longer needed. Reads the clock
/// (about 25 ns). If it returns true, the caller skips the remaining work, which then ends with the error of [`look`].
#[must_use]
pub fn is_over() -> bool {
    with_current(ScopeShared::is_over).unwrap_or(false)
}

/// As [`is_over`], without reading the clock, which the allocator does every mebibyte. For loops in which any iteration
/// may allocate much memory, but few do.
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

/// Returns an error if the work [is over](is_over).
///
/// # Errors
/// [`Error::Limit`] and [`Error::Busy`] when there is no memory left, of the query's or of all queries', and those of
/// [`CancelToken::check`].
pub fn look() -> Result<()> {
    with_current(ScopeShared::look).unwrap_or(Ok(()))
}

/// Checks that memory is available before a large allocation is made and written to.
///
/// # Errors
/// As [`look`], and also if this many more bytes are not available.
pub fn look_for(bytes: u64) -> Result<()> {
    with_current(|s| s.look_for(bytes)).unwrap_or(Ok(()))
}

/// Makes a value and returns the number of bytes that it keeps: measured, or its share of the scope's charge by length.
/// 0 outside of scopes.
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

/// True if the program's global allocator is [`Tracked`](crate::Tracked). Otherwise scopes only limit time, and charge
/// by length ([`Scope::for_text`]).
#[must_use]
pub fn is_measured() -> bool {
    const UNKNOWN: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;
    static IS: AtomicU8 = AtomicU8::new(UNKNOWN);
    if IS.load(Ordering::Relaxed) == UNKNOWN {
        let probe = Scope::new(
            Holder::Rest,
            &MemoryBudget::unlimited(),
            &CancelToken::new(),
        );
        // The compiler must not see that the value is unused.
        let piece = probe.run(|| std::hint::black_box(Box::new(std::hint::black_box(0u64))));
        let seen = probe.bytes() > 0;
        drop(piece);
        IS.store(if seen { YES } else { NO }, Ordering::Relaxed);
    }
    IS.load(Ordering::Relaxed) == YES
}

impl Scope {
    /// A scope for work for which `holder` takes memory from a budget, until the token ends it.
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

    /// A scope in which all charges to the budget are offset against allocations.
    #[must_use]
    pub fn beside_charges(holder: Holder, budget: &MemoryBudget, cancel: &CancelToken) -> Self {
        let mut scope = Self::new(holder, budget, cancel);
        if let Some(shared) = Arc::get_mut(&mut scope.shared) {
            shared.beside_charges = true;
        }
        scope
    }

    /// A scope for parsing and planning a text of this many bytes. If memory is not measured, it charges 256 times the
    /// length, which is more than nearly all texts need, and an eighth of that for the result of [`make`](Self::make).
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

    /// The scope that this thread is in.
    #[must_use]
    pub fn current() -> Option<Self> {
        let scope = LOCAL.with(|local| local.scope.get());
        if scope.is_null() {
            return None;
        }
        // SAFETY: the pointer is that of an `Arc` that is alive (see `ThreadState::scope`), whose count grows by the one made here.
        let shared = unsafe {
            Arc::increment_strong_count(scope);
            Arc::from_raw(scope)
        };
        Some(Self { shared })
    }

    /// Runs work inside the scope: memory that this thread allocates meanwhile is charged to the scope, and memory that
    /// it frees is released. The scope that the thread was in before is suspended.
    pub fn run<T>(&self, run: impl FnOnce() -> T) -> T {
        inside(Arc::as_ptr(&self.shared), run)
    }

    /// Runs work like [`Self::run`], unless the scope is over before or afterwards.
    ///
    /// # Errors
    /// As [`look`], and the function's own errors.
    pub fn try_run<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        self.look()?;
        let done = self.run(run);
        // Work that ended early at a look need not have returned an error.
        self.look()?;
        done
    }

    /// Runs work like [`Self::try_run`], and ends the scope: returns the result, and a charge for the memory that it
    /// keeps.
    ///
    /// # Errors
    /// As [`Self::try_run`].
    pub fn make<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<(T, Charge)> {
        let made = self.try_run(run)?;
        Ok((made, self.take()))
    }

    /// Returns an error if the work is over.
    ///
    /// # Errors
    /// As [`look`].
    pub fn look(&self) -> Result<()> {
        self.shared.look()
    }

    /// [`was_over`] for this scope, from any thread.
    #[must_use]
    pub fn was_over(&self) -> bool {
        self.shared.over.load(Ordering::Relaxed) != GOING
    }

    /// Bytes taken and not given back, as reported by threads that are not inside.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.shared.net.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Ends the work: bytes that it allocated and did not free are transferred to the charge.
    fn take(&self) -> Charge {
        let shared = &self.shared;
        let net = shared.net.swap(0, Ordering::AcqRel);
        let bytes = u64::try_from(net).unwrap_or(0);
        let mut charge = Charge::charged(shared.holder, &shared.budget, bytes);
        let unkept = shared.by_length / KEPT_SHARE * (KEPT_SHARE - 1);
        // A smaller charge always fits.
        let _ = charge.set(bytes.saturating_sub(unkept));
        charge
    }
}

impl ScopeShared {
    /// Adds or subtracts bytes. Called inside the allocator.
    fn add(&self, bytes: isize) {
        if bytes == 0 {
            return;
        }
        let held = |net: i64| u64::try_from(net).unwrap_or(0);
        let mut before = self.net.load(Ordering::Relaxed);
        // Charged by this call.
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
            match self
                .net
                .compare_exchange_weak(before, after, success, failure)
            {
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
        // Charging and releasing gives the same refusal as any other charge.
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
