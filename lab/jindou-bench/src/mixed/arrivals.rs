//! The arrival of light queries, which either the scheduler's workers or threads of their own generate.
//!
//! In an open loop (arrivals do not wait for answers), each worker generates a Poisson process with its share of the
//! rate; together they make up one process with the whole rate. A worker asks its own source between two queries and
//! while it is idle. It also draws arrivals from the sources of workers that are busy with a long query, so that
//! arrivals are generated at most some 20 µs late while any worker is free. A query's latency counts from its intended
//! arrival time, however late it is generated, and admission counts the time that it has waited by then.

use super::emulate::Task;
use jindou_model::sync::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The pseudorandom number generator xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// The time to the next arrival of a Poisson process of `rate` a second.
    pub fn gap(&mut self, rate: f64) -> Duration {
        Duration::from_secs_f64(self.gap_nanoseconds(rate) / 1e9)
    }

    fn gap_nanoseconds(&mut self, rate: f64) -> f64 {
        -(1.0 - self.unit()).ln() / rate * 1e9
    }
}

/// The arrival process of light queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// No light queries.
    None,
    /// A fixed number of clients, each with `window` queries in flight.
    Closed { clients: usize, window: usize },
    /// A fixed rate of queries per second at random times (a Poisson process), whether or not earlier ones were
    /// answered.
    Open { rate: f64, clients: usize },
}

/// A query that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub task: Task,
    pub client: u64,
    /// Number of the queue that it goes to, modulo the number of queues.
    pub home: usize,
    /// The intended arrival time, from which the latency counts.
    pub at: Instant,
}

/// Result of [`Sources::next`]: an arrival, or the time at which to ask again.
pub enum Next {
    Now(Arrival),
    At(Instant),
}

/// Delay after which another worker's arrivals are drawn, and the interval between two looks at the others' sources.
const LATE: Duration = Duration::from_micros(20);
/// A source that is more than this behind skips the arrivals that it missed. These count in [`Sources::unsent`] rather
/// than in any latency. Workers keep up with some twenty times the rate that they can answer.
const MOST_BEHIND: Duration = Duration::from_millis(100);

/// The Poisson processes of all workers.
pub struct Sources {
    begin: Instant,
    clients: usize,
    all: Box<[Source]>,
}

#[repr(align(128))]
struct Source {
    /// Time of the next arrival in nanoseconds after `begin`, readable without the lock.
    due: AtomicU64,
    state: Mutex<Process>,
}

struct Process {
    random: Random,
    /// Arrivals a second.
    rate: f64,
    /// Nanoseconds after `begin`.
    due: f64,
    drawn: u64,
    unsent: u64,
}

/// A worker's schedule for looking at other workers' sources.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    again: Instant,
    /// When the first of the other sources will be late enough to be drawn from.
    late: Option<Instant>,
}

impl Look {
    pub fn new(now: Instant) -> Self {
        Self {
            again: now,
            late: None,
        }
    }
}

impl Source {
    /// If the next arrival is due at `now`, its query (chosen by `draw`), intended time and number.
    fn draw(&self, now: u64, draw: impl FnOnce(&mut Random) -> Task) -> Option<(Task, u64, u64)> {
        if self.due.load(Ordering::Relaxed) > now {
            return None;
        }
        // A thread that holds the lock takes the arrivals that are due, so there is no need to wait.
        let mut s = self.state.try_lock().ok()?;
        let behind = now as f64 - s.due;
        if behind < 0.0 {
            return None;
        }
        if behind > MOST_BEHIND.as_nanos() as f64 {
            s.unsent += (behind * s.rate / 1e9) as u64;
            s.due = now as f64;
        }
        let at = s.due;
        let task = draw(&mut s.random);
        let rate = s.rate;
        s.due += s.random.gap_nanoseconds(rate);
        s.drawn += 1;
        self.due.store(s.due as u64, Ordering::Relaxed);
        Some((task, at as u64, s.drawn))
    }
}

impl Sources {
    /// Arrivals of `clients` clients at `rate` per second from `begin` on, split into `workers` Poisson processes.
    pub fn new(rate: f64, clients: usize, workers: usize, begin: Instant, seed: u64) -> Self {
        let rate = rate / workers as f64;
        let all = (0..workers as u64)
            .map(|w| {
                let mut random = Random::new(seed + 1 + 7919 * w);
                let due = random.gap_nanoseconds(rate);
                Source {
                    due: AtomicU64::new(due as u64),
                    state: Mutex::new(Process {
                        random,
                        rate,
                        due,
                        drawn: 0,
                        unsent: 0,
                    }),
                }
            })
            .collect();
        Self {
            begin,
            clients: clients.max(1),
            all,
        }
    }

    fn arrival(
        &self,
        draw: &impl Fn(&mut Random) -> Task,
        source: usize,
        now: u64,
    ) -> Option<Arrival> {
        let (task, at, number) = self.all[source].draw(now, draw)?;
        let number = number * self.all.len() as u64 + source as u64;
        Some(Arrival {
            task,
            client: number % self.clients as u64,
            home: source,
            at: self.begin + Duration::from_nanos(at),
        })
    }

    /// The next arrival that is due for a worker at `now`, or the time to ask again; `draw` chooses the query.
    pub fn next(
        &self,
        draw: impl Fn(&mut Random) -> Task,
        worker: usize,
        look: &mut Look,
        now: Instant,
    ) -> Next {
        let ns = now.saturating_duration_since(self.begin).as_nanos() as u64;
        let own = worker % self.all.len();
        if let Some(a) = self.arrival(&draw, own, ns) {
            return Next::Now(a);
        }
        let late = LATE.as_nanos() as u64;
        if now >= look.again {
            let mut first = u64::MAX;
            for other in (0..self.all.len()).filter(|n| *n != own) {
                let due = self.all[other].due.load(Ordering::Relaxed);
                if due + late <= ns
                    && let Some(a) = self.arrival(&draw, other, ns)
                {
                    // `look.again` stays as it is, so that the next call looks again at once: there may be more
                    // arrivals.
                    return Next::Now(a);
                }
                first = first.min(due + late);
            }
            look.again = now + LATE;
            look.late = (first < u64::MAX).then(|| self.begin + Duration::from_nanos(first));
        }
        let due = self.all[own].due.load(Ordering::Relaxed);
        let due = self.begin + Duration::from_nanos(due);
        Next::At(look.late.map_or(due, |late| due.min(late.max(look.again))))
    }

    /// Changes the rate from the time `from` on; arrivals due earlier are dropped.
    pub fn set_rate(&self, rate: f64, from: Instant) {
        let from = from.saturating_duration_since(self.begin).as_nanos() as f64;
        for s in &self.all {
            let mut p = lock(&s.state);
            p.rate = rate / self.all.len() as f64;
            let each = p.rate;
            p.due = from + p.random.gap_nanoseconds(each);
            s.due.store(p.due as u64, Ordering::Relaxed);
        }
    }

    /// Number of arrivals skipped so far, since their source was too far behind.
    pub fn unsent(&self) -> u64 {
        self.all.iter().map(|s| lock(&s.state).unsent).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn numbered(counter: &AtomicU64) -> impl Fn(&mut Random) -> Task + '_ {
        |_| {
            let n = counter.fetch_add(1, Ordering::Relaxed);
            Task::Light {
                class: (n >> 32) as u16,
                start: n as u32,
            }
        }
    }

    /// All arrivals within `until` after `begin`, in the order of their intended times.
    fn all(sources: &Sources, workers: usize, begin: Instant, until: Duration) -> Vec<Arrival> {
        let counter = AtomicU64::new(0);
        let mut out = vec![];
        let mut looks = vec![Look::new(begin); workers];
        let mut now = Duration::ZERO;
        while now <= until {
            for (worker, look) in looks.iter_mut().enumerate() {
                while let Next::Now(a) = sources.next(numbered(&counter), worker, look, begin + now)
                {
                    out.push(a);
                }
            }
            now += Duration::from_micros(10);
        }
        out.sort_by_key(|a| a.at);
        out
    }

    #[test]
    fn arrivals_have_the_rate_and_exponential_gaps() {
        let begin = Instant::now();
        let (rate, time) = (200_000.0, Duration::from_millis(500));
        let sources = Sources::new(rate, 7, 3, begin, 5);
        let seen = all(&sources, 3, begin, time);
        let expected = rate * time.as_secs_f64();
        // Five standard deviations of a Poisson count.
        let most = 5.0 * expected.sqrt();
        assert!(
            (seen.len() as f64 - expected).abs() < most,
            "{} for {expected}",
            seen.len()
        );
        let mut gaps: Vec<f64> = seen
            .windows(2)
            .map(|w| (w[1].at - w[0].at).as_secs_f64() * rate)
            .collect();
        gaps.sort_by(f64::total_cmp);
        // Kolmogorov–Smirnov test: with probability 0.999, the empirical distribution differs from 1 - e^-x by at most
        // 1.95 / √n.
        let n = gaps.len() as f64;
        let far = gaps
            .iter()
            .enumerate()
            .map(|(i, x)| ((i as f64 + 0.5) / n - (1.0 - (-x).exp())).abs())
            .fold(0.0, f64::max);
        assert!(far < 1.95 / n.sqrt(), "{far} with {n} gaps");
        let clients: HashSet<u64> = seen.iter().map(|a| a.client).collect();
        assert_eq!(clients, (0..7).collect());
        assert_eq!(sources.unsent(), 0);
    }

    #[test]
    fn each_arrival_is_drawn_by_one_worker_also_by_another_than_its_own() {
        let begin = Instant::now();
        let sources = Sources::new(1e6, 4, 4, begin, 1);
        let counter = AtomicU64::new(0);
        // The fourth worker draws nothing, as if it were busy with a long query.
        let drawn: Vec<Vec<Arrival>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|worker| {
                    let (sources, counter) = (&sources, &counter);
                    scope.spawn(move || {
                        let mut look = Look::new(begin);
                        let (mut own, mut asked) = (vec![], 0);
                        while begin.elapsed() < Duration::from_millis(50) || asked < 10_000 {
                            asked += 1;
                            if let Next::Now(a) =
                                sources.next(numbered(counter), worker, &mut look, Instant::now())
                            {
                                own.push(a);
                            }
                        }
                        own
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let all: Vec<&Arrival> = drawn.iter().flatten().collect();
        let mut numbers: Vec<u32> = all
            .iter()
            .map(|a| match a.task {
                Task::Light { start, .. } => start,
                Task::Heavy(_) => panic!("not drawn"),
            })
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..all.len() as u32).collect::<Vec<_>>());
        let homes: HashSet<usize> = all.iter().map(|a| a.home).collect();
        assert_eq!(homes, (0..4).collect());
    }

    #[test]
    fn a_source_that_nobody_asked_leaves_out_what_is_too_late_and_says_so() {
        let begin = Instant::now();
        let sources = Sources::new(1000.0, 1, 1, begin, 1);
        let counter = AtomicU64::new(0);
        let mut look = Look::new(begin);
        let late = begin + Duration::from_secs(2);
        let Next::Now(a) = sources.next(numbered(&counter), 0, &mut look, late) else {
            panic!("two seconds late and nothing there");
        };
        assert_eq!(a.at, late);
        assert!((1900..2100).contains(&sources.unsent()));
        // Arrivals that are late by less than the limit are not skipped.
        let again = late + Duration::from_millis(50);
        let mut n = 0;
        while let Next::Now(a) = sources.next(numbered(&counter), 0, &mut look, again) {
            assert!(a.at <= again);
            n += 1;
        }
        assert!((20..100).contains(&n), "{n} in 50 ms");
        sources.set_rate(10.0, again);
        let far = again + Duration::from_micros(10);
        assert!(matches!(
            sources.next(numbered(&counter), 0, &mut look, far),
            Next::At(at) if at > far
        ));
    }
}
