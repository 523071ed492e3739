//! The state of the machine during a run: time taken by its host and by other processes, and the cost to one core of
//! work on another.

use super::emulate::Setup;
use crate::measure::cpu_time;
use jindou::{Error, QueryOptions, Resource, Result};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Runs the calling thread on one core only, if the system can.
pub fn pin(core: usize) {
    // SAFETY: an all-zero `cpu_set_t` is the empty set; the set is read during the call only.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core % libc::CPU_SETSIZE as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// Readings of the system's counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    at: Option<Instant>,
    /// Seconds, all cores together: `busy` is time at any work, `stolen` the part of it that the host took, `own` that
    /// of this process.
    busy: f64,
    stolen: f64,
    own: f64,
    /// Involuntary context switches of this process's threads.
    preempted: u64,
}

/// Interference between two readings, as averages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    /// Cores' worth of time that other processes used.
    pub others: f64,
    /// Cores' worth of time that the host took.
    pub stolen: f64,
    /// Involuntary context switches of this process per second.
    pub preempted: f64,
}

impl Reading {
    pub fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let mut fields = stat
            .lines()
            .next()
            .unwrap_or("")
            .split_whitespace()
            .skip(1)
            .filter_map(|f| f.parse::<f64>().ok());
        // user, nice, system, idle, iowait, irq, softirq, steal: in hundredths of a second.
        let mut next = || fields.next().unwrap_or(0.0) / 100.0;
        let work = next() + next() + next();
        let _idle = next() + next();
        let interrupts = next() + next();
        // SAFETY: an all-zero `rusage` is valid, and the call only writes to it.
        let preempted = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
            usage.ru_nivcsw
        };
        Self {
            at: Some(Instant::now()),
            busy: work + interrupts,
            stolen: next(),
            own: cpu_time().as_secs_f64(),
            preempted: u64::try_from(preempted).unwrap_or(0),
        }
    }

    /// Averages of the time between an earlier reading and this one.
    pub fn since(&self, earlier: &Self) -> Taken {
        let seconds = match (earlier.at, self.at) {
            (Some(a), Some(b)) => b.saturating_duration_since(a).as_secs_f64().max(1e-9),
            _ => return Taken::default(),
        };
        let others = self.busy - earlier.busy - (self.own - earlier.own);
        Taken {
            others: (others / seconds).max(0.0),
            stolen: (self.stolen - earlier.stolen) / seconds,
            preempted: self.preempted.saturating_sub(earlier.preempted) as f64 / seconds,
        }
    }
}

/// Pauses of a loop that only reads the clock, which show when its thread did not run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stalls {
    /// Pauses per second that are longer than 0.05, 0.2, 1 and 5 ms.
    pub longer: [f64; 4],
    /// Share of the time lost to pauses of more than 20 µs.
    pub lost: f64,
    pub longest: Duration,
}

const PAUSES: [Duration; 4] = [
    Duration::from_micros(50),
    Duration::from_micros(200),
    Duration::from_millis(1),
    Duration::from_millis(5),
];

/// Runs the loop on `threads` cores at once. Returns the mean of their figures, and the longest pause of any.
pub fn stalls(threads: usize, duration: Duration) -> Stalls {
    let spin = |core| {
        pin(core);
        let (mut counts, mut lost, mut longest) = ([0u64; 4], Duration::ZERO, Duration::ZERO);
        let begin = Instant::now();
        let mut last = begin;
        while last - begin < duration {
            let now = Instant::now();
            let gap = now - last;
            if gap > Duration::from_micros(20) {
                lost += gap;
                longest = longest.max(gap);
                for (count, least) in counts.iter_mut().zip(PAUSES) {
                    *count += u64::from(gap > least);
                }
            }
            last = now;
        }
        (counts, lost, longest, last - begin)
    };
    let seen: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|core| scope.spawn(move || spin(core)))
            .collect();
        all.into_iter().filter_map(|t| t.join().ok()).collect()
    });
    let mut out = Stalls::default();
    let spans = seen.iter().map(|s| s.3.as_secs_f64());
    let all = spans.sum::<f64>().max(1e-9);
    for (counts, lost, longest, _) in seen {
        for (sum, n) in out.longer.iter_mut().zip(counts) {
            *sum += n as f64 / all;
        }
        out.lost += lost.as_secs_f64() / all;
        out.longest = out.longest.max(longest);
    }
    out
}

/// Rounds of arithmetic per second on one core alone, and on each of two at once. Both are alike if the two are
/// separate cores, and far apart if they are hardware threads of one core. Medians of alternating slices.
pub fn arithmetic() -> (f64, f64) {
    let slice = |core: usize| {
        pin(core);
        let begin = Instant::now();
        let mut rounds = 0u64;
        while begin.elapsed() < Duration::from_millis(20) {
            sums();
            rounds += 1;
        }
        rounds as f64 / begin.elapsed().as_secs_f64()
    };
    let at_once = |cores: usize| -> f64 {
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..cores).map(|c| scope.spawn(move || slice(c))).collect();
            let rates = all.into_iter().filter_map(|t| t.join().ok());
            rates.sum::<f64>() / cores as f64
        })
    };
    let (mut one, mut two) = (vec![], vec![]);
    for _ in 0..15 {
        one.push(at_once(1));
        two.push(at_once(2));
    }
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    (median(one), median(two))
}

/// Four independent sums, which saturate a core's arithmetic units.
fn sums() {
    let (mut a, mut b, mut c, mut d) = (1u64, 2u64, 3u64, 4u64);
    for i in 0..4096u64 {
        a = black_box(a.wrapping_add(i));
        b = black_box(b ^ i);
        c = black_box(c.wrapping_add(i << 1));
        d = black_box(d ^ (i >> 1));
    }
    black_box((a, b, c, d));
}

/// A thread that runs the heavy queries one after the other, without any scheduler, while one worker answers light
/// queries, until this value is dropped. It shows what the hardware, and the store by itself, cost.
pub struct Neighbour {
    going: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Neighbour {
    /// Starts the thread.
    pub fn start(setup: &Arc<Setup>) -> Result<Self> {
        let going = Arc::new(AtomicBool::new(true));
        let rounds = Arc::new(AtomicU64::new(0));
        let (setup, go, count) = (Arc::clone(setup), Arc::clone(&going), Arc::clone(&rounds));
        let thread = std::thread::Builder::new()
            .name("neighbour".into())
            .spawn(move || {
                let options = QueryOptions::default().with_threads(1);
                for query in setup.heavy.iter().cycle() {
                    count.fetch_add(1, Ordering::Relaxed);
                    if !go.load(Ordering::Relaxed) {
                        break;
                    }
                    setup.db.checksum(&query.planned, &options)?;
                }
                Ok(())
            })
            .map_err(|e| Error::limit(Resource::Threads, format!("no thread: {e}")))?;
        Ok(Self {
            going,
            rounds,
            thread: Some(thread),
        })
    }

    /// Stops the thread.
    pub fn end(mut self) -> Result<()> {
        self.going.store(false, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(done)) => done,
            _ => Err(Error::Internal("a neighbour panicked".into())),
        }
    }

    /// Number of queries so far.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.going.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_others_interrupt_sees_it() {
        let seen = stalls(2, Duration::from_millis(20));
        assert!((0.0..=1.0).contains(&seen.lost), "{seen:?}");
        let (one, two) = arithmetic();
        assert!(one > 0.0 && two > 0.0);
        let before = Reading::now();
        let quiet = Reading::now().since(&before);
        assert!(quiet.others >= 0.0 && quiet.preempted >= 0.0);
        assert_eq!(Reading::default().since(&before), Taken::default());
    }
}
