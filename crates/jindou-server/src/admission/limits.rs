//! Admission of queries: bounded queues, fair shares for clients, and early refusal of queries that would wait too
//! long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Class of a query by its expected work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkClass {
    /// Takes microseconds on one thread.
    Light,
    /// Any other query; executed in morsels by a limited number of workers.
    Heavy,
}

/// Limits of admission.
#[derive(Clone, Debug)]
pub struct AdmissionLimits {
    /// Largest number of light queries that wait or run at the same time.
    pub light: usize,
    /// Largest number of heavy queries that wait or run at the same time.
    pub heavy: usize,
    /// Longest expected wait with which a light query is still admitted.
    pub light_wait: Duration,
    /// Longest expected wait with which a heavy query is still admitted.
    pub heavy_wait: Duration,
    /// Number of threads that run light queries; expected waits are computed from it.
    pub light_workers: usize,
    /// Largest number of heavy queries that run at the same time; expected waits are computed from it.
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

/// Reason why a query was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The queue of its class is full.
    Full,
    /// The query would wait too long.
    Slow,
    /// Its client already has its share of a contended queue.
    Share,
}

/// A query's refusal.
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

/// Decides on the admission of queries, and counts admitted queries and their times without locks.
#[derive(Debug)]
pub struct Admission {
    limits: AdmissionLimits,
    /// State of each class, in the order `[Light, Heavy]`.
    classes: [ClassState; 2],
    begin: Instant,
    /// Number of the time window in which times are being counted.
    window: AtomicU64,
    /// Number of light workers that currently run heavy queries.
    away: AtomicUsize,
}

/// A value in cache lines of its own, to avoid false sharing.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

#[derive(Debug, Default)]
struct ClassState {
    within: Apart<AtomicUsize>,
    served: Apart<[ServedWindow; 2]>,
    /// Mean time of the class's queries in nanoseconds; 0 until one has ended.
    mean: Apart<AtomicU64>,
    /// Number of clients that have admitted queries, or had some in the current or the last window. A fair share is the
    /// queue divided by this number.
    present: Apart<AtomicUsize>,
    /// For each client, by its hash, the number of its admitted queries, and whether it counts as present.
    clients: Clients,
}

/// A table of counters, one for each client. With some thousands of clients, two may have the same counter, and then
/// they have one share together.
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

    /// Clears the flags of clients without queries; returns their number. O(slots).
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

/// Number and total time of the queries that ended in one time window. Two windows alternate, and the mean over both
/// includes rare events (such as a worker that lost its core to another process), which the mean of the last few
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
/// Assumed times of a light and a heavy query, in nanoseconds, until one is measured. Without them, expected waits
/// would be 0, and a burst right after the start would be admitted completely.
const GUESS: [u64; 2] = [100_000, 10_000_000];
/// The clock is read once per this many queries.
const LOOK: u64 = 8;

/// Fraction of a limit above which shares apply; below it, one client may use everything.
const SHARED_FROM: f64 = 0.5;

impl Admission {
    /// Admission with these limits.
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

    /// Records that a light worker starts to run a heavy query (`goes`), or has ended it.
    pub fn go_away(&self, goes: bool) {
        if goes {
            self.away.fetch_add(1, Ordering::Relaxed);
        } else {
            self.away.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Mean time of a class's queries in nanoseconds, over the last one or two windows. If no query ended in them, the
    /// last known mean; before any ended, the assumed time.
    fn mean(&self, class: WorkClass) -> u64 {
        match self.class(class).mean.0.load(Ordering::Relaxed) {
            0 => GUESS[usize::from(class == WorkClass::Heavy)],
            n => n,
        }
    }

    fn class(&self, class: WorkClass) -> &ClassState {
        &self.classes[usize::from(class == WorkClass::Heavy)]
    }

    /// Number of a class's queries that are admitted and have not ended.
    #[must_use]
    pub fn within(&self, class: WorkClass) -> usize {
        self.class(class).within.0.load(Ordering::Relaxed)
    }

    /// Expected wait of a further query: the mean time of earlier ones, times the number of admitted ones, divided by
    /// the workers.
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

    /// Admits a client's query, or refuses it. `client` is a number that identifies the client.
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

    /// As [`Self::enter`], for a query that can wait for `most` at most.
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
        // The queue is as busy as the fuller of its two limits: the number of queries, and the expected wait.
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

    /// Records that a query has ended; `served` is the time for which it computed, `None` if that is unknown.
    pub fn leave(&self, class: WorkClass, client: u64, served: Option<Duration>) {
        self.gone(class, client);
        self.left(class, 1);
        if let Some(served) = served {
            self.served(class, served);
        }
    }

    /// Records that a client has one query fewer. The caller must also call [`Self::left`] for the query.
    pub fn gone(&self, class: WorkClass, client: u64) {
        self.class(class).clients.remove(client);
    }

    /// Records that `n` queries have ended.
    pub fn left(&self, class: WorkClass, n: usize) {
        self.class(class).within.0.fetch_sub(n, Ordering::Relaxed);
    }

    /// Records for how long a query computed.
    pub fn served(&self, class: WorkClass, time: Duration) {
        self.served_many(class, time, 1);
    }

    /// Records for how long `n` queries, which were run together, computed in total.
    pub fn served_many(&self, class: WorkClass, time: Duration, n: u64) {
        let new = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX >> 16);
        let c = self.class(class);
        let window = self.window.load(Ordering::Relaxed);
        let s = &c.served.0[(window % 2) as usize];
        s.nanoseconds.fetch_add(new, Ordering::Relaxed);
        let before = s.queries.fetch_add(n, Ordering::Relaxed);
        // The mean is updated after each of the first few queries, since any measured time is better than the assumed
        // one.
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
            // Clears the counts of the window before this one, since the next window uses their place. If no query
            // ended in this window, the older counts are kept, so that the mean time stays known.
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

    /// As [`Self::enter_within`], and returns a guard that ends the admission when it is dropped.
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

/// An admitted query; dropping this records that it has ended.
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
        // A window ends only when a query ends.
        std::thread::sleep(Duration::from_nanos(2 * WINDOW));
        a.served_many(WorkClass::Light, Duration::from_micros(1), 16);
        for _ in 0..60 {
            a.enter(WorkClass::Light, 7).unwrap();
        }
        assert_eq!(
            a.class(WorkClass::Light).present.0.load(Ordering::Relaxed),
            1
        );
        // Two thousand clients at the same time, from several threads: none may be counted twice, or remain counted.
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
