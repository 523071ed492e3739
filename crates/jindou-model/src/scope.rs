//! Memory and time of work whose allocations are too many and too various to be charged one by one: reading a text, planning, compiling.
//!
//! A [`Scope`] belongs to a query. What a thread allocates while it runs inside the scope is counted by the program's global allocator,
//! [`Tracked`](crate::Tracked), and charged to the query's budget in steps of 64 KiB. An allocator cannot refuse without ending the process, so
//! what does not fit is charged all the same, and remembered: every loop of such work asks [`is_over`] or [`look`], and gives up. Between
//! two looks it allocates little, or large pieces that it has not written to yet.
//!
//! Work that charges some of its memory by itself, before it takes it, runs inside a scope [alongside these charges](Scope::beside_charges): what it
//! charges to the same budget stands against what it allocates, so that the scope charges what was forgotten.

use crate::budget::Full;
use crate::{CancelToken, Charge, Error, Holder, MemoryBudget, Result};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// Bytes that a thread takes or gives back before it tells its scope.
const STEP: isize = 64 << 10;
/// Bytes allocated, whether given back or not, after which a thread looks at the clock.
const CLOCK: usize = 1 << 20;

/// Bytes that reading and planning a text take for each of its bytes, where nothing is measured: more than nearly all texts do.
const FACTOR: u64 = 256;
/// Bytes that any text takes besides.
const LEAST: u64 = 16 << 10;
/// Of what was charged by length, the share that is kept for what was made.
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
    /// Whether charges to the budget stand against what is allocated.
    beside_charges: bool,
    /// Bytes taken less bytes given back. Below zero while pieces are given back that were not taken here, or were charged and are not
    /// taken yet.
    ///
    /// The budget is charged for it where it is above zero, at any time at least: charged before it grows, released after it shrinks.
    net: AtomicI64,
    /// Of that, what was charged for a text's length because nothing is measured.
    by_length: u64,
    over: AtomicU8,
}

/// Place of a thread.
struct Local {
    /// The scope that the thread is inside; null outside of all. Points into an [`Arc`] that lives until the thread has left.
    scope: Cell<*const ScopeShared>,
    /// Bytes that the scope does not know of.
    pending: Cell<isize>,
    /// Bytes allocated since the last look at the clock.
    work: Cell<usize>,
}

thread_local! {
    // Constant and without a destructor: reading it never allocates, and is allowed until the thread's end.
    static LOCAL: Local = const {
        Local {
            scope: Cell::new(ptr::null()),
            pending: Cell::new(0),
            work: Cell::new(0),
        }
    };
}

/// Counts a piece that the thread has got from the allocator.
#[inline(always)]
pub(crate) fn took(size: usize) {
    LOCAL.with(|local| {
        if !local.scope.get().is_null() {
            local.took(size);
        }
    });
}

/// Counts a piece that the thread has given back.
#[inline(always)]
pub(crate) fn gave(size: usize) {
    LOCAL.with(|local| {
        if !local.scope.get().is_null() {
            local.gave(size);
        }
    });
}

/// Counts what the thread has charged to a budget, or given back to it.
pub(crate) fn charged(budget: &MemoryBudget, bytes: isize) {
    LOCAL.with(|local| {
        // SAFETY: as in `Local::tell`.
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

/// Bytes that a piece takes of the heap, with the allocator's own: glibc's rule, which is about every client's.
#[inline(always)]
fn piece(size: usize) -> isize {
    const OWN: usize = 8;
    const LEAST: usize = 32;
    const MASK: usize = 15;
    // Sizes of layouts are below `isize::MAX`.
    ((size + OWN + MASK) & !MASK).max(LEAST) as isize
}

impl Local {
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

    /// Tells the scope what is pending. Called inside the allocator: nothing here allocates, waits or panics.
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
            if shared.cancel.is_over() {
                shared.end_by(ENDED);
            }
        }
    }
}

/// Stay of a thread in a scope, or outside of all. Dropped on the thread that made it, in the reverse order: it never leaves [`inside`].
struct Stay {
    scope: *const ScopeShared,
    pending: isize,
    work: usize,
}

impl Stay {
    fn begin(scope: *const ScopeShared) -> Self {
        LOCAL.with(|local| Self {
            scope: local.scope.replace(scope),
            pending: local.pending.take(),
            work: local.work.take(),
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
        });
    }
}

fn inside<T>(scope: *const ScopeShared, run: impl FnOnce() -> T) -> T {
    if LOCAL.with(|local| local.scope.get()) == scope {
        return run();
    }
    let _stay = Stay::begin(scope);
    run()
}

/// Runs something whose allocations are charged to no scope: what is charged otherwise, or outlives the query.
pub fn outside<T>(run: impl FnOnce() -> T) -> T {
    inside(ptr::null(), run)
}

/// The same function for another thread, there inside the scope of the thread that calls this.
pub fn carry<T>(run: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let scope = Scope::current();
    move || match scope {
        Some(scope) => scope.run(run),
        None => run(),
    }
}

/// Runs something that takes so many bytes alongside those that it allocates, such as a thread's stack.
pub fn beside<T>(bytes: u64, run: impl FnOnce() -> T) -> T {
    let Some(scope) = Scope::current() else {
        return run();
    };
    struct Taken(Scope, isize);
    impl Drop for Taken {
        fn drop(&mut self) {
            self.0.shared.add(-self.1);
        }
    }
    let bytes = clamped(bytes);
    scope.shared.add(bytes);
    let _taken = Taken(scope, bytes);
    run()
}

/// A number of bytes that counters hold some thousand times.
fn clamped(bytes: u64) -> isize {
    bytes.min(1 << 50) as isize
}

fn with_current<T>(ask: impl FnOnce(&ScopeShared) -> T) -> Option<T> {
    let scope = LOCAL.with(|local| local.scope.get());
    // SAFETY: as in `Local::tell`.
    let shared = unsafe { scope.as_ref() };
    shared.map(ask)
}

/// True once the scope that the thread is inside has no memory or no time left, or its result is no longer wanted. Reads the clock (about 25 ns).
/// Whoever sees it leaves out what is still to do; the work ends with [`look`], which says why.
#[must_use]
pub fn is_over() -> bool {
    with_current(ScopeShared::is_over).unwrap_or(false)
}

/// [`is_over`] without a look at the clock, which the allocator takes every mebibyte. For loops whose every round may allocate much, and seldom
/// does.
#[inline]
#[must_use]
pub fn was_over() -> bool {
    with_current(|s| s.over.load(Ordering::Relaxed) != GOING).unwrap_or(false)
}

/// Ends the work if it [is over](is_over).
///
/// # Errors
/// [`Error::Limit`] and [`Error::Busy`] when there is no memory left, of the query's or of all queries', and those of
/// [`CancelToken::check`].
pub fn look() -> Result<()> {
    with_current(ScopeShared::look).unwrap_or(Ok(()))
}

/// Asks for room before a large piece is allocated and written to.
///
/// # Errors
/// As [`look`], also when there is no room for this many bytes more.
pub fn look_for(bytes: u64) -> Result<()> {
    with_current(|s| s.look_for(bytes)).unwrap_or(Ok(()))
}

/// Makes something and says how many bytes it keeps: measured, or its share of what the scope charged by length. 0 outside of scopes.
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

/// True if the program's global allocator is [`Tracked`](crate::Tracked). Otherwise scopes know of time only, and charge by length
/// ([`Scope::for_text`]).
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
        // The compiler must not see that nothing uses it.
        let piece = probe.run(|| std::hint::black_box(Box::new(std::hint::black_box(0u64))));
        let seen = probe.bytes() > 0;
        drop(piece);
        IS.store(if seen { YES } else { NO }, Ordering::Relaxed);
    }
    IS.load(Ordering::Relaxed) == YES
}

impl Scope {
    /// Work for which `holder` takes memory from a budget, until the token ends it.
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

    /// A scope in which all that is charged to the budget stands against what is allocated.
    #[must_use]
    pub fn beside_charges(holder: Holder, budget: &MemoryBudget, cancel: &CancelToken) -> Self {
        let mut scope = Self::new(holder, budget, cancel);
        if let Some(shared) = Arc::get_mut(&mut scope.shared) {
            shared.beside_charges = true;
        }
        scope
    }

    /// A scope for reading and planning a text of this many bytes. Where nothing is measured, it charges 256 times as much, which is more than
    /// nearly all texts take, and an eighth of that for what [`make`](Self::make) gives.
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

    /// The scope that this thread is inside.
    #[must_use]
    pub fn current() -> Option<Self> {
        let scope = LOCAL.with(|local| local.scope.get());
        if scope.is_null() {
            return None;
        }
        // SAFETY: the pointer is that of an `Arc` that is alive (see `Local::scope`), whose count grows by the one made here.
        let shared = unsafe {
            Arc::increment_strong_count(scope);
            Arc::from_raw(scope)
        };
        Some(Self { shared })
    }

    /// Runs something inside the scope: what this thread allocates meanwhile is the scope's, what it frees is given back to it.
    /// The scope that the thread was inside before waits.
    pub fn run<T>(&self, run: impl FnOnce() -> T) -> T {
        inside(Arc::as_ptr(&self.shared), run)
    }

    /// Runs something as [`Self::run`], unless the scope is over then or afterwards.
    ///
    /// # Errors
    /// As [`look`], and the function's own.
    pub fn try_run<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        self.look()?;
        let done = self.run(run);
        // What a look ended need not have said so.
        self.look()?;
        done
    }

    /// Runs something as [`Self::try_run`], and ends the work: what was made, and the charge for what it keeps.
    ///
    /// # Errors
    /// As [`Self::try_run`].
    pub fn make<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<(T, Charge)> {
        let made = self.try_run(run)?;
        Ok((made, self.take()))
    }

    /// Ends the work if it is over.
    ///
    /// # Errors
    /// As [`look`].
    pub fn look(&self) -> Result<()> {
        self.shared.look()
    }

    /// [`was_over`] of this scope, wherever the thread is.
    #[must_use]
    pub fn was_over(&self) -> bool {
        self.shared.over.load(Ordering::Relaxed) != GOING
    }

    /// Bytes that threads which are not inside took and did not give back.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.shared.net.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Ends the work: what it took and did not give back is from now on the charge's.
    fn take(&self) -> Charge {
        let shared = &self.shared;
        let net = shared.net.swap(0, Ordering::AcqRel);
        let bytes = u64::try_from(net).unwrap_or(0);
        let mut charge = Charge::charged(shared.holder, &shared.budget, bytes);
        let unkept = shared.by_length / KEPT_SHARE * (KEPT_SHARE - 1);
        // Less than before always fits.
        let _ = charge.set(bytes.saturating_sub(unkept));
        charge
    }
}

impl ScopeShared {
    /// Takes or gives back bytes. Called inside the allocator.
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
        // The first reason stays.
        let _ = self
            .over
            .compare_exchange(GOING, why, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
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
        // Charged and given back: the refusal is the one that anyone gets.
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
