//! Admission of queries: bounds on the queues, fair shares for clients, and early refusal of queries that would wait
//! too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Expected amount of work of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkClass {
    /// Microseconds on one thread.
    Light,
    /// All other queries, executed in morsels by a limited number of workers.
    Heavy,
}

/// Bounds of admission.
#[derive(Clone, Debug)]
pub struct AdmissionLimits {
    /// Light queries that may wait or run at a time.
    pub light: usize,
    /// Heavy queries that may wait or run at a time.
    pub heavy: usize,
    /// Longest expected wait with which a light query is still let in.
    pub light_wait: Duration,
    /// Longest expected wait with which a heavy query is still let in.
    pub heavy_wait: Duration,
    /// Threads that serve light queries; expected waits are computed from this number.
    pub light_workers: usize,
    /// Heavy queries that may run at once.
    pub heavy_workers: usize,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self {
            light: 1 << 16,
            heavy: 256,
            light_wait: Duration::from_millis(10),
            heavy_wait: Duration::from_secs(30),
            light_workers: 1,
            heavy_workers: 1,
        }
    }
}

/// Reason why a query was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The queue of its class is full.
    Full,
    /// The query would wait too long.
    Slow,
    /// Its client already has its share of a contended queue.
    Share,
}

/// A query that was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}; retry in {retry_after:?}", match .reason {
    RefusalReason::Full => "the queue is full",
    RefusalReason::Slow => "the query would wait too long",
    RefusalReason::Share => "this client already has its share of the queue",
})]
pub struct Refusal {
    /// Reason for the refusal.
    pub reason: RefusalReason,
    /// Time until the queue is expected to be empty, after which a retry makes sense.
    pub retry_after: Duration,
}

/// Lock-free counter of the queries that were let in.
#[derive(Debug)]
pub struct Admission {
    limits: AdmissionLimits,
    /// State of each class, in the order `[Light, Heavy]`.
    classes: [ClassState; 2],
    begin: Instant,
    /// Number of the window in which times are being counted.
    window: AtomicU64,
    /// Light workers that are busy with heavy queries.
    away: AtomicUsize,
}

/// Padded to its own cache lines to avoid false sharing.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

#[derive(Debug, Default)]
struct ClassState {
    within: Apart<AtomicUsize>,
    served: Apart<[ServedWindow; 2]>,
    /// Mean time of the class's queries in nanoseconds, as far as it is known; 0 until then.
    mean: Apart<AtomicU64>,
    /// Clients that have queries let in, or had some in this window or the last.
    present: Apart<AtomicUsize>,
    /// Number of queries let in, by a hash of their client, and whether that client counts as present.
    clients: Clients,
}

/// One counter per client. With some thousands of clients, two may share a counter, and with it one share.
#[derive(Debug)]
struct Clients(Box<[AtomicU32]>);

/// Number of client counters: a power of two.
const SLOTS: usize = 4096;
/// Flag in a client's counter: the client counts as present.
const PRESENT: u32 = 1 << 31;

impl Default for Clients {
    fn default() -> Self {
        Self((0..SLOTS).map(|_| AtomicU32::new(0)).collect())
    }
}

impl Clients {
    fn slot(&self, client: u64) -> &AtomicU32 {
        let hash = client.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.0[(hash >> (64 - SLOTS.trailing_zeros())) as usize]
    }

    fn own(&self, client: u64) -> usize {
        (self.slot(client).load(Ordering::Relaxed) & !PRESENT) as usize
    }

    /// Counts one more query; true if the client did not count as present before.
    fn add(&self, client: u64) -> bool {
        let slot = self.slot(client);
        slot.fetch_add(1, Ordering::Relaxed) & PRESENT == 0
            && slot.fetch_or(PRESENT, Ordering::Relaxed) & PRESENT == 0
    }

    fn remove(&self, client: u64) {
        self.slot(client).fetch_sub(1, Ordering::Relaxed);
    }

    /// Removes clients without queries; returns their number. O(slots).
    fn forget(&self) -> usize {
        let gone = |slot: &&AtomicU32| {
            slot.load(Ordering::Relaxed) == PRESENT
                && slot
                    .compare_exchange(PRESENT, 0, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
        };
        self.0.iter().filter(gone).count()
    }
}

/// Number and total time of the queries served in one time window. Two windows alternate. The mean over the last one or
/// two windows includes rare events (a worker that lost its core to another process), which the mean of the last few
/// queries would not.
#[derive(Debug, Default)]
struct ServedWindow {
    nanoseconds: AtomicU64,
    queries: AtomicU64,
}

impl ClassState {
    /// Recomputes the mean from both windows.
    fn told(&self) {
        let sum = |f: fn(&ServedWindow) -> &AtomicU64| -> u64 {
            let both = self.served.0.iter();
            both.map(|s| f(s).load(Ordering::Relaxed)).sum()
        };
        if let Some(mean) = sum(|s| &s.nanoseconds).checked_div(sum(|s| &s.queries)) {
            self.mean.0.store(mean.max(1), Ordering::Relaxed);
        }
    }
}

/// A window's length in nanoseconds.
const WINDOW: u64 = 100_000_000;
/// Assumed times in nanoseconds of a light and a heavy query before any is measured. Without them, a burst right after
/// the start would be let in whole.
const GUESS: [u64; 2] = [100_000, 10_000_000];
/// Number of queries between two checks of the clock.
const LOOK: u64 = 8;

/// Fraction of the bound from which shares apply; below it, one client may use everything.
const SHARED_FROM: f64 = 0.5;

impl Admission {
    /// Admission with these bounds.
    #[must_use]
    pub fn new(limits: AdmissionLimits) -> Self {
        Self {
            limits,
            classes: Default::default(),
            begin: Instant::now(),
            window: AtomicU64::new(0),
            away: AtomicUsize::new(0),
        }
    }

    /// Records that a worker for light queries starts to execute a heavy one, or has finished it.
    pub fn go_away(&self, goes: bool) {
        if goes {
            self.away.fetch_add(1, Ordering::Relaxed);
        } else {
            self.away.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Mean time of a class's queries in the last one or two windows. If there were none, the last known mean; in the
    /// first window, a default.
    fn mean(&self, class: WorkClass) -> u64 {
        match self.class(class).mean.0.load(Ordering::Relaxed) {
            0 => GUESS[usize::from(class == WorkClass::Heavy)],
            n => n,
        }
    }

    fn class(&self, class: WorkClass) -> &ClassState {
        &self.classes[usize::from(class == WorkClass::Heavy)]
    }

    /// Number of queries of a class that were let in and are not over.
    #[must_use]
    pub fn within(&self, class: WorkClass) -> usize {
        self.class(class).within.0.load(Ordering::Relaxed)
    }

    /// Expected total time of all admitted queries of a class, from the mean of earlier ones.
    #[must_use]
    pub fn expected_wait(&self, class: WorkClass) -> Duration {
        let c = self.class(class);
        let workers = match class {
            WorkClass::Light => {
                let away = self.away.load(Ordering::Relaxed);
                self.limits.light_workers.saturating_sub(away)
            }
            WorkClass::Heavy => self.limits.heavy_workers,
        };
        let all = (c.within.0.load(Ordering::Relaxed) as u64).saturating_mul(self.mean(class));
        Duration::from_nanos(all / workers.max(1) as u64)
    }

    /// Lets a client's query in, or refuses it. `client` is any number that belongs to this client alone.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn enter(&self, class: WorkClass, client: u64) -> Result<(), Refusal> {
        self.enter_within(class, client, Duration::MAX)
    }

    fn longest(&self, class: WorkClass) -> Duration {
        match class {
            WorkClass::Light => self.limits.light_wait,
            WorkClass::Heavy => self.limits.heavy_wait,
        }
    }

    /// [`Self::enter`] for a query that can wait for `most` at the longest.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn enter_within(
        &self,
        class: WorkClass,
        client: u64,
        most: Duration,
    ) -> Result<(), Refusal> {
        let bound = match class {
            WorkClass::Light => self.limits.light,
            WorkClass::Heavy => self.limits.heavy,
        };
        let longest = self.longest(class).min(most);
        let c = self.class(class);
        let wait = self.expected_wait(class);
        let refused = |reason| Refusal {
            reason,
            retry_after: wait.max(Duration::from_millis(1)),
        };
        let within = c.within.0.load(Ordering::Relaxed);
        if within >= bound {
            return Err(refused(RefusalReason::Full));
        }
        if wait > longest {
            return Err(refused(RefusalReason::Slow));
        }
        // The smaller of free places and waiting time is what remains to be shared.
        let busy = (within as f64 / bound as f64)
            .max(wait.as_secs_f64() / longest.as_secs_f64().max(1e-9));
        if busy > SHARED_FROM {
            let own = c.clients.own(client);
            let all = c.present.0.load(Ordering::Relaxed) + usize::from(own == 0);
            if all > 1 && own * all > within + all {
                return Err(refused(RefusalReason::Share));
            }
        }
        if c.clients.add(client) {
            c.present.0.fetch_add(1, Ordering::Relaxed);
        }
        c.within.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Records that the query is over; `served` is the time that it computed.
    pub fn leave(&self, class: WorkClass, client: u64, served: Option<Duration>) {
        self.gone(class, client);
        self.left(class, 1);
        if let Some(served) = served {
            self.served(class, served);
        }
    }

    /// Records that the client has one query fewer; [`Self::left`] must follow.
    pub fn gone(&self, class: WorkClass, client: u64) {
        self.class(class).clients.remove(client);
    }

    /// Records that a number of queries are over.
    pub fn left(&self, class: WorkClass, n: usize) {
        self.class(class).within.0.fetch_sub(n, Ordering::Relaxed);
    }

    /// Records how long a query computed.
    pub fn served(&self, class: WorkClass, time: Duration) {
        self.served_many(class, time, 1);
    }

    /// Records the total time of `n` queries that were evaluated together.
    pub fn served_many(&self, class: WorkClass, time: Duration, n: u64) {
        let new = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX >> 16);
        let c = self.class(class);
        let window = self.window.load(Ordering::Relaxed);
        let s = &c.served.0[(window % 2) as usize];
        s.nanoseconds.fetch_add(new, Ordering::Relaxed);
        let before = s.queries.fetch_add(n, Ordering::Relaxed);
        // The first few queries are looked at one by one: a guess is worse than any measured time.
        if before > LOOK && before / LOOK == (before + n) / LOOK {
            return;
        }
        c.told();
        let now = self.begin.elapsed().as_nanos() as u64 / WINDOW;
        let turn = |n| {
            self.window
                .compare_exchange(window, n, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        };
        if now > window && turn(window + 1) {
            // The older window begins again; a class without queries in the newer one keeps its known mean.
            for c in &self.classes {
                let [new, old] = [window + 1, window].map(|w| &c.served.0[(w % 2) as usize]);
                if old.queries.load(Ordering::Relaxed) > 0 {
                    new.nanoseconds.store(0, Ordering::Relaxed);
                    new.queries.store(0, Ordering::Relaxed);
                }
                let gone = c.clients.forget();
                c.present.0.fetch_sub(gone, Ordering::Relaxed);
            }
        }
    }

    /// [`Self::enter_within`] that returns a guard, which leaves when dropped.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn admit_within(
        self: &Arc<Self>,
        class: WorkClass,
        client: u64,
        most: Duration,
    ) -> Result<Entered, Refusal> {
        self.enter_within(class, client, most)?;
        Ok(Entered {
            admission: Arc::clone(self),
            class,
            client,
        })
    }
}

/// A query that was let in; it leaves when this guard is dropped.
#[derive(Debug)]
pub struct Entered {
    admission: Arc<Admission>,
    class: WorkClass,
    client: u64,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.admission.leave(self.class, self.client, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> AdmissionLimits {
        AdmissionLimits {
            light: 100,
            heavy: 2,
            light_wait: Duration::from_millis(10),
            heavy_wait: Duration::from_secs(1),
            light_workers: 2,
            heavy_workers: 1,
        }
    }

    #[test]
    fn classes_have_bounds_of_their_own() {
        let a = Arc::new(Admission::new(limits()));
        let one = a.admit_within(WorkClass::Heavy, 1, Duration::MAX).unwrap();
        let _two = a.admit_within(WorkClass::Heavy, 1, Duration::MAX).unwrap();
        let refused = a
            .admit_within(WorkClass::Heavy, 2, Duration::MAX)
            .unwrap_err();
        assert_eq!(refused.reason, RefusalReason::Full);
        assert!(a.admit_within(WorkClass::Light, 1, Duration::MAX).is_ok());
        drop(one);
        assert!(a.admit_within(WorkClass::Heavy, 2, Duration::MAX).is_ok());
    }

    #[test]
    fn who_would_wait_too_long_is_told_when_to_come_back() {
        let a = Admission::new(limits());
        a.enter(WorkClass::Light, 1).unwrap();
        a.leave(WorkClass::Light, 1, Some(Duration::from_millis(1)));
        for _ in 0..21 {
            a.enter(WorkClass::Light, 1).unwrap();
        }
        let refused = a.enter(WorkClass::Light, 1).unwrap_err();
        assert_eq!(refused.reason, RefusalReason::Slow);
        assert_eq!(refused.retry_after, Duration::from_micros(10_500));
        a.leave(WorkClass::Light, 1, Some(Duration::from_millis(1)));
        assert!(a.enter(WorkClass::Light, 1).is_ok());
    }

    #[test]
    fn who_left_does_not_count_among_those_who_share() {
        let a = Admission::new(limits());
        for client in 0..1000 {
            a.enter(WorkClass::Light, client).unwrap();
            a.leave(WorkClass::Light, client, None);
        }
        // Windows only end when queries end.
        std::thread::sleep(Duration::from_nanos(2 * WINDOW));
        a.served_many(WorkClass::Light, Duration::from_micros(1), 16);
        for _ in 0..60 {
            a.enter(WorkClass::Light, 7).unwrap();
        }
        assert_eq!(
            a.class(WorkClass::Light).present.0.load(Ordering::Relaxed),
            1
        );
        // Two thousand at once, from several threads, and none of them counted twice or left behind.
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let a = &a;
                scope.spawn(move || {
                    for n in 0..5000u64 {
                        let client = 100 + (n * 7 + thread) % 500;
                        if a.enter(WorkClass::Light, client).is_ok() {
                            a.leave(WorkClass::Light, client, Some(Duration::from_nanos(10)));
                        }
                    }
                });
            }
        });
        std::thread::sleep(Duration::from_nanos(2 * WINDOW));
        a.served_many(WorkClass::Light, Duration::from_micros(1), 16);
        assert_eq!(
            a.class(WorkClass::Light).present.0.load(Ordering::Relaxed),
            1
        );
        assert_eq!(a.within(WorkClass::Light), 60);
    }

    #[test]
    fn a_full_queue_is_shared() {
        let a = Admission::new(limits());
        for _ in 0..60 {
            a.enter(WorkClass::Light, 1).unwrap();
        }
        a.enter(WorkClass::Light, 2).unwrap();
        assert_eq!(
            a.enter(WorkClass::Light, 1).unwrap_err().reason,
            RefusalReason::Share,
            "60 of 61 are more than half"
        );
        for _ in 0..29 {
            a.enter(WorkClass::Light, 2).unwrap();
        }
        assert_eq!(a.within(WorkClass::Light), 90);
        for _ in 0..60 {
            a.leave(WorkClass::Light, 1, None);
        }
        assert!(a.enter(WorkClass::Light, 1).is_ok());
    }
}
