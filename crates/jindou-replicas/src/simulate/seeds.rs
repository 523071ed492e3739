//! Simulation of many seeds on several threads.

use super::{Counts, Run, Setup, run};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Outcome of simulating a range of seeds.
#[derive(Debug, Default)]
pub struct Seeds {
    /// Number of seeds without a violation.
    pub held: u64,
    /// Sum of the counts of these seeds.
    pub counts: Counts,
    /// The smallest seed with a violation. Larger seeds may not have been simulated.
    pub failed: Option<(u64, Run)>,
}

impl Seeds {
    fn join(&mut self, other: Self) {
        self.held += other.held;
        self.counts.add(&other.counts);
        self.failed = match (self.failed.take(), other.failed) {
            (Some(a), Some(b)) => Some(if a.0 < b.0 { a } else { b }),
            (a, b) => a.or(b),
        };
    }

    /// A description of the failed seed and its violation.
    pub fn failure(&self) -> Option<String> {
        let (seed, run) = self.failed.as_ref()?;
        Some(format!(
            "seed {seed}: {}",
            run.violation.as_deref().unwrap_or_default()
        ))
    }
}

/// Simulates seeds in ascending order until one has a violation. `played` is called after each seed with the number of
/// seeds simulated so far.
pub fn seeds(
    range: Range<u64>,
    setup: Setup,
    threads: usize,
    played: impl Fn(u64) + Sync,
) -> Seeds {
    let next = AtomicU64::new(range.start);
    let end = AtomicU64::new(range.end);
    let done = AtomicU64::new(0);
    let work = || {
        let mut seen = Seeds::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end.load(Ordering::Relaxed) {
                return seen;
            }
            let run = run(seed, setup);
            match run.violation {
                Some(_) => {
                    end.fetch_min(seed, Ordering::Relaxed);
                    seen.failed = Some((seed, run));
                }
                None => {
                    seen.held += 1;
                    seen.counts.add(&run.counts);
                }
            }
            played(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let mut all = Seeds::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            match thread.join() {
                Ok(seen) => all.join(seen),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    all
}
