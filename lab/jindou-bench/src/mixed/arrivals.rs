//! How light queries come: drawn by the workers themselves, or by threads of their own.
//!
//! In an open loop each worker has a Poisson process with its share of the rate; together they are one with the whole rate. A
//! worker asks its own between two queries and while it is idle, and sees to others' whose worker is at something long, so that
//! arrivals are late by some 20 µs at most while any worker is free. A query's latency counts from its intended time however
//! late it is drawn, and what it has waited by then counts for its admission.

use super::emulate::Task;
use jindou_model::sync::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// xorshift64*.
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

/// How light queries come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// None.
    None,
    /// A number of clients, each of which keeps a window of queries under way.
    Closed { clients: usize, window: usize },
    /// A number of queries a second, at random intended times (a Poisson process), whatever becomes of earlier ones.
    Open { rate: f64, clients: usize },
}

/// A query that has come.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub task: Task,
    pub client: u64,
    /// The worker to whose queue it goes, before it is counted round.
    pub home: usize,
    /// The intended time.
    pub at: Instant,
}

/// A source's reply: an arrival, or when to ask again.
pub enum Next {
    Now(Arrival),
    At(Instant),
}

/// How late another worker's arrivals must be before one sees to them, and how often one looks.
const LATE: Duration = Duration::from_micros(20);
/// A source that is later than this leaves out what should have come: not to the queries' loss, but it is said. Workers keep up
/// with some twenty times what they can answer.
const MOST_BEHIND: Duration = Duration::from_millis(100);

/// The Poisson processes of all workers.
pub struct Sources {
    begin: Instant,
    clients: usize,
    all: Box<[Source]>,
}

#[repr(align(128))]
struct Source {
    /// When the next arrival is due, in nanoseconds after `begin`; to be looked at without the lock.
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

/// A worker's knowledge of the other sources.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    again: Instant,
    /// When one of the others will be late.
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
    /// The next arrival's intended time and number, if that time has come; calls `draw` for what it is.
    fn draw(&self, now: u64, draw: impl FnOnce(&mut Random) -> Task) -> Option<(Task, u64, u64)> {
        if self.due.load(Ordering::Relaxed) > now {
            return None;
        }
        // Another thread that holds the lock takes the arrivals that are due.
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
    /// `rate` arrivals a second from `begin` on, of this many clients, spread over `workers` processes.
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

    /// The arrival that is there for a worker at `now`, or when to ask again; `draw` chooses the query.
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
                    // Not to wait again: there may be more.
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

    /// From `from` on another rate; what should have come before is forgotten.
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

    /// Arrivals that were left out so far.
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

    /// All that comes within a time, in the order of its intended times.
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
        // Five deviations of a Poisson count.
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
        // Kolmogorov and Smirnov: the distribution function is never further from 1 - e^-x than 1.95 / √n (one in a thousand).
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
        // The fourth worker draws nothing: it is at something long.
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
        // A little late is late, and not left out.
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
